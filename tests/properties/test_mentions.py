"""Calls that a model only mentions: in inline code, in a fence, in a thought, after the end of the turn.

Strategy: texts are rows of what decides a mention: prose, backticks, fences, markers of thoughts, whole calls, cut
calls, tokens that end the turn, and openers of other roles. While a call is withheld, the stream is copied and its text
read again, so snapshots, pickles, strict parsers and the work are each tried there.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import toolgram
from tests.generators.alphabet import contexts
from tests.generators.calls_in_halves import simple_call
from tests.properties.selection import every_format, fewer, some
from tests.strategies import chunkings
from tests.streams import calls_of, check_events, check_message, cut, merged, run, sources, without_ids
from tests.work import at_most, calls_made
from toolgram.call_ids import random_call_ids
from toolgram.events import Event

LONGEST = 12  # pieces of a text
REASONS = (None, "stop", "tool_calls", "length", "")
CODE = ("`", "``", "```", "```json\n", "````\n", "\n```\n", "~", "~~~\n", "\n", "\n\n", " ", "\t")
PROSE = ("Well. ", "x", "I call {", "}", '{"a": 1}', "[", "]", '"', "\\n", "<", "<|")


def declared(name: str) -> list[dict[str, object]]:
    """The function of a format's simple call, as a tool."""
    (call,) = toolgram.get_format(name).parse(simple_call(name)[0], prefix="", finish_reason="stop").tool_calls
    schema = {"type": "object", "properties": {key: {} for key in json.loads(call.arguments)}}
    return [{"type": "function", "function": {"name": call.name, "parameters": schema}}]


# A function that no format's simple call calls, and whose arguments are other ones.
OTHER_TOOLS = [{"type": "function", "function": {"name": "zz", "parameters": {"type": "object", "properties": {}}}}]


@cache
def thought_markers(name: str) -> tuple[str, str]:
    """What opens a thought and what closes it. Both are "" if the format has none."""
    fmt = toolgram.get_format(name)
    for opener in sorted(contexts(name), key=len):
        for closer in fmt.program.literals.values():
            parser = fmt.parser(prefix="")
            events = parser.feed(f"{opener}a{closer}b c") + parser.close()
            told = [(event.type, event.source) for event in merged(events)]
            if ("reasoning", "a") in told and ("content", "b c") in told:
                return opener, closer
    return "", ""


def pieces(name: str) -> list[str]:
    """What texts about calls are made of."""
    program = toolgram.get_format(name).program
    stops = [program.literals[trigger] for trigger in program.stop]
    roles = [*program.spec.other_roles, "<|im_start|>user\n", "<|im_start|>assistant\n"]
    opener, closer = thought_markers(name)
    return [*PROSE, *CODE, *CODE, "<think>", "</think>", *[opener, closer] * 3, *stops, *roles]


@st.composite
def mentions(draw: st.DrawFn, name: str) -> str:
    """A text in which calls stand, whole and cut, in and after code and thoughts."""
    call, example = simple_call(name)[0], toolgram.get_format(name).example
    literals = [*toolgram.get_format(name).program.literals.values()]
    piece = st.one_of(
        st.sampled_from(pieces(name)),
        st.sampled_from([call, call, f"{call}\n", f"\n{call}", example]),
        st.integers(1, len(call)).map(lambda at: call[:at]),
        st.integers(1, len(call)).map(lambda at: call[at:]),
        st.sampled_from(literals),
    )
    text = "".join(draw(st.lists(piece, max_size=LONGEST)))
    note(f"text: {text!r}")
    return text


def _read(
    fmt: toolgram.Format, chunks: Iterable[str], tools: Any, strict: bool, reason: str | None
) -> tuple[list[Event], toolgram.Message]:
    parser = fmt.parser(tools, "", random_call_ids(seed=7), strict=strict)
    events = [event for chunk in chunks for event in parser.feed(chunk)] + parser.close(reason)
    return events, parser.message


# ------------------------------------------------------------------------------------ conservation and delta invariance


@every_format
@given(data=st.data())
def test_mentions_do_not_depend_on_deltas(name: str, data: st.DataObject) -> None:
    fmt, text = toolgram.get_format(name), data.draw(mentions(name))
    tools, reason = data.draw(st.sampled_from([None, declared(name), OTHER_TOOLS])), data.draw(st.sampled_from(REASONS))
    strict = data.draw(st.booleans())
    events, message = _read(fmt, [text], tools, strict, reason)
    check_events(events, text)
    check_message(message, events)
    for chunks in (cut(text, 1), cut(text, 3), data.draw(chunkings(text))):
        streamed, told = _read(fmt, chunks, tools, strict, reason)
        assert merged(streamed) == merged(events)
        assert told == message


