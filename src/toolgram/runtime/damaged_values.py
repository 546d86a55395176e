"""Find the end of a string with unescaped quotes: the first quote after which the rest of the call is JSON.

Strategy: after each quote of the string that a comma or the matching bracket follows, a copy of the scanner reads on,
exactly, up to the brackets of the call. Then the format's own closing marker must follow; in a format without one, a
marker of the next call, or the end of the turn or of the output. Until this is decided, the text after the quote is
held: the quote ends the string, or is part of it. A marker ends the search, so no string includes the next call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import JsonScanner
from toolgram.limits import BLANKS, LONGEST_TAIL, LONGEST_WORD, MOST_TAIL_WORK, TAIL_WORK_PER_CHARACTER
from toolgram.program.closing_markers import FENCE
from toolgram.program.look_ahead import partial_pattern
from toolgram.program.values import SURE_MARKER
from toolgram.runtime.argument_readers import arguments_scanner
from toolgram.runtime.position import WAIT
from toolgram.runtime.stream import Stream

if TYPE_CHECKING:
    from toolgram.islands.json_repairs import JsonRepairer

_Search = Callable[..., "re.Match[str] | None"]
# The role of a character in the string: part of it; the quote that ends it; the point where the call is cut off (CUT)
# or where the string has no end (BROKEN). WAIT if undecided.
PART, ENDS, CUT, BROKEN = range(4)
_may_end = re.compile(r"""["'][ \t\r\n]*+(?:([,}\]])|\Z)""").match
_around_closer = re.compile(rf"{BLANKS}(?:```{BLANKS})?").match
_next_call = re.compile(rf'(,?){BLANKS}\{{{BLANKS}"([^"\\]{{1,{LONGEST_WORD}}})"{BLANKS}:').match
_next_call_begun = re.compile(rf'(,?){BLANKS}(?:\{{{BLANKS}(?:"[^"\\]{{0,{LONGEST_WORD}}}+"?{BLANKS})?)?\Z').match
_name_of_call = re.compile(rf"[\w.\-]{{1,{LONGEST_WORD}}}+([\r\n{{])|[\w.\-]{{0,{LONGEST_WORD}}}+\Z").match
_quote = re.compile("[\"']").search
_SWAPPED = str.maketrans("\"'", "'\"")


def is_damaged(stream: Stream) -> bool:
    """Return whether a damaged string is open."""
    if stream.reader != "repaired":
        return getattr(stream.island, "in_damaged", False)
    repairer = arguments_scanner(stream)[0].repairer
    return repairer is not None and repairer.damaged


def read_damaged(stream: Stream, repairer: JsonRepairer, text: str, pos: int, final: bool) -> int:
    """Return the role of the character at `pos` in a damaged string."""
    repairer.work = max(0, repairer.work - TAIL_WORK_PER_CHARACTER)
    end = min(len(text), pos + LONGEST_TAIL + 1)
    if text[pos] != repairer.quote:
        if text[pos] not in stream.program.begins_no_name:
            return PART
        at, whole = _first_marker(stream, repairer, text, pos, end, final)
        return PART if at > pos else BROKEN if whole else CUT if final else WAIT
    found = _find_end(stream, repairer, text, pos, end, final)
    if found == WAIT and (final or end - pos > LONGEST_TAIL):
        found = BROKEN if not final else PART if stream.ended else CUT
    if found == PART and repairer.tail is not None:
        repairer.work += repairer.tail[1]
    if found != WAIT:
        repairer.tail = None
    return BROKEN if repairer.work > MOST_TAIL_WORK else found


def _find_end(stream: Stream, repairer: JsonRepairer, text: str, pos: int, end: int, final: bool) -> int:
    """Return whether the quote at `pos` ends the string, or WAIT if that is not known at `end`. No more text is read,
    as if it had not come yet."""
    if _may_end(text, pos, end) is None:
        return PART
    marker, whole = _first_marker(stream, repairer, text, pos, end, final)
    stream.cut_output(len(text) - end)
    found = _end_at(stream, repairer, text[pos:end], marker - pos, whole, final)
    stream.cut_output(end - len(text))
    return found


def _end_at(stream: Stream, repairer: JsonRepairer, text: str, end: int, whole: bool, final: bool) -> int:
    """Return whether the quote with which `text` begins ends the string. At `end` is the first marker."""
    scanner, floor, in_list = _around(stream)
    tail, read = repairer.tail or (_copy(scanner), 0)
    exact = text[:end] if repairer.quote == '"' else _in_double_quotes(text[:end])
    if len(tail.stack) > floor and read < end:
        tail.run(exact, read, floor)
        read = tail.end
        repairer.tail = tail, read
    if tail.broken:
        return BROKEN if _breaks_after_string(tail, exact) else PART
    if len(tail.stack) > floor:
        return PART if whole else WAIT
    call = _next_call_at(stream, text, read, in_list)
    if call != PART:
        return call
    after = read
    if in_list:
        tail = _copy(tail)
        tail.run(exact, after, 0)
        after = tail.end
        if not tail.done:
            return PART if whole or tail.broken else WAIT
    return _closer_at(stream, text, after, in_list, final)


