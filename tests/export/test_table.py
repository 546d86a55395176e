"""The page about exports is about the grammars of this tree."""

from __future__ import annotations

import re

import pytest

import toolgram
from toolgram.export import TARGETS

for engine in ("llguidance", "tvm_ffi", "numpy", "jsonschema"):
    pytest.importorskip(engine, reason="the engines are not here: make test installs them")


def test_the_table_is_current() -> None:
    from tests.export.table import PAGE, fingerprint

    page = PAGE.read_text(encoding="utf-8")
    said = re.search(r"<!-- measured: (\w+) -->", page)
    assert said is not None
    assert said[1] == fingerprint(), "the grammars are not those that were measured: make export-table"
    rows = re.findall(r"^\| (\w+) \| (\w+) \| (\d+)/(\d+) \| (\d+)/(\d+) \| (\d+)/(\d+) \|", page, re.MULTILINE)
    assert [(row[0], row[1]) for row in rows] == [
        (name, target) for name in toolgram.format_names() for target in TARGETS
    ]
    for row in rows:
        assert row[2] == row[3], row
        assert row[4] == row[5], row
        assert row[6] == row[7], row
