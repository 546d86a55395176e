"""Readers of the values of tagged arguments: up to a marker, or a value that ends by itself."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from toolgram.islands import MarkedValue, Value
from toolgram.islands.held_text import add_piece, take_pieces
from toolgram.islands.literal_repairs import lacks_one
from toolgram.islands.tagged_values import TaggedValue
from toolgram.limits import BLANKS, LONGEST_WORD, MOST_AFTER_STRING, MOST_BLANKS
from toolgram.program.expressions import FindMatch, may_begin
from toolgram.program.look_ahead import partial_pattern
from toolgram.program.state import CALL, PASSED, STRAY, TERMINAL, Program, StateProgram, Symbol, next_symbol
from toolgram.runtime.argument_readers import say_converted
from toolgram.runtime.calls import KEYED, OPENED, READ_ON, READ_ON_IN_CALL, TOLD, Argument
from toolgram.runtime.damaged_markers import ends_alike, has_damaged_closer, opens_key, read_damaged_opener
from toolgram.runtime.event_buffer import SYNTAX
from toolgram.runtime.position import WAIT
from toolgram.runtime.stream import Stream, symbol_why
from toolgram.spec.data import END

if TYPE_CHECKING:
    from toolgram.islands.notated_values import NotatedScanner

_BLANKS = " \t\r\n"
_BRACKETS = {"{": "})", "[": "]"}  # closers of a bracket; the arguments may be in parentheses


@lru_cache(maxsize=256)
def found_first(state: StateProgram, stops: str) -> tuple[FindMatch, FindMatch]:
    """Return two searches for a value that is plain text except a few characters. One finds such a character, or a
    possible beginning of a marker; the other finds the marker, and a symbol at such a character."""
    any_of = re.compile(f"[{re.escape(stops)}]").search
    if not state.literals:
        return any_of, a_symbol

    def find(text: str) -> re.Match[str] | None:
        found = state.find(text)
        begun = found.start(1) if found is not None and found.lastindex == 1 else len(text)
        return a_symbol(text) if any_of(text, 0, begun) else found  # the characters of a marker are not the value's

    return re.compile(may_begin({**state.firsts, **dict.fromkeys(stops, "")})).search, find


a_symbol = re.compile("()()").match  # finds one in any text


def read_value(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read the value of a tagged argument: JSON by its type, streamed as soon as the type is certain."""
    if _may_open_again(stream, text, pos, final):
        return WAIT
    if "value_end" in stream.state.row:
        return _read_alone(stream, text, pos, final)
    return _read_to_marker(stream, text, pos, final)


def _argument(stream: Stream) -> Argument:
    return cast(Argument, stream.calls.argument)


def _may_open_again(stream: Stream, text: str, pos: int, final: bool) -> bool:
    """Return whether the opening marker of a value may be coming once more at its beginning. Note it if it is whole."""
    argument = _argument(stream)
    marker, argument.again = argument.again, ""
    if marker and text.startswith(marker, pos):
        _tell_marker(stream)
    elif marker and not final and marker.startswith(text[pos:]):
        argument.again, stream.buffer = marker, text[pos:]
        return True
    return False


def _read_to_marker(stream: Stream, text: str, pos: int, final: bool) -> int:
    value = cast(MarkedValue, stream.island)
    find = _echoed if stream.state.echo else _next_marker
    while True:
        begin, end, symbol = find(stream, text, pos, final)
        if begin > pos:
            pos = _take(stream, value, text, pos, begin)
        if not value.broken:
            if symbol is None:
                return _read_half_marker(stream, value, text, begin, final)
            after = _read_marker(stream, value, symbol, text, begin, end, final)
            if after is not None:
                return after
            pos = _take(stream, value, text, pos, pos + 1)
        if value.broken:
            stream.unexpected_input()
            return pos


