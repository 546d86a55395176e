r"""JSON written as a JSON string: `"{\"x\": 1}"`. Its content is the value.

Strategy: one scanner walks the string, its escapes are decoded as they complete, and a second scanner checks the
decoded text. Only an unfinished escape waits. Escaped surrogates remain escapes, in the inner string as in the outer
one: a pair needs no second look, and a lone one never becomes a character that cannot be encoded.

With repairs, the decoded text passes the repairer of JSON, and what is undecided there waits as well. A code fence
around the object is left out, and an empty string is an empty object. The end of the string closes what is open after a
whole value. A quote inside an inner string breaks the value: its end is not known here.
"""

from __future__ import annotations

import json
import re
from typing import Any

from toolgram.islands import OpenBrackets
from toolgram.islands.json_repairs import JsonRepairer
from toolgram.islands.json_table import BROKEN, DONE, FIRST_KEY
from toolgram.islands.json_values import JsonScanner
from toolgram.limits import BLANKS

_PIECE = re.compile(r'[^"\\]+|\\u[0-9a-fA-F]{4}|\\["\\/bfnrt]').match
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]").match
_BLANKS = " \t\r\n"
_UNFINISHED = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z").match
_FENCES = ("```json", "```")
_NOTHING_AROUND = ("", *_FENCES)
# What follows a string that ends before its object is whole: a blank, a closing bracket, or a comma and a key.
_ends = re.compile(rf"[}}\] \t\r\n]|,{BLANKS}[\"'A-Za-z_]").match
_may_end = re.compile(rf"(?:,{BLANKS})?\Z").match
_BEGUN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?").match


