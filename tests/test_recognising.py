"""One recogniser: the format that wrote an output comes first, and those that read it alike are named."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import toolgram
from toolgram.cli.app import app
from toolgram.explain import recognise
from toolgram.explain.recognising import best_format, is_found

AROUND = [("", ""), ("Sure, I will look that up.\n", ""), ("I can do that: {ok}.\n\n", "\nThat is all.")]


@pytest.mark.parametrize("name", toolgram.format_names())
def test_the_family_comes_first_and_ties_are_named(name: str) -> None:
    example = toolgram.get_format(name).example
    for before, after in AROUND:
        first, *others = recognise([before + example + after])
        assert name in (first.name, *first.alike)
        assert is_found(first) or before, "bare text may be a call at the beginning only"
        assert sorted(first.alike) == sorted(each.name for each in others if each.rank == first.rank)


def test_many_outputs_are_read_together() -> None:
    """What one output does not tell, the others do."""
    plain, thought = "Hello.", "<think>so</think>yes"
    call = toolgram.get_format("kimi_k2").example
    assert recognise([plain, thought, call])[0].name == "kimi_k2"
    assert best_format([plain]) is None
    assert not is_found(recognise([""])[0])


def run(*arguments: str, text: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments), input=text)
    return result.exit_code, result.output


def test_try_and_explain_agree() -> None:
    text = 'Sure.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    status, said = run("try", text=text)
    assert (status, said.split()[1]) == (0, "hermes")
    status, said = run("explain", text=text)
    assert status == 0
    assert "format hermes: 1 complete call," in said
    status, said = run("explain", "--format", "mistral_v11", "--json", text=text)
    data = json.loads(said)
    assert next(each["name"] for each in data["alternatives"] if each["better"]) == "hermes"
    status, said = run("explain", text="Hello.")
    assert (status, "no shipped format finds" in said) == (1, True)


def test_the_help_says_which_command_when() -> None:
    _, said = run("try", "--help", text="")
    for command in ("`try` for", "`explain` for", "`doctor` for", "`audit` for"):
        assert command in " ".join(said.split())


def test_all_use_the_one_recogniser(root: Path) -> None:
    """Who recognises a format calls `recognise` or `best_format`, and nothing ranks formats by itself."""
    users = ("src/toolgram/cli/trying.py", "src/toolgram/explain/__init__.py", "src/toolgram/derive/doctor.py",
             "src/toolgram/audit/auditing.py", "src/toolgram/wrapping.py", "playground/bridge.py")  # fmt: skip
    for user in users:
        assert re.search(r"\b(recognise|best_format)\(", (root / user).read_text(encoding="utf-8")), user
