"""LangChain: a runnable that reads a model's raw text, whole or streamed. Needs langchain-core.

    chain = prompt | llm | output_parser(toolgram.get_format("hermes"), tools=tools)

Strategy: LangChain's `RunnableGenerator` turns one iterator of pieces into another. Pieces are text, or chunks of
messages whose content is text. The output is the chunks of `adapters.langchain`, whose sum is the message: cut-off and
malformed calls are its `invalid_tool_calls`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from toolgram.adapters.langchain import AIMessageChunks
from toolgram.adapters.reading import evidence_in
from toolgram.adapters.shaping import Calls
from toolgram.errors import ToolgramError
from toolgram.formats import Format

if TYPE_CHECKING:
    from langchain_core.messages import AIMessageChunk
    from langchain_core.runnables import Runnable


def output_parser(
    fmt: Format, tools: Sequence[Any] | None = None, prefix: str | None = None, calls: Calls = "whole",
    strict: bool = False,
) -> Runnable[Any, AIMessageChunk]:  # fmt: skip
    """Return a runnable from text to message chunks; `tools`, `prefix` and `strict` are those of `Format.parser`. Raise
    ToolgramError if langchain-core is not installed; the runnable raises it for a piece without text."""
    try:
        from langchain_core.runnables import RunnableGenerator
    except ModuleNotFoundError:
        raise ToolgramError("this needs langchain-core, which is not installed: pip install langchain-core") from None

    def read(pieces: Iterator[Any]) -> Iterator[AIMessageChunk]:
        parser, chunks = fmt.parser(tools, prefix, strict=strict), AIMessageChunks(calls=calls)
        reason = None
        for piece in pieces:
            reason = _reason_of(piece) or reason
            yield from chunks.feed(parser.feed(_text_of(piece)))
        yield from chunks.end(parser.close(evidence_in(reason)), reason)

    async def aread(pieces: AsyncIterator[Any]) -> AsyncIterator[AIMessageChunk]:
        parser, chunks = fmt.parser(tools, prefix, strict=strict), AIMessageChunks(calls=calls)
        reason = None
        async for piece in pieces:
            reason = _reason_of(piece) or reason
            for chunk in chunks.feed(parser.feed(_text_of(piece))):
                yield chunk
        for chunk in chunks.end(parser.close(evidence_in(reason)), reason):
            yield chunk

    return RunnableGenerator(read, aread)


def _text_of(piece: Any) -> str:
    """Return the text of a piece: a string, the content of a message, or that of a prompt's value."""
    content = getattr(piece, "content", piece)
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [each if isinstance(each, str) else each.get("text", "") for each in content]
        if all(isinstance(each, str) for each in parts):
            return "".join(parts)
    raise ToolgramError(f"a piece of the output is {type(content).__name__}, not text")


def _reason_of(piece: Any) -> str | None:
    metadata = getattr(piece, "response_metadata", None)
    reason = metadata.get("finish_reason") if isinstance(metadata, dict) else None
    return reason if isinstance(reason, str) else None


__all__ = ["output_parser"]
