"""Readers of the values of tagged arguments: up to a marker, or JSON that ends by itself."""

from __future__ import annotations

import re

from toolgram.compile import Symbol
from toolgram.islands.json_values import CONTROL, ITEM, SCALAR_END, STRING_END, JsonScanner, escape_controls
from toolgram.islands.notated_values import NotatedScanner
from toolgram.islands.tagged_values import TaggedValue
from toolgram.runtime.sink import SYNTAX
from toolgram.runtime.stream import WAIT, Stream, symbol_why

_BLANKS = re.compile(r"[ \t\r\n]*+").match


def read_value(stream: Stream, text: str, pos: int, final: bool) -> int:
    """The value of a tagged argument: JSON by its type, streamed as soon as the type is certain."""
    state, value = stream.state, stream.value
    assert value is not None
    if state.typed == "notated":
        return _read_notated(stream, text, pos, final)
    if "value_end" in state.row:
        return _read_alone(stream, text, pos)
    while True:
        begin, end, symbol = _echoed(stream, text, pos, final) if state.echo else _next_marker(stream, text, pos, final)
        if begin > pos:
            pos = _take(stream, value, text, pos, begin)
            if value.broken:
                stream.misfit()
                return pos
        if symbol is not None and not value.in_string and (not symbol.special or stream.was_emitted(symbol)):
            return _end(stream, value, symbol, text, begin, end)
        if symbol is None and not value.in_string:
            break
        if pos == len(text):
            return pos
        pos = _take(stream, value, text, pos, pos + 1)  # a marker in a string, or text that only looks like one
        if value.broken:
            stream.misfit()
            return pos
    if begin == len(text):
        return begin
    if final:  # the beginning of a marker: said as text, it would make the cut-off value another one
        stream.pending.append(stream.take(text, begin, len(text)))
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
    wanted = opening + stream.key + closed.literals[0]
    begin = text.find(wanted, pos)
    if begin >= 0:
        return begin, begin + len(opening), stream.state.symbols[0]
    for begin in range(max(pos, len(text) - len(wanted) + 1), len(text)):
        if wanted.startswith(text[begin:]):
            return begin, len(text), None
    return len(text), len(text), None


def _take(stream: Stream, value: TaggedValue, text: str, pos: int, end: int) -> int:
    """Hand a piece of the value to its island, and pass on what that makes certain."""
    written = value.read(text[pos:end])
    end = pos + value.end
    if end > pos:
        _say(stream, written, stream.take(text, pos, end))
    return end


def _say(stream: Stream, written: str, source: str) -> None:
    if not written:
        stream.pending.append(source)
        return
    if stream.pending:
        source = "".join(stream.pending) + source
        stream.pending.clear()
    stream.delta(written, source)


def _end(stream: Stream, value: TaggedValue, symbol: Symbol, text: str, begin: int, end: int) -> int:
    """The closing marker has come."""
    written = value.finish()
    if value.broken:
        stream.misfit()
        return begin
    if value.odd:
        stream.note("unexpected_type", stream.key)
    if written:
        _say(stream, written, "")
    elif stream.pending:
        stream.sink.drop("".join(stream.pending), SYNTAX)
        stream.pending.clear()
    stream.value = None
    stream.fire(symbol.trigger, text[begin:end], symbol_why(symbol))
    return end


def _read_notated(stream: Stream, text: str, pos: int, final: bool) -> int:
    """JSON in the format's own notation, which ends by itself as well."""
    scanner = stream.notated
    if scanner is None:
        opening, closing = stream.program.notation
        scanner = stream.notated = NotatedScanner((opening, closing))
    end = scanner.read(text, pos, final and stream.ended)
    if end > pos:
        _say(stream, scanner.out, stream.take(text, pos, end))
    if scanner.broken:
        stream.misfit()
        return end
    if scanner.done:
        stream.notated = stream.value = None
        if stream.pending:
            stream.sink.drop("".join(stream.pending), SYNTAX)
            stream.pending.clear()
        stream.fire("value_end", "")
        return end
    if end == len(text) or final:
        if final and end < len(text):
            stream.pending.append(stream.take(text, end, len(text)))
        return len(text)
    stream.buffer = text[end:]
    return WAIT


def _read_alone(stream: Stream, text: str, pos: int) -> int:
    """JSON without a marker behind it, read as the item of a list that nobody closes."""
    scanner = stream.scanner
    if scanner is None:
        blank = _BLANKS(text, pos)
        assert blank is not None
        if blank.end() > pos:
            stream.pending.append(stream.take(text, pos, blank.end()))
            pos = blank.end()
        if pos == len(text):
            return pos
        scanner = stream.scanner = JsonScanner()
        scanner.stack.append("[")
        scanner.state = ITEM
    if len(scanner.stack) > 1:
        scanner.run(text, pos, 1)
        end, written = scanner.end, scanner.out
        over = len(scanner.stack) == 1
    else:
        end = scanner.step(text, pos)
        piece = text[pos:end]
        written = escape_controls(piece) if scanner.kind == CONTROL else piece
        over = scanner.kind in (SCALAR_END, STRING_END)
    if end > pos:
        _say(stream, written, stream.take(text, pos, end))
    if scanner.broken:
        stream.misfit()
    elif over:
        stream.scanner = stream.value = None
        stream.fire("value_end", "")
    return end
