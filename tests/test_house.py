"""What CONTRIBUTING says of all files: their length, and words that are no terms of the field."""

from __future__ import annotations

import re
from pathlib import Path

MOST = 600  # lines
LONGEST = 140  # characters of a line in grammars and machines
FOLDERS = ("src", "tests", "benchmarks", "examples", "playground/bridge.py", "playground/build.py", "hatch_build.py")
GONE = re.compile(
    r"\b(wreckage|debris|debts?|borrowed|credits?|doubt|leaps?|habits?|drafts?|wish|talk|misfit|refut\w+)\b"
    r"|every cutting",
    re.I,
)


def _python(root: Path) -> list[Path]:
    return [
        path for name in FOLDERS for path in ([root / name] if name.endswith(".py") else (root / name).rglob("*.py"))
    ]


def test_files_have_fewer_lines_than_the_limit(root: Path) -> None:
    sizes = {path.relative_to(root).as_posix(): len(path.read_text("utf-8").splitlines()) for path in _python(root)}
    assert len(sizes) > 300
    assert {name: size for name, size in sizes.items() if size >= MOST} == {}


def test_lines_of_grammars_and_machines_fit_on_a_screen(root: Path) -> None:
    files = [*(root / "grammars").rglob("*.lark"), *(root / "machines").rglob("*.yaml")]
    lines = [(path.name, line) for path in files for line in path.read_text("utf-8").splitlines()]
    assert len(files) > 140
    assert [(name, line) for name, line in lines if len(line) > LONGEST] == []


def test_words_that_are_no_terms_do_not_come_back(root: Path) -> None:
    """In names as well: `_` and capitals part the words of a name."""
    pages = (root / "docs").rglob("*.md")
    declared = [*(root / "machines").rglob("*.yaml"), *(root / "grammars").rglob("*.lark")]
    sources = [path for path in _python(root) if path.is_relative_to(root / "src")]
    found = {}
    for path in [*sources, *declared, *pages, root / "README.md", root / "CONTRIBUTING.md"]:
        text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", path.read_text("utf-8").replace("_", " "))
        if words := {match.group().lower() for match in GONE.finditer(text)}:
            found[path.relative_to(root).as_posix()] = words
    assert found == {}


def test_every_target_of_make_is_explained_and_every_one_that_is_named_exists(root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (root / "Makefile").read_text("utf-8"), re.M))
    pages = [*(root / "docs").rglob("*.md"), root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md"]
    named = {
        path.relative_to(root).as_posix(): set(re.findall(r"`make ([a-z-]+)", path.read_text("utf-8")))
        for path in pages
    }
    assert targets - named["CONTRIBUTING.md"] == set()
    assert {name: gone for name, each in named.items() if (gone := each - targets)} == {}
