"""The straight way into a call and out of it: one expression where the readers take a step per token.

Most calls are written as their format's own examples are: the opener, `{"name": "f", "arguments": `, the arguments,
`}`, the closer.  What the readers do there is always the same but for the name, the id and the blanks.  So it is
recorded once and repeated.

Theory of operation
===================

A *path* leads from one place to another at which nothing is held, buffered or half read: from free text to the first
brace of the arguments, from their last brace to text, or to the next arguments.  Paths are found by reading the
examples of the machine file.  Each is then tried with other names and ids, and with none or many blanks wherever blanks
may stand, always by the readers themselves.  What they take becomes part of one expression, in which each event is a
group.  Its *effect* is what the readers left: events whose characters are these groups, and the state of the stream.

So no rule is stated here.  A path holds what the readers did; where its expression does not match, they read.  They
also read with a trace or token ids, while a candidate is held, inside a prefix, at the end of the output, and where
text before the call may have opened what the call stands in.  A path that gives other events than the readers, on any
of the texts on which it was tried, is not used.

Recording takes some milliseconds, and pays back in as many calls as `FIRST_CALLS`: a program that has met that many
records its paths, which all its streams share. A process that reads one output, and derivation, which tries a format
on a few, never get there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from toolgram.events import Dropped, Note, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import JsonScanner
from toolgram.program.state import Program, StateProgram, Symbol

if TYPE_CHECKING:
    from toolgram.runtime.stream import Stream

NO_PATH = -1
FIRST_CALLS = 100  # that the readers read, before paths are recorded

# How an event is made: its kind, the group of its characters (0: none), and two things that it says.
Maker = tuple[str, int, Any, Any]


@dataclass(slots=True, eq=False)
class Path:
    """One path: its expression, its events, and what it leaves."""

    pattern: re.Pattern[str]
    makers: list[Maker]
    state: StateProgram
    reader: str
    island: Envelope | JsonScanner | None
    calls: int  # how many it begins
    index: int | None  # of the open call behind it, counted from the first that it begins
    behind_call: frozenset[str] | None
    name: int = 0  # the groups of the name
    id: int = 0  # and the id
    leaves: str = ""  # what a continuation depends on behind it, but for the number of calls
    owed: frozenset[str] = frozenset()  # what the last call that it ends has not had behind it
    enclosed: frozenset[str] = frozenset()  # what calls are to have behind them because of what was opened
    opened: frozenset[str] = frozenset()  # what closes what it opens in text, and does not close,
    closed: frozenset[str] = frozenset()  # and what it closes, opened before it
    exits: list[Path] = field(default_factory=list)

    @property
    def inside(self) -> bool:
        """Whether it leads to arguments."""
        return self.island is not None

    def take(self, stream: Stream, found: re.Match[str]) -> int:
        """Do what the readers would do. Returns the position behind it."""
        events, calls = stream.events, stream.calls
        base = calls.count
        if events.blanks or not events.seam:
            events.make_seam()
        out = events.out
        for kind, group, first, second in self.makers:
            source = found[group] if group else ""
            if kind == "dropped":
                if source:
                    out.append(Dropped(source, first, source))
            elif kind == "delta":
                out.append(ToolCallDelta(base + first, source if second is None else second, source))
            elif kind == "start":
                made_id = found[self.id] if second else calls.ids()
                calls.start = start = ToolCallStart(base + first, made_id, found[self.name], source)
                out.append(start)
            elif kind == "end":
                calls.owed = self.owed
                out.append(ToolCallEnd(base + first, second, source))
            else:
                out.append(Note(first, found[self.id] if second is None else second))
        calls.count = base + self.calls
        calls.index = None if self.index is None else base + self.index
        calls.enclosed = self.enclosed
        calls.sections = calls.sections - self.closed | self.opened
        events.behind_call = self.behind_call
        stream.state, stream.reader = self.state, self.reader
        island = self.island
        if island is not None:
            island = island.copy()
            scanner = island.scanner if isinstance(island, Envelope) else island
            scanner.exits = self.exits or None
            declared = island is scanner and not scanner.repairs and found[self.name] in calls.names
            if declared and not stream.program.strict:  # as `Stream.may_repair_object` says
                scanner.begin_repairs()
        stream.island = island
        return found.end()


Key: TypeAlias = tuple[object, ...]
Record: TypeAlias = Callable[[Program], dict[Key, list[Path]]]


def entry_key(state: StateProgram, trigger: str) -> Key:
    """What a path depends on that begins with this symbol in this state: where the symbol leads, and how.

    Of the state itself only that matters which the readers ask of the origin of what they hold.
    """
    move = state.row.get(trigger)
    if move is None:
        return state.name, trigger
    return trigger, move.dest.name, move.actions, state.is_text, state.meaning == "malformed", state.bare


class StraightPaths:
    """The paths of a program, recorded when it has met some calls."""

    def __init__(self, program: Program, record: Record) -> None:
        self._program = program
        self._record = record
        self.entries: dict[Key, list[Path]] | None = None  # once they are recorded
        self._met = 0  # calls

    def enter(self, stream: Stream, symbol: Symbol, text: str, begin: int) -> int:
        """Take a path that begins with `symbol` at `begin`: the position behind it, or NO_PATH."""
        events = stream.events
        if self.entries is not None and not self.entries:
            return NO_PATH
        if stream.trace is not None or stream.unmatched_ids is not None:
            return NO_PATH
        if events.held is not None or stream.island is not None or events.tail or stream.assumed:
            return NO_PATH
        if stream.closing is not None or stream.source.prefix_characters or stream.calls.id is not None:
            return NO_PATH
        calls = stream.calls
        if calls.owed or calls.enclosed:
            return NO_PATH
        if events.behind_call and symbol.trigger in events.behind_call:
            return NO_PATH
        if self.entries is None:
            move = stream.state.row.get(symbol.trigger)
            if move is not None and move.dest.is_text:
                return NO_PATH  # it begins no call
            self._met += 1
            if self._met < FIRST_CALLS:
                return NO_PATH
            self.entries = self._record(self._program)
        for path in self.entries.get(entry_key(stream.state, symbol.trigger), ()):
            found = path.pattern.match(text, begin)
            if found is not None and path.closed <= calls.sections:
                return path.take(stream, found)
        return NO_PATH

    def leave(self, stream: Stream, scanner: JsonScanner, text: str, end: int) -> int:
        """The arguments are closed: take a path that begins at `end`; the position behind it, or NO_PATH."""
        exits: list[Path] | None = scanner.exits
        scanner.exits = None
        if exits is None or stream.trace is not None or stream.unmatched_ids is not None:
            return NO_PATH
        if stream.closing is not None or stream.source.transcoding is not None or stream.events.tail:
            return NO_PATH
        for path in exits:
            found = path.pattern.match(text, end)
            if found is not None and path.closed <= stream.calls.sections:
                return path.take(stream, found)
        return NO_PATH
