"""Passes over the expression for llguidance, whose lexer reads the longest terminal and cannot backtrack.

Strategy: a pass is a function from an expression to one of the same language. It stays only while a benchmark shows its
gain (`python -m benchmarks.exports`), or if calls are impossible without it.

* `in_pieces`: if calls begin with a bracket and a name, the lexer would follow a terminal for each name, each with all
  the words that a text must not contain. So text is pieces that end with the bracket, and the rest is a symbol of its
  own. The language is the same, because no text contains the name as a call writes it.
* `without_prefixes`: of two fixed texts that are allowed at one place, neither begins with the other: the lexer would
  take the longer one, and calls would be impossible. The common beginning of many texts is one piece, read once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby, takewhile

from toolgram.export import expressions as ex


def closers_of_texts(root: ex.Expr) -> dict[ex.Forbidden, tuple[str, ...]]:
    """Return the closers of texts without a form of their own, for each place."""
    found: dict[ex.Forbidden, dict[str, None]] = {}
    for text in ex.inside(root):
        if isinstance(text, ex.Text) and text.within is None:
            found.setdefault(text.forbidden, {})[text.closer] = None
    return {forbidden: tuple(closers) for forbidden, closers in found.items()}


def changed(root: ex.Expr, leaf: Callable[[ex.Expr], ex.Expr]) -> ex.Expr:
    """Return an expression with other leaves; shared parts are still shared."""

    @cache
    def made(expr: ex.Expr) -> ex.Expr:
        inner = isinstance(expr, ex.Seq | ex.Choice | ex.Star | ex.Repeat | ex.Members)
        return ex.rebuilt(expr, made) if inner else leaf(expr)

    return made(root)


# --- places ------------------------------------------------------------------------------------------


class Places:
    """The places of an expression, and the symbols between them; values and texts without an end are one symbol."""

    def __init__(self) -> None:
        self.edges: list[list[tuple[ex.Expr, int]]] = [[]]
        self.free: list[list[int]] = [[]]  # edges without a symbol

    def new(self) -> int:
        """Return a new place."""
        self.edges.append([])
        self.free.append([])
        return len(self.edges) - 1

    def add(self, expr: ex.Expr, begin: int, end: int) -> None:
        """Add the places of an expression between two others."""
        match expr:
            case ex.Seq() if expr.parts:
                for part in expr.parts[:-1]:
                    here, begin = begin, self.new()
                    self.add(part, here, begin)
                self.add(expr.parts[-1], begin, end)  # directly, so that all members of an object end in one place
            case ex.Seq() | ex.Break():
                self.free[begin].append(end)
            case ex.Blanks():
                self.edges[begin].append((expr, end))
                self.free[begin].append(end)
            case ex.Choice():
                for option in expr.options:
                    self.add(option, begin, end)
            case ex.Star() | ex.Repeat() if isinstance(expr, ex.Star) or not isinstance(expr.body, ex.Class):
                inner = self.new()
                self.free[begin].append(inner)
                self.add(expr.body, inner, inner)
                self.free[inner].append(end)
            case ex.Members():
                inner = self.new()
                for member in expr.members:
                    self.add(member.first, begin, inner)
                    self.add(member.later, inner, inner)
                self.free[inner].append(end)
            case _:
                self.edges[begin].append((expr, end))

    def closed(self, places: Iterable[int]) -> frozenset[int]:
        """Return the places with all that follow without a symbol."""
        found = set(places)
        pending = list(found)
        while pending:
            for place in self.free[pending.pop()]:
                if place not in found:
                    found.add(place)
                    pending.append(place)
        return frozenset(found)

    def ways(self, places: Iterable[int]) -> dict[ex.Expr, set[int]]:
        """Return where each symbol leads from any of the places."""
        found: dict[ex.Expr, set[int]] = {}
        for place in places:
            for symbol, dest in self.edges[place]:
                found.setdefault(symbol, set()).add(dest)
        return found


# --- passes ----------------------------------------------------------------------------------------------------------

_FEW = 2  # this many ends of a text with a common beginning may be separate terminals
_LEAST_ALIKE, _LEAST_SHARED = 4, 4  # texts with a common beginning, and its characters, before it is cut off


def in_pieces(root: ex.Expr) -> ex.Expr:
    """Return the expression with texts in pieces, if many ends of a text begin with the same word."""
    heads = {each: _head(each.words, ends) for each, ends in closers_of_texts(root).items()}

    def leaf(expr: ex.Expr) -> ex.Expr:
        head = heads.get(expr.forbidden) if isinstance(expr, ex.Text) and expr.within is None else None
        return _divided(expr, head) if isinstance(expr, ex.Text) and head else expr

    return changed(root, leaf)


def _head(words: Sequence[str], closers: Collection[str]) -> str:
    """Return the beginning that many ends share, before a word that the text must not contain; "" if there is none."""
    ends = [closer for closer in closers if closer]
    if len(ends) <= _FEW:
        return ""
    before = [each[: min((each.find(word) for word in words if word in each), default=0)] for each in ends]
    head = before[0][: _alike(before)]
    touched = any(head.endswith(word[:at]) or head in word for word in words for at in range(1, len(word)))
    return "" if touched or any(head in each[1:] for each in ends) else head


def _alike(texts: Collection[str]) -> int:
    """Return how many characters some texts share at their beginning."""
    ends = zip(min(texts), max(texts), strict=False)
    return len([*takewhile(lambda pair: pair[0] == pair[1], ends)])


def _divided(expr: ex.Text, head: str) -> ex.Expr:
    piece = ex.Forbidden((*expr.forbidden.words, head))
    opened = ex.seq(ex.Text(piece, head), ex.star(ex.Text(piece, head)))
    if expr.closer:
        return ex.seq(opened, ex.Break(), ex.Lit(expr.closer.removeprefix(head)))
    return ex.choice(ex.Text(piece), ex.seq(opened, ex.Text(piece)))


def without_prefixes(root: ex.Expr) -> ex.Expr:
    """Return the expression with fixed texts cut, until none begins with another one that is allowed at its place."""
    while cuts := cuts_of(root):
        root = cut(root, cuts)
    return root


def cuts_of(root: ex.Expr) -> dict[str, int]:
    """Return where to cut fixed texts, so that no text begins with another one that is allowed at its place.

    If only fixed texts are allowed at a place, the common beginning of many of them becomes one piece. The subset
    construction finds what is allowed at one place: the sets of places that the same symbols lead to.
    """
    places = Places()
    end = places.new()
    places.add(root, 0, end)
    cuts: dict[str, int] = {}
    alike: list[tuple[str, int]] = []
    whole: set[str] = set()
    first = places.closed({0})
    seen, pending = {first}, [first]
    while pending:
        ways = places.ways(pending.pop())
        texts = sorted(symbol.text for symbol in ways if isinstance(symbol, ex.Lit))
        if any(isinstance(symbol, ex.Json) for symbol in ways):  # a JSON value may itself begin with a brace
            cuts.update({text: max(cuts.get(text, 0), 1) for text in texts if text.startswith("{") and len(text) > 1})
        for at, text in enumerate(texts):
            for other in texts[at + 1 :]:
                if not other.startswith(text):
                    break
                cuts[other] = max(cuts.get(other, 0), len(text))
        if all(isinstance(symbol, ex.Lit | ex.Token) for symbol in ways):
            alike += _shared_beginnings(texts)
        else:  # one of these symbols may continue where a piece ends
            whole.update(texts)
        for dests in ways.values():
            after = places.closed(dests)
            if after not in seen:
                seen.add(after)
                pending.append(after)
    heads = {text[:at] for text, at in alike}
    kept = {head for head in heads if any(text.startswith(head) for text in whole)}
    cuts.update({text: max(cuts.get(text, 0), at) for text, at in alike if text[:at] not in kept})
    return cuts


def _shared_beginnings(texts: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield sorted texts that share a beginning, and its length: a lexer reads it once, not once for each text."""
    for _, found in groupby(texts, lambda text: text[:_LEAST_SHARED]):
        group = list(found)
        shared = _alike(group)
        if len(group) >= _LEAST_ALIKE and shared >= _LEAST_SHARED:
            yield from ((text, shared) for text in group if len(text) > shared)


def cut(root: ex.Expr, cuts: Mapping[str, int]) -> ex.Expr:
    """Return the expression with some texts in two pieces; equal first pieces are shared."""

    def leaf(expr: ex.Expr) -> ex.Expr:
        if not isinstance(expr, ex.Lit) or not (at := cuts.get(expr.text)):
            return expr
        return ex.seq(ex.Lit(expr.text[:at]), ex.Break(), ex.Lit(expr.text[at:]))

    return changed(root, leaf)
