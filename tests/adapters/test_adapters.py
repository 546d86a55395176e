"""What the official clients make of a stream is the message that the parser made of it.

And what comes over a wire, as events: bytes cut anywhere, asynchronous sources, lines of a completions endpoint.
"""

import asyncio
import functools
import json
import operator
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import chain, pairwise, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolgram
from tests.adapters import clients
from tests.adapters.clients import Rebuilt
from tests.properties.selection import every_format
from tests.strategies import chunkings, well_formed
from toolgram.adapters import (
    ChatChunks,
    CompletionTexts,
    MessageEvents,
    ResponseEvents,
    Usage,
    sse,
    to_anthropic_message,
    to_chat_completion,
    to_response,
)
from toolgram.adapters.langchain import AIMessageChunks, to_ai_message
from toolgram.adapters.reading import SSEData
from toolgram.adapters.shaping import Calls
from toolgram.call_ids import random_call_ids
from toolgram.errors import ToolgramError
from toolgram.events import Event
from toolgram.limits import MAX_STREAM_LINE
from toolgram.message import Message

USAGE = Usage(12, 34, 5)


def events_of(name: str, pieces: Sequence[str], reason: str | None) -> tuple[list[list[Event]], Message]:
    """The events of each delta, those of the end last, and the message."""
    parser = toolgram.get_format(name).parser(prefix="", call_ids=random_call_ids(seed=3))
    events = [parser.feed(piece) for piece in pieces]
    return [*events, parser.close(reason)], parser.message


APIS: dict[str, Any] = {  # of each: its adapter and its messages, and how a client reads both
    "chat": (ChatChunks, clients.chat_stream, to_chat_completion, clients.chat_whole),
    "responses": (ResponseEvents, clients.responses_stream, to_response, clients.responses_whole),
    "messages": (MessageEvents, clients.anthropic_stream, to_anthropic_message, clients.anthropic_whole),
}


def streamed(api: str, events: list[list[Event]], reason: str | None, calls: Calls = "streamed") -> Rebuilt:
    """The same events through one adapter and one client."""
    made, rebuild, _, _ = APIS[api]
    adapter = made("m", calls=calls)
    sent = [*adapter.start()]
    for some in events[:-1]:
        sent += adapter.feed(some)
    sent += adapter.end(events[-1], reason, USAGE)
    found: Rebuilt = rebuild(json.loads(json.dumps(sent)))
    return found


def whole(api: str, message: Message) -> Rebuilt:
    _, _, written, read = APIS[api]
    found: Rebuilt = read(written(message, "m", usage=USAGE))
    return found


def calls_in(message: Message, api: str) -> list[tuple[str, str, Any]]:
    read: Any = json.loads if api == "messages" else str
    return [(call.id, call.name, read(call.arguments)) for call in message.tool_calls]


def calls_of(rebuilt: Rebuilt, message: Message, api: str) -> list[tuple[str, str, Any]]:
    """The calls that a client has, with the ids of the message: one that the model wrote twice is another one there,
    but in chat completions, where a call has a number."""
    ids = [call.id for call in message.tool_calls]
    assert api == "chat" or len({id for id, _, _ in rebuilt.calls}) == len(rebuilt.calls)
    again = {at: id for at, id in enumerate(ids) if api != "chat" and id in ids[:at]}
    return [(again.get(at, id), name, arguments) for at, (id, name, arguments) in enumerate(rebuilt.calls)]


@st.composite
def splits(draw: st.DrawFn, name: str) -> list[str]:
    """An output, whole or cut off, as deltas. What is broken in other ways is for the properties of the parser."""
    text = draw(well_formed(name)).text
    text = text[: draw(st.integers(0, len(text)))] if draw(st.booleans()) else text
    text = text.encode("utf-8", "replace").decode()
    return draw(chunkings(text))


