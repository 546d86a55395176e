"""Readers of Python keyword arguments: transcoded to JSON while they arrive.

Strategy: the island reads.  Here is what needs a look at what follows: closing brackets that do not fit, and markers
where such brackets are missing.

Where the scanner breaks after a whole value, the closing brackets that stand there are looked at together
with what follows them.  Where nothing but such brackets follows in the arguments (`f(a=[1, {"b": 2])`), all readings
give the same arguments.  What follows shows that: after the parenthesis, text; a marker or the end; the next call; or
the name of the next argument, which cannot stand inside a list or a dict.  Where another item or an operator follows
there are several readings, and the call is malformed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from toolgram.islands.held_text import take_pieces
from toolgram.limits import LONGEST_WORD, MOST_BLANKS
from toolgram.runtime.argument_readers import say_converted
from toolgram.runtime.position import WAIT
from toolgram.runtime.stream import Stream

if TYPE_CHECKING:
    from toolgram.islands.python_literals import PythonScanner
    from toolgram.islands.python_repairs import RepairingPythonScanner

_run = re.compile(rf"[\]}}) \t\r\n\f]{{1,{MOST_BLANKS}}}").match
_SPACE = rf"[ \t\r\n\f]{{0,{MOST_BLANKS}}}+"
_NAME = rf"[^\W\d][\w.]{{0,{LONGEST_WORD}}}+"
_next_call = re.compile(rf",{_SPACE}{_NAME}{_SPACE}\(").match
_next_argument = re.compile(rf",{_SPACE}[^\W\d]\w{{0,{LONGEST_WORD}}}+{_SPACE}=(?=[^=])").match
_next_begun = re.compile(rf",{_SPACE}(?:{_NAME}{_SPACE}=?)?").fullmatch
_GOES_ON = frozenset(",:.=+-*/%<>&|^@!'\"[({0123456789")  # what may follow a bracket in an expression
SEVERAL = -2
_ARGUMENT, _CALL, _TEXT, _MARKER, _END = "argument", "call", "text", "marker", "end"


def read_python(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Python keyword arguments: transcoded to JSON while they arrive."""
    python = cast("PythonScanner", stream.island)
    return took_python(stream, python, text, pos, python.read(text, pos), final)


def took_python(stream: Stream, python: PythonScanner, text: str, pos: int, end: int, final: bool = False) -> int:
    """What follows from a run of the scanner from `pos` to `end`: a fragment, and perhaps the end of the arguments."""
    source = stream.source
    source.hold_converted(python.out, text, pos, python.mark, end)
    if python.done and not python.started and "object_empty" in stream.state.row:
        stream.island = None
        opening = source.confirm()
        _, held = source.take_json()
        stream.fire("object_empty", opening + held + take_pieces(source.pieces))
        return end
    if source.object_is_held and (python.started or python.done):
        source.confirm_converted()
        stream.fire("object_start", "")
        stream.reader = "python"
    if not source.object_is_held:
        say_converted(stream)
    _note_repairs(stream, python)
    if python.broken and hasattr(python, "close_inside"):
        after = _read_closers(stream, cast("RepairingPythonScanner", python), text, end, final)
        if after != SEVERAL:
            return after
    if python.broken:
        stream.unexpected_input()
    elif python.done:
        stream.island = None
        stream.fire("object_end", take_pieces(source.pieces))
    return end


def _note_repairs(stream: Stream, python: PythonScanner) -> None:
    notes: list[str] = getattr(python, "notes", [])
    for note in notes:
        stream.events.note("repaired_python", note, stream.source.waiting - getattr(python, "back", 0))
    notes.clear()


def _read_closers(stream: Stream, python: RepairingPythonScanner, text: str, pos: int, final: bool) -> int:
    """After a value, where the character at `pos` does not fit: read on after the closing brackets that stand there,
    or where a marker closes the call. The new position, or WAIT. SEVERAL where there is no single reading."""
    if pos == len(text):
        return SEVERAL
    inside = python.inside
    if inside is None and not python.at_stop:
        return SEVERAL
    closer = stream.closer_at(text, pos, final)
    if closer == WAIT:
        return _wait(stream, python, text, pos)
    if python.at_stop and not closer:
        python.pass_stop()
        return pos
    if inside is None:
        return SEVERAL
    if closer:
        return _close_at_marker(stream, python, text, pos, final)
    return SEVERAL if stream.source.object_is_held else _read_run(stream, python, text, pos, len(inside), final)


