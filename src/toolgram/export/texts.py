"""Free text that must not contain certain words: which these are, and the automaton that finds them.

Strategy: text contains no marker of the format, at any place, and no declared function in the form in which a call
without a marker begins. So everything forbidden is a fixed word, and the automaton is that of Aho and Corasick: its
state is the longest beginning of a word that the text so far ends in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from toolgram.export.expressions import Forbidden
from toolgram.spec.data import TEXT, Literal, Run, Spec, Transition

WORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"  # the characters of names and ids
Rows = Mapping[str, Mapping[str, Transition]]


@lru_cache(maxsize=512)
def characters_of(pattern: str, among: str) -> str:
    """Return those characters of `among` that a class matches."""
    match = re.compile(pattern).fullmatch
    return "".join(char for char in among if match(char))


def rest_of(run: Run) -> str:
    """Return the class of the second and later characters of a run."""
    rest = run.pattern[len(run.first) :] if run.pattern.startswith(run.first) else ""
    return re.sub(r"\{\d*,?\d*\}\Z", "", rest) or run.first


# --- what is forbidden --------------------------------------------------------------------------------------------


def forbidden_words(spec: Spec, rows: Rows, state: str, declared: Sequence[str]) -> Iterator[str]:
    """Yield the words that a state's text must not contain: markers, and the beginnings of calls without a marker."""
    beyond = rows[rows[state][TEXT].dest]
    markers = {shape.text for trigger in beyond if isinstance(shape := spec.terminals.get(trigger), Literal)}
    for trigger, transition in beyond.items():
        shape = spec.terminals.get(trigger)
        if isinstance(shape, Literal) and shape.text not in _BRACKETS.values():
            held = trigger not in spec.special_tokens and spec.states[transition.dest].held
            if not (held and _needs_another(spec, rows, transition.dest, markers - {shape.text})):
                yield from shape.texts
        else:
            yield from bare_calls(spec, rows, trigger, transition.dest, declared)
    for trigger in rows[state].keys() - beyond.keys():  # transitions at the beginning of the text
        shape, transition = spec.terminals.get(trigger), rows[state][trigger]
        if isinstance(shape, Run) and "name" in transition.actions:
            ends = [end for each in rows[transition.dest] if isinstance(end := spec.terminals.get(each), Literal)]
            yield from (name + text for name in declared for end in ends for text in end.texts)
        elif isinstance(shape, Literal) and len(shape.text) > 2:
            yield shape.text
    if spec.states[rows[state][TEXT].dest].typed == "string":
        yield from (f"\\{marker[:-1]}" for marker in markers if marker[0] == '"')  # an escaped quote closes nothing
    if spec.line_calls and spec.states[state].meaning == "content":
        yield from (f"{name}(" for name in declared)


_BRACKETS = {"start_map item": "{", "start_array": "["}


def bare_calls(spec: Spec, rows: Rows, trigger: str, dest: str, declared: Sequence[str]) -> Iterator[str]:
    """Yield the words that make a call of a bracket without a marker: only declared functions are called like this."""
    shape = spec.terminals.get(trigger)
    bracket = shape.text if isinstance(shape, Literal) else _BRACKETS.get(trigger)
    if bracket == "{" or (bracket == "[" and "start_map item" in rows[dest]):
        yield from (json.dumps(name, ensure_ascii=False) for name in declared)
        if spec.python_json:
            yield from (f"'{name}'" for name in declared)
    if bracket == "[" and any(isinstance(spec.terminals.get(each), Run) for each in rows[dest]):
        yield from (f"{name}(" for name in declared)


def _needs_another(spec: Spec, rows: Rows, state: str, markers: set[str]) -> bool:
    """Return whether only a name and another marker make a call in a held state, so that its own marker is text."""
    ways = {trigger: row for trigger, row in rows[state].items() if trigger != TEXT and not row.repair}
    if not ways or not all(isinstance(spec.terminals.get(trigger), Run) for trigger in ways):
        return False
    after = {trigger for row in ways.values() for trigger in rows[row.dest] if trigger not in ways and trigger != TEXT}
    texts = {shape.text if isinstance(shape := spec.terminals.get(each), Literal) else "" for each in after}
    return bool(texts) and texts <= markers


# --- the automaton ------------------------------------------------------------------------------------------------


def first_completion(words: Sequence[str], text: str) -> int:
    """Return after how many characters of `text` a word is complete; 0 if none is."""
    return min((text.find(word) + len(word) for word in words if word in text), default=0)


def reaches_into(words: Sequence[str], closer: str) -> bool:
    """Return whether a word that begins in a text may be complete in the closer after it."""
    return any(closer.startswith(word[at:]) for word in words for at in range(1, len(word)))


@dataclass(frozen=True, slots=True)
class Move:
    """A move to another state over one of some characters (or any other); `dest` is None if the closer is complete."""

    characters: str
    negated: bool
    dest: int | None


@lru_cache(maxsize=512)
def text_automaton(forbidden: Forbidden, closer: str) -> tuple[tuple[Move, ...], ...]:
    """Return the moves of each state of text without the words, up to the end of `closer` if it is given.

    Without a closer the text may end in every state.
    """
    words = forbidden.words
    sought = (*words, closer) if closer else words
    beginnings = {word[:at] for word in sought for at in range(len(word))}
    characters = sorted(set("".join(sought)))
    numbers, pending = {"": 0}, [""]
    states: list[tuple[Move, ...]] = []
    while len(states) < len(pending):
        groups: dict[int | None, list[str]] = {}
        known = []  # characters that, unlike all others, do not lead to the first state
        for char in characters:
            read = pending[len(states)] + char
            complete = [word for word in sought if read.endswith(word)]
            if complete and not (closer in complete and all(map(closer.endswith, complete))):
                known.append(char)
                continue
            while not complete and read not in beginnings:
                read = read[1:]
            if read not in numbers and not complete:
                numbers[read] = len(numbers)
                pending.append(read)
            if complete or read:
                known.append(char)
                groups.setdefault(None if complete else numbers[read], []).append(char)
        moves = [Move("".join(chars), False, dest) for dest, chars in groups.items()]
        states.append((Move("".join(known), True, 0), *moves))
    return tuple(states)
