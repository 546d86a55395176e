"""What begins in text: which symbols open a call, and which open reasoning.

Strategy: a symbol opens a call if no marker leads from it to text before a call has started, but for those that end a
failed call.  The header of a message may lead to a call and to text as well, so it opens neither.  A name is announced
if a marker comes before it, or has to come after it.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from toolgram.program.state import CALL, HEADER, STOP, TERMINAL, THOUGHT, Move, StateProgram
from toolgram.spec.data import END, TEXT, Literal, Spec

_LEADS_OUT = frozenset({TEXT, END, "malformed", "recovered", "unclosed"})


def find_openers(spec: Spec, states: Mapping[str, StateProgram]) -> None:
    """Note what each symbol of a state of text opens."""
    closers = {closer for closing in spec.closed_by.values() for closer in closing}
    failed = (state.row.values() for state in states.values() if state.meaning == "malformed")
    closers |= {move.trigger for row in failed for move in row if move.dest.is_text}
    around = {row.trigger for row in spec.transitions if row.of_calls and states[row.source].meaning == "reasoning"}
    passed = _LEADS_OUT | closers | set(spec.stop or ())
    for state in states.values():
        for symbol in state.symbols if state.is_text else ():
            if symbol.kind != TERMINAL or symbol.trigger in around:
                symbol.opens = CALL
            elif symbol.trigger in (spec.stop or ()):
                symbol.opens = STOP
            elif symbol.trigger not in passed or state.row[symbol.trigger].dest.held:  # it closes, and opens as well
                symbol.opens = _opened(state, state.row[symbol.trigger], passed, spec)


def find_announced_names(states: Mapping[str, StateProgram], markers: Container[str]) -> None:
    """Note the states in which a name is not a call yet, and from which only a marker leads to one."""
    bare: set[str] = set()
    found = [name for name, state in states.items() if _leads_to_call(state, bare, markers)]
    while found:
        bare.update(found)
        found = [name for name, state in states.items() if name not in bare and _leads_to_call(state, bare, markers)]
    for state in states.values():
        state.announced = state.held and state.name not in bare


def _leads_to_call(state: StateProgram, bare: Container[str], markers: Container[str]) -> bool:
    """Return whether a call begins in a state, or in one of those in `bare` after it, without a marker."""
    return any(
        trigger not in markers and ("start_call" in move.actions or (move.dest.held and move.dest.name in bare))
        for trigger, move in state.row.items()
    )


def _opened(state: StateProgram, move: Move, passed: Container[str], spec: Spec) -> str:
    if move.dest.is_text:
        return THOUGHT if move.dest.meaning == "reasoning" != state.meaning else ""
    found, seen = [move], {move.dest.name}
    while found:
        dest = found.pop().dest
        for trigger, onward in dest.row.items():
            if trigger in passed or "start_call" in onward.actions:
                continue
            if onward.dest.is_text and isinstance(spec.terminals.get(trigger), Literal):
                return HEADER
            if not onward.dest.is_text and onward.dest.name not in seen:
                seen.add(onward.dest.name)
                found.append(onward)
    return CALL
