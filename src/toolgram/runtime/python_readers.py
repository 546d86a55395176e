"""Readers of Python keyword arguments, which are transcoded to JSON while they arrive.

Strategy: the island reads; this module handles what needs a look ahead. The closing bracket of a call ends it only if
no expression continues after it (`f(a=1) + f(a=2)`), so the end is emitted when the next character is known. A marker
that closes calls also closes what is open in the arguments after a whole value. It ends a damaged string if the rest
can be read from some place in it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from toolgram.islands.held_text import take_pieces
from toolgram.limits import MOST_BLANKS
from toolgram.program.expressions import FindMatch
from toolgram.runtime.argument_readers import begin_converted, say_converted, string_ends
from toolgram.runtime.following import (
    end_of_closers,
    end_of_python_blanks,
    ends_python_string,
    expression_goes_on,
    expression_may_go_on,
    next_call,
)
from toolgram.runtime.position import WAIT
from toolgram.runtime.stream import Stream

if TYPE_CHECKING:
    from toolgram.islands.python_literals import PythonScanner
    from toolgram.islands.python_repairs import RepairingPythonScanner

EXPRESSION = "an expression where a literal belongs"


def read_python(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read Python keyword arguments, and transcode them to JSON while they arrive."""
    python = cast("PythonScanner", stream.island)
    if python.done:
        return _read_end(stream, python, text, pos, final)
    if hasattr(python, "markers"):
        python.markers = _any_of(stream.program.in_no_name)
    return took_python(stream, python, text, pos, python.read(text, pos, final, final and stream.ended), final)


@lru_cache(maxsize=256)
def _any_of(markers: tuple[str, ...]) -> FindMatch:
    return re.compile("|".join(map(re.escape, markers)) or "(?!)").search


def took_python(stream: Stream, python: PythonScanner, text: str, pos: int, end: int, final: bool = False) -> int:
    """Emit what the scanner has read from `pos` to `end`, and end the arguments if they are closed."""
    source = stream.source
    source.hold_converted(python.out, text, pos, python.mark, end)
    if source.object_is_held and (python.started or (python.broken and _is_call(stream, python))):
        begin_converted(stream)
        stream.reader = "python"
    if not source.object_is_held:
        say_converted(stream)
    _note_repairs(stream, python)
    if python.done:
        return _read_end(stream, python, text, end, final)
    if python.broken:
        return _read_marker(stream, python, text, end, final)
    if python.waits:
        return _wait(stream, python, text, end, final)
    return end


def _is_call(stream: Stream, python: PythonScanner) -> bool:
    """Return whether this is a call, also if its first argument is no literal: a marker came before it, or it is in a
    list and its function is declared."""
    name = stream.calls.name
    return stream.is_marked or (python.listed and name is not None and name.name in stream.calls.names)


def _note_repairs(stream: Stream, python: PythonScanner) -> None:
    notes: list[str] = getattr(python, "notes", [])
    for note in notes:
        stream.events.note("repaired_python", note, stream.source.waiting - getattr(python, "back", 0))
    notes.clear()


def _wait(stream: Stream, python: PythonScanner, text: str, pos: int, final: bool) -> int:
    """Wait for what decides the text at `pos`. At the end of the output, only a damaged string may end there."""
    if not final:
        return stream.wait(text[pos:])
    if stream.ended and hasattr(python, "end_damaged"):
        end = python.end_damaged(text, pos)
        if not python.broken:
            return took_python(stream, python, text, pos, end, final)
    stream.source.hold(text, pos, len(text))
    return len(text)


def _read_end(stream: Stream, python: PythonScanner, text: str, pos: int, final: bool) -> int:
    """Read what follows the closing bracket: the call has ended if no expression continues."""
    source = stream.source
    empty = python.empty and not python.started and "object_empty" in stream.state.row
    if not empty or hasattr(python, "end_damaged"):
        follows = _follows(stream, text, pos, final)
        if follows == WAIT:
            return stream.wait(text[pos:])
        if follows:
            if source.object_is_held:
                begin_converted(stream)
            stream.unexpected_input(why=EXPRESSION)
            return pos
    reason = stream.closing
    if final:
        stream.closing = "stop"  # the model has closed the call
    stream.island = None
    if empty:
        opening = source.confirm()
        _, held = source.take_json()
        stream.fire("object_empty", opening + held + take_pieces(source.pieces))
    else:
        stream.fire("object_end", take_pieces(source.pieces))
    stream.closing = reason
    return pos


