"""Is this text the beginning of a JSON document? And if so, what would a reader make of it?

Strategy: RFC 8259 as an explicit-stack automaton over characters, written without a look at the runtime, so that
the two can disagree. `JsonPrefix` reads one character at a time and stops at the first one that no JSON document
could have there. `complete` closes an honest prefix the way a patient reader would: an open string or literal is
finished, a dangling key or comma is left out.
"""

from __future__ import annotations

import json
from typing import Any

_BLANK = " \t\n\r"
_HEX = "0123456789abcdefABCDEF"
_ESCAPES = '"\\/bfnrt'
_LITERALS = {"t": "true", "f": "false", "n": "null"}

# Number states, and what may follow in each. A state in _NUMBER_MAY_END is a whole number already.
_NUMBER: dict[str, dict[str, str]] = {
    "minus": {"0": "zero", **dict.fromkeys("123456789", "int")},
    "zero": {".": "point", "e": "e", "E": "e"},
    "int": {".": "point", "e": "e", "E": "e", **dict.fromkeys("0123456789", "int")},
    "point": dict.fromkeys("0123456789", "fraction"),
    "fraction": {"e": "e", "E": "e", **dict.fromkeys("0123456789", "fraction")},
    "e": {"+": "sign", "-": "sign", **dict.fromkeys("0123456789", "exponent")},
    "sign": dict.fromkeys("0123456789", "exponent"),
    "exponent": dict.fromkeys("0123456789", "exponent"),
}
_NUMBER_MAY_END = {"zero", "int", "fraction", "exponent"}


class JsonPrefix:
    """Reads characters; `error` is the offset of the first impossible one, or None."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.state = "value"
        self.rest = ""
        self.offset = 0
        self.error: int | None = None

    def read(self, text: str) -> JsonPrefix:
        for character in text:
            if self.error is not None:
                break
            if not self._step(character):
                self.error = self.offset
            self.offset += 1
        return self

    @property
    def is_whole(self) -> bool:
        """A complete document was read, and nothing is open."""
        return self.error is None and not self.stack and (self.state == "end" or self.state in _NUMBER_MAY_END)

    def _step(self, c: str) -> bool:
        state = self.state
        if state in ("string", "key_string"):
            return self._in_string(c)
        if state in ("escape", "key_escape"):
            return self._in_escape(c)
        if state == "literal":
            expected, self.rest = self.rest[0], self.rest[1:]
            if not self.rest:
                self._value_ended()
            return c == expected
        if state in _NUMBER:
            if c in _NUMBER[state]:
                self.state = _NUMBER[state][c]
                return True
            if state not in _NUMBER_MAY_END:
                return False
            self._value_ended()
            return self._step(c)
        return c in _BLANK or self._structure(c)

    def _in_string(self, c: str) -> bool:
        key = self.state == "key_string"
        if c == "\\":
            self.state = "key_escape" if key else "escape"
        elif c == '"':
            if key:
                self.state = "colon"
            else:
                self._value_ended()
        return c >= " "

    def _in_escape(self, c: str) -> bool:
        inside = "key_string" if self.state == "key_escape" else "string"
        if self.rest:  # the digits of a \u escape still to come
            self.rest = self.rest[1:]
            if not self.rest:
                self.state = inside
            return c in _HEX
        if c == "u":
            self.rest = "xxxx"
            return True
        self.state = inside
        return c in _ESCAPES

    def _structure(self, c: str) -> bool:
        state = self.state
        if state in ("value", "value_or_close"):
            if c == "]" and state == "value_or_close":
                return self._close("]")
            return self._value(c)
        if state in ("key", "key_or_close"):
            if c == '"':
                self.state = "key_string"
                return True
            return c == "}" and state == "key_or_close" and self._close("}")
        if state == "colon":
            self.state = "value"
            return c == ":"
        if state == "after":
            if c == ",":
                self.state = "key" if self.stack[-1] == "}" else "value"
                return True
            return self._close(c)
        return False  # "end": only blanks may follow

    def _value(self, c: str) -> bool:
        if c == "{":
            self.stack.append("}")
            self.state = "key_or_close"
        elif c == "[":
            self.stack.append("]")
            self.state = "value_or_close"
        elif c == '"':
            self.state = "string"
        elif c == "-":
            self.state = "minus"
        elif c in "0123456789":
            self.state = "zero" if c == "0" else "int"
        elif c in _LITERALS:
            self.state, self.rest = "literal", _LITERALS[c][1:]
        else:
            return False
        return True

    def _close(self, c: str) -> bool:
        if not self.stack or self.stack[-1] != c:
            return False
        self.stack.pop()
        self._value_ended()
        return True

    def _value_ended(self) -> None:
        self.state = "after" if self.stack else "end"


def is_json_prefix(text: str) -> bool:
    """Some continuation of `text` is a JSON document."""
    return JsonPrefix().read(text).error is None


def complete(prefix: str) -> Any:
    """The value a reader would make of an honest JSON prefix; raises ValueError where it is none."""
    if not is_json_prefix(prefix):
        raise ValueError(f"not the beginning of a JSON document: {prefix!r}")
    for cut in range(len(prefix), -1, -1):
        reader = JsonPrefix().read(prefix[:cut])
        ending = '"' if reader.state == "string" else reader.rest if reader.state == "literal" else ""
        try:
            return json.loads(prefix[:cut] + ending + "".join(reversed(reader.stack)))
        except ValueError:
            continue
    raise ValueError(f"nothing of a value in {prefix!r}")
