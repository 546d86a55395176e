"""The page about exports is about the grammars of this tree."""

from __future__ import annotations

import pytest

import toolgram
from tests.properties.selection import formats_of

for engine in ("llguidance", "tvm_ffi", "numpy", "jsonschema"):
    pytest.importorskip(engine, reason="the engines are not here: make test installs them")


def test_the_table_is_current() -> None:
    from tests.export.measuring import WRITTEN
    from tests.export.table import fingerprint, measured

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
