"""Limit an answer to one call, if a request does not want parallel calls.

Strategy: the answer ends where a second call begins. The text before it stays. Reading on would be useless work, so the
caller stops the model.
"""

from __future__ import annotations

from dataclasses import replace

from toolgram.events import Event, ToolCallStart
from toolgram.message import Message, ToolCall


class CallLimit:
    """The part of an answer that is handed out. `over` is true after the one call that was asked for."""

    def __init__(self, parallel: bool) -> None:
        self._parallel = parallel
        self.over = False

    def events(self, events: list[Event]) -> list[Event]:
        """Return the events up to a second call."""
        if self._parallel:
            return events
        for at, event in enumerate(events):
            if isinstance(event, ToolCallStart) and event.index > 0:
                self.over = True
                return events[:at]
        return events

    def message(self, message: Message) -> Message:
        """Return the message up to a second call."""
        if not self.over:
            return message
        first = message.tool_calls[0] if message.tool_calls else None
        parts = [part for part in message.parts if not isinstance(part, ToolCall) or part is first]
        return replace(message, tool_calls=message.tool_calls[:1], parts=parts, finish_reason="stop")
