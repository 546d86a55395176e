"""`toolgram check` as a user meets it: one error per fault, with file, line and remedy, and the others go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from typer.testing import CliRunner

import toolgram
from toolgram.cli.app import app
from toolgram.spec.machine_text import machine_text

ROOT = Path(__file__).resolve().parents[2]


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["check", *arguments])
    return result.exit_code, result.output


def files(tmp_path: Path, name: str, change: Callable[[str, str], tuple[str, str]]) -> list[str]:
    grammar = (ROOT / "grammars/mistral_v11.lark").read_text()
    machine = machine_text(toolgram.get_format("mistral_v11").machine_dict)  # with all rows written out
    changed = change(grammar, machine)
    assert changed != (grammar, machine)
    paths = [tmp_path / f"{name}.lark", tmp_path / f"{name}.yaml"]
    for path, text in zip(paths, changed, strict=True):
        path.write_text(text)
    return [str(path) for path in paths]


def test_one_by_name_as_json() -> None:
    status, output = run("mistral_v3", "--json")
    (report,) = json.loads(output)
    assert status == 0
    assert report["format"] == "mistral_v3"
    assert all(finding["ok"] and finding["detail"] for finding in report["findings"])


def test_a_failing_format_does_not_stop_the_others(tmp_path: Path) -> None:
    broken = files(tmp_path, "broken", lambda g, m: (g, m.replace("dest: REASONING", "dest: RESONING", 1)))
    status, output = run("mistral_v11", *broken, "no_such_format")
    assert status == 1
    assert "mistral_v11  proved" in output
    assert "broken  not proved" in output
    assert "unknown format 'no_such_format'" in output


def test_half_a_format_is_a_mistake_in_the_command(tmp_path: Path) -> None:
    status, output = run("own.lark")
    assert status == 2
    assert "two files" in output


def test_files_that_are_not_there() -> None:
    status, output = run("nowhere.lark", "nowhere.yaml")
    assert status == 1
    assert "nowhere.lark: cannot be read" in output
