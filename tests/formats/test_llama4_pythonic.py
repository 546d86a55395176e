"""Llama 4 pythonic: calls as a Python list, read by a scanner and never evaluated.

Strategy: as in `test_llama3_json`, each text is asked whole and streamed in deltas of many sizes.
"""

from __future__ import annotations

import json
import re
from functools import partial

import pytest

import toolgram
from tests.json_prefix import complete, is_json_prefix
from tests.streams import assert_parses, held_after
from toolgram.events import ToolCallDelta, ToolCallEnd, ToolCallStart

parses = partial(assert_parses, "llama4_pythonic")
CALL_F = ("f", {"a": 1})


def fmt() -> toolgram.Format:
    return toolgram.get_format("llama4_pythonic")


def arguments_after(text: str) -> str:
    """What was streamed of the last call's arguments when `text` had arrived, one character at a time."""
    parser = fmt().parser()
    return "".join(e.arguments for c in text for e in parser.feed(c) if isinstance(e, ToolCallDelta))


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("see [", " ["),
        ("see [1", ""),
        ("see [f", " [f"),
        ("see [f.g", " [f.g"),
        ("see [f]", ""),
        ("see [f(1", ""),
        ("see [f(a)", ""),
        ("see [f(a=", " [f(a="),
        ("see [f(a=x", ""),
        ("see [f(a=1", ""),
    ],
)
def test_held_text_is_released_at_the_first_character_that_decides(text: str, held: str) -> None:
    assert held_after("llama4_pythonic", text) == held


def test_arguments_stream_while_the_call_is_written() -> None:
    assert complete(arguments_after('[f(a=1, b="some lo')) == {"a": 1, "b": "some lo"}
    assert complete(arguments_after("[f(a=[1, {'k': 'v")) == {"a": [1, {"k": "v"}]}
    assert complete(arguments_after("[f(a='x', b=(1, 2")) in ({"a": "x", "b": [1, 2]}, {"a": "x", "b": [1]})
    assert complete(arguments_after("[f(a='it\\'s")) == {"a": "it's"}


def test_every_beginning_streams_honest_json() -> None:
    text = "[f(a=-1.5, b='x\\'yz', c=[1, {\"k\": None, 'l': (True,)}], d=\"\\x41\\n\"), g()]"
    final = [json.loads(c.arguments) for c in fmt().parse(text).tool_calls]
    assert final == [{"a": -1.5, "b": "x'yz", "c": [1, {"k": None, "l": [True]}], "d": "A\n"}, {}]
    for at in range(len(text)):
        message = fmt().parse(text[:at])
        for call in message.tool_calls:
            assert is_json_prefix(call.arguments)
            assert call.status == "complete" or at <= text.index("), g") or call.name == "g"


def test_truncated_at_every_character() -> None:
    text = "[get_weather(city='San Jos\\u00e9', n=[1, 2])]"
    for at in range(1, len(text) - 2):
        message = fmt().parse(text[:at], finish_reason="length")
        if at <= text.index("'"):
            assert (message.content, message.tool_calls) == (text[:at], [])
        else:
            (call,) = message.tool_calls
            assert (call.name, call.status, message.content) == ("get_weather", "truncated", None)
            complete(call.arguments)


def test_ids_tools_and_finish_reason() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    message = parses("[f(a=1), g()]", None, [CALL_F, ("g", {})], tools=tools)
    assert [a.kind for a in message.anomalies] == ["unknown_tool"]
    assert message.finish_reason == "tool_calls"
    parsed = fmt().parse("[f(a=1), g()]")
    assert all(re.fullmatch(r"call_[A-Za-z0-9]{24}", call.id) for call in parsed.tool_calls)
    assert parsed.anomalies == []


def test_a_second_call_in_the_same_delta_is_not_lost() -> None:
    events = fmt().parser().feed("[f(a=1), g()]")
    assert [e.name for e in events if isinstance(e, ToolCallStart)] == ["f", "g"]
    assert [e.status for e in events if isinstance(e, ToolCallEnd)] == ["complete", "complete"]


def test_no_arguments_are_streamed_as_an_empty_object() -> None:
    assert arguments_after("[g()]") == "{}"
