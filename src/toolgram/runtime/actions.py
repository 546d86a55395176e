"""The semantic actions of transitions, as one table.

Strategy: each action takes the characters of the transition and returns those that it has not accounted for.
Characters that no action accounts for are dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from toolgram.islands.held_text import take_pieces
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import JsonScanner
from toolgram.program.state import Move, Program
from toolgram.runtime.calls import Calls
from toolgram.runtime.event_buffer import UNCLOSED_ENVELOPE
from toolgram.runtime.position import Position
from toolgram.spec.data import UNCLOSED

_ID_ACTIONS = frozenset({"call_id", "call_id_part"})

# Parameters: the position, the characters, their value, and whether the output was not cut off as far as is known.
Action: TypeAlias = Callable[[Position, str, str, bool], str]


def perform(at: Position, move: Move, text: str, why: str, value: str) -> None:
    """Perform a transition's actions in order, and drop the characters that no action accounts for."""
    ended = at.ended or move.trigger == UNCLOSED
    for action in move.actions:
        perform_now = _DROPPING.get(action)
        if perform_now is None:
            text = _ACTIONS[action](at, text, value, ended)
            continue
        at.events.drop(text, why)
        perform_now(at.calls, ended)
        text = ""
    if text:
        at.events.drop(text, why if _ID_ACTIONS.isdisjoint(move.actions) else "call id")


def _note_marker(at: Position, name: str) -> None:
    """Note the marker in a name or a key, if there is one."""
    if name.startswith(at.state.before) or at.program.holds_marker(name):
        at.events.note("stray_marker", name)


def _name(at: Position, text: str, value: str, ended: bool) -> str:
    _note_marker(at, value)
    written = value.lstrip("\n")
    name = function_called(at.program, at.calls.names, written)
    if name != written:
        at.events.note("unusual_form", written)
    at.calls.begin_name(name, text)
    return ""


def function_called(program: Program, names: frozenset[str], name: str) -> str:
    """Return the declared function that a name with a namespace means: the one named by its last part."""
    if not program.namespaced_names or "." not in name or name in names:
        return name
    before, _, last = name.rpartition(".")
    return last if last in names or (not names and before == last) else name


def _call_id(at: Position, text: str, value: str, ended: bool) -> str:
    at.calls.id = value or None
    return text


def _call_id_part(at: Position, text: str, value: str, ended: bool) -> str:
    at.calls.id = (at.calls.id or "") + value
    return text


def _late_call_id(at: Position, text: str, value: str, ended: bool) -> str:
    at.events.note("model_id", value)
    return text


def _no_arguments(at: Position, text: str, value: str, ended: bool) -> str:
    at.calls.delta("{}", text)
    return ""


def _argument_key(at: Position, text: str, value: str, ended: bool) -> str:
    _note_marker(at, value)
    at.calls.begin_argument(value, text, at.program.wrapped)
    return ""


def _unclosed_value(at: Position, text: str, value: str, ended: bool) -> str:
    if ended and at.calls.index is not None:
        at.events.note("unclosed_value", at.calls.key)
    return text


def _unclosed_envelope(at: Position, text: str, value: str, ended: bool) -> str:
    if ended and (at.calls.index is not None or at.calls.markers.overdue):
        at.note_unclosed()
    return text


def _unclosed_arguments(at: Position, text: str, value: str, ended: bool) -> str:
    """Close the brackets of the arguments: the call's closing marker came after a whole value while they were open."""
    island = at.island
    scanner, floor = (island.scanner, island.depth) if isinstance(island, Envelope) else (cast(JsonScanner, island), 0)
    closers = "".join("}" if bracket == "{" else "]" for bracket in reversed(scanner.stack[floor:]))
    at.events.note("unclosed_arguments", closers)
    at.calls.delta(closers, take_pieces(at.source.pieces))
    at.island = None
    return text


def _unopened_reasoning(at: Position, text: str, value: str, ended: bool) -> str:
    at.events.note("unopened_reasoning", value)
    at.prompt = ""
    return text


def _unusual_form(at: Position, text: str, value: str, ended: bool) -> str:
    at.events.note("unusual_form", value)
    return text


# Performed after the characters are dropped. A call that ends only because the output ends is complete only if the
# finish reason says that nothing was cut off.
_DROPPING: dict[str, Callable[[Calls, bool], None]] = {
    "start_call": lambda calls, ended: calls.begin(),
    "open_arguments": lambda calls, ended: calls.open_arguments(),
    "close_arguments": lambda calls, ended: calls.close_arguments() if ended else None,
    "end_call": lambda calls, ended: calls.end("complete" if ended else "truncated"),
    "fail_call": lambda calls, ended: calls.end("malformed"),
}
_ACTIONS: dict[str, Action] = {
    "name": _name,
    "call_id": _call_id,
    "call_id_part": _call_id_part,
    "late_call_id": _late_call_id,
    "no_arguments": _no_arguments,
    "argument_key": _argument_key,
    "unclosed_value": _unclosed_value,
    UNCLOSED_ENVELOPE: _unclosed_envelope,
    "unclosed_arguments": _unclosed_arguments,
    "unopened_reasoning": _unopened_reasoning,
    "unusual_form": _unusual_form,
}
