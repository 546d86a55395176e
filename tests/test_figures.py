"""What pages state in figures is what the files of `docs/data/` have."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.figures import FOLDER, LINK, numbers, stated

# A figure that somebody measured: a share, a percentage, or a large number with its comma.
MEASURED = re.compile(r"\b\d[\d,]* of \d[\d,]*\b|\b\d+(?:\.\d+)?%|\b\d{1,3}(?:,\d{3})+\b")
NOT_PROSE = re.compile(r"```.*?```|`[^`\n]*`|<!--.*?-->", re.S)
SOLD = ("README.md", "docs/index.md")  # pages whose every figure has a file


def pages(root: Path) -> list[Path]:
    return [root / "README.md", *sorted((root / "docs").rglob("*.md"))]


def test_every_figure_with_a_file_is_in_that_file(root: Path) -> None:
    found = 0
    for page in pages(root):
        for number, name in stated(page.read_text(encoding="utf-8")):
            found += 1
            values = json.loads((FOLDER / name).read_text(encoding="utf-8"))["figures"]
            assert number in numbers(values), f"{page.name}: {number} is not in docs/data/{name}"
    assert found >= 6


@pytest.mark.parametrize("name", SOLD)
def test_the_front_pages_state_no_figure_without_a_file(name: str, root: Path) -> None:
    text = NOT_PROSE.sub("", LINK.sub("", (root / name).read_text(encoding="utf-8")))
    assert MEASURED.findall(text) == []


def test_a_data_file_says_what_made_it(root: Path) -> None:
    files = sorted(FOLDER.glob("*.json"))
    assert len(files) >= 3
    targets = (root / "Makefile").read_text(encoding="utf-8")
    for file in files:
        values = json.loads(file.read_text(encoding="utf-8"))
        assert set(values) == {"command", "date", "machine", "versions", "figures"}, file.name
        assert f"\n{values['command'].removeprefix('make ')}: " in targets, file.name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", values["date"])
        assert values["machine"]
        assert values["versions"]["toolgram"]


def test_a_figure_that_its_file_does_not_have_is_found() -> None:
    values = {"rows": 1234, "share": 62.5, "of": {"llama.cpp": "8 of 9"}}
    assert numbers(values) == {"1,234", "62.5", "8", "9"}
    text = "Reads [1,234](docs/data/a.json), [8 of 10](../data/b.json) and 7."
    assert list(stated(text)) == [("1,234", "a.json"), ("8", "b.json"), ("10", "b.json")]


def test_the_summary_of_the_benchmarks_is_current(root: Path) -> None:
    from benchmarks.report import RESULTS
    from benchmarks.summary import DATA, summary

    written = DATA.read_text(encoding="utf-8")
    assert len(written.splitlines()) > 20
    assert summary(RESULTS.read_text(encoding="utf-8")) == written, "run python -m benchmarks.summary"
