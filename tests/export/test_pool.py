"""The schema pool in the engines: nothing that an export says otherwise than the schema is left without a note."""

from __future__ import annotations

import pytest

from tests.export.measuring import DEEP, WRITTEN
from tests.export.schema_pool import pool

for engine in ("llguidance", "tvm_ffi", "numpy", "jsonschema_rs"):
    pytest.importorskip(engine, reason="the engines are not here: make test installs them")

NAMES = list(pool())


@pytest.mark.parametrize("target", WRITTEN)
@pytest.mark.parametrize("part", range(4))
def test_nothing_is_silent(target: str, part: int) -> None:
    from tests.export.pool_figures import figures

    for name in NAMES[part::4] if DEEP else NAMES[part::48]:
        found = figures(name, target)
        assert found["compiled"]
        assert not found["silent"], (name, dict(found))
