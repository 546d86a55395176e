"""The fast path of a delta: inside text or arguments, one event without the readers.

Strategy: nearly every delta is wholly inside text or inside arguments. In a *run*, text of any kind, one search decides
whether the delta stays inside, and one event is made of it; content, reasoning and text values of tagged arguments
differ in the search and in the event. In JSON arguments, the scanner decides whether the delta stays inside; Python
arguments use the same path with a scanner that writes JSON. In JSON that is repaired, only strings have a path. Any
path costs 3 to 9 times as much as the event alone (`benchmarks/RESULTS.md`).

A path takes over what the stream holds back (`rest`, `held`). It gives it back when the readers have to read on,
because the text leaves the run, or may leave it.
"""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, TypeAlias, cast

from toolgram.events import Content, Event, Reasoning, ToolCallDelta
from toolgram.islands.held_text import add_piece, take_pieces
from toolgram.islands.json_values import KEY_STRING
from toolgram.islands.tagged_values import TaggedValue
from toolgram.limits import MOST_BLANKS
from toolgram.message import MessageBuilder
from toolgram.program.expressions import FindMatch
from toolgram.runtime.argument_readers import arguments_scanner, marker_searches, repaired_reader, took_arguments
from toolgram.runtime.ends_of_strings import begin_of_markers, markers_at_end
from toolgram.runtime.event_buffer import INSIDE
from toolgram.runtime.python_readers import took_python
from toolgram.runtime.stream import Stream
from toolgram.runtime.value_readers import a_symbol, found_first
from toolgram.runtime.withheld import NO_END

if TYPE_CHECKING:
    import re

    from toolgram.islands.python_literals import PythonScanner

Path: TypeAlias = "Run | Json | Python"
_TRIMMED = " \t\r\n"  # blanks that are not part of a trimmed value
_MANY = 8  # pieces of blanks; endless ones are left to the readers


class Run:
    """Text up to a symbol. `blanks` are the characters that wait at its end: None for all blanks, "" for none."""

    __slots__ = ("_blanks", "_builder", "_event", "_find", "_index", "_keep", "_marks", "_say", "_start", "_stream",
                 "_tailed", "held", "rest", "taken")  # fmt: skip

    def __init__(
        self,
        stream: Stream,
        builder: MessageBuilder,
        start: Callable[[str], object],
        find: FindMatch,
        blanks: str | None,
    ) -> None:
        self._stream, self._builder = stream, builder
        self._start = start  # finds whether a symbol may begin in a text,
        self._find = find  # and where it does
        self._blanks = blanks
        self._event: type[Content] | type[Reasoning] = stream.state.event
        self._index = stream.calls.index if stream.reader != "text" else None  # of the call, for arguments
        self._marks = stream.events.marks if self._index is None else None  # the code that is open in text
        self._tailed = stream.events.remember("")  # the end of the text affects what follows
        self._say: Callable[[str], None]  # keeps the text for the message
        if self._index is None:
            self._say = (builder.content if self._event is Content else builder.reasoning).append
        else:
            self._say, argument = builder.inside_string, stream.calls.argument
            self._keep = argument.keep if argument is not None else str
        self.rest, stream.buffer = stream.buffer, ""  # may become a symbol
        self.held = ""  # blanks at the end of the text
        self.taken = 0  # number of characters that the events account for

    def take(self, delta: str) -> list[Event] | None:
        """Return the events of a delta, or None if the readers have to read it."""
        text = delta
        if self.rest or self._start(delta):
            cut = self._cut(delta)
            if not cut:
                return None if cut is None else []
            text = cut
        body = text.rstrip(self._blanks)
        held = self.held
        if not body and (not text or len(held) >= MOST_BLANKS):
            return None
        if self._marks is not None and ("`" in text or self._marks.is_live):
            self._marks.read(text)
        if not body:
            self.held = held + text
            return []
        self.held, body = text[len(body) :], held + body
        self.taken += len(body)
        if self._index is None:
            if self._tailed or body[-1] in "([{`" or "`" in body:
                self._tailed = self._stream.events.remember(body)
            self._say(body)
            return [self._event(body, body)]
        return self._argument(self._index, body)

    def _argument(self, index: int, body: str) -> list[Event]:
        """Return the event of a part of a string in the arguments."""
        self._keep(body)
        out = encode_basestring(body)[1:-1]
        if out != body:
            self._builder.written_as(body)
        self._say(out)
        return [ToolCallDelta(index, out, body)]

    def _cut(self, delta: str) -> str | None:
        """Return the text up to a possible symbol, which is kept; None if the readers have to read it."""
        text = self.rest + delta
        match = cast("re.Match[str]", self._find(text))
        group = match.lastindex or 0
        end = match.start(1) if group == 1 else match.end()
        if group > 1 or (len(self.held) >= MOST_BLANKS and end and not text[:end].strip()):
            return None
        self.rest = text[end:]
        return text[:end]

    def leave(self, delta: str) -> tuple[str, int]:
        """Give back what is held. Return the text for the readers, and the position at which they begin."""
        stream = self._stream
        if self.held and self._index is None:
            stream.events.blanks.append(self.held)
        elif self._blanks == _TRIMMED:
            cast(TaggedValue, stream.island).wait(self.held)
            add_piece(stream.source.pieces, self.held)
        return self.rest + delta, 0


