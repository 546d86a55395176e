"""A literal between markers with one local, decidable mistake.

Strategy: the scanner of literals reads JSON and Python, and breaks at anything else. Only then do the open brackets and
the undecided characters go to a scanner of JSON with a repairer in front of it, which reads the rest. So a clean
literal costs nothing, and the repairs are those of all JSON.

For that, `LiteralScanner` leaves two things undecided: a quote that ends a string, until the next character may follow
a string, and a key without quotes. JSON has no tuples, so nothing is repaired inside one.

A marker ends the literal. Then what is open after a whole value is closed; brackets after the literal are left out.
A bracket that does not close the innermost one has one reading only if a single one is missing, or `}` is written for
`]`; in an object it may be a list whose opening bracket was lost, as after a comma. Then the literal is broken.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from toolgram.islands.json_repairs import JsonRepairer
from toolgram.islands.json_table import (
    AFTER_ITEM,
    AFTER_MEMBER,
    COLON,
    DONE,
    FIRST_ITEM,
    FIRST_KEY,
    ITEM,
    ITEM_STRING,
    KEY_STRING,
    MEMBER_STRING,
    MEMBER_VALUE,
)
from toolgram.islands.json_values import JsonScanner
from toolgram.islands.python_literals import READERS, PythonScanner
from toolgram.limits import MOST_BLANKS

_BLANKS = " \t\r\n"
_ENDS_STRING = ",:)]}"
_AFTER = " \t\r\n}]"
FENCE = 3  # backticks
# States of the scanner of literals in which nothing is held, and the matching states of a scanner of JSON.
_PLACES = {"value": MEMBER_VALUE, "colon": COLON, "after": 0}
_KEY_BEGINS = re.compile(r"[ \t\r\n\f]*+[A-Za-z_$]").match


class LiteralScanner(PythonScanner):
    """The scanner of one literal, which breaks at an undecided quote and at a key without quotes."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        self._readers = _READERS
        self.alone = True

    # Undecided: a key without quotes, a minus, a closing quote.

    def _item(self, text: str, pos: int) -> int:
        if self._stack[-1] == "{" and _KEY_BEGINS(text, pos):
            return self._unfit(text, pos)
        return super()._item(text, pos)

    def _sign(self, text: str, pos: int) -> int:
        if text[pos] != "-":
            return self._number(text, pos)
        self._state, self._held = "minus", "-"
        return pos + 1

    def _minus(self, text: str, pos: int) -> int:
        if not (text[pos].isdecimal() or text[pos] == "."):
            self.broken = True
            return pos
        self._parts.append("-")
        self._state, self._held = "sign", ""
        return pos

    def _escape(self, text: str, pos: int) -> int:
        end = super()._escape(text, pos)
        if self.broken:
            self._held += text[pos:end]
        return end

    def _close_string(self) -> None:
        if self._state == "opening":
            self._quote = self._held[0]
        self._state, self._held = "closed", self._quote

    def _closed(self, text: str, pos: int) -> int:
        char = text[pos]
        if char in _BLANKS and len(self._held) <= MOST_BLANKS:
            self._held += char
            return pos + 1
        if char in _ENDS_STRING or char in _BLANKS:
            self._held = self._quote = ""
            self._parts.append('"')
            self._state = self._then
        else:
            self.broken = True
        return pos

    def _close(self) -> None:
        after_comma = self._lead == ", "
        super()._close()
        self._held = "," * after_comma  # for `rest`

    def place(self) -> tuple[str, int, str] | None:
        """Return the open brackets, the state of a JSON scanner, and the undecided text; None if JSON has no such
        state."""
        frames, is_key = self._stack.removeprefix("k"), self._then == "colon"
        if frames.strip("{["):
            return None
        in_map, state, held = frames[-1:] == "{", self._state, self._held
        after = (AFTER_MEMBER if in_map else AFTER_ITEM) if frames else DONE
        if state == "item":
            held = "," if self._lead == ", " else ""
            place = after if held else FIRST_KEY if in_map else FIRST_ITEM
        elif state in ("closed", "escape") and len(self._quote) == 1:
            place = KEY_STRING if is_key else MEMBER_STRING if in_map else ITEM_STRING
        elif state in ("word", "minus") and not is_key:
            place = MEMBER_VALUE if in_map else ITEM
        elif state in _PLACES:
            place, held = _PLACES[state] or after, ""
        else:
            return None
        return frames, place, held

    def rest(self, fence: int) -> RepairedLiteral | None:
        """Return a reader of the rest that has read the undecided characters, or None if JSON has no such place.
        `fence` is how many backticks may come after the literal."""
        found = self.place()
        if found is None:
            return None
        frames, place, held = found
        scanner = JsonScanner()
        scanner.accept_controls()
        scanner.stack, scanner.state = list(frames), place
        rest = RepairedLiteral(scanner, JsonRepairer(self._quote[:1] or '"'), fence, self._held == ",")
        written = []
        for character in held:
            rest.read(character)
            written.append(rest.out)
        rest.out = "".join(written)
        return rest


