"""Readers of the values of tagged arguments: up to a marker, or a value that ends by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from toolgram.compile import Symbol
from toolgram.islands import Value
from toolgram.islands.held_text import add_piece, take_pieces
from toolgram.runtime.event_buffer import SYNTAX
from toolgram.runtime.stream import WAIT, Stream, symbol_why

if TYPE_CHECKING:
    from toolgram.islands.tagged_values import TaggedValue


def read_value(stream: Stream, text: str, pos: int, final: bool) -> int:
    """The value of a tagged argument: JSON by its type, streamed as soon as the type is certain."""
    state = stream.state
    if "value_end" in state.row:
        return _read_alone(stream, text, pos, final)
    value = cast("TaggedValue", stream.island)
    while True:
        begin, end, symbol = _echoed(stream, text, pos, final) if state.echo else _next_marker(stream, text, pos, final)
        if begin > pos:
            pos = _take(stream, value, text, pos, begin)
            if value.broken:
                stream.unexpected_input()
                return pos
        if symbol is not None and not value.in_string and (not symbol.special or stream.was_emitted(symbol)):
            return _end(stream, value, symbol, text, begin, end)
        if symbol is None and not value.in_string:
            break
        if pos == len(text):
            return pos
        pos = _take(stream, value, text, pos, pos + 1)  # a marker in a string, or what only looks like one
        if value.broken:
            stream.unexpected_input()
            return pos
    if begin == len(text):
        return begin
    if final:  # the beginning of a marker: said as text, it would make the cut-off value another one
        stream.source.hold(text, begin, len(text))
        return len(text)
    stream.buffer = text[begin:]
    return WAIT


def _next_marker(stream: Stream, text: str, pos: int, final: bool) -> tuple[int, int, Symbol | None]:
    """Where the next marker, or what may become one, begins and ends; the symbol only of a whole one."""
    state = stream.state
    match = (state.find_final if final and stream.ended else state.find)(text, pos)
    assert match is not None
    group, end = match.lastindex, match.end()
    if final and not group:
        match = state.find(text, pos)  # whose end may be the beginning of a marker
        assert match is not None
        group, end = match.lastindex, match.end()
    begin = match.start(group) if group else end
    return begin, end, state.symbols[group - 2] if group and group > 1 else None


def _echoed(stream: Stream, text: str, pos: int, final: bool) -> tuple[int, int, Symbol | None]:
    """The same for a marker that counts only where the argument's key follows it, and what closes the key."""
    (opening,) = stream.state.literals
    again = stream.state.row[stream.state.symbols[0].trigger].dest
    closed = again.row[again.symbols[0].trigger].dest
    wanted = opening + stream.calls.key + closed.literals[0]
    begin = text.find(wanted, pos)
    if begin >= 0:
        return begin, begin + len(opening), stream.state.symbols[0]
    for begin in range(max(pos, len(text) - len(wanted) + 1), len(text)):
        if wanted.startswith(text[begin:]):
            return begin, len(text), None
    return len(text), len(text), None


def _take(stream: Stream, value: Value, text: str, pos: int, end: int, final: bool = False) -> int:
    """Hand a piece of `text` to the island, and pass on what that makes certain."""
    end = pos + value.read(text[pos:end], 0, final)
    if end > pos:
        _say(stream, value.out, stream.source.take(text, pos, end))
    return end


def _say(stream: Stream, written: str, source: str) -> None:
    if written:
        stream.calls.delta(written, take_pieces(stream.source.pieces) + source)
    else:
        add_piece(stream.source.pieces, source)


def _end(stream: Stream, value: TaggedValue, symbol: Symbol, text: str, begin: int, end: int) -> int:
    """The closing marker has come."""
    written = value.finish()
    if value.broken:
        stream.unexpected_input()
        return begin
    if value.odd:
        stream.events.note("unexpected_type", stream.calls.key)
    if written:
        _say(stream, written, "")
    _leave(stream, symbol.trigger, text[begin:end], symbol_why(symbol))
    return end


def _read_alone(stream: Stream, text: str, pos: int, final: bool) -> int:
    """A value that ends by itself."""
    value = cast(Value, stream.island)
    end = _take(stream, value, text, pos, len(text), final and stream.ended)
    if value.broken:
        stream.unexpected_input()
    elif value.done:
        _leave(stream, "value_end", "", SYNTAX)
    elif end < len(text) and final:
        stream.source.hold(text, end, len(text))
        return len(text)
    elif end < len(text):
        stream.buffer = text[end:]
        return WAIT
    return end


def _leave(stream: Stream, trigger: str, text: str, why: str) -> None:
    stream.events.drop(take_pieces(stream.source.pieces), SYNTAX)
    stream.island = None
    stream.fire(trigger, text, why)