def end_python(stream: Stream) -> None:
    """End a call whose closing bracket has come, at the end of the output."""
    python = cast("PythonScanner", stream.island)
    if stream.reader == "python" and python.done:
        _read_end(stream, python, "", 0, True)


def _follows(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Return 1 if an expression or a string continues after a call, 0 if not, and WAIT if that is not known yet."""
    at = end_of_python_blanks(text, pos, cast("PythonScanner", stream.island).listed)
    if at == len(text):
        return 0 if final or at - pos > MOST_BLANKS else WAIT
    if expression_may_go_on(text, at) and not final:
        return WAIT
    if expression_goes_on(text, at) is None:
        return _string_goes_on(stream, text, pos, final)
    marker = stream.any_at(stream.markers_in_values(), text, at, final)
    return WAIT if marker == WAIT else 1 - marker


def _string_goes_on(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Return 1 if a string may continue on the line of a call, 0 if not, and WAIT if that is not known yet."""
    if stream.events.withheld is not None:  # a call that text follows is none there
        return 0
    listed, end = cast("PythonScanner", stream.island).listed, end_of_closers(text, pos)
    if "]" in text[pos:end] and not stream.calls.markers.owed:  # prose follows a list in prose
        return 0
    if listed and text[end : end + 1] == ",":  # the next call follows, also after a bracket too many
        closed, end = end, end_of_closers(text, end + 1)
        if not text[pos:closed].strip():
            return 0
    if end == len(text):
        return 0 if final else WAIT
    if text[end] in "\"'\\":
        return 1
    if next_call(text, end):
        return 0
    found = string_ends(stream, text, end, final, True, ends_python_string)
    return WAIT if found is None else int(found)


def _read_marker(stream: Stream, python: PythonScanner, text: str, pos: int, final: bool) -> int:
    """Look for a marker at `pos`, or at a stop, where a character does not fit. Without one, the call is malformed."""
    repairing = cast("RepairingPythonScanner", python)
    if hasattr(python, "end_damaged") and pos < len(text):
        if repairing.stop >= 0:
            return _read_stop(stream, repairing, text, pos, final)
        if repairing.inside is not None and text[pos] not in "()[]{},":
            closers = stream.program.closing.intersection(stream.program.markers)
            closer = stream.any_at(closers, text, pos, final)
            if closer == WAIT:
                python.broken = False
                return stream.wait(text[pos:])
            if closer:
                return _close_at_marker(stream, repairing, text, pos)
    stream.unexpected_input(why=getattr(python, "why", "") or EXPRESSION)
    return pos


def _read_stop(stream: Stream, python: RepairingPythonScanner, text: str, pos: int, final: bool) -> int:
    """Look for a marker at a place in a damaged string at which one may begin."""
    marker = stream.any_at(stream.markers_in_values(), text, python.stop, final)
    if marker == WAIT:
        python.leave_stop(passed=False)
        return stream.wait(text[pos:])
    if not marker:
        python.leave_stop(passed=True)
        return pos
    end = python.end_damaged(text, pos)
    if python.broken:
        stream.unexpected_input(why=python.why)
        return pos
    return took_python(stream, python, text, pos, end, final)


def _close_at_marker(stream: Stream, python: RepairingPythonScanner, text: str, pos: int) -> int:
    """Close what is open after a whole value, at a marker."""
    stream.events.note("unclosed_arguments", python.open_brackets().stack.lstrip("["), stream.source.waiting)
    python.close_all()
    stream.source.hold_converted(python.out, text, pos, pos, pos)
    say_converted(stream)
    return _read_end(stream, python, text, pos, False)
