"""Readers of arguments: a JSON object, also one left unclosed, and arguments written as a JSON string."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from toolgram.islands.held_text import add_piece, take_pieces
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import FIRST_KEY, START, JsonScanner, MarkerSearches
from toolgram.limits import LONGEST_ENVELOPE_TEXT, MOST_AFTER_ARGUMENTS
from toolgram.program.expressions import FindMatch, firsts_of
from toolgram.program.look_ahead import partial_pattern
from toolgram.runtime.following import (
    begins_text,
    end_of_json_blanks,
    ends_string,
    goes_on,
    goes_on_alone,
    may_go_on,
    may_go_on_alone,
)
from toolgram.runtime.source import Transcoding
from toolgram.runtime.stream import Stream, symbol_why
from toolgram.spec.data import UNCLOSED

if TYPE_CHECKING:
    from toolgram.islands.json_strings import JsonStringScanner

REPAIRABLE = "{'/#_$abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # what else a member may begin with


def read_object(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read what follows the opening brace of arguments: a key or the closing brace confirms it."""
    pos = skip_blanks_after_opening(stream, text, pos)
    if pos == len(text):
        return pos
    repairs = stream.may_repair_call
    repaired = repairs and text[pos] in REPAIRABLE
    if not (repaired or text[pos] in '"}') or len(stream.source.opening or "") > LONGEST_ENVELOPE_TEXT:
        stream.unexpected_input()
        return pos
    scanner = JsonScanner(repairs=repairs)
    scanner.stack.append("{")
    scanner.state = FIRST_KEY
    stream.island = scanner
    if repaired:
        begin_repair(stream, scanner)
    else:
        confirm_object(stream)
    return pos


def confirm_object(stream: Stream) -> None:
    """Confirm the opening brace of arguments, after a key or the closing brace has followed it."""
    opening = stream.source.confirm()
    stream.fire("object_start", "")
    say_brace(stream, opening)


def say_brace(stream: Stream, opening: str) -> None:
    """Emit the opening brace of arguments, and the blanks after it if only blanks are there."""
    blanks = opening.removeprefix("{")
    stream.calls.delta("{" + blanks if end_of_json_blanks(blanks, 0) == len(blanks) else "{", opening)


def skip_blanks_after_opening(stream: Stream, text: str, pos: int) -> int:
    """Take blanks after a bracket that is not confirmed yet, and return the position after them."""
    end = end_of_json_blanks(text, pos)
    if end > pos:
        stream.source.opening = (stream.source.opening or "") + stream.source.take(text, pos, end)
    return end