@pytest.mark.parametrize("api", APIS)
@every_format
@settings(max_examples=25)
@given(data=st.data())
def test_clients_rebuild_the_message(api: str, name: str, data: st.DataObject) -> None:
    pieces = data.draw(splits(name))
    events, message = events_of(name, pieces, None)
    built = whole(api, message)
    if message.malformed or any(call.status != "complete" for call in message.tool_calls):
        both = streamed(api, events, None), streamed(api, events, None, "whole")
        for each in both[:1] if message.malformed else both:
            assert each.reason not in ("tool_calls", "tool_use") or not message.malformed
        statuses = [call.status for call in message.tool_calls]
        assert len(both[1].calls) == statuses.count("complete"), "whole calls are sent, and no others"
        return
    for each in (streamed(api, events, None), streamed(api, events, None, "whole"), built):
        assert calls_of(each, message, api) == calls_in(message, api)
        assert each.content == (message.content or "")
        assert each.reasoning == (message.reasoning or "")
        assert each.reason == built.reason


@pytest.mark.parametrize("api", APIS)
def test_an_id_that_a_model_writes_twice(api: str) -> None:
    """Clients of two APIs know a call by its id, and one of them refuses a stream in which it comes twice."""
    call = '<tool_call>{"id": "i1", "name": "f", "arguments": {}}</tool_call>'
    events, message = events_of("ernie45", [call, call], None)
    assert [each.id for each in message.tool_calls] == ["i1", "i1"]
    for each in (streamed(api, events, None), streamed(api, events, None, "whole"), whole(api, message)):
        assert calls_of(each, message, api) == calls_in(message, api)


@every_format
@settings(max_examples=25)
@given(data=st.data())
def test_langchain_rebuilds_the_message(name: str, data: st.DataObject) -> None:
    pieces = data.draw(splits(name))
    events, message = events_of(name, pieces, None)
    adapter = AIMessageChunks()
    chunks = [chunk for some in events[:-1] for chunk in adapter.feed(some)] + adapter.end(events[-1], None, USAGE)
    total: Any = functools.reduce(operator.add, chunks)
    made = to_ai_message(message, usage=USAGE)
    complete = [call for call in message.tool_calls if call.status == "complete"]
    valid = [(call.name, json.loads(call.arguments), call.id) for call in complete]
    each: Any
    for each in (total, made):
        assert [(call["name"], call["args"], call["id"]) for call in each.tool_calls] == valid
        failed = len(message.tool_calls) - len(complete) + len(message.malformed)
        assert len(each.invalid_tool_calls) == failed
        assert each.usage_metadata["total_tokens"] == 46
    assert made.content == (message.content or "")
    if not message.malformed:
        assert total.content == made.content
        assert total.additional_kwargs == made.additional_kwargs


CUT = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b'
BROKEN = '<tool_call>\n{"name": "add", "arguments": {"a": ]}}\n</tool_call>'
TWO = (
    '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>\n'
    '<tool_call>\n{"name": "mul", "arguments": {"b": 2}}\n</tool_call>'
)


def test_a_call_that_was_cut_off_is_visibly_unfinished() -> None:
    events, message = events_of("hermes", [CUT], "length")
    for api, reason in {"chat": "length", "responses": "incomplete", "messages": "max_tokens"}.items():
        held = streamed(api, events, "length", "whole")
        assert (held.calls, held.content) == ([], CUT)
        assert (streamed(api, events, "length").reason, whole(api, message).reason) == (reason, reason)
    assert streamed("chat", events, "length").calls[0][2] == '{"a": 1, "b'
    assert whole("messages", message).content == '{"name": "add", "input": {"a": 1, "b'


@pytest.mark.parametrize("said", ["stop", None, "tool_calls"])
def test_a_cut_off_call_never_ends_as_a_call(said: str | None) -> None:
    events, _ = events_of("hermes", [CUT], said)
    assert streamed("chat", events, said).reason == "length"
    assert streamed("messages", events, said).reason == "max_tokens"


