"""Events as a client can take them: what is left of them when markers are gone and failed calls are dealt with.

Strategy: every adapter needs the same three decisions, so they are made once, before any shape is written. Markers go.
Malformed text is text. And a call is either passed on as it comes (`streamed`), or held until it has ended (`whole`):
then it is one call, whole, or the text that the model wrote. Calls that are passed on are numbered without gaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from toolgram.errors import ToolgramError
from toolgram.events import (
    Content,
    Dropped,
    Event,
    Malformed,
    Reasoning,
    Status,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)

Calls: TypeAlias = Literal["streamed", "whole"]


@dataclass(slots=True)
class FailedCall:
    """A call that was held and did not become whole. `text` is all that the model wrote of it, markers included."""

    id: str
    name: str
    arguments: str
    status: Status
    text: str


Piece: TypeAlias = Content | Reasoning | ToolCallStart | ToolCallDelta | ToolCallEnd | FailedCall


class Shaping:
    """Turns the events of one stream into pieces to be sent."""

    __slots__ = ("_after", "_dropped", "_held", "_said", "_sent", "_whole", "statuses")

    def __init__(self, calls: Calls = "streamed") -> None:
        if calls not in ("streamed", "whole"):
            raise ToolgramError(f"calls is 'streamed' or 'whole', not {calls!r}")
        self._whole = calls == "whole"
        self._held: list[Event] = []  # of the call that is open
        self._dropped: list[Dropped] = []  # since the last text or call
        self._after: str | None = None  # blanks after a held call that failed, whose text may go on
        self._said = False  # whether there was text before
        self._sent = -1  # the number of the last call that was passed on
        self.statuses: list[Status] = []  # of all calls, whether they were passed on or not

    def pieces(self, events: Iterable[Event]) -> list[Piece]:
        """Return what to send for these events."""
        out: list[Piece] = []
        for event in events:
            if isinstance(event, Dropped):
                (self._held if self._held else self._dropped).append(event)
                continue
            if isinstance(event, Malformed):
                event = Content(self._rest(event), event.source)
            else:
                self._after = None
            if isinstance(event, (Content, Reasoning)):
                self._said = self._said or (isinstance(event, Content) and bool(event.text.strip()))
                self._dropped.clear()
                if event.text:
                    out.append(event)
            elif self._whole:
                self._hold(event, out)
            else:
                out.append(event)
            if isinstance(event, ToolCallEnd):
                self.statuses.append(event.status)
                self._dropped.clear()
        return out

    def _rest(self, event: Malformed) -> str:
        """Return as text what could not be read; after a failed call that is text, as the model wrote it."""
        if self._after is None:
            return event.text
        text = "".join([self._after, *(each.source for each in self._dropped), event.source])
        self._after = ""
        return text

    def _hold(self, event: ToolCallStart | ToolCallDelta | ToolCallEnd, out: list[Piece]) -> None:
        """Keep what belongs to a call until it has ended."""
        if isinstance(event, ToolCallStart):
            self._held = [*_markers_before(self._dropped), event]
            return
        self._held.append(event)
        if not isinstance(event, ToolCallEnd):
            return
        held, self._held = self._held, []
        start = next(each for each in held if isinstance(each, ToolCallStart))
        arguments = "".join([each.arguments for each in held if isinstance(each, ToolCallDelta)])
        if event.status == "complete":
            self._sent += 1
            out.append(ToolCallStart(self._sent, start.id, start.name, ""))
            out.append(ToolCallDelta(self._sent, arguments, ""))
            out.append(ToolCallEnd(self._sent, "complete"))
            return
        written = "".join([each.source for each in held]).lstrip()
        text = written.rstrip()
        joined = f" {text}" if self._said else text
        self._said, self._after = True, written[len(text) :]
        out.append(FailedCall(start.id, start.name, arguments, event.status, joined))

    @property
    def calls_are_whole(self) -> bool:
        """Return whether the turn may be reported as ending with calls: it has some, and none is unfinished."""
        sent = [status for status in self.statuses if status == "complete" or not self._whole]
        return bool(sent) and all(status == "complete" for status in sent)

    @property
    def was_cut_off(self) -> bool:
        """Return whether the output ended inside a call."""
        return "truncated" in self.statuses


def _markers_before(dropped: list[Dropped]) -> list[Dropped]:
    """Return the markers that opened a call: what was dropped last, up to a blank."""
    at = len(dropped)
    while at and dropped[at - 1].source.strip():
        at -= 1
    return dropped[at:]


def finish_reason(given: str | None, calls_are_whole: bool, was_cut_off: bool) -> str:
    """Return the finish reason of chat completions. `given` is the server's, or None if it gave none."""
    if given in ("length", "content_filter"):
        return str(given)
    if was_cut_off:
        return "length"
    return "tool_calls" if calls_are_whole else "stop"


class LeadingBlanks:
    """Holds back blanks at the beginning of a text: a text of nothing else is none."""

    __slots__ = ("_begun", "_held")

    def __init__(self) -> None:
        self._begun, self._held = False, ""

    def take(self, text: str) -> str:
        """Return the text that may be sent."""
        if self._begun:
            return text
        self._held += text
        if not text.strip():
            return ""
        self._begun, text, self._held = True, self._held, ""
        return text
