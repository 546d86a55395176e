"""What must follow a marker in a value for it to end the value: expressions made from the rows of the machine.

Strategy: text may contain any marker.  So a marker counts only if the way on from it is one that the machine has:
after a value's own marker another argument or the end of the call; after another marker the other closing markers and
then the end of the message or of the turn, or the opener of a call with its name; after the opener of an argument its
key and the markers up to its value.  Each way is followed through the rows, blanks bounded, and written as a regular
expression.  Ways multiply with the states.  A machine whose ways are too many is refused when it is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from toolgram.errors import ToolgramError
from toolgram.limits import BLANKS, MOST_BLANKS, MOST_NESTED_BEGINNINGS, MOST_STEPS_AHEAD
from toolgram.program.expressions import Expression
from toolgram.spec.data import END, TEXT, Literal, Run, Spec

if TYPE_CHECKING:
    from toolgram.program.state import Move, StateProgram

_BLANK = r"[ \t\r\n]"
_MOST_AGAIN = 3  # closing markers of a value that is closed already
_NEVER = "(?!)"
_ATOMIC, _GROUP = "(?>{})", "({})"  # what is put around the expression of a name


class TooManyWays(ToolgramError):
    """There are too many ways through a machine after a marker that may end a value."""


class Way(NamedTuple):
    """Expressions of what must follow a marker: as the text goes on, at the end of the output, and as far as it has
    come. `names` is `final` with groups that are names; None if there is no name."""

    whole: str
    final: str
    partial: str
    names: Expression | None = None


NOTHING = Way("", "", "")


def look_ahead(spec: Spec, follow: Callable[[Ways], Way]) -> Way:
    """Return these ways twice: with names that are matched as a whole, and with names that are groups."""
    ways = Ways(spec)
    way = follow(ways)
    return way._replace(names=Expression(lambda: follow(Ways(spec, _GROUP)).final)) if ways.named else way


def look_ahead_for_argument(spec: Spec, state: StateProgram, again: Iterable[str], short: bool) -> Way:
    """Return what must follow the own closing marker of a value: another argument, after a `short` one up to its value,
    or the end of the call. A few of `again`, markers that close it once more, may come before that."""
    ahead = look_ahead(spec, lambda ways: ways.to_argument(state, short))
    repeated, begun = again_pattern(again), partial_pattern(again)
    partial = f"{repeated}(?:{ahead.partial}|{BLANKS}(?:{begun or _NEVER}))" if repeated else ahead.partial
    alone = ahead.names
    names = alone and Expression(lambda: f"{repeated}(?:{alone.pattern}|{ahead.partial}\\Z)")
    return Way(repeated + ahead.whole, repeated + ahead.final, partial, names)


def again_pattern(markers: Iterable[str]) -> str:
    """Return a regular expression for a few of these markers, with blanks before each; empty for none."""
    texts = "|".join(map(re.escape, sorted({*markers}, key=lambda text: (-len(text), text))))
    each = f"{BLANKS}(?:{texts})"
    return f"(?>{'|'.join(each * times for times in range(_MOST_AGAIN, -1, -1))})" if texts else ""


def openers_ahead(spec: Spec, home: StateProgram) -> Iterable[tuple[str, str, Way]]:
    """Return the markers with which a call begins in text, each with the way from it to the name."""
    ways = Ways(spec)
    for trigger, move in home.row.items():
        shape = spec.terminals.get(trigger)
        found = ways.opening(move.dest, (home.name,)) if move.dest.held else None
        if isinstance(shape, Literal) and found is not None:
            for text in shape.texts:
                yield trigger, text, found


def name_ahead(spec: Spec, state: StateProgram) -> Way | None:
    """Return the way from a held state to the character after the name of a call; None if not only a name may come.

    More blanks than are looked at are a way as well: what follows them is for the readers to see.
    """
    moves = [(spec.terminals[trigger], move) for trigger, move in state.row.items() if trigger in spec.terminals]
    if any(move.dest is not state and not (isinstance(shape, Run) and "name" in move.actions) for shape, move in moves):
        return None
    found = Ways(spec).opening(state, ())
    return found and found._replace(whole=f"(?:{found.whole}|{_BLANK}{{{MOST_BLANKS + 1}}})")


class _Branches:
    """The ways on from one state, as they are gathered. Markers with the same way on are written together."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, str]] = []  # expressions of text, not of markers: whole, and as far as it has come
        self.texts: list[str] = []  # markers, of which any may only have begun
        self._markers: dict[Way, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self.runs or self._markers)

    def markers(self, texts: Sequence[str], rest: Way) -> None:
        """Take a marker in its spellings, and the way on after it."""
        self.texts += texts
        self._markers.setdefault(rest, []).extend(map(re.escape, texts))

    def way(self, space: str, at_end: str = "") -> Way:
        """Return all of them as one way; `at_end` is what may follow instead at the end of the output."""
        markers = [
            (texts[0] if len(texts) == 1 else f"(?:{'|'.join(texts)})", rest) for rest, texts in self._markers.items()
        ]
        runs = [whole for whole, _ in self.runs]
        whole = [*(text + rest.whole for text, rest in markers), *runs]
        final = [*(text + rest.final for text, rest in markers), *runs, at_end]
        partial = [text + rest.partial for text, rest in markers if rest.partial]  # what is whole has not only begun
        partial += [begun for _, begun in self.runs] + [partial_pattern(self.texts)]
        return Way(_any(space, whole), _any(space, final), _any(space, partial) + "?")


