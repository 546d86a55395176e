"""The typed pieces that writers produce, and the one function that converts them to text.

Strategy: in every notation alternatives bind weakest. A writer declares what a piece is, and never writes a bracket:
`spelled` does, so no writer can lose what follows an alternative. The tests read the text, and compare its pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Atom:
    """An indivisible piece: a fixed text, a set of characters, the name of a rule, a call of the engine."""

    text: str


@dataclass(frozen=True, slots=True)
class Counted:
    """A piece with `?`, `*`, `+` or a count."""

    body: Piece
    mark: str


@dataclass(frozen=True, slots=True)
class Row:
    """A sequence of pieces; without parts, the empty text."""

    parts: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Either:
    """A choice of pieces."""

    options: tuple[Piece, ...]


Piece: TypeAlias = Atom | Counted | Row | Either

EMPTY_ROW = Row(())
_STRENGTH = {Either: 0, Row: 1, Counted: 2, Atom: 3}


def row(*parts: Piece) -> Piece:
    """Return a sequence of pieces; nested rows are joined with it."""
    flat = [each for part in parts for each in (part.parts if isinstance(part, Row) else (part,))]
    return flat[0] if len(flat) == 1 else Row(tuple(flat))


def either(*options: Piece) -> Piece:
    """Return a choice of pieces; nested choices are joined with it."""
    flat = [each for option in options for each in (option.options if isinstance(option, Either) else (option,))]
    return flat[0] if len(flat) == 1 else Either(tuple(flat))


def spelled(piece: Piece) -> str:
    """Return the text of a piece."""
    match piece:
        case Atom():
            return piece.text
        case Counted():
            return _within(piece.body, 3) + piece.mark
        case Row():
            return " ".join(_within(part, 2) for part in piece.parts) or '""'
        case Either():
            return " | ".join(_within(option, 1) for option in piece.options)


def _within(piece: Piece, needed: int) -> str:
    """Return the text of a piece inside another one, in brackets if it binds weaker than needed."""
    text = spelled(piece)
    strength = 3 if piece == EMPTY_ROW else _STRENGTH[type(piece)]
    return text if strength >= needed else f"({text})"