def read_arguments(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read a JSON object, and emit the model's own characters as long as they are JSON."""
    scanner, floor = arguments_scanner(stream)
    if final and scanner.repairs:  # undecided characters are what they seem to be
        scanner.exact()
    scanner.run(text, pos, floor)
    end = took_arguments(stream, scanner, floor, text, pos)
    if 0 <= end < len(text) and stream.reader == "arguments" and scanner.waits(floor):
        return stream.wait(text[end:])
    return end


def arguments_scanner(stream: Stream) -> tuple[JsonScanner, int]:
    """Return the scanner that reads the arguments and looks for markers, and the depth at which they are closed."""
    island = stream.island
    scanner, floor = (island.scanner, island.depth) if isinstance(island, Envelope) else (cast(JsonScanner, island), 0)
    if scanner.searches is None:
        scanner.searches = marker_searches(stream.program.in_no_name)
    return scanner, floor


# A quote that is not escaped, or may not be; one at the end, also with what may be after a member.
_NOTABLE_QUOTES = (r'(?<=")(?<!\\")', r'(?<=\\\\")', r'(?<=")(?=[,}\] \t\r\n]*+\Z)')


@lru_cache(maxsize=256)
def marker_searches(markers: tuple[str, ...], quote: str = "") -> MarkerSearches:
    """Return the searches for these markers in strings in such quotes. Without quotes, the string is JSON; escapes that
    are whole and of no quote are plain text of it."""
    begun = partial_pattern([*markers]) or "(?!)"
    firsts = firsts_of(marker for marker in markers if marker[0] not in '"\\' and marker[0].isprintable())
    found = re.compile(rf"({'|'.join(map(re.escape, markers)) or '(?!)'})|(?:{begun})\Z").search
    listed = "".join(map(re.escape, firsts))
    ways = [rf"(?<={re.escape(first)})(?=[{re.escape(seconds)}]|\Z)" for first, seconds in firsts.items() if seconds]
    ways += [rf"(?<={re.escape(first)})" for first, seconds in firsts.items() if not seconds]
    if quote:
        leaves = _any_that_counts(rf'"{quote}\\\x00-\x1f', listed, ways)
    else:
        leaves = _any_that_counts(r'"\x00-\x1f', rf"{listed}\\", [*ways, r"(?<=\\)(?![\\/bfnrt])"])
    opens = re.compile(rf'(?<!\\)"[^"\\{listed}]*+\Z').search
    notable = _any_that_counts("", rf'"{listed}', [*ways, *_NOTABLE_QUOTES])
    return MarkerSearches(found, notable, opens, leaves)


def _any_that_counts(always: str, listed: str, ways: list[str]) -> FindMatch:
    """Return a search for one of some characters, or for a listed one that is there in one of the ways."""
    counts = f"(?:(?<![{listed}])|{'|'.join(ways)})" if listed else ""
    return re.compile(f"[{always}{listed}]{counts}").search


def repaired_reader(stream: Stream) -> str:
    """Return the reader of what a repairer writes."""
    return stream.island.inner if isinstance(stream.island, Envelope) else "arguments"


def took_arguments(stream: Stream, scanner: JsonScanner, floor: int, text: str, pos: int) -> int:
    """Emit what the scanner has read from `pos` on as a fragment, and see whether the arguments have ended."""
    envelope = stream.island if isinstance(stream.island, Envelope) else None
    end = scanner.end
    if end > pos:
        stream.calls.delta(scanner.out, stream.source.take(text, pos, end))
    if scanner.met_control:
        if stream.program.strict:
            stream.unexpected_input()
        elif stream.source.transcoding is None:
            stream.events.note("repaired_json", text[end])
    elif scanner.broken:
        return _broke(stream, scanner, envelope, text)
    elif len(scanner.stack) == floor:
        _close(stream)
    return end


def _close(stream: Stream) -> None:
    """End the arguments, or see first what follows. A repairer of an envelope will see it."""
    if stream.source.transcoding is None or not isinstance(stream.island, Envelope):
        stream.reader = "closed"
    else:
        end_arguments(stream)


def read_closed(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read what follows the end of arguments. If a string continues there, it closed nothing."""
    in_string = _string_goes_on(stream, text, pos, final)
    if in_string is None:
        return stream.wait(text[pos:])
    if in_string:
        stream.unexpected_input()
    else:
        end_closed(stream)
    return pos


def _string_goes_on(stream: Stream, text: str, pos: int, final: bool) -> bool | None:
    """Return whether a string of arguments whose bracket has come goes on; None if what follows decides that."""
    in_envelope = isinstance(stream.island, Envelope)  # where a key may follow
    found = (goes_on if in_envelope else goes_on_alone)(text, pos)
    if found is not None:
        return not in_envelope or text[found.end() - 1] not in "\"'"
    if not final and (may_go_on if in_envelope else may_go_on_alone)(text, pos):
        return None
    if in_envelope or stream.events.withheld is not None:  # a call that text follows is none there
        return False
    after = begins_text(text, pos)
    return after is not None and string_ends(stream, text, after.end() - 1, final, True)


def read_after_arguments(stream: Stream, text: str, pos: int, final: bool) -> int | None:
    """Fail a call if the text after its arguments, in an open envelope, may be the rest of a string of theirs. Return
    the position, or WAIT; None if they have ended."""
    if UNCLOSED not in stream.state.row or stream.calls.index is None or stream.events.withheld is not None:
        return None
    if text[pos] == "{":  # of the next call
        return None
    in_string = goes_on_alone(text, pos) is not None or string_ends(stream, text, pos, final, False)
    if in_string is None:
        return stream.wait(text[pos:])
    if not in_string:
        return None
    stream.fail_after_arguments("")
    return pos


def string_ends(
    stream: Stream, text: str, pos: int, final: bool, on_line: bool, end_of_string: FindMatch = ends_string
) -> bool | None:
    """Return whether a string ends in the text after arguments, before any marker, so that it may be one of theirs that
    has gone on; None if what follows decides that. `on_line`: it has to end on the line of the arguments, and before a
    brace, which may be that of a call in JSON."""
    rest = text[pos : pos + MOST_AFTER_ARGUMENTS]
    marker = _literal_of(tuple(stream.program.literals.values()))(rest)
    ends = [marker.start()] if marker is not None else []
    ends += [rest.find(sign) for sign in "\n{" if on_line and sign in rest]
    if end_of_string(rest, 0, min(ends, default=len(rest))):
        return True
    return False if final or ends or len(rest) == MOST_AFTER_ARGUMENTS else None


_longer = re.compile(r"\s*[^\w\s\"'\\][^\"'\\]+").fullmatch
_sign = re.compile(r"\s*[^\w\s\"'\\{}()\[\]<>,:;=.`-]\s*").fullmatch


@lru_cache(maxsize=256)
def _literal_of(literals: tuple[str, ...]) -> FindMatch:
    """Return a search for a literal of the format that is no word, no bracket and no sign between values."""
    found = [re.escape(text.strip()) for text in literals if _longer(text) or _sign(text)]
    return re.compile("|".join(found) or "(?!)").search


def end_closed(stream: Stream) -> None:
    """End arguments whose brace has come. If the output has ended since then, that is no matter."""
    reason, stream.closing = stream.closing, None
    end_arguments(stream)
    stream.closing = reason


def end_arguments(stream: Stream) -> None:
    """End the arguments, which are closed."""
    envelope, written = stream.island, take_pieces(stream.source.pieces)
    if not isinstance(envelope, Envelope):
        stream.island = None
        stream.fire("object_end", written)
    else:
        stream.reader = "envelope"
        stream.fire(f"end_map {stream.same(envelope.path)}", written)


def _broke(stream: Stream, scanner: JsonScanner, envelope: Envelope | None, text: str) -> int:
    """Handle arguments that are not JSON: they are in Python's spelling, can be repaired, or are broken."""
    repairs, end = scanner.repairs, scanner.end
    fault = scanner.fault if repairs else end
    if envelope is not None and scanner.was >= START:  # not inside a string
        repairs = repairs or is_python_only(stream, envelope, text[fault])
    if fault == end and scanner.broke_after_value and stream.source.transcoding is None:
        scanner.state = scanner.was
        after = read_closer(stream, text, end)
        if after is not None:
            return after
    if repairs:
        begin_repair(stream, scanner)
    else:
        stream.unexpected_input()
    return end


def read_closer(stream: Stream, text: str, pos: int) -> int | None:
    """Read the call's closing marker after a whole value in open arguments, or the part in which the output ends.
    Return the position after it, or WAIT; None if it is not at `pos`."""
    begun, source = stream.state.may_become(text, pos), stream.source
    if begun and stream.closing is None:
        return stream.wait(text[pos:])
    found = stream.symbol_at(text, pos) if stream.state.literals else None
    if found is None and not begun:
        return None
    if source.transcoding is not None:  # a comment before the marker
        add_piece(source.pieces, take_pieces(source.transcoding.pieces))
        source.transcoding = None
    if found is None:
        source.hold(text, pos, len(text))
        return len(text)
    symbol, end = found
    stream.fire(symbol.trigger, text[pos:end], symbol_why(symbol))
    return end


def is_python_only(stream: Stream, envelope: Envelope, character: str) -> bool:
    """Return whether a value in Python's spelling may begin here, and nothing else may be repaired."""
    if envelope.repairs or stream.source.transcoding is not None:  # what a repairer writes is JSON
        return False
    return stream.program.spec.python_json and character in "'TFN"


def begin_repair(stream: Stream, scanner: JsonScanner) -> None:
    """Let the scanner read the repairer's output from here on."""
    envelope = stream.island
    if isinstance(envelope, Envelope):
        envelope.inner = stream.reader
    scanner.repair(python_only=isinstance(envelope, Envelope) and not envelope.repairs)
    stream.source.transcoding = Transcoding()
    stream.reader = "repaired"


def read_string(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read arguments in a JSON string, in an envelope or alone: decode it, and stream the object in it."""
    island, source, reader = stream.island, stream.source, stream.reader
    envelope = island if isinstance(island, Envelope) else None
    string = cast("JsonStringScanner", island if envelope is None else envelope.string)
    end = string.read(text, pos, final or source.transcoding is not None)
    source.hold_converted(string.out, text, pos, string.mark, end)
    if source.object_is_held and string.started:
        if envelope is None:
            begin_converted(stream)
        else:
            stream.fire(f"string {stream.same(envelope.path)}", envelope.take_source() + source.confirm())
        stream.reader = reader
    if not source.object_is_held:
        say_converted(stream)
    if string.note:
        stream.events.note("repaired_json", string.note)
    if string.waits:
        return stream.wait(text[end:])
    if string.broken:
        stream.unexpected_input()
    elif string.done:
        if envelope is not None:
            envelope.string = None
            envelope.scanner.state = envelope.scanner.after_value()
        _close(stream)
    return end


def begin_converted(stream: Stream) -> None:
    """Begin arguments that are transcoded: their opening is confirmed."""
    stream.source.confirm_converted()
    stream.fire("object_start", "")


def say_converted(stream: Stream) -> None:
    """Emit the JSON that is held."""
    if stream.source.converted is not None and stream.source.converted[0]:
        stream.calls.delta(*stream.source.take_json())
