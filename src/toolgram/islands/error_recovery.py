"""Error recovery: find the end of a broken value.

Strategy: count brackets and skip strings, and look at nothing else. Nothing inside a failed call is read as a call. The
value is over when its brackets balance or, inside a list of calls, at the next comma or bracket of that list.
"""

from __future__ import annotations

import re
from typing import Any, cast

from toolgram.islands import OpenBrackets
from toolgram.limits import BLANKS, MAX_OPEN_BRACKETS
from toolgram.program.expressions import NOWHERE, FindMatch

OVER = "over"
MARKER = "marker"
MORE = "more"

_IN_STRING = {'"': re.compile(r'[^"\\]*+').match, "'": re.compile(r"[^'\\]*+").match}
_after_comma = re.compile(rf"{BLANKS}(?:,{BLANKS}([\"'])?)?").match
_OPENING = {"}": "{", "]": "[", ")": "("}


class ErrorRecovery:
    """The rest of a broken value: its open brackets (`stack`), and the `quote` of the open string, if any.

    A closing bracket closes everything up to its partner; without a partner, it closes nothing. If a member follows,
    the value is not over, and the bracket closes the innermost one. `reason` says why the
    last `read` stopped: OVER, MARKER (the one in `match`), or MORE.
    """

    __slots__ = (
        "_escaped", "_quotes_count", "in_list", "match", "python", "quote", "reason", "search",
        "single_quotes", "stack",
    )  # fmt: skip

    def __init__(self, opened: OpenBrackets, quotes_count: bool = True) -> None:
        self.stack, self.quote, self.in_list, self.python, self.single_quotes = opened
        self._quotes_count = quotes_count
        self._escaped = False
        self.search: FindMatch = NOWHERE  # for the next bracket, quote, comma or marker outside a string
        self.reason = MORE
        self.match: re.Match[str] | None = None

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos`. MORE before the end of the text means that a marker may have begun there."""
        end = len(text)
        self.reason, self.match = MORE, None
        while pos < end:
            if self.quote:
                pos = self._string(text, pos)
                continue
            match = self.search(text, pos)
            if match is None:
                return end
            if match.lastgroup == "partial":
                if not final:
                    return match.start()
                pos = match.start() + 1
                continue
            if match.lastgroup != "bracket":
                self.reason, self.match = MARKER, match
                return match.start()
            over = self._is_over(match, final)
            if over is None:
                return match.start()
            pos = match.end()
            if over:
                self.reason = OVER
                return match.start() if self.in_list else pos
        return end

    def _string(self, text: str, pos: int) -> int:
        if self._escaped:
            self._escaped = False
            return pos + 1
        pos = _IN_STRING[self.quote](text, pos).end()  # type: ignore[union-attr]
        if pos < len(text):
            if text[pos] == "\\":
                self._escaped = True
            else:
                self.quote = ""
            pos += 1
        return pos

    def _is_over(self, match: re.Match[str], final: bool) -> bool | None:
        """Read a structural character. Return whether the value is over with it; None if what follows decides."""
        opening = _OPENING.get(match.group(), "")
        if opening and len(self.stack) > 1 and self.stack.rfind(opening) == 0:
            after = cast("re.Match[str]", _after_comma(match.string, match.end()))
            if after.end() == len(match.string) and not final:
                return None
            if after[1]:
                self.stack = self.stack[:-1]
                return False
        return self._bracket(match.group())

    def _bracket(self, character: str) -> bool:
        """Read a structural character; return True if the value is over with it (in a list: before it)."""
        if not self._quotes_count and character in "\"'":
            return False
        if character == '"' or (character == "'" and (self.python or self.single_quotes)):
            self.quote = character
        elif character in "{[" or (character == "(" and self.python):
            if len(self.stack) < MAX_OPEN_BRACKETS:
                self.stack += character
        elif character in "}]" or (character == ")" and self.python):
            if self.in_list and len(self.stack) <= 1:
                return character == "]"
            partner = self.stack.rfind(_OPENING[character], 1 if self.in_list else 0)
            if partner >= 0:
                self.stack = self.stack[:partner]
            return not self.in_list and not self.stack
        elif character == "," and self.in_list:
            return len(self.stack) <= 1
        return False

    def open_brackets(self) -> OpenBrackets:
        """Return what is open."""
        return OpenBrackets(self.stack, self.quote, self.in_list, self.python, self.single_quotes)

    def add(self, inner: OpenBrackets) -> None:
        """Add the brackets and the string of an inner value that failed."""
        self.stack += inner.stack
        self.quote = inner.quote

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        return [*self.open_brackets(), self._quotes_count, self._escaped]

    @classmethod
    def load(cls, data: Any) -> ErrorRecovery:
        """Load what `dump` returned."""
        *opened, quotes_count, escaped = data
        recovery = cls(OpenBrackets(*opened), quotes_count)
        recovery._escaped = escaped
        return recovery
