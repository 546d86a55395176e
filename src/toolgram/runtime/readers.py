"""The one table of readers: from the name of a reader to the function that takes the next characters.

A reader is called with the stream, the text, the position to begin at, and whether nothing follows (`final`). It
returns the new position, or WAIT if it has put the rest of the text into the stream's buffer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeAlias

from toolgram.limits import LONGEST_END_OF_STRING
from toolgram.runtime.argument_readers import arguments_scanner, read_object, read_string
from toolgram.runtime.ends_of_strings import begin_of_markers, cut_off_markers, string_is_open
from toolgram.runtime.envelope_reader import ENVELOPE_READERS
from toolgram.runtime.mentions import drop_after_turn, give_up, read_after_turn, withhold_after_turn
from toolgram.runtime.position import WAIT
from toolgram.runtime.python_readers import read_python
from toolgram.runtime.recovery_readers import read_malformed, read_rejected_json, read_rejected_rest
from toolgram.runtime.repaired_readers import read_repaired
from toolgram.runtime.stream import Stream
from toolgram.runtime.text_readers import read_text, read_token
from toolgram.runtime.value_readers import read_value
from toolgram.runtime.withheld import NO_END, NotACall, Withheld

Reader: TypeAlias = Callable[[Stream, str, int, bool], int]

_QUOTES = re.compile("[\"'`]").search  # without one, a text opens no string

READERS: dict[str, Reader] = {
    "text": read_text,
    "token": read_token,
    "object": read_object,
    "python": read_python,
    "string": read_string,
    "value": read_value,
    "repaired": read_repaired,
    "after_turn": drop_after_turn,
    **ENVELOPE_READERS,
    "rejected_json": read_rejected_json,
    "rejected_rest": read_rejected_rest,
    "malformed": read_malformed,
}


def read(stream: Stream, text: str, pos: int, final: bool) -> None:
    """Let the readers read the text from `pos` on, up to its end or to a part that has to wait for more."""
    while 0 <= pos < len(text):
        if stream.events.before not in NO_END:
            withhold_after_turn(stream, pos)
        withheld = stream.events.withheld
        try:
            if withheld is None:
                pos = _read_piece(stream, text, pos, final)
            else:
                text, pos = _read_withheld(stream, withheld, text, pos, final)
        except NotACall as found:
            text, pos = give_up(stream, text, found)
    events, rest = stream.events, len(stream.buffer)
    if events.withheld is not None:
        events.withheld.keep(text, rest)
    if events.quoted_to:
        events.quoted_to = min(max(0, events.quoted_to - len(text) + rest), rest)


def _read_piece(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Let the reader of the moment read. Markers at the end of a string in the arguments wait until it goes on."""
    if stream.island is None or not _may_open_string(stream, text, pos):
        return READERS[stream.reader](stream, text, pos, final)
    end, at = len(text), begin_of_markers(stream, text, pos)
    if at == end:
        return READERS[stream.reader](stream, text, pos, final)
    if at > pos:
        stream.cut_output(end - at)
        pos = READERS[stream.reader](stream, text[:at], pos, False)
        stream.cut_output(at - end)
        if pos != WAIT:
            return pos
        pos, stream.buffer = at - len(stream.buffer), ""  # it does not wait for the markers
    elif string_is_open(stream):
        return cut_off_markers(stream, text, pos) if final else stream.wait(text[pos:])
    return READERS[stream.reader](stream, text, pos, final)


def _may_open_string(stream: Stream, text: str, pos: int) -> bool:
    """Return whether a string of the arguments is open, or may be opened by the text."""
    reader, island = stream.reader, stream.island
    if reader == "repaired":
        return True
    if reader == "arguments":
        island, _ = arguments_scanner(stream)
    elif reader != "python" and getattr(island, "is_text", True):
        return False
    long = len(text) - pos > LONGEST_END_OF_STRING  # each piece of it would be searched up to the end
    return long or _QUOTES(text, pos) is not None or getattr(island, "in_string", True)


def _read_withheld(stream: Stream, withheld: Withheld, text: str, pos: int, final: bool) -> tuple[str, int]:
    """Read on while a call is withheld, up to the marker that closes the thought around it: a call that is still open
    there is part of the thought. Return the text that is left, and the position in it."""
    if withheld.token and not stream.in_call:
        after = read_after_turn(stream, withheld, text, pos, final)
        return text, _read_piece(stream, text, pos, final) if after is None else after
    begin, closer = pos, withheld.find_closer(text, pos, stream.in_call)
    part = text if closer is None else text[: closer[1] - 1]  # as if it came one character at a time
    left = len(text) - len(part)
    stream.cut_output(left)
    try:
        while 0 <= pos < len(part) and stream.events.withheld is withheld:
            pos = _read_piece(stream, part, pos, final and closer is None)
            if withheld.token and not stream.in_call:
                break
    finally:
        stream.cut_output(-left)
    if closer is None or stream.events.withheld is not withheld or 0 <= pos < len(part):
        return text, pos
    if stream.in_call:
        raise NotACall(at=withheld.length + closer[0] - withheld.begin)
    withheld.keep(part, len(stream.buffer))
    if len(stream.buffer) == len(part) - begin:
        withheld.closers = ()  # all of it waits, so it and the closer have to be read together
    rest, stream.buffer = stream.buffer + text[len(part) :], ""
    events = stream.events
    if events.quoted_to > 0:  # a position in the text
        events.quoted_to = max(0, events.quoted_to - len(text) + len(rest))
    return rest, 0
