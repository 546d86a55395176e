"""The reader of JSON that needs repair, which includes Python's spelling of it.

Strategy: each character first goes through a repairer, and the readers of JSON read the output. In arguments that have
begun, what is written stays inside them nearly always, so the scanner alone reads it, and a delta is one event. What
needs a look ahead is done here, because the text is here: a code fence around a value, and the end of a string with
unescaped quotes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from toolgram.islands import Island
from toolgram.islands.held_text import add_piece, take_pieces
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import (
    AFTER_ITEM,
    AFTER_MEMBER,
    FIRST_ITEM,
    ITEM,
    KEY,
    MEMBER_VALUE,
    SCALARS,
    JsonScanner,
)
from toolgram.limits import BLANKS, LONGEST_ENVELOPE_TEXT
from toolgram.program.closing_markers import FENCE
from toolgram.program.state import Program, StateProgram
from toolgram.runtime.argument_readers import (
    arguments_scanner,
    confirm_object,
    read_after_arguments,
    read_closer,
    repaired_reader,
)
from toolgram.runtime.damaged_values import BROKEN, CUT, ENDS, PART, read_damaged
from toolgram.runtime.envelope_reader import ENVELOPE_READERS, prescribed
from toolgram.runtime.event_buffer import SYNTAX
from toolgram.runtime.following import is_key, may_be_key
from toolgram.runtime.position import WAIT
from toolgram.runtime.source import Transcoding
from toolgram.runtime.stream import Stream
from toolgram.spec.data import UNCLOSED

if TYPE_CHECKING:
    from toolgram.islands.json_repairs import JsonRepairer

_AFTER_MEMBER = ",}])/#` \t\r\n"  # may be read there
_opening_fence = re.compile(rf"```[ \t]?\w{{0,16}}{BLANKS}(?=[\[{{\"'])").match
_opening_begun = re.compile(rf"(?:`{{1,2}}|```[ \t]?\w{{0,16}}{BLANKS})\Z").match
_closing_fence = re.compile(rf"```{BLANKS}(?=[,}}\]])").match
_closing_begun = re.compile(rf"(?:`{{1,2}}|```{BLANKS})\Z").match


def read_repaired(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read JSON that is repaired: pass each character to the repairer, and its output to the readers."""
    island, source = stream.island, stream.source
    scanner, floor = arguments_scanner(stream)
    repairer = cast("JsonRepairer", scanner.repairer)
    reader = repaired_reader(stream)
    source.transcoding = source.transcoding or Transcoding()
    if repairer.idle and not repairer.python_only:
        after = _read_ahead(stream, scanner, reader, text, pos, final)
        if after is not None:
            return after
    if not (source.object_is_held or repairer.damaged):
        after = None
        if reader == "arguments":
            after = _read_arguments(stream, scanner, floor, text, pos)
        elif reader == "envelope" and scanner.in_plain_string:
            after = _read_string(stream, cast(Envelope, island), repairer, text, pos)
        if after is not None:
            return after
    return _read_one(stream, scanner, reader, text, pos, final)


def _read_arguments(stream: Stream, scanner: JsonScanner, floor: int, text: str, pos: int) -> int | None:
    """Read characters of arguments that need no look ahead, and emit them together. Return the position after them;
    None if there are none."""
    begin, marks = pos, _begin_markers(stream.program, stream.state)
    repairer, transcoding = cast("JsonRepairer", scanner.repairer), cast(Transcoding, stream.source.transcoding)
    written: list[str] = []
    read: list[str] = []  # the text that it was written for
    undecided = [take_pieces(transcoding.pieces)]
    taken: int | None = None  # how many characters were read whose output the readers have to read
    while pos < len(text) and taken is None:
        character = text[pos]
        if character in marks and (repairer.at_quote or not scanner.in_string):
            break
        end = repairer.end_of_run(text, pos) if scanner.in_plain_string else pos
        out, alone = text[pos:end], False
        if end == pos:
            end += repairer.read(character, scanner)
            out, alone = repairer.out, repairer.broken or bool(repairer.note)
        if alone or (out and not scanner.passes(out, floor)):
            taken = end - pos
        else:
            undecided.append(text[pos:end])
            if out:
                written.append(scanner.out)
                read += undecided
                undecided.clear()
            pos = end
    if written:
        stream.calls.delta("".join(written), "".join(read))
    add_piece(transcoding.pieces, "".join(undecided))
    if taken is None:
        return pos if pos > begin else None
    return _take_character(stream, scanner, "arguments", transcoding, text, pos, taken)


