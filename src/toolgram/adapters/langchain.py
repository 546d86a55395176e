"""LangChain: `AIMessage`, and the `AIMessageChunk`s of a stream. Needs langchain-core.

LangChain merges chunks with a lenient reader of partial JSON, which makes a valid call of one that was cut off. So a
call is sent when it is complete (`calls="whole"`). One that failed comes out of the merge among `invalid_tool_calls`:
its arguments are sent as a JSON *string*, and a valid call has an object. The text of a malformed call is part of the
content, as in `Message`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from toolgram.adapters.chat import message_finish_reason
from toolgram.adapters.shaping import Calls, FailedCall, LeadingBlanks, Shaping, finish_reason
from toolgram.adapters.usage import Usage
from toolgram.errors import ToolgramError
from toolgram.events import Content, Event, Reasoning, ToolCallDelta, ToolCallStart
from toolgram.message import Message

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.messages.ai import UsageMetadata

_WHY = {"truncated": "the output ended before the call did", "malformed": "the call could not be read"}


def _messages() -> Any:
    try:
        from langchain_core import messages
    except ModuleNotFoundError:
        raise ToolgramError("this needs langchain-core, which is not installed: pip install langchain-core") from None
    return messages


def _usage(usage: Usage | None) -> UsageMetadata | None:
    if usage is None:
        return None
    return {"input_tokens": usage.prompt, "output_tokens": usage.output, "total_tokens": usage.prompt + usage.output}


def _reasoning(text: str) -> dict[str, Any]:
    return {"reasoning_content": text} if text else {}


def to_ai_message(message: Message, *, usage: Usage | None = None, id: str | None = None) -> AIMessage:
    """Return the message as LangChain's. Calls that were cut off or malformed are its `invalid_tool_calls`.

    Raises ToolgramError if langchain-core is not installed.
    """
    calls, failed = [], []
    for call in message.tool_calls:
        if call.status == "complete":
            arguments = json.loads(call.arguments)
            calls.append({"name": call.name, "args": arguments, "id": call.id, "type": "tool_call"})
        else:
            failed.append((call, _WHY["truncated"]))
    failed += [(call, _WHY["malformed"]) for call in message.malformed]  # type: ignore[misc]
    invalid = [
        {"name": call.name, "args": call.arguments, "id": call.id, "error": why, "type": "invalid_tool_call"}
        for call, why in failed
    ]
    made: AIMessage = _messages().AIMessage(
        content=message.content or "",
        additional_kwargs=_reasoning(message.reasoning or ""),
        tool_calls=calls,
        invalid_tool_calls=invalid,
        response_metadata={"finish_reason": message_finish_reason(message)},
        usage_metadata=_usage(usage),
        id=id,
    )
    return made


class AIMessageChunks:
    """The chunks of one streamed message, whose sum is the message."""

    def __init__(self, *, calls: Calls = "whole", id: str | None = None) -> None:
        messages = _messages()
        self._chunk, self._call = messages.AIMessageChunk, messages.tool.tool_call_chunk
        self.shaping = Shaping(calls)
        self._id = id
        self._content, self._thought = LeadingBlanks(), LeadingBlanks()
        self._failed = 0

    def feed(self, events: Iterable[Event]) -> list[AIMessageChunk]:
        """Return the chunks for these events."""
        chunks: list[AIMessageChunk] = []
        for piece in self.shaping.pieces(events):
            fields: dict[str, Any] = {"content": ""}
            if isinstance(piece, Content):
                fields = {"content": self._content.take(piece.text)}
            elif isinstance(piece, Reasoning):
                fields["additional_kwargs"] = _reasoning(self._thought.take(piece.text))
            elif isinstance(piece, ToolCallStart):
                fields["tool_call_chunks"] = [self._call(name=piece.name, args="", id=piece.id, index=piece.index)]
            elif isinstance(piece, ToolCallDelta):
                fields["tool_call_chunks"] = [self._call(args=piece.arguments, index=piece.index)]
            elif isinstance(piece, FailedCall):
                fields = self._invalid(piece)
            if any(fields.values()):
                chunks.append(self._chunk(id=self._id, **fields))
        return chunks

    def _invalid(self, call: FailedCall) -> dict[str, Any]:
        self._failed += 1  # an index that no other call has, and which the merge reads as another call
        made = self._call(name=call.name, args=json.dumps(call.arguments), id=call.id, index=-self._failed)
        text = self._content.take(call.text) if call.status == "malformed" else ""
        return {"content": text, "tool_call_chunks": [made]}

    def end(
        self, events: Iterable[Event] = (), reason: str | None = None, usage: Usage | None = None
    ) -> list[AIMessageChunk]:
        """Return the chunks for the last events, and the one that closes the message."""
        chunks = self.feed(events)
        said = finish_reason(reason, self.shaping.calls_are_whole, self.shaping.was_cut_off)
        metadata = {"finish_reason": said}
        last = self._chunk(
            content="", response_metadata=metadata, usage_metadata=_usage(usage), chunk_position="last", id=self._id
        )
        return [*chunks, last]
