"""The command line as its users meet it: colours, and what model output may not do to a terminal.

Raw model output is shown and never obeyed.
"""

from __future__ import annotations

import json

import pytest

from tests.cli.running import HOSTILE, OUTPUT, V11, WAIT, Start, on_terminal, run
from toolgram.bulk.json_rows import CONTROLS
from toolgram.cli.terminal import spelled_out


def test_colour_on_a_terminal(start: Start) -> None:
    shown = on_terminal(start, *V11, "--pretty", text=OUTPUT.encode())
    assert b"\x1b[3;35measy\x1b[0m" in shown
    assert b"\x1b[1;36madd\x1b[0m" in shown
    assert b"[arguments]" not in shown


@pytest.mark.parametrize("extra", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_it_is_not_wanted(start: Start, extra: dict[str, str]) -> None:
    shown = on_terminal(start, *V11, "--pretty", text=OUTPUT.encode(), extra=extra)
    assert b"\x1b" not in shown
    assert b"[name]       add" in shown


def test_colour_by_request_in_a_pipe(start: Start) -> None:
    process = start(*V11, "--pretty", extra={"FORCE_COLOR": "1"})
    shown, _ = process.communicate(OUTPUT.encode(), timeout=WAIT)
    assert b"\x1b[1;36madd\x1b[0m" in shown


@pytest.mark.parametrize("mode", [(), ("--events",), ("--pretty",)])
def test_nothing_commands_the_terminal(mode: tuple[str, ...]) -> None:
    shown = run(*V11, *mode, text=f'{HOSTILE}[TOOL_CALLS]add[ARGS]{{"a": "\x9b2J"}}').stdout
    assert CONTROLS.search(shown) is None
    assert "bidi" in shown


def test_colour_is_ours_alone(start: Start) -> None:
    shown = on_terminal(start, *V11, "--pretty", text=HOSTILE.encode())
    assert rb"\x1b[31m bell \x07 title \x1b]0;owned\x07" in shown
    assert [each for each in ("\x1b[31m", "\x1b]", "\u202e", "\x9b") if each.encode() in shown] == []


def test_spelling() -> None:
    assert spelled_out("a\x1bb\x9b\u202e\ud800\U000e0041") == r"a\x1bb\x9b\u202e\ud800\U000e0041"
    assert spelled_out("né 日本語 👩\u200d🚀\t\n") == "né 日本語 👩\u200d🚀\t\n"


def test_a_locale_without_the_characters(start: Start) -> None:
    plain = {"PYTHONIOENCODING": "ascii"}
    shown, complaint = start(*V11, "--pretty", extra=plain).communicate("né\n".encode(), timeout=WAIT)
    assert (shown.splitlines()[-1], complaint) == (rb"[content]    n\xe9\u2424", b"")
    shown, _ = start(*V11, extra=plain).communicate("né".encode(), timeout=WAIT)
    assert json.loads(shown)["content"] == "né"
