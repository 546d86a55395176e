"""Recording what whole outputs consist of: the fixed text around names, keys and arguments, from examples.

Strategy: an example of the format is read by the readers, step by step, and what stands between the values of its
arguments becomes a *piece*: an expression of its fixed text, in which the name, the id and the key of an argument vary.
A piece says what it begins (a call, an argument), what it ends, and who reads what follows it.  The expressions of
straight paths, which allow for blanks as well, are taken where there are some.

A piece is a guess from an example, and no more: `runtime.whole_outputs` compares with the readers before it uses any.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from toolgram.events import Content, Malformed, Reasoning, ToolCallStart
from toolgram.limits import LONGEST_FIXED_TEXT, LONGEST_WORD
from toolgram.program.state import ENVELOPE, Program, StateProgram, Symbol
from toolgram.runtime.path_examples import MADE_UP_ID, examples, fresh_stream, is_clean
from toolgram.runtime.readers import READERS
from toolgram.runtime.straight_paths import NO_PATH, Key, Path, StraightPaths, entry_key
from toolgram.runtime.stream import Stream

JSON, PYTHON, VALUE, TEXT = "json", "python", "value", "text"  # what follows a piece
_MORE = f"{{0,{LONGEST_WORD - 1}}}+"  # letters of a name, after the first
# The first of the other names stands twice: not every format takes it as it is.
_NAMES = (rf"[A-Za-z_][A-Za-z0-9_.-]{_MORE}", rf"[A-Za-z_][A-Za-z0-9_]{_MORE}")
_OTHER_NAMES = ("it-now_2.it-now_2", "getIt_2")
_KEY = rf"[A-Za-z_][A-Za-z0-9_]{_MORE}"
_WORD = re.compile(r"[A-Za-z0-9_:.-]").match


@dataclass(slots=True, eq=False)
class Piece:
    """What stands before, between and behind arguments.

    `name`, `id`, `key` and `model_id` are groups of the pattern, or 0. `begins`: a call begins in it. `ends`: one ends.
    `arguments` is the group with which JSON arguments begin, or 0 where they begin behind the piece.
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
    arguments: int = 0
    next: list[Piece] = field(default_factory=list)


Pieces = dict[Key, list[Piece]]


def recorded_pieces(program: Program, entries: dict[Key, list[Path]]) -> Pieces:
    """The pieces with which calls begin, by the symbol and the state that they begin with."""
    made: dict[int, Piece | None] = {}
    pieces: Pieces = {}
    for key, paths in entries.items():
        found = [piece for path in paths if (piece := _from_path(path, made)) is not None]
        if found:
            pieces[key] = found
    if not pieces:
        program = replace(program, straight=None, whole=None)
        following: dict[tuple[str, str], list[Piece]] = {}
        for text in examples(program):
            _learn(program, text, pieces, following)
    return pieces


# --- from straight paths ----------------------------------------------------------------------------------------------


def _from_path(path: Path, made: dict[int, Piece | None]) -> Piece | None:
    """A path as a piece; None where it does more than begin and end calls."""
    if id(path) in made:
        return made[id(path)]
    made[id(path)] = None
    kinds = [kind for kind, *_ in path.makers if kind not in ("dropped", "note")]
    kinds = [kind for at, kind in enumerate(kinds) if not (at and kind == kinds[at - 1] == "delta")]
    notes = [second for kind, _, first, second in path.makers if kind == "note" and first != "opens"]
    ids = [first for kind, _, first, _ in path.makers if kind == "note" and first != "opens"]
    deltas = [(group, second) for kind, group, _, second in path.makers if kind == "delta"]
    starts = [second for kind, _, _, second in path.makers if kind == "start"]
    ends = [second for kind, _, _, second in path.makers if kind == "end"]
    plain = kinds == [*(["end"] if ends else []), *(["start", "delta"] if path.inside else [])]
    plain = plain and ends in ([], ["complete"]) and all(group and second is None for group, second in deltas)
    plain = plain and notes in ([], [None]) and ids in ([], ["model_id"])
    plain = plain and not (notes and starts and starts[0])  # whose id would it be?
    if not plain:
        return None
    piece = made[id(path)] = Piece(
        path.pattern,
        JSON if path.inside else TEXT,
        path.state,
        path.inside,
        bool(ends),
        path.name,
        path.id if starts and starts[0] else 0,
        0,
        path.id if notes else 0,
        deltas[0][0] if deltas else 0,
    )
    piece.next = [found for each in path.exits if (found := _from_path(each, made)) is not None]
    return piece


# --- from examples ----------------------------------------------------------------------------------------------------


