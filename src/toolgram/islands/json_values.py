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

# What is expected next. Positions in an object and in a list are apart, so that what follows a token is one look into a
# table. The order matters: values first, and everything up to AFTER_MEMBER is between tokens.
ITEM, FIRST_ITEM, MEMBER_VALUE, FIRST_KEY, KEY, COLON, AFTER_ITEM, AFTER_MEMBER = range(8)
ITEM_STRING, MEMBER_STRING, KEY_STRING, ESCAPE, HEX, NUMBER, WORD, DONE, BROKEN = range(8, 17)

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

# State and token (a group of _TOKEN) -> the next state; OTHER where it takes more than that, WRONG where none fits.
OTHER, WRONG = -1, -2
_WHOLE_STRING, _STRING, _COMMA, _COLON, _OPEN, _CLOSE, _WHOLE_SCALAR, _NUMBER, _WORD = range(1, 10)
_VALUE_TOKENS = {_OPEN: OTHER, _NUMBER: OTHER, _WORD: OTHER}
_ITEM_TOKENS = {**_VALUE_TOKENS, _WHOLE_STRING: AFTER_ITEM, _STRING: ITEM_STRING, _WHOLE_SCALAR: AFTER_ITEM}
_KEY_TOKENS = {_WHOLE_STRING: COLON, _STRING: KEY_STRING}
_TABLE: dict[int, dict[int, int]] = {
    ITEM: _ITEM_TOKENS,
    FIRST_ITEM: {**_ITEM_TOKENS, _CLOSE: OTHER},
    MEMBER_VALUE: {
        **_VALUE_TOKENS, _WHOLE_STRING: AFTER_MEMBER, _STRING: MEMBER_STRING, _WHOLE_SCALAR: AFTER_MEMBER
    },
    FIRST_KEY: {**_KEY_TOKENS, _CLOSE: OTHER},
    KEY: _KEY_TOKENS,
    COLON: {_COLON: MEMBER_VALUE},
    AFTER_ITEM: {_COMMA: ITEM, _CLOSE: OTHER},
    AFTER_MEMBER: {_COMMA: KEY, _CLOSE: OTHER},
}  # fmt: skip
_NEXT = tuple(tuple(_TABLE[state].get(token, WRONG) for token in range(10)) for state in range(8))
_KINDS = (NOTHING, STRING_END, STRING_PART, PUNCTUATION, PUNCTUATION, OPEN, CLOSE, SCALAR_END, SCALAR_PART, SCALAR_PART)
_AFTER_STRING = {ITEM_STRING: AFTER_ITEM, MEMBER_STRING: AFTER_MEMBER, KEY_STRING: COLON}

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

    __slots__ = ("inside", "kind", "max_depth", "out", "rest", "stack", "state")

    def __init__(self, max_depth: int = MAX_DEPTH) -> None:
        self.state = ITEM
        self.stack: list[str] = []
        self.inside = ITEM_STRING  # during an escape: the string it is part of
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
        return ITEM_STRING <= self.state <= HEX

    @property
    def in_plain_string(self) -> bool:
        """The next character is inside a string, and outside an escape."""
        return ITEM_STRING <= self.state <= KEY_STRING

    @property
    def in_key(self) -> bool:
        """The next character is inside a key."""
        return self.state == KEY_STRING or (self.state in (ESCAPE, HEX) and self.inside == KEY_STRING)

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
        """The loop behind `run` and `step`: one match per run in a string or per token, and one look into a table."""
        start = pos
        escaped = ""
        end = len(text)
        while pos < end:
            state = self.state
            if state <= AFTER_MEMBER:
                match = _TOKEN(text, pos)
                token = match.lastindex or 0  # type: ignore[union-attr]
                following = _NEXT[state][token]
                pos = match.end()  # type: ignore[union-attr]
                if following >= 0:
                    self.state = following
                    self.kind = _KINDS[token]
                elif following == OTHER:
                    pos = self._other(text, pos, token)
                    if self.kind == CLOSE and len(self.stack) == floor:
                        break
                elif token == 0 and pos == end:
                    self.kind = BLANK
                else:
                    pos = self._break(match.start(token) if token else pos)  # type: ignore[union-attr]
            elif state <= KEY_STRING:
                match = _STRING_RUN(text, pos)
                pos = match.end()  # type: ignore[union-attr]
                if match.lastindex:  # type: ignore[union-attr]
                    self.state = _AFTER_STRING[state]
                    self.kind = STRING_END
                elif pos > match.start():  # type: ignore[union-attr]
                    self.kind = STRING_PART
                else:
                    before = pos
                    pos = self._string_special(text, pos)
                    if self.kind == CONTROL:
                        escaped += text[start:before] + escape_controls(text[before:pos])
                        start = pos
            elif state <= HEX:
                pos = self._string_special(text, pos)
            elif state == NUMBER:
                pos = self._number(text, pos)
            elif state == WORD:
                pos = self._word(text, pos)
            else:
                self._break(pos)
            if once or self.state == BROKEN:
                break
        self.out = escaped + text[start:pos] if escaped else text[start:pos]
        return pos

    def _other(self, text: str, end: int, token: int) -> int:
        """A token that moves the stack, or that is not whole; it ends before `end`."""
        character = text[end - 1]
        if token == _OPEN:
            return self._open(character, end)
        if token == _CLOSE:
            return self._close(character, end)
        self.kind = SCALAR_PART
        if token == _NUMBER:
            self.state, self.rest = NUMBER, character if character in "-0" else "1"
        else:
            self.state, self.rest = WORD, _WORDS[character]
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
        if not self.stack or self.stack[-1] != ("{" if bracket == "}" else "["):
            return self._break(end - 1)
        self.stack.pop()
        self.state, self.kind = self.after_value(), CLOSE
        return end

    def after_value(self) -> int:
        """The state after a value at this place."""
        if not self.stack:
            return DONE
        return AFTER_MEMBER if self.stack[-1] == "{" else AFTER_ITEM

    def _string_special(self, text: str, pos: int) -> int:
        """An escape (possibly begun before), or a run of raw control characters."""
        character = text[pos]
        self.kind = STRING_PART
        if self.state <= KEY_STRING:
            if character == "\\":
                self.inside, self.state = self.state, ESCAPE
                return pos + 1
            match = _CONTROL_RUN(text, pos)
            assert match is not None
            self.kind = CONTROL
            return match.end()
        if self.state == ESCAPE:
            if character == "u":
                self.state, self.rest = HEX, "xxxx"
            elif character in '"\\/bfnrt':
                self.state = self.inside
            else:
                return self._break(pos)
            return pos + 1
        if character not in _HEX_DIGITS:
            return self._break(pos)
        self.rest = self.rest[1:]
        if not self.rest:
            self.state = self.inside
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
                self.state, self.kind = self.after_value(), SCALAR_END
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
            self.state, self.kind = self.after_value(), SCALAR_END
        return pos

    def dump(self) -> list[Any]:
        """The state as JSON-able data, a few characters."""
        return [self.state, "".join(self.stack), self.inside, self.rest]

    @classmethod
    def load(cls, data: list[Any]) -> JsonScanner:
        """The inverse of `dump`."""
        scanner = cls()
        scanner.state, stack, scanner.inside, scanner.rest = data
        scanner.stack = list(stack)
        return scanner