class JsonStringScanner:
    """The inside of a JSON string (its opening quote already read) that holds a JSON object.

    `out` is the decoded JSON of the last `read`. `started`: an object has certainly begun. `done`: the closing quote
    was read after a whole object. `broken`: the character at the returned position does not fit. With `repairs`, a read
    ends after a repair, and `note` is the repaired text; a quote that ends the string before its object is whole
    `waits` for the next character.
    """

    __slots__ = (
        "_around", "_parts", "_produced", "_repairer", "broken", "done", "held", "inner", "mark", "note",
        "out", "started", "waits",
    )  # fmt: skip

    def __init__(self, repairs: bool = False) -> None:
        self.inner = JsonScanner()
        self.inner.accept_controls()
        self.note = ""
        self._repairer = JsonRepairer() if repairs else None
        self._around = ""  # of a code fence, before the object or after it
        self.held = ""  # source of an unfinished escape
        self._parts: list[str] = []  # written by the last `read`,
        self._produced = 0  # and the position in its text after the last character that wrote something
        self.out = ""
        self.mark = 0  # after the last character that produced some of `out`; before `pos` if all of them were held
        self.started = False
        self.done = False
        self.broken = False
        self.waits = False

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos` and return the new position. Characters of an unfinished escape count as read."""
        base = pos - len(self.held)
        text = self.held + text[pos:]
        self.held = self.note = ""
        self.waits = False
        self._parts, self._produced = [], 0
        at = 0
        while at < len(text) and not (self.note or self.broken or self.done or self.waits):
            at = self._unit(text, at, final)
        if base + at < pos and not self.broken:
            self.held = text[at : pos - base]  # an escape after the repair is still to be read
        self.out = "".join(self._parts)
        self.mark = base + self._produced if self._parts else pos
        return max(base + at, pos)

    # Each reader below returns the position after what it has read.

    def _unit(self, text: str, at: int, final: bool) -> int:
        if text[at] == '"':
            return self._quote(text, at, final)
        if _UNFINISHED(text, at):
            self.held = text[at:]
            return len(text)
        match = _PIECE(text, at)
        if match is not None:
            return self._piece(match.group(), at)
        if self._repairer is not None and text[at + 1] >= " ":
            return self._odd_backslash(text, at)
        self.broken = True
        return _end_of_escape(text, at)

    def _quote(self, text: str, at: int, final: bool) -> int:
        """Read the end of the string, or a quote too many."""
        if self._repairer is not None and not self.inner.done:
            undecided = _may_end(text, at + 1) is not None
            self.waits = undecided and not final
            if self.waits:
                return at
            written, ends = len(self._parts), undecided or _ends(text, at + 1) is not None
            if ends and (self._close() if self.inner.stack else self._is_empty()):
                self._produced = at + 1
            elif len(self._parts) > written:
                self._produced = at  # what was open before the quote
        self.done = self.inner.done and self._around in _NOTHING_AROUND
        self.broken = not self.done
        return at + self.done

    def _is_empty(self) -> bool:
        """Make an empty string an empty object. Return whether the string is empty."""
        if self._around:
            return False
        self.note = '"'
        return self._write("{}")

    def _odd_backslash(self, text: str, at: int) -> int:
        """Read a backslash that begins no escape: it escapes a single quote, or is itself."""
        quoted = text[at + 1] == "'"
        fitting, productive = self._repair("'" if quoted else "\\")
        end = at + (2 if quoted and fitting else 1)
        if productive >= 0:
            self._produced = end
        if quoted:
            self.note = "\\'"
        self.broken = not fitting
        return end if fitting else _end_of_escape(text, at)  # as far as it would wait for more

    def _piece(self, piece: str, at: int) -> int:
        plain, end = piece[0] != "\\", at + len(piece)
        kept = plain or (self.inner.in_plain_string and _SURROGATE(piece) is not None)
        decoded = piece if kept else _decode(piece)
        take = self._take if self._repairer is None or (kept and not plain) else self._repair
        fitting, productive = take(decoded)
        if productive >= 0:
            self._produced = at + productive if plain else end if fitting else at
        if fitting == len(decoded):
            return end
        self.broken = not self.note
        return at + fitting if plain or self.note else end

    def _take(self, decoded: str) -> tuple[int, int]:
        """Check decoded text with the inner scanner. Return how many characters fit, and how many produced output."""
        inner = self.inner
        end = 0
        if not inner.done:
            blank = len(decoded) - len(decoded.lstrip(_BLANKS))
            begun = bool(inner.stack)
            if not begun and decoded[blank : blank + 1] not in ("", "{"):
                return blank, -1
            inner.run(decoded, 0, 0)
            end = inner.end
            self._parts.append(inner.out)
            if inner.state != DONE:
                self.started |= inner.state not in (FIRST_KEY, BROKEN) and bool(inner.stack)
                return end, end if inner.out else -1
            self.started = True
        return len(decoded) - len(decoded[end:].lstrip(_BLANKS)), end or -1

    def _repair(self, decoded: str) -> tuple[int, int]:
        """Check decoded text through the repairer, up to the first repair. Return the same numbers as `_take`."""
        inner, repairer, productive = self.inner, self._repairer, -1
        assert repairer is not None
        if inner.in_plain_string and repairer.passes(decoded):
            return self._take(decoded)
        at = 0
        while at < len(decoded) and not self.note:
            character = decoded[at]
            if inner.stack:
                taken = repairer.read(character, inner)
                if repairer.damaged:
                    break
                if repairer.out and self._write(repairer.out):
                    productive = at + taken
                self.note = repairer.note
                if inner.broken or repairer.broken:
                    break
                at += taken
                continue
            if not self._around_object(character):
                break
            at += 1
            productive = at if character == "{" else productive
        return at, productive

    def _around_object(self, character: str) -> bool:
        """Read a character that the repairer does not see. Return whether it fits."""
        if self.inner.done or character != "{":
            return self._beside(character)
        if self._around not in _NOTHING_AROUND:
            return False
        self._around = ""
        return self._write("{")

    def _write(self, written: str) -> bool:
        """Pass JSON to the scanner and on. Return whether some of it fits."""
        inner = self.inner
        inner.run(written, 0, 0)
        self._parts.append(inner.out)
        self.started |= inner.state not in (FIRST_KEY, BROKEN) and (bool(inner.stack) or inner.done)
        return inner.out != ""

    def _close(self) -> bool:
        """Close what is open after a whole value, at the end of the string. Return whether anything was closed."""
        inner, repairer = self.inner, self._repairer
        assert repairer is not None
        if inner.stack and repairer.at_quote:
            repairer.end_string()
            self._write(repairer.out)
        if not (inner.stack and repairer.idle and inner.is_after_value):
            return False
        self.note = '"'
        return self._write(inner.closers)

    def _beside(self, character: str) -> bool:
        """Read a blank, part of a code fence, or a surplus bracket beside the object. Return whether it fits."""
        if character in _BLANKS:
            return self._around in _NOTHING_AROUND
        after = self.inner.done
        if after and character in "}]" and not self._around:
            self.note = character  # it closes nothing
            return True
        self._around += character
        if not any(fence.startswith(self._around) for fence in _FENCES[after:]):
            return False
        if self._around == "```" and not after:
            self.note = self._around  # the fence after the object belongs to it
        return True

    def open_brackets(self) -> OpenBrackets:
        """Return the string itself: brackets in its text do not count outside."""
        return OpenBrackets("", '"')

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        repairer = self._repairer.dump() if self._repairer is not None else None
        return [self.inner.dump(), self.held, self.started, self._around, repairer]

    @classmethod
    def load(cls, data: Any) -> JsonStringScanner:
        """Load what `dump` returned."""
        scanner = cls()
        inner, scanner.held, scanner.started, scanner._around, repairer = data
        scanner.inner = JsonScanner.load(inner)
        scanner._repairer = JsonRepairer.load(repairer, JsonScanner.load) if repairer is not None else None
        return scanner


def _end_of_escape(text: str, at: int) -> int:
    match = _BEGUN(text, at)
    assert match is not None
    return match.end()


def _decode(escape: str) -> str:
    decoded: str = json.loads(f'"{escape}"')
    return decoded
