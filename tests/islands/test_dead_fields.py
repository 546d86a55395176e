"""What a reader no longer needs is not in its dump: after values of one kind, the dumps are equal."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgram.islands import dump_island, load_island
from toolgram.islands.json_item import JsonValue
from toolgram.islands.json_strings import JsonStringScanner
from toolgram.islands.json_values import JsonScanner
from toolgram.islands.literal_repairs import LiteralScanner
from toolgram.islands.notated_values import NotatedScanner
from toolgram.islands.python_literals import PythonScanner
from toolgram.islands.python_repairs import RepairingPythonScanner
from toolgram.islands.tagged_values import TaggedValue
from toolgram.islands.xml_values import XmlValue

TEXTS = st.text("ab1 é'", max_size=6)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(0, 1e9), TEXTS)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.dictionaries(TEXTS, SCALARS, min_size=1, max_size=3))
OBJECT = frozenset({"object"})


def repairing_json() -> JsonScanner:
    return JsonScanner(repairs=True)


def literal() -> LiteralScanner:
    scanner = LiteralScanner()
    scanner.read("_=", 0)
    return scanner


def as_json(value: Any) -> str:
    return f'{{"k": {json.dumps(value)}, "l"'


def as_call(value: Any) -> str:
    return f"k={value!r}, l=["


def as_dict(value: Any) -> str:
    return f"{{'k': {value!r}, 'l'"


def as_damaged(value: Any) -> str:
    return f'{{j: 1, "k": {json.dumps(value)}, "l":'


KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], str]]] = {
    "json": (JsonScanner, as_json),
    "json, repairs to come": (repairing_json, as_json),
    "json value": (JsonValue, as_json),
    "json string": (lambda: JsonStringScanner(True), lambda value: json.dumps(as_json(value))[1:-1]),
    "python": (lambda: PythonScanner(True), as_call),
    "python dict": (lambda: PythonScanner(False), as_dict),
    "python, repairs": (RepairingPythonScanner, as_call),
    "python literal": (literal, as_dict),
    "tagged json": (lambda: TaggedValue(OBJECT), as_json),
    "tagged python": (lambda: TaggedValue(OBJECT), as_dict),
    "tagged, repaired": (lambda: TaggedValue(OBJECT), as_damaged),
    "xml": (lambda: XmlValue(OBJECT), as_json),
    "notated": (lambda: NotatedScanner(("<|", "|>"), OBJECT), as_json),
}


def read(reader: Any, text: str, cut: int) -> None:
    """Read a text in two pieces."""
    pos = 0
    for end in (cut, len(text)):
        begin = -1
        while begin < pos < end:
            begin = pos
            pos = reader.read(text[:end], pos, False)
    assert (reader.broken, reader.done) == (False, False)


@pytest.mark.parametrize("kind", KINDS)
@given(one=VALUES, other=VALUES, cuts=st.tuples(st.integers(0, 20), st.integers(0, 20)))
def test_dumps_are_equal_after_values_of_one_kind(kind: str, one: Any, other: Any, cuts: tuple[int, int]) -> None:
    make, write = KINDS[kind]
    dumps = []
    for value, cut in zip((one, other), cuts, strict=True):
        reader = make()
        read(reader, write(value), cut)
        dumps.append(dump_island(reader))
        again = load_island(dumps[-1])
        assert dump_island(again) == dumps[-1]
    assert dumps[0] == dumps[1]


def test_types_are_dead_once_text_has_begun() -> None:
    dumps = []
    for types in (None, frozenset({"string", "null"}), frozenset({"string"})):
        value = TaggedValue(types)
        value.read("some text", 0, False)
        dumps.append(value.dump())
    assert dumps[0] == dumps[1] == dumps[2]


@pytest.mark.parametrize(
    ("kind", "old"),
    [
        ("python", [True, False, False, "after", "k", "", "after", "'", "'", "", 12]),
        ("python", [True, False, False, "item", "k{", ", ", "colon", '"', "Tru", "", 0]),
        (
            "tagged",
            [
                ["object"],
                True,
                False,
                "",
                "",
                "streamed",
                "  ",
                "",
                [True, True, False, "item", "k{", "{", "after", "", "", "", 0],
                False,
                False,
                None,
                False,
            ],
        ),
    ],
)
def test_dumps_with_dead_fields_are_read(kind: str, old: list[Any]) -> None:
    assert load_island([kind, old]) is not None
