"""What ends an answer early: a second call if a request wants only one, and the stop strings of a request.

Strategy: reading on after a second call would be useless work, so the caller stops the model. Servers differ with
stop strings. Some leave the string in their text, some compare tokens and continue if the model spells it
differently. So the answer is cut here: its text ends before the stop string that ends first, and text that may begin
one is held back.
"""

from __future__ import annotations

from collections.abc import Sequence
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


class StopTexts:
    """The text of an answer up to the first of some strings. `found` is the string that ended it."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [text for text in texts if text]
        self._held = ""
        self.found: str | None = None

    def feed(self, text: str) -> str:
        """Return the part of the text so far that can be passed on."""
        text = self._held + text
        places = [(at + len(each), at, each) for each in self._texts if (at := text.find(each)) >= 0]
        if places:
            _, at, self.found = min(places)
            self._held = ""
            return text[:at]
        held = max((self._begun(text, each) for each in self._texts), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def end(self) -> str:
        """Return what was held back, at the end of the text."""
        text, self._held = self._held, ""
        return text

    @staticmethod
    def _begun(text: str, stop: str) -> int:
        """Return how much of a stop string the text ends with."""
        sizes = range(min(len(stop) - 1, len(text)), 0, -1)
        return next((size for size in sizes if text.endswith(stop[:size])), 0)
