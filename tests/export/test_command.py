"""`toolgram export` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

import toolgram
from toolgram.cli.app import app
from toolgram.export import TARGETS

TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]


def run(*words: str) -> tuple[int, str, str]:
    """Run a command; its exit status, and what it printed on either side."""
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.stdout, result.stderr


def test_the_help_names_every_target() -> None:
    status, out, _ = run("export", "--help")
    assert status == 0
    assert all(target in out for target in TARGETS)


def test_export(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(TOOLS))
    status, out, _ = run("export", "mistral_v11", "--target", "llguidance", "--tools", str(tools))
    assert status == 0
    assert '"add" VALUE_1 value_2' in out
    assert r"VALUE_1 : /(\[ARGS\]|\[CALL_ID\]([0-9A-Za-z]){9,9}\[ARGS\])/" in out  # a call id is optional
    status, out, _ = run("export", "hermes", "-t", "structural_tag", "--tools", str(tools), "--json")
    assert status == 0
    assert json.loads(out)["triggers"] == ["<tool_call>"]
    status, out, err = run("export", "hermes", "-t", "xgrammar", "--tools", str(tools), "--tool-choice", "gone")
    assert (status, out) == (2, "")
    assert "'gone', which is not declared" in err
    assert run("export", "hermes")[0] == 2
    assert run("export", "hermes", "-t", "yacc")[0] == 2
    assert run("export", "hermes", "-t", "ebnf", "--json-schema", str(tools))[0] == 2


def test_special_tokens(tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps(TOOLS))
    hermes = ("export", "hermes", "-t", "llguidance", "--tools", str(tools), "--tool-choice", "required")
    status, out, _ = run(*hermes, "--special-token", "<tool_call>=7", "--special-token", "</tool_call>")
    assert status == 0
    assert "<[7]>" in out
    assert " </tool_call>" in out
    status, out, err = run(*hermes[:3], "ebnf", *hermes[4:], "--special-token", "<tool_call>")
    assert status == 0
    assert "Token(" not in out
    assert "ebnf has no name for the token <tool_call>" in err


def test_a_file_and_the_options_of_an_export(tmp_path: Path) -> None:
    tools, grammar, answer = (tmp_path / name for name in ("tools.json", "hermes.gbnf", "answer.json"))
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}}
    declared = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    tools.write_text(json.dumps(declared), encoding="utf-8")
    answer.write_text('{"type": "regex", "pattern": "[0-9]+"}', encoding="utf-8")
    status, out, err = run(
        "export", "hermes", "-t", "gbnf", "--tools", str(tools), "--open-objects", "-o", str(grammar)
    )
    assert (status, out) == (0, "")
    assert (
        grammar.read_text(encoding="utf-8")
        == toolgram.get_format("hermes").export("gbnf", declared, open_objects=True).text
    )
    assert "is closed" not in err
    status, out, _ = run("export", "hermes", "-t", "structural_tag", "--answer-format", str(answer), "--length-limits")
    assert status == 0
    assert '{"type": "regex", "pattern": "[0-9]+"}' in out
    status, out, _ = run("export", "hermes", "-t", "ebnf", "--tools", str(tools), "--no-strict")
    assert status == 0
    assert "json_object" in out
    assert run("export", "hermes", "-t", "gbnf", "-o", str(tmp_path / "none" / "x"))[0] == 2