def _read_marker(
    stream: Stream, value: MarkedValue, symbol: Symbol, text: str, begin: int, end: int, final: bool
) -> int | None:
    """Read a marker in a value. Return the position after it if it closes the value, the position where the value
    breaks, WAIT, or None if the marker is part of the value."""
    argument, in_string = _argument(stream), value.in_string
    if not stream.is_marker(symbol, text, begin, end):
        return None
    if not symbol.trigger:
        argument.seen |= KEYED if in_string else OPENED
        argument.depth += symbol.kind == STRAY and not in_string
        return None
    closes = symbol.kind == TERMINAL and _closes(stream, symbol, text, begin, end)
    if in_string and not _ends_string(value, argument, closes):
        return None
    if closes and not in_string:
        again = _closed_again(stream, symbol, text, end)
        if again >= end:
            return _end(stream, value, symbol, text, begin, end, again)
    is_key = opens_key(stream.state, symbol)
    if in_string or (is_key and symbol.kind != PASSED and argument.read_on == READ_ON):
        stream.unexpected_input()  # of this call, or of the next one, which cannot be distinguished
        return begin
    after = read_damaged_opener(stream, symbol, text, begin, end, final) if symbol.kind == STRAY else None
    if after is not None:
        return after
    if is_key or symbol.kind == STRAY:
        _keep_marker(stream, symbol, text, end)
    if symbol.kind == PASSED or symbol.trigger in stream.state.looks:
        argument.read_on = max(argument.read_on, READ_ON_IN_CALL if is_key else READ_ON)
    return None


_ends_escaped = re.compile(r"""\\["'][}\]]+\Z""").search


def _ends_string(value: MarkedValue, argument: Argument, closes: bool) -> bool:
    """Return whether a string may have ended before a marker: it is damaged, or an escaped quote may be its end."""
    escaped = closes and not argument.seen & KEYED and _ends_escaped(argument.ending) is not None
    return escaped or getattr(value, "in_damaged", False)


def _read_half_marker(stream: Stream, value: MarkedValue, text: str, begin: int, final: bool) -> int:
    """Read the end of the text, which from `begin` on is the beginning of a marker."""
    if begin == len(text):
        return begin
    ending = stream.state.row.get(END) if stream.ended and not value.is_literal else None
    if final and text[begin:].lstrip() == "<" and ending is not None and "end_call" in ending.actions:
        return _take(stream, value, text, begin, len(text))  # no marker begins so short
    return _wait_for_marker(stream, text, begin, final)


def _wait_for_marker(stream: Stream, text: str, begin: int, final: bool) -> int:
    """Wait for the rest of a possible marker. At the end of the output, keep its beginning out of the value."""
    if final:
        stream.unfinished += stream.source.take(text, begin, len(text))
        return len(text)
    return stream.wait(text[begin:])


def _keep_marker(stream: Stream, symbol: Symbol, text: str, end: int) -> None:
    """Keep a marker that begins an argument, or closes this one, as text of the value. Report it, unless the value
    contains what it closes, or what will close it."""
    argument, look = _argument(stream), stream.state.looks.get(symbol.trigger)
    match = look.match(text, end) if look is not None and symbol.kind == TERMINAL else None
    if match is not None and not stream.program.holds_marker("".join(filter(None, match.groups()))):
        argument.depth += symbol.trigger in stream.state.opens
    elif symbol.kind == STRAY and argument.depth:
        argument.depth -= 1
    elif symbol.kind != STRAY or not argument.seen & OPENED:
        _tell_marker(stream)


def _tell_marker(stream: Stream) -> None:
    """Note, once for each value, that it contains a marker."""
    argument = _argument(stream)
    if not argument.seen & TOLD:
        argument.seen |= TOLD
        stream.events.note("stray_marker", argument.key)


