"""The schema pool in the engines: nothing that an export says otherwise than the schema is left without a note."""

from __future__ import annotations

import random

import pytest

from tests.export.engines import NEEDED
from tests.export.measuring import DEEP, WRITTEN
from tests.export.schema_pool import pool
from tests.properties.selection import every_format, seed

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