def _read_string(stream: Stream, envelope: Envelope, repairer: JsonRepairer, text: str, pos: int) -> int | None:
    """Read a string of the envelope as far as it has come and is allowed. Return the position after it, or None."""
    run = text[pos : repairer.end_of_run(text, pos)]
    allowed, _ = prescribed(stream, envelope, run, 0) if run else (0, True)
    if not 0 < allowed <= LONGEST_ENVELOPE_TEXT - len(envelope.source):
        return None
    add_piece(cast(Transcoding, stream.source.transcoding).pieces, run[:allowed])
    _read_written(stream, envelope, "envelope", run[:allowed])
    stream.reader = "repaired"
    return pos + allowed


@lru_cache(maxsize=256)
def _begin_markers(program: Program, state: StateProgram) -> frozenset[str]:
    """Return the characters with which a marker or a fence may begin."""
    return frozenset(marker[0] for marker in (FENCE, *program.markers, *state.literals))


def _read_one(stream: Stream, scanner: JsonScanner, reader: str, text: str, pos: int, final: bool) -> int:
    """Read the character at `pos`. Return the position after it, or WAIT."""
    repairer, transcoding = cast("JsonRepairer", scanner.repairer), cast(Transcoding, stream.source.transcoding)
    found = PART
    if repairer.in_damaged and scanner.in_plain_string:
        found = read_damaged(stream, repairer, text, pos, final)
        found = BROKEN if found in (ENDS, CUT) and repairer.has_rival() else found
    if found not in (PART, ENDS):
        return _leave_damaged(stream, found, text, pos)
    taken = _read_character(stream, scanner, reader, text, pos, final, found)
    if taken == WAIT:
        return stream.wait(text[pos:])
    return _take_character(stream, scanner, reader, transcoding, text, pos, taken)


def _take_character(
    stream: Stream, scanner: JsonScanner, reader: str, transcoding: Transcoding, text: str, pos: int, taken: int
) -> int:
    """Pass on what the repairer made of the character at `pos`. Return the position after what it has taken."""
    repairer = cast("JsonRepairer", scanner.repairer)
    transcoding.read_again, transcoding.reading = False, bool(taken)
    if taken:
        add_piece(transcoding.pieces, text[pos])
    if _pass_on(stream, scanner, repairer, reader, bool(taken)):
        taken = transcoding.reading
    transcoding.reading = False
    return pos + taken if not transcoding.read_again else pos


def _read_character(
    stream: Stream, scanner: JsonScanner, reader: str, text: str, pos: int, final: bool, found: int
) -> int:
    """Let the repairer read the character at `pos`. Return 1 if it was taken, else 0; WAIT if a quote is undecided."""
    repairer = cast("JsonRepairer", scanner.repairer)
    if repairer.in_damaged and scanner.in_plain_string and text[pos] == repairer.quote:
        if found == ENDS:
            repairer.end_string()
        else:
            repairer.keep_quote(scanner)
        return int(not repairer.broken)
    follows = _follows_quote(stream, reader, text, pos, final) if repairer.at_quote else 0
    if follows == WAIT:
        return WAIT
    if follows:
        repairer.end_string()
        return 0
    taken = repairer.read(text[pos], scanner)
    unknown = taken and reader == "envelope" and not _may_be_key(stream, repairer.bare_key(scanner))
    if unknown or (repairer.damaged and reader != "arguments"):
        taken, repairer.broken = False, True
    return int(taken)


def _leave_damaged(stream: Stream, found: int, text: str, pos: int) -> int:
    """Handle a character of a damaged string that is neither part of it nor its end."""
    if found == WAIT:
        return stream.wait(text[pos:])
    if found == CUT:
        add_piece(cast(Transcoding, stream.source.transcoding).pieces, text[pos:])
        return len(text)
    stream.unexpected_input()
    return pos


def _read_ahead(stream: Stream, scanner: JsonScanner, reader: str, text: str, pos: int, final: bool) -> int | None:
    """Read a fence or a closing marker between tokens. Return the position after it, WAIT, or None for neither."""
    after = pos
    if text[pos] == "`":
        after = _read_fence(stream, scanner, text, pos, final)
    if after != pos:
        return after
    if reader == "envelope" and scanner.state == AFTER_MEMBER and text[pos] in "\"'":
        return _read_quote(stream, cast(Envelope, stream.island), text, pos, final)
    ended = scanner.state == AFTER_MEMBER and text[pos] not in _AFTER_MEMBER
    if reader == "envelope" and (ended or (scanner.state == KEY and text[pos] == "\\")):
        return read_after_arguments(stream, text, pos, final)
    return read_closer(stream, text, pos) if reader == "arguments" and scanner.is_after_value else None


