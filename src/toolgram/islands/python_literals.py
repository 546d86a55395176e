"""Python literals, read as they arrive and written as JSON: `f(a=1, b=[None])` gives `{"a": 1, "b": [null]}`.

Some models write calls as Python.  What stands between the parentheses is then a list of keyword arguments whose
values are literals; now and then it is a single dict, or a bare container value.  `PythonScanner` reads either, one
delta at a time, and hands out JSON text in the style of `json.dumps`.  Nothing is evaluated: an expression, a
comment, a name or a prefixed string is a character that does not fit, and the scanner says where.

Strategy: one lexical state at a time, one reader per state.  `read` looks the reader up and lets it consume what it
can; a reader returns the new position and has set the state that takes over there.

    arguments, argument     a name or ")": before the first argument (where a sole dict may stand), after a comma
    name, equals            inside a name, and between it and its "="
    start, item, value      the bracket of a bare value; an element, a key or the closing bracket; a value that must be
    colon, after            what follows a key; what follows a value
    opening, body, quotes, escape, closed       a string, see below
    word; number, sign ...  the other scalars; numbers have a transition table of their own
    sole, last              after the sole dict, and after the comma that may follow it

Two facts shape the rest.  First, a token may be cut anywhere, so a state is left by the character that ends it, never
by the end of a delta, and there is no second path for tokens that happen to be whole.  Second, JSON is stricter about
what it takes back, so a few things are held until they are decided: a name until its "=", a separator until the next
element begins (a trailing comma has no JSON), a word until the character after it, an escape until its last digit,
and a closing quote until the next character that is not blank (`'a' "b"` is one string, and `''` may be the first
two thirds of a triple quote).  Everything else goes out at once; runs inside strings are found by one `re` and escaped
by the C function behind `json.dumps`.

Work is constant per character however the text is cut: patterns only ever look forward over runs, what is held is
short (or, for a name, a list of its pieces), and nesting is a string of opening brackets with a depth cap.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

_BLANKS = " \t\n\r\f"  # what Python skips inside brackets; a no-break space is not among them
_SCALAR = r"(?P<quote>[\"'])|(?P<number>[-+.0-9])|(?P<word>[TFNtfn])"
_OPEN = r"(?P<open>[\[({])"


def _expect(tokens: str) -> re.Pattern[str]:
    """Blanks, then one of the tokens if it is there; `lastgroup` names it. Optional, so that nothing is retried."""
    return re.compile(rf"[{_BLANKS}]*(?:{tokens})?")


# Frames of the stack are the brackets themselves, and for the outermost "k" (keyword arguments) or "d" (a sole dict).
_CLOSERS = {"k": r"\)", "d": r"\}", "{": r"\}", "[": r"\]", "(": r"\)"}
_KEYED = "{d"
_ARGUMENTS = "kd"

_ARGUMENT = {
    "arguments": _expect(r"(?P<name>[^\W\d]\w*)|(?P<close>\))|(?P<dict>\{)"),
    "argument": _expect(r"(?P<name>[^\W\d]\w*)|(?P<close>\))"),
}
_NAME = re.compile(r"\w+")
_EQUALS = _expect("(?P<equals>=)")
_COLON = _expect("(?P<colon>:)")
_VALUE = _expect(f"{_SCALAR}|{_OPEN}")
_CLOSED = _expect("(?P<quote>[\"'])")
_ITEM = {
    frame: _expect(f"{_SCALAR}|(?P<close>{closer})" + ("" if frame in _KEYED else f"|{_OPEN}"))
    for frame, closer in _CLOSERS.items()
}
_AFTER = {frame: _expect(f"(?P<comma>,)|(?P<close>{closer})") for frame, closer in _CLOSERS.items()}
_SOLE = {"sole": _expect(r"(?P<comma>,)|(?P<close>\))"), "last": _expect(r"(?P<close>\))")}

_WORDS = {"True": "true", "true": "true", "False": "false", "false": "false", "None": "null", "null": "null"}
_WORD_PREFIXES = {word[:size] for word in _WORDS for size in range(1, len(word) + 1)}
_WORD_ENDS = _BLANKS + ",:)]}"
_WHOLE_WORD = re.compile(rf"(?:{'|'.join(_WORDS)})(?=[{re.escape(_WORD_ENDS)}])").match

# Numbers: token -> next state and the JSON written for it (None: as it stands).  JSON wants a digit on both sides of a
# point and knows neither a plus sign in front nor underscores.
_NUMBER_TOKEN = re.compile(
    r"(?P<zero>0)|(?P<digits>[1-9][0-9]*)|(?P<point>\.)|(?P<exp>[eE])|(?P<minus>-)|(?P<plus>\+)|(?P<under>_)"
)
_Row = dict[str, tuple[str, str | None]]
_UNSIGNED: _Row = {"zero": ("zero", None), "digits": ("integer", None), "point": ("leading point", "0.")}
_NUMBER: dict[str, _Row] = {
    "number": {**_UNSIGNED, "minus": ("sign", "-"), "plus": ("sign", "")},
    "sign": _UNSIGNED,
    "zero": {"point": ("point", "."), "exp": ("exponent", None)},
    "integer": {
        "zero": ("integer", None),
        "digits": ("integer", None),
        "under": ("integer _", ""),
        "point": ("point", "."),
        "exp": ("exponent", None),
    },
    "integer _": {"zero": ("integer", None), "digits": ("integer", None)},
    "leading point": {"zero": ("fraction", None), "digits": ("fraction", None)},
    "point": {"zero": ("fraction", None), "digits": ("fraction", None), "exp": ("exponent", "0e")},
    "fraction": {
        "zero": ("fraction", None),
        "digits": ("fraction", None),
        "under": ("fraction _", ""),
        "exp": ("exponent", None),
    },
    "fraction _": {"zero": ("fraction", None), "digits": ("fraction", None)},
    "exponent": {
        "zero": ("power", None),
        "digits": ("power", None),
        "minus": ("exponent sign", None),
        "plus": ("exponent sign", None),
    },
    "exponent sign": {"zero": ("power", None), "digits": ("power", None)},
    "power": {"zero": ("power", None), "digits": ("power", None), "under": ("power _", "")},
    "power _": {"zero": ("power", None), "digits": ("power", None)},
}
_NUMBER_ENDS = {"zero": "", "integer": "", "point": "0", "fraction": "", "power": ""}  # what JSON still needs there

_RUN = {quote: re.compile(rf"[^{quote[0]}\\]+") for quote in ('"', "'", '"""', "'''")}
_SPECIAL = {quote: re.compile(rf'["{quote[0]}\\\x00-\x1f]').search for quote in _RUN}  # not the same in JSON
_HEX = "[0-9a-fA-F]"
# As much of one escape as fits, so that a cut one and a wrong one differ only in whether text is left.  The digits
# after "\U" are spelled out because the largest character is 10FFFF.
_ESCAPE = re.compile(
    rf"\\(?:[0-7]{{1,3}}|x{_HEX}{{0,2}}|u{_HEX}{{0,4}}|U(?:0(?:0(?:0{_HEX}{{0,5}}|1(?:0{_HEX}{{0,4}})?)?)?)?|\r\n?|.)?",
    re.DOTALL,
)
_ESCAPE_SIZE = {"x": 4, "u": 6, "U": 10, "\r": 3, **dict.fromkeys("01234567", 4)}  # the longest it can be; others 2
_LONGEST_ESCAPE = 10
_SHORT_ESCAPES = {
    "n": r"\n",
    "t": r"\t",
    "r": r"\r",
    "b": r"\b",
    "f": r"\f",
    "a": r"\u0007",
    "v": r"\u000b",
    "\\": r"\\",
    '"': r"\"",
    "'": "'",
    "\n": "",
    "\r": "",
}