def _closes(stream: Stream, symbol: Symbol, text: str, begin: int, end: int) -> bool:
    """Return whether a marker counts, and what closes its value follows: of the marker of the next argument, a key of
    the function; of a closing marker, the end of the turn, or a call of a declared function."""
    if not stream.is_marker(symbol, text, begin, end):
        return False
    look = stream.state.looks.get(symbol.trigger)
    if look is None:
        return True
    match = look.match(text, end)
    if match is None:
        return False
    named, names = [name for name in match.groups() if name is not None], stream.calls.names
    if opens_key(stream.state, symbol):
        return all(map(stream.calls.may_have, named))
    return (not names or names.issuperset(named)) and stream.are_markers(text, end, match.end())


def _closed_again(stream: Stream, symbol: Symbol, text: str, end: int) -> int:
    """Return where repeated closing markers after `end` end; -1 if the first may belong to an element in the value."""
    again, argument = stream.state.again, _argument(stream)
    if again is None or "unclosed_value" in stream.state.row[symbol.trigger].actions:
        return end
    match = again.match(text, end)
    if match is None or match.end() == end or not stream.are_markers(text, end, match.end()):
        return end
    return -1 if argument.seen & OPENED or argument.read_on or stream.program.strict else match.end()


def _next_marker(stream: Stream, text: str, pos: int, final: bool) -> tuple[int, int, Symbol | None]:
    """Return where the next marker, or its beginning, begins and ends, and the symbol of a whole one."""
    state = stream.state
    found = next_symbol(state, state.find_final if final and stream.ended else state.find, text, pos)
    if final and found[0] == found[1]:
        found = next_symbol(state, state.find, text, pos)  # its end may be the beginning of a marker
    return found


_ECHOED_OPENER = Symbol("", STRAY)


def _echoed(stream: Stream, text: str, pos: int, final: bool) -> tuple[int, int, Symbol | None]:
    """Find, like `_next_marker`, a marker that counts only before the argument's key and what closes the key."""
    (opening,) = stream.state.literals
    again = stream.state.row[stream.state.symbols[0].trigger].dest
    closed = again.row[again.symbols[0].trigger].dest
    wanted = opening + stream.calls.key + closed.literals[0]
    begin = text.find(wanted, pos)
    opener = stream.calls.key.join(stream.state.around_key)
    opened = text.find(opener, pos, begin if begin >= 0 else len(text))
    if opened >= 0:
        return opened, opened + len(opener), _ECHOED_OPENER
    if begin >= 0:
        return begin, begin + len(opening), stream.state.symbols[0]
    for begin in range(max(pos, len(text) - max(len(wanted), len(opener)) + 1), len(text)):
        if wanted.startswith(text[begin:]) or opener.startswith(text[begin:]):
            return begin, len(text), None
    return len(text), len(text), None


def _take(stream: Stream, value: Value, text: str, pos: int, end: int, final: bool = False) -> int:
    """Pass a piece of `text` to the island, and emit what becomes certain. Return where it breaks or ends."""
    read = value.read_to_repair if type(value) is TaggedValue else value.read
    repairs: list[str] = getattr(value, "repairs", [])
    while True:
        known = len(repairs)
        stream.cut_output(len(text) - end)
        at = read(text, pos, final) if end == len(text) else pos + read(text[pos:end], 0, final)
        stream.cut_output(end - len(text))
        pos = _pass_on(stream, value, text, pos, at)
        if len(repairs) == known:
            return pos
        _note_repairs(stream, repairs[known:], getattr(value, "back", 0))
        if pos == end or value.broken or type(value) is not TaggedValue:
            return pos


def _note_repairs(stream: Stream, kinds: Iterable[str], back: int = 0) -> None:
    """Note repairs of the value, `back` characters before the place up to which it was read."""
    for kind in () if stream.program.strict else kinds:
        stream.events.note(kind, stream.calls.key, stream.source.waiting - back)


