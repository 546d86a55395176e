"""Recording the straight ways of a program: reading examples with the readers, and trying how else they may be spelled.

`runtime.straight_paths` says what a path is, and why it is recorded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from toolgram.events import (
    BufferedEvent,
    Content,
    Dropped,
    Malformed,
    Note,
    Reasoning,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    event_to_dict,
)
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import JsonScanner
from toolgram.limits import LONGEST_FIXED_TEXT, LONGEST_WORD, MOST_RECORDED_BLANKS
from toolgram.program.state import ENVELOPE, Program, StateProgram, Symbol
from toolgram.runtime.path_examples import MADE_UP_ID, examples, fresh_stream, is_clean
from toolgram.runtime.readers import READERS
from toolgram.runtime.snapshots import dump_stream
from toolgram.runtime.straight_paths import NO_PATH, Key, Maker, Path, StraightPaths, entry_key
from toolgram.runtime.stream import Stream

_MORE = f"{{0,{LONGEST_WORD - 1}}}+"  # letters of a name, after the first
# The first name is one that stands twice: not every format takes it as it is.
_NAMES = (
    ("it-now_2.it-now_2", rf"[A-Za-z_][A-Za-z0-9_.-]{_MORE}"),
    ("getIt_2", rf"[A-Za-z_][A-Za-z0-9_]{_MORE}"),
)
_IDS = (("id-0:a_9", rf"[A-Za-z0-9_:.-]{{1,{LONGEST_WORD}}}+"), ("aB3dE6gH9", rf"[A-Za-z0-9]{{1,{LONGEST_WORD}}}+"))
_WORD = re.compile(r"[A-Za-z0-9_:.-]").match
_BLANKS = " \n\t\r" * (MOST_RECORDED_BLANKS // 4)
_MAY_HAVE_BLANKS = re.compile(r"""[ \t\r\n]++|(?<=[{}\[\]:,"])|(?=[{}\[\]:,"])|\Z""")


class _Piece(NamedTuple):
    """A part of a path: fixed `text`; or the name, the id, or blanks of which there may be `least` or more."""

    kind: str
    text: str
    least: int = 0


class _Recorded(NamedTuple):
    """What the readers did: the events with their places in the text, and the stream that they left."""

    events: list[tuple[BufferedEvent, int, int]]
    stream: Stream
    end: dict[str, Any]


# --- finding paths in examples ----------------------------------------------------------------------------------------


class _Walk(StraightPaths):
    """Notes where symbols stand while an example is read, and takes no path."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, recorded_paths)
        self.symbols: list[tuple[int, StateProgram, Symbol]] = []

    def enter(self, stream: Stream, symbol: Symbol, text: str, begin: int) -> int:
        if stream.events.held is None and stream.island is None:
            self.symbols.append((begin, stream.state, symbol))
        return NO_PATH


class _Example(NamedTuple):
    """An example as it was read: its symbols, where arguments begin and end, where nothing is half read, its text."""

    symbols: list[tuple[int, StateProgram, Symbol]]
    arguments: list[tuple[int, int]]
    clean: list[int]
    text: list[tuple[int, int]]


def recorded_paths(program: Program) -> dict[Key, list[Path]]:
    program = replace(program, straight=None)  # in what is recorded, the readers read
    entries: dict[Key, list[Path]] = {}
    exits: dict[str, list[Path]] = {}
    for text in examples(program):
        example = _walked(program, text)
        if example is not None:
            _learn(program, text, example, entries, exits)
    return entries


def _walked(program: Program, text: str) -> _Example | None:
    """An example, read step by step; None where it is none of JSON arguments."""
    walk = _Walk(program)
    stream = fresh_stream(replace(program, straight=walk), program.initial)
    pos, arguments, clean = 0, [], [0]
    opened: int | None = None
    while 0 <= pos < len(text):
        was = stream.reader
        pos = READERS[was](stream, text, pos, False)
        if opened is None and stream.reader == "arguments" and stream.events.held is None:
            opened = pos
        elif opened is not None and was == "arguments" and stream.reader != "arguments":
            arguments.append((opened, pos))
            opened = None
        if is_clean(stream) and stream.island is None:
            clean.append(pos)
    spans, at = [], 0
    for event in stream.events.out:
        if isinstance(event, Content | Reasoning | Malformed):
            spans.append((at, at + len(event.source)))
        at += len(event.source)
    return _Example(walk.symbols, arguments, clean, spans) if arguments else None


