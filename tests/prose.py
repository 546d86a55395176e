"""A linter for prose: proselint, and the project's own vocabulary. `python -m tests.prose` prints what it finds.

Strategy: pages, docstrings and comments become lines of plain prose: without code, tables of generated output, and
names in backticks. proselint looks at pages. The vocabulary below has words that this project once used in a way of its
own, each with the word that a reader expects. `tests/test_house.py` runs it: there are no exceptions.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.tables import table

ROOT = Path(__file__).resolve().parents[1]
# what was written: what a reader expects
VOCABULARY = table(__file__, "vocabulary")
FAULTS = [(re.compile(pattern, re.I), meant) for pattern, meant in VOCABULARY.items()]
# A docstring of a function begins with a verb: "Return the text", and not "The text" or "Whether it is one".
NO_VERB = re.compile(r"(?:The|A|An|What|Whether|How|Where|All|Every|Each|As|One|Those|None|Which|If) ")
NOT_PROSE = re.compile(r"^```.*?^```|^ {4,}\S.*?$|`[^`\n]*`|<!--.*?-->|<[^>\n]+>|\]\([^)]*\)", re.M | re.S)
GENERATED = ("docs/specs/", "docs/data/", "docs/decisions/", "docs/reference/cli.md", "docs/reference/vllm-tables.md")


class Fault(NamedTuple):
    """A word at a place, and what to write instead."""

    file: str
    line: int
    word: str
    instead: str


def prose_of(page: str) -> str:
    """Return the prose of a Markdown page: code becomes blank, so that lines keep their numbers."""
    return NOT_PROSE.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), page)


def pages() -> list[Path]:
    """Return the pages that people write."""
    top = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
    found = [*(ROOT / name for name in top), *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if not page.relative_to(ROOT).as_posix().startswith(GENERATED)]


def page_faults(page: Path) -> Iterator[Fault]:
    """Yield the words of a page that are not in the reader's vocabulary."""
    yield from _words(page, enumerate(prose_of(page.read_text(encoding="utf-8")).splitlines(), 1))


def declaration_faults(path: Path) -> Iterator[Fault]:
    """Yield those in the comments and texts of a grammar or a machine."""
    yield from _words(path, enumerate(path.read_text(encoding="utf-8").splitlines(), 1))


def source_faults(path: Path) -> Iterator[Fault]:
    """Yield those in the comments and docstrings of a module, and docstrings that do not begin with a verb."""
    text = path.read_text(encoding="utf-8")
    lines = [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            said = ast.get_docstring(node)  # without the indent of the code, which would look like an example
            if said is None:
                continue
            first = node.body[0].lineno
            lines += [(first + at, line) for at, line in enumerate(prose_of(said).split("\n"))]
            is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            is_property = is_function and "property" in " ".join(map(ast.unparse, getattr(node, "decorator_list", ())))
            if is_function and not is_property and (found := NO_VERB.match(said)):
                yield Fault(_name(path), first, found[0].strip(), "a verb: Return, Read, Write ...")
    yield from _words(path, lines)


def _words(path: Path, lines: Iterator[tuple[int, str]] | list[tuple[int, str]] | enumerate[str]) -> Iterator[Fault]:
    for number, line in lines:
        for pattern, meant in FAULTS:
            for found in pattern.finditer(line):
                yield Fault(_name(path), number, found[0], meant)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def by_part() -> Counter[str]:
    """Count the faults of the package by its parts: a folder, or `.` for the modules at the top."""
    counts: Counter[str] = Counter()
    package = ROOT / "src" / "toolgram"
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        counts[parts[0] if len(parts) > 1 else "."] += sum(1 for _ in source_faults(path))
    return counts


def declared() -> list[Path]:
    """Return the grammars and machines."""
    return [*sorted((ROOT / "grammars").rglob("*.lark")), *sorted((ROOT / "machines").rglob("*.yaml"))]


if __name__ == "__main__":
    modules = sorted((ROOT / "src").rglob("*.py"))
    for places, faults in ((pages(), page_faults), (declared(), declaration_faults), (modules, source_faults)):
        for fault in (fault for place in places for fault in faults(place)):
            print("{}:{}: {}: write {}".format(*fault))
