"""Warnings of `check`: what is proved and may still be a mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgram
from tests.cli.running import run
from tests.own_format import load_own
from tests.properties.selection import every_format
from toolgram.check import check_format
from toolgram.check.advice import warnings_of

OWN = Path(__file__).parent.parent / "own"
GRAMMAR = (OWN / "tagged.lark").read_text("utf-8")
MACHINE = (OWN / "tagged.yaml").read_text("utf-8")
LINES = (OWN / "lines.lark").read_text("utf-8")
LINES_MACHINE = (OWN / "lines.yaml").read_text("utf-8")


@every_format
def test_no_shipped_format_has_a_warning(name: str) -> None:
    assert warnings_of(toolgram.get_format(name)) == []


def test_line_ends_and_names_are_named_with_their_lines(tmp_path: Path) -> None:
    line_end, name = warnings_of(load_own(tmp_path, LINES, LINES_MACHINE))
    assert r"own.lark:10: marker LINE_END refuses one of `\n` and `\r\n`; write LINE_END: /\r?\n/" in line_end
    assert "own.lark:7: NAME is the name of a function and refuses capitals, digits, `.`, `-`" in name
    remedied = LINES.replace(r'"\n"', r"/\r?\n/").replace("[a-z][a-z_]{0,63}", r"[\w.\-]{1,256}")
    assert warnings_of(load_own(tmp_path, remedied, LINES_MACHINE)) == []


@pytest.mark.parametrize("key", ["example", "canonical"])
def test_an_example_that_contradicts_a_declaration_is_named(tmp_path: Path, key: str) -> None:
    machine = MACHINE.replace("}}</tool>", "}}")
    assert warnings_of(load_own(tmp_path, GRAMMAR, MACHINE)) == []
    if key == "canonical":
        machine = machine.replace("  example: |-\n    Let me look.\n", "  canonical:\n    - |-\n      Let me look.\n  ")
    (warning,) = warnings_of(load_own(tmp_path, GRAMMAR, machine))
    line = machine[: machine.index("Let me look.")].count("\n") + 1
    assert f"own.yaml:{line}: the example has no END_TOOL_CALL after TOOL_CALL, which `closed_by` declares" in warning


def test_a_warning_is_printed_and_does_not_fail(tmp_path: Path) -> None:
    fmt = load_own(tmp_path, LINES, LINES_MACHINE)
    assert check_format(fmt).ok
    result = run("check", str(tmp_path / "own.lark"), str(tmp_path / "own.yaml"))
    assert result.exit_code == 0
    assert result.output.count("  warn ") == 2
    as_json = run("check", str(tmp_path / "own.lark"), str(tmp_path / "own.yaml"), "--json")
    assert '"warnings"' in as_json.output
