"""JSON in a notation of its own: strings in quotes that a model has a token for, and keys that are bare.

    {city:<|"|>Paris<|"|>,days:[1,2],ok:true}

Strategy: a stack of brackets and one expectation, token by token; a token that the text may cut (a quote, a scalar, a
bare key) is taken only when its end is seen.  What JSON itself writes is read as well (its quotes, blanks, `null`), and
Python's words.  Strings are passed on while they come; everything else is a few characters long.  What stands without
quotes is typed as any raw value: by the types of the parameter where it is the whole value, else by itself.
"""

from __future__ import annotations

import json
import re
from json.encoder import encode_basestring
from typing import Any

from toolgram.islands import checked
from toolgram.islands.tagged_values import TaggedValue
from toolgram.parameters import Types

VALUE, FIRST, KEY, FIRST_KEY, COLON, AFTER, STRING, JSON_STRING, DONE, BROKEN = _STATES = (
    "value", "first", "key", "first key", "colon", "after", "string", "json string", "done", "broken",
)  # fmt: skip
MAX_DEPTH = 256
MAX_TOKEN = 1024
MAX_WORD = 100  # what stands without quotes

_BLANKS = re.compile(r"[ \t\r\n]*+").match
_SCALAR = re.compile(r"[^,:{}\[\]()\"'<>\s][^,{}\[\]()\"<>\r\n]*+").match
_BARE_KEY = re.compile(r"[^:,{}\[\]\"\s<]++").match
_PYTHON_STRING = re.compile(r"'((?:[^'\\]|\\.)*+)'", re.DOTALL).match
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL).match
_TEXT = re.compile(r'[^"\\]++').match
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})').match
_ESCAPE_BEGUN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?").fullmatch
_CLOSING = {"{": "}", "[": "]"}


