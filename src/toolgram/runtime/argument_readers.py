"""Readers of arguments: a JSON object as it stands, one written as a JSON string, and Python keyword arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from toolgram.islands import island_class
from toolgram.islands.held_text import take_pieces
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import FIRST_ITEM, FIRST_KEY, ITEM, KEY, MEMBER_VALUE, SCALARS, START, JsonScanner
from toolgram.limits import LONGEST_ENVELOPE_TEXT
from toolgram.runtime.blanks import end_of_json_blanks
from toolgram.runtime.following import GOES_ON
from toolgram.runtime.source import Transcoding
from toolgram.runtime.stream import Stream, symbol_why

if TYPE_CHECKING:
    from toolgram.islands.json_strings import JsonStringScanner

REPAIRABLE = "{'/#_$abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"  # what a member may begin with besides


def read_object(stream: Stream, text: str, pos: int, final: bool) -> int:
    """After the brace of arguments: it is confirmed when a key or the closing brace follows."""
    pos = skip_blanks_after_opening(stream, text, pos)
    if pos == len(text):
        return pos
    repairs = stream.may_repair_object
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
    """A key or the closing brace has followed the brace of arguments."""
    opening = stream.source.confirm()
    stream.fire("object_start", "")
    stream.calls.delta("{" if stream.source.transcoding is not None else "{" + opening.removeprefix("{"), opening)


def skip_blanks_after_opening(stream: Stream, text: str, pos: int) -> int:
    """Blanks after a bracket that is not confirmed yet."""
    end = end_of_json_blanks(text, pos)
    if end > pos:
        stream.source.opening = (stream.source.opening or "") + stream.source.take(text, pos, end)
    return end


def read_arguments(stream: Stream, text: str, pos: int, final: bool) -> int:
    """A JSON object: the model's own bytes, as far as they are JSON."""
    scanner, floor = arguments_scanner(stream)
    if final and scanner.repairs:  # what waits is what it seems to be
        scanner.exact()
    scanner.run(text, pos, floor)
    end = took_arguments(stream, scanner, floor, text, pos)
    if 0 <= end < len(text) and stream.reader == "arguments" and scanner.waits(floor):
        return stream.wait(text[end:])
    return end


def arguments_scanner(stream: Stream) -> tuple[JsonScanner, int]:
    """The scanner that reads the arguments, and the depth at which they are closed."""
    island = stream.island
    return (island.scanner, island.depth) if isinstance(island, Envelope) else (cast(JsonScanner, island), 0)


def took_arguments(stream: Stream, scanner: JsonScanner, floor: int, text: str, pos: int) -> int:
    """What follows from a run of the scanner from `pos` on: a fragment, and perhaps the end of the arguments."""
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
        return _broke(stream, scanner, envelope, floor, text)
    elif len(scanner.stack) == floor and stream.source.transcoding is None:
        stream.reader = "closed"
    elif len(scanner.stack) == floor:
        end_arguments(stream)
    return end


def read_closed(stream: Stream, text: str, pos: int, final: bool) -> int:
    """After the brace that closes arguments. Text in which a string goes on says that it was none."""
    if text[pos] in (GOES_ON[:1] if isinstance(stream.island, Envelope) else GOES_ON):
        stream.unexpected_input()
    else:
        end_arguments(stream)
    return pos


def end_arguments(stream: Stream) -> None:
    """The arguments are closed."""
    envelope = stream.island
    if not isinstance(envelope, Envelope):
        stream.island = None
        stream.fire("object_end", "")
    elif envelope.pushed("}"):
        envelope.settle()
        stream.reader = "envelope"
        stream.fire(f"end_map {stream.same(envelope.path)}", "")
    else:
        stream.unexpected_input()


def _broke(stream: Stream, scanner: JsonScanner, envelope: Envelope | None, floor: int, text: str) -> int:
    """The arguments are no JSON: in Python's spelling, or to be repaired, or broken."""
    repairs, end = scanner.repairs, scanner.fault if scanner.repairs else scanner.end
    after = end < len(text) and scanner.behind_value and "," not in text[scanner.end : end]
    outside_string = scanner.was >= START  # inside, a quote ends it or belongs to an escape
    if envelope is not None and end < len(text) and outside_string and may_transcode(stream, envelope, text[end]):
        _settle(stream, scanner, floor, text, end)
        transcode(stream, envelope, scanner.was, text[end])
    elif after and _may_close_call(stream, text, end):
        scanner.state = scanner.was
        return _wait_for_closer(stream, text, scanner.end)
    elif after and _closes_call(stream, text, end):
        _settle(stream, scanner, floor, text, end)
        if scanner.behind_value:
            scanner.resume_behind_value()
            stream.reader = "unclosed_arguments"
        else:  # after a comma, say
            stream.unexpected_input()
    elif repairs:
        end = scanner.end
        begin_repair(stream, scanner)
    else:
        stream.unexpected_input()
    return end


def _wait_for_closer(stream: Stream, text: str, pos: int) -> int:
    if stream.closing is None:
        return stream.wait(text[pos:])
    stream.source.hold(text, pos, len(text))  # half a marker ends the output
    return len(text)


def _settle(stream: Stream, scanner: JsonScanner, floor: int, text: str, end: int) -> None:
    """What waited before the character at `end` is decided by it."""
    if end > scanner.end:
        begin, scanner.state = scanner.end, scanner.was
        scanner.exact()
        scanner.accept_controls()
        scanner.run(text, begin, floor)
        stream.calls.delta(scanner.out, stream.source.take(text, begin, scanner.end))


