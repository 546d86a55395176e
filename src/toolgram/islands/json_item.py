"""A JSON value that no marker ends.

Strategy: the scanner of JSON reads it as the item of a list that is never closed. Brackets and strings end by
themselves; a number ends at the character after it.
"""

from __future__ import annotations

from typing import Any

from toolgram.islands import OpenBrackets
from toolgram.islands.json_table import ITEM, escape_controls
from toolgram.islands.json_values import BLANK, CONTROL, SCALAR_END, STRING_END, JsonScanner

REPAIRED = "repaired_json"


class JsonValue:
    """One JSON value of any kind that no marker ends."""

    __slots__ = ("_scanner", "back", "broken", "done", "out", "repairs")

    def __init__(self) -> None:
        self._scanner = JsonScanner()
        self._scanner.accept_controls()
        self._scanner.stack.append("[")
        self._scanner.state = ITEM
        self.out = ""
        self.repairs: list[str] = []  # kinds of anomalies: raw control characters
        self.back = 0  # how far before the end of the last `read` the first of them is
        self.done = False
        self.broken = False

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on to the end of the value; a number ends only at the character after it."""
        scanner, written, place = self._scanner, [], len(text)
        while pos < len(text) and not (self.done or self.broken):
            if len(scanner.stack) > 1:
                scanner.run(text, pos, 1)
                if scanner.out != text[pos : scanner.end]:
                    differs = (at for at, one in enumerate(scanner.out) if one != text[pos + at])
                    place = min(place, pos + next(differs))
                pos = scanner.end
                written.append(scanner.out)
                self.done = len(scanner.stack) == 1
            else:
                end = scanner.step(text, pos)
                place = min(place, pos) if scanner.kind == CONTROL else place
                if scanner.kind != BLANK:
                    written.append(escape_controls(text[pos:end]) if scanner.kind == CONTROL else text[pos:end])
                self.done = scanner.kind in (SCALAR_END, STRING_END)
                pos = end
            self.broken = scanner.broken
        self.out = "".join(written)
        if place < pos and not self.repairs:
            self.repairs.append(REPAIRED)
        self.back = pos - place
        return pos

    def open_brackets(self) -> OpenBrackets:
        """Return what is open in the value, within the list that is never closed."""
        return self._scanner.open_brackets()

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        return [self._scanner.dump(), bool(self.repairs)]

    @classmethod
    def load(cls, data: Any) -> JsonValue:
        """Load what `dump` returned."""
        value = cls()
        scanner, repaired = data
        value._scanner, value.repairs = JsonScanner.load(scanner), [REPAIRED] if repaired else []
        return value
