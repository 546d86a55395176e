"""The page about exports is about the grammars of this tree."""

from __future__ import annotations

import pytest

import toolgram
from tests.properties.selection import formats_of

for engine in ("llguidance", "tvm_ffi", "numpy", "jsonschema"):
    pytest.importorskip(engine, reason="the engines are not here: make test installs them")


def test_the_table_is_current() -> None:
    from tests.export.measuring import WRITTEN
    from tests.export.table import PAGE, fingerprint, measured

    known = measured(PAGE.read_text(encoding="utf-8"))
    assert [*known] == toolgram.format_names()
    for name in formats_of("test_the_table_is_current"):
        assert known[name][0] == fingerprint(name), f"{name}: not the grammar that was measured: make export-table"
    for name, (_, rows) in known.items():
        cells = [[cell.strip() for cell in row.split("|")[1:6]] for row in rows]
        assert [row[:2] for row in cells] == [[name, target] for target in WRITTEN]
        for row in cells:
            assert all(part == whole for part, whole in (cell.split("/") for cell in row[2:])), row
