"""Recording what whole outputs consist of: the fixed text around names, keys and arguments, from examples.

Strategy: the readers read an example of the format step by step, and what stands between the values of its arguments
becomes a *piece*: an expression of its text, in which names, ids, keys and blanks vary.  A piece says what it begins
(a call, an argument), what it ends, and who reads what follows it.  Whether a name or a blank may vary is tried: a
parser reads the example with another one, and says the same but for that.

A piece is a guess from an example, and no more: `runtime.whole_outputs` compares with the readers before it uses any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from toolgram.events import Content, Malformed, Reasoning, ToolCallEnd, ToolCallStart
from toolgram.islands import dump_island
from toolgram.limits import LONGEST_FIXED_TEXT, LONGEST_WORD, MOST_PATH_EXAMPLES, MOST_RECORDED_BLANKS
from toolgram.message import Message, ToolCall
from toolgram.program.state import ENVELOPE, Program, StateProgram, Symbol
from toolgram.runtime.argument_readers import end_arguments
from toolgram.runtime.parser import Parser
from toolgram.runtime.readers import READERS
from toolgram.runtime.stream import Stream, next_symbol, reader_of

JSON, PYTHON, VALUE, TEXT = "json", "python", "value", "text"  # what follows a piece
MADE_UP_ID = "made-up"  # what no example has for an id
_MORE = f"{{0,{LONGEST_WORD - 1}}}+"  # letters of a name, after the first
_BLANKS = " \n\t\r" * (MOST_RECORDED_BLANKS // 4)  # as many as may stand where some may
# What a name, an id or a key may be: an example, and an expression, tried in order. The first of the names stands
# twice: not every format takes it as it is.
_VARIANTS = {
    "name": (("it-now_2.it-now_2", rf"[A-Za-z_][A-Za-z0-9_.-]{_MORE}"), ("getIt_2", rf"[A-Za-z_][A-Za-z0-9_]{_MORE}")),
    "id": (("id-0:a_9", rf"[A-Za-z0-9_:.-]{{1,{LONGEST_WORD}}}+"), ("aB3dE6gH9", rf"[A-Za-z0-9]{{1,{LONGEST_WORD}}}+")),
}
_KEY = rf"[A-Za-z_][A-Za-z0-9_]{_MORE}"
_WORD = re.compile(r"[A-Za-z0-9_:.-]").match
_MAY_HAVE_BLANKS = re.compile(r"""[ \t\r\n]++|(?<=[{}\[\]:,"])|(?=[{}\[\]:,"])|\Z""")

Key: TypeAlias = tuple[object, ...]


@dataclass(slots=True, eq=False)
class Piece:
    """What stands before, between and after arguments.

    `name`, `id`, `key` and `model_id` are groups of the pattern, or 0. `begins`: a call begins in it. `ends`: one ends.
    """

    pattern: re.Pattern[str]
    follows: str
    state: StateProgram
    begins: bool = False
    ends: bool = False
    name: int = 0
    id: int = 0
    key: int = 0
    model_id: int = 0
    next: list[Piece] = field(default_factory=list)


Pieces = dict[Key, list[Piece]]


def entry_key(state: StateProgram, trigger: str) -> Key:
    """What a piece depends on that begins with this symbol in this state: where the symbol leads, and how.

    Of the state itself only that matters which the readers ask of the origin of what they hold.
    """
    move = state.row.get(trigger)
    if move is None:
        return state.name, trigger
    return trigger, move.dest.name, move.actions, state.is_text, state.meaning == "malformed", state.bare


def recorded_pieces(program: Program) -> Pieces:
    """The pieces with which calls begin, by the symbol and the state that they begin with."""
    pieces: Pieces = {}
    following: dict[Key, list[Piece]] = {}
    for text in examples(program):
        example = _read(program, text)
        if example is not None:
            _Recorder(program, example, pieces, following).record()
    return pieces


def examples(program: Program) -> list[str]:
    """The examples of a format, or none."""
    if program.spec is None:
        return []
    said = program.spec.machine_dict.get("format", {}).get("canonical") or ()
    texts = [text.get("output", "") if isinstance(text, dict) else text for text in (program.spec.example, *said)]
    kept = dict.fromkeys(text for text in texts if isinstance(text, str) and text)
    return list(kept)[:MOST_PATH_EXAMPLES]


def fresh_stream(program: Program, state: StateProgram) -> Stream:
    stream = Stream(program, lambda: MADE_UP_ID, None)
    stream.state, stream.reader = state, reader_of(state)
    stream.events.out = []
    return stream


def is_clean(stream: Stream) -> bool:
    """Whether nothing is held, buffered or half read."""
    source, events, calls = stream.source, stream.events, stream.calls
    waits = (events.blanks, events.held, stream.buffer, stream.unfinished, calls.id, calls.name, calls.keys)
    return source.is_empty and not any(waits)


# --- reading an example -----------------------------------------------------------------------------------------------


class _Span(NamedTuple):
    """A value or the arguments of a call: where they stand, who reads them, and of which call and key they are."""

    begin: int
    end: int
    follows: str
    state: StateProgram
    key: str = ""
    inside: str = ""  # what JSON arguments stand in


@dataclass(slots=True)
class _Example:
    text: str
    message: Message
    symbols: list[tuple[int, StateProgram, Symbol]] = field(default_factory=list)
    spans: list[_Span] = field(default_factory=list)
    starts: list[tuple[int, ToolCallStart]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)  # where calls end
    clean: list[tuple[int, StateProgram]] = field(default_factory=list)  # where nothing is half read, outside calls
    said: list[tuple[int, int]] = field(default_factory=list)  # where text stands

    def has_text(self, begin: int, end: int) -> bool:
        """Whether text stands there."""
        return any(start < end and begin < stop for start, stop in self.said)


def _read(program: Program, text: str) -> _Example | None:
    """An example, read step by step; None where it has no call."""
    example = _Example(text, _message(program, text))
    stream = fresh_stream(program, program.initial)
    pos, opened, inside = 0, -1, ""
    while 0 <= pos < len(text):
        was, state, key, begin = stream.reader, stream.state, stream.calls.key, pos
        if was in ("text", "token") and stream.events.held is None and _is_outside(stream):
            _note_symbol(example, state, pos)
        object_is_held = stream.source.object_is_held
        pos = READERS[was](stream, text, pos, False)
        if stream.reader == "closed":
            end_arguments(stream)
        if stream.source.object_is_held and not object_is_held:
            opened = pos - 1
        if was == "value":
            end = pos if "value_end" in state.row else next_symbol(state, state.find, text, begin)[0]
            example.spans.append(_Span(begin, end, VALUE, state, key))
        elif was == "python":
            example.spans.append(_Span(begin, pos, PYTHON, stream.state))
        elif stream.reader == "arguments" != was:
            inside = str(dump_island(stream.island))
        elif was == "arguments" != stream.reader:
            example.spans.append(_Span(opened, pos, JSON, stream.state, "", inside))
        if is_clean(stream) and _is_outside(stream):
            example.clean.append((pos, stream.state))
    stream.events.send_withheld()  # what follows the end of the turn: nothing
    _note_events(example, stream)
    places = {(span.begin, span.end) for span in example.spans}
    return example if example.starts and 0 < len(example.spans) == len(places) else None


def _message(program: Program, text: str) -> Message:
    """What a parser makes of a text."""
    parser = Parser(program, None, "", lambda: MADE_UP_ID)
    parser.feed(text)
    parser.close("stop")
    return parser.message


def _is_outside(stream: Stream) -> bool:
    return stream.island is None and stream.calls.index is None


def symbol_at(state: StateProgram, text: str, pos: int) -> tuple[int, Symbol | None]:
    """The next symbol of a state, and where it begins; None where something else stands, or nothing that is whole."""
    if not state.loops:
        found = state.match(text, pos) if state.match is not None else None
        whole = found is not None and found.lastindex is not None and not state.may_become(text, pos)
        return pos, state.symbols[(found.lastindex or 0) - 1] if whole and found is not None else None
    begin, _, symbol = next_symbol(state, state.find, text, pos)
    return begin, symbol


def _note_symbol(example: _Example, state: StateProgram, pos: int) -> None:
    """Note the next symbol, if it begins a call."""
    if state.is_text and not state.loops:
        pos += len(example.text[pos:]) - len(example.text[pos:].lstrip())
    begin, symbol = symbol_at(state, example.text, pos)
    if symbol is None:
        return
    move = state.row.get(symbol.trigger)
    if symbol.kind == ENVELOPE or move is None or not move.dest.is_text:
        example.symbols.append((begin, state, symbol))


def _note_events(example: _Example, stream: Stream) -> None:
    at = 0
    for event in stream.events.out:
        after = at + len(event.source)
        if isinstance(event, ToolCallStart):
            example.starts.append((at, event))
        elif isinstance(event, Content | Reasoning | Malformed):
            example.said.append((at, after))
        elif isinstance(event, ToolCallEnd):
            example.ends.append(after)
        at = after


# --- from examples to pieces ------------------------------------------------------------------------------------------


class _Part(NamedTuple):
    """A part of a piece: its kind (fixed text, blanks, or what varies), its place in the example, its expression."""

    kind: str
    begin: int
    text: str
    expression: str
    least: str = ""  # the shortest text that may stand there


class _Recorder:
    """Adds the pieces of one example. `following` are those after arguments, by what stands around these."""

    def __init__(self, program: Program, example: _Example, pieces: Pieces, following: dict[Key, list[Piece]]) -> None:
        self._program, self._example = program, example
        self._pieces, self._following = pieces, following

    def record(self) -> None:
        """Add them."""
        self._add_empty()
        example, last = self._example, 0
        after: list[Piece] | None = None
        for span in example.spans:
            entry = next((each for each in example.symbols if last <= each[0] < span.begin), None)
            begin, where = last, after if entry is None else None
            if entry is not None and not example.has_text(entry[0], span.begin):
                if after is not None:
                    self._add_ends(last, entry[0], after)
                begin, where, after = entry[0], self._entries(*entry[1:]), None
            piece = None if where is None else self._added(where, begin, span, after is not None)
            after, last = None if piece is None else piece.next, span.end
        if after is not None:
            self._add_ends(last, len(example.text) + 1, after)

    def _entries(self, state: StateProgram, symbol: Symbol) -> list[Piece]:
        return self._pieces.setdefault(entry_key(state, symbol.trigger), [])

    def _add_empty(self) -> None:
        """Add the pieces that are calls without arguments."""
        example = self._example
        for at, _ in example.starts:
            begun = [each for each in example.symbols if each[0] <= at]
            end = next((end for end in example.ends if end > at), None)
            clean = [place for place in example.clean if end is not None and place[0] >= end]
            if begun and clean and self._is_empty(begun[-1][0], clean[0][0]):
                begin, state, symbol = begun[-1]
                self._added(self._entries(state, symbol), begin, _Span(clean[0][0], clean[0][0], TEXT, clean[0][1]))

    def _is_empty(self, begin: int, end: int) -> bool:
        """Whether one call stands there, and nothing else."""
        example = self._example
        one = len([at for at, _ in example.starts if begin <= at < end]) == 1
        return one and not any(begin <= span.begin < end for span in example.spans) and not example.has_text(begin, end)

    def _add_ends(self, begin: int, limit: int, where: list[Piece]) -> None:
        """The pieces that end a call: to the first place and to the last at which nothing is half read."""
        example = self._example
        limit = min([limit, *(at for at, _ in example.starts if at >= begin)])
        places = [each for each in example.clean if begin <= each[0] < limit and not example.has_text(begin, each[0])]
        for pos, state in dict.fromkeys([places[-1], places[0]] if places else []):
            self._added(where, begin, _Span(pos, pos, TEXT, state), after=True)

    def _added(self, where: list[Piece], begin: int, span: _Span, after: bool = False) -> Piece | None:
        """The piece from `begin` to a span, which is added to `where` if it is not there; None where it is not as
        simple. It may stand `after` arguments."""
        for piece in where:
            found = piece.pattern.match(self._example.text, begin)
            if found is not None and found.end() == span.begin and (piece.follows, piece.state) == _follows(span):
                return piece
        made = self._piece(begin, span, after) if span.begin - begin <= LONGEST_FIXED_TEXT else None
        if made is not None:
            made.next = self._following.setdefault((span.follows, span.state.name, span.inside), [])
            where.append(made)
            where.sort(key=lambda each: -len(each.pattern.pattern))
        return made

    def _piece(self, begin: int, span: _Span, after: bool) -> Piece | None:
        example = self._example
        starts = [start for at, start in example.starts if begin <= at < span.begin + (span.key == "")]
        if span.follows == TEXT and after:
            starts = []
        ends = any(begin + (not after) <= end <= span.begin for end in example.ends)
        varying = self._varying(begin, span, starts, ends) if len(starts) <= 1 else None
        if varying is None:
            return None
        parts = self._with_blanks(varying, begin, span, after)
        expression, groups = "", dict.fromkeys(_GROUPS, 0)
        number = 0
        for part in parts:
            expression += part.expression
            for kind in _KINDS.get(part.kind, ()):
                number += 1
                groups[kind] = number
        expression += self._goes_on(example.text[begin : span.begin])
        pattern = re.compile(expression)
        name, made_id, key, model_id = groups.values()
        return Piece(pattern, span.follows, span.state, bool(starts), ends, name, made_id, key, model_id)

    # --- what varies --------------------------------------------------------------------------------------------------

    def _varying(self, begin: int, span: _Span, starts: list[ToolCallStart], ends: bool) -> list[_Part] | None:
        """The names, ids and the key of a piece, in order; None where one is not to be found in it."""
        calls, found = self._example.message.tool_calls, list[_Part]()
        number = len([at for at, _ in self._example.starts if at < begin])  # of the call that begins here
        if ends and 0 < number <= len(calls) and calls[number - 1].model_id:
            found.append(self._part("model_id", calls[number - 1].model_id or "", begin, span, number - 1))
        for start in starts:
            found += self._names(start, begin, span, number)
        if span.key:
            found.append(self._part("key", span.key, begin, span, number))
        found.sort(key=lambda part: part.begin)
        apart = all(part.begin + len(part.text) <= next_.begin for part, next_ in pairwise(found))
        return found if apart and not any(part.begin < 0 for part in found) else None

    def _names(self, start: ToolCallStart, begin: int, span: _Span, call: int) -> list[_Part]:
        """The name of a call, and the id that the model wrote, which may hold the name."""
        if start.id == MADE_UP_ID:
            return [self._part("name", start.name, begin, span, call)]
        if start.name in start.id:
            return [self._part("id with name", start.id, begin, span, call, start.name)]
        return [self._part(kind, said, begin, span, call) for kind, said in (("name", start.name), ("id", start.id))]

    def _part(self, kind: str, said: str, begin: int, span: _Span, call: int, name: str = "") -> _Part:
        """What varies, where it is first found in the piece."""
        at = self._example.text.find(said, begin, span.begin)
        if kind == "key":
            return _Part(kind, at, said, f"({_KEY})", said)
        if not name:
            return _Part(kind, at, said, f"({self._variant(kind, at, said, call)})", said)
        before, _, after = said.partition(name)
        numbered = re.sub(r"[0-9]+", "[0-9]{1,4}+", re.escape(after))
        named = self._variant("name", at + len(before), name, call)
        return _Part(kind, at, said, f"({re.escape(before)}({named}){numbered})", said)

    def _variant(self, kind: str, at: int, said: str, call: int) -> str:
        """What may stand for a name or an id: the first of two expressions whose characters the readers take there."""
        words = "|".join(re.escape(word) for word in self._program.literals.values() if _WORD(word))
        other = f"(?!{words})" if words else ""  # a word of the format's own may mean something else there
        for changed, expression in _VARIANTS["name" if kind == "name" else "id"] if at >= 0 else ():
            calls = [*self._example.message.tool_calls]
            calls[call:] = [_changed(each, kind, said, changed) for each in calls[call : call + 1]] + calls[call + 1 :]
            if self._reads(at, said, changed, calls):
                return other + expression
        return re.escape(said)

    def _reads(self, at: int, said: str, changed: str, calls: list[ToolCall] | None = None) -> bool:
        """Whether a parser reads the example with `changed` for what stands at `at`, and then has these calls, or those
        of the example, and all else is the same."""
        wanted = replace(self._example.message, parts=[])
        wanted.tool_calls = wanted.tool_calls if calls is None else calls
        text = self._example.text
        return replace(_message(self._program, text[:at] + changed + text[at + len(said) :]), parts=[]) == wanted

    def _with_blanks(self, varying: list[_Part], begin: int, span: _Span, after: bool) -> list[_Part]:
        """All parts of a piece; those between what varies with the blanks that may stand there."""
        spaced: list[_Part] = []
        for part in self._gaps(varying, begin, span):
            for at, text, blank in _cut(part.text, part.begin) if part.kind == "text" else ():
                possible = blank and (at > begin or after) and (at < span.begin or span.follows == JSON)
                again = spaced[-1:] != [] and spaced[-1].kind == "blank"
                spaced.append(self._maybe_blank(at, text) if possible and not again else _fixed(at, text))
            if part.kind != "text":
                spaced.append(part)
        body = self._example.text[begin : span.begin]
        many = "".join(_BLANKS if part.kind == "blank" else part.text for part in spaced)
        least = "".join(part.least for part in spaced)
        same = self._reads(begin, body, many) and self._reads(begin, body, least)
        return spaced if same else self._gaps(varying, begin, span)

    def _gaps(self, varying: list[_Part], begin: int, span: _Span) -> list[_Part]:
        """What varies in a piece, and the fixed text between."""
        parts: list[_Part] = []
        for part in [*varying, _fixed(span.begin, "")]:
            parts += [_fixed(begin, self._example.text[begin : part.begin]), part]
            begin = part.begin + len(part.text)
        return parts

    def _maybe_blank(self, at: int, text: str) -> _Part:
        """Blanks, where a parser takes any number of them; else what stands there."""
        if not self._reads(at, text, _BLANKS):
            return _fixed(at, text)
        least = int(not self._reads(at, text, ""))
        return _Part("blank", at, text, rf"[ \t\r\n]{{{least},{len(_BLANKS)}}}+", " " * least)

    def _goes_on(self, text: str) -> str:
        """An expression of nothing, where no longer marker begins with the one in which `text` ends."""
        literals = {literal for state in self._program.states.values() for literal in state.literals}
        marker = max(filter(text.endswith, literals), key=len, default="")
        rests = {longer[len(marker) :] for longer in literals if marker and longer.startswith(marker)} - {""}
        return f"(?!{'|'.join(map(re.escape, sorted(rests)))})" if rests else ""


_GROUPS = ("name", "id", "key", "model_id")
# The groups of a part.
_KINDS = {"name": ("name",), "id": ("id",), "id with name": ("id", "name"), "key": ("key",), "model_id": ("model_id",)}


def _follows(span: _Span) -> tuple[str, StateProgram]:
    return span.follows, span.state


def _changed(call: ToolCall, kind: str, said: str, new: str) -> ToolCall:
    """A call with another name or id; its id may hold its name."""
    if kind == "name":
        return replace(call, name=new, id=call.id.replace(said, new))
    return replace(call, id=new) if kind == "id" else replace(call, model_id=new)


def _fixed(at: int, text: str) -> _Part:
    return _Part("text", at, text, re.escape(text), text)


def _cut(text: str, at: int) -> Iterator[tuple[int, str, bool]]:
    """Text that stands at `at`, cut where blanks stand or may stand: each part, and whether it is such a place."""
    done = 0
    for found in _MAY_HAVE_BLANKS.finditer(text):
        if found.start() > done:
            yield at + done, text[done : found.start()], False
        yield at + found.start(), found.group(), True
        done = found.end()