def _any(space: str, expressions: Iterable[str]) -> str:
    return f"{space}(?:{'|'.join(filter(None, expressions)) or _NEVER})"


class Ways:
    """Follows the rows of one machine. Raises TooManyWays before that becomes long: ways multiply with the states."""

    def __init__(self, spec: Spec, name: str = _ATOMIC) -> None:
        self._spec = spec
        self._name = name  # what is put around the expression of a name or a key
        self.named = False  # whether there was one
        self._left = MOST_STEPS_AHEAD
        self._to_name = cache(lambda state: self.opening(state, ()))
        self._ends = _ends_of_messages(spec).union(spec.stop or ())

    def _rows(self, state: StateProgram) -> Iterator[tuple[Any, Move]]:
        """Yield the rows of a state that are left by a terminal, with the shape of that."""
        for trigger, move in state.row.items():
            self._left -= 1
            if self._left < 0:
                ways = f"more than {MOST_STEPS_AHEAD} ways through the machine"
                raise TooManyWays(f"from the closing markers of a value on there are {ways}")
            shape = self._spec.terminals.get(trigger)
            if shape is not None and trigger != "WS":
                yield shape, move

    def closing(self, state: StateProgram, seen: tuple[str, ...]) -> Way:
        """Return other closing markers, then the end of the turn, another role, or the opener of a call and a name."""
        branches = _Branches()
        for shape, move in self._rows(state):
            if isinstance(shape, Literal) and move.dest.name not in seen:
                found = self._after(state, move, seen)
                if found is not None:
                    branches.markers(shape.texts, found)
        for role in self._spec.other_roles:
            branches.markers((role,), NOTHING)
        return branches.way(BLANKS, r"\Z")

    def to_argument(self, state: StateProgram, to_value: bool) -> Way:
        """Return another argument, perhaps up to its value if nothing comes before its key, or the end of the call."""
        branches = _Branches()
        for shape, move in self._rows(state):
            if isinstance(shape, Run) and to_value and "argument_key" in move.actions:
                way, key = self.to_value(move.dest, (state.name,)), f"(?>{shape.pattern})"
                branches.runs.append((key + way.whole, key + way.partial))
            elif isinstance(shape, Run):
                branches.runs.append((shape.first, ""))
            elif isinstance(shape, Literal):
                sure = not move.repair or move.dest.meaning in ("argument_key", "content")
                found = NOTHING if sure else self._after(state, move, ())
                if found is not None:
                    branches.markers(shape.texts, found)
        return branches.way(BLANKS if "WS" in state.row else "", r"\Z")

    def to_value(self, state: StateProgram, seen: tuple[str, ...]) -> Way:
        """Return a key, and the markers up to its value."""
        branches = _Branches()
        for shape, move in self._rows(state):
            dest = move.dest
            if dest.name in seen or dest is state:
                continue
            if isinstance(shape, Literal) and dest.meaning == "value":
                branches.markers(shape.texts, NOTHING)
            elif isinstance(shape, Literal) and dest.meaning is None and "end_call" not in move.actions:
                branches.markers(shape.texts, self.to_value(dest, (*seen, state.name)))
            elif isinstance(shape, Run) and "argument_key" in move.actions:
                found = self.to_value(dest, (*seen, state.name))
                whole = self._named(shape) + found.whole
                branches.runs.append((whole, f"(?>{shape.pattern}){found.partial}"))
        branches.texts += _marks(self._spec, state)
        return branches.way(_between(self._spec, state))

    def opening(self, state: StateProgram, seen: tuple[str, ...]) -> Way | None:
        """Return the way from a held state to the name of a call and the first character after it; None for no way."""
        branches = _Branches()
        for shape, move in self._rows(state):
            dest = move.dest
            if isinstance(shape, Run) and "name" in move.actions:
                following = "|".join(_firsts(self._spec, dest))
                if following:
                    whole = f"{self._named(shape)}(?={following})"
                    branches.runs.append((whole, f"(?>{shape.pattern})"))
            elif isinstance(shape, Literal) and (dest.held or _is_header(dest)) and dest.name not in seen:
                found = self.opening(dest, (*seen, state.name))
                if found is not None:
                    branches.markers(shape.texts, found)
        return branches.way(BLANKS if "WS" in state.row or not state.held else "") if branches else None

    def after_call(self, state: StateProgram, seen: tuple[str, ...]) -> Way | None:
        """Return the other closing markers, or the way to the name of the next call; None if there are no markers."""
        branches, seen = _Branches(), (*seen, state.name)
        for shape, move in self._rows(state):
            if isinstance(shape, Literal) and _is_header(move.dest) and move.dest.name not in seen and not move.repair:
                more = self.after_call(move.dest, seen) if len(shape.text) == 1 else None
                branches.markers(shape.texts, more or NOTHING)
        way, call = branches.way(BLANKS, r"\Z"), self.opening(state, ())
        if branches and call is not None:
            whole, final, partial = (f"(?:{a}|{b})" for a, b in zip(way[:3], call[:3], strict=True))
            return Way(whole, final, partial)
        return way if branches else None

    def _named(self, shape: Run) -> str:
        self.named = True
        return self._name.format(shape.pattern)

    def _after(self, state: StateProgram, move: Move, seen: tuple[str, ...]) -> Way | None:
        """Return what follows a marker: nothing need follow one that ends the message or the turn; None if it leads
        nowhere."""
        dest = move.dest
        if move.trigger in self._ends:
            return NOTHING
        if dest.held:
            found = self._to_name(dest)
            return found and self._or_end(dest, found)
        if dest is state and (move.repair or move.actions):
            return NOTHING if move.repair else None
        return self.closing(dest, (*seen, state.name)) if dest.meaning == "content" else None

    def _or_end(self, state: StateProgram, way: Way) -> Way:
        """Return the way from a held state, in which the output may end if the machine says so: a message has begun."""
        if END not in state.row or state.row[END].actions:
            return way
        rows = [(shape, move) for shape, move in self._rows(state) if move.dest.meaning == "content"]
        begun = "|".join(re.escape(shape.text) for shape, _ in rows if isinstance(shape, Literal))
        return way._replace(final=rf"(?:{way.final}|{BLANKS}(?:(?:{begun or _NEVER}){BLANKS})?+\Z)")


