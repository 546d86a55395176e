"""`toolgram export` on the command line; `commands.yaml` has what fits in a row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.cli.running import check_row, rows_beside, run
from toolgram.export import TARGETS


def test_the_help_names_every_target() -> None:
    result = run("export", "--help")
    assert result.exit_code == 0
    assert all(target in result.stdout for target in TARGETS)


def test_a_file_and_the_options_of_an_export(tmp_path: Path) -> None:
    tools, grammar = tmp_path / "tools.json", tmp_path / "hermes.gbnf"
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}}
    declared = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    tools.write_text(json.dumps(declared), encoding="utf-8")
    result = run("export", "hermes", "-t", "gbnf", "--tools", tools, "--open-objects", "-o", grammar)
    assert (result.exit_code, result.stdout) == (0, "")
    made = toolgram.get_format("hermes").export("gbnf", declared, open_objects=True)
    assert grammar.read_text(encoding="utf-8") == made.text
    assert "is closed" not in result.stderr


@pytest.mark.parametrize("row", rows_beside(__file__), ids=lambda row: row["run"])
def test_the_command(row: dict[str, Any], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_row(row, root, tmp_path, monkeypatch)