def _learn(
    program: Program,
    text: str,
    example: _Example,
    entries: dict[Key, list[Path]],
    exits: dict[str, list[Path]],
) -> None:
    """Add the paths of one example. `exits` are those out of arguments, by all that a continuation depends on."""
    last, context, origin = 0, "", program.initial
    path: Path | None = None
    for number, (start, end) in enumerate(example.arguments):
        entry = _entry(program, example, last, start)
        if entry is not None:
            begin, origin, symbol = entry
            context = ""
            body = text[begin:start]
            path = _added(
                entries.setdefault(entry_key(origin, symbol.trigger), []), exits, program, origin, "", body, '"'
            )
        elif path is not None:
            body = text[last:start]
            path = _added(path.exits, exits, program, origin, context, body, '"')
        if path is None:
            last = end
            continue
        context += body + "}"
        following = example.arguments[number + 1][0] if number + 1 < len(example.arguments) else len(text)
        after = _entry(program, example, end, following)
        room = after[0] if after is not None else following
        ends = [pos for pos in example.clean if end <= pos <= room and not _has_text(example, end, pos)]
        for pos in dict.fromkeys([max(ends, default=-1), min(ends, default=-1)]):
            if pos >= 0:
                _added(path.exits, exits, program, origin, context, text[end:pos], "")
        last = end


def _entry(program: Program, example: _Example, last: int, start: int) -> tuple[int, StateProgram, Symbol] | None:
    """The first symbol between `last` and `start` that begins a call, with no text behind it."""
    for begin, state, symbol in example.symbols:
        move = state.row.get(symbol.trigger)
        begins = symbol.kind == ENVELOPE or move is None or not move.dest.is_text
        if last <= begin < start and begins and not _has_text(example, begin, start):
            return begin, state, symbol
    return None


def _has_text(example: _Example, begin: int, end: int) -> bool:
    return any(start < end and begin < stop for start, stop in example.text)


def _added(
    paths: list[Path],
    exits: dict[str, list[Path]],
    program: Program,
    origin: StateProgram,
    context: str,
    body: str,
    tail: str,
) -> Path | None:
    """The path of `body`, which is added to `paths` if it is not there; None where there is none."""
    for path in paths:
        if path.inside == bool(tail) and (found := path.pattern.match(body + tail)) and found.end() == len(body):
            return path
    made = _Recorder(program, origin, context, tail).path(body) if len(body) <= LONGEST_FIXED_TEXT else None
    if made is not None:
        if made.inside:
            made.exits = exits.setdefault(made.leaves, [])
        paths.append(made)
        paths.sort(key=lambda each: -len(each.pattern.pattern))
    return made


# --- recording one path -----------------------------------------------------------------------------------------------


