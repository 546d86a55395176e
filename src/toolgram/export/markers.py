"""Markers that are special tokens of the model: how a fixed text is written with them, and text up to one.

Strategy: a marker is written as its token wherever it occurs, in a value as well as around a call. If the engine
distinguishes a token from its text, text may contain the marker's characters; otherwise it must not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from toolgram.export.expressions import Expr, Forbidden, Lit, Text, Token, seq, split


@dataclass(frozen=True, slots=True)
class Tokens:
    """The markers that are tokens, with their ids if these are known.

    `as_text` means that the engine also reads a token as its text.
    """

    ids: tuple[tuple[str, int | None], ...] = ()
    as_text: bool = True

    @lru_cache(maxsize=1024)  # noqa: B019, because few are made
    def written(self, text: str) -> Expr:
        """Return a fixed text in which the texts of tokens are tokens."""
        ids = dict(self.ids)
        inside = sorted((token for token in ids if token in text), key=len, reverse=True)
        if not inside:
            return Lit(text)
        parts = re.split(f"({'|'.join(map(re.escape, inside))})", text)
        return seq(*(Token(part, ids[part]) if part in ids else Lit(part) for part in parts))

    def is_text(self, marker: str) -> bool:
        """Return whether a marker's characters in a text are read as that marker."""
        return self.as_text or all(marker != text for text, _ in self.ids)

    def text_until(self, closer: str, words: Iterable[str], within: Expr | None = None) -> Expr:
        """Return free text without some words, up to a marker; `within` is an expression that it must also match."""
        ending = self.written(closer)
        head, _ = split(ending)
        if not isinstance(head, Token):
            return Text(Forbidden(tuple(words)), closer, within)
        kept = tuple(each for each in words if self.as_text or not each.startswith(head.text))
        return seq(Text(Forbidden(kept), "", within), ending)


NO_TOKENS = Tokens()