@pytest.mark.parametrize("arguments", ['{"a": [1, 2}, "b": }', '{"a": [1, \n 2}, "b": }', '{"a": [ \t}, "b": ]'])
def test_a_failed_call_is_the_text_that_the_model_wrote(arguments: str) -> None:
    text = f'Well. <tool_call>\n{{"name": "add", "arguments": {arguments}'
    for pieces, api in product(([text], list(text)), APIS):
        events, message = events_of("hermes", pieces, "stop")
        assert message.malformed
        live, held = streamed(api, events, "stop"), streamed(api, events, "stop", "whole")
        assert live.reason in ("stop", "completed", "end_turn")
        assert live.content.startswith("Well.")
        for each in (held, whole(api, message)):
            assert (each.content, each.calls) == (text, [])


def test_a_whole_call_beside_a_failed_one() -> None:
    events, _ = events_of("hermes", [TWO + BROKEN], "stop")
    assert streamed("chat", events, "stop").reason == "stop"
    held = streamed("chat", events, "stop", "whole")
    assert held.reason == "tool_calls"
    assert [call[1] for call in held.calls] == ["add", "mul"]


def test_each_call_is_numbered_and_named_once() -> None:
    events, _ = events_of("hermes", list(TWO), "stop")
    adapter = ChatChunks("m")
    chunks = [*adapter.start(), *(chunk for some in events for chunk in adapter.feed(some))]
    deltas = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
    assert [call["index"] for call in deltas if "id" in call] == [0, 1]
    assert all("name" not in call["function"] for call in deltas if "id" not in call)
    assert len({chunk["id"] for chunk in chunks}) == len({chunk["created"] for chunk in chunks}) == 1


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning", "reasoning_details", None])
def test_reasoning_stands_under_the_name_that_was_chosen(key: str | None) -> None:
    events, message = events_of("qwen3_coder", ["<think>\nlong\nthought\n</think>\n\nyes"], "stop")
    assert message.reasoning == "long\nthought"
    adapter = ChatChunks("m", reasoning=key)
    found = clients.chat_stream([*adapter.start(), *adapter.end([*chain(*events)], "stop")], key or "")
    other = clients.chat_whole(to_chat_completion(message, "m", reasoning=key), key or "")
    for each in (found, other):
        said: Any = each.reasoning
        assert said == ("" if key is None else message.reasoning) or said[0]["text"] == message.reasoning


def test_settings_that_are_none() -> None:
    with pytest.raises(ToolgramError, match="reasoning is"):
        ChatChunks(reasoning="thoughts")
    with pytest.raises(ToolgramError, match="calls is"):
        MessageEvents(calls="maybe")  # type: ignore[arg-type]


def test_a_stop_sequence_is_named() -> None:
    events, message = events_of("hermes", ["text"], "stop")
    adapter = MessageEvents("m")
    sent = [*adapter.start(USAGE), *adapter.end([*chain(*events)], "stop", USAGE, "END")]
    assert clients.anthropic_stream(sent).reason == "stop_sequence"
    assert to_anthropic_message(message, stop_sequence="END")["stop_sequence"] == "END"


def test_lines_are_ascii_and_name_their_events() -> None:
    assert sse([{"type": "ping", "text": "a\u2028é"}, {"id": 1}]) == (
        'event: ping\ndata: {"type":"ping","text":"a\\u2028\\u00e9"}\n\ndata: {"id":1}\n\n'
    )


def test_a_response_that_fails_closes_what_is_open() -> None:
    events, _ = events_of("hermes", ["some text ", CUT], "stop")
    adapter = ResponseEvents("m", request={"tools": [], "temperature": 0.5, "unknown": 1})
    sent = [*adapter.start(), *adapter.feed(events[0]), *adapter.feed(events[1]), *adapter.fail("upstream", "gone")]
    found = clients.responses_stream(sent)
    assert found.reason == "failed"
    assert found.calls[0][1] == "add"
    assert sent[0]["response"]["temperature"] == 0.5
    assert "unknown" not in sent[0]["response"]


TEXT = 'Früh 🎈 <tool_call>\n{"name": "add", "arguments": {"a": "ü"}}\n</tool_call>'
FMT = toolgram.get_format("hermes")


def parser() -> toolgram.Parser:
    return FMT.parser(call_ids=random_call_ids(seed=1))


