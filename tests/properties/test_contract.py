"""The contract, clauses 1 to 7, over every format: what is true of any text in any cutting.

Strategy: texts come from `tests.strategies` (well-formed, wounded, noise, any unicode), and each test is one clause.
Clause 5 (prompt) has a file of its own, and so has the machine as a model. Nothing here takes the time: what has to be
linear is counted in function calls.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import toolgram
from tests.json_prefix import is_json_prefix
from tests.strategies import Output, any_text, chunkings, fragments, noise, outputs, well_formed
from tests.streams import (
    CUT_SIZES,
    arguments_of,
    calls_of,
    check_events,
    check_message,
    content_of,
    cut,
    merged,
    run,
    sources,
    without_ids,
)
from toolgram.events import Dropped, Event, ToolCallDelta, ToolCallStart

FORMATS = toolgram.format_names()
every_format = pytest.mark.parametrize("name", FORMATS)
TAGGED = {
    name
    for name in FORMATS
    if any(state.meaning == "value" for state in toolgram.get_format(name).spec.states.values())
}

# A Mistral output that ends in a name is a call without arguments, whatever the name was going to be; so is one of
# gpt-oss that ends where the message of a call begins.
BARE_NAME = re.compile(r"\[TOOL_CALLS\][\w.\-]+$|<\|message\|>\s*$")

TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": n, "parameters": {"type": "object", "properties": {"a": {}}}}}
    for n in ("f", "search", "get_weather")
]


def drawn(data: st.DataObject, name: str) -> str:
    text = data.draw(outputs(name))
    note(f"text: {text!r}")
    return text


# ---------------------------------------------------------------------------------- 1 conservation, 2 chunk invariance


@every_format
@given(data=st.data())
def test_every_character_belongs_to_one_event(name: str, data: st.DataObject) -> None:
    text = drawn(data, name)
    events, message = run(toolgram.get_format(name), data.draw(chunkings(text)))
    check_events(events, text)
    check_message(message, events)


@every_format
@given(data=st.data())
def test_the_cutting_changes_nothing(name: str, data: st.DataObject) -> None:
    fmt = toolgram.get_format(name)
    text = drawn(data, name)
    events, message = run(fmt, [text])
    for chunks in [*(cut(text, size) for size in CUT_SIZES[1:]), data.draw(chunkings(text))]:
        streamed, streamed_message = run(fmt, chunks)
        assert merged(streamed) == merged(events)
        assert streamed_message == message


@every_format
@given(data=st.data())
def test_the_cutting_changes_nothing_with_tools_and_a_finish_reason(name: str, data: st.DataObject) -> None:
    fmt = toolgram.get_format(name)
    text = drawn(data, name)
    reason = data.draw(st.sampled_from([None, "stop", "length", "tool_calls", "content_filter", ""]))
    events, message = run(fmt, [text], tools=TOOLS, finish_reason=reason)
    streamed, streamed_message = run(fmt, data.draw(chunkings(text)), tools=TOOLS, finish_reason=reason)
    assert merged(streamed) == merged(events)
    assert streamed_message == message


@every_format
@given(data=st.data())
def test_markers_and_separators_are_one_event_each_in_any_cutting(name: str, data: st.DataObject) -> None:
    """A marker that arrives in five pieces is still one Dropped event, unmerged."""
    fmt = toolgram.get_format(name)
    text = data.draw(well_formed(name)).text
    note(f"text: {text!r}")
    whole = [e for e in run(fmt, [text])[0] if isinstance(e, Dropped)]
    for size in CUT_SIZES[1:]:
        assert [e for e in run(fmt, cut(text, size))[0] if isinstance(e, Dropped)] == whole


# ------------------------------------------------------------------------------------------- 3 the stream is the whole


@every_format
@given(data=st.data())
def test_parse_is_feed_and_close(name: str, data: st.DataObject) -> None:
    fmt = toolgram.get_format(name)
    text = drawn(data, name)
    reason = data.draw(st.sampled_from([None, "stop", "length"]))
    parsed = fmt.parse(text, finish_reason=reason)
    _, streamed = run(fmt, data.draw(chunkings(text)), finish_reason=reason)
    assert (parsed.content, parsed.reasoning, parsed.finish_reason) == (
        streamed.content,
        streamed.reasoning,
        streamed.finish_reason,
    )
    assert calls_of(parsed) == calls_of(streamed)
    assert parsed.anomalies == streamed.anomalies


@every_format
@given(data=st.data())
def test_well_formed_output_is_the_message_it_means(name: str, data: st.DataObject) -> None:
    output = data.draw(well_formed(name))
    note(f"text: {output.text!r}")
    if not output.known:
        pytest.skip(f"no generator knows what outputs of {name} mean")
    message = toolgram.get_format(name).parse(output.text)
    assert message.content == output.content
    assert message.reasoning == output.reasoning
    assert [(c.name, _same(json.loads(c.arguments)), c.status) for c in message.tool_calls] == [
        (c.name, _same(c.arguments), "complete") for c in output.calls
    ]
    for written, call in zip(output.calls, message.tool_calls, strict=True):
        if written.id is not None:
            assert call.id == written.id
    assert message.finish_reason == ("tool_calls" if output.calls else "stop")


def _same(value: Any) -> str:
    """A text in which 1, 1.0 and True differ."""
    return json.dumps(value)


# ---------------------------------------------------------------------------------------------------------- 4 monotone


@every_format
@given(data=st.data())
def test_what_was_told_stays(name: str, data: st.DataObject) -> None:
    """At every delta the message so far is a beginning of the final one."""
    text = drawn(data, name)
    fmt = toolgram.get_format(name)
    _, final = run(fmt, [text])
    parser = fmt.parser(call_ids=toolgram.call_ids.random_call_ids(seed=7))
    for piece in cut(text, 1 + len(text) // 40):
        parser.feed(piece)
        so_far = parser.message
        assert (final.content or "").startswith(so_far.content or "")
        assert (final.reasoning or "").startswith(so_far.reasoning or "")
        for early, late in zip(so_far.tool_calls, final.tool_calls, strict=False):
            assert (early.id, early.name) == (late.id, late.name)
            assert late.arguments.startswith(early.arguments)
        assert len(so_far.tool_calls) <= len(final.tool_calls)


@every_format
@given(data=st.data())
def test_the_name_comes_once_and_arguments_are_json_at_every_delta(name: str, data: st.DataObject) -> None:
    events, message = run(toolgram.get_format(name), cut(drawn(data, name), 1))
    assert [e.index for e in events if isinstance(e, ToolCallStart)] == list(range(len(message.tool_calls)))
    for index, call in enumerate(message.tool_calls):
        of_call = [e for e in events if isinstance(e, (ToolCallStart, ToolCallDelta)) and e.index == index]
        assert isinstance(of_call[0], ToolCallStart), "the name comes before the arguments"
        assert is_json_prefix("".join(arguments_of(events, index)))
        if call.status == "complete":
            assert isinstance(json.loads(call.arguments), dict)


@every_format
@given(data=st.data())
def test_json_arguments_are_the_models_own_bytes(name: str, data: st.DataObject) -> None:
    """Where a delta's source is an object already, its text is the source: nothing is written anew.

    Between tags, where an object may be Python's as well, it is the same object.
    """
    text = data.draw(well_formed(name)).text
    note(f"text: {text!r}")
    at = 0
    for event in merged(run(toolgram.get_format(name), [text])[0]):
        written_as_string = text[at - 1 : at] == '"'
        read_as_text = isinstance(event, ToolCallDelta) and event.arguments.startswith('"')
        if (
            isinstance(event, ToolCallDelta)
            and event.source.startswith("{")
            and not (written_as_string or read_as_text)
        ):
            assert event.arguments == event.source or (
                name in TAGGED and json.loads(event.arguments) == json.loads(event.source)
            )
        at += len(event.source)


# ------------------------------------------------------------------------------------------------------------- 6 total


@every_format
@given(text=any_text(), size=st.integers(1, 7), reason=st.none() | st.text(max_size=8))
def test_any_text_and_any_finish_reason(name: str, text: str, size: int, reason: str | None) -> None:
    events, message = run(toolgram.get_format(name), cut(text, size), finish_reason=reason)
    check_events(events, text)
    if reason:
        assert message.finish_reason == reason


@every_format
@given(data=st.data())
def test_any_prefix(name: str, data: st.DataObject) -> None:
    """The generation prompt, or any tail of any prompt, moves the machine and gives no event."""
    prefix = data.draw(outputs(name))
    text = data.draw(noise(name))
    note(f"prefix: {prefix!r} text: {text!r}")
    fmt = toolgram.get_format(name)
    events, _ = run(fmt, [text], prefix=prefix)
    check_events(events, text)
    streamed, _ = run(fmt, cut(text, 1), prefix=prefix)
    assert merged(streamed) == merged(events)


@pytest.mark.parametrize(
    ("name", "prefix", "text"),
    [
        ("mistral_v11", "[TOOL_CALLS]", 'f[ARGS]{"a": 1}'),
        ("mistral_v11", "[INST]Hi[/INST][TOOL_CALLS]f[ARGS]", '{"a": 1}'),
        ("mistral_v11", '[TOOL_CALLS]f[ARGS]{"', 'a": 1}'),
        ("mistral_v3", "[TOOL_CALLS]", ' [{"name": "f", "arguments": {"a": 1}}]'),
        ("mistral_v3", "[TOOL_CALLS] [", '{"name": "f", "arguments": {"a": 1}}]'),
        ("mistral_v3", '[TOOL_CALLS] [{"name": "f", "arguments": ', '{"a": 1}}]'),
        ("llama3_json", "<|python_tag|>", '{"name": "f", "parameters": {"a": 1}}'),
        ("llama3_json", '{"name": "f", "parameters": {', '"a": 1}}'),
        ("llama4_pythonic", "<|python_start|>[", "f(a=1)]<|python_end|>"),
        ("llama4_pythonic", "[f(", "a=1)]"),
        ("functionary_v3_2", "<|start_header_id|>assistant<|end_header_id|>\n\n>>>", 'f\n{"a": 1}'),
        ("functionary_v3_2", ">>>f\n", '{"a": 1}'),
        ("gpt_oss", "<|start|>assistant", ' to=functions.f<|channel|>commentary json<|message|>{"a": 1}<|call|>'),
        ("gpt_oss", "<|start|>assistant<|channel|>commentary to=functions.f", ' json<|message|>{"a": 1}'),
        ("gpt_oss", "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>", '{"a": 1}<|call|>'),
        (
            "granite_3",
            "<|start_of_role|>assistant<|end_of_role|><|tool_call|>",
            '[{"name": "f", "arguments": {"a": 1}}]',
        ),
        ("hermes", "<|im_start|>assistant\n<tool_call>", '\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'),
        ("hermes", '<tool_call>\n{"name": "f", "arguments": ', '{"a": 1}}\n</tool_call>'),
        ("lfm2", "<|im_start|>assistant\n<|tool_call_start|>[", "f(a=1)]<|tool_call_end|>"),
    ],
)
def test_a_call_that_the_prompt_has_begun(name: str, prefix: str, text: str) -> None:
    """A forced tool choice writes the beginning of a call into the prompt; the call is whole all the same."""
    for size in CUT_SIZES:
        events, message = run(toolgram.get_format(name), cut(text, size), prefix=prefix)
        check_events(events, text)
        assert [(c.name, json.loads(c.arguments), c.status) for c in message.tool_calls] == [
            ("f", {"a": 1}, "complete")
        ]
        assert message.content is None


@every_format
def test_empty_deltas_are_nothing(name: str) -> None:
    fmt = toolgram.get_format(name)
    events, message = run(fmt, ["", "", ""])
    assert events == []
    assert (message.content, message.reasoning, message.tool_calls) == (None, None, [])
    text = fmt.example
    spaced = [piece for character in text for piece in ("", character, "")]
    assert merged(run(fmt, spaced)[0]) == merged(run(fmt, [text])[0])


@every_format
@given(data=st.data())
def test_finish_reason_follows_the_calls(name: str, data: st.DataObject) -> None:
    text = drawn(data, name)
    message = toolgram.get_format(name).parse(text)
    statuses = [call.status for call in message.tool_calls]
    expected = "length" if "truncated" in statuses else "tool_calls" if "complete" in statuses else "stop"
    assert message.finish_reason == expected
    assert toolgram.get_format(name).parse(text, finish_reason="length").finish_reason == "length"


@every_format
@given(data=st.data())
def test_a_call_cut_anywhere_is_never_complete(name: str, data: st.DataObject) -> None:
    """Cut at every position: a call is complete only when all its text was there, and then it stays."""
    output: Output = data.draw(well_formed(name))
    note(f"text: {output.text!r}")
    fmt = toolgram.get_format(name)
    _, final = run(fmt, [output.text])
    reason = data.draw(st.sampled_from([None, "length"]))
    step = max(1, len(output.text) // 25)
    places = {*range(0, len(output.text), step), *(c.end - 1 for c in output.calls), *(c.end for c in output.calls)}
    for at in sorted(places):
        events, message = run(fmt, [output.text[:at]], finish_reason=reason)
        check_events(events, output.text[:at])
        if not output.known:
            continue
        statuses = [call.status for call in message.tool_calls]
        finished = statuses.count("complete")
        assert sum(c.certain <= at for c in output.calls) <= finished <= sum(c.end <= at for c in output.calls), at
        assert statuses in (["complete"] * finished, ["complete"] * finished + ["truncated"]), at
        assert message.tool_calls[:finished] == final.tool_calls[:finished], at
        if len(statuses) > finished and not BARE_NAME.search(output.text[:at]):
            assert message.tool_calls[finished].name == output.calls[finished].name
            assert final.tool_calls[finished].arguments.startswith(message.tool_calls[finished].arguments)


# ------------------------------------------------------------------------------------------------- special tokens by id


@every_format
@given(data=st.data())
def test_no_ids_behind_a_delta_are_ids_that_are_no_markers(name: str, data: st.DataObject) -> None:
    """An empty list says that nothing special was emitted, as other ids do; only None leaves it to the text."""
    fmt = toolgram.get_format(name)
    special = {text: 1_000 + at for at, text in enumerate(fmt.program.special.values())}
    text = drawn(data, name)
    chunks = data.draw(chunkings(text))
    told = []
    for ids in ([], [1]):
        parser = fmt.parser(special_tokens=special)
        events = [event for chunk in chunks for event in parser.feed(chunk, token_ids=ids)] + parser.close()
        assert sources(events) == text
        told.append(without_ids(merged(events)))
    assert told[0] == told[1]


# ------------------------------------------------------------------------------------------------- snapshots, and size


@every_format
@given(data=st.data())
def test_a_snapshot_at_any_character_continues_to_the_same_events(name: str, data: st.DataObject) -> None:
    fmt = toolgram.get_format(name)
    text = drawn(data, name)
    at = data.draw(st.integers(0, len(text)))
    parser = fmt.parser()
    for piece in data.draw(chunkings(text[:at])):
        parser.feed(piece)
    state = json.loads(json.dumps(parser.snapshot()))
    restored = fmt.restore(state)
    rest = data.draw(chunkings(text[at:]))
    first = _rest_of(parser, rest)
    assert without_ids(_rest_of(restored, rest)) == without_ids(first)


@every_format
@given(data=st.data())
def test_a_snapshot_is_not_moved_by_its_parser(name: str, data: st.DataObject) -> None:
    """Many futures of one moment: the state that was taken stays what it was."""
    fmt = toolgram.get_format(name)
    text = drawn(data, name)
    at = data.draw(st.integers(0, len(text)))
    parser = fmt.parser()
    parser.feed(text[:at])
    state = parser.snapshot()
    before = json.dumps(state, sort_keys=True)
    first = _rest_of(fmt.restore(state), [text[at:]])
    assert json.dumps(state, sort_keys=True) == before
    assert json.dumps(parser.snapshot(), sort_keys=True) == before
    assert without_ids(_rest_of(fmt.restore(state), [text[at:]])) == without_ids(first)


def _rest_of(parser: toolgram.Parser, chunks: Iterable[str]) -> list[Event]:
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.close()


# The text before a long string argument, and a unit that may be repeated in it.
OPEN_ARGUMENTS = {
    "llama3_json": '{"name": "f", "parameters": {"a": "',
    "llama4_pythonic": "[f(a='",
    "mistral_v3": '[TOOL_CALLS] [{"name": "f", "arguments": {"a": "',
    "mistral_v11": '[TOOL_CALLS]f[ARGS]{"a": "',
    "functionary_v3_2": '>>>f\n{"a": "',
    "gpt_oss": '<|channel|>commentary to=functions.f json<|message|>{"a": "',
    "granite_3": '<|tool_call|>[{"name": "f", "arguments": {"a": "',
    "hermes": '<tool_call>\n{"name": "f", "arguments": {"a": "',
    "lfm2": "<|tool_call_start|>[f(a='",
}


def _size_after(name: str, text: str) -> int:
    parser = toolgram.get_format(name).parser()
    for piece in cut(text, 4):
        parser.feed(piece)
    return len(json.dumps(parser.snapshot()))


@every_format
@pytest.mark.parametrize("unit", ["word ", "x", "a; b, ", "\\n", "{} "])
def test_a_snapshot_does_not_grow_with_content(name: str, unit: str) -> None:
    short, long = (_size_after(name, "Well. " + unit * (n // len(unit)) + "x") for n in (200, 20_000))
    assert long <= short + 16


@pytest.mark.parametrize("name", [n for n in FORMATS if n in OPEN_ARGUMENTS])
@pytest.mark.parametrize("unit", ["word ", "x", "{[", "\\n", "[TOOL_CALLS", "<|py"])
def test_a_snapshot_does_not_grow_with_arguments(name: str, unit: str) -> None:
    short, long = (_size_after(name, OPEN_ARGUMENTS[name] + unit * (n // len(unit)) + "x") for n in (200, 20_000))
    assert long <= short + 16


@pytest.mark.parametrize("name", [n for n in FORMATS if n in OPEN_ARGUMENTS])
def test_a_snapshot_does_not_grow_with_calls(name: str) -> None:
    text = toolgram.get_format(name).example
    short, long = (_size_after(name, (text + "\n") * n + "x") for n in (2, 200))
    assert long <= short + 16


# ------------------------------------------------------------------------------------------------------------ 7 linear

NASTY = (
    "{",
    "[",
    "(",
    " ",
    "\n ",
    "\\",
    '"',
    "'",
    '{"',
    '{"name": "f", ',
    '{"name": "f"}',
    '{"parameters": {"a": 1}, ',
    '{"parameters": {',
    '{"a": ',
    '{"type": "function"',
    "[TOOL_CALLS",
    "[TOOL_CALLS]",
    "[TOOL_CALLS] [",
    "[TOOL_CALLS][{",
    '[TOOL_CALLS] [{"arguments": {"a": "',
    "[TOOL_CALLS]name",
    "[TOOL_CALLS]f[ARGS]",
    "[THINK]",
    "[THINK][",
    "[CALL_ID]",
    "<|",
    "<|python_tag|>",
    "<|python_start|>[",
    "<|python_tag|>{",
    "[f",
    "[f(",
    "[f(a",
    "[f(a=",
    "f(a='",
    "[a.",
    "a, b=",
    "<tool_call>",
    '<tool_call>{"',
    "<think>",
    "</think><response>",
    "<|tool_call_start|>[",
    "<|tool_call_start|>[f(",
    "<|tool_call|>[",
    ">",
    ">>>f",
    ">>>f\n{",
    ">>>all\n",
    "<|channel|>",
    "<|channel|>final",
    "<|channel|>analysis<|message|>",
    "<|start|>",
    "to=",
    "<|message|>to=f<|channel|>",
)


def _calls_made(name: str, text: str) -> int:
    """Function calls, Python and C, that a text costs when fed one character at a time."""
    parser = toolgram.get_format(name).parser()
    made = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        for character in text:
            parser.feed(character)
        parser.close()
    finally:
        sys.setprofile(before)
    return made


@every_format
@pytest.mark.parametrize("unit", NASTY)
def test_work_is_linear_in_the_length(name: str, unit: str) -> None:
    for opening in ("", OPEN_ARGUMENTS.get(name, "")):
        short, long = (_calls_made(name, opening + unit * (n // len(unit))) for n in (1_000, 4_000))
        assert long <= 4 * short * 1.25 + 500, f"{opening + unit!r}: {short} calls for 1000 characters, {long} for 4000"


@every_format
@pytest.mark.parametrize("unit", NASTY)
def test_twenty_thousand_nasty_characters_one_by_one(name: str, unit: str) -> None:
    text = unit * (20_000 // len(unit))
    events, _ = run(toolgram.get_format(name), cut(text, 1))
    check_events(events, text)


@every_format
@pytest.mark.parametrize("opener", ["[", "{", "(", '{"a":', "[[", "[(", '[{"a":', "\\"])
@pytest.mark.parametrize("size", [0, 1_000])
def test_depth_bombs(name: str, opener: str, size: int) -> None:
    """Nesting beyond the cap is a clean failure: no exception, and no call that looks complete."""
    fmt = toolgram.get_format(name)
    bomb = opener * 20_000
    heads = {
        "llama3_json": ["", '{"name": "f", "parameters": {"a": ', '{"parameters": ', '{"name": '],
        "llama4_pythonic": ["", "[f(a=", "[f(a={'b': ", "[f("],
        "mistral_v3": ["", "[TOOL_CALLS] ", '[TOOL_CALLS] [{"name": "f", "arguments": {"a": ', '[TOOL_CALLS] [{"x": '],
        "mistral_v11": ["", "[TOOL_CALLS]f[ARGS]", '[TOOL_CALLS]f[ARGS]{"a": ', '[TOOL_CALLS]f{"a": '],
        "functionary_v3_2": ["", ">>>", ">>>f\n", '>>>f\n{"a": ', ">>>all\n"],
        "gpt_oss": ["", "<|channel|>", "to=f<|message|>", 'to=f<|message|>{"a": ', "<|channel|>final<|message|>"],
        "granite_3": ["", "<|tool_call|>", '<|tool_call|>[{"name": "f", "arguments": {"a": ', '<|tool_call|>[{"x": '],
        "hermes": ["", "<tool_call>", '<tool_call>{"name": "f", "arguments": {"a": ', '<tool_call>{"arguments": '],
        "lfm2": ["", "<|tool_call_start|>", "<|tool_call_start|>[f(a=", "<|tool_call_start|>[f("],
    }
    for head in heads.get(name, [""]):
        events, message = run(fmt, cut(head + bomb, size))
        check_events(events, head + bomb)
        assert "complete" not in [call.status for call in message.tool_calls]
        if size:
            assert merged(events) == merged(run(fmt, [head + bomb])[0])


CLOSE_ARGUMENTS = {
    "llama3_json": "}}",
    "llama4_pythonic": ")]",
    "mistral_v3": "}}]",
    "mistral_v11": "}",
    "functionary_v3_2": "}",
    "gpt_oss": "}",
    "granite_3": "}}]",
    "hermes": "}}",
    "lfm2": ")]",
}


@pytest.mark.parametrize("name", [n for n in FORMATS if n in OPEN_ARGUMENTS])
@pytest.mark.parametrize("depth", [300, 20_000])
@pytest.mark.parametrize("size", [0, 1_000])
def test_nesting_beyond_the_cap_is_malformed(name: str, depth: int, size: int) -> None:
    """Closed or not: what json.loads could not read back without a deep stack is no complete call."""
    text = OPEN_ARGUMENTS[name][:-1] + "[" * depth + "]" * depth + CLOSE_ARGUMENTS[name]
    events, message = run(toolgram.get_format(name), cut(text, size))
    check_events(events, text)
    assert [call.status for call in message.tool_calls] == ["malformed"]
    assert _size_after(name, text[: -depth // 2]) < 8_000


@pytest.mark.parametrize("name", [n for n in FORMATS if n in OPEN_ARGUMENTS])
@pytest.mark.parametrize("depth", [100, 200])
def test_nesting_below_the_cap_is_a_call(name: str, depth: int) -> None:
    head = OPEN_ARGUMENTS[name][:-1]
    message = toolgram.get_format(name).parse(head + "[" * depth + "]" * depth + CLOSE_ARGUMENTS[name])
    assert calls_of(message)[0][2] == "complete"


# ------------------------------------------------------------------------------- streams share nothing, ids are theirs


@every_format
@given(data=st.data())
def test_two_streams_do_not_disturb_each_other(name: str, data: st.DataObject) -> None:
    fmt = toolgram.get_format(name)
    texts = data.draw(outputs(name)), data.draw(outputs(name))
    alone = [merged(without_ids(run(fmt, [text])[0])) for text in texts]
    parsers = fmt.parser(), fmt.parser()
    together: tuple[list[Event], list[Event]] = ([], [])
    for at in range(max(map(len, texts))):
        for text, parser, events in zip(texts, parsers, together, strict=True):
            events += parser.feed(text[at : at + 1])
    for parser, events in zip(parsers, together, strict=True):
        events += parser.close()
    assert [merged(without_ids(events)) for events in together] == alone


@every_format
@given(data=st.data())
def test_content_is_told_in_order(name: str, data: st.DataObject) -> None:
    """Prose in which every fragment is torn off its neighbours: nothing is lost, doubled or moved."""
    pieces = data.draw(st.lists(st.sampled_from(fragments(name)), max_size=12))
    text = "".join(f"<{piece}>" for piece in pieces)
    events, message = run(toolgram.get_format(name), cut(text, 1))
    assert sources(events) == text
    assert message.content == content_of(events)


LONE_SURROGATES = ('{"\\uDC00"', '{"name": "\\ud800"', '[{"na\\uDFFFme": 1', '{"name": "f", "parameters": "\\uD83D"')


@every_format
@pytest.mark.parametrize("tail", LONE_SURROGATES)
def test_half_a_character_is_no_error(name: str, tail: str) -> None:
    """A lone surrogate, escaped, is JSON by its grammar and text to nobody."""
    fmt = toolgram.get_format(name)
    head = fmt.example.partition("{")[0]
    for text in (tail, head + tail, f"{head}{tail}, 1}}"):
        events, message = run(fmt, [text])
        check_events(events, text)
        for size in CUT_SIZES[1:]:
            assert merged(run(fmt, cut(text, size))[0]) == merged(events)
        assert message.finish_reason in ("stop", "length", "tool_calls")
