"""The message that events add up to, and what was odd about it.

A message is a fold over events and nothing else, so that a stream and a whole-text parse cannot differ.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, MutableSequence, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from toolgram.errors import ToolgramError
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


_NO_NAMES: frozenset[str] = frozenset()
_FORGOTTEN: deque[str] = deque(maxlen=0)


class MessageBuilder:
    """Folds events into a message as they come, keeping texts and no events.

    `content`, `reasoning` and `fragments` (of the call that is open) are lists to append text to: the parser's short
    path does just that. With `keep` false everything is forgotten at once, and there is no message to ask for.
    """

    __slots__ = (
        "_anomalies", "_broken_at", "_calls", "_finish_reason", "_finished", "_keep", "_names", "_notes", "content",
        "fragments", "reasoning",
    )  # fmt: skip

    def __init__(self, tools: Sequence[Mapping[str, Any]] | None = None, keep: bool = True) -> None:
        self._keep = keep
        self._names = tool_names(tools) if tools else _NO_NAMES
        self.content: MutableSequence[str] = [] if keep else _FORGOTTEN
        self.reasoning: MutableSequence[str] = [] if keep else _FORGOTTEN
        self.fragments: MutableSequence[str] = _FORGOTTEN
        self._calls: list[tuple[ToolCall, MutableSequence[str]]] | None = None
        self._anomalies: list[tuple[str, list[str], str]] | None = None  # kind, pieces of the text, why
        self._notes: list[Anomaly] | None = None
        self._broken_at = -1  # how much content there was after the last malformed text
        self._finish_reason: str | None = None
        self._finished = False

    def add(self, events: Iterable[Event]) -> None:
        """Add events, in order."""
        if not self._keep:
            return
        for event in events:
            if isinstance(event, Content):
                self.content.append(event.text)
            elif isinstance(event, Reasoning):
                self.reasoning.append(event.text)
            elif isinstance(event, ToolCallDelta):
                self.fragments.append(event.arguments)
            elif isinstance(event, ToolCallStart):
                self._start(event)
            elif isinstance(event, ToolCallEnd):
                self._end(event)
            elif isinstance(event, Malformed):
                self._malformed(event)

    def _start(self, event: ToolCallStart) -> None:
        self.fragments = []
        if self._calls is None:
            self._calls = []
        self._calls.append((ToolCall(event.id, event.name, "", "truncated"), self.fragments))
        if self._names and event.name not in self._names:
            self._odd("unknown_tool", event.name, "no tool of this name was declared")

    def _end(self, event: ToolCallEnd) -> None:
        assert self._calls
        call, _ = self._calls[-1]
        call.status = event.status
        if event.status != "complete":
            self._odd(f"{event.status}_call", call.name, _WHY[event.status])

    def _malformed(self, event: Malformed) -> None:
        _, pieces, why = self._anomalies[-1] if self._anomalies else ("", [], "")
        if self._broken_at == len(self.content) and why == event.why:
            pieces.append(event.text)
        else:
            self._odd("malformed_text", event.text, event.why)
        self.content.append(event.text)
        self._broken_at = len(self.content)

    def _odd(self, kind: str, text: str, why: str) -> None:
        if self._anomalies is None:
            self._anomalies = []
        self._anomalies.append((kind, [text], why))

    def note(self, anomaly: Anomaly) -> None:
        """Add a deviation that no event shows."""
        if not self._keep:
            return
        if self._notes is None:
            self._notes = []
        self._notes.append(anomaly)

    @property
    def deviations(self) -> int:
        """How many deviations were added that no event shows."""
        return len(self._notes or ())

    def finish(self, finish_reason: str | None) -> None:
        """The output is over."""
        self._finished = True
        self._finish_reason = finish_reason

    def message(self) -> Message:
        """The message so far. Costs as much as it is long. Raises ToolgramError where nothing was kept."""
        if not self._keep:
            raise ToolgramError("this parser keeps no message; make it with keep_message=True, or fold its events")
        calls = [replace(call, arguments="".join(fragments)) for call, fragments in self._calls or ()]
        anomalies = [replace(anomaly) for anomaly in self._notes or ()]
        anomalies += [Anomaly(kind, "".join(pieces), why) for kind, pieces, why in self._anomalies or ()]
        return Message(_text(self.content), _text(self.reasoning), calls, anomalies, self._reason(calls))

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


def _text(pieces: Iterable[str]) -> str | None:
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
