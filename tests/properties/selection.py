"""Which formats a property is tried on.

Each property is tried on every shipped format in `make test-deep`, and wherever there are no more than PER_RUN formats.
With more, a run takes PER_RUN of them per property, a window that starts at another place for each property and moves
on by PER_RUN with each seed: over consecutive seeds every property meets every format. The seed is committed, so that a
commit has the same tests on every machine and every day. TOOLGRAM_FORMATS says otherwise: a number is a seed, `all`
takes all formats, and names with commas between them are the formats to take. Pytest prints the seed of a run.

A property is any test here that takes a format by `every_format`; `test_selection` holds that none chooses its own.
Tests elsewhere that cost more than a moment per format take their formats from here as well: a `quarter` of them.
Properties that cost most try a part on each format: `some` of its texts, or `fewer` examples.
"""

import math
import os
import random
import zlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest
from hypothesis import settings

import toolgram

VARIABLE = "TOOLGRAM_FORMATS"
SEED = 373_401  # move it on by one with a change of the parser or of formats, and mend what that finds
PER_RUN = 4
ALL = "all"
Test = TypeVar("Test", bound=Callable[..., object])
Item = TypeVar("Item")


def seed() -> str:
    """The seed of this run, or "all"; once asked for, the same in this process and its workers."""
    deep = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
    return os.environ.setdefault(VARIABLE, ALL if deep else str(SEED))


def window(names: list[str], property_name: str, seed: str) -> list[str]:
    """The formats of one property under one seed, in the order of `names`."""
    if not seed.isdecimal() and seed != ALL:
        return [name for name in names if name in seed.split(",")]
    if seed == ALL or len(names) <= PER_RUN:
        return names
    windows = math.ceil(len(names) / PER_RUN)
    start = (int(seed) + zlib.crc32(property_name.encode())) % windows * PER_RUN
    chosen = {names[at % len(names)] for at in range(start, start + PER_RUN)}
    return [name for name in names if name in chosen]


def every_format(test: Test) -> Test:
    """A property of every shipped format: `name` is the name of one."""
    marked: Test = pytest.mark.parametrize("name", formats_of(test.__name__))(test)
    return marked


def quarter(names: Sequence[Item], test_name: str) -> list[Item]:
    """Return a quarter of what a test takes, by the seed.

    Over four consecutive seeds that is all of them; with "all", or with names of formats, it is all at once.
    """
    start = seed()
    return [*names][(int(start) + zlib.crc32(test_name.encode())) % 4 :: 4] if start.isdecimal() else [*names]


def some(items: Sequence[Item], name: str) -> list[Item]:
    """Return a quarter of what a costly property tries on a format, drawn with the seed; with "all", all."""
    start = seed()
    return random.Random(f"{start} {name}").sample(items, math.ceil(len(items) / 4)) if start.isdecimal() else [*items]


def fewer() -> settings:
    """Return the settings of a property whose examples cost most: a quarter of them."""
    return settings(max_examples=settings().max_examples // 4)


def formats_of(test_name: str) -> list[str]:
    """The formats that this run takes for a test, or for a group of tests, of this name."""
    return window(toolgram.format_names(), test_name, seed())


def is_tagged(name: str) -> bool:
    """Whether arguments are between tags, so that their JSON is put together by the parser."""
    return any(state.meaning == "value" for state in toolgram.get_format(name).spec.states.values())