class NotatedScanner:
    """One value, being read. `quotes` are the opening and the closing quote of the notation; `types` are those that
    its parameter may have, None for any.

    `read` consumes what it can; after it, `out` is the JSON of that, `done` says that the value is over, and `broken`
    that the text at the returned position does not fit.
    """

    __slots__ = ("_quotes", "_state", "_types", "odd", "out", "stack", "tail")

    def __init__(self, quotes: tuple[str, ...], types: Types = None) -> None:
        self._quotes = quotes
        self._types = types
        self.odd = False
        self.tail = 0  # blanks at the end of what the last `read` has consumed, behind all that it has written
        self._state = VALUE
        self.stack = ""
        self.out = ""

    @property
    def done(self) -> bool:
        """The value is over."""
        return self._state == DONE

    @property
    def broken(self) -> bool:
        """The next character cannot be part of the value."""
        return self._state == BROKEN

    def read(self, text: str, pos: int, final: bool) -> int:
        """Consume `text` from `pos` on. Stops before a token that may still grow, unless this is the end (`final`)."""
        self.out, self.tail = "", 0
        while pos < len(text) and self._state not in (DONE, BROKEN):
            if self._state == STRING:
                end = self._string(text, pos)
            elif self._state == JSON_STRING:
                end = self._in_json_string(text, pos, final)
            else:
                blank = _BLANKS(text, pos)
                assert blank is not None
                self.tail, pos = blank.end() - pos, blank.end()
                end = self._token(text, pos, final) if pos < len(text) else pos
            if end == pos:
                break
            pos, self.tail = end, 0
        return pos

    def _string(self, text: str, pos: int) -> int:
        closing = self._quotes[1]
        end = text.find(closing, pos)
        if end >= 0:
            self.out += encode_basestring(text[pos:end])[1:-1] + '"'
            self._after_value()
            return end + len(closing)
        end = len(text)
        for at in range(max(pos, end - len(closing) + 1), end):
            if closing.startswith(text[at:]):
                end = at
                break
        self.out += encode_basestring(text[pos:end])[1:-1]
        return end

    def _token(self, text: str, pos: int, final: bool) -> int:
        state, char = self._state, text[pos]
        if state in (COLON, AFTER):
            return self._punctuation(char, pos)
        if state in (FIRST, FIRST_KEY) and self.stack and char == _CLOSING[self.stack[-1]]:
            return self._close(pos)
        if state in (KEY, FIRST_KEY):
            return self._key(text, pos, final)
        opening = self._quotes[0]
        if text.startswith(opening, pos):
            self.out += '"'
            self._state = STRING
            return pos + len(opening)
        if char in "{[":
            if len(self.stack) >= MAX_DEPTH:
                return self._break(pos)
            self.stack += char
            self.out += char
            self._state = FIRST_KEY if char == "{" else FIRST
            return pos + 1
        if not final and opening.startswith(text[pos:]):
            return pos
        if char == "'":
            return self._python_string(text, pos, final)
        if char == '"':
            self.out += char
            self._state = JSON_STRING
            return pos + 1
        return self._scalar(text, pos, final)

    def _in_json_string(self, text: str, pos: int, final: bool) -> int:
        """The inside of a string in JSON's quotes: a line end may be in it, and a backslash that escapes nothing."""
        if text[pos] == '"':
            self.out += '"'
            self._after_value()
            return pos + 1
        run = _TEXT(text, pos)
        if run is not None:
            self.out += encode_basestring(run.group())[1:-1]
            return run.end()
        escape = _ESCAPE(text, pos)
        if escape is not None:
            self.out += escape.group()
            return escape.end()
        if not final and _ESCAPE_BEGUN(text, pos):
            return pos
        self.out += "\\\\"
        return pos + 1

    def _python_string(self, text: str, pos: int, final: bool) -> int:
        match = _PYTHON_STRING(text, pos)
        if match is None:
            return self._break(pos) if final or len(text) - pos > MAX_TOKEN else pos
        self.out += json.dumps(match[1].replace("\\'", "'"), ensure_ascii=False)
        self._after_value()
        return match.end()

    def _scalar(self, text: str, pos: int, final: bool) -> int:
        match = _SCALAR(text, pos)
        if match is None or match.end() - pos > MAX_WORD:
            return self._break(pos)
        if match.end() == len(text) and not final:
            return pos
        value = TaggedValue(None if self.stack else self._types)
        value.read(match.group().rstrip(), 0, True)
        self.out += value.out + value.finish()
        self.odd |= value.odd
        self._after_value()
        return match.end()

    def _key(self, text: str, pos: int, final: bool) -> int:
        opening, closing = self._quotes
        if text.startswith(opening, pos):
            end = text.find(closing, pos + len(opening))
            if end < 0:
                return self._break(pos) if final or len(text) - pos > MAX_TOKEN else pos
            return self._take_key(text[pos + len(opening) : end], end + len(closing))
        if not final and opening.startswith(text[pos:]):
            return pos
        if text[pos] == '"':
            match = _JSON_STRING(text, pos)
            if match is None:
                return self._break(pos) if final or len(text) - pos > MAX_TOKEN else pos
            try:
                return self._take_key(json.loads(match.group(), strict=False), match.end())
            except ValueError:
                return self._break(pos)
        match = _BARE_KEY(text, pos)
        if match is None or (match.end() - pos > MAX_TOKEN):
            return self._break(pos)
        if match.end() == len(text) and not final:
            return pos
        return self._take_key(match.group(), match.end())

    def _take_key(self, key: str, end: int) -> int:
        self.out += json.dumps(key, ensure_ascii=False)
        self._state = COLON
        return end

    def _punctuation(self, char: str, pos: int) -> int:
        if self._state == COLON:
            if char != ":":
                return self._break(pos)
            self.out += ": "
            self._state = VALUE
            return pos + 1
        if char == _CLOSING[self.stack[-1]]:
            return self._close(pos)
        if char != ",":
            return self._break(pos)
        self.out += ", "
        self._state = KEY if self.stack[-1] == "{" else VALUE
        return pos + 1

    def _close(self, pos: int) -> int:
        self.out += _CLOSING[self.stack[-1]]
        self.stack = self.stack[:-1]
        self._after_value()
        return pos + 1

    def _after_value(self) -> None:
        self._state = AFTER if self.stack else DONE

    def _break(self, pos: int) -> int:
        self._state = BROKEN
        return pos

    def open_brackets(self) -> None:
        """A marker ends what is left of tagged arguments, and no bracket does."""

    def dump(self) -> list[Any]:
        """The state as JSON-able data."""
        return [*self._quotes, self._state, self.stack, None if self._types is None else sorted(self._types), self.odd]

    @classmethod
    def load(cls, data: Any) -> NotatedScanner:
        """The inverse of `dump`. Raises ValueError for what is none."""
        opening, closing, state, stack, types, odd = checked(data, str, str, _STATES, str, (list, None), bool)
        if types is not None:
            checked(types, *[str] * len(types))
        scanner = cls((opening, closing), None if types is None else frozenset(types))
        scanner.odd = odd
        scanner._state, scanner.stack = state, stack
        keyed, listed = state in (KEY, FIRST_KEY), state == FIRST
        if (
            not (opening and closing)
            or stack.strip("{[")
            or len(stack) > MAX_DEPTH
            or (keyed and stack[-1:] != "{")
            or (listed and stack[-1:] != "[")
            or (state in (COLON, AFTER) and not stack)
        ):
            raise ValueError(f"no state of a value: {state} {stack!r:.40}")
        return scanner
