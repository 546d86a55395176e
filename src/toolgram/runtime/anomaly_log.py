"""Anomalies with their places, collected from the events of a stream in order.

Strategy: every character belongs to one event, so the place of anything is the length of all sources before it. Notes
are buffered among the events; here they become anomalies and are not emitted. Anomalies that follow from the events
themselves (an incomplete call, unreadable text) are found at the same time.
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
        self._calls_in = calls_in  # reads a quoted text and returns the calls in it
        self._name = ""  # of the last call
        self._keep = keep
        self._anomalies: MutableSequence[Anomaly] | None = None  # made with the first anomaly
        self._repeated: set[str] = set()  # arguments of the open call already noted at their own place
        self._taken = 0  # how many of the kept anomalies were taken
        self._call: int | None = None
        self._malformed_to = -1  # the end of the malformed text that the last anomaly covers
        self._rest_to = -1  # the end of the text that belongs to the call that has just failed
        self.offset = 0

    def read(self, events: Iterable[BufferedEvent], repeated: Iterable[tuple[int, str]] = ()) -> list[Event]:
        """Read events in order, and return all but the notes. `repeated` are keys that appear twice in a call that ends
        in these events, each with the index of the call."""
        emitted: list[Event] = []
        for event in events:
            if self._rest_to < 0 and type(event) in _MARKUP:  # nearly all events: nothing to note
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
            self.add(note.kind, note.text, note.ahead)
        if note.kind == "repeated_argument":
            self._repeated.add(note.text)

    def _add_quoted(self, note: Note) -> None:
        """Add a quoted text, if it would be read as a call."""
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

    def add(self, kind: str, text: str, ahead: int = 0) -> None:
        """Add an anomaly at the current place, or `ahead` characters after it."""
        self._append(Anomaly(kind, self.offset + ahead, text, self._call, KINDS[kind]))

    def add_at(self, kind: str, start: int, text: str) -> None:
        """Add an anomaly that belongs to no call."""
        self._append(Anomaly(kind, start, text, None, KINDS[kind]))

    def _add_repeated(self, index: int, repeated: Iterable[tuple[int, str]]) -> None:
        """Add keys that appear twice, unless they were already noted at their own place."""
        noted, self._repeated = self._repeated, set()
        for call, key in repeated:
            if call == index and key not in noted:
                self.add("repeated_argument", key)

    def _append(self, anomaly: Anomaly) -> None:
        if self._anomalies is None:
            self._anomalies = [] if self._keep else deque(maxlen=MOST_UNTAKEN_ANOMALIES)
        anomaly.start = max(0, anomaly.start)  # a prefix may have begun it
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
            self._append(Anomaly("malformed", start, text[:MOST_ANOMALY_TEXT], None, event.why))
        self._malformed_to = self.offset + len(event.source)

    def take(self) -> list[Anomaly]:
        """Return the anomalies since the last call of this method."""
        if isinstance(self._anomalies, deque):
            taken = list(self._anomalies)
            self._anomalies.clear()
            return taken
        anomalies = self._anomalies or []
        taken = list(anomalies[self._taken :])
        self._taken = len(anomalies)
        return taken

    def all(self) -> list[Anomaly]:
        """Return all anomalies so far, if they are kept."""
        return list(self._anomalies or ())