@every_format
@given(data=st.data())
def test_mentions_after_a_prompt_do_not_depend_on_deltas(name: str, data: st.DataObject) -> None:
    fmt, prefix, text = toolgram.get_format(name), data.draw(mentions(name)), data.draw(mentions(name))
    reason = data.draw(st.sampled_from(REASONS))
    events, message = run(fmt, [text], prefix=prefix, finish_reason=reason)
    assert sources(events) == text
    streamed, told = run(fmt, cut(text, 1), prefix=prefix, finish_reason=reason)
    assert merged(streamed) == merged(events)
    assert told == message


# --------------------------------------------------------------------------------------------------- snapshots, pickles


@every_format
@given(data=st.data())
def test_a_snapshot_at_any_character_goes_on(name: str, data: st.DataObject) -> None:
    """A call that is withheld is read again by the restored stream."""
    fmt, text = toolgram.get_format(name), data.draw(mentions(name))
    reason, tools = data.draw(st.sampled_from(REASONS)), data.draw(st.sampled_from([None, declared(name)]))
    whole = without_ids(merged(run(fmt, [text], tools=tools, finish_reason=reason)[0]))
    parser, events = fmt.parser(prefix="", tools=tools), []
    for chunk in data.draw(chunkings(text)):
        events += parser.feed(chunk)
        state = json.loads(json.dumps(parser.snapshot()))
        assert json.loads(json.dumps(parser.snapshot())) == state
        parser = fmt.restore(state, tools=tools)
    events += parser.close(reason)
    assert without_ids(merged(events)) == whole


@every_format
@fewer()
@given(data=st.data())
def test_a_pickled_parser_goes_on_exactly(name: str, data: st.DataObject) -> None:
    """With its message and its anomalies. A call that is withheld is read again, and may have another id."""
    fmt, text = toolgram.get_format(name), data.draw(mentions(name))
    reason, strict = data.draw(st.sampled_from(REASONS)), data.draw(st.booleans())
    events, message = _read(fmt, [text], None, strict, reason)
    parser, told = fmt.parser(prefix="", call_ids=random_call_ids(seed=7), strict=strict), []
    for chunk in data.draw(chunkings(text)):
        told += parser.feed(chunk)
        parser = pickle.loads(pickle.dumps(parser))
    told += parser.close(reason)
    assert without_ids(merged(told)) == without_ids(merged(events))
    shown = parser.message
    assert calls_of(shown) == calls_of(message)
    assert (shown.content, shown.reasoning, shown.anomalies) == (message.content, message.reasoning, message.anomalies)


@every_format
@fewer()
@given(data=st.data())
def test_special_tokens_by_id_while_a_call_is_withheld(name: str, data: st.DataObject) -> None:
    """Some of the special tokens are emitted and some only spelled: also where their text is read twice."""
    fmt, text = toolgram.get_format(name), data.draw(mentions(name))
    special = {marker: 1_000 + at for at, marker in enumerate(sorted({*fmt.program.special.values()}))}
    tokens = tokens_of(text, special, data)
    reason = data.draw(st.sampled_from(REASONS))
    parser = fmt.parser(prefix="", special_tokens=special, call_ids=random_call_ids(seed=7))
    whole = merged(parser.feed(tokens) + parser.close(reason))
    assert sources(whole) == text
    is_pickled = data.draw(st.booleans())
    parser, events = fmt.parser(prefix="", special_tokens=special, call_ids=random_call_ids(seed=7)), []
    for token in tokens:
        events += parser.feed([token])
        if is_pickled:
            parser = pickle.loads(pickle.dumps(parser))
    assert without_ids(merged(events + parser.close(reason))) == without_ids(whole)


def tokens_of(text: str, special: dict[str, int], data: st.DataObject) -> list[tuple[str, int]]:
    """The text as pieces with ids: a marker is a special token, or each of its characters is one of its own."""
    tokens: list[tuple[str, int]] = []
    at = 0
    while at < len(text):
        marker = max((each for each in special if text.startswith(each, at)), key=len, default="")
        size = len(marker) if marker and data.draw(st.booleans()) else 1
        tokens.append((text[at : at + size], special[marker] if size == len(marker) and size > 1 else 1))
        at += size
    return tokens