WANTED = FMT.parse(TEXT, call_ids=random_call_ids(seed=1), finish_reason="stop")


async def later(pieces: Iterable[Any]) -> AsyncIterator[Any]:
    for piece in pieces:
        await asyncio.sleep(0)
        yield piece


def lines(pieces: Iterable[str]) -> bytes:
    """A completions endpoint's stream."""
    sent: list[dict[str, Any]] = [{"choices": [{"index": 0, "text": piece, "finish_reason": None}]} for piece in pieces]
    sent.append({"choices": [{"index": 1, "text": "another choice", "finish_reason": "length"}]})
    sent.append({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})
    sent.append({"choices": [], "usage": {}})
    data = b"".join(b"data: " + json.dumps(each).encode() + b"\r\n\r\n" for each in sent)
    return b": ping\n\n" + data + b"data: [DONE]\n"


@given(st.lists(st.integers(0, len(TEXT.encode())), max_size=12))
def test_bytes_may_be_cut_anywhere(cuts: list[int]) -> None:
    data, places = TEXT.encode(), [0, *sorted(cuts), len(TEXT.encode())]
    pieces = [data[one:next] for one, next in pairwise(places)]
    one = parser()
    assert "".join(event.source for event in one.events(pieces, "stop")) == TEXT
    assert one.message == WANTED


async def message_of(source: Any, *reason: str) -> toolgram.Message:
    one = parser()
    async for _ in one.events(source, *reason):
        pass
    return one.message


def test_an_asynchronous_source() -> None:
    data = TEXT.encode()
    assert asyncio.run(message_of(later(data[at : at + 1] for at in range(len(data))), "stop")) == WANTED
    assert asyncio.run(message_of(list(TEXT), "stop")) == WANTED
    with pytest.raises(TypeError, match="async for"):
        list(parser().events(later([])))


def test_half_a_character_at_the_end() -> None:
    one = parser()
    list(one.events([b"ok ", "é".encode()[:1]]))
    assert one.message.content == "ok \N{REPLACEMENT CHARACTER}"


@given(st.data())
def test_the_lines_of_a_completions_endpoint(data: st.DataObject) -> None:
    body = lines(data.draw(chunkings(TEXT))).decode()
    splits = ((data.draw(chunkings(body)), ""), (body.splitlines(), "\n"), (body.splitlines(keepends=True), ""))
    for pieces, line_end in splits:
        one = parser()
        texts = CompletionTexts([piece.encode() for piece in pieces], line_end=line_end)
        list(one.events(texts))
        assert one.message == WANTED
        assert texts.finish_reason == "stop"


def test_the_lines_from_an_asynchronous_source() -> None:
    body = lines(list(TEXT))
    for source in (later(body[at : at + 7] for at in range(0, len(body), 7)), [body]):
        assert asyncio.run(message_of(CompletionTexts(source))) == WANTED
    with pytest.raises(toolgram.ToolgramError, match="async for"):
        list(CompletionTexts(later([])))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('data: {"error": {"message": "out of memory"}}\n\n', "out of memory"),
        ("data: {oh\n\n", "is not JSON"),
        ("data: [1]\n\n", "is not an object"),
        ("data: " + "[" * 100_000 + "\n\n", "is not JSON"),
    ],
)
def test_what_is_no_completion_is_an_error(line: str, said: str) -> None:
    with pytest.raises(toolgram.ToolgramError, match=said):
        list(CompletionTexts([line]))


def test_a_line_without_end_is_bounded() -> None:
    data = SSEData()
    data.feed(b"x" * MAX_STREAM_LINE)
    with pytest.raises(toolgram.ToolgramError, match="more than"):
        data.feed(b"x")


def test_odd_choices_say_nothing() -> None:
    odd = [{"choices": 3}, {"choices": [3]}, {"choices": [{"index": 0, "text": 3, "finish_reason": 4}]}, {}]
    assert list(CompletionTexts("data: " + json.dumps(each) + "\n\n" for each in odd)) == []
