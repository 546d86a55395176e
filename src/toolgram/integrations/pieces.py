"""Tokens and their text: a server's deltas and ids as the pieces that a parser takes.

Strategy: a server may hold back text (half a character, a possible stop string) whose id it already sent, so ids wait
for their text. They are decoded if a special token is among them. If the decoded text differs from the server's,
nothing is known, and the parser gets text and ids as they came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

from toolgram.limits import MOST_WAITING_TOKENS
from toolgram.runtime.special_tokens import Piece

NO_TOKEN = -1  # the id of text that is not a special token


class Coming:
    """Pieces whose text has not come yet."""

    __slots__ = ("_pieces",)

    def __init__(self, pieces: Sequence[Piece] = ()) -> None:
        self._pieces = deque(pieces)

    def add(self, text: str, token_id: int) -> None:
        """Await the text of one more token."""
        self._pieces.append((text, token_id))

    def take(self, size: int) -> list[Piece]:
        """Take `size` characters; a piece may be split."""
        taken: list[Piece] = []
        while self._pieces and (size or not self._pieces[0][0]):
            text, token_id = self._pieces.popleft()
            taken.append((text[:size], token_id))
            if len(text) > size:
                self._pieces.appendleft((text[size:], token_id))
            size -= len(taken[-1][0])
        return taken


class TokenText:
    """The ids and the text of one output. `decode` returns the text of ids, `by_id` has the special tokens."""

    __slots__ = ("_before", "_by_id", "_come", "_decode", "_ids", "_special", "at_once")

    def __init__(self, by_id: Mapping[int, str], decode: Callable[[Sequence[int]], str]) -> None:
        self._by_id, self._decode = by_id, decode
        self.at_once = False  # the server sends the text of a whole character with its last id
        self._before: list[int] = []  # the last special token whose text has come,
        self._ids: list[int] = []  # the ids after it,
        self._special: list[int] = []  # the places of special tokens among them,
        self._come: list[str] = []  # and the text after it

    def cut(self, delta: str, token_ids: Sequence[int]) -> list[Piece] | None:
        """Return the pieces of a delta, or None if the ids add nothing to the text or do not match it."""
        if not self._by_id.keys().isdisjoint(token_ids):
            if self._is_one_marker(delta, token_ids):
                self._before, self._ids, self._come = [token_ids[0]], [], []
                return [(delta, token_ids[0])]
            known = len(self._ids)
            self._special += [known + at for at, token_id in enumerate(token_ids) if token_id in self._by_id]
        self._ids += token_ids
        if not self._special:
            self._come.append(delta)
            if len(self._ids) > MOST_WAITING_TOKENS:
                self.forget()
            return None
        come, decoded = "".join(self._come), self._decoded()
        left_out = [(text if token_id == NO_TOKEN else "", token_id) for text, token_id in decoded]
        for pieces in (decoded, left_out):  # a server may leave out special tokens
            if "".join([text for text, _ in pieces]).startswith(come + delta):
                coming = Coming(pieces)
                coming.take(len(come))
                self._go_on(come + delta, pieces)
                return coming.take(len(delta))
        self.forget()
        return None

    def _is_one_marker(self, delta: str, token_ids: Sequence[int]) -> bool:
        """Return whether a delta is one special token, and certainly its text: nothing before it is held back."""
        waits = self._special or (self._come and not self._come[-1])
        return self.at_once and not waits and len(token_ids) == 1 and self._by_id[token_ids[0]] == delta

    def forget(self) -> None:
        """Start again: the text of the ids is unknown."""
        self._before = [token_id for token_id in self._ids[-1:] if token_id in self._by_id]
        self._ids, self._special, self._come = [], [], []

    def _decoded(self) -> list[Piece]:
        """Return the pieces of the ids: each special token, and the text between them."""
        pieces, before, begin = [], self._before, 0
        for at in self._special:
            token_id = self._ids[at]
            pieces += [(self._text_of(before, self._ids[begin:at]), NO_TOKEN), (self._by_id[token_id], token_id)]
            before, begin = [token_id], at + 1
        return [*pieces, (self._text_of(before, self._ids[begin:]), NO_TOKEN)]

    def _text_of(self, before: list[int], token_ids: list[int]) -> str:
        """Return the text of ids after a special token; some tokenizers omit a leading blank otherwise."""
        if not token_ids:
            return ""
        return self._decode([*before, *token_ids]).removeprefix("".join(self._by_id[token_id] for token_id in before))

    def _go_on(self, come: str, pieces: Sequence[Piece]) -> None:
        """Forget the special tokens whose text has come, and everything before them."""
        size, passed, count = 0, 0, 0
        for text, token_id in pieces:
            size += len(text)
            if token_id != NO_TOKEN and size <= len(come):
                passed, count = size, count + 1
        self._come = [come[passed:]]
        if count:
            last = self._special[count - 1] + 1
            self._before, self._ids = [self._ids[last - 1]], self._ids[last:]
            self._special = [at - last for at in self._special[count:]]
