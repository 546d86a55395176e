"""Markers of tagged arguments that may be damaged: most of a marker is there, so that a value has two readings.

Strategy: a damaged marker is text for the machine, so it is looked for only where it changes what a call means: after a
closing marker inside a value, which an opening marker would make the end of the value; and at the end of a value that
nothing has closed. Most of the characters of the marker have to be there, in their order. Then the call fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import cast

from toolgram.limits import LONGEST_WORD, MOST_BLANKS
from toolgram.program.state import TERMINAL, StateProgram, Symbol
from toolgram.program.values import SURE_MARKER
from toolgram.runtime.calls import Argument
from toolgram.runtime.following import end_of_blanks
from toolgram.runtime.stream import Stream

_MOST_INSERTED = 2  # characters that a damaged marker may have too many
_LEAST_ALIKE = 0.6  # of its characters are those of the marker, and in their order


def read_damaged_opener(stream: Stream, symbol: Symbol, text: str, begin: int, end: int, final: bool) -> int | None:
    """See whether a damaged opening marker of an argument may follow a closing marker: most of the marker is there, and
    the name of a declared argument. Then the value has two readings, and breaks. Return the position, WAIT, or None if
    it does not break."""
    calls, openers = stream.calls, _openers_after(stream.state, symbol.trigger)
    declared, at = calls.declared(), end_of_blanks(text, end)
    if final and stream.state.row[symbol.trigger].dest.may_become(text, at):
        return None  # a marker that is cut off is not damaged
    if declared is None or not openers or at - end > MOST_BLANKS:
        return None
    again = text.find(text[begin:end].strip(), at)  # no marker holds a whole one
    last = at + max(map(len, openers)) + _MOST_INSERTED  # where the name may begin
    last = min(last, again) if again >= 0 else last
    for pos in range(at, min(last, len(text) - 1) + 1):
        ends = _end_of_key(text, pos)
        key = text[pos:ends] if ends < len(text) or final else ""
        if key in declared.types and calls.may_have(key) and _is_like(text[at:pos], openers):
            stream.unexpected_input()
            return begin
    return None if final or _end_of_key(text, last) < len(text) else stream.wait(text[begin:])


_key_at = re.compile(rf"[\w$.\-]{{0,{LONGEST_WORD}}}+").match


def _end_of_key(text: str, pos: int) -> int:
    return _key_at(text, pos).end()  # type: ignore[union-attr]


def _is_like(text: str, markers: Iterable[str]) -> bool:
    """Return whether a text may be one of the markers, damaged."""
    from difflib import SequenceMatcher

    return any(SequenceMatcher(None, text, marker).ratio() >= _LEAST_ALIKE for marker in markers)


@lru_cache(maxsize=256)
def _openers_after(state: StateProgram, closer: str) -> list[str]:
    """Return the markers that open an argument after a value."""
    after = state.row[closer].dest
    pairs = zip(after.symbols, after.literals, strict=False)
    return [text for symbol, text in pairs if opens_key(after, symbol)]


def opens_key(state: StateProgram, symbol: Symbol) -> bool:
    """Return whether a marker in a value begins an argument."""
    move = state.row.get(symbol.trigger)
    return move is not None and move.dest.meaning == "argument_key"


def has_damaged_closer(stream: Stream) -> bool:
    """Return whether a value that nothing has closed ends in what may be its closing marker, damaged."""
    state, row = stream.state, stream.state.row
    pairs = zip(state.symbols, state.literals, strict=False)
    moves = [(row.get(symbol.trigger), text) for symbol, text in pairs if symbol.kind == TERMINAL]
    own = {text.strip() for move, text in moves if move is not None and "unclosed_value" not in move.actions}
    return ends_alike(cast(Argument, stream.calls.argument).ending, own)


def ends_alike(text: str, closers: Iterable[str]) -> bool:
    """Return whether a text, without its blanks, ends in what may be one of the closing markers, damaged."""
    near = range(-_MOST_INSERTED, _MOST_INSERTED + 1)
    certain = ["".join(each.split()) for each in closers if len(each) >= SURE_MARKER]
    tails = [(each, text.rpartition(each)[2]) for each in certain]
    return any(_is_like(rest[-len(each) - more :], (each,)) for each, rest in tails for more in near)
