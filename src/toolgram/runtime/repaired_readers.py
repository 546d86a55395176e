"""Readers of JSON that is written otherwise: in Python's spelling, or to be repaired.

Strategy: each character goes through a transcoder or a repairer first, and the readers of JSON read what that writes.
What needs a look ahead is done here, where the text is: a code fence around a value, closing brackets that do not close
the innermost bracket, and what ends a string whose quote may be part of it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from toolgram.islands import Island
from toolgram.islands.held_text import add_piece, take_pieces
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import (
    AFTER_ITEM,
    AFTER_MEMBER,
    FIRST_ITEM,
    ITEM,
    MEMBER_VALUE,
    SCALARS,
    JsonScanner,
)
from toolgram.islands.literal_repairs import LiteralScanner
from toolgram.limits import BLANKS, MOST_BLANKS
from toolgram.program.closing_markers import FENCE
from toolgram.runtime.argument_readers import arguments_scanner, closer_of_arguments, confirm_object
from toolgram.runtime.envelope_reader import ENVELOPE_READERS
from toolgram.runtime.event_buffer import SYNTAX
from toolgram.runtime.position import WAIT
from toolgram.runtime.source import Transcoding
from toolgram.runtime.stream import Stream
from toolgram.spec.data import UNCLOSED

if TYPE_CHECKING:
    from toolgram.islands.json_repairs import JsonRepairer
    from toolgram.islands.python_literals import PythonScanner

_opening_fence = re.compile(rf"```[ \t]?\w{{0,16}}{BLANKS}(?=[\[{{\"'])").match
_opening_begun = re.compile(rf"(?:`{{1,2}}|```[ \t]?\w{{0,16}}{BLANKS})\Z").match
_closing_fence = re.compile(rf"```{BLANKS}(?=[,}}\]])").match
_closing_begun = re.compile(rf"(?:`{{1,2}}|```{BLANKS})\Z").match
_closers = re.compile(rf"[\]}} \t\r\n]{{1,{MOST_BLANKS}}}").match
_closer = re.compile(r"[ \t\r\n]*[\]}]").match
_next_item = re.compile(rf",{BLANKS}\{{").match
_next_item_begun = re.compile(rf",{BLANKS}\Z").match
_OPENERS = {"}": "{", "]": "["}
_GOES_ON = frozenset(",:\"'{[#/0123456789-")  # what may follow a value in JSON, or in JSON that is repaired


def read_transcoded(stream: Stream, text: str, pos: int, final: bool) -> int:
    """An envelope in Python's spelling: one character at a time through the transcoder, its JSON to the readers."""
    envelope, source = cast(Envelope, stream.island), stream.source
    python = cast("PythonScanner", envelope.python)
    character = text[pos]
    transcoding = source.transcoding = source.transcoding or Transcoding()
    transcoding.read_again = False
    skipped = source.skip_prefix(pos, pos + 1) - pos if source.prefix_characters else 0
    if not skipped:
        add_piece(transcoding.pieces, character)
    if python.read(character, 0) == 0:
        place = python.place() if isinstance(python, LiteralScanner) else None
        if place is None or skipped:
            stream.reader = envelope.inner
            stream.unexpected_input()
            return pos if transcoding.read_again else pos + 1
        transcoding.pieces[-1] = transcoding.pieces[-1][:-1]
        _repair_transcoded(stream, envelope, place[2])
        return pos
    written = _unskipped(envelope, python.out)
    if _read_written(stream, envelope, envelope.inner, written):
        stream.reader = "transcoded"
        return pos + 1
    return pos if transcoding.read_again else pos + 1


def _unskipped(envelope: Envelope, written: str) -> str:
    """What is written of what is not known yet."""
    at = min(envelope.skip, len(written))
    envelope.skip -= at
    return written[at:]


def _repair_transcoded(stream: Stream, envelope: Envelope, held: str) -> None:
    """Where Python's spelling does not fit, JSON is repaired from there on; `held` is what was not decided."""
    python, inner, scanner = cast(LiteralScanner, envelope.python), envelope.inner, envelope.scanner
    stream.reader = inner
    written = _unskipped(envelope, python.out)
    if _read_written(stream, envelope, inner, written):
        repairer = scanner.repair(python.repairer())
        for character in held:
            repairer.read(character, scanner)
        stream.reader = "repaired"