def _pass_on(stream: Stream, value: Value, text: str, pos: int, end: int) -> int:
    """Emit what the island wrote in a run from `pos` to `end`."""
    if stream.calls.argument is not None:
        stream.calls.argument.keep(text[pos:end])
    source, tail, wraps = stream.source, getattr(value, "tail", 0), stream.calls.wraps
    if value.out and not (tail or wraps):  # nothing waits, as after most runs
        stream.calls.delta(value.out, take_pieces(source.pieces) + source.take(text, pos, end))
        return end
    source.hold_converted(value.out, text, pos, end - tail, end)
    if not wraps:
        say_converted(stream)
    return end


def _say(stream: Stream, written: str, source: str) -> None:
    """Emit the end of a value, with its last characters."""
    add_piece(stream.source.pieces, source)
    if stream.calls.wraps:
        stream.source.hold_json(written, "")
    elif written:
        stream.calls.delta(written, take_pieces(stream.source.pieces))


def _unwrap(stream: Stream) -> None:
    """Emit a value that may be the object of all arguments, if it is one."""
    if stream.calls.wraps:
        written, read = stream.source.take_json()
        stream.calls.unwrap(written, read + take_pieces(stream.source.pieces))


def _end(stream: Stream, value: MarkedValue, symbol: Symbol, text: str, begin: int, end: int, again: int) -> int:
    """End the value at its closing marker, which is repeated up to `again`."""
    unclosed = "unclosed_value" in stream.state.row[symbol.trigger].actions
    cut = value.unclosed and symbol.trigger in stream.program.stop
    argument = _argument(stream)
    if "unclosed_argument" in stream.state.row[symbol.trigger].actions:
        stream.unexpected_input(why="the marker of the next argument comes before the value is closed")
        return begin
    whole = not cut and not (unclosed and argument.read_on) and finish_value(stream, value)
    if not whole or (unclosed and (value.odd or has_damaged_closer(stream))):  # more than a marker is missing
        stream.unexpected_input()
        return begin
    if argument.depth and not unclosed:
        _tell_marker(stream)
    _leave(stream, symbol.trigger, text[begin:end], symbol_why(symbol))
    if again > end:
        closer = text[end:again].lstrip()
        stream.events.drop(text[end : again - len(closer)], symbol_why(symbol))
        stream.events.drop_and_tell(closer, symbol_why(symbol), "surplus_closer")
    return again


def end_value(stream: Stream) -> bool:
    """End the value with the output. Return whether the end closes it: nothing is cut off, and no marker is missing."""
    value = cast(MarkedValue, stream.island)
    if not stream.ended or _argument(stream).read_on or value.unclosed or has_damaged_closer(stream):
        return False
    if _call_openers(stream.program)[0].search(stream.unfinished):
        return False  # the next call has begun, or the value is about calls
    if not finish_value(stream, value):
        return False
    cut, stream.unfinished = stream.unfinished, ""
    stream.island = None
    stream.events.drop(take_pieces(stream.source.pieces), SYNTAX)
    if cut.strip():
        stream.events.drop_and_tell(cut, "cut off", "unfinished_marker")
    else:
        stream.events.drop(cut, "cut off")
    return True


def finish_value(stream: Stream, value: MarkedValue) -> bool:
    """Emit the rest of a value that is over. Return whether it is whole."""
    known = len(value.repairs)
    written = value.finish()
    if value.broken or (value.repairs and stream.program.strict):
        return False
    _note_repairs(stream, value.repairs[known:])
    if value.odd and not stream.calls.wraps:
        stream.events.note("unexpected_type", stream.calls.key)
    _say(stream, written, "")
    _unwrap(stream)
    return True


