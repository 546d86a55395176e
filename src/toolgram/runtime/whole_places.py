"""The states of a machine for plain whole outputs, each with what its rows depend on, and with the rows that are plain.

Strategy: the markers so far determine which markers are owed, whether a call is open, and what has closed the last one.
All of that and the state make a *place*, and a *step* leads from one place to another. Both are made from the rows of
the machine when an output first needs them, and cached: following a step is one look-up. Places do not depend on names
or values, so there are few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from toolgram.program.state import Move, Program, StateProgram
from toolgram.runtime.calls import NO_MARKERS, NONE, OpenMarkers

Action: TypeAlias = Callable[[Any, str], None]
_IN_CALL = frozenset(
    {"start_map item", "start_array", "object_start", "object_empty"}
)  # something is held before these


class Unusual(Exception):
    """Raised if a parser has to read the output."""


class Step(NamedTuple):
    """A plain transition: where it leads, and what it does with the characters."""

    place: Place
    actions: tuple[Action, ...]


class Member(NamedTuple):
    """A key of an envelope: its JSON path and its step; the step with a string as its value; the step up to the brace
    of arguments, and the one after them. None if that may not follow, or if the value decides."""

    path: str
    step: Step
    string: Step | None
    opening: Step | None
    closing: Step | None


class Places:
    """All places of a program that were reached. `actions` are the known ones."""

    def __init__(self, program: Program, actions: Mapping[str, Action]) -> None:
        self.program = program
        self.actions = actions
        self.closers = frozenset(symbol.trigger for symbol in program.closers.values())
        self._known: dict[tuple[object, ...], Place] = {}

    def place(self, state: StateProgram, markers: OpenMarkers, begun: bool, after: frozenset[str] | None) -> Place:
        """Return a place; make it if it is new."""
        key = state.name, markers, begun, after
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Place(self, state, markers, begun, after)
        return found


class Place:
    """A state, its open markers, whether a call is open, and what closed the last call (None: there was none)."""

    __slots__ = ("_after", "_markers", "_members", "_places", "_steps", "begun", "state")

    def __init__(
        self, places: Places, state: StateProgram, markers: OpenMarkers, begun: bool, after: frozenset[str] | None
    ) -> None:
        self.state = state
        self.begun = begun
        self._places, self._markers, self._after = places, markers, after
        self._steps: dict[str, Step] = {}
        self._members: dict[tuple[str, str], Member] = {}

    def step(self, trigger: str) -> Step:
        """Return the step of a trigger. Raise Unusual if it is not plain."""
        step = self._steps.get(trigger) or self.step_of(trigger)
        if step is None:
            raise Unusual
        return step

    def step_of(self, trigger: str) -> Step | None:
        """Return the step of a trigger, or None if it is not plain."""
        move = self.state.row.get(trigger)
        step = None if move is None else self._plain_step(move)
        if step is not None:
            self._steps[trigger] = step
        return step

    def member(self, parent: str, key: str) -> Member:
        """Return what a key in an object of an envelope leads to."""
        member = self._members.get((parent, key))
        if member is None:
            path = f"{parent}.{key}"
            path = self._places.program.spec.same_path.get(path, path)
            if self.state.named_key and f"map_key {path}" not in self.state.row:
                return self._member(f"{parent}.*")
            member = self._members[parent, key] = self._member(path)
        return member

    def _member(self, path: str) -> Member:
        step = self.step(f"map_key {path}")
        place, string, opening, closing = step.place, None, None, None
        if not any(trigger.startswith(f"string {path} ") for trigger in place.state.row):
            string = place.step_of(f"string {path}")
        opening = place.step_of(f"start_map {path}")
        if string is not None and string.place.state.meaning == "arguments":
            string = None  # a string of JSON
        if opening is not None and opening.place.state.meaning == "arguments":
            closing = opening.place.step_of(f"end_map {path}")
        return Member(path, step, string, opening, closing)

    def _plain_step(self, move: Move) -> Step | None:
        """Return the step of a transition; None if it repairs something, or if a marker is missing or too many."""
        trigger, actions = move.trigger, self._places.actions
        sections, (overdue, owed, opened), after = self._places.program.sections, self._markers, self._after
        if not self._is_plain(move) or (not self.begun and trigger in (after or NONE)):
            return None
        if not (self.begun or self.state.held or trigger in _IN_CALL):
            left_open = self.state.leaves_owed.get(trigger, NONE)
            if not overdue.isdisjoint(left_open):
                return None
            owed = NONE if self.state.loops and move.dest.held else owed - left_open
        closes_nothing = (move.closes and not (owed or overdue)) or (trigger in sections and trigger not in opened)
        if closes_nothing:
            return None
        if after is not None and "name" in move.actions:
            after = NONE  # another call
        if after is not None and trigger in self._places.closers:
            after |= {trigger}
        begun = self.begun or "start_call" in move.actions
        if "end_call" in move.actions:
            overdue, begun, after = overdue | owed, False, self._places.closers & {trigger}
        markers = OpenMarkers(overdue, owed, opened).followed(trigger, move, sections)
        place = self._places.place(move.dest, markers, begun, after)
        return Step(place, tuple(actions[each] for each in move.actions))

    def _is_plain(self, move: Move) -> bool:
        """Return whether a transition repairs nothing, needs no declared function, and has only known actions."""
        if move.repair or move.only_declared or move.only_called:
            return False
        return self._places.actions.keys() >= {*move.actions}


def first_place(program: Program, state: StateProgram, actions: Mapping[str, Action]) -> Place:
    """Return the place in which an output begins."""
    return Places(program, actions).place(state, NO_MARKERS, False, None)