def read_repaired(stream: Stream, text: str, pos: int, final: bool) -> int:
    """JSON that is repaired: one character at a time through the repairer, what it writes to the readers."""
    island, source = stream.island, stream.source
    scanner, _ = arguments_scanner(stream)
    repairer = cast("JsonRepairer", scanner.repairer)
    reader = island.inner if isinstance(island, Envelope) else "arguments"
    transcoding = source.transcoding = source.transcoding or Transcoding()
    after = _read_ahead(stream, scanner, reader, text, pos, final) if repairer.idle else None
    if after is not None:
        return after
    follows = _follows_quote(stream, reader, text, pos, final) if repairer.at_quote else 0
    if follows == WAIT:
        return stream.wait(text[pos:])
    if follows:
        repairer.end_string()
    taken = not follows and repairer.read(text[pos], scanner)
    if taken and reader == "envelope" and not _may_be_key(stream, repairer.bare_key(scanner)):
        taken, repairer.broken = False, True
    transcoding.read_again, transcoding.reading = False, taken
    skipped = source.skip_prefix(pos, pos + 1) - pos if taken and source.prefix_characters else 0
    if taken and not skipped:
        add_piece(transcoding.pieces, text[pos])
    if _pass_on(stream, scanner, repairer, reader, taken):
        taken = transcoding.reading
    transcoding.reading = True
    end = pos + taken if not transcoding.read_again else pos
    if end == pos:
        source.prefix_characters += skipped  # it is still to be read
    return end


def _read_ahead(stream: Stream, scanner: JsonScanner, reader: str, text: str, pos: int, final: bool) -> int | None:
    """Between tokens, what needs a look at what follows: the position after it, or WAIT. None for anything else."""
    after = pos
    if text[pos] == "`":
        after = _read_fence(stream, scanner, text, pos, final)
    elif text[pos] in "}]" and reader == "arguments":
        after = _read_crossed_closers(stream, scanner, text, pos, final)
    if after != pos:
        return after
    if reader != "arguments" or not scanner.is_behind_value:
        return None
    closes = closer_of_arguments(stream, scanner, text, pos, final)
    return None if not closes else WAIT if closes == WAIT else pos


def _pass_on(stream: Stream, scanner: JsonScanner, repairer: JsonRepairer, reader: str, taken: bool) -> bool:
    """Hand what the repairer has written to the readers. Whether the value goes on."""
    if repairer.note:
        stream.events.note("repaired_json", repairer.note)
    if reader == "envelope" and repairer.idle and repairer.out:
        _drop_left_out(stream, taken)
    if repairer.broken:
        stream.reader, scanner.repairer = reader, None
        stream.unexpected_input()
    elif _read_written(stream, stream.island, reader, _confirmed(stream, repairer.out)):
        stream.reader = "repaired"
        return True
    return False


def _drop_left_out(stream: Stream, taken: bool) -> None:
    """After the arguments: what the repairer has left out before the present character belongs to the call, whatever
    follows it."""
    envelope, source = stream.island, stream.source
    certain = stream.events.held is None and not source.object_is_held and not source.prefix_characters
    if not isinstance(envelope, Envelope) or not certain or UNCLOSED not in stream.state.row:
        return
    if source.transcoding is None:
        return
    read = take_pieces(source.transcoding.pieces)
    end = len(read) - taken
    if end > 0:
        stream.events.drop(envelope.source + read[:end], SYNTAX)
        envelope.source = ""
    add_piece(source.transcoding.pieces, read[end:])


def _read_fence(stream: Stream, scanner: JsonScanner, text: str, pos: int, final: bool) -> int:
    """A code fence around a value is left out: the position after it, or WAIT. `pos` where something else stands."""
    state = scanner.state if scanner.state < SCALARS else scanner.after_value()
    closes = state in (AFTER_ITEM, AFTER_MEMBER)
    if not closes and state not in (MEMBER_VALUE, ITEM, FIRST_ITEM):
        return pos
    fence = (_closing_fence if closes else _opening_fence)(text, pos)
    if fence is None:
        begun = (_closing_begun if closes else _opening_begun)(text, pos)
        if begun is None or final:
            return pos
        return stream.wait(text[pos:])
    source, end = stream.source, fence.end()
    add_piece(cast(Transcoding, source.transcoding).pieces, text[_own(stream, pos, end) : end])
    stream.events.note("repaired_json", FENCE)
    return end


def _read_crossed_closers(stream: Stream, scanner: JsonScanner, text: str, pos: int, final: bool) -> int:
    """Closing brackets of which the first closes another bracket than the innermost one. Where nothing but such follows
    in the value, all ways to read them give the same arguments, and at most one is missing: the position after them,
    or WAIT. `pos` where something else stands."""
    stack, depth = scanner.stack, arguments_scanner(stream)[1]
    if not scanner.is_behind_value or len(stack) <= depth or stack[-1] == _OPENERS[text[pos]]:
        return pos
    run, transcoding = cast("re.Match[str]", _closers(text, pos)), cast(Transcoding, stream.source.transcoding)
    if run.end() == len(text) and len(run.group()) < MOST_BLANKS and not (final and stream.ended):
        if not final:
            return stream.wait(text[pos:])
        add_piece(transcoding.pieces, text[_own(stream, pos, len(text)) :])  # what follows is cut off
        return len(text)
    first = _first_closed(stream, stack, depth, text, run, final)
    if first == WAIT:
        return stream.wait(text[pos:])
    if first is None:
        return pos
    return _close_crossed(stream, transcoding, stack[first:], _count(run), text, pos, final)