# Leaps: a place and a delta -> the place after it, how much of it has produced JSON, that JSON (up to the name that it
# writes, what it adds to the name, and what follows), and the name that it begins. The same deltas come again and again
# in the same places; what the readers made of one is remembered, and forgotten when there are many.
_Place = tuple[str, str, str, str, str, str]
_Leap = tuple[_Place, int, str, str | None, str, str]
_LEAPS: dict[tuple[_Place, str], _Leap] = {}
_MOST_LEAPS = 4096
_LONGEST_LEAP = 16


def _json(text: str) -> str:
    """The text as it stands inside a JSON string."""
    return encode_basestring(text)[1:-1]


def _unescape(escape: str) -> str:
    """One whole escape, backslash included, as it stands inside a JSON string."""
    kind = escape[1]
    if kind in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[kind]
    if kind in "xuU":
        code = int(escape[2:], 16)
    elif kind in "01234567":
        code = int(escape[1:], 8)
    else:
        return _json(escape)
    return rf"\u{code:04x}" if 0xD800 <= code <= 0xDFFF else _json(chr(code))


class PythonScanner:
    """Reads Python keyword arguments or one container value, and writes JSON.

    `PythonScanner(keywords=True)` starts after the `(` of a call and ends with its `)`; `keywords=False` starts at the
    `{` or `[` of a value and ends with its match.  Feed it with `read`; after each call these tell where it stands:

    * `out`: the JSON text that the last `read` produced. Concatenated over all reads it is valid JSON once `done`, and
      a prefix of valid JSON at any time. It may come before `started`.
    * `started`: this is no prose and no expression so far. For keyword arguments, the first value has begun as a
      literal: a quote, an opening bracket, a digit, or a word with the character that ends it; a sole dict must be
      read to the closing bracket. For a bare value, the first character inside has been read. Never set by `f()`.
    * `end`: where the last `run` stopped.
    * `mark`: the position after the last character that has produced some of `out`.
    * `done`: the closing bracket has been read. `empty`: there were no arguments in front of it, as in `f()`.
    * `broken`: the character at the returned position does not fit. Everything before it has been consumed.
    """

    __slots__ = (
        "_held",
        "_lead",
        "_max_depth",
        "_name_pieces",
        "_named",
        "_names",
        "_parts",
        "_quote",
        "_stack",
        "_state",
        "_then",
        "broken",
        "done",
        "empty",
        "end",
        "mark",
        "out",
        "started",
    )

    def __init__(self, keywords: bool, max_depth: int = 256) -> None:
        self.out = ""
        self.end = 0
        self.mark = 0
        self.started = False
        self.empty = False
        self.done = False
        self.broken = False
        self._max_depth = max_depth
        self._state = "arguments" if keywords else "start"
        self._stack = "k" if keywords else ""
        self._lead = "{" if keywords else ""  # JSON owed in front of the next element
        self._then = "after"  # the state after this scalar: "colon" if it is a key
        self._quote = ""  # what ends this string: one quote or three
        self._held = ""  # the undecided part of a word, an escape or a run of quotes
        self._name_pieces: list[str] = []
        self._named = -1  # the place of the last name in `_parts`,
        self._names = 0  # and how many are there
        self._parts: list[str] = []

    def run(self, text: str) -> bool:
        """Consume `text`, a whole delta, and leave the JSON in `out`. Returns whether there is more to come.

        Costs one look-up where the same delta has come in the same place before.
        """
        place = self._place()
        leap = _LEAPS.get((place, text))
        if leap is not None and self.started:
            self._leap(leap)
            self.end = len(text)
            return True
        sure, name = self.started, self._name_pieces[:_LONGEST_LEAP]
        self._names = 0
        self.end = self.read(text, 0)
        if self.done or self.broken:
            return False
        if sure and len(text) <= _LONGEST_LEAP and len(name) < _LONGEST_LEAP and self._names < 2:
            self._learn(place, text, "".join(name))
        return True

    def _leap(self, leap: _Leap) -> None:
        place, self.mark, out, named, after, begun = leap
        self._state, self._stack, self._lead, self._then, self._quote, self._held = place
        if named is not None:
            out = f"{out}{''.join(self._name_pieces)}{named}{after}"
            self._name_pieces.clear()
        if begun:
            self._name_pieces.append(begun)
        self.out = out

    def _learn(self, place: _Place, text: str, name: str) -> None:
        """Remember what the readers have just made of `text`, for any name in place of `name`, which came before it."""
        if len(_LEAPS) >= _MOST_LEAPS:
            _LEAPS.clear()
        begun = "".join(self._name_pieces)
        leap: _Leap
        if not self._names:
            leap = (self._place(), self.mark, self.out, None, "", begun[len(name) :])
        else:
            before, whole, after = self._parts[: self._named], self._parts[self._named], self._parts[self._named + 1 :]
            leap = (self._place(), self.mark, "".join(before), whole[len(name) :], "".join(after), begun)
        _LEAPS[place, text] = leap

    def _place(self) -> _Place:
        """All that the reading of a delta depends on, names and beginnings aside."""
        return self._state, self._stack, self._lead, self._then, self._quote, self._held

    def read(self, text: str, pos: int) -> int:
        """Consume `text` from `pos` on; return the position after what was consumed, and leave the JSON in `out`."""
        parts = self._parts
        parts.clear()
        size = len(text)
        self.mark = pos
        written = 0
        while pos < size and not self.broken and not self.done:
            pos = _READERS[self._state](self, text, pos)
            if len(parts) > written:
                self.mark = pos
                written = len(parts)
        if self._stack[:1] == "d" or self._state in _SOLE:
            self.started = self.done  # a second argument would still make it prose
        self.out = "".join(parts)
        return pos

    def state(self) -> list[Any]:
        """All that the next `read` depends on, as JSON-able values: no larger than what is held and how deep it is."""
        return [
            [self.started, self.empty, self.done, self.broken],
            [self._max_depth, self._state, self._stack, self._lead, self._then, self._quote, self._held],
            "".join(self._name_pieces),
        ]

    @classmethod
    def restore(cls, state: list[Any]) -> PythonScanner:
        """A scanner that goes on where `state()` was taken."""
        self = cls(True)
        flags, lexical, name = state
        self.started, self.empty, self.done, self.broken = flags
        self._max_depth, self._state, self._stack, self._lead, self._then, self._quote, self._held = lexical
        self._name_pieces = [name] if name else []
        return self

    def passes(self, text: str) -> bool:
        """Whether `text` lies wholly inside a string, and is the same in JSON."""
        return self._state == "body" and not _SPECIAL[self._quote](text)

    @property
    def brackets(self) -> str:
        """The brackets that are open, that of the arguments first."""
        return self._stack.replace("k", "(").replace("d", "({")

    @property
    def quote(self) -> str:
        """The quote character of the string that the next character is inside of, or nothing."""
        return self._quote[:1] if self._state in ("body", "escape") else ""

    # Each reader below is called with at least one character at `pos`.

    def _unfit(self, text: str, pos: int) -> int:
        """No token: blanks to the end of the text, or blanks and then a character that does not fit."""
        end = len(text) - len(text[pos:].lstrip(_BLANKS))
        self.broken = end < len(text)
        return end

    # Arguments

    def _argument(self, text: str, pos: int) -> int:
        m = _ARGUMENT[self._state].match(text, pos)
        if m is None or m.lastgroup is None:
            return self._unfit(text, pos)
        end = m.end()
        if m.lastgroup == "name":
            self._name_pieces.append(m["name"])
            self._state = "equals" if end < len(text) else "name"
        elif m.lastgroup == "dict":
            self._stack = "d"
            self._state = "item"
        else:
            self.empty = self._state == "arguments"
            self._close()
        return end

    def _name(self, text: str, pos: int) -> int:
        if m := _NAME.match(text, pos):
            self._name_pieces.append(m[0])
            return m.end()
        self._state = "equals"
        return pos

    def _equals(self, text: str, pos: int) -> int:
        m = _EQUALS.match(text, pos)
        if m is None or m.lastgroup is None:
            return self._unfit(text, pos)
        self._state = "value"
        return m.end()

    def _sole(self, text: str, pos: int) -> int:
        m = _SOLE[self._state].match(text, pos)
        if m is None or m.lastgroup is None:
            return self._unfit(text, pos)
        if m.lastgroup == "comma":
            self._state = "last"
        else:
            self.done = True
        return m.end()

    # Containers

    def _start(self, text: str, pos: int) -> int:
        if text[pos] not in "{[" or self._max_depth < 1:
            self.broken = True
            return pos
        self._stack = self._lead = text[pos]
        self._state = "item"
        return pos + 1

    def _item(self, text: str, pos: int) -> int:
        frame = self._stack[-1]
        m = _ITEM[frame].match(text, pos)
        if m is None or m.lastgroup is None:
            return self._unfit(text, pos)
        if m.lastgroup == "close":
            self._close()
            return m.end()
        self._then = "colon" if frame in _KEYED else "after"
        return self._begin(m.lastgroup, m[m.lastgroup], m.end())

    def _value(self, text: str, pos: int) -> int:
        m = _VALUE.match(text, pos)
        if m is None or m.lastgroup is None:
            return self._unfit(text, pos)
        self._then = "after"
        return self._begin(m.lastgroup, m[m.lastgroup], m.end())

    def _begin(self, kind: str, char: str, end: int) -> int:
        """An element whose first character, just before `end`, is `char`: write what is owed and enter its state."""
        if kind == "open" and len(self._stack) >= self._max_depth:
            self.broken = True
            return end - 1
        parts = self._parts
        if self._lead:
            parts.append(self._lead)
            self._lead = ""
        if self._name_pieces:
            self._named = len(parts) + 1
            self._names += 1
            parts += ['"', "".join(self._name_pieces), '": ']
            self._name_pieces.clear()
        if not self.started:
            # In arguments a key is still no value, a sign no number and a letter no word.
            whole = kind in ("quote", "open") and self._then == "after"
            self.started = whole or self._stack[0] not in _ARGUMENTS
        if kind == "quote":
            parts.append('"')
            self._held = char
            self._state = "opening"
        elif kind == "open":
            parts.append("{" if char == "{" else "[")
            self._stack += char
            self._state = "item"
        else:
            if self._then == "colon":
                parts.append('"')
            self._held = ""
            self._state = kind
            return end - 1
        return end

    def _colon(self, text: str, pos: int) -> int:
        m = _COLON.match(text, pos)
        if m is None or m.lastgroup is None:
            return self._unfit(text, pos)
        self._parts.append(": ")
        self.started = True
        self._state = "value"
        return m.end()

    def _after(self, text: str, pos: int) -> int:
        frame = self._stack[-1]
        m = _AFTER[frame].match(text, pos)
        if m is None or m.lastgroup is None:
            return self._unfit(text, pos)
        if m.lastgroup == "comma":
            self._lead = ", "
            self._state = "argument" if frame == "k" else "item"
        else:
            self._close()
        return m.end()

    def _close(self) -> None:
        """The innermost frame has ended. What is still owed is its opening bracket, or a comma nobody needs."""
        frame = self._stack[-1]
        closer = "]" if frame in "[(" else "}"
        self._parts.append(closer if self._lead == ", " else self._lead + closer)
        self._lead = ""
        self._stack = self._stack[:-1]
        self.started = self.started or frame != "k"
        if self._stack:
            self._state = "after"
        elif frame == "d":
            self._state = "sole"
        else:
            self.done = True

    # Words and numbers

    def _word(self, text: str, pos: int) -> int:
        whole = None if self._held else _WHOLE_WORD(text, pos)
        if whole:
            self._held = whole.group()
            pos = whole.end()
        char = text[pos]
        if self._held + char in _WORD_PREFIXES:
            self._held += char
            return pos + 1
        if self._held not in _WORDS or char not in _WORD_ENDS:
            self.broken = True
            return pos
        self._parts.append(_WORDS[self._held])
        self.started = self.started or self._then == "after"
        self._end_scalar()
        return pos

    def _number(self, text: str, pos: int) -> int:
        m = _NUMBER_TOKEN.match(text, pos)
        if m is None or (step := _NUMBER[self._state].get(m.lastgroup or "")) is None:
            if self._state not in _NUMBER_ENDS:
                self.broken = True
                return pos
            if needed := _NUMBER_ENDS[self._state]:
                self._parts.append(needed)
            self._end_scalar()
            return pos
        self._state, written = step
        if written is None:
            written = m[0]
        if written:
            self._parts.append(written)
        if not self.started and self._then == "after":
            self.started = m.lastgroup in ("zero", "digits")
        return m.end()

    def _end_scalar(self) -> None:
        """A word or number is over; as a key it was written as a string."""
        if self._then == "colon":
            self._parts.append('"')
        self._state = self._then

    # Strings

    def _opening(self, text: str, pos: int) -> int:
        """One or two quotes were read: they open a string, are the empty string, or become a triple quote."""
        quote = self._held[0]
        if text[pos] == quote:
            self._held += quote
            if len(self._held) == 3:
                self._quote = self._held
                self._state = "body"
            return pos + 1
        if len(self._held) == 1:
            self._quote = quote
            self._state = "body"
        else:
            self._close_string()
        return pos

    def _body(self, text: str, pos: int) -> int:
        if m := _RUN[self._quote].match(text, pos):
            self._parts.append(encode_basestring(m[0])[1:-1])
            return m.end()
        self._held = text[pos]
        if self._held == "\\":
            self._state = "escape"
        elif len(self._quote) == 1:
            self._close_string()
        else:
            self._state = "quotes"
        return pos + 1

    def _quotes(self, text: str, pos: int) -> int:
        """Inside a triple-quoted string, after one or two quotes that may be the end of it."""
        if text[pos] == self._quote[0]:
            self._held += text[pos]
            if self._held == self._quote:
                self._close_string()
            return pos + 1
        self._parts.append(_json(self._held))
        self._state = "body"
        return pos

    def _escape(self, text: str, pos: int) -> int:
        held = len(self._held)
        window = self._held + text[pos : pos + _LONGEST_ESCAPE - held]
        size = _ESCAPE_SIZE.get(window[1], 2)
        m = _ESCAPE.match(window)
        end = m.end() if m else 0
        if end < size and end == len(window):
            self._held = window
        elif end < size and window[1] in "xuU":
            self.broken = True
        else:
            if unescaped := _unescape(window[:end]):
                self._parts.append(unescaped)
            self._state = "body"
        return pos + end - held

    def _close_string(self) -> None:
        """This string has ended. The closing quote is written when it is clear that no other follows to be joined."""
        self._state = "closed"
        if self._then == "colon" and self._stack == "d":
            self.started = True

    def _closed(self, text: str, pos: int) -> int:
        m = _CLOSED.match(text, pos)
        if m is None or (m.lastgroup is None and m.end() == len(text)):
            return len(text)
        if m.lastgroup == "quote":
            self._held = m["quote"]
            self._state = "opening"
        else:
            self._parts.append('"')
            self._state = self._then
        return m.end()


_READERS: dict[str, Callable[[PythonScanner, str, int], int]] = {
    "arguments": PythonScanner._argument,
    "argument": PythonScanner._argument,
    "name": PythonScanner._name,
    "equals": PythonScanner._equals,
    "start": PythonScanner._start,
    "item": PythonScanner._item,
    "value": PythonScanner._value,
    "colon": PythonScanner._colon,
    "after": PythonScanner._after,
    "opening": PythonScanner._opening,
    "body": PythonScanner._body,
    "quotes": PythonScanner._quotes,
    "escape": PythonScanner._escape,
    "closed": PythonScanner._closed,
    "word": PythonScanner._word,
    "sole": PythonScanner._sole,
    "last": PythonScanner._sole,
    **dict.fromkeys(_NUMBER, PythonScanner._number),
}
