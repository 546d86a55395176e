"""What comes over a wire, as events: bytes cut anywhere, asynchronous sources, lines of a completions endpoint."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.strategies import chunkings
from toolgram.adapters import CompletionTexts
from toolgram.adapters.reading import SSEData
from toolgram.call_ids import random_call_ids
from toolgram.limits import MAX_STREAM_LINE

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
    return (
        b": ping\n\n"
        + b"".join(b"data: " + json.dumps(each).encode() + b"\r\n\r\n" for each in sent)
        + b"data: [DONE]\n"
    )


@given(st.lists(st.integers(0, len(TEXT.encode())), max_size=12))
def test_bytes_may_be_cut_anywhere(cuts: list[int]) -> None:
    data, places = TEXT.encode(), [0, *sorted(cuts), len(TEXT.encode())]
    pieces = [data[one:next] for one, next in pairwise(places)]
    one = parser()
    assert "".join(event.source for event in one.events(pieces, "stop")) == TEXT
    assert one.message == WANTED


def test_an_asynchronous_source() -> None:
    async def run(source: Any) -> toolgram.Message:
        one = parser()
        async for _ in one.events(source, "stop"):
            pass
        return one.message

    assert asyncio.run(run(later(TEXT.encode()[at : at + 1] for at in range(len(TEXT.encode()))))) == WANTED
    assert asyncio.run(run(list(TEXT))) == WANTED
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
    async def run(source: Any) -> toolgram.Message:
        one = parser()
        async for _ in one.events(CompletionTexts(source)):
            pass
        return one.message

    body = lines(list(TEXT))
    assert asyncio.run(run(later(body[at : at + 7] for at in range(0, len(body), 7)))) == WANTED
    assert asyncio.run(run([body])) == WANTED
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
