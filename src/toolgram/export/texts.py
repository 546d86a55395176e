"""Free text that must not contain certain patterns: what these are, and the automaton that finds them.

Strategy: a marker that is a special token may not occur in text at all.  A bracket may, as long as no call follows from
it.  Then the forbidden pattern is the bracket and what must come after it for a call, as a short sequence of character
sets.  The automaton is the subset construction over "anything, then one of the patterns".  For fixed texts it is the
automaton of Aho and Corasick, so it also finds a marker that begins inside the beginning of another one.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from toolgram.export.expressions import Forbidden, Step
from toolgram.spec.data import TEXT, Literal, Run, Spec, Transition, is_json_trigger

BLANKS = Step(frozenset(" \t\r\n"), repeated=True)
WORD = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"  # the characters of names and ids
_QUOTES = frozenset("\"'")
_ASCII = [chr(code) for code in range(9, 127)]

Pattern = tuple[Step, ...]
Items = frozenset[tuple[int, int]]
_Key = TypeVar("_Key", bound=Hashable)


@lru_cache(maxsize=512)
def literal_pattern(text: str) -> Pattern:
    """The pattern of one fixed text."""
    return tuple(Step(frozenset(char)) for char in text)


def character(step: Step) -> str:
    """The character of a step that is one."""
    return next(iter(step.characters))


def is_character(step: Step) -> bool:
    """Whether a step is one fixed character."""
    return len(step.characters) == 1 and not step.repeated and not step.negated


def takes(step: Step | Move, char: str) -> bool:
    """Whether a character fits a step, or a move."""
    return (char in step.characters) != step.negated


def spelled(pattern: Pattern) -> str:
    """A pattern as text; what is no fixed character is "\\0"."""
    return "".join(character(step) if is_character(step) else "\0" for step in pattern)


def class_step(pattern: str, repeated: bool = False) -> Step:
    """A step for the characters that a class of a regular expression matches."""
    match = re.compile(pattern).fullmatch
    if match("\u00e9"):
        return Step(frozenset(char for char in _ASCII if not match(char)), True, repeated)
    return Step(frozenset(char for char in _ASCII if match(char)), False, repeated)


@lru_cache(maxsize=512)
def characters_of(pattern: str, among: str) -> str:
    """Those characters of `among` that a class matches."""
    match = re.compile(pattern).fullmatch
    return "".join(char for char in among if match(char))


def rest_of(run: Run) -> str:
    """The class of the second and later characters of a run."""
    rest = run.pattern[len(run.first) :] if run.pattern.startswith(run.first) else ""
    rest = re.sub(r"\{\d*,?\d*\}\Z", "", rest)
    return rest or run.first


# --- what is forbidden --------------------------------------------------------------------------------------------


def patterns_of(
    spec: Spec, rows: dict[str, dict[str, Transition]], row: Iterable[str], state: str
) -> Iterator[Pattern]:
    """What may not stand in the text of `state`, given the triggers that end it there."""
    for trigger in row:
        transition = rows[state].get(trigger)
        shape = spec.terminals.get(trigger)
        if transition is None:
            continue
        if isinstance(shape, Literal):
            exact = literal_pattern(shape.text)
            if trigger in spec.special_tokens or transition.actions or not spec.states[transition.dest].held:
                yield from map(literal_pattern, shape.texts)
            else:
                if "start_map item" in row and "start_map item" in rows[transition.dest]:
                    continue  # the call is recognised without it
                follow = list(_follow(spec, rows, transition.dest, 2, marked=True))
                yield from ((*exact, *rest) for rest in follow or [()])
        elif trigger in ("start_map item", "start_array"):
            yield from _opened(spec, rows, trigger, transition.dest)


def _opened(spec: Spec, rows: dict[str, dict[str, Transition]], trigger: str, dest: str) -> Iterator[Pattern]:
    bracket = Step(frozenset("{" if trigger == "start_map item" else "["))
    if trigger == "start_array":
        yield from ((bracket, BLANKS, *rest) for rest in _follow(spec, rows, dest, 1))
        return
    # any key at all: an object that is no call is read as text to its end, and no call can begin inside it
    yield (bracket, BLANKS, Step(_QUOTES if spec.python_json else frozenset('"')))


def _follow(
    spec: Spec, rows: dict[str, dict[str, Transition]], state: str, depth: int, marked: bool = False
) -> Iterator[Pattern]:
    """What must come next in a held state, up to a limit; nothing where several things may come. Behind a marker, an
    object is a call however its first key is written, because it is repaired there."""
    row = rows[state]
    blanks: Pattern = ()
    found: list[Pattern] = []
    for trigger, transition in row.items():
        shape = spec.terminals.get(trigger)
        if isinstance(shape, Literal):
            found += map(literal_pattern, shape.texts)
        elif isinstance(shape, Run):
            if re.fullmatch(shape.first, " "):
                if transition.dest != state:
                    return
                blanks = (BLANKS,)
                continue
            body = (class_step(shape.first), class_step(rest_of(shape), repeated=True))
            further = list(_follow(spec, rows, transition.dest, depth - 1)) if depth > 1 else []
            found += [(*body, *rest) for rest in further] or [body[:1]]
        elif trigger == "start_map item":
            key = () if marked else (BLANKS, Step(_QUOTES))
            found.append((Step(frozenset("{")), *key))
        elif trigger == "start_array":
            found.append(literal_pattern("["))
        elif trigger in ("object_start", "object_empty"):
            bracket = "(" if trigger == "object_empty" or spec.states[transition.dest].python else "{"
            found.append(literal_pattern(bracket))
            if spec.states[transition.dest].encoded:
                found.append(literal_pattern('"'))
        elif not is_json_trigger(trigger) and trigger != "end":
            return
    yield from dict.fromkeys((*blanks, *each) for each in found)


def calls_at_a_beginning(
    spec: Spec, rows: dict[str, dict[str, Transition]], state: str, declared: Iterable[str]
) -> tuple[tuple[Pattern, ...], tuple[Pattern, ...]]:
    """What is read as a call at the beginning of a line, and what is one where the text of `state` begins."""
    if spec.states[state].meaning != "content":
        return (), ()
    beyond = rows[rows[state][TEXT].dest]
    beginnings: list[Pattern] = []
    for trigger, row in rows[state].items():
        shape = spec.terminals.get(trigger)
        if isinstance(shape, Run) and trigger not in beyond and "name" in row.actions:
            beginnings += _named(spec, rows, shape, row.dest)
    called = [f"{name}(" for name in sorted(declared)] if spec.line_calls else []
    lines = tuple(literal_pattern("\n" + each) for each in called)
    return lines, (*beginnings, *map(literal_pattern, called))


def _named(spec: Spec, rows: dict[str, dict[str, Transition]], name: Run, state: str) -> Iterator[Pattern]:
    """A name, and what must come behind it for a call."""
    body = (BLANKS, class_step(name.first), class_step(rest_of(name), repeated=True))
    for trigger, row in rows[state].items():
        shape = spec.terminals.get(trigger)
        if isinstance(shape, Literal):
            exact = [literal_pattern(text) for text in shape.texts]
            yield from ((*body, *each, *rest) for each in exact for rest in _follow(spec, rows, row.dest, 1))


# --- the automaton ------------------------------------------------------------------------------------------------


def closed(patterns: tuple[Pattern, ...], items: Iterable[tuple[int, int]]) -> Items:
    """The items with those behind a step that may be absent."""
    found: set[tuple[int, int]] = set()
    for which, at in items:
        found.add((which, at))
        while at < len(patterns[which]) and patterns[which][at].repeated:
            at += 1
            found.add((which, at))
    return frozenset(found)


def advance(patterns: tuple[Pattern, ...], anywhere: int, items: Items, char: str) -> tuple[Items, frozenset[int]]:
    """The items after a character ("" for any that no pattern names), and the patterns that are complete there.

    The first patterns, so many as `anywhere` says, may begin at every character, the others began with the text.
    """
    moved = []
    for which, at in items:
        if at == len(patterns[which]):
            continue
        step = patterns[which][at]
        if takes(step, char) if char else step.negated:
            moved.append((which, at if step.repeated else at + 1))
    after = closed(patterns, [*moved, *((which, 0) for which in range(anywhere))])
    return after, frozenset(which for which, at in after if at == len(patterns[which]))


def first_completion(forbidden: Forbidden, text: str) -> int:
    """After how many characters of `text` a forbidden pattern is complete; 0 where none is."""
    patterns = forbidden.patterns
    items = closed(patterns, ((which, 0) for which in range(len(patterns))))
    for at, char in enumerate(text, 1):
        items, complete = advance(patterns, len(patterns), items, char)
        if complete:
            return at
    return 0


@lru_cache(maxsize=512)
def reaches_into(forbidden: Forbidden, closer: str) -> bool:
    """Whether a pattern that began in a text may be complete in the closer behind it."""
    patterns = forbidden.patterns
    items = closed(patterns, ((which, at) for which, each in enumerate(patterns) for at in range(1, len(each))))
    for char in closer:
        items, complete = advance(patterns, 0, items, char)
        if complete:
            return True
    return False


@dataclass(frozen=True, slots=True)
class Move:
    """Over any of (or any but) some characters to another state; `dest` None where the closer is complete."""

    characters: str
    negated: bool
    dest: int | None


@dataclass(frozen=True, slots=True)
class TextState:
    """A state of the text automaton, in which the text may end unless a closer must come."""

    moves: tuple[Move, ...]


@lru_cache(maxsize=512)
def text_automaton(forbidden: Forbidden, closer: str) -> tuple[TextState, ...]:
    """The automaton of text without anything forbidden; with `closer`, up to its end."""
    patterns = forbidden.patterns
    own: frozenset[int] = frozenset()
    mark = len(patterns)
    if closer:
        patterns = (*patterns, literal_pattern(closer))
        items = closed(patterns, ((which, 0) for which in range(len(patterns))))
        for char in closer:
            items, own = advance(patterns, len(patterns), items, char)
    anywhere, patterns = len(patterns), (*patterns, *forbidden.beginnings)
    kinds = kinds_of(patterns)
    start = closed(patterns, ((which, 0) for which in range(len(patterns))))
    numbers, pending = {start: 0}, [start]
    states: list[TextState] = []
    while len(states) < len(pending):
        items = pending[len(states)]
        groups: dict[Items | None, list[str]] = {}
        for chars in kinds:
            after, complete = advance(patterns, anywhere, items, chars[:1])
            if complete and not (mark in complete and complete <= own):
                continue
            dest = None if complete else after
            if dest is not None and dest not in numbers:
                numbers[dest] = len(numbers)
                pending.append(dest)
            groups.setdefault(dest, []).append(chars)
        states.append(TextState(tuple(moves_of(groups, numbers, kinds))))
    return tuple(states)


def kinds_of(patterns: tuple[Pattern, ...]) -> list[str]:
    """The characters that patterns name, in groups that no pattern separates; "" is all that no pattern names."""
    sets = list(dict.fromkeys(step.characters for pattern in patterns for step in pattern))
    alike: dict[tuple[bool, ...], list[str]] = {}
    for char in sorted(frozenset().union(*sets)):
        alike.setdefault(tuple(char in each for each in sets), []).append(char)
    return ["", *("".join(chars) for chars in alike.values())]


def moves_of(groups: Mapping[_Key | None, list[str]], numbers: Mapping[_Key, int], kinds: list[str]) -> Iterator[Move]:
    """The moves of a state: a destination with its characters, or with those that go elsewhere."""
    for dest, chars in groups.items():
        number = None if dest is None else numbers[dest]
        if "" in chars:
            yield Move("".join(kind for kind in kinds if kind not in chars), True, number)
        else:
            yield Move("".join(chars), False, number)