def _around(stream: Stream) -> tuple[JsonScanner, int, bool]:
    """Return the scanner of the arguments, the depth outside the call's object, and whether that is a list."""
    scanner, floor = arguments_scanner(stream)
    island = stream.island
    if not isinstance(island, Envelope):
        return scanner, floor, False
    return scanner, len(island.outside) + island.in_list, island.in_list


def _in_double_quotes(text: str) -> str:
    """Return a text that begins with a single quote with double quotes. All quotes after it may be single ones."""
    following = _quote(text, 1)
    if following is not None and following.group() == "'":
        return text.translate(_SWAPPED)
    return f'"{text[1:]}'


def _breaks_after_string(tail: JsonScanner, text: str) -> bool:
    """Return whether the scanner broke after a closing quote: a second value is damaged, or the first one goes on."""
    before = text[: tail.end].rstrip(" \t\r\n")
    return tail.broke_after_value and len(before) > 1 and before[-1] == '"'


def _copy(scanner: JsonScanner) -> JsonScanner:
    copied = JsonScanner()
    copied.accept_controls()
    copied.stack, copied.state = scanner.stack[:], scanner.state
    return copied


def _next_call_at(stream: Stream, text: str, at: int, in_list: bool) -> int:
    """Return whether the object of the next call is at `at`, after a comma if the calls are in a list."""
    if not isinstance(stream.island, Envelope):
        return PART
    found = _next_call(text, at)
    if found is not None:
        states = stream.program.states.values()
        known = any(state.named_key or f"item.{found[2]}" in state.key_paths for state in states)
        return ENDS if known and bool(found[1]) == in_list else PART
    begun = _next_call_begun(text, at)
    return WAIT if begun is not None and begun.group().strip() and bool(begun[1]) == in_list else PART


def _closer_at(stream: Stream, text: str, at: int, in_list: bool, final: bool) -> int:
    """Return whether the closer of the call is at `at`: a marker that the call still needs, or, if it needs none,
    anything that may follow a call. After the bracket of a list, the finish reason does not matter."""
    owed = stream.calls.markers.owed
    at = cast("re.Match[str]", _around_closer(text, at)).end()
    if not owed and at == len(text) and final and (stream.ended or in_list):
        return ENDS
    markers = [marker for marker in _closers(stream) if marker != FENCE]
    if any(text.startswith(marker, at) and stream.is_token(marker, text, at) for marker in markers):
        return ENDS
    short = () if owed else _short_openers(stream)
    begun = next((opener for opener in short if text.startswith(opener, at)), None)
    if begun is not None:  # code may contain this: a name must follow
        name = _name_of_call(text, at + len(begun))
        return PART if name is None else ENDS if name.lastindex else WAIT
    rest = text[at:]
    return WAIT if any(marker.startswith(rest) for marker in (*markers, *short, FENCE)) else PART


def _closers(stream: Stream) -> Iterable[str]:
    """Return the markers that the call still needs or, if it needs none, those that may follow a call."""
    program, owed = stream.program, stream.calls.markers.owed
    if not owed:
        return program.in_no_name
    closed_by = program.spec.closed_by
    return [program.literals[name] for opener in owed for name in closed_by.get(opener, ())]


def _short_openers(stream: Stream) -> tuple[str, ...]:
    """Return the literals after the call that are too short to be certain markers."""
    move = stream.state.row.get("object_end")
    literals = move.dest.literals if move is not None else ()
    return tuple(literal for literal in literals if len(literal) < SURE_MARKER and literal != FENCE)


def _first_marker(
    stream: Stream, repairer: JsonRepairer, text: str, pos: int, end: int, final: bool
) -> tuple[int, bool]:
    """Return where the first marker up to `end`, or its beginning there, begins, and whether it is whole. Without one,
    return `end`. In the same text, a marker is looked for only once."""
    search, begun, longest = _searches(stream.program.in_no_name)
    key = text, stream.ids and stream.ids.end
    known, begin, at, after = repairer.ahead
    read = pos + (repairer.tail[1] if repairer.tail is not None else 0)  # what was read contains no marker
    if known != key or not begin <= pos <= at:
        found = search(text, read)
        while found is not None and not stream.is_token(found.group(), text, found.start()):
            found = search(text, found.start() + 1)
        at, after = found.span() if found is not None else (len(text), len(text) + 1)
        repairer.ahead = key, pos, at, after
    whole = after <= end
    at = at if whole else end
    cut = begun(text, max(read, end - longest), end) if not (final and stream.ended) else None
    return (at, whole) if cut is None or cut.start() >= at else (cut.start(), False)


@lru_cache(maxsize=256)
def _searches(markers: tuple[str, ...]) -> tuple[_Search, _Search, int]:
    """Return the searches for a marker and for its beginning at the end, and the length of the longest marker."""
    whole, begun = ("|".join(map(re.escape, markers)), partial_pattern([*markers])) if markers else ("", "")
    longest = max(map(len, markers), default=0)
    return re.compile(whole or "(?!)").search, re.compile(rf"(?:{begun or '(?!)'})\Z").search, longest
