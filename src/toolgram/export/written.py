"""The pieces of text that writers produce, and how they become longer ones.

Strategy: in every notation alternatives bind weakest. A piece knows how strongly it binds, and only the functions here
write brackets, so no writer can lose what follows an alternative.
"""

from __future__ import annotations

from typing import NamedTuple

_CHOICE, _ROW, _COUNTED, _ATOM = range(4)  # from weak to strong


class Piece(NamedTuple):
    """A piece. By default it is an indivisible one: a fixed text, a set of characters, the name of a rule."""

    text: str
    strength: int = _ATOM


EMPTY_ROW = Piece('""')


def counted(body: Piece, mark: str) -> Piece:
    """Return a piece with `?`, `*`, `+` or a count."""
    return Piece(f"({body.text}){mark}" if body.strength < _ATOM else body.text + mark, _COUNTED)


def row(*parts: Piece) -> Piece:
    """Return a sequence of pieces; without parts, the empty text."""
    found = [part for part in parts if part is not EMPTY_ROW]
    if len(found) < 2:
        return found[0] if found else EMPTY_ROW
    return Piece(" ".join([f"({part.text})" if part.strength == _CHOICE else part.text for part in found]), _ROW)


def either(*options: Piece) -> Piece:
    """Return a choice of pieces."""
    return options[0] if len(options) == 1 else Piece(" | ".join([option.text for option in options]), _CHOICE)


def optional(*options: Piece) -> Piece:
    """Return a choice of pieces as a part; it is marked if one of them is empty."""
    rest = [option for option in options if option is not EMPTY_ROW]
    return counted(either(*rest), "?") if len(rest) < len(options) else either(*rest)


def joined(*parts: Piece) -> Piece:
    """Return a sequence of pieces, in which fixed texts that meet become one."""
    found = [part for part in parts if part is not EMPTY_ROW]
    if len(found) < 2:
        return row(*found)
    whole = ""
    for part in found:
        text = f"({part.text})" if part.strength == _CHOICE else part.text
        meet = whole[-1:] == '"' == text[0]
        whole = whole[:-1] + text[1:] if meet else f"{whole} {text}" if whole else text
    return Piece(whole, _ROW)
