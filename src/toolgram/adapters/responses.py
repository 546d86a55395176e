"""OpenAI Responses: a response, and the events of a stream.

This is the one API that can say that a call was cut off: items have a status. A text or a thought is
`incomplete` if a response that was cut off ends with it. A response is a list of items in the order in which the model
wrote them: reasoning, messages, calls. What a request asked for is part of its response, so an adapter takes the
request's own fields (`request`) and gives them back.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from toolgram.adapters.chat import UniqueIds, message_finish_reason, new_id
from toolgram.adapters.shaping import Calls, FailedCall, LeadingBlanks, Shaping, finish_reason
from toolgram.adapters.usage import Usage
from toolgram.events import Content, Event, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.message import Message, ToolCall

# Fields of a request that its response repeats, and their values if the request does not have them.
_ECHOED: Mapping[str, Any] = {
    "instructions": None, "max_output_tokens": None, "max_tool_calls": None, "metadata": {},
    "parallel_tool_calls": True,
    "reasoning": None, "store": False, "temperature": None, "text": None, "tool_choice": "auto", "tools": [],
    "top_p": None, "truncation": "disabled", "user": None,
}  # fmt: skip
_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}


def _message_item(text: str, status: str, id: str | None = None) -> dict[str, Any]:
    content = [_text_part(text)] if status != "in_progress" else []
    made = {"id": id or new_id("msg_"), "type": "message", "role": "assistant", "status": status}
    return {**made, "content": content}


def _reasoning_item(text: str, status: str, id: str | None = None) -> dict[str, Any]:
    content = [{"type": "reasoning_text", "text": text}] if status != "in_progress" else []
    return {"id": id or new_id("rs_"), "type": "reasoning", "summary": [], "content": content, "status": status}


def _call_item(call_id: str, name: str, arguments: str, status: str, id: str | None = None) -> dict[str, Any]:
    made = {"id": id or new_id("fc_"), "type": "function_call", "call_id": call_id, "name": name}
    return {**made, "arguments": arguments, "status": status}


def _last_status(reason: str) -> str:
    """Return the status of a text or a thought with which a response ends."""
    return "incomplete" if reason in _INCOMPLETE else "completed"


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _response(
    head: Mapping[str, Any], output: list[dict[str, Any]], reason: str | None, usage: Usage | None
) -> dict[str, Any]:
    """Return the response object; `reason` is None while it goes on."""
    incomplete = _INCOMPLETE.get(reason or "")
    return {
        **head,
        "status": "in_progress" if reason is None else "incomplete" if incomplete else "completed",
        "incomplete_details": {"reason": incomplete} if incomplete else None,
        "output": output,
        "usage": None if usage is None else usage.responses(),
    }


def _head(model: str, request: Mapping[str, Any], id: str | None, created: float | None) -> dict[str, Any]:
    echoed = {key: default if request.get(key) is None else request[key] for key, default in _ECHOED.items()}
    made = time.time() if created is None else created
    fixed = {"id": id or new_id("resp_"), "object": "response", "created_at": made, "error": None, "model": model}
    return {**fixed, "previous_response_id": None, **echoed}


def to_response(
    message: Message,
    model: str = "",
    *,
    request: Mapping[str, Any] | None = None,
    usage: Usage | None = None,
    reasoning: bool = True,
    id: str | None = None,
    created: float | None = None,
) -> dict[str, Any]:
    """Return a whole response."""
    output: list[dict[str, Any]] = []
    ids, reason = UniqueIds(), message_finish_reason(message)
    if message.reasoning and reasoning:
        output.append(_reasoning_item(message.reasoning, "completed"))
    for part in message.parts:
        if isinstance(part, ToolCall):
            status = "completed" if part.status == "complete" else "incomplete"
            output.append(_call_item(ids.take(part.id), part.name, part.arguments, status))
        else:
            output.append(_message_item(part, "completed"))
    if output and output[-1]["type"] != "function_call":
        output[-1]["status"] = _last_status(reason)
    return _response(_head(model, request or {}, id, created), output, reason, usage)


class ResponseEvents:
    """The events of one streamed response."""

    def __init__(
        self,
        model: str = "",
        *,
        calls: Calls = "streamed",
        request: Mapping[str, Any] | None = None,
        reasoning: bool = True,
        id: str | None = None,
        created: float | None = None,
    ) -> None:
        self.shaping = Shaping(calls)
        self._ids = UniqueIds()
        self.head = _head(model, request or {}, id, created)
        self._reasoning = reasoning
        self._output: list[dict[str, Any]] = []  # the items that are done
        self._item: dict[str, Any] | None = None  # the one that is open,
        self._texts: list[str] = []  # and what was said in it
        self._blanks = LeadingBlanks()
        self._number = 0

    def start(self) -> list[dict[str, Any]]:
        """Return what a stream begins with."""
        out: list[dict[str, Any]] = []
        for kind in ("response.created", "response.in_progress"):
            self._send(out, kind, response=_response(self.head, [], None, None))
        return out

    def _send(self, out: list[dict[str, Any]], kind: str, **fields: Any) -> None:
        out.append({"type": kind, "sequence_number": self._number, **fields})
        self._number += 1

    def feed(self, events: Iterable[Event]) -> list[dict[str, Any]]:
        """Return the stream events for these events."""
        out: list[dict[str, Any]] = []
        for piece in self.shaping.pieces(events):
            if isinstance(piece, (Content, FailedCall)):
                self._say("message", piece.text, out)
            elif isinstance(piece, Reasoning):
                if self._reasoning:
                    self._say("reasoning", piece.text, out)
            elif isinstance(piece, ToolCallStart):
                self._begin(_call_item(self._ids.take(piece.id), piece.name, "", "in_progress"), out)
            elif isinstance(piece, ToolCallDelta):
                if piece.arguments:
                    self._delta("response.function_call_arguments.delta", piece.arguments, out)
            elif isinstance(piece, ToolCallEnd):
                self._finish(out, "completed" if piece.status == "complete" else "incomplete")
        return out

    def _say(self, kind: str, text: str, out: list[dict[str, Any]]) -> None:
        """Send text in an item of its kind; blanks do not begin one."""
        if self._item is None or self._item["type"] != kind:
            self._finish(out)
            text = self._blanks.take(text)
            if not text:
                return
            self._begin(
                _message_item("", "in_progress") if kind == "message" else _reasoning_item("", "in_progress"), out
            )
            part = _text_part("") if kind == "message" else {"type": "reasoning_text", "text": ""}
            self._send(out, "response.content_part.added", **self._at(), content_index=0, part=part)
        extra: dict[str, Any] = {"content_index": 0}
        if kind == "message":
            self._delta("response.output_text.delta", text, out, logprobs=[], **extra)
        else:
            self._delta("response.reasoning_text.delta", text, out, **extra)

    def _at(self) -> dict[str, Any]:
        assert self._item is not None
        return {"item_id": self._item["id"], "output_index": len(self._output)}

    def _begin(self, item: dict[str, Any], out: list[dict[str, Any]]) -> None:
        self._finish(out)
        self._item = item
        self._send(out, "response.output_item.added", output_index=len(self._output), item=item)

    def _delta(self, kind: str, text: str, out: list[dict[str, Any]], **extra: Any) -> None:
        self._texts.append(text)
        self._send(out, kind, **self._at(), delta=text, **extra)

    def _finish(self, out: list[dict[str, Any]], status: str = "completed") -> None:
        """Close the item that is open."""
        item = self._item
        if item is None:
            return
        text, self._texts, self._blanks = "".join(self._texts), [], LeadingBlanks()
        if item["type"] == "function_call":
            done = _call_item(item["call_id"], item["name"], text, status, item["id"])
            kind = "response.function_call_arguments.done"
            self._send(out, kind, **self._at(), arguments=text, name=item["name"])
        elif item["type"] == "message":
            done = _message_item(text, status, item["id"])
            self._send(out, "response.output_text.done", **self._at(), content_index=0, text=text, logprobs=[])
        else:
            done = _reasoning_item(text, status, item["id"])
            self._send(out, "response.reasoning_text.done", **self._at(), content_index=0, text=text)
        if item["type"] != "function_call":
            part = done["content"][0]
            self._send(out, "response.content_part.done", **self._at(), content_index=0, part=part)
        self._send(out, "response.output_item.done", output_index=len(self._output), item=done)
        self._output.append(done)
        self._item = None

    def end(
        self, events: Iterable[Event] = (), reason: str | None = None, usage: Usage | None = None
    ) -> list[dict[str, Any]]:
        """Return the stream events for the last events, and the one that closes the response."""
        out = self.feed(events)
        said = finish_reason(reason, self.shaping.calls_are_whole, self.shaping.was_cut_off)
        self._finish(out, _last_status(said))
        made = _response(self.head, list(self._output), said, usage)
        self._send(out, f"response.{made['status']}", response=made)
        return out

    def fail(self, code: str, message: str) -> list[dict[str, Any]]:
        """Return what ends a stream that the server could not finish."""
        out: list[dict[str, Any]] = []
        self._finish(out, "incomplete")
        made = _response(self.head, list(self._output), None, None)
        made.update(status="failed", error={"code": "server_error", "message": message})
        self._send(out, "error", code=code, message=message, param=None)
        self._send(out, "response.failed", response=made)
        return out
