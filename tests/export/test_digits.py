"""Bounds of numbers and patterns, as expressions: they mean what the bound or the pattern says."""

from __future__ import annotations

import random
import re
from decimal import Decimal
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.export import oracle
from toolgram.export.digits import integers, numbers
from toolgram.export.ecmascript import FORMATS, pattern_text

BOUNDS = st.one_of(st.none(), st.integers(-200, 200), st.integers(-(2**70), 2**70))


@given(low=BOUNDS, high=BOUNDS, seed=st.integers())
def test_whole_numbers_between_bounds(low: int | None, high: int | None, seed: int) -> None:
    matches = partial(oracle.accepts, integers(low, high))
    rng = random.Random(seed)
    near = [each + step for each in (low, high, 0) if each is not None for step in (-11, -1, 0, 1, 9, 100)]
    for value in [*near, rng.randint(-300, 300), rng.randint(-(2**71), 2**71)]:
        fits = (low is None or value >= low) and (high is None or value <= high)
        assert matches(str(value)) is fits, value
    assert not matches("-0")
    assert not matches("007")


DECIMALS = st.one_of(
    st.none(), st.integers(-20, 20), st.decimals(-20, 20, places=2).map(float), st.sampled_from([0.05, 0.95, 1e-7, 3e9])
)


@given(low=DECIMALS, high=DECIMALS, above=st.booleans(), below=st.booleans(), seed=st.integers())
def test_numbers_between_bounds(low: float | None, high: float | None, above: bool, below: bool, seed: int) -> None:
    if low is not None and high is not None and low > high:
        return
    matches = partial(oracle.accepts, numbers(low, above, high, below))
    rng = random.Random(seed)
    texts = [str(Decimal(str(each)) + Decimal(step)) for each in (low, high, 0) if each is not None
             for step in ("-1", "-0.001", "0", "0.01", "0.5", "1", "10.25")]  # fmt: skip
    texts += [f"{rng.uniform(-25, 25):.{rng.randint(0, 4)}f}" for _ in range(20)]
    for text in texts:
        value = Decimal(text)
        if "E" in text or (text.startswith("-") and value == 0):
            continue
        fits = True
        if low is not None:
            fits = value > Decimal(str(low)) or (value == Decimal(str(low)) and not above)
        if high is not None:
            fits = fits and (value < Decimal(str(high)) or (value == Decimal(str(high)) and not below))
        assert matches(text) is fits, text


@pytest.mark.parametrize(
    "pattern",
    ["b", "^b", "b$", "^a|b$", r"^a\$", r"[\]|]x", "^(a|b)c?$", "^(?:ab){2,3}$", r"^\d+\w*$", "^[^a-c]+$", "^.*x.?$",
     "(^a|b)", "^a*?b+?$", "", "^$", r"^\s[\W\d]$", *FORMATS.values()],
)  # fmt: skip
def test_a_pattern_for_the_whole_text(pattern: str) -> None:
    expr = pattern_text(pattern)
    assert expr is not None
    texts = ["", "a", "b", "ab", "abc", "xb", "ba", "a$", "]x", "|x", "abab", "ababab", "1a", "x1", " 1", "ac", "axb",
             "2024-02-29", "10:00:00Z", "2024-02-29T10:00:00.5+01:00", "P1DT2H", "P", "a@b.c", "me@x", "10.0.0.256",
             "::1", "https://x.y/z?q=1", "mailto:", "123e4567-e89b-12d3-a456-426614174000"]  # fmt: skip
    for text in texts:
        assert oracle.accepts(expr, text) is bool(re.search(pattern, text, re.ASCII)), text
