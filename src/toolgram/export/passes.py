"""What passes over an expression build on: its texts, its leaves changed, and its places.

Strategy: a pass is a function from an expression to one of the same language, or to a fact about it; writers call it
before they write. A pass stays only while a benchmark shows its gain (`python -m benchmarks.exports`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from toolgram.export.expressions import (
    Blanks,
    Break,
    Choice,
    Class,
    Expr,
    Forbidden,
    Members,
    Repeat,
    Seq,
    Star,
    Text,
    inside,
    rebuilt,
)


def texts_of(root: Expr) -> list[Text]:
    """Return the free texts of an expression, each once."""
    return [each for each in inside(root) if isinstance(each, Text)]


def closers_of_texts(root: Expr) -> dict[Forbidden, tuple[str, ...]]:
    """Return the closers of texts without a form of their own, for each place."""
    found: dict[Forbidden, dict[str, None]] = {}
    for text in texts_of(root):
        if text.within is None:
            found.setdefault(text.forbidden, {})[text.closer] = None
    return {forbidden: tuple(closers) for forbidden, closers in found.items()}


def changed(root: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """Return an expression with other leaves; shared parts are still shared."""

    @cache
    def made(expr: Expr) -> Expr:
        return rebuilt(expr, made) if isinstance(expr, Seq | Choice | Star | Repeat | Members) else leaf(expr)

    return made(root)


# --- places ------------------------------------------------------------------------------------------


class Places:
    """The places of an expression, and the symbols between them; values and texts without an end are one symbol."""

    def __init__(self) -> None:
        self.edges: list[list[tuple[Expr, int]]] = [[]]
        self.free: list[list[int]] = [[]]  # edges without a symbol

    def new(self) -> int:
        """Return a new place."""
        self.edges.append([])
        self.free.append([])
        return len(self.edges) - 1

    def add(self, expr: Expr, begin: int, end: int) -> None:
        """Add the places of an expression between two others."""
        match expr:
            case Seq() if expr.parts:
                for part in expr.parts[:-1]:
                    here, begin = begin, self.new()
                    self.add(part, here, begin)
                self.add(expr.parts[-1], begin, end)  # directly, so that all members of an object end in one place
            case Seq() | Break():
                self.free[begin].append(end)
            case Blanks():
                self.edges[begin].append((expr, end))
                self.free[begin].append(end)
            case Choice():
                for option in expr.options:
                    self.add(option, begin, end)
            case Star() | Repeat() if isinstance(expr, Star) or not isinstance(expr.body, Class):
                inner = self.new()
                self.free[begin].append(inner)
                self.add(expr.body, inner, inner)
                self.free[inner].append(end)
            case Members():
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

    def ways(self, places: Iterable[int]) -> dict[Expr, set[int]]:
        """Return where each symbol leads from any of the places."""
        found: dict[Expr, set[int]] = {}
        for place in places:
            for symbol, dest in self.edges[place]:
                found.setdefault(symbol, set()).add(dest)
        return found
