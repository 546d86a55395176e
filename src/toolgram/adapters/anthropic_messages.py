"""Anthropic messages: a message, and the events of a stream.

A message is a list of blocks, one after the other: text, thinking, tool use. So text after a call is a block of its
own. A block of tool use holds its arguments as a value, which a call that was cut off has none of: in a whole message
such a call is text. In a stream its block ends with what there was, and the stop reason is never `tool_use`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolgram.adapters.chat import UniqueIds, message_finish_reason, new_id
from toolgram.adapters.shaping import Calls, FailedCall, LeadingBlanks, Shaping, finish_reason
from toolgram.adapters.usage import Usage
from toolgram.events import Content, Event, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.message import Message, ToolCall

_STOP_REASONS = {"length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal", "stop": "end_turn"}


def to_anthropic_message(
    message: Message,
    model: str = "",
    *,
    usage: Usage | None = None,
    reasoning: bool = True,
    stop_sequence: str | None = None,
    id: str | None = None,
) -> dict[str, Any]:
    """Return a whole message. `stop_sequence` is the one at which the model was stopped, if any."""
    blocks: list[dict[str, Any]] = []
    ids = UniqueIds()
    if message.reasoning and reasoning:
        blocks.append({"type": "thinking", "thinking": message.reasoning, "signature": ""})
    for part in message.parts:
        if not isinstance(part, ToolCall):
            blocks.append({"type": "text", "text": part})
        elif part.status == "complete":
            given = json.loads(part.arguments)
            blocks.append({"type": "tool_use", "id": ids.take(part.id), "name": part.name, "input": given})
        else:
            blocks.append({"type": "text", "text": f'{{"name": {json.dumps(part.name)}, "input": {part.arguments}'})
    made = _message(id or new_id("msg_"), model, blocks, usage)
    return {**made, **_stopped(message_finish_reason(message), stop_sequence)}


def _message(id: str, model: str, blocks: list[dict[str, Any]], usage: Usage | None) -> dict[str, Any]:
    return {
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": None,
        "stop_sequence": None,
        "usage": (usage or Usage()).anthropic(),
    }


def _stopped(reason: str, stop_sequence: str | None) -> dict[str, Any]:
    if stop_sequence is not None:
        return {"stop_reason": "stop_sequence", "stop_sequence": stop_sequence}
    return {"stop_reason": _STOP_REASONS[reason], "stop_sequence": None}


class MessageEvents:
    """The events of one streamed message."""

    def __init__(
        self, model: str = "", *, calls: Calls = "streamed", reasoning: bool = True, id: str | None = None
    ) -> None:
        self.shaping = Shaping(calls)
        self._ids = UniqueIds()
        self._id, self._model, self._reasoning = id or new_id("msg_"), model, reasoning
        self._open = ""  # the type of the block that is open
        self._count = 0
        self._blanks = LeadingBlanks()

    def start(self, usage: Usage | None = None) -> list[dict[str, Any]]:
        """Return what a stream begins with."""
        return [{"type": "message_start", "message": _message(self._id, self._model, [], usage)}]

    def feed(self, events: Iterable[Event]) -> list[dict[str, Any]]:
        """Return the stream events for these events."""
        out: list[dict[str, Any]] = []
        for piece in self.shaping.pieces(events):
            if isinstance(piece, (Content, FailedCall)):
                self._say("text", piece.text, out)
            elif isinstance(piece, Reasoning):
                if self._reasoning:
                    self._say("thinking", piece.text, out)
            elif isinstance(piece, ToolCallStart):
                self._begin({"type": "tool_use", "id": self._ids.take(piece.id), "name": piece.name, "input": {}}, out)
            elif isinstance(piece, ToolCallDelta):
                if piece.arguments:
                    self._delta({"type": "input_json_delta", "partial_json": piece.arguments}, out)
            elif isinstance(piece, ToolCallEnd):
                self._finish(out)
        return out

    def relay(self, said: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return a server's event of a block of its own (a call, a result, a signature) with the index that it has
        here."""
        out: list[dict[str, Any]] = []
        if said.get("type") == "content_block_start":
            self._begin(dict(said["content_block"]), out)
        elif said.get("type") == "content_block_delta":
            self._delta(dict(said["delta"]), out)
        else:
            self._finish(out)
        return out

    def _say(self, kind: str, text: str, out: list[dict[str, Any]]) -> None:
        """Send text in a block of its kind; blanks do not begin one."""
        if self._open != kind:
            self._finish(out)
            text = self._blanks.take(text)
            if not text:
                return
            self._begin({"type": kind, kind: "", **({"signature": ""} if kind == "thinking" else {})}, out)
        self._delta({"type": f"{kind}_delta", kind: text}, out)

    def _begin(self, block: dict[str, Any], out: list[dict[str, Any]]) -> None:
        self._finish(out)
        self._open = block["type"]
        out.append({"type": "content_block_start", "index": self._count, "content_block": block})

    def _delta(self, delta: dict[str, Any], out: list[dict[str, Any]]) -> None:
        out.append({"type": "content_block_delta", "index": self._count, "delta": delta})

    def _finish(self, out: list[dict[str, Any]]) -> None:
        if self._open:
            out.append({"type": "content_block_stop", "index": self._count})
            self._open, self._blanks = "", LeadingBlanks()
            self._count += 1

    def end(
        self,
        events: Iterable[Event] = (),
        reason: str | None = None,
        usage: Usage | None = None,
        stop_sequence: str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the stream events for the last events, and those that close the message."""
        out = self.feed(events)
        self._finish(out)
        said = finish_reason(reason, self.shaping.calls_are_whole, self.shaping.was_cut_off)
        counted = (usage or Usage()).anthropic()
        out.append({"type": "message_delta", "delta": _stopped(said, stop_sequence), "usage": counted})
        out.append({"type": "message_stop"})
        return out
