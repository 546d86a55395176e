"""The regular expressions of a state, compiled when they are first used.

Strategy: a machine has many states, and an output comes through few of them.  What ends a value is long to write, for
each way on from a closing marker is part of it.  So the search for it has two steps: a short expression goes over the
text up to where a marker stands or has begun, and the long one says at that place whether the marker counts.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolgram.compile import StateProgram

FindMatch = Callable[..., re.Match[str] | None]
NOWHERE: FindMatch = re.compile(r"(?!)").search


class Expression:
    """A regular expression that is compiled by the first match."""

    __slots__ = ("match", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.match: FindMatch = self._first_match

    def _first_match(self, text: str, pos: int = 0) -> re.Match[str] | None:
        self.match = re.compile(self.pattern).match
        return self.match(text, pos)


def over_text(firsts: str, ends: Sequence[str]) -> str:
    """Over text to where the first of `ends` matches (its group), or to the end. Each character is looked at once."""
    found, groups = "|".join(ends), "|".join(f"({end})" for end in ends)
    return rf"(?:[^{re.escape(firsts)}]++|(?!{found})[\s\S])*+(?:{groups})?+"


def over_value(firsts: str, openings: Sequence[str], ends: Sequence[str]) -> FindMatch:
    """The same for text in which what begins like an end (`openings`) seldom is none: two expressions."""
    over = re.compile(rf"(?:[^{re.escape(firsts)}]++|(?!{'|'.join(openings)})[\s\S])*+").match
    end_at = re.compile(f"(?:{'|'.join(f'({end})' for end in ends)})?+").match

    def find(text: str, pos: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        end = min(end, len(text))
        while True:
            passed = over(text, pos, end)
            assert passed is not None
            pos = passed.end()
            found = end_at(text, pos, end)
            assert found is not None
            if found.lastindex or pos == end:
                return found
            pos += 1

    return find


def search_later(state: StateProgram, field: str, search: Callable[[], FindMatch]) -> None:
    """Let the first search of a state make its expressions."""

    def first_search(text: str, *place: int) -> re.Match[str] | None:
        find = search()
        setattr(state, field, find)
        return find(text, *place)

    setattr(state, field, first_search)