# ---------------------------------------------------------------------------------------------------------- what counts


@every_format
@pytest.mark.parametrize("place", ["fence", "thought"])
@pytest.mark.parametrize("size", [0, 1])
def test_a_call_that_text_follows_in_a_fence_or_a_thought_is_none(name: str, size: int, place: str) -> None:
    """A real one may come after it, in formats whose calls stand after text."""
    fmt, call = toolgram.get_format(name), simple_call(name)[0]
    opener, closer = thought_markers(name)
    if place == "thought" and (not opener or closer in call or not calls_in_thoughts(name)):
        return
    before, behind = {
        "fence": ("See:\n```\n", "\n```\nis how it is done. "),
        "thought": (f"{opener}I could write ", f" or wait. {closer}"),
    }[place]
    follows = bool(fmt.parse(f"Hi.\n{call}", prefix="", finish_reason="stop").tool_calls)
    for inner in (call, f"{call}\n{call}"):
        text = f"{before}{inner}{behind}"
        for reason in REASONS:
            events, message = run(fmt, cut(text, size), finish_reason=reason)
            check_events(events, text)
            assert message.tool_calls == []
        after = "\n" if place == "fence" else ""
        _, message = run(fmt, cut(f"{text}{after}{call}", size), finish_reason="stop")
        assert not follows or [status for _, _, status in calls_of(message)] == ["complete"]


@every_format
@pytest.mark.parametrize("size", [0, 1])
def test_a_call_of_an_undeclared_function_is_read_at_most_twice(name: str, size: int) -> None:
    fmt, call = toolgram.get_format(name), simple_call(name)[0]
    opener, closer = thought_markers(name)
    for text in (
        f"See:\n```\n{call}\n```\n",
        f"{opener}I could write {call}\n{call}",
        f"{opener}a {call}{closer}{call}",
    ):
        run(fmt, cut(text, size), tools=OTHER_TOOLS)  # what is computed once is not counted
        with at_most(300 * len(text) + 10_000):
            events, message = run(fmt, cut(text, size), tools=OTHER_TOOLS, finish_reason="stop")
        check_events(events, text)
        check_message(message, events)


def calls_in_thoughts(name: str) -> bool:
    """Whether a format has calls in its thoughts, and its simple call may follow one."""
    fmt, (opener, closer) = toolgram.get_format(name), thought_markers(name)
    call = simple_call(name)[0]
    return len(fmt.parse(f"{opener}a{closer}{call}", prefix="", finish_reason="stop").tool_calls) == 1


# ----------------------------------------------------------------------------------------------------------------- work


def hostile_texts(name: str, size: int) -> Iterable[str]:
    """Texts whose length grows with `size`, in which much is withheld, refuted and read again."""
    call, (opener, closer) = simple_call(name)[0], thought_markers(name)
    head = call[: max(1, len(call) // 2)]
    marker = max(toolgram.get_format(name).program.markers, key=len, default="<")
    stops = [toolgram.get_format(name).program.literals[stop] for stop in toolgram.get_format(name).program.stop]
    units = [
        call,
        f"{call} x ",
        f"{call}\n",
        head,
        f"{head} x ",
        marker,
        "{",
        '{"a": ',
        "[",
        "`",
        "` ",
        "```\n",
        "```x\n",
    ]
    units += [f"{stop}{unit}" for stop in sorted(stops)[:1] for unit in ("", "x", call, f"x{call}")]
    for unit in units:
        for begin in ("", "```\nx ", "`x ", f"{opener}a "):
            yield begin + unit * max(1, size // len(unit))
    yield f"{opener}a {call} {closer}" * max(1, size // (len(opener) + len(call) + len(closer) + 4))
    yield f"```\n{call}\n```\nx\n" * max(1, size // (len(call) + 12))


@every_format
@pytest.mark.parametrize("size", [0, 1])
def test_work_is_linear_where_calls_are_mentioned(name: str, size: int) -> None:
    for short, long in some([*zip(hostile_texts(name, 800), hostile_texts(name, 3_200), strict=True)], name):
        few, many = calls_made(name, cut(short, size)), calls_made(name, cut(long, size))
        growth = len(long) / len(short)
        row = f"{short[:120]!r}: {few} calls for {len(short)} characters, {many} for {len(long)}"
        assert many <= growth * few * 1.25 + 1_000, row
