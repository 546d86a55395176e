"""The runnable, in LangChain's own chains: whole, streamed, asynchronous."""

import asyncio
import functools
import operator
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

import toolgram
from toolgram.integrations.langchain import output_parser

HERE = "langchain-core is not in this environment, which is another host's"
AIMessageChunk: Any = pytest.importorskip("langchain_core.messages", reason=HERE).AIMessageChunk
RunnableGenerator: Any = pytest.importorskip("langchain_core.runnables", reason=HERE).RunnableGenerator

OUTPUT = 'Adding. <tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
FMT = toolgram.get_format("hermes")


def model(text: str, reason: str = "stop") -> Any:
    """A model that streams message chunks."""

    def write(asked: Iterator[Any]) -> Iterator[Any]:
        list(asked)
        for at in range(0, len(text), 3):
            yield AIMessageChunk(content=text[at : at + 3])
        yield AIMessageChunk(content="", response_metadata={"finish_reason": reason})

    async def later(asked: AsyncIterator[Any]) -> AsyncIterator[Any]:
        for chunk in write(iter([each async for each in asked])):
            yield chunk

    return RunnableGenerator(write, later)


def test_invoke_stream_and_astream() -> None:
    chain: Any = model(OUTPUT) | output_parser(FMT)

    async def all_of() -> list[Any]:
        return [chunk async for chunk in chain.astream("go")]

    streamed = list(chain.stream("go"))
    assert len(streamed) > 3
    both = (functools.reduce(operator.add, chunks) for chunks in (streamed, asyncio.run(all_of())))
    for message in (chain.invoke("go"), *both):
        assert message.content == "Adding."
        assert [(call["name"], call["args"]) for call in message.tool_calls] == [("add", {"a": 1})]
        assert message.response_metadata["finish_reason"] == "tool_calls"
        assert message.invalid_tool_calls == []


def test_plain_text_and_parts() -> None:
    parser: Any = output_parser(FMT)
    assert parser.invoke(OUTPUT).tool_calls[0]["name"] == "add"
    parts = AIMessageChunk(content=[{"type": "text", "text": "a"}, "b"])
    assert parser.invoke(parts).content == "ab"
    with pytest.raises(toolgram.ToolgramError, match="is int, not text"):
        parser.invoke(3)


def test_a_call_that_was_cut_off_is_invalid() -> None:
    chain: Any = model(OUTPUT[:52], "length") | output_parser(FMT)
    message = chain.invoke("go")
    assert message.tool_calls == []
    assert [call["name"] for call in message.invalid_tool_calls] == ["add"]
    assert message.response_metadata["finish_reason"] == "length"


def test_without_langchain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain_core.runnables", None)
    with pytest.raises(toolgram.ToolgramError, match="langchain-core"):
        output_parser(FMT)
