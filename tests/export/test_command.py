"""`toolgram export` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

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
    assert '"add" VALUE_1 json_1' in out
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
