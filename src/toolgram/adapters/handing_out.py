"""The part of an answer that a client gets, as events and as a message: one call if a request wants only one.

Strategy: whoever runs the model stops it at a second call, since reading on would be useless work. A parser may have
read on in the same delta, so events and message are cut at the same event, and nothing depends on the deltas.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from toolgram.adapters.chat import message_finish_reason
from toolgram.adapters.shaping import Calls
from toolgram.anomalies import Anomaly
from toolgram.events import BufferedEvent, Event, Status, ToolCallEnd, ToolCallStart
from toolgram.message import MALFORMED, UNFINISHED, Message, MessageBuilder


class HandedOut(MessageBuilder):
    """The part of an answer that is handed out; a parser folds its events with this. If calls are not `parallel`, it
    ends where a call begins after one that did not fail: a failed call is text."""

    __slots__ = ("_called", "_parallel", "_second", "_until")

    def __init__(self, parallel: bool) -> None:
        super().__init__()
        self._parallel, self._called, self._until = parallel, False, 0
        self._second: ToolCallStart | None = None

    @property
    def over(self) -> bool:
        """Whether a second call has begun: nothing after it is handed out."""
        return self._second is not None

    def add(self, events: Iterable[BufferedEvent], offset: int = 0) -> None:
        """Add events up to a second call; `offset` is where the first of them begins."""
        if not self.over:
            kept = list(takewhile(self._goes_on, events))
            super().add(kept, offset)
            self._until = offset + sum([len(event.source) for event in kept])

    def _goes_on(self, event: BufferedEvent) -> bool:
        if isinstance(event, ToolCallStart) and self._called and not self._parallel:
            self._second = event
        self._called = self._called or (isinstance(event, ToolCallEnd) and event.status != "malformed")
        return not self.over

    def events(self, events: list[Event]) -> list[Event]:
        """Return the events up to a second call, of those that the parser has just made."""
        return list(takewhile(lambda event: event is not self._second, events))

    def message(self, anomalies: Sequence[Anomaly] = (), failed_as_text: Container[Status] = MALFORMED) -> Message:
        """Return the message up to a second call."""
        if not self.over:
            return super().message(anomalies, failed_as_text)
        made = super().message([each for each in anomalies if each.start < self._until], failed_as_text)
        return replace(made, finish_reason="stop")

    def answer(self, calls: Calls) -> Message:
        """Return the message as a client gets it: if `calls` are whole, one that was cut off is text."""
        message = self.message()
        if calls == "streamed" or all(call.status == "complete" for call in message.tool_calls):
            return message
        return replace(self.message((), UNFINISHED), finish_reason=message_finish_reason(message))