def _ends_of_messages(spec: Spec) -> set[str]:
    """Return the tokens that end the message that a call is in: they end a call, and a thought as well."""
    rows = [row for row in spec.transitions if row.dest == spec.initial]
    ends = {row.trigger for row in rows if "end_call" in row.actions}
    of_thoughts = {row.trigger for row in rows if spec.states[row.source].meaning == "reasoning" and not row.repair}
    return ends & of_thoughts & {*spec.special_tokens}


def _is_header(state: StateProgram) -> bool:
    """Return whether a header may go on in a state of content, which any text leaves."""
    text = state.row.get(TEXT)
    return state.meaning == "content" and text is not None and text.dest is not state


def _between(spec: Spec, state: StateProgram) -> str:
    """Return what may occur in a state without leaving it: blanks, quotes."""
    marks = [re.escape(text) for text in _marks(spec, state)]
    if "WS" not in state.row:
        return ""
    return rf"(?:{'|'.join([_BLANK, *marks])}){{0,{MOST_BLANKS}}}+" if marks else BLANKS


def _marks(spec: Spec, state: StateProgram) -> list[str]:
    """Return the markers that do not lead out of a state."""
    shapes = [spec.terminals.get(trigger) for trigger, move in state.row.items() if move.dest is state]
    return [text for shape in shapes if isinstance(shape, Literal) for text in shape.texts]


def _firsts(spec: Spec, state: StateProgram) -> Iterable[str]:
    """Return the characters with which a state's symbols may begin, as expressions."""
    for trigger in state.row:
        shape = spec.terminals.get(trigger)
        if isinstance(shape, Literal):
            yield from (re.escape(text[0]) for text in shape.texts)
        elif isinstance(shape, Run):
            yield shape.first
        elif trigger in ("object_start", "start_map item"):
            yield r"[{(]"


def partial_pattern(literals: Iterable[str]) -> str:
    """Return an expression for the proper, non-empty prefixes of all `literals`, matched up to the end of a text.

    Its size is n log n in the length of each; empty when no literal is longer than one character.
    """
    return _prefixes_of_any(tuple(sorted({*literals})), MOST_NESTED_BEGINNINGS)


_FEW = 6  # prefixes that are listed


@lru_cache(maxsize=1024)
def _prefixes_of_any(texts: tuple[str, ...], depth: int) -> str:
    """Return the proper prefixes of several texts, in order; what some of them begin with alike is written once."""
    if depth == 0:
        return "|".join(filter(None, map(_prefixes, texts)))
    parts = []
    for _, group in groupby(texts, key=itemgetter(slice(1))):
        alike = [*group]
        shared = _beginning_of_both(alike[0], alike[-1])  # of all, since they are sorted
        rests = tuple(text[len(shared) :] for text in alike if len(text) > len(shared))
        if rests:
            more = _prefixes_of_any(rests, depth - 1)
            parts.append(re.escape(shared) + (f"(?:{more})?" if more else ""))
        parts.append(_prefixes(shared))
    return "|".join(filter(None, parts))


def _beginning_of_both(first: str, last: str) -> str:
    size = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), None)
    return min(first, last, key=len) if size is None else first[:size]


@lru_cache(maxsize=512)
def _prefixes(text: str) -> str:
    """Return the proper prefixes of a text, the longest first: those beyond its first half, then those within it."""
    if len(text) <= _FEW:
        return "|".join(re.escape(text[:length]) for length in range(len(text) - 1, 0, -1))
    half = len(text) // 2
    return f"{re.escape(text[:half])}(?:{_prefixes(text[half:])})?|{_prefixes(text[:half])}"
