"""The page about exports is about the grammars of this tree."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import toolgram
from tests.export.engines import NEEDED, import_xgrammar
from tests.export.measuring import TOOLS, WRITTEN
from tests.properties.selection import formats_of

pytestmark = NEEDED

ROWS = Path(__file__).parents[2] / "docs" / "data" / "exports.csv"


def fingerprint(name: str, target: str) -> str:
    """A hash of the grammar that a row is about."""
    import_xgrammar()  # it prints the rules of schemas
    return hashlib.sha256(toolgram.get_format(name).export(target, TOOLS).text.encode()).hexdigest()[:12]


def measured() -> dict[tuple[str, str], dict[str, str]]:
    """The rows that are there, by format and target."""
    with ROWS.open(encoding="utf-8", newline="") as file:
        return {(row["format"], row["target"]): row for row in csv.DictReader(file)}


def test_the_table_is_current() -> None:
    known = measured()
    assert [*known] == [(name, target) for name in toolgram.format_names() for target in WRITTEN]
    for name in formats_of("test_the_table_is_current"):
        for target in WRITTEN:
            assert known[name, target]["grammar"] == fingerprint(name, target), (
                f"{name}, {target}: not the grammar that was measured: make export-table"
            )
    for row in known.values():
        for what in ("accepted", "rejected", "valid"):
            part, whole = row[what].split("/")
            assert part == whole, row
