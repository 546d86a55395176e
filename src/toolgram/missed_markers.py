"""Closing markers behind a call that may be missed: in which states one is still to come, and what comes instead of it.

Strategy: what a format's own examples always have behind their calls, it misses where it does not come.  A marker that
leads on from a state is missed before whatever else leads on from there; one that stays in the state (each call in a
section has it) is owed by each call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from toolgram.spec import END, TEXT, UNCLOSED, Literal, Spec

if TYPE_CHECKING:
    from toolgram.compile import StateProgram

BRACKETS, FENCE = "}])", "```"


def find_unclosed(spec: Spec, states: Mapping[str, StateProgram], closers: Collection[str]) -> frozenset[str]:
    """See in which states behind a call a closing marker is still to come, and which triggers come instead of it. The
    triggers that begin a call between such markers, and without them.

    Only a marker that the format's own examples have is missed, and none that may stand in text, or end the turn.
    """
    initial = states[spec.initial]
    said = spec.machine_dict.get("format", {}).get("canonical") or ()
    texts = [spec.example, *(each.get("output", "") if isinstance(each, dict) else each for each in said)]
    begins = {
        trigger: move.dest
        for trigger, move in initial.row.items()
        if not move.repair
        and not move.dest.loops
        and not any(each.dest.meaning == "reasoning" for each in move.dest.row.values())
    }
    texts_of = {name: shape.text for name, shape in spec.terminals.items() if isinstance(shape, Literal)}
    moves = [move for state in states.values() for move in state.row.values()]
    names = {move.trigger for move in moves if move.dest.meaning == "name" and not move.repair}
    markers = [text for name, text in texts_of.items() if name in (names & {*texts_of} or begins)]
    examples = [text for text in texts if isinstance(text, str) and any(marker in text for marker in markers)]
    triggers = {
        name
        for name, text in texts_of.items()
        if text in closers and text not in (*BRACKETS, FENCE) and name not in {*(spec.stop or ()), *initial.row}
        and examples and all(text in example for example in examples)
    }  # fmt: skip
    closed: list[StateProgram] = []
    sure = [(opened, move) for opened in begins.values() for move in opened.row.values() if not move.repair]
    ways = {(move.trigger, move.dest.name) for opened, move in sure if move.dest is not opened}
    for state in _behind_calls(states, triggers):
        begin = [text for name, text in texts_of.items() if name in state.row and state.row[name].dest.held]
        state.owed = frozenset(
            trigger
            for trigger in triggers & state.row.keys()
            if state.row[trigger].dest is state
            and all(example.count(texts_of[trigger]) >= example.count(text) for example in examples for text in begin)
        )
        owed = {trigger for trigger in triggers & state.row.keys() if state.row[trigger].dest is not state}
        if not owed or state.loops or UNCLOSED in state.row:
            continue
        inner = {trigger for trigger, move in state.row.items() if (trigger, move.dest.name) in ways}
        inner |= {  # what the examples have more often than what closes all of it
            name
            for name in texts_of.keys() & state.row.keys()
            if any(text.count(texts_of[name]) > max(text.count(texts_of[each]) for each in owed) for text in examples)
        }
        inner |= {  # what separates calls: behind it the next one begins as the first one does behind the marker
            trigger
            for trigger, move in state.row.items()
            if not move.repair and trigger not in initial.row and _ways(move.dest) and _ways(move.dest) <= ways
        }
        others = {trigger for trigger, move in state.row.items() if move.dest is not state}
        others -= {name for name, text in texts_of.items() if text in closers}
        state.unclosed = frozenset(others - (inner - {TEXT, END, *(spec.stop or ())}))
        closed += (state.row[trigger].dest for trigger in owed)
    entered = {move.dest.name for move in moves if "end_call" in move.actions and move.trigger not in texts_of}
    for state in closed:
        state.closed = not state.unclosed and state.name not in entered
    inside = {trigger for opened in begins.values() for trigger, move in opened.row.items() if move.dest is not opened}
    return frozenset(inside & initial.row.keys() - {TEXT, END, *(spec.stop or ())})


def _ways(state: StateProgram) -> set[tuple[str, str]]:
    """The triggers that leave a state, and where to."""
    return {(trigger, move.dest.name) for trigger, move in state.row.items() if move.dest is not state}


def _behind_calls(states: Mapping[str, StateProgram], closing: Collection[str]) -> list[StateProgram]:
    """The states behind a complete call, and behind markers that close it."""
    moves = [(name, move) for name, state in states.items() for move in state.row.values()]
    behind: set[str] = set()
    grown = {move.dest.name for _, move in moves if "end_call" in move.actions}
    while grown - behind:
        behind |= grown
        grown = {move.dest.name for name, move in moves if name in behind and move.trigger in ("end_array", *closing)}
    return [states[name] for name in sorted(behind)]
