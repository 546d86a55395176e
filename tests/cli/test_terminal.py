"""The command line as its users meet it: colours, and what model output may not do to a terminal."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.running import HOSTILE, OUTPUT, V11, WAIT, on_terminal, run
from toolgram.bulk.json_rows import CONTROLS
from toolgram.cli.terminal import spelled_out


class TestPretty:
    def test_colour_on_a_terminal(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        shown = on_terminal(start, *V11, "--pretty", text=OUTPUT.encode(), stream="stdout")
        assert b"\x1b[3;35measy\x1b[0m" in shown
        assert b"\x1b[1;36madd\x1b[0m" in shown
        assert b"[arguments]" not in shown

    @pytest.mark.parametrize("extra", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
    def test_no_colour_where_it_is_not_wanted(
        self, start: Callable[..., subprocess.Popen[bytes]], extra: dict[str, str]
    ) -> None:
        def begin(*arguments: str, **streams: Any) -> subprocess.Popen[bytes]:
            return start(*arguments, extra=extra, **streams)

        shown = on_terminal(begin, *V11, "--pretty", text=OUTPUT.encode(), stream="stdout")
        assert b"\x1b" not in shown
        assert b"[name]       add" in shown

    def test_colour_by_request_in_a_pipe(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        process = start(*V11, "--pretty", extra={"FORCE_COLOR": "1"})
        shown, _ = process.communicate(OUTPUT.encode(), timeout=WAIT)
        assert b"\x1b[1;36madd\x1b[0m" in shown


class TestTerminalSafety:
    """Raw model output is shown and never obeyed."""

    @pytest.mark.parametrize("mode", [(), ("--events",), ("--pretty",)])
    def test_nothing_commands_the_terminal(self, mode: tuple[str, ...]) -> None:
        text = f'{HOSTILE}[TOOL_CALLS]add[ARGS]{{"a": "\x9b2J"}}'
        shown = run(*V11, *mode, text=text).stdout
        assert CONTROLS.search(shown) is None
        assert "bidi" in shown

    def test_colour_is_ours_alone(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        shown = on_terminal(start, *V11, "--pretty", text=HOSTILE.encode(), stream="stdout")
        assert rb"\x1b[31m bell \x07 title \x1b]0;owned\x07" in shown
        assert b"\x1b[31m" not in shown
        assert b"\x1b]" not in shown
        assert "\u202e".encode() not in shown
        assert "\x9b".encode() not in shown

    def test_spelling(self) -> None:
        assert spelled_out("a\x1bb\x9b\u202e\ud800\U000e0041") == r"a\x1bb\x9b\u202e\ud800\U000e0041"
        assert spelled_out("né 日本語 👩\u200d🚀\t\n") == "né 日本語 👩\u200d🚀\t\n"

    def test_a_locale_without_the_characters(self, start: Callable[..., subprocess.Popen[bytes]]) -> None:
        plain = {"PYTHONIOENCODING": "ascii"}
        shown, complaint = start(*V11, "--pretty", extra=plain).communicate("né\n".encode(), timeout=WAIT)
        assert (shown.splitlines()[-1], complaint) == (rb"[content]    n\xe9\u2424", b"")
        shown, _ = start(*V11, extra=plain).communicate("né".encode(), timeout=WAIT)
        assert json.loads(shown)["content"] == "né"
