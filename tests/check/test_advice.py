"""Warnings of `check`: what is proved and may still be a mistake."""

import re
import shutil
from pathlib import Path

import pytest

import toolgram
from tests.cli.running import run
from tests.own_format import load_own
from tests.properties.selection import every_format
from tests.tables import table
from toolgram.check import check_format
from toolgram.check.advice import warnings_of
from toolgram.check.free_text import differences, written_by_hand
from toolgram.formats import Format

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


def test_a_key_that_the_grammar_lacks_is_named(tmp_path: Path) -> None:
    assert findings(tmp_path, KEYS, KEYS_MACHINE) == ({}, [])
    grammar = KEYS.replace(r'("\"tool\"" | "\"name\"")', r'"\"name\""')
    failed, _ = findings(tmp_path, grammar, KEYS_MACHINE)
    words = "the machine reads the key 'tool', and no terminal of the grammar has it"
    assert words in failed["the grammar has the keys of JSON"]


def test_an_example_with_keys_that_the_machine_lacks_is_named(tmp_path: Path) -> None:
    machine = KEYS_MACHINE.replace(SAME_PATH, "")
    failed, warnings = findings(tmp_path, KEYS, machine)
    line = machine[: machine.index("example:")].count("\n") + 1
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


# --- free text that is defined by hand is compared with what the parser reads ---------------------------------------

REPOSITORY = Path(__file__).parents[2]
TOOL_CALLS = r"\[TOOL_CALLS\]|\[\/TOOL_CALLS\]|\[THINK\]|\[\/THINK\]|<\/s>"
PIECES = {"qwen3_coder": "invoke_call", "glm45": "key_value_call", "hermes": "function_tag", "gemma4": "notated_call"}


def defining(tmp_path: Path, name: str, terminal: str, pattern: str) -> Format:
    """A shipped format with a definition in place of a declaration."""
    fmt = toolgram.get_format(name)
    grammar, machine = tmp_path / "grammars" / "own.lark", tmp_path / "machines" / "own.yaml"
    for path in (grammar, machine):
        shutil.copytree(REPOSITORY / path.parent.name / "common", path.parent / "common")
    declared = re.sub(rf"^(%declare.*) {terminal}\b", r"\1", fmt.grammar_text, flags=re.M)
    declared = re.sub(r"^%declare$", "", declared, flags=re.M)
    override = declared == fmt.grammar_text
    imported = f"%import .common.{PIECES[name]} ({terminal})\n%override " if override else ""
    priority = ".-1" if terminal == "TEXT" else ""
    grammar.write_text(f"{declared}\n{imported}{terminal}{priority}: /{pattern}/\n", encoding="utf-8")
    machine.write_text(fmt.machine_text, encoding="utf-8")
    return toolgram.load_format(grammar, machine)


@pytest.mark.parametrize(
    ("name", "terminal", "pattern", "problem"), table(__file__, "a_definition_that_differs_is_reported")
)
def test_a_definition_that_differs_is_reported(
    name: str, terminal: str, pattern: str, problem: str, tmp_path: Path
) -> None:
    fmt = defining(tmp_path, name, terminal, pattern)
    line = len(fmt.grammar_text.splitlines())
    first = next(differences(fmt, written_by_hand(fmt.spec)))
    assert first.startswith(f"{fmt.spec.grammar_path}:{line}: {terminal} {problem}")
    assert first.endswith(f"; declare it: %declare {terminal}")


def test_a_difference_is_a_finding(tmp_path: Path) -> None:
    findings = check_format(defining(tmp_path, "mistral_v11", "TEXT", "[^@]+")).findings
    (finding,) = (each for each in findings if each.name.startswith("free text"))
    assert not finding.ok
    assert "TEXT does not read 'x@x'" in finding.detail


def test_the_same_definition_in_other_words_is_none(tmp_path: Path) -> None:
    fmt = defining(tmp_path, "mistral_v11", "TEXT", rf"(?:[^\[<]|(?!{TOOL_CALLS})[\[<])+")
    assert list(written_by_hand(fmt.spec)) == ["TEXT"]
    assert list(differences(fmt, written_by_hand(fmt.spec))) == []
