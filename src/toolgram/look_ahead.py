"""What must follow a marker in a value for it to end the value: expressions made from the rows of the machine.

Strategy: text may contain any marker.  So a marker counts only where the way on from it is one that the machine has:
behind a value's own marker another argument or the end of the call; behind another marker the other closing markers and
then the end of the turn, or the opener of a call with its name; behind the opener of an argument its key and the
markers up to its value.  Each way is followed through the rows, blanks bounded, and written as a regular expression.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from toolgram.spec import Literal, Run, Spec

if TYPE_CHECKING:
    from toolgram.compile import Move, StateProgram

_MOST_BLANKS = 64  # looked at behind a marker
_BLANK = r"[ \t\r\n]"
_SPACE_AHEAD = rf"{_BLANK}{{0,{_MOST_BLANKS}}}+"


class Ahead(NamedTuple):
    """What must follow a closing marker where it closes a value that has no marker of its own: as the text goes on, at
    the end of the output, as far as it has come; and once more as an expression whose groups are names."""

    whole: str
    final: str
    partial: str
    names: re.Pattern[str]


def look_ahead(spec: Spec, state: StateProgram) -> Ahead:
    """The other closing markers behind `state`, then the end of the turn, or the opener of a call and its name."""
    whole, final, partial = _ahead(spec, state, (), "(?>{})")
    return Ahead(whole, final, partial, re.compile(_ahead(spec, state, (), "({})")[1]))


def look_ahead_for_value(spec: Spec, state: StateProgram) -> Ahead:
    """The key behind the marker of the next argument, and the markers up to its value."""
    way, partial = _value_ahead(spec, state, (), "(?>{})")
    return Ahead(way, way, partial, re.compile(_value_ahead(spec, state, (), "({})")[0]))


def _value_ahead(spec: Spec, state: StateProgram, seen: tuple[str, ...], key: str) -> tuple[str, str]:
    space = _between(spec, state)
    whole: list[str] = []
    partial: list[str] = []
    texts: list[str] = []
    for trigger, move in state.row.items():
        shape, dest = spec.terminals.get(trigger), move.dest
        if dest.name in seen or dest is state:
            continue
        if isinstance(shape, Literal) and dest.meaning == "value":
            texts.append(shape.text)
            whole.append(re.escape(shape.text))
        elif isinstance(shape, Literal) and dest.meaning is None and "end_call" not in move.actions:
            texts.append(shape.text)
            found = _value_ahead(spec, dest, (*seen, state.name), key)
            whole.append(re.escape(shape.text) + found[0])
            partial.append(re.escape(shape.text) + found[1])
        elif isinstance(shape, Run) and "argument_key" in move.actions:
            found = _value_ahead(spec, dest, (*seen, state.name), key)
            whole.append(key.format(shape.pattern) + found[0])
            partial.append(f"(?>{shape.pattern})" + found[1])
    begun = "|".join(filter(None, [*partial, partial_pattern(texts)]))
    return f"{space}(?:{'|'.join(whole) or '(?!)'})", f"{space}(?:{begun})?"


def _between(spec: Spec, state: StateProgram) -> str:
    """What may stand in a state without leaving it: blanks, quotes."""
    shapes = [spec.terminals.get(trigger) for trigger, move in state.row.items() if move.dest is state]
    marks = [re.escape(shape.text) for shape in shapes if isinstance(shape, Literal)]
    if "WS" not in state.row:
        return ""
    return rf"(?:{'|'.join([_BLANK, *marks])}){{0,{_MOST_BLANKS}}}+" if marks else _SPACE_AHEAD


def look_ahead_for_argument(spec: Spec, state: StateProgram) -> Ahead:
    """What must follow the own closing marker of a value: another argument, or the end of the call."""
    whole, final, partial = _argument_ahead(spec, state, "(?>{})")
    return Ahead(whole, final, partial, re.compile(_argument_ahead(spec, state, "({})")[1]))


def _argument_ahead(spec: Spec, state: StateProgram, name: str) -> tuple[str, str, str]:
    space = _SPACE_AHEAD if "WS" in state.row else ""
    whole: list[str] = []
    final: list[str] = []
    partial: list[str] = []
    texts: list[str] = []
    for trigger, move in state.row.items():
        shape = spec.terminals.get(trigger)
        if isinstance(shape, Run) and trigger != "WS":
            whole.append(shape.first)
            final.append(shape.first)
        elif isinstance(shape, Literal):
            found = _way_ahead(spec, state, move, (), name) if move.repair else ("", "", "")
            if found is not None:
                texts.append(shape.text)
                _add_way(shape.text, found, whole, final, partial)
    begun = "|".join(filter(None, [*partial, partial_pattern(texts)]))
    ends = "|".join([*final, r"\Z"])
    return f"{space}(?:{'|'.join(whole)})", f"{space}(?:{ends})", f"{space}(?:{begun or '(?!)'})?"


def _ahead(spec: Spec, state: StateProgram, seen: tuple[str, ...], name: str) -> tuple[str, str, str]:
    whole: list[str] = []
    final: list[str] = []
    partial: list[str] = []
    texts: list[str] = []
    for trigger, move in state.row.items():
        shape, dest = spec.terminals.get(trigger), move.dest
        if not isinstance(shape, Literal) or dest.name in seen:
            continue
        found = _way_ahead(spec, state, move, seen, name)
        if found is not None:
            texts.append(shape.text)
            _add_way(shape.text, found, whole, final, partial)
    begun = "|".join(filter(None, [*partial, partial_pattern(texts)]))
    ends = "|".join([*final, r"\Z"])
    return f"{_SPACE_AHEAD}(?:{'|'.join(whole) or '(?!)'})", f"{_SPACE_AHEAD}(?:{ends})", f"{_SPACE_AHEAD}(?:{begun})?"


def _add_way(text: str, rest: tuple[str, str, str], whole: list[str], final: list[str], partial: list[str]) -> None:
    """Put a marker in front of each way on, and add the ways to others. What is whole has not only begun."""
    opening = re.escape(text)
    whole.append(opening + rest[0])
    final.append(opening + rest[1])
    if rest[2]:
        partial.append(opening + rest[2])


def _way_ahead(
    spec: Spec, state: StateProgram, move: Move, seen: tuple[str, ...], name: str
) -> tuple[str, str, str] | None:
    """What follows a marker: nothing need follow one that ends the turn; None where it leads nowhere."""
    dest = move.dest
    if move.trigger in (spec.stop or ()):
        return "", "", ""
    if dest.held:
        return _opener_ahead(spec, dest, (state.name,), name)
    if dest is state and move.repair:
        return "", "", ""
    if dest is state and move.actions:
        return None
    return _ahead(spec, dest, (*seen, state.name), name) if dest.meaning == "content" else None


def _opener_ahead(spec: Spec, state: StateProgram, seen: tuple[str, ...], name: str) -> tuple[str, str, str] | None:
    """The way from a held state to the name of a call, and the first character behind the name."""
    space = _SPACE_AHEAD if "WS" in state.row else ""
    whole: list[str] = []
    final: list[str] = []
    partial: list[str] = []
    texts: list[str] = []
    for trigger, move in state.row.items():
        shape, dest = spec.terminals.get(trigger), move.dest
        if isinstance(shape, Run) and "name" in move.actions:
            behind = "|".join(_firsts(spec, dest))
            if behind:
                for way in (whole, final):
                    way.append(f"{name.format(shape.pattern)}(?={behind})")
                partial.append(f"(?>{shape.pattern})")
        elif isinstance(shape, Literal) and dest.held and dest.name not in seen:
            found = _opener_ahead(spec, dest, (*seen, state.name), name)
            if found is not None:
                texts.append(shape.text)
                _add_way(shape.text, found, whole, final, partial)
    if not whole:
        return None
    begun = "|".join(filter(None, [*partial, partial_pattern(texts)]))
    return f"{space}(?:{'|'.join(whole)})", f"{space}(?:{'|'.join(final)})", f"{space}(?:{begun})?"


def openers_ahead(spec: Spec, home: StateProgram) -> Iterable[tuple[str, str, tuple[str, str, str]]]:
    """The markers with which a call begins in text, each with the way from it to the name."""
    for trigger, move in home.row.items():
        shape = spec.terminals.get(trigger)
        found = _opener_ahead(spec, move.dest, (home.name,), "(?>{})") if move.dest.held else None
        if isinstance(shape, Literal) and found is not None:
            yield trigger, shape.text, found


def _firsts(spec: Spec, state: StateProgram) -> Iterable[str]:
    """The characters with which what a state takes may begin, as expressions."""
    for trigger in state.row:
        shape = spec.terminals.get(trigger)
        if isinstance(shape, Literal):
            yield re.escape(shape.text[0])
        elif isinstance(shape, Run):
            yield shape.first
        elif trigger in ("object_start", "start_map item"):
            yield r"[{(]"


def partial_pattern(literals: Iterable[str]) -> str:
    """A regular expression for the proper, non-empty prefixes of all `literals`, to be matched up to the end of a text.

    Its size is n log n in the length of each; empty when no literal is longer than one character.
    """
    return "|".join(filter(None, map(_prefixes, sorted(set(literals), reverse=True))))


_FEW = 16  # prefixes that are listed


def _prefixes(text: str) -> str:
    """The proper prefixes of a text, the longest first: those beyond its first half, then those within it."""
    if len(text) <= _FEW:
        return "|".join(re.escape(text[:length]) for length in range(len(text) - 1, 0, -1))
    half = len(text) // 2
    return f"{re.escape(text[:half])}(?:{_prefixes(text[half:])})?|{_prefixes(text[:half])}"