class Arguments:
    """Arguments that a scanner reads."""

    __slots__ = ("_builder", "_index", "_say", "_stopped", "_stream", "rest", "taken")

    def __init__(self, stream: Stream, builder: MessageBuilder, index: int) -> None:
        self._stream, self._builder, self._index = stream, builder, index
        self._say = builder.fragments.append  # keeps the arguments for the message
        self._stopped: str | None = None  # a text inside which the scanner has stopped
        self.rest, stream.buffer = stream.buffer, ""  # undecided text
        self.taken = 0  # number of characters that the events account for

    def _passed_on(self, out: str, source: str) -> list[Event]:
        """Return the event of arguments that are certain, given as JSON and as they were written."""
        if out != source:
            self._builder.written_as(source)
        self._say(out)
        self.taken += len(source)
        return [ToolCallDelta(self._index, out, source)]

    def leave(self, delta: str) -> tuple[str, int]:
        """Pass on what the scanner has read. Return the text for the readers, and the position at which they begin."""
        text = self._stopped
        return (self.rest + delta, 0) if text is None else (text, self._read_on(text))

    def _read_on(self, text: str) -> int:
        """Pass on what the scanner has read of a text, and return the position at which it has stopped."""
        raise NotImplementedError


class Json(Arguments):
    """JSON arguments in the model's own characters."""

    __slots__ = ("_begins", "_floor", "_leaves", "_scanner")

    def __init__(self, stream: Stream, builder: MessageBuilder, index: int) -> None:
        super().__init__(stream, builder, index)
        self._leaves = marker_searches(stream.program.in_no_name).leaves
        self._begins, _ = markers_at_end(stream.program.in_no_name)
        self._scanner, self._floor = arguments_scanner(stream)  # the scanner, and the depth at which the arguments end

    def take(self, delta: str) -> list[Event] | None:
        """Return the events of a delta, or None if the readers have to read on."""
        scanner, text = self._scanner, self.rest + delta
        if delta and text is delta and scanner.state <= KEY_STRING and not (scanner.watches or self._leaves(delta)):
            self._say(delta)
            self.taken += len(delta)
            return [ToolCallDelta(self._index, delta, delta)]
        if not delta:
            return None
        if self._begins(text) and (scanner.in_string or '"' in text):
            end = begin_of_markers(self._stream, text, 0)
            if end < len(text):
                return self._before(end, text)
        if scanner.run(text, 0, self._floor):
            self.rest = ""
            return self._passed_on(scanner.out, text)
        if not scanner.waits(self._floor):
            self._stopped = text
            return None
        self.rest = text[scanner.end :]
        return self._passed_on(scanner.out, text[: scanner.end]) if scanner.end else []

    def _before(self, end: int, text: str) -> list[Event] | None:
        """Return the events of a text before the markers at its end, which wait if a string is open there; None if the
        readers have to read on."""
        scanner = self._scanner
        if not end and scanner.state > KEY_STRING:
            end = len(text)  # no string is open, which the markers may follow
        self.rest = text[end:]
        if not end:
            return []
        if scanner.run(text[:end], 0, self._floor) and (not self.rest or scanner.state <= KEY_STRING):
            return self._passed_on(scanner.out, text[:end])
        self._stopped = text
        return None

    def _read_on(self, text: str) -> int:
        return took_arguments(self._stream, self._scanner, self._floor, text, 0)


