"""OpenAI chat completions: a message, and the chunks of a stream.

What a client may choke on decides what is written here. Indexes of calls begin at 0 and have no gaps. The id and the
name of a call are sent once, since the official client joins what is sent twice. The finish reason is `tool_calls`
only if every call that was sent is whole, because a client cannot see otherwise that arguments were cut off.

Reasoning has no place in this API. Servers use three, and `reasoning` says which: `reasoning_content` (most servers),
`reasoning`, or `reasoning_details`; None leaves it out.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from toolgram.adapters.shaping import Calls, FailedCall, LeadingBlanks, Shaping, finish_reason
from toolgram.adapters.usage import Usage
from toolgram.call_ids import random_call_ids
from toolgram.errors import ToolgramError
from toolgram.events import Content, Event, Reasoning, ToolCallDelta, ToolCallStart
from toolgram.message import Message, ToolCall

REASONING_KEYS = ("reasoning_content", "reasoning", "reasoning_details")
_IDS = random_call_ids("call_24")


def new_id(kind: str) -> str:
    """Return an id for an object of an API, such as `chatcmpl-...`."""
    return kind + _IDS().removeprefix("call_")


class UniqueIds:
    """Ids of the calls of one answer, for clients that know a call by its id: one that a model writes again is new."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, id: str) -> str:
        """Return this id, or another one if it is taken."""
        made = new_id("call_") if id in self._taken else id
        self._taken.add(made)
        return made


def reasoning_fields(text: str | None, key: str | None) -> dict[str, Any]:
    """Return reasoning under the name that was chosen, or nothing if there is no reasoning."""
    if key is not None and key not in REASONING_KEYS:
        raise ToolgramError(f"reasoning is {', '.join(REASONING_KEYS)} or None, not {key!r}")
    if not text or key is None:
        return {}
    return {key: [{"type": "reasoning.text", "text": text, "index": 0}] if key == "reasoning_details" else text}


def to_chat_message(message: Message, reasoning: str | None = "reasoning_content") -> dict[str, Any]:
    """Return the assistant's message of a chat completion.

    A call that was cut off is among the calls, as with OpenAI itself: `to_chat_completion` then says `length`. A call
    that failed is text. Raises ToolgramError for an unknown name of reasoning.
    """
    said: dict[str, Any] = {"role": "assistant", "content": message.content, "refusal": None}
    said.update(reasoning_fields(message.reasoning, reasoning))
    if message.tool_calls:
        said["tool_calls"] = [_call(call) for call in message.tool_calls]
    return said


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def message_finish_reason(message: Message) -> str:
    """Return the finish reason of a whole message, in the words of chat completions."""
    statuses = [call.status for call in message.tool_calls]
    whole = bool(statuses) and all(status == "complete" for status in statuses)
    return finish_reason(message.finish_reason, whole, "truncated" in statuses)


def to_chat_completion(
    messages: Message | Iterable[Message],
    model: str = "",
    *,
    usage: Usage | None = None,
    reasoning: str | None = "reasoning_content",
    id: str | None = None,
    created: int | None = None,
) -> dict[str, Any]:
    """Return a whole chat completion, of one message or of several choices."""
    choices = [
        {
            "index": at,
            "message": to_chat_message(message, reasoning),
            "finish_reason": message_finish_reason(message),
            "logprobs": None,
        }
        for at, message in enumerate([messages] if isinstance(messages, Message) else messages)
    ]
    made: dict[str, Any] = {
        "id": id or new_id("chatcmpl-"),
        "object": "chat.completion",
        "created": int(time.time()) if created is None else created,
        "model": model,
        "choices": choices,
    }
    if usage is not None:
        made["usage"] = usage.chat()
    return made


class ChatChunks:
    """The chunks of one choice of a streamed chat completion.

    `index` is that of the choice; choices of one completion share `id` and `created`.
    """

    def __init__(
        self,
        model: str = "",
        *,
        calls: Calls = "streamed",
        reasoning: str | None = "reasoning_content",
        id: str | None = None,
        created: int | None = None,
        index: int = 0,
    ) -> None:
        reasoning_fields("", reasoning)
        self.shaping = Shaping(calls)
        self._reasoning = reasoning
        self._index = index
        self._head: Mapping[str, Any] = {
            "id": id or new_id("chatcmpl-"),
            "object": "chat.completion.chunk",
            "created": int(time.time()) if created is None else created,
            "model": model,
        }
        self._content, self._thought = LeadingBlanks(), LeadingBlanks()

    def _chunk(self, delta: Mapping[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": self._index, "delta": delta, "finish_reason": reason, "logprobs": None}
        return {**self._head, "choices": [choice]}

    def start(self) -> list[dict[str, Any]]:
        """Return what a stream begins with."""
        return [self._chunk({"role": "assistant", "content": ""})]

    def feed(self, events: Iterable[Event]) -> list[dict[str, Any]]:
        """Return the chunks for these events."""
        chunks = []
        for piece in self.shaping.pieces(events):
            delta: dict[str, Any] = {}
            if isinstance(piece, (Content, FailedCall)):
                text = self._content.take(piece.text)
                delta = {"content": text} if text else {}
            elif isinstance(piece, Reasoning):
                delta = reasoning_fields(self._thought.take(piece.text), self._reasoning)
            elif isinstance(piece, ToolCallStart):
                function = {"name": piece.name, "arguments": ""}
                delta = {
                    "tool_calls": [{"index": piece.index, "id": piece.id, "type": "function", "function": function}]
                }
            elif isinstance(piece, ToolCallDelta) and piece.arguments:
                delta = {"tool_calls": [{"index": piece.index, "function": {"arguments": piece.arguments}}]}
            if delta:
                chunks.append(self._chunk(delta))
        return chunks

    def end(
        self, events: Iterable[Event] = (), reason: str | None = None, usage: Usage | None = None
    ) -> list[dict[str, Any]]:
        """Return the chunks for the last events and the finish reason; with `usage`, a chunk for it as well.

        `reason` is the server's word for why the model stopped. `[DONE]` is not among them, since choices may follow.
        """
        chunks = self.feed(events)
        given = finish_reason(reason, self.shaping.calls_are_whole, self.shaping.was_cut_off)
        chunks.append(self._chunk({}, given))
        if usage is not None:
            chunks.append(self.usage(usage))
        return chunks

    def usage(self, usage: Usage) -> dict[str, Any]:
        """Return the chunk that says how many tokens a request took."""
        return {**self._head, "choices": [], "usage": usage.chat()}
