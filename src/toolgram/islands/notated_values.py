"""JSON in a format's own notation: strings in quotes that are a token of the model, and keys without quotes.

    {city:<|"|>Paris<|"|>,days:[1,2],ok:true}

Strategy: a stack of brackets and one expectation, token by token. A token that may be cut (a quote, a scalar, a key) is
read only when its end is seen. JSON's own quotes, blanks and `null` are read as well, and Python's words and strings,
which have escapes. Strings are passed on as they come; everything else is a few characters long. A value without quotes
gets its type as any raw value does: from the parameter if it is the whole value, else from its spelling. Inside a list
or an object, all that JSON takes for a number is one, since strings have quotes.

Mistakes with one reading in this notation are repaired as in JSON: a comma too many or too few, a second colon, a
comment after a value or before a key, keys in single quotes, a double quote inside a JSON string. A comma is written
with what follows it. `read` stops at the quotes of a string, so that its reader can look there for what closes the
call: a string without its closing quote would contain the next call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

from toolgram.islands.held_text import overlap
from toolgram.islands.python_tokens import string_as_json
from toolgram.islands.tagged_values import TaggedValue
from toolgram.limits import BLANKS, LONGEST_BARE_TEXT, LONGEST_NOTATED_TEXT, LONGEST_REMARK, MAX_DEPTH
from toolgram.tools.parameters import Types

VALUE, FIRST, KEY, FIRST_KEY, COLON, AFTER, STRING, JSON_STRING, DONE, BROKEN = (
    "value", "first", "key", "first key", "colon", "after", "string", "json string", "done", "broken",
)  # fmt: skip
_REPAIRED = "repaired_json"

_BLANKS = re.compile(r"[ \t\r\n]*+").match
_SCALAR = re.compile(r"[^,:{}\[\]()\"'<>\s][^,{}\[\]()\"<>\r\n]*+").match
_LITERAL = r"(?:true|false|null|True|False|None|-?[0-9]+(?:\.[0-9]+)?)"
_THEN_KEY = re.compile(rf"({_LITERAL})[ \t\r\n]++[\w$\-]++[ \t\r\n]*+:").match  # no comma between members
_THEN_ITEMS = re.compile(rf"({_LITERAL})(?:[ \t\r\n]++{_LITERAL})++[ \t\r\n]*+").fullmatch  # or items
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?").fullmatch
_BARE_KEY = re.compile(r"[^:,{}\[\]\"\s<]++").match
_PYTHON_STRING = re.compile(r"'((?:[^'\\]|\\.)*+)'", re.DOTALL).match
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL).match
_TEXT = re.compile(r'[^"\\]++').match
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})').match
_ESCAPE_BEGUN = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?").fullmatch
_UP_TO = f"{{0,{LONGEST_REMARK}}}+"
_REMARK = rf"/\*(?:[^*<]|\*(?!/)){_UP_TO}\*/|(?://|#)[^\r\n<]{_UP_TO}[\r\n]"
_REMARK_BEGUN = rf"/(?:\*(?:[^*<]|\*(?!/)){_UP_TO}\*?|/[^\r\n<]{_UP_TO})?|#[^\r\n<]{_UP_TO}"
_COMMENT = re.compile(_REMARK).match
_COMMENT_BEGUN = re.compile(_REMARK_BEGUN).fullmatch
_QUOTE_ENDS = re.compile(rf"\"{BLANKS}(?:(?:{_REMARK}){BLANKS})?(?:[,:}}\])\"'<]|\Z)").match
_QUOTE_WAITS = re.compile(rf"\"{BLANKS}(?:{_REMARK_BEGUN}|(?:{_REMARK}){BLANKS})?").fullmatch
_CLOSING = {"{": "}", "[": "]"}
_WORDS = {"True": "true", "False": "false", "None": "null"}  # of Python


class NotatedScanner:
    """A value that is being read. `quotes` are the notation's opening and closing quotes, `types` those of its
    parameter. `out` is the JSON of the text last read."""

    __slots__ = (
        "_lead", "_place", "_quotes", "_state", "_types", "_was", "back", "counts", "odd", "out", "repairs", "stack",
        "tail",
    )  # fmt: skip

    def __init__(self, quotes: tuple[str, ...], types: Types = None) -> None:
        self._quotes = quotes
        self._types = types
        self.counts: Callable[[str, int, int], bool] = lambda *place: True  # whether a quote is one, by its id
        self.odd = False
        self.tail = 0  # characters that the last `read` took after those that wrote `out`
        self._state = self._was = VALUE
        self._lead = ""  # a comma that is not written yet
        self.repairs: list[str] = []  # kinds of anomalies in the value
        self._place = 0  # the first repair of the last `read`,
        self.back = 0  # and how far before its end it is
        self.stack = ""
        self.out = ""

    @property
    def done(self) -> bool:
        """True if the value is over."""
        return self._state == DONE

    @property
    def broken(self) -> bool:
        """True if the next character cannot be part of the value."""
        return self._state == BROKEN

    @property
    def quote(self) -> str:
        """The closing quote of the open string; "" outside one."""
        return self._quotes[1] if self._state == STRING else '"' if self._state == JSON_STRING else ""

    @property
    def stops(self) -> str:
        """The first character of the closing quote, in a string that only this quote ends; else ""."""
        return self._quotes[1][0] if self._state == STRING else ""

    @property
    def lacks_brackets(self) -> bool:
        """True if the value broke after a whole value, with brackets open."""
        return self._state == BROKEN and self._was == AFTER

    def close(self) -> str:
        """End the value: return the JSON that closes the open string and brackets."""
        written = '"' + self.closers if self.quote else self.closers
        self._state, self.stack = DONE, ""
        return written

    @property
    def closers(self) -> str:
        """The brackets that close the open ones."""
        return "".join(_CLOSING[bracket] for bracket in reversed(self.stack))

    def resume(self) -> None:
        """Continue where the value broke, as if nothing had come."""
        self._state = self._was

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos` up to the next quote of a string. Stop before a token that may grow, unless `final`."""
        self.out, begin, mark = "", self.quote, pos
        self._place = pos
        while pos < len(text) and self._state not in (DONE, BROKEN) and self.quote == begin:
            written = len(self.out)
            if self._state == STRING:
                end = self._string(text, pos)
            elif self._state == JSON_STRING:
                end = self._in_json_string(text, pos, final)
            else:
                blank = _BLANKS(text, pos)
                assert blank is not None
                pos = blank.end()
                end = self._token(text, pos, final) if pos < len(text) else pos
            if end == pos:
                break
            pos = end
            mark = pos if len(self.out) > written else mark
            if begin == '"' and text[pos - 1] == begin:
                break
        self.tail = pos - mark
        self.back = pos - self._place
        return pos

    def _write(self, text: str) -> None:
        self.out += self._lead + text
        self._lead = ""

    def _repaired(self, pos: int) -> None:
        if _REPAIRED not in self.repairs:
            self.repairs.append(_REPAIRED)
            self._place = pos

    def _string(self, text: str, pos: int) -> int:
        closing, end = self._quotes[1], self.find_quote(text, pos, self._quotes[1])
        if end >= 0:
            self.out += encode_basestring(text[pos:end])[1:-1] + '"'
            self._after_value()
            return end + len(closing)
        end = len(text) - overlap(text, pos, closing)
        self.out += encode_basestring(text[pos:end])[1:-1]
        return end

    def find_quote(self, text: str, pos: int, quote: str) -> int:
        """Return where the next of these quotes that counts begins; -1 if there is none."""
        at = text.find(quote, pos)
        while at >= 0 and not self.counts(text, at, at + len(quote)):
            at = text.find(quote, at + 1)
        return at

    def _opens(self, text: str, pos: int) -> bool:
        opening = self._quotes[0]
        return text.startswith(opening, pos) and self.counts(text, pos, pos + len(opening))

    def _token(self, text: str, pos: int, final: bool) -> int:
        state, char = self._state, text[pos]
        if char in "/#" and state in (AFTER, COLON, KEY, FIRST_KEY):
            return self._comment(text, pos, final)
        if state in (COLON, AFTER):
            return self._punctuation(text, pos, final)
        if state != VALUE and self.stack and char == _CLOSING[self.stack[-1]]:
            return self._close(pos)
        return self._key(text, pos, final) if state in (KEY, FIRST_KEY) else self._value(text, pos, final)

    def _value(self, text: str, pos: int, final: bool) -> int:
        char, opening = text[pos], self._quotes[0]
        if self._lead and char == "]":
            return self._close(pos)
        if char == ":" and self.stack[-1:] != "[":
            self._repaired(pos)
            return pos + 1
        if self._opens(text, pos):
            self._write('"')
            self._state = STRING
            return pos + len(opening)
        if char in "{[":
            return self._open(char, pos)
        if not final and opening.startswith(text[pos:]):
            return pos
        if char == "'":
            return self._python_string(text, pos, final)
        if char == '"':
            self._write(char)
            self._state = JSON_STRING
            return pos + 1
        return self._scalar(text, pos, final)

    def _open(self, bracket: str, pos: int) -> int:
        if len(self.stack) >= MAX_DEPTH:
            return self._break(pos)
        self._write(bracket)
        self.stack += bracket
        self._state = FIRST_KEY if bracket == "{" else FIRST
        return pos + 1

    def _comment(self, text: str, pos: int, final: bool) -> int:
        match = _COMMENT(text, pos)
        if match is not None:
            self._repaired(pos)
            return match.end()
        return pos if not final and _COMMENT_BEGUN(text, pos) else self._break(pos)

    def _in_json_string(self, text: str, pos: int, final: bool) -> int:
        """Read the inside of a JSON string. Line ends and lone backslashes are accepted."""
        if text[pos] == '"':
            return self._quote_of_json(text, pos, final)
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

    def _quote_of_json(self, text: str, pos: int, final: bool) -> int:
        """Read a quote: it ends the string if a comma, a colon, a bracket, a quote, a marker or the end follows."""
        if not final and _QUOTE_WAITS(text, pos):
            return pos
        if _QUOTE_ENDS(text, pos):
            self.out += '"'
            self._after_value()
        else:
            self._repaired(pos)
            self.out += '\\"'
        return pos + 1

    def _python_string(self, text: str, pos: int, final: bool) -> int:
        match = _PYTHON_STRING(text, pos)
        if match is None:
            return self._unclosed(text, pos, final)
        self._write(string_as_json(match[1]))
        self._after_value()
        return match.end()

    def _scalar(self, text: str, pos: int, final: bool) -> int:
        match = _SCALAR(text, pos)
        if match is None or match.end() - pos > LONGEST_BARE_TEXT:
            return self._break(pos)
        if match.end() == len(text) and not final:
            return pos
        several = (_THEN_KEY if self.stack[-1:] == "{" else _THEN_ITEMS)(match.group()) if self.stack else None
        source = several[1] if several is not None else match.group().rstrip()
        types = None if self.stack else self._types
        if types is None and source in _WORDS:
            self._write(_WORDS[source])
        elif self.stack and _NUMBER(source):
            self._write(source)
        else:
            value = TaggedValue(types)
            value.read(source, 0, True)
            self._write(value.out + value.finish())
            self.odd |= value.odd
        self._after_value()
        return pos + len(source) if several is not None else match.end()

    def _key(self, text: str, pos: int, final: bool) -> int:
        opening, closing = self._quotes
        if self._opens(text, pos):
            begin = pos + len(opening)
            end = self.find_quote(text, begin, closing)
            key = encode_basestring(text[begin:end])
            return self._take_key(key, end + len(closing)) if end >= 0 else self._unclosed(text, pos, final)
        if not final and opening.startswith(text[pos:]):
            return pos
        if text[pos] in "\"'":
            return self._quoted_key(text, pos, final)
        match = _BARE_KEY(text, pos)
        if match is None or (match.end() - pos > LONGEST_NOTATED_TEXT):
            return self._break(pos)
        whole = final or match.end() < len(text)
        return self._take_key(encode_basestring(match.group()), match.end()) if whole else pos

    def _quoted_key(self, text: str, pos: int, final: bool) -> int:
        python = text[pos] == "'"
        match = (_PYTHON_STRING if python else _JSON_STRING)(text, pos)
        if match is None:
            return self._unclosed(text, pos, final)
        if python:
            self._repaired(pos)
            return self._take_key(string_as_json(match[1]), match.end())
        try:
            key = json.loads(match.group(), strict=False)
            return self._take_key(json.dumps(key, ensure_ascii=False), match.end())
        except ValueError:
            return self._break(pos)

    def _unclosed(self, text: str, pos: int, final: bool) -> int:
        """Wait for the closing quote of a token if it may still come."""
        return self._break(pos) if final or len(text) - pos > LONGEST_NOTATED_TEXT else pos

    def _take_key(self, key: str, end: int) -> int:
        self._write(key)
        self._state = COLON
        return end

    def _punctuation(self, text: str, pos: int, final: bool) -> int:
        char = text[pos]
        if self._state == COLON:
            if char != ":":
                return self._break(pos)
            self.out += ": "
            self._state = VALUE
            return pos + 1
        if char == _CLOSING[self.stack[-1]]:
            return self._close(pos)
        in_map, opening = self.stack[-1] == "{", self._quotes[0]
        if char != ",":
            begins = self._opens(text, pos) or char in "\"'_" or char.isalnum()
            if not begins and not final and opening.startswith(text[pos:]):
                return pos
            if not begins and (in_map or char not in "{["):
                return self._break(pos)
            self._repaired(pos)  # the comma is missing
        self._lead = ", "
        self._state = KEY if in_map else VALUE
        return pos + 1 if char == "," else self._token(text, pos, final)

    def _close(self, pos: int) -> int:
        if self._lead:
            self._repaired(pos)  # the comma before it
            self._lead = ""
        self.out += _CLOSING[self.stack[-1]]
        self.stack = self.stack[:-1]
        self._after_value()
        return pos + 1

    def _after_value(self) -> None:
        self._state = AFTER if self.stack else DONE

    def _break(self, pos: int) -> int:
        self._was, self._state = self._state, BROKEN
        return pos

    def open_brackets(self) -> None:
        """Return None: a marker ends the rest of tagged arguments, and brackets do not count."""

    def dump(self) -> list[Any]:
        """Return the state as JSON-able data."""
        types = sorted(self._types) if self._types is not None and self._state == VALUE and not self.stack else None
        return [*self._quotes, self._state, self.stack, types, self.odd, bool(self._lead), bool(self.repairs)]

    @classmethod
    def load(cls, data: Any) -> NotatedScanner:
        """Load what `dump` returned."""
        opening, closing, state, stack, types, odd, lead, repaired = data
        scanner = cls((opening, closing), None if types is None else frozenset(types))
        scanner._state, scanner.stack, scanner.odd = state, stack, odd
        scanner._lead, scanner.repairs = ", " if lead else "", [_REPAIRED] if repaired else []
        return scanner