class _Recorder:
    """Makes the path of one piece of an example: of what stands behind `context` and before `tail`."""

    def __init__(self, program: Program, origin: StateProgram, context: str, tail: str) -> None:
        self._program, self._origin, self._context, self._tail = program, origin, context, tail

    def path(self, body: str) -> Path | None:
        """The path, tried; None where the readers do not do the same for every spelling."""
        base = self._run(body)
        if base is None:
            return None
        pieces = self._pieces(body, base)
        if pieces is None:
            return None
        most = self._run(_rendered(pieces, _BLANKS))
        path = None if most is None else self._made(pieces, most)
        if path is None:
            return None
        single = [_rendered(pieces, "", at) for at, piece in enumerate(pieces) if piece.kind == "blank"]
        for text in (body, _rendered(pieces, ""), _rendered(pieces, _BLANKS), *single):
            if not self._agrees(path, text):
                return None
        return path

    def _run(self, body: str) -> _Recorded | None:
        """Let the readers read; None where something is held or half read behind it."""
        stream = fresh_stream(self._program, self._origin)
        text = self._context + body + self._tail
        start, end = len(self._context), len(self._context) + len(body)
        pos = 0
        while 0 <= pos < end or (pos == end < len(text) and stream.reader != "arguments"):
            pos = READERS[stream.reader](stream, text, pos, False)
        inside = stream.island is not None and stream.reader == "arguments"
        inside = inside and isinstance(stream.island, Envelope | JsonScanner)
        if pos != end or not is_clean(stream) or inside != bool(self._tail) or (not inside and stream.island):
            return None
        events, at = [], 0
        for event in stream.events.out:
            behind = at + len(event.source)
            if at >= start:
                events.append((event, at - start, behind - start))
            elif behind > start:
                return None
            at = behind
        if at != end or stream.events.tail:
            return None
        return _Recorded(events, stream, _what_follows(stream))

    def _pieces(self, body: str, base: _Recorded) -> list[_Piece] | None:
        """The parts of the body; None where the name, or an id, is not to be found in it."""
        pieces = [_Piece("text", body)]
        for event, begin, end in base.events:
            if isinstance(event, ToolCallStart):
                pieces = _split(pieces, "name", event.name, begin, end)
                if event.id != MADE_UP_ID:
                    at = next((b for e, b, _ in base.events if isinstance(e, Dropped) and event.id in e.source), None)
                    pieces = pieces if at is None else _split(pieces, "id", event.id, at, len(body))
            elif isinstance(event, Note) and event.kind == "model_id":
                at = next((b for e, b, _ in base.events if isinstance(e, Dropped) and event.text in e.source), None)
                pieces = pieces if at is None else _split(pieces, "id", event.text, at, len(body))
            elif isinstance(event, Content | Reasoning | Malformed):
                return None
        for kind, tried in (("name", _NAMES), ("id", _IDS)):
            pieces = self._named(pieces, kind, tried, base)
        named = self._run(_rendered(pieces, None))
        return self._with_blanks(pieces, named) if named is not None else None

    def _same(self, body: str, base: _Recorded) -> bool:
        """Whether the readers say the same of this text, blanks aside, and leave the same."""
        run = self._run(body)
        return run is not None and run.end == base.end and _says(run) == _says(base)

    def _named(
        self, pieces: list[_Piece], kind: str, tried: Sequence[tuple[str, str]], base: _Recorded
    ) -> list[_Piece]:
        """The pieces with a spelling of the name or the id that the readers take, the widest alphabet first."""
        at = next((at for at, piece in enumerate(pieces) if piece.kind == kind), None)
        if at is None:
            return pieces
        for probe, _ in tried:
            changed = [*pieces[:at], pieces[at]._replace(text=probe), *pieces[at + 1 :]]
            run = self._run(_rendered(changed, None))
            if run is not None and run.end == base.end and len(run.events) == len(base.events):
                return changed
        return [*pieces[:at], _Piece("text", pieces[at].text), *pieces[at + 1 :]]

    def _with_blanks(self, pieces: list[_Piece], base: _Recorded) -> list[_Piece]:
        """The pieces with places at which there may be blanks, each tried with none and with many."""
        found: list[_Piece] = []
        for piece in pieces:
            if piece.kind != "text":
                found.append(piece)
                continue
            for part in _parts(piece.text):
                used = sum(len(each.text) for each in found) + len(part.text)
                whole = "".join(each.text for each in pieces)
                behind = whole[used:]
                before = "".join(each.text for each in found)
                first = not before and not self._context
                if part.kind != "blank" or first or (found and found[-1].kind == "blank"):
                    found.append(part._replace(kind="text"))
                elif not self._same(before + _BLANKS + behind, base):
                    found.append(_Piece("text", part.text))
                else:
                    found.append(_Piece("blank", part.text, 0 if self._same(before + behind, base) else 1))
        return [piece for piece in found if piece.text or piece.kind != "text"]

    def _made(self, pieces: list[_Piece], most: _Recorded) -> Path | None:
        """The path of the events of the longest spelling."""
        expression, makers, groups = "", [], 0
        name = made_id = 0
        cuts = _cut([(piece, _rendered([piece], _BLANKS)) for piece in pieces], most.events)
        if cuts is None:
            return None
        for (event, begin, end), inside in zip(most.events, cuts, strict=True):
            group = 0
            if end > begin:
                groups += 1
                group = groups
                expression += "("
                for piece, text in inside:
                    if piece.kind in ("name", "id"):
                        groups += 1
                        name, made_id = (groups, made_id) if piece.kind == "name" else (name, groups)
                    expression += _expression(piece, text, self._program)
                expression += ")"
            maker = _maker(event, group, pieces)
            if maker is None:
                return None
            makers.append(maker)
        if any(kind == "start" for kind, *_ in makers) and not name:
            return None
        if self._tail:
            expression += '(?=["}])'
        stream, calls = most.stream, most.stream.calls
        context = self._in_context().calls
        before = context.count
        for at, (kind, group, first, second) in enumerate(makers):
            if kind in ("start", "delta", "end"):
                makers[at] = (kind, group, first - before, second)
        return Path(
            re.compile(expression),
            makers,
            stream.state,
            stream.reader,
            stream.island if isinstance(stream.island, Envelope | JsonScanner) else None,
            calls.count - before,
            None if calls.index is None else calls.index - before,
            stream.events.behind_call,
            name,
            made_id,
            # A way out ends the call, which says anew whether one is behind.
            json.dumps(most.end | dict.fromkeys(("calls", "call", "behind_call", "owed", "sections"))),
            calls.owed,
            calls.enclosed,
            calls.sections - context.sections,
            context.sections - calls.sections,
        )

    def _in_context(self) -> Stream:
        """A stream that has read what stands before the path."""
        stream = fresh_stream(self._program, self._origin)
        pos = 0
        while 0 <= pos < len(self._context):
            pos = READERS[stream.reader](stream, self._context, pos, False)
        stream.events.out.clear()
        return stream

    def _agrees(self, path: Path, body: str) -> bool:
        """Whether the path does with `body` what the readers do."""
        run = self._run(body)
        found = path.pattern.match(self._context + body + self._tail, len(self._context))
        if run is None or found is None or found.end() != len(self._context) + len(body):
            return False
        stream = fresh_stream(self._program, self._origin)
        context = self._in_context().calls
        stream.calls.count, stream.calls.sections = context.count, context.sections
        path.take(stream, found)
        made = [event_to_dict(event) for event in stream.events.out]
        return made == [event_to_dict(event) for event, _, _ in run.events] and _what_follows(stream) == run.end