def _read_alone(stream: Stream, text: str, pos: int, final: bool) -> int:
    value = cast(Value, stream.island)
    closable = bool(stream.state.literals)  # by the closing marker of the call
    if stream.ids is not None and hasattr(value, "counts"):
        value.counts = stream.are_markers
    while True:
        if closable and _in_quotes(value):
            begin, end, symbol = _closer_in_string(stream, cast("NotatedScanner", value), text, pos, final)
            closes = symbol is not None and symbol.kind == TERMINAL and _closes(stream, symbol, text, begin, end)
            if closes and symbol is not None:
                return _end_string(stream, cast("NotatedScanner", value), symbol, text, pos, begin, end)
            begin = begin if final else _begun_in_string(stream, text, pos, begin)
            at = _take(stream, value, text, pos, begin if symbol is None else end)
            _see_keys(stream, value, text, pos, at)
            if symbol is None and at == begin < len(text):
                return _wait_for_marker(stream, text, begin, final)
        else:
            at = _take(stream, value, text, pos, len(text), final and stream.ended)
        if value.broken or value.done or at in (pos, len(text)):
            return _read_after_marker(stream, value, text, at, final)
        pos = at


def _read_after_marker(stream: Stream, value: Value, text: str, at: int, final: bool) -> int:
    """Decide what comes after a run of a value that ends by itself: its end, a place that does not fit, or a wait."""
    if value.broken and stream.state.literals and getattr(value, "lacks_brackets", False):
        return _close_brackets(stream, cast("NotatedScanner", value), text, at, final)
    repairs: list[str] = getattr(value, "repairs", [])
    if value.broken or (value.done and repairs and stream.program.strict):
        stream.unexpected_input()
    elif value.done:
        _end_alone(stream, value)
    elif at < len(text) and final:
        stream.source.hold(text, at, len(text))
        return len(text)
    elif at < len(text):
        return stream.wait(text[at:])
    return at


def _end_alone(stream: Stream, value: Value) -> None:
    if getattr(value, "odd", False):
        stream.events.note("unexpected_type", stream.calls.key)
    if getattr(value, "stray", False):
        _tell_marker(stream)
    _unwrap(stream)
    for name in getattr(value, "repeated", ()):
        stream.events.note("repeated_argument", name)
    _leave(stream, "value_end", "", SYNTAX)


_closing_run = re.compile(rf"[}})\] \t\r\n]{{1,{MOST_BLANKS}}}").match


def _closer_in_string(
    stream: Stream, value: NotatedScanner, text: str, pos: int, final: bool
) -> tuple[int, int, Symbol | None]:
    """Return where the call's closing marker, with brackets before it, or its beginning, begins and ends inside a
    string."""
    state = stream.state
    quote = value.find_quote(text, pos, value.quote)
    last = len(text) if quote < 0 else quote
    if quote >= 0 and not any(text.find(marker, pos, last) >= 0 for marker in state.literals):
        return len(text), len(text), None
    find = state.find_final if final and stream.ended else state.find
    found = next_symbol(state, find, text, pos, min(len(text), last + MOST_AFTER_STRING))
    return (len(text), len(text), None) if found[0] >= last else found


_KEY = rf""",{BLANKS}["']?+([\w$-]{{0,{LONGEST_WORD}}}+)["']?+{BLANKS}"""
_key_in_string = re.compile(f"{_KEY}:").finditer
_key_begins = re.compile(rf"{_KEY}\Z").search


