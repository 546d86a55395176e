"""How far does a broken value reach?

Strategy: count brackets and skip strings, and believe nothing else.  What a failed call still contains is never read
as a call; it is over when its brackets balance, or, inside a list of calls, at the next comma or bracket of that list.
"""

from __future__ import annotations

import re
from typing import Any

OVER = "over"
MARKER = "marker"
MORE = "more"

_IN_STRING = {'"': re.compile(r'[^"\\]*+').match, "'": re.compile(r"[^'\\]*+").match}


_OPENING = {"}": "{", "]": "[", ")": "("}
MAX_OPEN = 4096


class Wreckage:
    """The rest of a broken value: its open brackets (`stack`), and the `quote` of the string it is in, if any.

    A closing bracket closes everything up to its partner; one without a partner closes nothing. The wreckage is over
    when nothing is open; in a list (`in_list`), before the next separator of that list.
    """

    __slots__ = ("blind", "escaped", "in_list", "python", "quote", "stack")

    def __init__(
        self, stack: str, quote: str = "", in_list: bool = False, python: bool = False, blind: bool = False
    ) -> None:
        self.stack = stack
        self.quote = quote
        self.escaped = False
        self.in_list = in_list
        self.python = python
        self.blind = blind  # quotes mean nothing

    def read(self, text: str, pos: int, find: re.Pattern[str], final: bool) -> tuple[str, int, re.Match[str] | None]:
        """Read on from `pos`. `find` finds the next bracket, quote, comma or marker outside a string.

        Returns why it stopped (OVER, MARKER or MORE), where, and the match of a marker. MORE before the end of the text
        means that a marker may have begun there.
        """
        end = len(text)
        while pos < end:
            if self.quote:
                pos = self._string(text, pos)
                continue
            match = find.search(text, pos)
            if match is None:
                return MORE, end, None
            if match.lastgroup == "partial":
                if not final:
                    return MORE, match.start(), None
                pos = match.start() + 1
                continue
            if match.lastgroup != "bracket":
                return MARKER, match.start(), match
            pos = match.end()
            if self._bracket(match.group()):
                return OVER, (match.start() if self.in_list else pos), None
        return MORE, end, None

    def _string(self, text: str, pos: int) -> int:
        if self.escaped:
            self.escaped = False
            return pos + 1
        match = _IN_STRING[self.quote](text, pos)
        assert match is not None
        pos = match.end()
        if pos < len(text):
            if text[pos] == "\\":
                self.escaped = True
            else:
                self.quote = ""
            pos += 1
        return pos

    def _bracket(self, character: str) -> bool:
        """Take one structural character; True when the wreckage is over with it (in a list: before it)."""
        if self.blind and character in "\"'":
            return False
        if character == '"' or (character == "'" and self.python):
            self.quote = character
        elif character in "{[" or (character == "(" and self.python):
            if len(self.stack) < MAX_OPEN:
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

    def dump(self) -> list[Any]:
        """The state as JSON-able data."""
        return [self.stack, self.quote, self.escaped, self.in_list, self.python, self.blind]

    @classmethod
    def load(cls, data: list[Any]) -> Wreckage:
        """The inverse of `dump`."""
        stack, quote, escaped, in_list, python, blind = data
        wreckage = cls(stack, quote, in_list, python)
        wreckage.escaped, wreckage.blind = escaped, blind
        return wreckage