def _read_quote(stream: Stream, envelope: Envelope, text: str, pos: int, final: bool) -> int | None:
    """Read a quote after a value: a key that is known, of which the comma is missing, or the envelope fails.

    On the line of the arguments, it shows that they ended too early. On a later line they stay whole.
    """
    key, state = is_key(text, pos), stream.state
    if key and (state.named_key or f"{envelope.parents[-1]}.{key[2]}" in state.key_paths):
        return None
    if may_be_key(text, pos) and not final:
        return stream.wait(text[pos:])
    if stream.calls.index is None:
        stream.unexpected_input()
        return pos
    read = envelope.source + "".join(cast(Transcoding, stream.source.transcoding).pieces)
    stream.fail_after_arguments(read[len(read.rstrip()) :])
    return pos


def _pass_on(stream: Stream, scanner: JsonScanner, repairer: JsonRepairer, reader: str, taken: bool) -> bool:
    """Pass what the repairer has written to the readers. Return whether the value continues."""
    if repairer.note:
        stream.events.note("repaired_json", repairer.note)
    if reader == "envelope" and repairer.idle and repairer.out:
        _drop_left_out(stream, taken)
    if repairer.broken:
        stream.reader = reader
        _leave_repair(stream, reader)
        scanner.repairer = None
    elif _read_written(stream, stream.island, reader, _confirmed(stream, repairer.out)):
        if reader == "envelope" and cast(Envelope, stream.island).inner != reader:
            repairer.begin_call()
        stream.reader = "repaired"
        return True
    return False


def _leave_repair(stream: Stream, reader: str) -> None:
    """Handle a place that cannot be repaired. After arguments, a comment with a quote may be a part of their string."""
    read = "".join(cast(Transcoding, stream.source.transcoding).pieces)
    if reader == "envelope" and UNCLOSED in stream.state.row and stream.calls.index is not None and '"' in read:
        stream.fail_after_arguments(read[: read.index('"')])
    else:
        stream.unexpected_input()


def _drop_left_out(stream: Stream, taken: bool) -> None:
    """Drop what the repairer left out after the arguments: it belongs to the call, whatever follows."""
    envelope, source = stream.island, stream.source
    certain = stream.events.held is None and not source.object_is_held
    if not isinstance(envelope, Envelope) or not certain or UNCLOSED not in stream.state.row:
        return
    transcoding = cast(Transcoding, source.transcoding)
    read = take_pieces(transcoding.pieces)
    end = len(read) - taken
    if end > 0:
        stream.events.drop(envelope.take_source() + read[:end], SYNTAX)
    add_piece(transcoding.pieces, read[end:])


def _read_fence(stream: Stream, scanner: JsonScanner, text: str, pos: int, final: bool) -> int:
    """Leave out a code fence around a value. Return the position after it, or WAIT; `pos` if there is no fence."""
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
    add_piece(cast(Transcoding, source.transcoding).pieces, text[pos:end])
    stream.events.note("repaired_json", FENCE)
    return end


def _may_be_key(stream: Stream, begun: str) -> bool:
    """Return whether a key of the envelope may begin like this."""
    island, state = stream.island, stream.state
    if not begun or stream.source.object_is_held or not isinstance(island, Envelope) or state.any_key:
        return True  # or the object is not certain yet
    return f"{island.parents[-1]}.{begun}" in state.key_prefixes


def _follows_quote(stream: Stream, reader: str, text: str, pos: int, final: bool) -> int:
    """Return 1 if a marker (after an encoded string: the end of a fence) is at `pos`, 0 if not, WAIT if one may be."""
    if reader != "encoded":
        return stream.any_at(stream.program.markers, text, pos, final)
    if text[pos] != "`" or _closing_fence(text, pos) is not None:
        return int(text[pos] == "`")
    return WAIT if _closing_begun(text, pos) is not None and not final else 0


def _confirmed(stream: Stream, written: str) -> str:
    """Return `written`. Its first character that is not blank confirms the brace of arguments outside an envelope."""
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
    """Pass written JSON to the readers. Return False if the value has ended, or reading resumes in the list."""
    at = 0
    while at < len(written):
        stream.reader = reader
        at = ENVELOPE_READERS[reader](stream, written, at, False)
        if stream.island is not island or stream.reader in ("closed", "malformed"):
            stream.source.transcoding = None
            return False
        reader = stream.reader
    if isinstance(island, Envelope):
        island.inner = reader
    return True
