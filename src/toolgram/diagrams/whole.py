r"""The whole machine as a picture.

Strategy: all states and transitions of the composed machine are there, but condensed:

* the states of a fragment form one group; the initial state comes first;
* several triggers between two states share one edge; a trigger that leads back to its own state is written into the
  state, after a circular arrow;
* the end of the output leads from almost every state to the final state; these states have a thick border in place of
  an edge, and only an end with an action (`after`) is drawn;
* recoveries from text that does not fit are thin and grey (Mermaid has one kind of edge, so there only words differ).

Triggers are shown as a model writes them (`[TOOL_CALLS]`, `key "name"`), not by the names of their symbols.  The
transition table on a format's page has every transition.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from toolgram.diagrams.picture import Box, Edge, Picture
from toolgram.diagrams.words import filled, trigger_in_words
from toolgram.spec.data import END, Spec, State, Transition
from toolgram.spec.vocabulary import RECOVERY_TRIGGERS

WIDEST_NAME = 20
WIDEST_LABEL = 26
BETWEEN = " \N{MIDDLE DOT} "
AGAIN = "\N{CLOCKWISE OPEN CIRCLE ARROW}"


@dataclass(slots=True)
class _Between:
    """All the triggers between two states."""

    words: dict[str, None] = field(default_factory=dict)
    recovery: bool = True


def whole(spec: Spec) -> Picture:
    """Return the condensed machine."""
    names = {name: _plain_name(name, index) for index, name in enumerate(spec.states)}
    loops: dict[str, list[Transition]] = {name: [] for name in spec.states}
    ends: set[str] = set()
    between: dict[tuple[str, str], _Between] = {}
    for transition in spec.transitions:
        if transition.trigger == END and not transition.actions:
            ends.add(transition.source)
        elif transition.source == transition.dest:
            loops[transition.source].append(transition)
        else:
            edge = between.setdefault((names[transition.source], names[transition.dest]), _Between())
            edge.words[trigger_in_words(spec, transition)] = None
            edge.recovery = edge.recovery and transition.trigger in RECOVERY_TRIGGERS
    groups = _groups(spec)
    boxes = {
        names[name]: Box(
            tuple(_lines(spec, state, loops[name])),
            state.meaning,
            state.held,
            name in ends or name == spec.final,
            f"in_{state.fragment}" if state.fragment in groups else "",
        )
        for name, state in sorted(spec.states.items(), key=lambda item: item[0] != spec.initial)
    }
    edges = {
        ends_: Edge(tuple(filled(list(edge.words), WIDEST_LABEL, BETWEEN)), edge.recovery)
        for ends_, edge in between.items()
    }
    return Picture(spec.title, names[spec.initial], boxes, edges, {f"in_{name}": name for name in groups})


def _groups(spec: Spec) -> list[str]:
    """Return the fragments that are worth a group: those of several states."""
    sizes = Counter(state.fragment for state in spec.states.values() if state.fragment)
    return [name for name, size in sizes.items() if size > 1]


# Mermaid does not accept the first word of a statement as a name, in upper or lower case.
_NOT_A_NAME = re.compile(
    r"(?:as|class|classdef|click|default|direction|end|hide|in|note|scale|state|style)(?:_|$)", re.I
)


def _plain_name(name: str, index: int) -> str:
    safe = re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) and not _NOT_A_NAME.match(name)
    return name if safe else f"s{index}"


def _lines(spec: Spec, state: State, loops: list[Transition]) -> list[str]:
    """Return the lines of text in a state."""
    lines = _wrapped_name(state.name)
    if words := _loops_in_words(spec, loops):
        lines += filled([f"{AGAIN} {words[0]}", *words[1:]], WIDEST_LABEL, BETWEEN)
    if state.name == spec.final:
        lines += ["end of output,", "from any thick border"]
    return lines


def _loops_in_words(spec: Spec, loops: list[Transition]) -> list[str]:
    """Return the triggers that lead back to their own state; a key and its value are one entry: `"id": "..."`."""
    paths = {loop: loop.trigger.partition(" ")[2].partition(" ")[0] for loop in loops}
    keys = {paths[loop] for loop in loops if loop.trigger.startswith("map_key ")}
    values = {
        paths[loop]: trigger_in_words(spec, loop)
        for loop in loops
        if paths[loop] in keys and not loop.trigger.startswith("map_key ")
    }
    words: dict[str, None] = {}
    for loop in loops:
        told = trigger_in_words(spec, loop)
        if paths[loop] not in values:
            words[told] = None
        elif loop.trigger.startswith("map_key "):
            words[f"{told.removeprefix('key ')}: {values[paths[loop]]}"] = None
    return list(words)


def _wrapped_name(name: str) -> list[str]:
    if len(name) <= WIDEST_NAME:
        return [name]
    middle = len(name) // 2
    cuts = [at + 1 for at, char in enumerate(name[:-1]) if char in "_ -"]
    if not cuts:
        return [name]
    cut = min(cuts, key=lambda at: (abs(at - middle), -at))
    return [name[:cut], name[cut:]]
