"""The calls of a stream: how many are certain, the open one, and the arguments that come one by one between markers."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Set
from itertools import islice
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, NamedTuple, cast

from toolgram.call_ids import CallIds
from toolgram.events import Status, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.limits import LONGEST_CLOSER, MOST_KEYS
from toolgram.runtime.event_buffer import SYNTAX, EventBuffer
from toolgram.runtime.withheld import NotACall

if TYPE_CHECKING:
    from toolgram.program.state import Move
    from toolgram.tools.parameters import DeclaredParameters, Parameters, Place, Types
    from toolgram.tools.reading import Tools

# Why a value was read past a marker: the marker opens an argument, or closes or opens a call.
READ_ON_IN_CALL, READ_ON = 1, 2
# Markers seen in a value: one that opens a value; one that was reported as part of the text.
OPENED, TOLD, KEYED = 1, 2, 4
NONE: frozenset[str] = frozenset()


class OpenMarkers(NamedTuple):
    """Markers that still have to be closed."""

    overdue: frozenset[str] = NONE  # opening markers, by trigger, whose closing marker is missing after the last call
    owed: frozenset[str] = NONE  # opening markers that have come and are not closed yet
    in_text: frozenset[str] = NONE  # closing markers that belong to what was opened in text

    def followed(self, trigger: str, move: Move, sections: Mapping[str, frozenset[str]]) -> OpenMarkers:
        """Return the open markers after a transition."""
        overdue, owed, opened = self
        if move.opens:
            if not (move.within and move.within.isdisjoint(owed)):
                owed |= {move.opens}
        elif move.closes and (overdue or owed):
            overdue -= move.closes
            owed -= move.closes
        if move.begins:
            opened |= move.begins
        elif trigger in opened:
            opened -= sections[trigger]
        return OpenMarkers(overdue, owed, opened)


NO_MARKERS = OpenMarkers()


class Argument:
    """The tagged argument that is being read, with its key."""

    __slots__ = ("again", "depth", "key", "read_on", "recent", "seen", "wraps")

    def __init__(self, key: str) -> None:
        self.key = key
        self.read_on = 0  # the value was read past a marker that may have been meant to close it
        self.seen = 0  # OPENED, TOLD and KEYED, or some of them
        self.depth = 0  # opening markers in the value that are not closed in it
        self.again = ""  # the marker before the value, which may be repeated
        self.recent: deque[str] = deque(maxlen=LONGEST_CLOSER)  # the last pieces of the value that are not blank
        self.wraps = False  # the value may be the object of all arguments

    def keep(self, piece: str) -> None:
        """Keep a piece of the value, of which only the last characters matter."""
        if piece and not piece.isspace():
            self.recent.append(piece if len(piece) <= LONGEST_CLOSER else "".join(piece.split())[-LONGEST_CLOSER:])

    @property
    def ending(self) -> str:
        """The last characters of the value that are not blank. They depend on no deltas."""
        return "".join("".join(self.recent).split())[-LONGEST_CLOSER:]


class Calls:
    """The calls: `count` are certain; `index` is that of the open call, and `start` is its first event.

    `name` and `id` belong to the next call, which is not certain yet. `keys` are the tagged arguments of the open call
    (None for arguments of another kind), and `argument` is the one that is being read. Whether its value is the object
    of all arguments is decided at its end, and nothing of such a value is emitted before.
    """

    __slots__ = (
        "_events", "argument", "count", "id", "ids", "index", "keys", "markers", "name", "start", "tools",
    )  # fmt: skip

    def __init__(self, events: EventBuffer, ids: CallIds, tools: Tools) -> None:
        self._events = events
        self.ids = ids
        self.tools = tools
        self.count = 0
        self.index: int | None = None
        self.start: ToolCallStart | None = None
        self.name: ToolCallStart | None = None
        self.id: str | None = None
        self.keys: dict[str, None] | None = None
        self.argument: Argument | None = None
        self.markers = NO_MARKERS

    def copy(self, events: EventBuffer) -> Calls:
        """Return the same calls for a copy of the events, in which no call is open."""
        made = Calls(events, self.ids, self.tools)
        made.count, made.markers, made.start = self.count, self.markers, self.start
        return made

    @property
    def key(self) -> str:
        """The key of the tagged argument that is being read."""
        return "" if self.argument is None else self.argument.key

    @property
    def wraps(self) -> bool:
        """True in a value that may be the object of all arguments."""
        return self.argument is not None and self.argument.wraps

    @property
    def names(self) -> frozenset[str]:
        """The names of the declared functions."""
        return self.tools.names

    def begin_name(self, name: str, source: str) -> None:
        """Begin a call that is not certain yet, with its name."""
        self.name = ToolCallStart(self.count, "", name, source)
        self._events.put(self.name)

    def find_declared(self) -> bool:
        """Return whether the name is declared, or nothing is. A surplus dot and number at its end are removed."""
        start, declared = cast(ToolCallStart, self.name), self.names
        name = start.name
        stem, _, number = name.rpartition(".")
        if name in declared or not declared:
            return True
        if number.isdecimal() and stem in declared:
            start.name = stem
            return True
        return False

    def undeclared(self) -> str:
        """Return why a name that `find_declared` rejects begins no call."""
        return f"`{self.name.name if self.name else ''}` is not a declared function"

    def forget_held(self) -> bool:
        """Discard the candidate call. Return whether it had a name."""
        named = self.name is not None
        self.name = self.id = None
        self.markers = self.markers._replace(owed=NONE)
        return named

    def begin(self) -> None:
        """Make the call certain. Its start is put before its arguments even if the name came after them."""
        start = self.name
        if start is None:
            return
        if self._events.withheld is not None and self.names and start.name not in self.names:
            raise NotACall
        start.id = (self.id and self.id.strip()) or self.ids()
        if self._events.held is not None:
            self._events.held.put_first(start)
        self.index = self.count
        self.start = start
        self.count += 1
        self.name = self.id = None

    def end(self, status: Status) -> None:
        """End the open call, if there is one."""
        if self.index is not None:
            if status == "malformed" and self._events.withheld is not None:
                raise NotACall
            self._events.put(ToolCallEnd(self.index, status))
            self._events.after_call = NONE if status == "complete" else None
            overdue, owed, _ = self.markers
            if owed and status == "complete":
                self.markers = self.markers._replace(overdue=overdue | owed)
            self.index = self.keys = self.argument = None

    def forget_markers(self) -> None:
        """Forget missing markers: they were reported, or what was open is malformed."""
        self.markers = OpenMarkers(in_text=self.markers.in_text)

    def delta(self, arguments: str, source: str) -> None:
        """Emit arguments of the open call, or of the next one."""
        self._events.put(ToolCallDelta(self.count if self.index is None else self.index, arguments, source))

    # --- tagged arguments -----------------------------------------------------------------------------------------

    def open_arguments(self) -> None:
        """Begin tagged arguments."""
        self.keys = {}
        self.delta("{", "")

    def begin_argument(self, key: str, source: str, wrapped: Set[str]) -> None:
        """Begin a tagged argument with its whole key. An object under a key in `wrapped` may hold all arguments."""
        key = key.rstrip()
        self.argument = Argument(key)
        if key in wrapped and self._may_wrap(key):
            self.argument.wraps = True
            self._events.drop(source, SYNTAX)
        else:
            self._write_key(key, source)

    def _write_key(self, key: str, source: str) -> None:
        keys = self.keys
        comma = ", " if keys else ""
        self.delta(f"{comma}{encode_basestring(key)}: ", source)
        if keys is None:
            return
        declared = self.declared()
        if declared is not None and key not in declared.types and not declared.open:
            self._events.note("undeclared_argument", key)
        if key in keys:
            self._events.note("repeated_argument", key)
        if len(keys) < MOST_KEYS or (declared is not None and key in declared.types):
            keys[key] = None

    def _may_wrap(self, key: str) -> bool:
        """Return whether an argument that the function does not have may be the object of all its arguments."""
        declared = self.declared()
        return self.keys == {} and declared is not None and bool(declared.types) and key not in declared.types

    def unwrap(self, written: str, source: str) -> None:
        """End a value that may be the object of all arguments: it is if one of its members is declared."""
        members, declared = json.loads(written), self.declared()
        named = declared.types.keys() if declared is not None else ()
        if not isinstance(members, dict) or (members and not any(key in named for key in members)):
            self._write_key(self.key, "")
            self.delta(written, source)
            return
        self._events.note("unusual_form", self.key)
        if members:
            self.delta(written.strip()[1:-1], source)
        else:
            self._events.drop(source, SYNTAX)
        self.keys = dict.fromkeys(islice(members, MOST_KEYS))

    def may_have(self, key: str) -> bool:
        """Return whether the open call may have an argument of this name that it does not have yet."""
        declared = self.declared()
        known = declared is None or declared.open or key.rstrip() in declared.types
        return known and key.rstrip() not in (self.keys or ())

    def may_have_more(self) -> bool:
        """Return whether the open call may have another argument than those that it has."""
        declared = self.declared()
        return declared is None or declared.open or len(self.keys or ()) < len(declared.types)

    def types(self, told: bool) -> Types:
        """Return the types of the current argument by its declaration. `told`: its markers state the type."""
        if self.wraps:
            return frozenset({"object"})
        if not self.tools:
            return None
        from toolgram.tools.parameters import types_of_value

        return types_of_value(self.declared(), self.key, told, True)

    def place(self) -> Place:
        """Return the declaration of the value that is being read, and of what is inside it."""
        from toolgram.tools.parameters import UNDECLARED, UNDECLARED_TEXT

        called, declared = self._called, self.declared()
        if not self.tools:
            return UNDECLARED
        if called is None or declared is None or (self.key not in declared.types and declared.others is None):
            return UNDECLARED_TEXT
        return self._parameters.place(called).member(self.key)

    def close_arguments(self) -> None:
        """End the tagged arguments."""
        if self.keys is None or self.index is None:
            return
        declared = self.declared()
        for name in declared.required if declared is not None else ():
            if name not in self.keys:
                self._events.note("missing_argument", name)
        self.delta("}", "")
        self.keys = None

    def declared(self) -> Parameters | None:
        """Return the parameters of the called function, or None if it is not declared."""
        called = self._called
        return self._parameters.get(called) if called is not None else None

    @property
    def _parameters(self) -> DeclaredParameters:
        """All declared parameters, read when a tagged argument first asks for them."""
        from toolgram.tools.parameters import declared_parameters

        return declared_parameters(self.tools)

    @property
    def _called(self) -> str | None:
        start = self.start if self.name is None else self.name
        return start.name if start is not None else None
