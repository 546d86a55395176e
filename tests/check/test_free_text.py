"""`toolgram check` compares free text that is defined by hand with what the parser reads."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import toolgram
from tests.tables import table
from toolgram.check import check_format
from toolgram.check.free_text import differences, written_by_hand
from toolgram.formats import Format

ROOT = Path(__file__).parents[2]
TOOL_CALLS = r"\[TOOL_CALLS\]|\[\/TOOL_CALLS\]|\[THINK\]|\[\/THINK\]|<\/s>"
PIECES = {"qwen3_coder": "invoke_call", "glm45": "key_value_call", "hermes": "function_tag", "gemma4": "notated_call"}


def defining(tmp_path: Path, name: str, terminal: str, pattern: str) -> Format:
    """A shipped format with a definition in place of a declaration."""
    fmt = toolgram.get_format(name)
    grammar, machine = tmp_path / "grammars" / "own.lark", tmp_path / "machines" / "own.yaml"
    for path in (grammar, machine):
        shutil.copytree(ROOT / path.parent.name / "common", path.parent / "common")
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
    (finding,) = (
        each
        for each in check_format(defining(tmp_path, "mistral_v11", "TEXT", "[^@]+")).findings
        if each.name.startswith("free text")
    )
    assert not finding.ok
    assert "TEXT does not read 'x@x'" in finding.detail


def test_the_same_definition_in_other_words_is_none(tmp_path: Path) -> None:
    fmt = defining(tmp_path, "mistral_v11", "TEXT", rf"(?:[^\[<]|(?!{TOOL_CALLS})[\[<])+")
    assert list(written_by_hand(fmt.spec)) == ["TEXT"]
    assert list(differences(fmt, written_by_hand(fmt.spec))) == []
