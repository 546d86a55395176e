"""Specifications kept by the build are those of the files, and are not used for any other files."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import toolgram
from toolgram import spec_cache
from toolgram.spec_cache import keep_spec, kept_spec
from toolgram.spec_files import read_spec

ROOT = Path(__file__).parents[1]
every_format = pytest.mark.parametrize("name", toolgram.format_names())


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for folder in ("grammars", "machines"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    monkeypatch.setattr(spec_cache, "_HOME", tmp_path / "specs")
    return tmp_path


def _paths(files: Path, name: str) -> tuple[Path, Path]:
    return files / "grammars" / f"{name}.lark", files / "machines" / f"{name}.yaml"


@every_format
def test_what_was_kept_is_what_the_files_say(name: str, files: Path) -> None:
    paths = _paths(files, name)
    spec = read_spec(*paths, (str(files / "grammars"),))
    assert kept_spec(name, *paths) is None
    keep_spec(spec)
    assert kept_spec(name, *paths) == spec


@pytest.mark.parametrize(
    "edited", ["grammars/mistral_v11.lark", "machines/mistral_v11.yaml", "grammars/common/json.lark"]
)
def test_an_edited_file_is_read_again(edited: str, files: Path) -> None:
    paths = _paths(files, "mistral_v11")
    keep_spec(read_spec(*paths, (str(files / "grammars"),)))
    with (files / edited).open("a") as file:
        file.write("\n")
    assert kept_spec("mistral_v11", *paths) is None


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"hash": "0"}', "null"])
def test_damaged_leftovers_are_no_specification(damage: str, files: Path) -> None:
    paths = _paths(files, "mistral_v11")
    keep_spec(read_spec(*paths, (str(files / "grammars"),))).write_text(damage)
    assert kept_spec("mistral_v11", *paths) is None


def test_a_fresh_process_that_parses_loads_no_grammar_library(files: Path) -> None:
    """Lark, YAML, ijson and transitions are loaded when something needs them: a format that is read, an envelope."""
    for name in toolgram.format_names():
        keep_spec(read_spec(*_paths(files, name), (str(files / "grammars"),)))
    program = f"""
import sys
from pathlib import Path
from toolgram import formats, spec_cache
spec_cache._HOME = Path({str(files / "specs")!r})
formats._home = lambda: Path({str(files)!r})
import toolgram
message = toolgram.get_format("mistral_v11").parse('[TOOL_CALLS]f[ARGS]{{"a": 1}}')
assert message.tool_calls[0].name == "f"
print([name for name in ("lark", "yaml", "ijson", "transitions", "jinja2", "rich") if name in sys.modules])
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=files)
    assert result.stdout.strip() == "[]"