def _close_crossed(
    stream: Stream, transcoding: Transcoding, closed: list[str], count: int, text: str, pos: int, final: bool
) -> int:
    """Close these brackets with so many of the text: the position after them."""
    end = pos
    for _ in range(min(count, len(closed))):
        end = _closer(text, end).end()  # type: ignore[union-attr]
    stream.events.note("repaired_json", text[pos])
    add_piece(transcoding.pieces, text[_own(stream, pos, end) : end])
    transcoding.reading = False
    reason, stream.closing = stream.closing, "stop" if final else stream.closing  # the model has closed the call
    closers = "".join("}" if bracket == "{" else "]" for bracket in reversed(closed))
    if _read_written(stream, stream.island, "arguments", closers):
        stream.reader = "repaired"
    stream.closing, transcoding.reading = reason, True
    return end


def _first_closed(
    stream: Stream, stack: list[str], depth: int, text: str, run: re.Match[str], final: bool
) -> int | None:
    """The outermost of the open brackets that a run of closing ones closes: that of the arguments, where `depth` more
    are open, that of the call's object, or the first. WAIT where that is not certain, None where there are several
    readings."""
    count, at, island = _count(run), run.end(), stream.island
    inside_list = "[" in stack[depth:-1]
    if text.startswith("{", at) and depth and not inside_list and count >= len(stack) - 1:
        return 0  # the next object, without a list
    if text.startswith(",", at) and isinstance(island, Envelope) and island.in_list and not inside_list:
        return _first_closed_in_list(stack, count, text, at, final)
    follows = stream.marker_at(text, at, final) if at < len(text) else 1
    if follows == WAIT:
        return WAIT
    if not (follows or text[at] not in _GOES_ON) or count < len(stack) - depth - 1:
        return None
    return depth if count < len(stack) - 1 else 0


def _first_closed_in_list(stack: list[str], count: int, text: str, at: int, final: bool) -> int | None:
    """The same where a comma follows in a list of calls."""
    if _next_item(text, at) is None:  # what may not stand in the arguments
        return WAIT if _next_item_begun(text, at) is not None and not final else None
    return 1 if len(stack) - 2 <= count < len(stack) else None


def _count(run: re.Match[str]) -> int:
    """How many brackets a run of them has, blanks aside."""
    return len("".join(run.group().split()))


def _own(stream: Stream, pos: int, end: int) -> int:
    """Where the output's own characters begin in what is read at once."""
    return stream.source.skip_prefix(pos, end) if stream.source.prefix_characters else pos


def _may_be_key(stream: Stream, begun: str) -> bool:
    """Whether a key of the envelope begins so."""
    island, state = stream.island, stream.state
    if not begun or stream.source.object_is_held or not isinstance(island, Envelope) or state.any_key:
        return True  # or the object is not known to be one yet
    return f"{island.parents[-1]}.{begun}" in state.key_prefixes


def _follows_quote(stream: Stream, reader: str, text: str, pos: int, final: bool) -> int:
    """Whether a marker, or after an encoded string the end of a code fence, is at `pos`: 1, or 0, or WAIT where it may
    be."""
    if reader != "encoded":
        return stream.marker_at(text, pos, final)
    if text[pos] != "`" or _closing_fence(text, pos) is not None:
        return int(text[pos] == "`")
    return WAIT if _closing_begun(text, pos) is not None and not final else 0


def _confirmed(stream: Stream, written: str) -> str:
    """`written`; the first of it but blanks confirms the brace of arguments that stand alone."""
    source = stream.source
    if isinstance(stream.island, Envelope) or not source.object_is_held:
        return written
    if written.strip():
        confirm_object(stream)
        return written
    if written:
        read = take_pieces(source.transcoding.pieces) if source.transcoding is not None else ""
        source.opening = (source.opening or "") + read
    return ""


def _read_written(stream: Stream, island: Island | None, reader: str, written: str) -> bool:
    """Hand written JSON to the readers. Whether the value goes on, which it does not where the list is read on."""
    at = 0
    scanner = island.scanner if isinstance(island, Envelope) else None
    while at < len(written):
        stream.reader = reader
        at = ENVELOPE_READERS[reader](stream, written, at, False)
        resumed = isinstance(island, Envelope) and island.scanner is not scanner
        if stream.island is not island or resumed or stream.reader == "malformed":
            stream.source.transcoding = None
            return False
        reader = stream.reader
    if isinstance(island, Envelope):
        island.inner = reader
    return True
