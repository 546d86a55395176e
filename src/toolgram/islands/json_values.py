"""JSON at character level: how far does a value reach, and is every character of it allowed?

Strategy: a pushdown automaton of a dozen states, driven by compiled regular expressions over *runs* and not by
single characters: a delta inside a long string costs one `match`.  Nothing is decoded, nothing is kept but the
state and the stack of open brackets, so the model's own bytes (number spelling, escapes, blanks) pass through and a
snapshot is a few characters.  Every prefix that is accepted is a prefix of some valid JSON text.

Raw control characters inside strings are not JSON, but models that write code emit them; they are accepted, and
passed on escaped.
"""

from __future__ import annotations

import re
from typing import Any

MAX_DEPTH = 256

# What is expected next.  The order matters: everything up to AFTER_VALUE is "between tokens".
VALUE, FIRST_ITEM, FIRST_KEY, KEY, COLON, AFTER_VALUE, STRING, ESCAPE, HEX, NUMBER, WORD, DONE, BROKEN = range(13)

# What the last step read.
BLANK, PUNCTUATION, OPEN, CLOSE, STRING_PART, STRING_END, SCALAR_PART, SCALAR_END, CONTROL, NOTHING = range(10)

_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
        ("[^"\\\x00-\x1f]*+")        # 1 a whole string without escapes
      | (")                          # 2 a string begins
      | (,)                          # 3
      | (:)                          # 4
      | ([{\[])                      # 5
      | ([}\]])                      # 6
      | ((?:-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null)
         (?=[ \t\r\n,}\]]))         # 7 a whole scalar
      | ([-0-9])                     # 8 a number begins
      | ([tfn])                      # 9 a word begins
      | )""",
    re.VERBOSE,
).match
_STRING_RUN = re.compile(r'[^"\\\x00-\x1f]*+(")?').match
PLAIN_STRING = re.compile(r'[^"\\\x00-\x1f]++').fullmatch
_CONTROL_RUN = re.compile(r"[\x00-\x1f]+").match
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")
_WORDS = {"t": "rue", "f": "alse", "n": "ull"}
_CONTROL_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}

# The states of a number: what has been read of it -> which character leads where.
_DIGITS, _NONZERO = "0123456789", "123456789"
_NUMBER_STEPS: dict[str, dict[str, str]] = {
    "-": {"0": "0", **dict.fromkeys(_NONZERO, "1")},
    "0": {".": ".", "e": "e", "E": "e"},
    "1": {**dict.fromkeys(_DIGITS, "1"), ".": ".", "e": "e", "E": "e"},
    ".": dict.fromkeys(_DIGITS, "f"),
    "f": {**dict.fromkeys(_DIGITS, "f"), "e": "e", "E": "e"},
    "e": {**dict.fromkeys(_DIGITS, "x"), "+": "s", "-": "s"},
    "s": dict.fromkeys(_DIGITS, "x"),
    "x": dict.fromkeys(_DIGITS, "x"),
}
_NUMBER_ENDS = frozenset("01fx")


def escape_controls(text: str) -> str:
    """`text` with each control character written as its JSON escape."""
    return "".join(
        character if character >= " " else _CONTROL_ESCAPES.get(character, f"\\u{ord(character):04x}")
        for character in text
    )


class JsonScanner:
    """One JSON value, being read.

    `stack` holds the open brackets, `state` what is expected, `kind` what the last `step` read, `out` what the last
    `run` passes on.
    """

    __slots__ = ("in_key", "kind", "max_depth", "out", "rest", "stack", "state")

    def __init__(self, max_depth: int = MAX_DEPTH) -> None:
        self.state = VALUE
        self.stack: list[str] = []
        self.in_key = False
        self.rest = ""  # of a word: the letters still to come; of a number: its state; of \uXXXX: one x per digit
        self.kind = NOTHING
        self.out = ""
        self.max_depth = max_depth

    @property
    def done(self) -> bool:
        """The outermost value is closed."""
        return self.state == DONE

    @property
    def broken(self) -> bool:
        """The character at the returned position cannot be part of the value."""
        return self.state == BROKEN

    @property
    def in_string(self) -> bool:
        """The next character is inside a string."""
        return self.state in (STRING, ESCAPE, HEX)

    def run(self, text: str, pos: int, floor: int) -> int:
        """Read on until the container at depth `floor` (0: the outermost) is closed, or the text ends, or breaks.

        Returns the new position; `out` is what those characters are as JSON. Cost: one regular expression match per
        run of string characters or per token.
        """
        return self._scan(text, pos, floor, False)

    def step(self, text: str, pos: int) -> int:
        """Read one token, or as much of one as there is; `kind` says what it was. Returns the new position.

        A number ends only at the character after it: that step reads nothing and has kind SCALAR_END.
        """
        return self._scan(text, pos, -1, True)

    def _scan(self, text: str, pos: int, floor: int, once: bool) -> int:
        """The loop behind `run` and `step`. Two matches cover nearly everything: a run in a string, a token."""
        start = pos
        escaped = ""
        end = len(text)
        while pos < end:
            state = self.state
            if state == STRING:
                match = _STRING_RUN(text, pos)
                assert match is not None
                pos = match.end()
                if match.lastindex:
                    self.state, self.kind = (COLON if self.in_key else AFTER_VALUE), STRING_END
                elif pos == match.start():
                    pos = self._string_special(text, pos)
                    if self.kind == CONTROL:
                        escaped += text[start : match.start()] + escape_controls(text[match.start() : pos])
                        start = pos
                else:
                    self.kind = STRING_PART
            elif state <= AFTER_VALUE:
                match = _TOKEN(text, pos)
                assert match is not None
                pos = self._token(text, match, state)
                if self.kind == CLOSE and len(self.stack) == floor:
                    break
            elif state <= HEX:
                pos = self._string_special(text, pos)
            elif state == NUMBER:
                pos = self._number(text, pos)
            elif state == WORD:
                pos = self._word(text, pos)
            else:
                self.state, self.kind = BROKEN, NOTHING
            if once or self.state == BROKEN:
                break
        self.out = escaped + text[start:pos] if escaped else text[start:pos]
        return pos

    def _token(self, text: str, match: re.Match[str], state: int) -> int:
        """One token between strings; `match` says which. Returns its end, or where it does not fit."""
        which = match.lastindex
        end = match.end()
        if which is None:
            self.kind = BLANK
            if end < len(text):
                self.state, self.kind = BROKEN, NOTHING
        elif which <= 2:
            if state > KEY:
                return self._break(match.start(which))
            self.in_key = state >= FIRST_KEY
            if which == 1:
                self.state, self.kind = (COLON if self.in_key else AFTER_VALUE), STRING_END
            else:
                self.state, self.kind = STRING, STRING_PART
        elif which <= 4:
            if state != (AFTER_VALUE if which == 3 else COLON):
                return self._break(end - 1)
            self.state = VALUE if which == 4 or self.stack[-1] == "[" else KEY
            self.kind = PUNCTUATION
        elif which == 6:
            return self._close(text[end - 1], end)
        elif state > FIRST_ITEM:
            return self._break(match.start(which))
        elif which == 5:
            return self._open(text[end - 1], end)
        elif which == 7:
            self.state, self.kind = AFTER_VALUE, SCALAR_END
        else:
            first = text[end - 1]
            self.state, self.kind = (NUMBER, SCALAR_PART) if which == 8 else (WORD, SCALAR_PART)
            self.rest = _WORDS[first] if which == 9 else first if first in "-0" else "1"
        return end

    def _break(self, pos: int) -> int:
        self.state, self.kind = BROKEN, NOTHING
        return pos

    def _open(self, bracket: str, end: int) -> int:
        if len(self.stack) >= self.max_depth:
            return self._break(end - 1)
        self.stack.append(bracket)
        self.state, self.kind = (FIRST_KEY if bracket == "{" else FIRST_ITEM), OPEN
        return end

    def _close(self, bracket: str, end: int) -> int:
        opening, first = ("{", FIRST_KEY) if bracket == "}" else ("[", FIRST_ITEM)
        if not self.stack or self.stack[-1] != opening or self.state not in (first, AFTER_VALUE):
            return self._break(end - 1)
        self.stack.pop()
        self.state, self.kind = (AFTER_VALUE if self.stack else DONE), CLOSE
        return end

    def _string_special(self, text: str, pos: int) -> int:
        """An escape (possibly begun before), or a run of raw control characters."""
        character = text[pos]
        self.kind = STRING_PART
        if self.state == STRING:
            if character == "\\":
                self.state = ESCAPE
                return pos + 1
            match = _CONTROL_RUN(text, pos)
            assert match is not None
            self.kind = CONTROL
            return match.end()
        if self.state == ESCAPE:
            if character == "u":
                self.state, self.rest = HEX, "xxxx"
            elif character in '"\\/bfnrt':
                self.state = STRING
            else:
                return self._break(pos)
            return pos + 1
        if character not in _HEX_DIGITS:
            return self._break(pos)
        self.rest = self.rest[1:]
        if not self.rest:
            self.state = STRING
        return pos + 1

    def _number(self, text: str, pos: int) -> int:
        end = len(text)
        rest = self.rest
        self.kind = SCALAR_PART
        while pos < end:
            following = _NUMBER_STEPS[rest].get(text[pos])
            if following is None:
                if rest not in _NUMBER_ENDS:
                    return self._break(pos)
                self.state, self.kind = (AFTER_VALUE if self.stack else DONE), SCALAR_END
                return pos
            rest = following
            pos += 1
        self.rest = rest
        return pos

    def _word(self, text: str, pos: int) -> int:
        self.kind = SCALAR_PART
        while pos < len(text) and self.rest:
            if text[pos] != self.rest[0]:
                return self._break(pos)
            self.rest = self.rest[1:]
            pos += 1
        if not self.rest:
            self.state, self.kind = (AFTER_VALUE if self.stack else DONE), SCALAR_END
        return pos

    def dump(self) -> list[Any]:
        """The state as JSON-able data, a few characters."""
        return [self.state, "".join(self.stack), self.in_key, self.rest]

    @classmethod
    def load(cls, data: list[Any]) -> JsonScanner:
        """The inverse of `dump`."""
        scanner = cls()
        scanner.state, stack, scanner.in_key, scanner.rest = data
        scanner.stack = list(stack)
        return scanner
