"""`make mutants` changes what it says, the same places for the same seed, and knows a change that tests notice."""

import ast
from pathlib import Path

import pytest
import yaml

from tests import mutants
from tests.mutants import Mutant


def test_a_seed_chooses_changes_that_can_be_read_and_are_none_of_each_other() -> None:
    found = mutants.mutants(1, 100)
    assert found == mutants.mutants(1, 100)
    assert len({mutant.name() for mutant in found}) == len(found) == 100 + len(mutants.NAMED)
    for mutant in found:
        text = mutant.text()
        assert text != (mutants.ROOT / mutant.file).read_text("utf-8"), mutant.name()
        assert ast.parse(text) if mutant.file.endswith(".py") else yaml.safe_load(text), mutant.name()


@pytest.mark.parametrize(("body", "expected"), [("assert 1 + 1 == 2", "survived"), ("assert 1 + 1 == 3", "killed")])
def test_a_change_survives_the_tests_that_pass(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str, expected: str
) -> None:
    (tmp_path / "test_own.py").write_text(f"def test_sum() -> None:\n    {body}\n")
    (tmp_path / "src" / "toolgram").mkdir(parents=True)
    text = (mutants.ROOT / "src/toolgram/limits.py").read_text("utf-8")
    monkeypatch.setattr(mutants, "tests_of", lambda mutant: [["test_own.py"]])
    monkeypatch.setattr(mutants, "SECONDS", 600)
    mutant = Mutant("src/toolgram/limits.py", text.index("64"), "64", "65")
    assert mutants.outcome(mutant, tmp_path) == expected
    assert (tmp_path / mutant.file).read_text("utf-8") == text


def test_the_tests_of_a_change_are_those_that_run_its_line_and_of_a_machine_those_of_its_formats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (mutants.ROOT / "src/toolgram/limits.py").read_text("utf-8")
    change = Mutant("src/toolgram/limits.py", text.index("64"), "64", "65")
    line = text.count("\n", 0, change.at) + 1
    seconds = {"slow": 2.0, "quick": 1.0, "other": 0.0, "t[hermes]": 0.0, "t[whole-hermes-1]": 1.0, "t[gpt_oss]": 0.0}
    lines = {change.file: {line: ["slow|run", "quick|setup"], line + 1: ["other|run"]}}
    monkeypatch.setattr(mutants, "runs", lambda: mutants.Runs(seconds, lines, {"slow|run": 1}))
    assert mutants.tests_of(change) == [["other", "slow"], ["quick"]]  # the line is in no function
    fragment = next(iter((mutants.ROOT / "machines").glob("**/json_call_list.yaml")))
    change = Mutant(str(fragment.relative_to(mutants.ROOT)), 0, "", "")
    assert mutants.tests_of(change) == [["other", "quick", "t[whole-hermes-1]"], ["t[hermes]", "slow"]]
