"""What `check` says of keys of JSON that only one of the two files has, and of examples that are not read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.own_format import load_own
from toolgram.check import check_format

OWN = Path(__file__).parent.parent / "own"
GRAMMAR = (OWN / "keys.lark").read_text("utf-8")
MACHINE = (OWN / "keys.yaml").read_text("utf-8")
SAME_PATH = "  same_path: {item.tool: item.name}\n"
CALL = '[CALLS]{"tool": "f", "arguments": {}}[/CALLS]'


def findings(tmp_path: Path, grammar: str, machine: str) -> tuple[dict[str, str], list[str]]:
    report = check_format(load_own(tmp_path, grammar, machine))
    return {each.name: each.detail for each in report.findings if not each.ok}, report.warnings


def test_both_files_have_the_keys(tmp_path: Path) -> None:
    assert findings(tmp_path, GRAMMAR, MACHINE) == ({}, [])


def test_a_key_that_the_grammar_lacks_is_named(tmp_path: Path) -> None:
    grammar = GRAMMAR.replace(r'("\"tool\"" | "\"name\"")', r'"\"name\""')
    failed, _ = findings(tmp_path, grammar, MACHINE)
    assert (
        "the machine reads the key 'tool', and no terminal of the grammar has it"
        in failed["the grammar has the keys of JSON"]
    )


def test_an_example_with_keys_that_the_machine_lacks_is_named(tmp_path: Path) -> None:
    failed, warnings = findings(tmp_path, GRAMMAR, MACHINE.replace(SAME_PATH, ""))
    line = MACHINE.replace(SAME_PATH, "")[: MACHINE.index("example:") - len(SAME_PATH)].count("\n") + 1
    detail = failed["the examples are read"]
    assert f'own.yaml:{line}: the parser cannot read the example from \'[CALLS]{{"tool"' in detail
    assert 'expected the key "name"' in detail
    assert detail.endswith("`same_path` declares other keys")
    assert len(warnings) == 1


@pytest.mark.parametrize("shown", ["", "[CALLS] is a marker"])
def test_an_example_without_a_call_is_a_warning(tmp_path: Path, shown: str) -> None:
    failed, warnings = findings(tmp_path, GRAMMAR, MACHINE.replace(CALL, shown))
    assert bool(failed) == bool(shown)
    assert any("no example has a call that is read; show one" in each for each in warnings)
