"""Markers at the end of a string in the arguments: they are text of the string only if it goes on.

Strategy: a string that the model has not closed may be followed by the closing marker of the call, or by the next call.
So the end of a text is cut off before the markers in it, and the readers read the part before them. If a string is open
there, the markers wait for more; if the output ends, they do not belong to the arguments (clause P1).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from toolgram.islands.held_text import add_piece
from toolgram.limits import BLANKS, LONGEST_END_OF_STRING
from toolgram.program.expressions import FindMatch
from toolgram.program.look_ahead import partial_pattern
from toolgram.runtime.argument_readers import arguments_scanner
from toolgram.runtime.stream import Stream

if TYPE_CHECKING:
    from toolgram.islands.python_literals import PythonScanner

_MOST_MARKERS = 8  # one after another


def begin_of_markers(stream: Stream, text: str, pos: int) -> int:
    """Return where the markers begin with which the text ends; without them, its end."""
    begin, at_end = markers_at_end(stream.program.in_no_name)
    pos = max(pos, len(text) - LONGEST_END_OF_STRING)
    found = at_end(text, pos) if begin(text, pos) else None
    return len(text) if found is None else found.start()


@lru_cache(maxsize=256)
def markers_at_end(markers: tuple[str, ...]) -> tuple[FindMatch, FindMatch]:
    """Return a search for a place where a marker may begin, which costs little, and one for markers, and the beginning
    of one, at the end of a text."""
    after = [marker for marker in markers if _may_follow(marker)]
    firsts, seconds = ("".join(re.escape(each[at]) for each in after) for at in (0, 1))
    begins = re.compile(rf"[{firsts}](?=[{seconds}]|\Z)" if after else "(?!)").search
    whole, begun = "|".join(map(re.escape, after)) or "(?!)", partial_pattern(after) or "(?!)"
    found = rf"(?:(?:(?:{whole}){BLANKS}){{1,{_MOST_MARKERS}}}+(?:{begun})?+|(?:{begun}))\Z"
    return begins, re.compile(found).search


def _may_follow(marker: str) -> bool:
    """Return whether a marker may follow a string: it is not prose, and has no quote, which would end the string."""
    return len(marker) > 1 and not (marker[0].isalnum() or marker[0] == "{" or '"' in marker or "'" in marker)


def string_is_open(stream: Stream) -> bool:
    """Return whether the next character is inside a string of the arguments that is not damaged, nor in a section."""
    if stream.reader == "python":
        return cast("PythonScanner", stream.island).open_brackets().quote != ""
    if stream.reader == "value":
        inside, *others = (getattr(stream.island, name, False) for name in ("in_string", "in_damaged", "in_section"))
        return inside and not any(others)
    scanner, _ = arguments_scanner(stream)
    repairer = scanner.repairer
    return scanner.in_plain_string and (repairer is None or not (repairer.damaged or repairer.at_quote))


def cut_off_markers(stream: Stream, text: str, pos: int) -> int:
    """Keep the markers with which the output ends out of the arguments. Return the end of the text."""
    source = stream.source
    pieces = source.pieces if source.transcoding is None else source.transcoding.pieces
    add_piece(pieces, text[pos:])
    return len(text)
