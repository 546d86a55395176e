"""Whether the actions of a machine can work in every order in which its transitions can be followed.

Strategy: an abstract interpretation.  A *position* says how far a call is (named, started, its arguments) and which
JSON is open around it; there are few.  From the initial state each transition is followed from each position in
which its trigger can come, and its actions change the position.  What an action needs and does not find, and what a
state cannot be entered with, is a fault of the transition.  A trigger that cannot come is not a fault here.

What the runtime does is the model: a held state is committed or rejected as a whole (so a call starts outside of it),
the end of the output ends an open call as truncated, and text that does not fit leaves all embedded values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from toolgram.errors import FormatError
from toolgram.limits import MAX_FLOW_STEPS
from toolgram.spec.data import END, TEXT, UNCLOSED, Literal, Spec, State, Transition, loops, rows_of
from toolgram.spec.vocabulary import ISLAND_TRIGGERS

ANY_KEY = "*"
LIST = ("start_array", "end_array")

# How far the arguments are.
NONE, OPEN, PARTS, KEYED, VALUE, DONE = "none", "open", "in parts", "keyed", "value", "done"


@dataclass(frozen=True, slots=True)
class Position:
    """How far a call is, and what is open around it."""

    named: bool = False
    identified: bool = False
    started: bool = False
    arguments: str = NONE
    closed_by: str = ""  # the trigger that ends open arguments
    parents: tuple[str, ...] | None = None  # paths of the JSON objects around the call, None outside of JSON
    in_list: bool = False
    path: str = ""  # of the member whose value comes next

    def over(self) -> Position:
        """Return the same place after the call."""
        return Position(parents=self.parents, in_list=self.in_list, path=self.path)

    @property
    def waits(self) -> bool:
        """Return whether something of a call is known that has not started."""
        return not self.started and (self.named or self.identified or self.arguments != NONE)


class _Fault(Exception):
    """A transition cannot work: what is wrong, and what to write."""

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem, self.remedy = problem, remedy
        super().__init__(problem)


def call_faults(spec: Spec) -> Iterator[FormatError]:
    """Yield the transitions whose actions cannot work, or that lead to a state to which they cannot."""
    rows = rows_of(spec)
    lists = any(transition.trigger == "start_array" for transition in spec.transitions)
    found: dict[str, set[Position]] = {spec.initial: {Position()}}
    waiting = [(spec.initial, Position())]
    told: set[tuple[str, str]] = set()
    count = 0
    while waiting:
        name, position = waiting.pop()
        count += len(rows[name])
        if count > MAX_FLOW_STEPS:
            yield FormatError(
                spec.machine_path,
                f"the transitions can be followed in more than {MAX_FLOW_STEPS} ways",
                "nest fewer keys, or list fewer paths under `same_path:`",
            )
            return
        for transition in rows[name].values():
            try:
                reached = list(_follow(spec, rows, transition, position, lists))
            except _Fault as fault:
                if (fault.problem, transition.trigger) not in told:
                    told.add((fault.problem, transition.trigger))
                    yield spec.fault(transition, f"`{transition.trigger}` in {name}: {fault}", fault.remedy)
                continue
            for dest, after in reached:
                if after not in found.setdefault(dest, set()):
                    found[dest].add(after)
                    waiting.append((dest, after))


Rows = Mapping[str, Mapping[str, Transition]]


def _follow(
    spec: Spec, rows: Rows, transition: Transition, before: Position, lists: bool
) -> Iterator[tuple[str, Position]]:
    """Yield where a transition leads from a position: states, and the positions there."""
    source, dest = spec.states[transition.source], spec.states[transition.dest]
    for position in _come(spec, transition, source, dest, before, lists):
        if transition.trigger == END:
            _end(transition, source, position)
            continue
        after = position
        for action in transition.actions:
            after = _act(action, transition, source, after)
        if transition.trigger == UNCLOSED:
            listed = after.in_list and bool(after.parents)
            after = replace(after, parents=() if listed else None, in_list=listed, path="")
        if transition.trigger == "malformed":
            after = replace(after, parents=None, in_list=False, path="")
        after = _enter(transition, source, dest, loops(rows[dest.name]), after)
        closes = after.parents is None and (
            transition.trigger in ("recovered", UNCLOSED)
            or (transition.trigger == "end_map item" and before.parents is not None)
        )
        closing = rows[dest.name].get("end_array") if closes else None
        if closing is None:
            yield dest.name, after
        else:  # the list that a broken or single call is read as ends with it
            for action in closing.actions:
                after = _act(action, closing, dest, after)
            last = spec.states[closing.dest]
            yield closing.dest, _enter(closing, dest, last, loops(rows[last.name]), after)


# --- what may come -------------------------------------------------------------------------------------------------


def _come(
    spec: Spec, transition: Transition, source: State, dest: State, position: Position, lists: bool
) -> list[Position]:
    """Return the positions right after the trigger, before its actions; none if it cannot come."""
    trigger = transition.trigger
    if trigger in (TEXT, END, UNCLOSED, "malformed", "recovered"):
        return _outside(trigger, source, position, lists)
    if trigger in ISLAND_TRIGGERS:
        return _island(trigger, source, position)
    if trigger in spec.terminals:
        return _terminal(spec, transition, source, position)
    return [] if position.arguments == OPEN and trigger != position.closed_by else _json(spec, trigger, dest, position)


def _outside(trigger: str, source: State, position: Position, lists: bool) -> list[Position]:
    """Return the positions after text, the end of the output, or what does not fit."""
    if trigger == TEXT:
        if source.held and position.started:
            raise _Fault("there would be text in an open call", "remove the transition on TEXT, or the tag `held`")
        return [Position() if source.held else position]
    if trigger == END:
        return [] if source.held and position.parents is not None else [position]
    if trigger == "recovered":
        listed = [Position(parents=(), in_list=True)] if lists else []
        return [Position(), *listed]
    return [] if source.held else [position]


def _terminal(spec: Spec, transition: Transition, source: State, position: Position) -> list[Position]:
    """Return the positions after a marker or a run, which no JSON and no arguments have inside."""
    if "unclosed_arguments" in transition.actions and position.arguments == OPEN:
        return [replace(position, parents=None, in_list=False, path="")]
    if position.parents is not None or position.arguments == OPEN:
        return []
    if source.meaning != "value":
        return [position]
    marker = isinstance(spec.terminals[transition.trigger], Literal)
    return [replace(position, arguments=PARTS)] if marker else []


def _island(trigger: str, source: State, position: Position) -> list[Position]:
    if trigger == "value_end":
        if source.meaning == "ignored":
            return [replace(position, path="")]
        return [replace(position, arguments=PARTS)] if position.arguments == VALUE else []
    if position.parents is not None:
        return []
    if trigger == "object_end":
        is_open = position.arguments == OPEN and position.closed_by == trigger
        return [replace(position, arguments=DONE, closed_by="")] if is_open else []
    if trigger == "object_start":
        return [_opened(position, "object_end")]
    return [position]


def _opened(position: Position, closed_by: str) -> Position:
    if position.arguments != NONE:
        raise _Fault("a call would get arguments twice", "write a state for the call whose arguments are known")
    return replace(position, arguments=OPEN, closed_by=closed_by)


def _json(spec: Spec, trigger: str, dest: State, position: Position) -> list[Position]:
    """Return the positions after an event of the JSON around a call."""
    if trigger == position.closed_by and position.arguments == OPEN:
        return [replace(position, arguments=DONE, closed_by="")]
    event, _, rest = trigger.partition(" ")
    path, _, value = rest.partition(" ")
    if event in LIST or (event == "start_map" and path == "item"):
        return _envelope(event, position)
    if position.parents is None:
        return []
    if event == "map_key":
        return _keys(spec, path, position)
    if event == "end_map":
        return _object_ends(spec, path, position)
    if not position.path or _same(spec, position.path) != path:
        return []
    after = replace(position, path="")
    if dest.meaning == "arguments" and event in ("start_map", "string") and not value:
        return [_opened(after, f"end_map {path}")]
    return [replace(after, parents=(*position.parents, position.path)) if event == "start_map" else after]


def _envelope(event: str, position: Position) -> list[Position]:
    """Return the positions after a bracket of the list of calls, or the one that begins a call."""
    parents = position.parents
    if event == "start_array":
        return [replace(position, parents=(), in_list=True)] if parents is None else []
    if event == "end_array":
        return [replace(position, parents=None, in_list=False)] if parents == () else []
    return [replace(position, parents=("item",))] if parents is None or parents == () else []


def _object_ends(spec: Spec, path: str, position: Position) -> list[Position]:
    parents = position.parents
    if not parents or position.path or _same(spec, parents[-1]) != path:
        return []
    left = parents[:-1]
    return [replace(position, parents=left if left or position.in_list else None)]


def _keys(spec: Spec, path: str, position: Position) -> list[Position]:
    parents = position.parents
    if not parents or position.path:
        return []
    if not path:
        return [replace(position, path=ANY_KEY)]
    start = f"{parents[-1]}."
    spellings = [each for each in _spellings(spec, path) if each.startswith(start) and "." not in each[len(start) :]]
    return [replace(position, path=each) for each in spellings]


def _spellings(spec: Spec, path: str) -> list[str]:
    return [path, *(other for other, same in spec.same_path.items() if same == path)]


def _same(spec: Spec, path: str) -> str:
    return spec.same_path.get(path, path)


# --- what actions need ---------------------------------------------------------------------------------------------


def _act(action: str, transition: Transition, source: State, position: Position) -> Position:
    """Return the position after an action."""
    if action in _EVENTS_WITH_TEXT:
        return _take_text(action, transition, position)
    if action in _OF_A_CALL:
        return _OF_A_CALL[action](position)
    if action in _ARGUMENTS:
        return _change_arguments(action, position)
    if action == "no_call" and not (transition.trigger == TEXT and source.held):
        raise _Fault("`no_call` in a state that holds nothing, or at a marker", "write it at `TEXT` in a held state")
    if action in _NOTES:
        holds, problem, remedy = _NOTES[action]
        if not holds(source, position):
            raise _Fault(f"`{action}` {problem}", remedy)
    return position


def _start_call(position: Position) -> Position:
    if position.started:
        raise _Fault("`start_call` while a call is open", "write `end_call` before it")
    if not position.named:
        raise _Fault("`start_call` before `name`", "write `after: [name, start_call]`, or `name` on the way")
    return replace(position, started=True, named=False, identified=False)


def _end_call(position: Position) -> Position:
    if not position.started:
        raise _Fault("`end_call` while no call is open", "write `after: [start_call, end_call]`, or remove it")
    if position.arguments != DONE:
        raise _Fault(*_UNFINISHED[position.arguments])
    return position.over()


def _close_unclosed(position: Position) -> Position:
    if position.arguments != OPEN:
        raise _Fault("`unclosed_arguments` while no arguments are open", "remove `unclosed_arguments`")
    return replace(position, arguments=DONE, closed_by="")


def _change_arguments(action: str, position: Position) -> Position:
    needed, after = _ARGUMENTS[action]
    if position.arguments != needed:
        raise _Fault(*_MISPLACED[action])
    if action == "open_arguments" and not position.started:
        raise _Fault("`open_arguments` before `start_call`", "write `after: [start_call, open_arguments]`")
    return replace(position, arguments=after)


_OF_A_CALL: Mapping[str, Callable[[Position], Position]] = {
    "start_call": _start_call,
    "fail_call": Position.over,
    "end_call": _end_call,
    "unclosed_arguments": _close_unclosed,
}


def _in_value(source: State, position: Position) -> bool:
    return source.meaning == "value"


def _after_name(source: State, position: Position) -> bool:
    return position.named


# Actions that change no position: what must be true for them, what is wrong if it is not, and the remedy.
_NOTES: Mapping[str, tuple[Callable[[State, Position], bool], str, str]] = {
    "unclosed_value": (_in_value, "while no value is read", "remove it"),
    "unclosed_argument": (_in_value, "while no value is read", "remove it"),
    "late_call_id": (lambda source, position: position.started, "while no call is open", "write `after: call_id`"),
    "unopened_reasoning": (
        lambda source, position: source.meaning == "content",
        "while no content is read",
        "remove it",
    ),
    "called_name": (_after_name, "before any name was read", "write it after `name`"),
    "declared_name": (_after_name, "before any name was read", "write it after `name`"),
}
_ARGUMENTS = {
    "no_arguments": (NONE, DONE),
    "open_arguments": (NONE, PARTS),
    "argument_key": (PARTS, KEYED),
    "close_arguments": (PARTS, DONE),
}
_MISPLACED = {
    "no_arguments": ("`no_arguments` although the call has arguments", "remove `no_arguments`"),
    "open_arguments": ("`open_arguments` although the call has arguments", "remove `open_arguments`"),
    "argument_key": (
        "`argument_key` outside of `open_arguments` and `close_arguments`, or before the value of another key",
        "write `after: [start_call, open_arguments, argument_key]`, and a state tagged `value` after each key",
    ),
    "close_arguments": (
        "`close_arguments` while no arguments are open, or a key has no value",
        "write `open_arguments` where the arguments begin, and a state tagged `value` after each key",
    ),
}
_UNFINISHED = {
    NONE: ("`end_call` before any arguments", "write `after: [no_arguments, end_call]`"),
    OPEN: ("`end_call` while the arguments are open", "write `fail_call`, or `end_call` where the arguments end"),
    PARTS: ("`end_call` before `close_arguments`", "write `after: [close_arguments, end_call]`"),
    KEYED: ("`end_call` between a key and its value", "write `after: fail_call`"),
    VALUE: ("`end_call` inside a value", "write `after: fail_call`"),
}
_EVENTS_WITH_TEXT = {
    "name": ("string", "map_key"),
    "call_id": ("string", "number"),
    "call_id_part": (),
    "argument_key": (),
}


def _take_text(action: str, transition: Transition, position: Position) -> Position:
    """Return the position after `name`, `call_id` or `argument_key`, which need the text of their trigger."""
    trigger = transition.trigger
    event = trigger.partition(" ")[0]
    if (not trigger.isupper() and event not in _EVENTS_WITH_TEXT[action]) or trigger in (TEXT, "map_key"):
        raise _Fault(f"`{action}` while no text is read", f"write `{action}` on the transition that reads it")
    if action == "argument_key":
        if position.arguments != PARTS:
            raise _Fault(*_MISPLACED[action])
        return replace(position, arguments=KEYED)
    if position.started or (action == "name" and position.named):
        raise _Fault(f"`{action}` although the call has a name already", f"remove `{action}`, or end the call before")
    return replace(position, named=True) if action == "name" else replace(position, identified=True)


def _end(transition: Transition, source: State, position: Position) -> None:
    """Check that at the end of the output an open call is over, unless the transition says how it ends."""
    if position.started and "end_call" not in transition.actions:
        return
    held = Position() if not position.waits else position
    after = position if position.started else held
    if source.meaning == "value":  # it ends with the output
        after = replace(after, arguments=PARTS)
    for action in transition.actions:
        after = _act(action, transition, source, after)
    if after.started or after.waits:
        raise _Fault("the output ends and a call has not", "write `after: [start_call, no_arguments, end_call]`")


# --- where a transition may lead -----------------------------------------------------------------------------------


def _enter(transition: Transition, source: State, dest: State, stays: bool, position: Position) -> Position:
    """Return the position in the state that a transition leads to."""
    _check_open_call(transition, dest, stays, position)
    _check_held(transition, source, dest, position)
    _check_place(transition, source, dest, position)
    if dest.meaning != "value":
        return position
    if position.arguments != KEYED:
        raise _Fault(
            f"{dest.name} reads the value of an argument, and no key comes before",
            "write `after: argument_key` on the transition that reads the key",
        )
    return replace(position, arguments=VALUE)


def _check_open_call(transition: Transition, dest: State, stays: bool, position: Position) -> None:
    """Check that no call is open in text, and that arguments are open where they are read."""
    name, meaning = dest.name, dest.meaning
    if position.started and (meaning == "malformed" or stays):
        raise _Fault(f"the call is still open in {name}", "write `after: end_call` (or `fail_call`)")
    if meaning == "arguments" and position.arguments != OPEN:
        raise _Fault(f"{name} reads arguments, and none begin", "write `trigger: object_start`")
    if dest.python and transition.trigger != "object_start":
        raise _Fault(f"{name} reads Python arguments, which begin with `object_start`", "write `trigger: object_start`")


def _check_held(transition: Transition, source: State, dest: State, position: Position) -> None:
    """Check that a call starts outside of held states, and that what has not started is held."""
    name = dest.name
    if dest.held and "start_call" in transition.actions:  # whether it ends at once or not
        raise _Fault(
            f"a call starts and {name} is held",
            f"let it lead to a state without the tag `held`, or write `- {{name: {name}}}`, without the tag",
        )
    if dest.held and source.held and "end_call" in transition.actions:
        raise _Fault(f"a call ends and {name} is held", f"write `- {{name: {name}}}`, without the tag `held`")
    if not dest.held and position.waits:
        raise _Fault(
            f"a call has not started and {name} is not held",
            f"write `after: start_call` at this transition, or `- {{name: {name}, tags: [held]}}`",
        )


def _check_place(transition: Transition, source: State, dest: State, position: Position) -> None:
    """Check that what a state reads can come after this trigger, in or outside of the JSON around a call."""
    name, meaning, trigger = dest.name, dest.meaning, transition.trigger
    if (dest.is_text or meaning in ("malformed", "value")) and position.parents is not None:
        raise _Fault(
            f"the JSON around the call is still open in {name}",
            f"write `- {{trigger: end_map item, source: {source.name}, dest: {name}}}`",
        )
    if meaning == "malformed" and trigger != "malformed" and source.meaning != "malformed":
        raise _Fault(f"{name} reads what does not fit, and something fits", "write `trigger: malformed`")
    if meaning == "ignored" and not (trigger.startswith("map_key") and position.path):
        raise _Fault(f"{name} reads the value of a member, and no key comes before", "write `trigger: map_key`")
