"""The regular expressions of a state, compiled when they are first used.

Strategy: a machine has many states, and an output comes through few of them.  What ends a value is long to write, for
each way on from a closing marker is part of it.  So the search for it has two steps: a short expression goes over the
text up to a marker or the beginning of one, and another says at that place whether the marker counts.  That one is
made of the ways on from the markers there, when these occur together for the first time.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

FindMatch = Callable[..., re.Match[str] | None]
NOWHERE: FindMatch = re.compile(r"(?!)").match
_SHORT = 64  # characters: a set of the beginnings of longer texts would be large


class Expression:
    """A regular expression that is written and compiled by the first match."""

    __slots__ = ("_write", "match")

    def __init__(self, write: Callable[[], str]) -> None:
        self._write = write
        self.match: FindMatch = self._first_match

    @property
    def pattern(self) -> str:
        """The text of the expression. Written anew each time."""
        return self._write()

    def _first_match(self, text: str, pos: int = 0) -> re.Match[str] | None:
        self.match = re.compile(self.pattern).match
        return self.match(text, pos)


class Beginnings:
    """What some texts begin with, none of them whole: `"<tool" in Beginnings(["<tool_call>"])`."""

    __slots__ = ("_short", "_texts")

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._short: frozenset[str] | None = None  # made when it is first asked for

    def __contains__(self, begun: Any) -> bool:
        if len(begun) >= _SHORT:
            return any(text.startswith(begun) and text != begun for text in self._texts)
        if self._short is None:
            self._short = frozenset(text[:end] for text in self._texts for end in range(min(len(text), _SHORT)))
        return begun in self._short


Firsts: TypeAlias = Mapping[str, str]


def firsts_of(texts: Iterable[str]) -> Firsts:
    """Return the characters with which these texts begin, each with those that follow it; nothing if any may."""
    found: dict[str, set[str]] = {}
    for text in texts:
        found.setdefault(text[0], set()).add(text[1:2])
    return {first: "" if "" in found[first] else "".join(sorted(found[first])) for first in sorted(found)}


def may_begin(firsts: Firsts) -> str:
    """Match where one of the texts may begin: a first character, followed by one of the second or nothing yet."""
    return "|".join(
        re.escape(first) + (f"(?![^{re.escape(seconds)}])" if seconds else "") for first, seconds in firsts.items()
    )


def over_text(firsts: Firsts, ends: Sequence[str]) -> str:
    """Match text up to the first of `ends` (its group), or to the end. Each character is looked at once."""
    return rf"{_over(firsts, ends)}(?:{'|'.join(f'({end})' for end in ends)})?+"


def _over(firsts: Firsts, ends: Sequence[str]) -> str:
    """Match text up to one of `ends`, or to the end."""
    others = [re.escape(first) + f"(?=[^{re.escape(seconds)}])" for first, seconds in firsts.items() if seconds]
    passed = "|".join([rf"[^{re.escape(''.join(firsts))}]++", *others, rf"(?!{'|'.join(ends)})[\s\S]"])
    return f"(?:{passed})*+"


class End(NamedTuple):
    """Expressions for what may end a value: its marker; the same with a beginning of what must follow it (`partial`; ""
    if nothing must); and with all of that (`whole`)."""

    marker: str
    partial: str
    whole: str


def over_value(firsts: Firsts, begun: Sequence[str], ends: Sequence[End]) -> FindMatch:
    """Do the same for a value: group 1 is a marker that has `begun` or awaits more; the others are `ends`."""
    markers = list(dict.fromkeys(end.marker for end in ends))
    started = [rf"(?:{'|'.join(begun)})\Z"] if begun else []
    over = _over(firsts, [*markers, *started])
    unless = "".join(f"(?!{marker})" for marker in markers)
    over_and_begun = re.compile(f"{over}(?:{unless}({started[0]}))?+" if started else over).match
    found_at = re.compile("".join(f"(?=({marker})?+)" for marker in markers)).match
    known: dict[tuple[bool, ...], FindMatch] = {}  # by the markers at a place

    def end_among(there_is: tuple[bool, ...]) -> FindMatch:
        there = {marker for marker, is_there in zip(markers, there_is, strict=True) if is_there}
        waits = [*begun, *(end.partial for end in ends if end.partial and end.marker in there)]
        wholes = [end.whole if end.marker in there else "(?!)" for end in ends]
        groups = [rf"(?:{'|'.join(waits)})\Z" if waits else "(?!)", *wholes]
        known[there_is] = match = re.compile(f"(?:{'|'.join(f'({group})' for group in groups)})?+").match
        return match

    def find(text: str, pos: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        end = min(end, len(text))
        while True:
            passed = over_and_begun(text, pos, end)
            assert passed is not None
            if passed.lastindex or passed.end() == end:
                return passed
            pos = passed.end()
            place = found_at(text, pos, end)
            assert place is not None
            there_is = tuple([marker is not None for marker in place.groups()])
            found = (known.get(there_is) or end_among(there_is))(text, pos, end)
            assert found is not None
            if found.lastindex or pos == end:
                return found
            pos += 1

    return find
