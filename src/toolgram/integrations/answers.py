"""A whole answer as a server's message: failed calls, and reasoning if the server runs no reasoning parser.

In one message, a call that cannot be read is the text that the model wrote, at its place: no client has to guard
`json.loads`. A call that was cut off remains a call, with the beginning of its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableSequence
from typing import Any

from toolgram.events import BufferedEvent, Content, Dropped, Malformed, Note, Reasoning, Status, ToolCallStart
from toolgram.message import UNFINISHED, Message, MessageBuilder

TEXT, CALL = "text", "call"
WHOLE = "whole"  # like TEXT, and a call that was cut off is text as well

FAILED: Mapping[str, frozenset[Status]] = {  # setting -> statuses of calls that become text
    TEXT: frozenset({"malformed"}),
    WHOLE: UNFINISHED,
    CALL: frozenset(),
}


class AnswerBuilder(MessageBuilder):
    """The message of a whole answer, with failed calls as the setting says."""

    __slots__ = ("_failed_as_text", "_plain")

    def __init__(self, failed_as_text: frozenset[Status], plain: PlainThought | None = None) -> None:
        super().__init__()
        self._failed_as_text, self._plain = failed_as_text, plain

    @property
    def reasoning(self) -> MutableSequence[str]:
        """The list that reasoning is added to."""
        return super().reasoning if self._plain is None else self.content

    def add(self, events: Iterable[BufferedEvent], offset: int = 0) -> None:
        """Add events in order; `offset` is where the first of them begins."""
        super().add(events if self._plain is None else self._plain(events), offset)

    def answer(self) -> Message:
        """Return the message."""
        return self.message((), self._failed_as_text)


class PlainThought:
    """Turns reasoning back into text, markers included, as vLLM expects it without a reasoning parser."""

    def __init__(self, marks: frozenset[str]) -> None:
        self._marks, self._thinking, self._blank = marks, False, ""

    def __call__(self, events: Iterable[Any]) -> list[Any]:
        """Return the events, with reasoning and its markers as content."""
        plain: list[Any] = []
        for event in events:
            kind = type(event)
            if kind is Note:
                plain.append(event)
                continue
            source = event.source
            mark = kind is Dropped and source in self._marks
            if kind is Reasoning or mark or (self._thinking and kind in (Content, Dropped)):
                plain.append(Content(self._blank + source, source))
                self._thinking = kind is not Content
            else:
                plain.append(event)
                self._thinking = self._thinking and kind not in (ToolCallStart, Malformed)
            self._blank = source if kind is Dropped and not self._thinking and source.isspace() else ""
        return plain
