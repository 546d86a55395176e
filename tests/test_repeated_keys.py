"""Keys that come twice, in arguments that are kept and in those that are not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.streams import cut
from tests.tables import table
from toolgram.tools.repeated_keys import KeyWatch, repeated_keys

KEYS = st.sampled_from(["a", "b", "c", 'q"', "back\\slash", "é", "{", ""])
VALUES = st.recursive(
    st.one_of(st.integers(), st.sampled_from(["", "a", '"a": 1, ', "\\", "}", "x\ny"])),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


@given(members=st.lists(st.tuples(KEYS, VALUES), max_size=6), size=st.integers(1, 9), tight=st.booleans())
def test_fragments_say_what_the_whole_says(members: list[tuple[str, Any]], size: int, tight: bool) -> None:
    between = ("," if tight else " ,\n ", ":" if tight else " : ")
    text = "{" + between[0].join(json.dumps(key) + between[1] + json.dumps(value) for key, value in members) + "}"
    watch = KeyWatch()
    for fragment in cut(text, size):
        watch.append(fragment)
    assert [*watch.repeated] == repeated_keys(text)


def test_an_escape_is_the_character() -> None:
    watch = KeyWatch()
    for fragment in ('{"a": 1, "\\', "u00", '61": 2}'):
        watch.append(fragment)
    assert [*watch.repeated] == ["a"]


OUTPUTS = table(__file__, "outputs")


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("name", OUTPUTS)
def test_it_is_an_anomaly_with_and_without_a_message(name: str, size: int, keep: bool) -> None:
    parser = toolgram.get_format(name.partition(",")[0]).parser(keep_message=keep)
    found = []
    for delta in cut(OUTPUTS[name], size):
        parser.feed(delta)
        found += parser.take_anomalies()
    parser.close()
    found += parser.take_anomalies()
    found = [each for each in found if each.kind != "repaired_json"]
    assert [(each.kind, each.text, each.call) for each in found] == [("repeated_argument", "a", 0)]
