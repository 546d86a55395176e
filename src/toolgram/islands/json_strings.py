r"""JSON written as a JSON string: `"{\"x\": 1}"`, whose inside is wanted.

Strategy: one scanner walks the string as it stands, its escapes are decoded as they complete, and a second scanner
checks the decoded text.  Only an unfinished escape waits.  Escaped
surrogates stay escapes, in the inner string as in the outer one: a pair needs no second look, and half of one no
character that cannot be encoded.
"""

from __future__ import annotations

import json
import re
from typing import Any

from toolgram.islands import OpenBrackets, checked
from toolgram.islands.json_values import BROKEN, DONE, FIRST_KEY, JsonScanner

_PIECE = re.compile(r'[^"\\]+|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt]').match
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]").match
_BLANKS = " \t\r\n"
_UNFINISHED = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z").match
_BEGUN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?").match


class JsonStringScanner:
    """The inside of a JSON string (its opening quote already read) that itself holds a JSON object.

    `out` is the decoded JSON of the last `read`, `started` says that an object has certainly begun, `done` that the
    closing quote was read after a whole object, `broken` that the character at the returned position does not fit.
    """

    __slots__ = ("broken", "done", "held", "inner", "mark", "out", "started")

    def __init__(self) -> None:
        self.inner = JsonScanner()
        self.held = ""  # source of an unfinished escape
        self.out = ""
        self.mark = 0  # after the last character that produced some of `out`; before `pos` if all of them were held
        self.started = False
        self.done = False
        self.broken = False

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos`; returns the new position. Characters of an unfinished escape count as read."""
        base = pos - len(self.held)
        text = self.held + text[pos:]
        self.held = ""
        at = produced = 0
        pieces: list[str] = []
        while at < len(text):
            if text[at] == '"':
                self.done = self.inner.done
                self.broken = not self.done
                at += 1 if self.done else 0
                break
            if _UNFINISHED(text, at):
                self.held = text[at:]
                at = len(text)
                break
            match = _PIECE(text, at)
            if match is None:
                begun = _BEGUN(text, at)
                at = begun.end() if begun else at
                self.broken = True
                break
            piece = match.group()
            plain = piece[0] != "\\"
            kept = plain or (self.inner.in_plain_string and _SURROGATE(piece) is not None)
            decoded = piece if kept else _decode(piece)
            fitting, productive = self._take(decoded, pieces)
            if productive:
                produced = at + productive if plain else match.end()
            if fitting < len(decoded):
                at = at + fitting if plain else match.end()
                self.broken = True
                break
            at = match.end()
        self.out = "".join(pieces)
        self.mark = base + produced if pieces else pos
        return max(base + at, pos)

    def _take(self, decoded: str, pieces: list[str]) -> tuple[int, int]:
        """Check decoded text with the inner scanner; returns how many of its characters fit, and how many produced."""
        inner = self.inner
        end = 0
        if not inner.done:
            blank = len(decoded) - len(decoded.lstrip(_BLANKS))
            begun = bool(inner.stack)
            if not begun and decoded[blank : blank + 1] not in ("", "{"):
                return blank, 0
            inner.run(decoded, 0, 0)
            end = inner.end
            pieces.append(inner.out)
            if inner.state != DONE:
                self.started |= inner.state not in (FIRST_KEY, BROKEN) and bool(inner.stack)
                return end, end
            self.started = True
        return len(decoded) - len(decoded[end:].lstrip(_BLANKS)), end

    def open_brackets(self) -> OpenBrackets:
        """The string itself; what is open in its text is no bracket outside it."""
        return OpenBrackets("", '"')

    def dump(self) -> list[Any]:
        """The state as JSON-able data."""
        return [self.inner.dump(), self.held, self.started]

    @classmethod
    def load(cls, data: Any) -> JsonStringScanner:
        """The inverse of `dump`. Raises ValueError for what is none."""
        scanner = cls()
        inner, scanner.held, scanner.started = checked(data, list, str, bool)
        scanner.inner = JsonScanner.load(inner)
        if scanner.held and not _UNFINISHED(scanner.held):
            raise ValueError("no unfinished escape")
        return scanner


def _decode(escape: str) -> str:
    decoded: str = json.loads(f'"{escape}"')
    return decoded
