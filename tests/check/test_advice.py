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


# --- keys of JSON that only one of the two files has, and examples that are not read --------------------------------


KEYS = (OWN / "keys.lark").read_text("utf-8")
KEYS_MACHINE = (OWN / "keys.yaml").read_text("utf-8")
SAME_PATH = "  same_path: {item.tool: item.name}\n"
CALL = '[CALLS]{"tool": "f", "arguments": {}}[/CALLS]'


def findings(tmp_path: Path, grammar: str, machine: str) -> tuple[dict[str, str], list[str]]:
    report = check_format(load_own(tmp_path, grammar, machine))
    return {each.name: each.detail for each in report.findings if not each.ok}, report.warnings


def test_both_files_have_the_keys(tmp_path: Path) -> None:
    assert findings(tmp_path, KEYS, KEYS_MACHINE) == ({}, [])


def test_a_key_that_the_grammar_lacks_is_named(tmp_path: Path) -> None:
    grammar = KEYS.replace(r'("\"tool\"" | "\"name\"")', r'"\"name\""')
    failed, _ = findings(tmp_path, grammar, KEYS_MACHINE)
    assert (
        "the machine reads the key 'tool', and no terminal of the grammar has it"
        in failed["the grammar has the keys of JSON"]
    )


def test_an_example_with_keys_that_the_machine_lacks_is_named(tmp_path: Path) -> None:
    failed, warnings = findings(tmp_path, KEYS, KEYS_MACHINE.replace(SAME_PATH, ""))
    line = KEYS_MACHINE.replace(SAME_PATH, "")[: KEYS_MACHINE.index("example:") - len(SAME_PATH)].count("\n") + 1
    detail = failed["the examples are read"]
    assert f'own.yaml:{line}: the parser cannot read the example from \'[CALLS]{{"tool"' in detail
    assert 'expected the key "name"' in detail
    assert detail.endswith("`same_path` declares other keys")
    assert len(warnings) == 1


@pytest.mark.parametrize("shown", ["", "[CALLS] is a marker"])
def test_an_example_without_a_call_is_a_warning(tmp_path: Path, shown: str) -> None:
    failed, warnings = findings(tmp_path, KEYS, KEYS_MACHINE.replace(CALL, shown))
    assert bool(failed) == bool(shown)
    assert any("no example has a call that is read; show one" in each for each in warnings)
