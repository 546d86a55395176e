"""Messages: a fold over events, kept or not."""

from __future__ import annotations

import tracemalloc

import pytest

import toolgram
from toolgram.message import MessageBuilder

CALL = '[TOOL_CALLS]f[ARGS]{"a": 1}'
TOOLS = [{"type": "function", "function": {"name": "g", "parameters": {}}}]


def test_a_message_grows_with_the_stream() -> None:
    parser = toolgram.get_format("mistral_v11").parser()
    parser.feed("Hi ")
    assert parser.message.content == "Hi"
    assert parser.message.finish_reason is None
    parser.feed("you." + CALL[:-1])
    assert parser.message.content == "Hi you."
    assert parser.message.tool_calls[0].status == "truncated"
    parser.feed(CALL[-1])
    parser.close()
    assert parser.message.tool_calls[0].arguments == '{"a": 1}'
    assert parser.message.finish_reason == "tool_calls"


def test_a_message_is_a_copy() -> None:
    parser = toolgram.get_format("mistral_v11").parser(tools=TOOLS)
    parser.feed(CALL)
    first = parser.message
    first.tool_calls[0].name = "changed"
    first.anomalies[0].text = "changed"
    assert parser.message.tool_calls[0].name == "f"
    assert parser.message.anomalies[0].text == "f"


def test_neighbouring_malformed_text_is_one_anomaly() -> None:
    fmt = toolgram.get_format("mistral_v11")
    text = '[TOOL_CALLS]f[ARGS]{"a": oops, "b": [1, 2]} fine [TOOL_CALLS] docs.'
    parser = fmt.parser()
    for character in text:
        parser.feed(character)
    parser.close()
    assert parser.message.to_dict()["anomalies"] == fmt.parse(text).to_dict()["anomalies"]
    kinds = [anomaly.kind for anomaly in parser.message.anomalies]
    assert kinds == ["malformed", "malformed"]


def test_without_a_message_memory_is_what_is_held_back() -> None:
    parser = toolgram.get_format("mistral_v11").parser(keep_message=False)
    parser.feed("word ")
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for _ in range(20_000):
        parser.feed("word ")
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 4_000
    with pytest.raises(toolgram.ToolgramError, match="keep_message"):
        _ = parser.message


@pytest.mark.parametrize("tools", [[{}], [{"function": None}], [{"function": {"name": 3}}], ["x"], [None]])
def test_tools_of_any_shape_do_no_harm(tools: list[object]) -> None:
    message = toolgram.get_format("mistral_v11").parse(CALL, tools=tools)  # type: ignore[arg-type]
    assert message.tool_calls[0].status == "complete"


def test_nothing_is_an_empty_message() -> None:
    message = MessageBuilder().message()
    assert (message.content, message.reasoning, message.tool_calls, message.anomalies) == (None, None, [], [])