def _says(run: _Recorded) -> list[tuple[Any, ...]]:
    """What events say, but for the blanks that are dropped or stand between JSON."""
    said: list[tuple[Any, ...]] = []
    for event, _, _ in run.events:
        if isinstance(event, ToolCallStart):
            said.append((event.name, event.id, event.index))
        elif isinstance(event, Note):
            said.append((event.kind, event.text))
        elif isinstance(event, ToolCallEnd):
            said.append((event.status, event.index))
        elif event.source.strip():
            said.append((event.type, "".join(event.source.split())))
    return said


def _what_follows(stream: Stream) -> dict[str, Any]:
    """Everything that a continuation depends on, but for what the names and ids of calls are."""
    said = dump_stream(stream)
    said["open_call"] = said["open_call"] is not None
    return said


def _split(pieces: list[_Piece], kind: str, value: str, begin: int, end: int) -> list[_Piece]:
    """The pieces with `value`, which stands between `begin` and `end`, as a piece of its own."""
    found, at = [], 0
    done = not value
    for piece in pieces:
        place = piece.text.find(value, max(0, begin - at)) if piece.kind == "text" and not done else -1
        if place >= 0 and at + place + len(value) <= end:
            found += [_Piece("text", piece.text[:place]), _Piece(kind, value)]
            found.append(_Piece("text", piece.text[place + len(value) :]))
            done = True
        else:
            found.append(piece)
        at += len(piece.text)
    return [piece for piece in found if piece.text]


def _parts(text: str) -> Iterator[_Piece]:
    """Fixed text, cut where blanks stand or may stand."""
    at = 0
    for found in _MAY_HAVE_BLANKS.finditer(text):
        if found.start() > at:
            yield _Piece("text", text[at : found.start()])
        if found.start() >= at:
            yield _Piece("blank", found.group())
        at = max(at, found.end())
    if at < len(text):
        yield _Piece("text", text[at:])


def _rendered(pieces: Sequence[_Piece], blanks: str | None, only: int = -1) -> str:
    """The text with these blanks (as few as may be for "", those of the example for None), and many at `only`."""
    said = []
    for at, piece in enumerate(pieces):
        if piece.kind != "blank" or blanks is None:
            said.append(piece.text)
        else:
            said.append(_BLANKS if at == only else blanks or " " * piece.least)
    return "".join(said)


def _cut(
    texts: list[tuple[_Piece, str]], events: list[tuple[BufferedEvent, int, int]]
) -> list[list[tuple[_Piece, str]]] | None:
    """The pieces of each event; None where an event ends inside a piece that varies."""
    left = texts[::-1]
    cuts = []
    for _, begin, end in events:
        inside, room = [], end - begin
        while room:
            piece, text = left.pop()
            if len(text) > room:
                if piece.kind != "text":
                    return None
                left.append((piece, text[room:]))
                text = text[:room]
            room -= len(text)
            inside.append((piece, text))
        cuts.append(inside)
    return None if any(text for _, text in left) else cuts


def _expression(piece: _Piece, text: str, program: Program) -> str:
    if piece.kind == "blank":
        return rf"[ \t\r\n]{{{piece.least},{MOST_RECORDED_BLANKS}}}+"
    if piece.kind == "text":
        return re.escape(text)
    words = "|".join(re.escape(word) for word in program.literals.values() if _WORD(word))
    other = f"(?!{words})" if words else ""  # a word of the format's own may mean something else where a name stands
    return f"({other}{dict(_NAMES if piece.kind == 'name' else _IDS)[piece.text]})"


def _maker(event: BufferedEvent, group: int, pieces: list[_Piece]) -> Maker | None:
    """How the event is made from the groups; None where it says something else."""
    ids = [piece.text for piece in pieces if piece.kind == "id"]
    if isinstance(event, Dropped) and event.text == event.source:
        return "dropped", group, event.why, None
    if isinstance(event, ToolCallStart):
        return ("start", group, event.index, event.id != MADE_UP_ID) if event.id in (MADE_UP_ID, *ids) else None
    if isinstance(event, ToolCallDelta):
        return "delta", group, event.index, None if event.arguments == event.source else event.arguments
    if isinstance(event, ToolCallEnd):
        return "end", group, event.index, event.status
    if isinstance(event, Note):
        return "note", group, event.kind, None if event.text in ids else event.text
    return None