def _read_run(stream: Stream, python: RepairingPythonScanner, text: str, pos: int, inside: int, final: bool) -> int:
    """The same for a run of closing brackets, where so many are open."""
    run = _run(text, pos)
    if run is None or text[pos] not in "]})":
        return SEVERAL
    at = run.end()
    if at == len(text) and len(run.group()) < MOST_BLANKS and not final:
        return _wait(stream, python, text, pos)
    follows = _follows(stream, text, at, final)
    if follows is None:
        return _wait(stream, python, text, pos)
    if follows == _END and not stream.ended:
        stream.source.hold(text, pos, at)  # what follows is cut off
        return at
    taken = _taken(run.group(), inside, follows)
    if taken is None:
        return SEVERAL
    if follows == _ARGUMENT:
        return _close_inside(stream, python, text, pos, at)
    stream.events.note("repaired_python", text[pos], stream.source.waiting)
    return _close(stream, python, text, pos, pos + taken, final)


def _wait(stream: Stream, python: RepairingPythonScanner, text: str, pos: int) -> int:
    python.broken = python.at_stop = False
    return stream.wait(text[pos:])


def _follows(stream: Stream, text: str, at: int, final: bool) -> str | None:
    """What follows closing brackets: "" for what may go on with the value, None where that is not certain yet."""
    if at == len(text):
        return _END if final else ""
    marker = stream.marker_at(text, at, final)
    if marker:
        return None if marker == WAIT else _MARKER
    if text[at] != ",":
        return "" if text[at] in _GOES_ON else _TEXT
    if _next_call(text, at):
        return _CALL
    if _next_argument(text, at):
        return _ARGUMENT
    return None if not final and _next_begun(text, at) else ""


def _taken(run: str, inside: int, follows: str) -> int | None:
    """How much of a run of closing brackets belongs to arguments in which so many are open, parenthesis aside. None
    where there are several readings."""
    places = [at for at, character in enumerate(run) if character in "]})"]
    count = len(places)
    if follows == _ARGUMENT:
        return len(run) if inside and inside - 1 <= count <= inside else None
    if follows == _CALL:
        return len(run) if inside <= count <= inside + 1 else None
    if not follows:
        return None
    parenthesis = run.rfind(")")
    if parenthesis >= 0:
        return parenthesis + 1
    if follows == _TEXT or count < inside:
        return None
    most = inside + (run[places[inside]] == "}" if count > inside else 0)
    return places[most - 1] + 1 if most else 0


def _say(stream: Stream, python: RepairingPythonScanner, text: str, pos: int, end: int) -> None:
    stream.source.hold_converted(python.out, text, pos, end, end)
    say_converted(stream)


def _close_inside(stream: Stream, python: RepairingPythonScanner, text: str, pos: int, end: int) -> int:
    """All brackets inside the arguments are closed, and the next argument follows."""
    stream.events.note("repaired_python", text[pos], stream.source.waiting)
    python.close_inside()
    _say(stream, python, text, pos, end)
    return end


def _close_at_marker(stream: Stream, python: RepairingPythonScanner, text: str, pos: int, final: bool) -> int:
    """A marker ends the last value, and what is open."""
    python.end_value()
    if python.broken:
        return SEVERAL
    python.mark = pos
    took_python(stream, python, text, pos, pos)
    stream.events.note("unclosed_arguments", python.open_brackets().stack, stream.source.waiting)
    return _close(stream, python, text, pos, pos, final)


def _close(stream: Stream, python: RepairingPythonScanner, text: str, pos: int, end: int, final: bool) -> int:
    """The arguments are closed, with the brackets up to `end`."""
    python.close_all()
    _say(stream, python, text, pos, end)
    stream.island = None
    reason = stream.closing
    stream.closing = "stop" if final else reason  # the model has closed the call
    stream.fire("object_end", take_pieces(stream.source.pieces))
    stream.closing = reason
    return end
