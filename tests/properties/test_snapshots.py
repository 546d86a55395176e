"""`restore` refuses a snapshot that was changed, or of another format; a forged one raises ToolgramError, or nothing.

Strategy: take a real snapshot in the middle of an output, and change it as a bad disk or a careless program would; then
give it the digest that belongs to it, as an attacker would.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.generators.changed_data import changed
from tests.properties.selection import every_format
from tests.strategies import any_text, outputs
from toolgram.runtime.snapshots import sealed

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 40),
    st.sampled_from([2**40, -1, 1.5, [], {}, [[]], "", "x", "{", "[", '"', "\\", "{[{", "a.b", "k", "0", "\ud800"]),
    st.text(max_size=6),
    st.lists(st.one_of(st.none(), st.booleans(), st.integers(-1, 30), st.text(max_size=3)), max_size=8),
)


def snapshots_of(fmt: toolgram.Format, text: str) -> list[dict[str, Any]]:
    """A snapshot after each character."""
    parser = fmt.parser(prefix="")
    taken = []
    for character in text:
        parser.feed(character)
        taken.append(json.loads(json.dumps(parser.snapshot())))
    return taken


@every_format
@given(data=st.data())
def test_a_changed_snapshot_is_refused(name: str, data: st.DataObject) -> None:
    fmt = toolgram.get_format(name)
    taken = snapshots_of(fmt, data.draw(st.one_of(outputs(name), st.just(fmt.example)))[:400]) or snapshots_of(fmt, "x")
    like = taken[:: max(1, len(taken) // 8)]
    before = data.draw(st.sampled_from(taken))
    state = data.draw(changed(before, like, VALUES))
    if json.dumps(state, sort_keys=True) != json.dumps(before, sort_keys=True) and state not in taken:
        with pytest.raises(toolgram.ToolgramError):
            fmt.restore(state)
    try:
        parser = fmt.restore(sealed(fmt.spec, state))
        for piece in data.draw(st.lists(st.one_of(any_text(), outputs(name)), max_size=3)):
            parser.feed(piece)
        parser.snapshot()
        parser.close(data.draw(st.sampled_from([None, "stop", "length"])))
        assert parser.message is not None
    except toolgram.ToolgramError:
        return


@every_format
def test_a_snapshot_of_another_format_is_refused(name: str) -> None:
    other = "gpt_oss" if name == "hermes" else "hermes"
    with pytest.raises(toolgram.ToolgramError):
        toolgram.get_format(other).restore(toolgram.get_format(name).parser(prefix="").snapshot())


@every_format
def test_a_snapshot_may_be_nested_as_deep_as_it_likes(name: str) -> None:
    fmt = toolgram.get_format(name)
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    for key, value in fmt.parser(prefix="").snapshot().items():
        with pytest.raises(toolgram.ToolgramError):
            fmt.restore({**fmt.parser(prefix="").snapshot(), key: deep if value != deep else 0})


@every_format
@pytest.mark.parametrize("state", [None, 1, "x", [], {}, {"version": 1}, {"version": "4"}, {"version": 4}])
def test_what_is_no_snapshot_is_refused(name: str, state: Any) -> None:
    with pytest.raises(toolgram.ToolgramError):
        toolgram.get_format(name).restore(state)
