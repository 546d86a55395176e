"""Text held in pieces, at a cost near that of the text itself.

Deltas can be one character long, and a list entry costs eight times as much. So short pieces at the end are joined when
there are many of them. Long pieces are left alone, which keeps the work linear.
"""

from __future__ import annotations

_MANY = 512  # number of pieces, and characters of a long one


def add_piece(pieces: list[str], text: str) -> None:
    """Append a piece, and join the short ones at the end now and then."""
    if not text:
        return
    pieces.append(text)
    if len(pieces) % _MANY == 0:
        first = len(pieces)
        while first and len(pieces[first - 1]) < _MANY:
            first -= 1
        pieces[first:] = ["".join(pieces[first:])]


def take_pieces(pieces: list[str]) -> str:
    """Return all of the text, and hold nothing any more."""
    text = "".join(pieces)
    pieces.clear()
    return text


def overlap(text: str, at: int, *markers: str) -> int:
    """Return how many characters at the end of a text, from `at` on, may begin a marker."""
    for size in range(min(max(map(len, markers)) - 1, len(text) - at), 0, -1):
        if any(marker.startswith(text[-size:]) for marker in markers):
            return size
    return 0