class _Symbols(StraightPaths):
    """Notes where symbols stand outside calls while an example is read, and takes no path."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, lambda program: {})
        self.met: list[tuple[int, StateProgram, Symbol]] = []

    def enter(self, stream: Stream, symbol: Symbol, text: str, begin: int) -> int:
        move = stream.state.row.get(symbol.trigger)
        begins = symbol.kind == ENVELOPE or move is None or not move.dest.is_text
        if begins and stream.events.held is None and stream.island is None and stream.calls.index is None:
            self.met.append((begin, stream.state, symbol))
        return NO_PATH


class _Span(NamedTuple):
    """A value or the arguments of a call: where they stand, who reads them, and of which call and key they are."""

    begin: int
    end: int
    follows: str
    state: StateProgram
    key: str


class _Example(NamedTuple):
    text: str
    symbols: list[tuple[int, StateProgram, Symbol]]
    spans: list[_Span]
    starts: list[tuple[int, ToolCallStart]]
    ends: list[int]  # where calls end
    clean: list[tuple[int, StateProgram]]  # where nothing is half read, outside calls
    said: list[tuple[int, int]]  # where text stands


_FOLLOWS = {"arguments": JSON, "python": PYTHON, "value": VALUE}


def _read(program: Program, text: str) -> _Example | None:
    """An example, read step by step; None where it has no call."""
    symbols = _Symbols(program)
    stream = fresh_stream(replace(program, straight=symbols), program.initial)
    spans: list[_Span] = []
    clean: list[tuple[int, StateProgram]] = []
    pos, opened = 0, -1
    while 0 <= pos < len(text):
        was, state, key, begin = stream.reader, stream.state, stream.calls.key, pos
        end = begin
        if was == "value" and "value_end" not in state.row:
            found = state.find(text, pos)
            assert found is not None
            end = found.start(found.lastindex) if found.lastindex else found.end()
        pos = READERS[was](stream, text, pos, False)
        if was == "value":
            end = max(end, begin) if "value_end" not in state.row else pos
            spans.append(_Span(begin, end, VALUE, state, key))
        elif was == "python":
            spans.append(_Span(begin, pos, PYTHON, stream.state, ""))
        elif was == "object":
            opened = begin - 1
        elif was == "arguments" and stream.reader != "arguments" and opened >= 0:
            spans.append(_Span(opened, pos, JSON, stream.state, ""))
            opened = -1
        if is_clean(stream) and stream.island is None and stream.calls.index is None:
            clean.append((pos, stream.state))
    starts: list[tuple[int, ToolCallStart]] = []
    said: list[tuple[int, int]] = []
    ends: list[int] = []
    at = 0
    for event in stream.events.out:
        if isinstance(event, ToolCallStart):
            starts.append((at, event))
        elif isinstance(event, Content | Reasoning | Malformed):
            said.append((at, at + len(event.source)))
        elif event.type == "tool_call_end":
            ends.append(at + len(event.source))
        at += len(event.source)
    found_call = spans and starts and len({(span.begin, span.end) for span in spans}) == len(spans)
    return _Example(text, symbols.met, spans, starts, ends, clean, said) if found_call else None


def _learn(program: Program, text: str, pieces: Pieces, following: dict[tuple[str, str], list[Piece]]) -> None:
    """Add the pieces of one example. `following` are those behind arguments, by the place that these end in."""
    example = _read(program, text)
    if example is None:
        return
    _learn_empty(program, example, pieces)
    last = 0
    behind: list[Piece] | None = None
    for number, span in enumerate(example.spans):
        entry = [each for each in example.symbols if last <= each[0] < span.begin]
        if entry and not _says(example, entry[0][0], span.begin):
            begin, state, symbol = entry[0]
            if behind is not None:
                _add_end(program, example, last, begin, behind)
            where = pieces.setdefault(entry_key(state, symbol.trigger), [])
        elif behind is not None and not entry:
            begin, where = last, behind
        else:
            behind, last = None, span.end
            continue
        piece = _piece(program, example, begin, span)
        behind = None
        if piece is not None:
            behind = piece.next = following.setdefault((span.follows, span.state.name), [])
            _add(where, piece)
        last = span.end
        if number + 1 == len(example.spans) and behind is not None:
            _add_end(program, example, last, len(text) + 1, behind)


def _learn_empty(program: Program, example: _Example, pieces: Pieces) -> None:
    """Add the pieces that are calls without arguments."""
    for at, _ in example.starts:
        begun = [each for each in example.symbols if each[0] <= at]
        ended = [end for end in example.ends if end > at]
        clean = [place for place in example.clean if ended and place[0] >= ended[0]]
        if not begun or not clean:
            continue
        (begin, state, symbol), (end, behind) = begun[-1], clean[0]
        inside = [span for span in example.spans if begin <= span.begin < end]
        others = [each for each, _ in example.starts if begin <= each < end]
        if inside or len(others) > 1 or _says(example, begin, end):
            continue
        piece = _piece(program, example, begin, _Span(end, end, TEXT, behind, ""))
        if piece is not None:
            _add(pieces.setdefault(entry_key(state, symbol.trigger), []), piece)


def _says(example: _Example, begin: int, end: int) -> bool:
    return any(start < end and begin < stop for start, stop in example.said)


def _add_end(program: Program, example: _Example, begin: int, limit: int, where: list[Piece]) -> None:
    """The pieces that end a call: to the first place and to the last at which nothing is half read."""
    starts = [at for at, _ in example.starts if at >= begin]
    limit = min(limit, *starts, limit)
    places = [(pos, state) for pos, state in example.clean if begin <= pos < limit and not _says(example, begin, pos)]
    for pos, state in dict.fromkeys([places[-1], places[0]] if places else []):
        text = example.text[begin:pos]
        pattern = re.compile(re.escape(text) + _goes_on(program, text))
        _add(where, Piece(pattern, TEXT, state, ends=True))


def _piece(program: Program, example: _Example, begin: int, span: _Span) -> Piece | None:
    """The piece from `begin` to a span; None where it is not as simple."""
    text = example.text[begin : span.begin]
    if len(text) > LONGEST_FIXED_TEXT:
        return None
    starts = [start for at, start in example.starts if begin <= at < span.begin or (at == span.begin and not span.key)]
    if len(starts) > 1:
        return None
    expression, groups, at = "", 0, 0
    places = {"name": 0, "id": 0, "key": 0}
    name = starts[0].name if starts else ""
    made_id = starts[0].id if starts and starts[0].id != MADE_UP_ID else ""
    if made_id and name in made_id:
        place = text.find(made_id)
        if place < 0:
            return None
        before, _, behind = made_id.partition(name)
        numbered = re.sub(r"[0-9]+", "[0-9]{1,4}+", re.escape(behind))
        expression = (
            f"{re.escape(text[:place])}({re.escape(before)}({_name_expression(program, example, name)}){numbered})"
        )
        groups, at = 2, place + len(made_id)
        places.update(id=1, name=2)
        name = made_id = ""
    named = [("name", name), ("id", made_id), ("key", span.key)]
    for kind, said in sorted(named, key=lambda each: text.find(each[1], at)):
        if not said:
            continue
        place = text.find(said, at)
        if place < 0:
            return None
        groups += 1
        places[kind] = groups
        inner = {"name": "", "id": rf"[A-Za-z0-9_:.-]{{1,{LONGEST_WORD}}}+", "key": _KEY}[kind] or _name_expression(
            program, example, said
        )
        expression += f"{re.escape(text[at:place])}({inner})"
        at = place + len(said)
    ends = any(begin < end <= span.begin for end in example.ends)
    if (starts and not places["name"]) or (span.key and not places["key"]):
        return None
    expression += re.escape(text[at:]) + _goes_on(program, text)
    groups_of = (places["name"], places["id"], places["key"])
    return Piece(re.compile(expression), span.follows, span.state, bool(starts), ends, *groups_of)


def _goes_on(program: Program, text: str) -> str:
    """An expression of nothing, where no longer marker begins with the one in which `text` ends."""
    literals = {literal for state in program.states.values() for literal in state.literals}
    marker = max(filter(text.endswith, literals), key=len, default="")
    rests = {longer[len(marker) :] for longer in literals if marker and longer.startswith(marker)} - {""}
    return f"(?!{'|'.join(map(re.escape, sorted(rests)))})" if rests else ""


def _name_expression(program: Program, example: _Example, name: str) -> str:
    """What may stand for a name: the first of two expressions whose characters the readers take there."""
    words = "|".join(re.escape(word) for word in program.literals.values() if _WORD(word))
    other = f"(?!{words})" if words else ""  # a word of the format's own may mean something else where a name stands
    for expression, changed in zip(_NAMES, _OTHER_NAMES, strict=True):
        read = _read(program, example.text.replace(name, changed))
        if read is not None and [start.name for _, start in read.starts].count(changed):
            return other + expression
    return re.escape(name)


def _add(where: list[Piece], piece: Piece) -> None:
    known = {each.pattern.pattern for each in where if (each.follows, each.state) == (piece.follows, piece.state)}
    if piece.pattern.pattern not in known:
        where.append(piece)
        where.sort(key=lambda each: -len(each.pattern.pattern))
