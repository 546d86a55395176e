"""Closing markers: which ones a call owes, what comes instead of one that is missing, and what a surplus one closes.

Strategy: a format declares its pairs (`closed_by:`).  An opening marker that has come owes its closing marker after the
call.  The marker is missing if something comes that leads on and is neither inside the pair nor a closing marker of
what is inside it.  A marker that belongs inside of another pair, and comes alone, owes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Set
from typing import TYPE_CHECKING, NamedTuple

from toolgram.spec.data import END, TEXT, Literal, Spec

if TYPE_CHECKING:
    from toolgram.program.state import StateProgram

BRACKETS, FENCE = "}])", "```"
_LONG = 4  # characters: prose and code have shorter texts as well
_CLOSING_WORDS = (("end", "begin"), ("end", "start"), ("close", "open"))


def find_open_markers(spec: Spec, states: Mapping[str, StateProgram]) -> None:
    """Compute what each transition opens and closes, and which opening markers it leaves open."""
    inside = {opener: _markers_inside(spec, states, opener) for opener in spec.closed_by}
    around = _openers_around(states, inside)
    for state in states.values():
        for move in state.row.values():
            move.closes = frozenset(each for each, closing in spec.closed_by.items() if move.trigger in closing)
            if move.trigger in inside:
                move.opens, move.within = move.trigger, around[move.trigger]
    closing_something = _closing_something(spec, states)
    for opener, closing in spec.closed_by.items():
        outer = {closer for other in around[opener] for closer in spec.closed_by[other]}
        passed = {*closing, *(inside[opener] - {TEXT, END}), *(closing_something - outer)}
        if spec.stop is None and not states[spec.initial].row.keys().isdisjoint(closing):
            passed.add(END)  # what ends text may end the turn as well, and servers cut that off
        for state in states.values():
            if not state.held and state.meaning in (None, "content") and not state.row.keys().isdisjoint(closing):
                _leave_open(state, opener, passed)


def _openers_around(states: Mapping[str, StateProgram], inside: Mapping[str, Set[str]]) -> Mapping[str, frozenset[str]]:
    """Compute the opening markers inside of which alone another one opens something; none if text has it as well."""
    in_text = _triggers_in_text(state for state in states.values() if state.loops)
    return {opener: frozenset(other for other in inside if opener in inside[other] - in_text) for opener in inside}


def _triggers_in_text(states: Iterable[StateProgram]) -> set[str]:
    """Return the triggers that text has, but for those of repairs."""
    rows = (state.row for state in states if state.is_text)
    return {trigger for row in rows for trigger, move in row.items() if not move.repair}


def _closing_something(spec: Spec, states: Mapping[str, StateProgram]) -> set[str]:
    """Return the triggers that leave no pair open: closing markers, and single characters, which text has too."""
    literals = {name: shape.text for name, shape in spec.terminals.items() if isinstance(shape, Literal)}
    declared = {closer for closers in spec.closed_by.values() for closer in closers}
    single = {name for name, text in literals.items() if len(text) == 1}
    in_text = _triggers_in_text(states.values())
    inner = {name for name, openers in _find_closing_markers(spec, states).items() if openers.isdisjoint(in_text)}
    return single | declared | inner


def _leave_open(state: StateProgram, opener: str, passed: Set[str]) -> None:
    """Note which triggers of a state, but for those in `passed`, come instead of what closes `opener`."""
    for trigger, move in state.row.items():
        if trigger not in passed and (move.dest is not state or trigger == TEXT):
            state.leaves_owed[trigger] = state.leaves_owed.get(trigger, frozenset()) | {opener}


def _markers_inside(spec: Spec, states: Mapping[str, StateProgram], opener: str) -> set[str]:
    """Compute the triggers that may come after an opening marker, before a call is certain."""
    alike = {other for other, closers in spec.closed_by.items() if closers == spec.closed_by[opener]}
    others = spec.closed_by.keys() - alike
    moves = [move for state in states.values() for move in state.row.values()]
    waiting = [move.dest for move in moves if move.trigger == opener and not move.repair]
    seen: set[str] = set()
    found: set[str] = set()
    while waiting:
        state = waiting.pop()
        if state.name not in seen:
            seen.add(state.name)
            leaving = [move for move in state.row.values() if move.dest is not state and not move.repair]
            found |= {move.trigger for move in leaving} | (others & state.row.keys())
            waiting += [move.dest for move in leaving if move.dest.held]
    return found - alike


def find_closed_states(spec: Spec, states: Mapping[str, StateProgram]) -> None:
    """Mark the states after a call that only its closing markers lead to: nothing is owed there."""
    closing = {closer for closers in spec.closed_by.values() for closer in closers} - states[spec.initial].row.keys()
    moves = [move for state in states.values() for move in state.row.values()]
    entered = {move.dest.name for move in moves if "end_call" in move.actions and move.trigger not in spec.terminals}
    for move in moves:
        if move.trigger in closing and move.dest.name not in entered:
            move.dest.closed = True


def find_closing(spec: Spec, states: Iterable[StateProgram]) -> frozenset[str]:
    """Return the markers that close a call: after one, or after what is left of one, they lead to text and begin
    nothing. A token that ends the turn is none of them."""
    states = list(states)
    moves = [move for state in states for move in state.row.values()]
    texts = {trigger: shape.text for trigger, shape in spec.terminals.items() if isinstance(shape, Literal)}
    begins = {move.trigger for move in moves if move.dest.held or move.dest.meaning == "reasoning"}
    openers = tuple(texts[trigger] for trigger in begins if trigger in texts)
    after_calls = {trigger for state in states if _is_after_call(state) for trigger in state.row}
    found = {texts[trigger] for trigger in after_calls & texts.keys() - {*(spec.stop or ())}}
    return frozenset(text for text in found if not text.startswith(openers))


def _is_after_call(state: StateProgram) -> bool:
    """Return whether a state is after a call, or after what is left of one."""
    if state.meaning is None:
        return not state.held
    return state.meaning == "malformed" or (state.is_text and not state.loops)


def opened_by(closer: str, markers: Iterable[str]) -> list[str]:
    """Return the markers that open what `closer` closes, as they are written: `<a` and `</a>`, `<|begin_a|>` and
    `<|end_a|>`, `<|open|>a` and `<|close|>a`, `<|a>` and `<a|>`."""
    forms = {closer.replace("/", "", 1)}
    for word, other in _CLOSING_WORDS:
        for each in (str.lower, str.upper):
            before, found, behind = re.split(rf"(?<![A-Za-z])({each(word)})(?![A-Za-z])|\Z", closer, maxsplit=1)
            if found and re.search("[A-Za-z]", before + behind):  # else it does not say what it closes
                forms.add(before + each(other) + behind)
    if closer.startswith("<") and closer.endswith("|>"):
        forms.add(f"<|{closer[1:-2]}>")
    stems = tuple(form.rstrip(">") for form in forms - {closer})
    return [
        marker
        for marker in markers
        if marker != closer and any(marker.startswith(stem) and not _goes_on(marker, stem) for stem in stems)
    ]


def _goes_on(marker: str, stem: str) -> bool:
    return stem == "" or (stem[-1].isalnum() and marker[len(stem) : len(stem) + 1].isalnum())


def _opens(closer: str, marker: str) -> bool:
    """Return whether a marker is a fence with a language, or begins with the bracket that it leaves open."""
    if closer == FENCE:
        return marker.startswith(FENCE) and marker != FENCE
    opener = "{[("[BRACKETS.index(closer)]
    return marker.startswith(opener) and len(marker) >= _LONG and marker.count(opener) > marker.count(closer)


def _find_closing_markers(spec: Spec, states: Mapping[str, StateProgram]) -> dict[str, frozenset[str]]:
    """Return the triggers of long markers that close anything, each with those that open the same. Neither
    what closes reasoning nor what ends the turn."""
    texts = {name: shape.text for name, shape in spec.terminals.items() if isinstance(shape, Literal)}
    rows = [(state, trigger, move) for state in states.values() for trigger, move in state.row.items()]
    thoughts = {trigger for _, trigger, move in rows if move.dest.meaning == "reasoning"}
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text.strip(), []).append(name)
    found: dict[str, frozenset[str]] = {}
    for name, text in texts.items():
        if text in BRACKETS or text == FENCE:
            openers = frozenset(each for each, other in texts.items() if _opens(text, other))
        elif len(text.strip()) < _LONG or name in (spec.stop or ()):
            continue
        else:
            openers = frozenset(each for marker in opened_by(text.strip(), names) for each in names[marker])
        if openers and not openers & thoughts:
            found[name] = openers
    return found


class ClosingMarks(NamedTuple):
    """Triggers of markers that close something: what was opened in text, each with those that close the same; fences;
    what is inside a call. Texts of those that may be cut off after a call, and of those that close reasoning."""

    sections: dict[str, frozenset[str]]
    fences: frozenset[str]
    inner: list[str]
    ends: list[str]
    thought_ends: tuple[str, ...]


def find_closing_marks(
    spec: Spec, states: Mapping[str, StateProgram], literals: Mapping[str, str], strict: bool
) -> ClosingMarks:
    """Find what the markers of a format close, and the moves that open something in text.

    A strict parser, which drops nothing, needs neither.
    """
    closing = {} if strict else _find_closing_markers(spec, states)
    fences = frozenset(name for name, text in literals.items() if text == FENCE)
    sections = _find_sections(states, closing, fences)
    row = states[spec.initial].row
    inner = [name for name in closing if name not in row and literals[name] not in (*BRACKETS, FENCE)]
    thoughts = {each.trigger for each in spec.transitions if "unopened_reasoning" in each.actions}
    ending = literals.keys() & {*sections, *thoughts, *(spec.stop or ())}
    return ClosingMarks(
        sections,
        fences,
        inner,
        [literals[name] for name in sorted(ending)],
        tuple(literals[name] for name in sorted(thoughts & literals.keys())),
    )


def _find_sections(
    states: Mapping[str, StateProgram], closing: Mapping[str, frozenset[str]], fences: frozenset[str]
) -> dict[str, frozenset[str]]:
    """Return the triggers of markers that close what was opened in text, and of closing fences, with the triggers of
    the moves that open it."""
    in_text = {move.trigger for state in states.values() if state.loops for move in state.row.values()} | fences
    found = {closer: openers for closer, openers in closing.items() if closer in in_text or openers <= in_text}
    for state in states.values():
        for move in state.row.values():
            move.begins = frozenset(closer for closer, openers in found.items() if move.trigger in openers)
    return {
        closer: frozenset(other for other, same in found.items() if openers & same) for closer, openers in found.items()
    }


def find_element_ends(spec: Spec, states: Iterable[StateProgram]) -> tuple[str, ...]:
    """Return how closing tags of elements begin: those inside values, and those that are named like arguments."""
    ends = {state.around_key[0].replace("<", "</", 1) for state in states if state.echo and "<" in state.around_key[0]}
    if any(state.typed == "elements" for state in states):
        ends.add(spec.notation[1])
    return tuple(sorted(ends))
