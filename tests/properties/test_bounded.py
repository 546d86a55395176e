"""Clause 7, linear and bounded: what work costs, what a snapshot holds, and how deep values may be nested.

Strategy: the texts are made from each format's two files: a call with room for a value, the critical alphabet, and the
beginnings that lead into each state. Nothing here takes the time: what has to be linear is counted in function calls.
"""

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.generators.alphabet import contexts, critical_alphabet
from tests.generators.calls_in_halves import around_string, around_value
from tests.generators.changed_data import changed
from tests.properties.selection import every_format, is_tagged, some
from tests.strategies import any_text, chunkings, declarations, drawn, outputs
from tests.streams import calls_of, check_events, cut, in_order, merged, run, without_ids
from tests.work import calls_made
from toolgram.events import Event
from toolgram.runtime.snapshots import sealed

LONGEST_UNIT = 24  # characters of a beginning that is repeated
UNITS = 12
BOMB_HEADS = 8
MOST_CALLS = 80  # for a character, also if nested values are given up at the greatest depth


def hostile_units(name: str) -> list[str]:
    """What a hostile text of a format repeats: its critical alphabet, and beginnings of calls."""
    beginnings = [text for text in contexts(name) if len(text) <= LONGEST_UNIT]
    every = max(1, len(beginnings) // UNITS)
    return [*critical_alphabet(name), "\n ", '{"', '{"a": ', "a, b=", '"x"}<', 'a"b"}', *beginnings[::every]]


@every_format
@given(data=st.data())
def test_a_snapshot_at_any_character_continues_to_the_same_events(name: str, data: st.DataObject) -> None:
    """Also many futures of one moment: neither they nor its parser move the state that was taken."""
    fmt = toolgram.get_format(name)
    text = drawn(data, name)
    at, tools = data.draw(st.integers(0, len(text))), data.draw(declarations(name))
    reason = data.draw(st.sampled_from([None, "stop", "length"]))
    parser = fmt.parser(tools, prefix="", strict=data.draw(st.booleans()))
    for piece in data.draw(chunkings(text[:at])):
        parser.feed(piece)
    state = parser.snapshot()
    before = json.dumps(state, sort_keys=True)
    rest = data.draw(chunkings(text[at:]))
    first = without_ids(_rest_of(fmt.restore(state, tools), rest, reason))
    assert json.dumps(state, sort_keys=True) == json.dumps(parser.snapshot(), sort_keys=True) == before
    assert without_ids(_rest_of(fmt.restore(json.loads(before), tools), rest, reason)) == first
    # a withheld call is read again as one delta, so adjacent deltas of it may be one
    assert merged(without_ids(_rest_of(parser, rest, reason))) == merged(first)
    assert json.dumps(state, sort_keys=True) == before


def _rest_of(parser: toolgram.Parser, chunks: Iterable[str], reason: str | None) -> list[Event]:
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.close(reason)


def _size_after(name: str, text: str) -> int:
    parser = toolgram.get_format(name).parser(prefix="")
    for piece in cut(text, 4):
        parser.feed(piece)
    return len(json.dumps(parser.snapshot()))


@every_format
def test_a_snapshot_does_not_grow(name: str) -> None:
    """With content, with arguments, and with calls."""
    before, _ = around_string(name)
    texts = [("Well. ", unit) for unit in some(["word ", "x", "a; b, ", "\\n", "{} "], f"content {name}")]
    texts += [(before, unit) for unit in some(["word ", "x", "{[", "\\n", "[TOOL_CALLS", "<|py"], f"arguments {name}")]
    for begin, unit in texts:
        short, long = (_size_after(name, begin + unit * (n // len(unit)) + "x") for n in (200, 20_000))
        assert long <= short + 16, (begin, unit)
    text = toolgram.get_format(name).example
    short, long = (_size_after(name, (text + "\n") * n + "x") for n in (2, 200))
    assert long <= short + 16


@every_format
def test_work_is_linear_in_the_length(name: str) -> None:
    """No character costs more than so many calls, or the cost of each is the same at both lengths."""
    for unit in some(hostile_units(name), name):
        for opening in ("", around_string(name)[0]):
            short, long = (calls_made(name, opening + unit * (n // len(unit))) for n in (1_000, 4_000))
            row = f"{opening + unit!r}: {short} calls for 1000 characters, {long} for 4000"
            assert long <= max(4 * short * 1.25 + 500, MOST_CALLS * 4_000), row


@every_format
def test_twenty_thousand_hostile_characters_one_by_one(name: str) -> None:
    for unit in some(hostile_units(name), name):
        text = unit * (20_000 // len(unit))
        events, _ = run(toolgram.get_format(name), cut(text, 1))
        check_events(events, text)


def bomb_heads(name: str) -> list[str]:
    """Places where nesting may begin: the start, an argument's value, and some of the beginnings of calls."""
    fmt = toolgram.get_format(name)
    ended = {text: fmt.parse(text, prefix="", finish_reason="stop").tool_calls for text in contexts(name)}
    heads = [text for text in ended if len(text) <= LONGEST_UNIT and "complete" not in [c.status for c in ended[text]]]
    return ["", around_value(name)[0], *heads[:: max(1, len(heads) // BOMB_HEADS)]]


@every_format
@pytest.mark.parametrize("opener", ["[", "{", "(", '{"a":', "[[", "[(", '[{"a":', "\\"])
@pytest.mark.parametrize("size", [0, 1_000])
def test_depth_bombs(name: str, opener: str, size: int) -> None:
    """Nesting beyond the cap is a clean failure: no exception, and no call that looks complete.

    The output is said to be cut off: else a value between tags ends with it.
    """
    fmt = toolgram.get_format(name)
    bomb = opener * (20_000 // len(opener))
    for head in some(bomb_heads(name), f"{name} {opener} {size}"):
        events, message = run(fmt, cut(head + bomb, size), finish_reason="length")
        check_events(events, head + bomb)
        assert "complete" not in [call.status for call in message.tool_calls], head
        if size:
            assert merged(events) == merged(run(fmt, [head + bomb], finish_reason="length")[0]), head


@every_format
@pytest.mark.parametrize("depth", [300, 20_000])
@pytest.mark.parametrize("size", [0, 1_000])
def test_nesting_beyond_the_cap_is_no_complete_call(name: str, depth: int, size: int) -> None:
    """Closed or not: what json.loads could not read back without a deep stack is no value of a complete call.

    Between tags, where any text is a value, it is a string.
    """
    before, after = around_value(name)
    text = before + "[" * depth + "]" * depth + after
    events, message = run(toolgram.get_format(name), cut(text, size))
    check_events(events, text)
    (call,) = in_order(message)
    if is_tagged(name) and isinstance(call, toolgram.ToolCall) and call.status == "complete":
        assert all(isinstance(value, str) for value in json.loads(call.arguments).values())
    else:
        assert isinstance(call, toolgram.MalformedCall)
    assert _size_after(name, text[: -depth // 2]) < 8_000


@every_format
@pytest.mark.parametrize("depth", [100, 200])
def test_nesting_below_the_cap_is_a_call(name: str, depth: int) -> None:
    before, after = around_value(name)
    message = toolgram.get_format(name).parse(before + "[" * depth + "]" * depth + after, prefix="")
    assert calls_of(message)[0][2] == "complete"


# --- a snapshot that was changed, or of another format, is refused --------------------------------------------------
# A forged one raises ToolgramError, or nothing. Strategy: take a real snapshot in the middle of an output, and change
# it as a bad disk or a careless program would; then give it the digest that belongs to it, as an attacker would.

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
def test_what_is_no_snapshot_of_a_format_is_refused(name: str) -> None:
    """However deep it is nested."""
    fmt = toolgram.get_format(name)
    good = fmt.parser(prefix="").snapshot()
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    wrong: list[Any] = [{**good, key: deep if value != deep else 0} for key, value in good.items()]
    wrong += [None, 1, "x", [], {}, {"version": 1}, {"version": "4"}, {"version": 4}]
    wrong.append(toolgram.get_format("gpt_oss" if name == "hermes" else "hermes").parser(prefix="").snapshot())
    for state in wrong:
        with pytest.raises(toolgram.ToolgramError):
            fmt.restore(state)