def _may_close_call(stream: Stream, text: str, pos: int) -> bool:
    """Whether a marker that closes the call may stand at `pos`, in the model's own characters, and is not whole yet."""
    return stream.source.transcoding is None and stream.state.may_become(text, pos)


def _closes_call(stream: Stream, text: str, pos: int) -> bool:
    """Whether a marker that closes the call stands at `pos`, in the model's own characters."""
    state = stream.state
    return bool(state.literals) and stream.source.transcoding is None and stream.symbol_at(text, pos) is not None


def closer_of_arguments(stream: Stream, scanner: JsonScanner, text: str, pos: int, final: bool) -> int:
    """After a value of repaired arguments: whether the closing marker of the call stands at `pos`, and then the
    reader that closes them comes next. 1, or 0, or WAIT where the marker may have begun."""
    state = stream.state
    if state.match is None or not state.literals:
        return 0
    if stream.symbol_at(text, pos) is None:
        if final or not state.may_become(text, pos):
            return 0
        return stream.wait(text[pos:])
    if scanner.state >= SCALARS:
        scanner.state = scanner.after_value()
    scanner.repairer, stream.source.transcoding, stream.reader = None, None, "unclosed_arguments"
    return 1


def begin_repair(stream: Stream, scanner: JsonScanner) -> None:
    """From here on the scanner reads what its repairer writes."""
    if isinstance(stream.island, Envelope):
        stream.island.inner = stream.reader
    scanner.repair()
    stream.source.transcoding = Transcoding()
    stream.reader = "repaired"


def read_unclosed_arguments(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Where JSON does not fit, after a whole value: the closing marker of the call, or nothing that can be read."""
    found = stream.symbol_at(text, pos)
    if found is not None:
        symbol, end = found
        stream.fire(symbol.trigger, text[pos:end], symbol_why(symbol))
        return end
    if stream.state.may_become(text, pos) and not final:
        return stream.wait(text[pos:])
    stream.unexpected_input()
    return pos


# By state: JSON that stands for what has been read, for a scanner of Python to go on after it, and what that writes.
_READ_SO_FAR = {
    FIRST_KEY: ("{", "{"),
    KEY: ('{"":0,', '{"": 0, '),
    MEMBER_VALUE: ('{"":', '{"": '),
    FIRST_ITEM: ("[", "["),
    ITEM: ("[0,", "[0, "),
}


def may_transcode(stream: Stream, envelope: Envelope, character: str) -> bool:
    """Whether `character`, which JSON does not have there, may begin a value in Python's spelling."""
    spelling = "'" if envelope.scanner.repairs else "'TFN"  # a repair takes words, and what else there may be
    return character in spelling and stream.program.python_json and envelope.python is None


def transcode(stream: Stream, envelope: Envelope, state: int, character: str) -> None:
    """From here on the envelope is in Python's spelling. `state` is where its scanner of JSON stands."""
    scanner = envelope.scanner
    scanner.exact()
    if state not in _READ_SO_FAR:
        stream.unexpected_input()
        return
    scanner.state = state
    outer = [MEMBER_VALUE if bracket == "{" else FIRST_ITEM for bracket in scanner.stack[:-1]]
    known, written = zip(*(_READ_SO_FAR[place] for place in [*outer, state]), strict=True)
    envelope.python = island_class("literal" if envelope.repairs else "python")(keywords=False)
    envelope.python.read("".join(known), 0)
    envelope.skip = len("".join(written)) - len(envelope.python.out)
    envelope.inner = stream.reader
    stream.events.note("repaired_json", character)
    stream.source.transcoding = Transcoding()
    stream.reader = "transcoded"


def read_encoded(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Arguments as a JSON string: decoded, and streamed as the object that they hold."""
    envelope, source = cast(Envelope, stream.island), stream.source
    string = cast("JsonStringScanner", envelope.string)
    end = string.read(text, pos, final or source.transcoding is not None)
    source.hold_converted(string.out, text, pos, string.mark, end)
    if source.object_is_held and string.started:
        opening = envelope.source + source.confirm()
        envelope.source = ""
        stream.fire(f"string {stream.same(envelope.path)}", opening)
        stream.reader = "encoded"
    if not source.object_is_held:
        say_converted(stream)
    if string.note:
        stream.events.note("repaired_json", string.note)
    if string.waits:
        return stream.wait(text[end:])
    if string.broken:
        stream.unexpected_input()
    elif string.done:
        closing = take_pieces(source.pieces)
        envelope.string = None
        envelope.scanner.state = envelope.scanner.after_value()
        if envelope.pushed('""'):
            envelope.settle()
            stream.fire(f"end_map {stream.same(envelope.path)}", closing)
        else:
            source.pieces.append(closing)
            stream.unexpected_input()
    return end


def read_string(stream: Stream, text: str, pos: int, final: bool) -> int:
    """The same outside of any JSON: the string is all that the arguments are."""
    string, source = cast("JsonStringScanner", stream.island), stream.source
    end = string.read(text, pos, final)
    source.hold_converted(string.out, text, pos, string.mark, end)
    if source.object_is_held and string.started:
        source.confirm_converted()
        stream.fire("object_start", "")
        stream.reader = "string"
    if not source.object_is_held:
        say_converted(stream)
    if string.note:
        stream.events.note("repaired_json", string.note)
    if string.waits:
        return stream.wait(text[end:])
    if string.broken:
        stream.unexpected_input()
    elif string.done:
        stream.island = None
        stream.fire("object_end", take_pieces(source.pieces))
    return end


def say_converted(stream: Stream) -> None:
    """Send the JSON that is held."""
    if stream.source.converted is not None and stream.source.converted.json:
        stream.calls.delta(*stream.source.take_json())