class Python(Arguments):
    """Python arguments, transcoded to JSON."""

    __slots__ = ("_begins", "_pieces", "_scanner")

    def __init__(self, stream: Stream, builder: MessageBuilder, index: int) -> None:
        super().__init__(stream, builder, index)
        self._scanner = cast("PythonScanner", stream.island)
        self._begins, _ = markers_at_end(stream.program.in_no_name)
        self._pieces = stream.source.pieces  # characters that have produced nothing yet

    def take(self, delta: str) -> list[Event] | None:
        """Return the events of a delta, or None if the readers have to read on."""
        scanner, pieces, text = self._scanner, self._pieces, self.rest + delta
        if not delta or (self._begins(text) and begin_of_markers(self._stream, text, 0) < len(text)):
            return None
        if self.rest:
            delta, self.rest = text, ""
        elif not pieces and scanner.passes(delta):
            self._say(delta)
            self.taken += len(delta)
            return [ToolCallDelta(self._index, delta, delta)]
        if not scanner.run(delta):
            if not scanner.waits:
                self._stopped = delta
                return None
            delta, self.rest = delta[: scanner.end], delta[scanner.end :]
        if not scanner.out:
            add_piece(pieces, delta)
            return []
        mark = scanner.mark
        source = take_pieces(pieces) + delta[:mark] if pieces else delta[:mark]
        if mark < len(delta):
            pieces.append(delta[mark:])
        return self._passed_on(scanner.out, source)

    def _read_on(self, text: str) -> int:
        return took_python(self._stream, self._scanner, text, 0, self._scanner.end)


def fast_path(stream: Stream, builder: MessageBuilder) -> Path | None:
    """Return the path that the next delta may take, or None if the readers have to read it."""
    reader, index, events = stream.reader, stream.calls.index, stream.events
    if events.withheld is not None or events.quoted_to or events.before not in NO_END:
        return None
    if reader == "text":
        return _text(stream, builder)
    if index is None:
        return None
    if reader == "value":
        return _value(stream, builder)
    if reader == "arguments":
        return Json(stream, builder, index)
    if reader == "repaired":
        return _repaired(stream, builder)
    if reader != "python" or stream.source.object_is_held or cast("PythonScanner", stream.island).done:
        return None
    return Python(stream, builder, index)


def _text(stream: Stream, builder: MessageBuilder) -> Run | None:
    blanks = stream.events.blanks
    if stream.events.place != INSIDE or len(blanks) > 1 or stream.events.marks.quoted or stream.state.typed:
        return None
    run = Run(stream, builder, stream.state.start, stream.state.find, None)
    run.held = blanks.pop() if blanks else ""
    return run


def _repaired(stream: Stream, builder: MessageBuilder) -> Run | None:
    """Return the path of a string in repaired arguments that is a value, as far as it is the same in JSON."""
    scanner, transcoding = arguments_scanner(stream)[0], stream.source.transcoding
    repairer = scanner.repairer
    if repairer is None or transcoding is None or transcoding.pieces or stream.buffer or repairer.damaged:
        return None
    in_value = scanner.in_plain_string and not scanner.in_key and repairer.idle and not scanner.watches
    if not in_value or repaired_reader(stream) != "arguments":
        return None
    return Run(stream, builder, marker_searches(stream.program.in_no_name, repairer.quote).leaves, a_symbol, "")


def _value(stream: Stream, builder: MessageBuilder) -> Run | None:
    """Return the path of a tagged value that is text up to a marker, or up to one of a few characters."""
    state, argument, value, pieces = stream.state, stream.calls.argument, stream.island, stream.source.pieces
    if state.echo or (argument is not None and (argument.again or argument.wraps)):
        return None
    stops = getattr(value, "stops", "")
    if stops and stream.calls.may_have_more():
        stops += ","  # before a key
    if stops and not (pieces or (stream.buffer and not state.literals)):
        return Run(stream, builder, *found_first(state, stops), "")
    if type(value) is not TaggedValue or "value_end" in state.row:
        return None
    if value.is_text:
        return None if pieces else Run(stream, builder, state.start, state.find, "")
    if value.waits is None or len(pieces) >= _MANY or "".join(pieces) != "".join(value.waits):
        return None
    run = Run(stream, builder, state.start, state.find, _TRIMMED)
    run.held = take_pieces(pieces)
    return run