def lacks_one(brackets: str, closers: str) -> bool:
    """Return whether these are the closers without the first one, or with a brace instead of its bracket."""
    return brackets in (closers[1:], "}" + closers[1:])


class RepairedLiteral:
    """The rest of a literal, read through the repairer one character at a time. `out` is the JSON that the last
    character made certain, `broken`: it does not fit. `closers` are brackets that only the marker closed."""

    __slots__ = ("_comma", "_crossed", "_fence", "_scanner", "broken", "closers", "out", "repairer")

    def __init__(self, scanner: JsonScanner, repairer: JsonRepairer, fence: int, comma: bool, cross: str = "") -> None:
        self._scanner, self.repairer = scanner, repairer
        self._fence = fence
        self._comma = comma  # the last bracket came after one
        self._crossed = cross  # closing brackets, the first of which does not match the innermost open one
        self.out = self.closers = ""
        self.broken = False

    def read(self, character: str) -> None:
        """Read a character."""
        written: list[str] = []
        taken = False
        while not (taken or self.broken):
            if self._scanner.done:
                self._after_literal(character)
                break
            if self._crosses(character):
                break
            taken = self.repairer.read(character, self._scanner)
            self._comma = self.repairer.note[:1] == "," or (self._comma and character in _AFTER)
            self.broken = self.repairer.broken
            if self.repairer.out and not self.broken:
                written.append(self._write(self.repairer.out))
        self.out = "".join(written)

    def _crosses(self, character: str) -> bool:
        """Return whether a closing bracket matches an outer one. Then only brackets and the final marker may follow."""
        scanner = self._scanner
        if self._crossed or self.repairer.crosses(character, scanner):
            self._crossed += character.strip()
            self.broken = self._comma or character not in _AFTER or len(self._crossed) > len(scanner.stack)
        return bool(self._crossed)

    def _after_literal(self, character: str) -> None:
        """Read a character after the literal: a blank, a surplus bracket, or the fence that was opened before it."""
        if character == "`" and self._fence:
            self._fence -= 1
        else:
            self.broken = character not in _AFTER or (self._comma and character in "}]")

    def _write(self, text: str) -> str:
        scanner = self._scanner
        scanner.run(text, 0, 0)
        self.broken = scanner.broken or scanner.end < len(text)
        return scanner.out

    def finish(self) -> str:
        """Return the JSON that a closing marker makes certain."""
        scanner, written = self._scanner, ""
        if self.repairer.at_quote:
            self.repairer.end_string()
            written = self._write(self.repairer.out)
        elif self._crossed:
            self.broken |= not lacks_one(self._crossed, scanner.closers)
        elif not scanner.done:
            self.read(" ")  # ends a number or a word
            written = self.out
        if scanner.done or self.broken:
            return written
        self.broken |= not (self.repairer.idle and scanner.is_after_value)
        self.closers = scanner.closers
        return written + self.closers

    @property
    def is_whole(self) -> bool:
        """True if no bracket of the value is open."""
        return self._scanner.done

    @property
    def in_string(self) -> bool:
        """True if the next character is inside a string."""
        return self._scanner.in_string and not self.repairer.at_quote

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        return [self._scanner.dump(), self.repairer.dump(), self._fence, self._comma, self._crossed]

    @classmethod
    def load(cls, data: Any) -> RepairedLiteral:
        """Load what `dump` returned."""
        scanner, repairer, *more = data
        return cls(JsonScanner.load(scanner), JsonRepairer.load(repairer, JsonScanner.load), *more)


_READERS: dict[str, Callable[[Any, str, int], int]] = {
    **READERS,
    "item": LiteralScanner._item,
    "closed": LiteralScanner._closed,
    "escape": LiteralScanner._escape,
    "number": LiteralScanner._sign,
    "minus": LiteralScanner._minus,
}