@lru_cache(maxsize=256)
def _call_openers(program: Program) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return expressions for the markers that open calls, and for a beginning of one at the end."""
    pairs = [pair for state in program.states.values() for pair in zip(state.symbols, state.literals, strict=False)]
    openers = {text for symbol, text in pairs if symbol.opens == CALL}
    whole, begun = "|".join(map(re.escape, sorted(openers))), partial_pattern(openers)
    return re.compile(whole or "(?!)"), re.compile(rf"(?:{begun or '(?!)'})\Z")


def _begun_in_string(stream: Stream, text: str, pos: int, end: int) -> int:
    """Return where a key or a call may have begun in a part of a string that ends at `end`; `end` if none has."""
    key = _key_begins(text, pos, end) if stream.calls.may_have_more() else None
    call = _call_openers(stream.program)[1].search(text, pos, end)
    return min([found.start() for found in (key, call) if found is not None], default=end)


def _see_keys(stream: Stream, value: Value, text: str, pos: int, end: int) -> None:
    """Note whether a string holds the key of another argument, or a call: its quote may be missing before that."""
    argument = _argument(stream)
    if not _in_quotes(value):
        argument.seen &= ~KEYED
        return
    calls = _call_openers(stream.program)[0].finditer(text, pos, end)
    keyed = any(stream.calls.may_have(found[1]) for found in _key_in_string(text, pos, end))
    if keyed or any(stream.is_token(found[0], text, found.start()) for found in calls):
        argument.seen |= KEYED


def _end_string(
    stream: Stream, value: NotatedScanner, symbol: Symbol, text: str, pos: int, begin: int, end: int
) -> int:
    """End a string without its quote at the closing marker of the call, or before brackets that match open ones."""
    _see_keys(stream, value, text, pos, begin)
    marker = end - len(stream.program.literals[symbol.trigger])  # of a call: no line end is part of it
    wanted = [_BRACKETS[bracket] for bracket in "{" + value.stack]
    at = marker
    while wanted:
        before = len(text[begin:at].rstrip(_BLANKS))
        if not before or text[begin + before - 1] not in wanted[0] or marker - begin - before > MOST_AFTER_STRING:
            break
        at = begin + before - 1
        del wanted[0]
    if at > pos:
        _take(stream, value, text, pos, at, final=True)
    # a key or a call is in it, one of the earlier quotes may be the missing one, or the quote is damaged
    doubtful = _argument(stream).seen & KEYED or (value.quote == '"' and value.repairs)
    if doubtful or ends_alike(_argument(stream).ending, (value.quote,)):
        stream.unexpected_input()
        return max(at, pos)
    stream.calls.delta(value.close(), take_pieces(stream.source.pieces))
    _leave(stream, symbol.trigger, text[at:end], symbol_why(symbol))
    return end


def _in_quotes(value: Value) -> bool:
    """Return whether the next character is inside a string that only a quote ends."""
    return getattr(value, "quote", "") != ""


def _close_brackets(stream: Stream, value: NotatedScanner, text: str, pos: int, final: bool) -> int:
    """Close the open brackets after a whole value, if the closing marker of the call is there."""
    state = stream.state
    if _closer_is_at(stream, text, pos):
        stream.events.note("unclosed_arguments", stream.calls.key)
        _say(stream, value.close(), "")
        return pos
    run = _closing_run(text, pos)
    end = run.end() if run is not None else pos
    if not final and (end == len(text) or state.may_become(text, end)):
        value.resume()
        return stream.wait(text[pos:])
    closes_call = _closer_is_at(stream, text, end) or (end == len(text) and stream.ended)
    brackets = "".join(text[pos:end].split())[:-1]  # but for that of the call
    if not closes_call or not lacks_one(brackets, value.closers):
        stream.unexpected_input()
        return pos
    at = pos + len(text[pos:end].rstrip()[:-1].rstrip())
    stream.events.note("repaired_json", stream.calls.key)
    _say(stream, value.close(), stream.source.take(text, pos, at))
    _end_alone(stream, value)
    return at


def _closer_is_at(stream: Stream, text: str, pos: int) -> bool:
    """Return whether a marker of the state is at `pos`."""
    pairs = zip(stream.state.literals, stream.state.symbols, strict=False)
    there = ((symbol, pos + len(marker)) for marker, symbol in pairs if text.startswith(marker, pos))
    return any(stream.is_marker(symbol, text, pos, end) for symbol, end in there)


def _leave(stream: Stream, trigger: str, text: str, why: str) -> None:
    stream.events.drop(take_pieces(stream.source.pieces), SYNTAX)
    stream.island, argument = None, stream.calls.argument
    stream.fire(trigger, text, why)
    if stream.calls.argument is argument:
        stream.calls.argument = None
