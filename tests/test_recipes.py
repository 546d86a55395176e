"""The recipes of CONTRIBUTING, section "What to touch": each is followed in a copy of the package, file by file.

Strategy: a copy gets what a recipe of `recipes.yaml` says and nothing else, at most four files.  Text goes after a line
that is there, as somebody who follows the recipe would put it.  Then a process of its own uses what was added.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

MOST = 4  # files that a recipe may touch
BESIDE = Path(__file__).parent
RECIPES: dict[str, dict[str, Any]] = yaml.safe_load((BESIDE / "recipes.yaml").read_text("utf-8"))


@pytest.fixture
def house(root: Path, tmp_path: Path) -> Path:
    """The package, its two folders and its project file, to change at will; and a format that has a new island."""
    ignored = shutil.ignore_patterns("__pycache__", "specs")
    for folder in ("src", "grammars", "machines"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=ignored)
    for path in (root / "pyproject.toml", BESIDE / "own" / "sql.lark", BESIDE / "own" / "sql.yaml"):
        shutil.copy(path, tmp_path)
    return tmp_path


def follow(house: Path, new: dict[str, str], after: dict[str, list[dict[str, str]]]) -> None:
    """Write the new files, and put text after lines of others: a line, and what follows it."""
    assert len(new) + len(after) <= MOST
    for name, content in new.items():
        path = house / name
        assert not path.exists()
        path.write_text(content, encoding="utf-8")
    for name, changes in after.items():
        path = house / name
        text = path.read_text(encoding="utf-8")
        for change in changes:
            line = f"{change['line']}\n"
            assert text.count(line) == 1, (name, line)
            text = text.replace(line, line + change["add"])
        path.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe(name: str, house: Path) -> None:
    """Its program runs with the changed package, and the change is held to the layers."""
    recipe = RECIPES[name]
    follow(house, recipe["new"], recipe["after"])
    environment = os.environ | {"PYTHONPATH": str(house / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    lint = "import sys; from importlinter.cli import lint_imports_command as main; main()"
    for program, options in ((recipe["use"], []), (lint, ["--no-cache", "--no-logo"])):
        command = [sys.executable, "-c", program, *options]
        done = subprocess.run(command, cwd=house, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
