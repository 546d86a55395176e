"""The public interface of a stream: deltas in, events out."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from toolgram.anomalies import Anomaly
from toolgram.call_ids import CallIds, random_call_ids
from toolgram.errors import ToolgramError
from toolgram.events import Event, ToolCallStart, event_from_dict, event_to_dict
from toolgram.iterating import Events
from toolgram.message import Message, MessageBuilder
from toolgram.program.state import Program
from toolgram.runtime.anomaly_log import AnomalyLog
from toolgram.runtime.edges import finish, own_part, read_prompt, without_prefix
from toolgram.runtime.fast_path import Path, fast_path
from toolgram.runtime.position import ASSUMED, THOUGHTLESS
from toolgram.runtime.readers import read
from toolgram.runtime.special_tokens import EmittedIds, Piece, with_ids
from toolgram.runtime.stream import Stream, Trace
from toolgram.tools.reading import read_tools


class Parser:
    """One stream of one format. Make it with `Format.parser`, feed it deltas, and close it.

    `feed` and `close` never raise on any text. The cost per character is constant, whatever the length and the deltas.
    The memory is what is held back, plus the text of `message` (nothing, with `keep_message=False`).
    """

    __slots__ = ("_builder", "_log", "_offset", "_out", "_path", "_stream")

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
        program, ids = with_ids(program, special_tokens) if special_tokens else (program, None)
        self._stream = Stream(program, call_ids or random_call_ids(), trace, read_tools(tools))
        self._stream.ids = ids
        self._builder = MessageBuilder(program.closing, keep_message)
        self._offset = 0  # how many characters the events account for; negative: of a prefix, some still have to come
        self._log: AnomalyLog | None = None  # made with the first events of the readers
        self._path: Path | None = None  # takes the next delta without the readers, if possible
        self._out = self._stream.events.out  # the events since the last delta: first those of a call in the prefix
        written = program.spec.generation_prompt if prefix is None else own_part(program, prefix)
        if written or program.line_calls:
            self._offset = -read_prompt(self._stream, written or "\n")  # an output begins on a new line
        withheld = self._stream.events.withheld
        outer = self._stream if withheld is None else withheld.saved
        thinks = outer.state.meaning == "reasoning"
        if prefix is None:
            self._stream.prompt = ASSUMED if thinks and written else ""
        elif program.mentions and not thinks:
            self._stream.prompt = THOUGHTLESS
        outer.prompt = self._stream.prompt
        lead, waiting = program.spec.turn_start, self._stream.buffer
        self._stream.events.lead = waiting + lead if lead and waiting.isspace() else lead

    @property
    def state(self) -> str:
        """The name of the current machine state."""
        return self._stream.state.name

    @property
    def message(self) -> Message:
        """The message so far; final after `close`. The cost grows with the length of the message."""
        return self._builder.message(self._log.all() if self._log is not None else ())

    def fold_with(self, builder: MessageBuilder) -> None:
        """Make this builder build the message. Must be called before the first delta."""
        builder.closing, self._builder = self._builder.closing, builder

    def take_anomalies(self) -> list[Anomaly]:
        """Return the anomalies since the last call of this method, in order. The message has them as well. Without a
        message, only the last 256 anomalies that were not taken are kept."""
        return self._log.take() if self._log is not None else []

    def feed(self, delta: str | Sequence[Piece] | None, token_ids: Sequence[int] | None = None) -> list[Event]:
        """Return the events that become certain with `delta`, the next characters of the output.

        `delta` is text, or pieces `(text, id)`, one for each token. None is an empty delta, as servers send it. If
        `special_tokens` were given to `Format.parser`, a special token is a marker only where a piece with its id
        begins; in a piece whose id is None, the text decides.

        For text, `token_ids` are the ids of all its tokens; an empty list means that the text belongs to the ids given
        before it. They count if the text contains each special token as often as the ids do; otherwise its markers are
        text, with the anomaly `ambiguous_ids`. Without ids, the text decides.

        Raises ToolgramError after `close`, TypeError for bytes, and nothing on any text.
        """
        ids = self._stream.ids
        if type(delta) is not str or (ids is not None and not ids.goes_on(delta, token_ids)):
            delta = self._noted(delta, token_ids)
        path = self._path
        if path is not None:
            events = path.take(delta)
            if events is not None:
                return events
        return self._feed(delta)

    def _noted(self, delta: str | Sequence[Piece] | None, token_ids: Sequence[int] | None) -> str:
        """Return the text of a delta. Note which parts of it are special tokens."""
        ids, path = self._stream.ids, self._path
        if ids is not None and len(ids.places) > 1:
            withheld = self._stream.events.withheld
            unread = len(self._stream.buffer if path is None else path.rest)
            ids.forget(unread if withheld is None else withheld.length)
        if type(delta) is str:
            text = delta
        elif isinstance(delta, list | tuple):
            pieces = _checked(delta)
            if ids is not None:
                ids.note_pieces(pieces)
            return "".join([text for text, _ in pieces])
        else:
            text = _text_of(delta)
        ambiguous = ids.note(text, token_ids) if ids is not None else None
        if ambiguous is not None:
            self._anomaly_log().add_at("ambiguous_ids", *ambiguous)
        return text

    def _feed(self, delta: str) -> list[Event]:
        """Let the readers read a delta, and choose the path that the next one may take."""
        stream = self._stream
        if stream.closing is not None:
            raise ToolgramError("the parser is closed; make a new one with Format.parser for the next output")
        read(stream, *self._leave_path(delta), False)
        events = self._emitted() if self._out else []
        self._path = fast_path(stream, self._builder) if self._offset >= 0 else None
        return events

    def _leave_path(self, delta: str) -> tuple[str, int]:
        """Return the text for the readers, with what was held back before `delta`, and the position to begin at."""
        path, stream = self._path, self._stream
        if path is not None:
            self._path = None
            self._offset += path.taken
            return path.leave(delta)
        text, stream.buffer = stream.buffer + delta, ""
        return text, 0

    def _emitted(self) -> list[Event]:
        """Add new events to the message. Return them without notes, which become anomalies."""
        builder, log, out, unread = self._builder, self._anomaly_log(), self._out, 0
        if self._offset < 0:
            unread, self._offset = without_prefix(out, -self._offset), 0
        builder.add(out, self._offset)
        log.offset = self._offset
        events = log.read(out, builder.repeated or ())
        builder.repeated = None
        self._offset = log.offset - unread
        out.clear()
        return events

    def _calls_in(self, text: str) -> list[dict[str, str]]:
        """Return the calls that a quoted text would contain, each with its name and its arguments."""
        program = replace(self._stream.program, mentions=False)
        parser = Parser(program, self._stream.calls.tools, "")
        parser.feed(text)
        parser.close("stop")
        return [{"name": call.name, "arguments": call.arguments} for call in parser.message.tool_calls]

    def _anomaly_log(self) -> AnomalyLog:
        if self._log is None:
            self._log = AnomalyLog(self._stream.calls.names, self._builder.keeps, self._calls_in)
        return self._log

    def close(self, finish_reason: str | None = None) -> list[Event]:
        """Return the events that the end of the output makes certain. `finish_reason` is the server's ("stop",
        "length", "tool_calls", ...). A second close returns no events."""
        stream = self._stream
        if stream.closing is not None:
            return []
        text, pos = self._leave_path("")
        stream.closing = finish_reason or ""
        finish(stream, text, pos)
        events = self._emitted()
        self._builder.finish(finish_reason)
        return events

    def events(
        self, source: Iterable[str | bytes] | AsyncIterable[str | bytes], finish_reason: str | None = None
    ) -> Events:
        """Return the events of a whole output, whose deltas come from `source`, for `for` or `async for`.

        Deltas are str, or bytes of UTF-8 cut anywhere; invalid bytes become replacement characters. At the end the
        parser is closed with `finish_reason`, or else with `source.finish_reason`, if `source` has that attribute then.
        """
        return Events(self, source, finish_reason)

    def snapshot(self) -> dict[str, Any]:
        """Return the stream as JSON-able data, as small as what is held back; `Format.restore` continues from it. It
        has neither the message so far nor `tools`, `call_ids` and `special_tokens`."""
        from toolgram.runtime.snapshots import dump_stream, sealed

        stream = self._stream
        stream.buffer, _ = self._leave_path("")
        withheld, unread = stream.events.withheld, len(stream.buffer)
        if withheld is not None:  # it is read again
            stream, unread = withheld.saved, withheld.length
        data = {
            **dump_stream(stream, unread),
            "withheld": "" if withheld is None else "".join(withheld.raw),
            "closed": stream.closing is not None,
            "begun": [event_to_dict(event) for event in self._out],
            "offset": self._offset,
        }
        return sealed(stream.program.spec, data)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where `snapshot` was taken. Used by `Format.restore`, which documents what is raised."""
        from toolgram.runtime.snapshots import load_stream

        load_stream(self._stream, state)
        self._out[:], self._offset = map(event_from_dict, state["begun"]), state["offset"]
        if state["closed"]:
            self._stream.closing = ""
        start = self._stream.calls.start
        if start is not None and not self._out:
            self._builder.add([start], max(0, self._offset))
        if state["withheld"]:
            read(self._stream, state["withheld"], 0, False)
            self._out.clear()

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickle: a copy continues exactly, with its message. `trace` is left out; `call_ids` must be
        picklable."""
        stream = self._stream
        calls = stream.calls
        return _resumed, (
            stream.program,
            calls.tools,
            calls.ids,
            stream.ids and stream.ids.by_id,
            self.snapshot(),
            self._builder,
            self._log,
            [start.id for start in _withheld_starts(stream)],
        )

    def trace_to(self, trace: Trace | None) -> None:
        """Call `trace` at every transition from here on. A restored parser has no trace."""
        self._stream.trace = trace


class RestoredParser(Parser):
    """A parser that continues from a snapshot. It raises ToolgramError for whatever a forged snapshot breaks."""

    __slots__ = ()

    def feed(self, delta: str | Sequence[Piece] | None, token_ids: Sequence[int] | None = None) -> list[Event]:
        """Return the events that become certain with `delta`, as of any parser."""
        known = _checked(delta) if isinstance(delta, list | tuple) else _text_of(delta)
        with _forgery_refused():
            return super().feed(known, token_ids)

    def close(self, finish_reason: str | None = None) -> list[Event]:
        """Return the events that the end of the output makes certain, as of any parser."""
        with _forgery_refused():
            return super().close(finish_reason)

    def snapshot(self) -> dict[str, Any]:
        """Return the stream as JSON-able data, as of any parser."""
        with _forgery_refused():
            return super().snapshot()


@contextmanager
def _forgery_refused() -> Iterator[None]:
    """Raise ToolgramError for anything that no true snapshot raises."""
    try:
        yield
    except ToolgramError:
        raise
    except Exception as error:
        raise ToolgramError(f"the snapshot of this parser is false, or `call_ids` raised: {error!r}") from error


def _resumed(
    program: Program,
    tools: Sequence[Mapping[str, Any]] | None,
    call_ids: CallIds,
    by_id: Mapping[int, str] | None,
    state: Mapping[str, Any],
    builder: MessageBuilder,
    log: AnomalyLog | None,
    ids: Sequence[str],
) -> Parser:
    """Return a pickled parser. Withheld calls are read again, and keep their `ids`."""
    parser = Parser(program, tools, "", lambda: "kept")
    stream = parser._stream
    stream.ids = None if by_id is None else EmittedIds(by_id)
    parser.restore(state)
    for start, made in zip(_withheld_starts(stream), ids, strict=True):
        start.id = made
    stream.calls.ids = call_ids
    if stream.events.withheld is not None:
        stream.events.withheld.saved.calls.ids = call_ids
    parser._builder, parser._log = builder, log
    return parser


def _withheld_starts(stream: Stream) -> list[ToolCallStart]:
    """Return the starts of the calls that are withheld."""
    withheld, held = stream.events.withheld, stream.events.held
    events = [] if withheld is None else [*withheld.events, *(held.events if held is not None else ())]
    return [event for event in events if isinstance(event, ToolCallStart)]


def _checked(pieces: Sequence[Any]) -> Sequence[Piece]:
    """Return the pieces of a delta. Raise TypeError for anything else."""
    for piece in pieces:
        if type(piece) is not tuple or len(piece) != 2 or not isinstance(piece[0], str):
            raise TypeError("a piece of a delta is a tuple of text and token id, `(text, id)`")
    return pieces


def _text_of(delta: object) -> str:
    """Return a delta as str; None is empty. Raise TypeError for anything else."""
    if isinstance(delta, str):
        return delta if type(delta) is str else str(delta)
    if delta is None:
        return ""
    raise TypeError(
        f"a delta is str, not {type(delta).__name__}: decode bytes before `feed`, or "
        "give their source to `parser.events`, which decodes UTF-8 that is cut anywhere"
    )
