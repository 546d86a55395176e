"""The schema pool in the engines: nothing that an export says otherwise than the schema is left without a note."""

import csv
import hashlib
import random
from pathlib import Path

import pytest

import toolgram
from tests.export.engines import NEEDED, import_xgrammar
from tests.export.measuring import DEEP, TOOLS, WRITTEN
from tests.export.schema_pool import pool
from tests.properties.selection import every_format, formats_of, seed

pytestmark = NEEDED

NAMES = list(pool())


@pytest.mark.parametrize("target", WRITTEN)
def test_nothing_is_silent(target: str) -> None:
    from tests.export.pool_figures import figures

    for name in NAMES if DEEP else random.Random(f"{seed()} {target}").sample(NAMES, 16):
        found = figures(name, target)
        assert found["compiled"]
        assert not found["silent"], (name, dict(found))


@pytest.mark.parametrize("target", WRITTEN)
@every_format
def test_a_part_of_the_pool_in_every_format(name: str, target: str) -> None:
    from tests.export.pool_figures import figures_of_format

    found = figures_of_format(name, target)
    assert found["compiled"] == found["exported"]
    assert not found["silent"], dict(found)


# --- the page about exports is about the grammars of this tree ------------------------------------------------------

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
