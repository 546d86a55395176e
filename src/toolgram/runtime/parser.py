"""The public face of a stream: deltas in, events out."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any, cast

from toolgram.anomalies import Anomaly
from toolgram.call_ids import CallIds, random_call_ids
from toolgram.errors import ToolgramError
from toolgram.events import (
    BufferedEvent,
    Content,
    Dropped,
    Event,
    Reasoning,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    event_to_dict,
)
from toolgram.islands.held_text import add_piece, take_pieces
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import KEY_STRING, JsonScanner, leaves_string
from toolgram.iterating import Events
from toolgram.message import Message, MessageBuilder
from toolgram.program.expressions import FindMatch
from toolgram.program.state import Program
from toolgram.runtime.anomaly_log import AnomalyLog
from toolgram.runtime.argument_readers import arguments_scanner, took_arguments
from toolgram.runtime.event_buffer import REASONING
from toolgram.runtime.python_readers import took_python
from toolgram.runtime.readers import READERS
from toolgram.runtime.stream import Found, Stream, Trace, TraceStep, reader_of
from toolgram.runtime.value_readers import end_value, plain_stops, trimmed_text
from toolgram.spec.data import END, TEXT, UNCLOSED
from toolgram.tools.reading import read_tools

if TYPE_CHECKING:
    from toolgram.islands import MarkedValue
    from toolgram.islands.python_literals import PythonScanner
    from toolgram.islands.tagged_values import TaggedValue

# The way that the next delta may take: inside text, inside arguments of some kind, or through the readers.
_LONG, _TEXT, _JSON, _PYTHON, _VALUE, _TRIMMED = range(6)
_BLANKS = " \t\r\n"  # that are no part of a trimmed value
_MOST_BLANKS = 64  # that wait at the end of a text; more of them are left to the readers

PROMPT = "prompt"  # what a trace says where a prompt ends whose text is none of the turn's

_NOTHING: Mapping[int, str] = {}


class Parser:
    """One stream of one format. Make it with `Format.parser`; feed it deltas; close it.

    `feed` and `close` never raise on any text. The cost per character is constant, whatever the length and the deltas;
    the memory is what is held back, plus the text of `message` (nothing, with `keep_message=False`).
    """

    __slots__ = (
        "_builder", "_call", "_closed", "_event", "_find", "_floor", "_held", "_log", "_offset", "_pieces",
        "_python", "_replayed", "_rest", "_said", "_scanner", "_special", "_start", "_stream", "_tailed", "_way",
    )  # fmt: skip

    def __init__(
        self,
        program: Program,
        tools: Iterable[Any] | None = None,
        prefix: str | None = None,
        call_ids: CallIds | None = None,
        special_tokens: Mapping[str, int] | None = None,
        trace: Trace | None = None,
        keep_message: bool = True,
    ) -> None:
        declared = read_tools(tools)
        self._stream = Stream(program, call_ids or random_call_ids(), trace, declared)
        self._builder = MessageBuilder(program.closing, keep_message)
        self._offset = 0  # how many characters the events account for
        self._log: AnomalyLog | None = None  # made with the first events that the readers give
        self._special = _triggers_by_id(program, special_tokens) if special_tokens else _NOTHING
        self._way = _LONG
        self._held = ""  # blanks at the end of a text, which wait for what follows them
        # What the short ways need, laid out by `_choose_way`.
        self._said: Callable[[str], None]  # keeps the text for the message
        self._start: FindMatch  # text: whether a symbol may begin in it,
        self._find: FindMatch  # and does,
        self._event: type[Content] | type[Reasoning]  # what it is,
        self._tailed: bool  # whether the end of the text may open what a call stands in,
        self._rest: str  # and what may become a symbol
        self._scanner: JsonScanner  # arguments: where they are,
        self._floor: int  # the depth at which they end,
        self._call: int  # and the index of their call,
        self._python: PythonScanner
        self._pieces: list[str]  # and, where they are transcoded, what has produced nothing yet
        self._closed = False
        self._replayed: Sequence[BufferedEvent] = ()  # of the call that a prefix has begun, to be emitted first
        if prefix is None and program.generation_prompt:
            self._skip(program.generation_prompt)
            self._stream.assumed = self._stream.state.meaning == "reasoning"
        elif prefix:
            self._skip(prefix)
        elif program.line_calls:
            self._skip("\n")  # an output begins a line
        self._stream.events.lead = program.turn_start

    @property
    def state(self) -> str:
        """The name of the machine state that the stream is in."""
        return self._stream.state.name

    @property
    def message(self) -> Message:
        """The message so far; final after `close`. Costs as much as the message is long."""
        return self._builder.message(self._log.all() if self._log is not None else ())

    def fold_with(self, builder: MessageBuilder) -> None:
        """Have this builder make the message. Called before the first delta."""
        self._builder = builder

    def take_anomalies(self) -> list[Anomaly]:
        """The anomalies since this was last called, in order. The message has them all the same.

        Without a message, the last 256 that were not taken are kept, and no more.
        """
        return self._log.take() if self._log is not None else []

    def feed(self, delta: str, token_ids: Sequence[int] | None = None) -> list[Event]:
        """The events that `delta`, the next characters of the output, makes certain.

        With `token_ids`, the ids behind `delta`, and `special_tokens` given to `Format.parser`, the text of a special
        token counts as a marker only where its id was emitted; without ids, the text decides. Raises ToolgramError
        after `close`, and nothing on any text.
        """
        # Nearly every delta lies wholly inside text or inside arguments. There it takes a short way, which asks only
        # whether that is so and makes the one event that the readers would make: two to three times the cost of making
        # the event alone. Whatever else may be in the delta, the readers see it (`_feed`).
        if token_ids is not None and self._special:
            self._stream.note_ids(token_ids, self._special)
        way = self._way
        if way == _TEXT:
            text = self._cut(delta) if self._rest or self._start(delta) else delta
            if text is None:
                return []
            body = text.rstrip()
            if body:
                held = self._held
                if body is not text:
                    self._held = text[len(body) :]
                elif held:
                    self._held = ""
                if held:
                    body = held + body
                if self._tailed or body[-1] in "([{`" or "`" in body:
                    self._tailed = self._stream.events.remember(body)
                self._said(body)
                self._offset += len(body)
                return [self._event(body, body)]
            if text and len(self._held) < _MOST_BLANKS:
                self._held += text
                return []
        elif way == _JSON and delta:
            scanner = self._scanner
            if self._rest:
                delta, self._rest = self._rest + delta, ""
            if scanner.state <= KEY_STRING and not leaves_string(delta):
                self._said(delta)
                self._offset += len(delta)
                return [ToolCallDelta(self._call, delta, delta)]
            if scanner.run(delta, 0, self._floor):
                out = scanner.out
                if out != delta:
                    self._builder.written_as(delta)
                self._said(out)
                self._offset += len(delta)
                return [ToolCallDelta(self._call, out, delta)]
            if scanner.waits(self._floor):
                return self._decided(delta)
            stream = self._stream
            stream.events.out = []
            return self._take(delta, took_arguments(stream, scanner, self._floor, delta, 0))
        elif way == _PYTHON and delta:
            python, pieces = self._python, self._pieces
            if not pieces and python.passes(delta):
                self._said(delta)
                self._offset += len(delta)
                return [ToolCallDelta(self._call, delta, delta)]
            if python.run(delta):
                out, mark = python.out, python.mark
                if not out:
                    add_piece(pieces, delta)
                    return []
                source = delta[:mark]
                if pieces:
                    source = take_pieces(pieces) + source
                if mark < len(delta):
                    pieces.append(delta[mark:])
                if out != source:
                    self._builder.written_as(source)
                self._said(out)
                self._offset += len(source)
                return [ToolCallDelta(self._call, out, source)]
            stream = self._stream
            stream.events.out = []
            return self._take(delta, took_python(stream, python, delta, 0, python.end))
        elif way == _VALUE:
            text = self._cut(delta) if self._rest or self._start(delta) else delta
            if text is None:
                return []
            if text:
                out = encode_basestring(text)[1:-1]
                if out != text:
                    self._builder.written_as(text)
                self._said(out)
                self._offset += len(text)
                return [ToolCallDelta(self._call, out, text)]
        elif way == _TRIMMED:
            text = self._cut(delta) if self._rest or self._start(delta) else delta
            if text is None:
                return []
            body = text.rstrip(_BLANKS)
            if body:
                body, self._held = self._held + body, text[len(body) :]
                out = encode_basestring(body)[1:-1]
                if out != body:
                    self._builder.written_as(body)
                self._said(out)
                self._offset += len(body)
                return [ToolCallDelta(self._call, out, body)]
            if text and len(self._held) < _MOST_BLANKS:
                self._held += text
                return []
        return self._feed(delta)

    def _decided(self, delta: str) -> list[Event]:
        """The arguments that are decided; the rest of the delta waits for what follows it."""
        scanner = self._scanner
        end, out = scanner.end, scanner.out
        self._rest = delta[end:]
        if not end:
            return []
        if out != delta[:end]:
            self._builder.written_as(delta[:end])
        self._said(out)
        self._offset += end
        return [ToolCallDelta(self._call, out, delta[:end])]

    def _cut(self, delta: str) -> str | None:
        """Text up to what may become a symbol, which stays behind; None where that is all of it, and nothing where the
        readers must look."""
        text = self._rest + delta
        match = self._find(text)
        assert match is not None
        end = match.start(1) if match.lastindex == 1 else match.end()
        if (match.lastindex or 0) > 1:
            if end:  # a symbol of the state, which the readers would look for again
                self._stream.found = Found(self._stream.state, text, match)
            return ""
        if end == 0:
            self._rest = text
            return None
        if len(self._held) >= _MOST_BLANKS and not text[:end].strip():
            return ""
        self._rest = text[end:]
        return text[:end]

    def _feed(self, delta: str) -> list[Event]:
        stream = self._stream
        if self._closed:
            raise ToolgramError("the parser is closed; make a new one with Format.parser for the next output")
        stream.events.out = [*self._replayed]
        self._replayed = ()
        self._take_long_way()
        text = stream.buffer + delta if stream.buffer else delta
        stream.buffer = ""
        return self._take(text, 0)

    def _take(self, text: str, pos: int) -> list[Event]:
        """Hand the text from `pos` on to the readers, collect what they say, and see which way comes next."""
        stream = self._stream
        _read(stream, text, pos, False)
        out = stream.events.out
        events: list[Event] = []
        if out:
            self._builder.add(out, self._offset)
            events = self._emitted(out)
        self._choose_way()
        return events

    def _emitted(self, out: Sequence[BufferedEvent]) -> list[Event]:
        """The events of `out` but for notes, which become anomalies."""
        log = self._log
        if log is None:
            log = self._log = AnomalyLog(self._stream.calls.names, self._builder.keeps)
        log.offset = self._offset
        events = log.read(out, self._builder.repeated or ())
        self._builder.repeated = None
        self._offset = log.offset
        return events

    def _choose_way(self) -> None:
        """See which way the next delta may take, and lay out what it will need there."""
        stream, builder = self._stream, self._builder
        events, source, index = stream.events, stream.source, stream.calls.index
        reader, island = stream.reader, stream.island
        self._way, self._held = _LONG, ""
        if reader == "text" and not events.fresh and len(events.blanks) < 2 and not source.prefix_characters:
            self._way = _TEXT
            self._rest, stream.buffer = stream.buffer, ""
            self._start, self._find = stream.state.start, stream.state.find
            self._event = stream.state.event
            self._said = (builder.content if self._event is Content else builder.reasoning).append
            if events.blanks:
                self._held = events.blanks.pop()
            self._tailed = events.tail != ""
        elif index is None or stream.calls.again:
            return
        elif reader == "value" and _is_text(stream):
            self._way = _VALUE
            self._rest, stream.buffer = stream.buffer, ""
            self._start, self._find = stream.state.start, stream.state.find
        elif reader == "value" and (found := plain_stops(stream)) is not None:
            self._way = _VALUE
            self._rest, stream.buffer = stream.buffer, ""
            self._start, self._find = found
        elif reader == "value" and trimmed_text(stream) is not None:
            self._way = _TRIMMED
            self._rest, stream.buffer = stream.buffer, ""
            self._start, self._find = stream.state.start, stream.state.find
            self._held = take_pieces(source.pieces)
        elif reader == "arguments" and source.transcoding is None and not source.prefix_characters:
            self._way = _JSON
            self._rest, stream.buffer = stream.buffer, ""
            self._scanner, self._floor = arguments_scanner(stream)
        elif stream.buffer:
            return
        elif reader == "python" and not source.unconfirmed and island is not None:
            self._way = _PYTHON
            self._python, self._pieces = cast("PythonScanner", island), source.pieces
        if self._way > _TEXT and index is not None:
            self._call = index
            in_string = self._way in (_VALUE, _TRIMMED)
            self._said = builder.inside_string if in_string else builder.fragments.append

    def _take_long_way(self) -> None:
        """From here on the readers decide, and what the short way has held is where they look for it."""
        if self._way in (_TEXT, _JSON, _VALUE, _TRIMMED):
            self._stream.buffer = self._rest
            if self._way == _TEXT and self._held:
                self._stream.events.blanks.append(self._held)
            elif self._way == _TRIMMED:
                cast("TaggedValue", self._stream.island).wait(self._held)
                add_piece(self._stream.source.pieces, self._held)
        self._way = _LONG

    def close(self, finish_reason: str | None = None) -> list[Event]:
        """The events that the end of the output makes certain.

        `finish_reason` is the server's ("stop", "length", "tool_calls", ...). A second close gives no events.
        """
        if self._closed:
            return []
        self._closed = True
        self._take_long_way()
        stream = self._stream
        out: list[BufferedEvent] = [*self._replayed]
        stream.events.out = out
        stream.closing = finish_reason or ""
        text, stream.buffer = stream.buffer, ""
        _read(stream, text, 0, True)
        _end(stream)
        if stream.assumed and stream.events.has & REASONING:
            stream.events.note("assumed_reasoning", "")
        self._builder.add(out, self._offset)
        self._builder.finish(finish_reason)
        return self._emitted(out)

    def events(
        self, source: Iterable[str | bytes] | AsyncIterable[str | bytes], finish_reason: str | None = None
    ) -> Events:
        """The events of a whole output, whose deltas come from `source`: iterate them with `for` or `async for`.

        Deltas are str, or bytes of UTF-8 cut anywhere; bytes that are none become replacement characters. At the end of
        `source` the parser is closed, with `finish_reason`, or with the one that `source` has as an attribute then.
        """
        return Events(self, source, finish_reason)

    def snapshot(self) -> dict[str, Any]:
        """The stream as JSON-able data, as small as what is held back; `Format.restore` goes on from there.

        The message so far, `tools`, `call_ids` and `special_tokens` are not part of it.
        """
        self._take_long_way()
        replayed = [event_to_dict(event) for event in self._replayed]
        from toolgram.runtime.snapshots import dump_stream

        return {**dump_stream(self._stream), "closed": self._closed, "replayed": replayed, "offset": self._offset}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `snapshot` was taken. Used by `Format.restore`, which says what is raised."""
        from toolgram.runtime.snapshots import load_stream

        self._closed, self._replayed, self._offset = load_stream(self._stream, state)
        start = self._stream.calls.start
        if start is not None and not self._replayed:
            self._builder.add([start], self._offset)

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled parser goes on exactly, message and all. `trace` stays behind; `call_ids` must pickle."""
        stream = self._stream
        calls = stream.calls
        return _resumed, (
            stream.program,
            calls.tools,
            calls.ids,
            self._special,
            self.snapshot(),
            self._builder,
            self._log,
        )

    def trace_to(self, trace: Trace | None) -> None:
        """Call `trace` at every transition from here on; a restored parser has none."""
        self._stream.trace = trace

    def _skip(self, prefix: str) -> None:
        """Move through what the prompt has already written; its events are not emitted."""
        stream = self._stream
        calls = stream.calls
        events: list[BufferedEvent] = []
        out, stream.events.out = stream.events.out, events
        _read(stream, prefix, 0, False)
        initial = stream.program.initial
        if stream.reader == "text" and TEXT in initial.row and stream.state is initial.row[TEXT].dest:
            if stream.trace and stream.state is not initial:
                stream.trace(TraceStep(PROMPT, stream.state.name, initial.name))
            stream.state = initial  # what the prompt says is no text of this turn
            stream.reader = reader_of(initial)
        stream.source.prefix_characters = len(stream.buffer)
        _forget_sources(stream)
        if calls.index is not None:
            self._replayed = _begun(events, calls.index)
            calls.index = 0
        calls.count = len(self._replayed[:1])
        held = stream.events.held
        for event in held.events if held is not None else ():
            if isinstance(event, ToolCallStart | ToolCallDelta | ToolCallEnd):
                event.index = calls.count
        stream.events.out = out


def _resumed(
    program: Program,
    tools: Sequence[Mapping[str, Any]] | None,
    call_ids: CallIds,
    special: dict[int, str],
    state: Mapping[str, Any],
    builder: MessageBuilder,
    log: AnomalyLog | None,
) -> Parser:
    """A parser that was pickled."""
    parser = Parser(program, tools, "", call_ids)
    parser.restore(state)
    parser._special, parser._builder, parser._log = special, builder, log
    return parser


def _is_text(stream: Stream) -> bool:
    """Whether a tagged value is text up to a marker, and nothing of it waits."""
    if "value_end" in stream.state.row or stream.state.echo:
        return False
    waits = stream.source.pieces or stream.source.prefix_characters
    return cast("MarkedValue", stream.island).is_text and not waits


def _read(stream: Stream, text: str, pos: int, final: bool) -> None:
    end = len(text)
    while 0 <= pos < end:
        pos = READERS[stream.reader](stream, text, pos, final)


def _end(stream: Stream) -> None:
    """The end of the output: what is held is decided, what is open is closed."""
    events, source, calls = stream.events, stream.source, stream.calls
    if source.transcoding is not None:
        add_piece(source.pieces, take_pieces(source.transcoding))
        source.transcoding = None
    if events.held is not None:
        inside = source.unconfirmed or isinstance(stream.island, Envelope)
        if END in stream.state.row and not inside and (stream.closing != "length" or events.held.call is not None):
            events.drop(stream.leftover(), "cut off")
            if stream.closing == "length":
                events.held.cut_off()
            stream.fire(END, "")
            if calls.index is None:
                events.drop_blanks()
            return
        stream.reject_candidate()
    meaning = stream.state.meaning
    ending = stream.state.row.get(END)
    if meaning == "value" and ending is not None and "end_call" in ending.actions and not end_value(stream):
        events.drop(stream.leftover(), "cut off")
        calls.end("truncated")
    events.drop(stream.leftover(), "cut off")
    if calls.index is not None and ending is not None and "end_call" in ending.actions:
        stream.fire(END, "")
        return
    unclosed = stream.state.row.get(UNCLOSED)
    if unclosed is not None and unclosed.dest.held and stream.closing == "length":
        unclosed = None  # what is cut off may have been prose
    if unclosed is not None:
        stream.note_unclosed()
    calls.end("complete" if unclosed is not None else "truncated")
    events.end_text(meaning if meaning in ("content", "reasoning") else "content", stream.program.turn_end)
    if ending is not None:
        stream.fire(END, "")


def _forget_sources(stream: Stream) -> None:
    events, held = stream.events, stream.events.held
    for event in held.events if held is not None else ():
        event.source = ""
        if isinstance(event, Dropped):
            event.text = ""
    events.blanks.clear()
    events.has = events.gap = 0
    events.fresh = True
    stream.source.forget()
    if isinstance(stream.island, Envelope):
        stream.island.source = ""


def _begun(events: list[BufferedEvent], index: int) -> list[BufferedEvent]:
    """The open call of a prefix, emitted again: its start, and its arguments so far, for no characters."""
    begun: list[BufferedEvent] = []
    for event in events:
        if isinstance(event, ToolCallStart) and event.index == index:
            begun.append(ToolCallStart(0, event.id, event.name, ""))
        elif isinstance(event, ToolCallDelta) and event.index == index:
            begun.append(ToolCallDelta(0, event.arguments, ""))
    return begun


def _triggers_by_id(program: Program, special_tokens: Mapping[str, int]) -> dict[int, str]:
    """The triggers of these ids. A server gives the same tokens for each answer: what was last asked is kept."""
    kept = program.by_id
    if kept is None or kept[0] != special_tokens:
        texts = program.special.items()
        found = {special_tokens[text]: trigger for trigger, text in texts if text in special_tokens}
        kept = program.by_id = (dict(special_tokens), found)
    return kept[1]  # type: ignore[no-any-return]
