"""The message that events add up to, and what was odd about it.

A message is a fold over events and nothing else, so that a stream and a whole-text parse cannot differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgram.events import (
    Content,
    Event,
    Malformed,
    Reasoning,
    Status,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)


@dataclass(slots=True)
class ToolCall:
    """One call. `arguments` is a JSON string as in the OpenAI API: whole where `status` is `complete`, else as far as
    it was written."""

    id: str
    name: str
    arguments: str
    status: Status


@dataclass(slots=True)
class Anomaly:
    """Something a clean output would not have: its kind, the text it is about, and why in plain words."""

    kind: str
    text: str
    why: str


@dataclass(slots=True)
class Message:
    """One assistant message. `content` and `reasoning` are None when there is nothing but whitespace."""

    content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ToolCall] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)
    finish_reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The message as JSON-able data."""
        return {
            "content": self.content,
            "reasoning": self.reasoning,
            "tool_calls": [
                {"id": call.id, "name": call.name, "arguments": call.arguments, "status": call.status}
                for call in self.tool_calls
            ],
            "anomalies": [{"kind": a.kind, "text": a.text, "why": a.why} for a in self.anomalies],
            "finish_reason": self.finish_reason,
        }


class MessageBuilder:
    """Collects events; builds the message when it is asked for."""

    __slots__ = ("_events", "_finish_reason", "_finished", "_names", "_notes")

    def __init__(self, tools: Sequence[Mapping[str, Any]] | None = None) -> None:
        self._events: list[Event] = []
        self._names = tool_names(tools) if tools else frozenset()
        self._notes: list[Anomaly] = []
        self._finish_reason: str | None = None
        self._finished = False

    def append(self, event: Event) -> None:
        """Add one event."""
        self._events.append(event)

    def add(self, events: Iterable[Event]) -> None:
        """Add events, in order."""
        self._events.extend(events)

    def note(self, anomaly: Anomaly) -> None:
        """Add a deviation that no event shows."""
        self._notes.append(anomaly)

    def finish(self, finish_reason: str | None) -> None:
        """The output is over."""
        self._finished = True
        self._finish_reason = finish_reason

    def message(self) -> Message:
        """The message so far. Linear in the number of events."""
        content: list[str] = []
        reasoning: list[str] = []
        calls: dict[int, ToolCall] = {}
        fragments: dict[int, list[str]] = {}
        anomalies: list[Anomaly] = []
        broken: list[str] = []
        for event in self._events:
            if isinstance(event, Malformed):
                content.append(event.text)
                if broken and anomalies[-1].why == event.why:
                    anomalies[-1].text += event.text
                else:
                    anomalies.append(Anomaly("malformed_text", event.text, event.why))
                broken.append(event.text)
                continue
            broken.clear()
            if isinstance(event, Content):
                content.append(event.text)
            elif isinstance(event, Reasoning):
                reasoning.append(event.text)
            elif isinstance(event, ToolCallStart):
                calls[event.index] = ToolCall(event.id, event.name, "", "truncated")
                fragments[event.index] = []
                if self._names and event.name not in self._names:
                    anomalies.append(Anomaly("unknown_tool", event.name, "no tool of this name was declared"))
            elif isinstance(event, ToolCallDelta):
                fragments[event.index].append(event.arguments)
            elif isinstance(event, ToolCallEnd):
                call = calls[event.index]
                call.status = event.status
                if event.status != "complete":
                    anomalies.append(Anomaly(f"{event.status}_call", call.name, _WHY[event.status]))
        for index, call in calls.items():
            call.arguments = "".join(fragments[index])
        tool_calls = [calls[index] for index in sorted(calls)]
        return Message(_text(content), _text(reasoning), tool_calls, self._notes + anomalies, self._reason(tool_calls))

    def _reason(self, calls: list[ToolCall]) -> str | None:
        if self._finish_reason is not None or not self._finished:
            return self._finish_reason
        if any(call.status == "truncated" for call in calls):
            return "length"
        return "tool_calls" if any(call.status == "complete" for call in calls) else "stop"


_WHY = {
    "truncated": "the output ended before the call did",
    "malformed": "the call could not be read to its end",
}


def _text(pieces: list[str]) -> str | None:
    text = "".join(pieces)
    return text if text.strip() else None


def tool_names(tools: Iterable[Any]) -> frozenset[str]:
    """The function names of OpenAI tool dicts; what has another shape is passed over."""
    names = set()
    for tool in tools:
        function = tool.get("function") if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(name, str):
            names.add(name)
    return frozenset(names)
