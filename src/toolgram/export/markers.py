"""Markers that are special tokens of the model: how a fixed text is written with them, and text up to one.

Strategy: a marker is written as its token wherever it stands, in a value as well as around a call.  Where the engine
tells a token from its text, text may spell the marker out; elsewhere it must not contain it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from toolgram.export.expressions import Expr, Forbidden, Seq, Text, Token, seq, with_tokens


@dataclass(frozen=True, slots=True)
class Tokens:
    """The markers that are tokens, with their ids where these are known.

    `as_text` says that the engine reads a token as its text, too.
    """

    ids: tuple[tuple[str, int | None], ...] = ()
    as_text: bool = True

    def written(self, text: str) -> Expr:
        """A fixed text, in which the texts of tokens are tokens."""
        return with_tokens(text, dict(self.ids))

    def is_text(self, marker: str) -> bool:
        """Whether a marker, spelled out in text, is that marker."""
        return self.as_text or all(marker != text for text, _ in self.ids)

    def text_until(self, closer: str, words: Iterable[str], within: Expr | None = None) -> Expr:
        """Free text without some words, up to a marker; `within` is what it must be besides."""
        ending = self.written(closer)
        head = ending.parts[0] if isinstance(ending, Seq) else ending
        if not isinstance(head, Token):
            return Text(Forbidden(tuple(words)), closer, within)
        kept = tuple(each for each in words if self.as_text or not each.startswith(head.text))
        return seq(Text(Forbidden(kept), "", within), ending)


NO_TOKENS = Tokens()
