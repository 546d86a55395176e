"""Code in text: whether the text so far has opened an inline code span or a code fence.

Strategy: for the current line, keep the parity of its backticks and the length of their last run. At the end of a line,
a run of three or more without a backtick after it opens a fence, or closes the last one if nothing follows it. A fence
with an info string inside another one is nested, as in a README that a model shows. Each character is read once, in
pieces of any size. As long as the line has no backtick, only a backtick matters, so most pieces need no reading.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from toolgram.limits import LEAST_FENCE, LONGEST_QUOTED_CALL, MOST_FENCES

SPAN, FENCE = "span", "fence"
_NONE: list[str] = []  # if there is no quote
_pieces = re.compile(r"`+|\n|[^`\n]+").findall


class CodeMarks:
    """The code that text has opened, and a quote: the text of a span since a call opened in it."""

    __slots__ = (
        "_fences", "_info", "_is_odd", "_run", "_span", "_ticks", "is_blank", "length", "quote",
    )  # fmt: skip

    def __init__(self) -> None:
        self.is_blank = True  # the text has only blanks so far
        self.quote = _NONE  # the text after the opening of a call in a span,
        self.length = 0  # and how many characters were read since then
        self._span = 0  # number of backticks of the span in which a call was opened; 0 if there is none
        self._fences: tuple[int, ...] = ()  # number of backticks of each open fence
        self._is_odd = False  # the line has an odd number of backticks
        self._ticks = False  # the last character is a backtick
        self._run = 0  # number of backticks in the last run on the line
        self._info = False  # other characters than blanks follow that run, or are on the line

    def copy(self) -> CodeMarks:
        """Return an independent copy of the marks."""
        made = CodeMarks()
        made.load(self.dump())
        return made

    def dump(self) -> list[Any]:
        """Return the marks as JSON-able data."""
        flags = [self.is_blank, self._is_odd, self._ticks, self._info]
        return ["".join(self.quote), *flags, self.length, self._span, self._run, *self._fences]

    def load(self, data: Sequence[Any]) -> None:
        """Load what `dump` returned."""
        quote, self.is_blank, self._is_odd, self._ticks, self._info, *counts = data
        self.length, self._span, self._run, *fences = counts
        self.quote = [quote] if quote or self.quoted else _NONE
        self._fences = (*fences,)

    @property
    def quoted(self) -> bool:
        """True if a call was opened in the span. Such a span ends at a backtick or an empty line."""
        return self._span > 0

    @property
    def is_live(self) -> bool:
        """True if text without a backtick can change anything except `is_blank`."""
        return self._run > 0 or self.quoted

    @property
    def is_opened(self) -> bool:
        """True if the last character opens a span."""
        return self._ticks and self._is_odd and self.place == SPAN

    @property
    def place(self) -> str:
        """Where the next character is: SPAN, FENCE, or "" for neither."""
        if self.quoted and not self._closes_span:
            return SPAN
        if self._fences:
            return FENCE if len(self._fences) > self._closes_fence else ""
        return SPAN if self._is_odd else ""

    def begin_quote(self) -> None:
        """Begin a quote: a call opens in the span."""
        if not self.quoted:
            self.quote = []
            self.length, self._span, self._ticks = 0, self._run, False

    def take_quote(self) -> str:
        """Return the text of a quote that has ended."""
        text, self.quote = "".join(self.quote), _NONE
        return text.rstrip("`")

    def read(self, text: str) -> None:
        """Read the next characters of the text."""
        self.is_blank = self.is_blank and (not text or text.isspace())
        if not self.is_live and "`" not in text:
            return
        for piece in _pieces(text):
            if piece[0] != "`" and self._closes_span:
                self._span, self._is_odd = 0, False
            if self.quoted and self.length < LONGEST_QUOTED_CALL:
                self.quote.append(piece)
            self.length += len(piece)
            if piece == "\n":
                self._end_line()
            elif piece[0] == "`":
                self._add_ticks(len(piece))
            else:
                self._ticks = False
                self._info |= not piece.isspace()

    def _add_ticks(self, count: int) -> None:
        self._run = self._run + count if self._ticks else count
        self._is_odd ^= bool(count % 2)
        self._ticks, self._info = True, False

    def _end_line(self) -> None:
        if self._run >= LEAST_FENCE:
            if not self._fences or self._info:
                self._fences = (*self._fences, self._run)[:MOST_FENCES]
            elif self._closes_fence:
                self._fences = self._fences[:-1]
        if not self._info and self._run == 0:
            self._span = 0
        self._is_odd = self._ticks = self._info = False
        self._run = 0

    @property
    def _closes_span(self) -> bool:
        return self.quoted and self._ticks and self._run == self._span

    @property
    def _closes_fence(self) -> bool:
        return bool(self._fences) and not self._info and self._run >= self._fences[-1]
