"""A value that is plain is what its island reads: the same JSON, with nothing odd about it."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgram.islands import plain_value
from toolgram.islands.tagged_values import TaggedValue
from toolgram.tools.parameters import Types

NAMES = ("string", "integer", "number", "boolean", "null", "array", "object")
TYPES: list[Types] = [None, *(frozenset(each) for size in (1, 2, 3) for each in combinations(NAMES, size))]
SPELLED = ("", "0", "-0", "7", "07", "-7", "1.5", "1.", "-0.25", "1e5", "9" * 40, "true", "True", "false", "null",
           "None", "nullable", "text", " 7", "7 ", " text ", "[1]", '"x"', "a\nb", "'x'", "\\n", "\x01", "é\u2028",
           "\ud800")  # fmt: skip


def read(raw: str, types: Types, trimmed: bool) -> tuple[str, Any]:
    value = TaggedValue(types, False, trimmed)
    written = ""
    if raw:
        value.read(raw, 0, False)
        written = value.out
    written += value.finish()
    return written, (value.odd, value.broken, value.repairs)


@pytest.mark.parametrize("trimmed", [False, True])
@given(raw=st.one_of(st.sampled_from(SPELLED), st.text(max_size=8), st.floats().map(str), st.integers().map(str)),
       types=st.sampled_from(TYPES))  # fmt: skip
def test_a_plain_value_is_what_its_island_reads(raw: str, types: Types, trimmed: bool) -> None:
    plain = plain_value("tagged", "trimmed" if trimmed else "", types, raw)
    if plain is not None:
        assert read(raw, types, trimmed) == (plain, (False, False, []))


@pytest.mark.parametrize("raw", SPELLED, ids=ascii)
def test_spellings(raw: str) -> None:
    for types in TYPES:
        plain = plain_value("tagged", "", types, raw)
        assert plain is None or read(raw, types, False) == (plain, (False, False, [])), types


def test_some_values_are_plain() -> None:
    assert plain_value("tagged", "", None, "7") == "7"
    assert plain_value("tagged", "", frozenset({"number"}), "1.5") == "1.5"
    assert plain_value("tagged", "", frozenset({"boolean"}), "true") == "true"
    assert plain_value("tagged", "", frozenset({"string"}), "true") == '"true"'
    assert plain_value("tagged", "json", None, "7") is None
