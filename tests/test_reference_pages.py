"""Every anomaly and every error has a page of its own, and the page says what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import reference_pages
from toolgram.anomalies import KINDS

PRIVATE = {"TooManyWays", "CostlyTemplate"}  # caught inside of the package, or raised as the class above


def test_the_pages_are_current() -> None:
    made = reference_pages.pages()
    there = {place for folder in {each.parent for each in made} for place in folder.glob("*.md")}
    assert there == set(made)
    stale = [place.name for place, text in made.items() if place.read_text(encoding="utf-8") != text]
    assert stale == [], "run make docs"


@pytest.mark.parametrize("kind", sorted(reference_pages.ANOMALIES))
def test_an_example_has_its_anomaly_and_no_other(kind: str) -> None:
    assert [each.kind for each in reference_pages.read(reference_pages.ANOMALIES[kind]).anomalies] == [kind]


def test_every_kind_has_a_page() -> None:
    assert {*reference_pages.ANOMALIES, *reference_pages.DERIVED_ONLY} == set(KINDS)


def test_every_error_has_a_page(root: Path) -> None:
    """In the order of the source, so that a subclass of a subclass counts."""
    bases = {"ToolgramError"}
    sources = [path.read_text(encoding="utf-8") for path in (root / "src" / "toolgram").rglob("*.py")]
    while True:
        found = {
            name
            for text in sources
            for name, parents in re.findall(r"^class (\w+)\(([^)]*)\):", text, re.M)
            if bases & set(re.findall(r"\w+", parents))
        }
        if found <= bases:
            break
        bases |= found
    assert len(bases) >= 9
    assert bases - PRIVATE == {each.error.__name__ for each in reference_pages.ERRORS}
