"""Pages, docstrings, comments and declarations are plain English: proselint, and the vocabulary of tests/prose.py."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import prose


def test_pages_use_the_vocabulary() -> None:
    found = [fault for page in prose.pages() for fault in prose.page_faults(page)]
    assert found == []


def test_declarations_use_the_vocabulary() -> None:
    assert len(prose.declared()) > 140
    assert [fault for place in prose.declared() for fault in prose.declaration_faults(place)] == []


def test_docstrings_and_comments_use_the_vocabulary() -> None:
    assert +prose.by_part() == Counter()


def test_proselint_has_nothing_to_say_about_the_pages(root: Path, tmp_path: Path) -> None:
    for page in prose.pages():
        name = page.relative_to(root).as_posix()
        place = tmp_path / name.replace("/", "-")
        place.write_text(prose.prose_of(page.read_text(encoding="utf-8")), encoding="utf-8")
    config = root / ".proselintrc.json"
    command = [sys.executable, "-m", "proselint", "check", "--config", str(config), "-o", "json", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    result = json.loads(done.stdout)["result"]
    assert len(result) > 30, done.stderr
    found = {Path(file).name: each["diagnostics"] for file, each in result.items() if each.get("diagnostics")}
    assert found == {}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("What comes behind the call is text.", ["comes behind", "behind"]),
        ("The server behind a proxy stands alone.", []),
        ("A marker that stands there is told.", ["stands", "is told"]),
        ("`behind` is a name, and it stands for a function.", []),
        ("It is None where there is no thought, and stays where it is.", ["None where", "where there is"]),
    ],
)
def test_the_vocabulary(line: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(line, encoding="utf-8")
    assert sorted(fault.word for fault in prose.page_faults(tmp_path / "page.md")) == sorted(words)


def test_docstrings_begin_with_a_verb(tmp_path: Path) -> None:
    source = 'def f():\n    """The text."""\n\n\ndef g():\n    """Return the text."""  # behind\n'
    (tmp_path / "module.py").write_text(source, encoding="utf-8")
    assert [(fault.line, fault.word) for fault in prose.source_faults(tmp_path / "module.py")] == [
        (2, "The"),
        (6, "behind"),
    ]
