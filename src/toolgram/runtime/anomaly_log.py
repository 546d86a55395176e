"""Anomalies with their places: told from the events of a stream, in order.

Strategy: every character belongs to one event, so the place of anything is the length of all sources before it.  Notes
stand among the events; here they are taken out of what is emitted and become anomalies.  Those that events themselves
tell (a call that is not complete, text that could not be read) are found at the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, MutableSequence
from typing import cast

from toolgram.anomalies import KINDS, Anomaly
from toolgram.events import BufferedEvent, Dropped, Event, Malformed, Note, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.limits import MOST_ANOMALY_TEXT, MOST_UNTAKEN_ANOMALIES

_MARKUP = (Dropped, ToolCallDelta)


class AnomalyLog:
    """The anomalies of one stream. `offset` counts the characters that events have accounted for."""

    __slots__ = (
        "_anomalies",
        "_call",
        "_calls_in",
        "_keep",
        "_malformed_to",
        "_name",
        "_names",
        "_repeated",
        "_rest_to",
        "_taken",
        "offset",
    )

    def __init__(self, names: frozenset[str], keep: bool, calls_in: Callable[[str], list[dict[str, str]]]) -> None:
        self._names = names
        self._calls_in = calls_in  # reads the calls that a quoted text would be
        self._name = ""  # of the last call
        self._keep = keep
        self._anomalies: MutableSequence[Anomaly] | None = None  # made with the first of them
        self._repeated: set[str] = set()  # arguments of the open call that were noted where they stand
        self._taken = 0  # how many were taken, of those that are kept
        self._call: int | None = None
        self._malformed_to = -1  # where the malformed text ends that the last anomaly is about
        self._rest_to = -1  # where the text ends that belongs to the call that has just failed
        self.offset = 0

    def read(self, events: Iterable[BufferedEvent], repeated: Iterable[tuple[int, str]] = ()) -> list[Event]:
        """Events in order; returns those to be emitted, which is all but the notes.

        `repeated` are arguments of calls that end in them, by index, that came before in the same call.
        """
        emitted: list[Event] = []
        for event in events:
            if self._rest_to < 0 and type(event) in _MARKUP:  # nearly all events, and nothing to note of them
                emitted.append(cast("Event", event))
                self.offset += len(event.source)
                continue
            if isinstance(event, Note):
                self._note(event)
                continue
            emitted.append(event)
            if isinstance(event, ToolCallStart):
                self._start(event)
            elif isinstance(event, ToolCallEnd):
                self._end(event, repeated)
            elif isinstance(event, Malformed):
                self._add_malformed(event)
            elif self._rest_to == self.offset and not event.source.strip():
                self._rest_to += len(event.source)
            self.offset += len(event.source)
        return emitted

    def _note(self, note: Note) -> None:
        if note.kind == "quoted_call":
            self._add_quoted(note)
        elif note.kind in KINDS:
            self.add(note.kind, note.text, ahead=note.ahead)
        if note.kind == "repeated_argument":
            self._repeated.add(note.text)

    def _add_quoted(self, note: Note) -> None:
        """Add text that would be a call, if it would be."""
        calls = self._calls_in(note.text)
        if calls:
            kind, text = note.kind, note.text[:MOST_ANOMALY_TEXT]
            self._append(Anomaly(kind, self.offset + note.ahead, text, None, KINDS[kind], calls))

    def _start(self, event: ToolCallStart) -> None:
        self._call, self._name, self._repeated = event.index, event.name, set()
        if self._names and event.name not in self._names:
            self.add("unknown_tool", event.name)

    def _end(self, event: ToolCallEnd, repeated: Iterable[tuple[int, str]]) -> None:
        if event.status != "complete":
            self.add(event.status, self._name)
        else:
            self._add_repeated(event.index, repeated)
        self._rest_to, self._call = (self.offset if event.status == "malformed" else -1), None

    def add(self, kind: str, text: str, why: str = "", ahead: int = 0) -> None:
        """An anomaly at the present place, or so many characters after it."""
        self._append(Anomaly(kind, self.offset + ahead, text, self._call, why or KINDS[kind]))

    def add_at(self, kind: str, start: int, text: str) -> None:
        """An anomaly of no call."""
        self._append(Anomaly(kind, start, text, None, KINDS[kind]))

    def _add_repeated(self, index: int, repeated: Iterable[tuple[int, str]]) -> None:
        """Keys that are there twice, unless they were noted where they stand."""
        noted, self._repeated = self._repeated, set()
        for call, key in repeated:
            if call == index and key not in noted:
                self.add("repeated_argument", key)

    def _append(self, anomaly: Anomaly) -> None:
        if self._anomalies is None:
            self._anomalies = [] if self._keep else deque(maxlen=MOST_UNTAKEN_ANOMALIES)
        self._anomalies.append(anomaly)

    def _add_malformed(self, event: Malformed) -> None:
        last = self._anomalies[-1] if self._anomalies else None
        if self._rest_to == self.offset:
            self._rest_to += len(event.source)
            return
        text = event.source.lstrip()
        if last is not None and self._malformed_to == self.offset and last.why == event.why:
            last.text += event.source[: max(0, MOST_ANOMALY_TEXT - len(last.text))]
        elif text:
            start = self.offset + len(event.source) - len(text)
            self._append(Anomaly("malformed", start, text[:MOST_ANOMALY_TEXT], None, event.why or KINDS["malformed"]))
        self._malformed_to = self.offset + len(event.source)

    def take(self) -> list[Anomaly]:
        """The anomalies since the last time."""
        if isinstance(self._anomalies, deque):
            taken = list(self._anomalies)
            self._anomalies.clear()
            return taken
        anomalies = self._anomalies or []
        taken = list(anomalies[self._taken :])
        self._taken = len(anomalies)
        return taken

    def all(self) -> list[Anomaly]:
        """All anomalies so far, where they are kept."""
        return list(self._anomalies or ())
