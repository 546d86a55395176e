"""Python literals, read as they arrive and written as JSON: `f(a=1, b=[None])` gives `{"a": 1, "b": [null]}`.

Some models write calls as Python. Then the parentheses contain keyword arguments whose values are literals, sometimes a
single dict. `PythonScanner` reads either, one delta at a time, and writes JSON in the style of `json.dumps`. Nothing is
evaluated: an expression, a comment, a name or a prefixed string is a character that does not fit, and the scanner says
where.

Strategy: one reader per lexical state. `read` looks the reader up and lets it consume what it can; a reader returns the
new position and has set the next state.

    arguments, argument     a name or ")": before the first argument (or a sole dict), after a comma
    name, equals            inside a name, and between it and its "="
    item, value             an element, a key or the closing bracket; a required value
    colon, after            after a key; after a value
    opening, body, quotes, escape   a string, see below
    word; number, sign ...  the other scalars; numbers have a transition table of their own
    sole, last              after the sole dict, and after the comma that may follow it
    over                    after the closing bracket

A token may be cut anywhere, so the character after a token ends its state, never the end of a delta, and there is no
second path for whole tokens. JSON cannot take anything back, so a few things are held until they are decided: a name
until its "=", a separator until the next element begins (JSON has no trailing comma), a word until the next character,
an escape until its last digit, and two quotes until the next character (a triple quote may have begun). Everything else
goes out at once; runs inside strings are found by one `re` and escaped by the C function of `json.dumps`.

Work is constant per character however the text is cut: patterns only look forward over runs, held text is short (or,
for a name, a list of its pieces), and nesting is a string of opening brackets with a depth cap.
"""

from __future__ import annotations

from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any

from toolgram.islands import OpenBrackets
from toolgram.islands.held_text import add_piece
from toolgram.islands.python_tokens import (
    AFTER,
    ARGUMENT,
    BASED,
    BASED_DIGITS,
    BLANKS,
    COLON,
    EQUALS,
    ITEM,
    KEYED,
    NAME,
    NUMBER,
    NUMBER_ENDS,
    NUMBER_TOKEN,
    RUN,
    SOLE,
    SPECIAL,
    VALUE,
    WORD_ENDS,
    WORD_PREFIXES,
    WORDS,
    is_short,
    json_text,
    more_of_escape,
    unescape,
)
from toolgram.limits import LONGEST_WORD, MAX_DEPTH, MAX_DIGITS

_INTEGERS = ("integer", "integer _")
# The states in which it no longer matters whether the last scalar was a key.
BETWEEN_SCALARS = frozenset(
    {"arguments", "argument", "name", "equals", "item", "value", "colon", "after", "sole", "last"}
)


class PythonScanner:
    r"""Reads Python keyword arguments, from after the `(` of a call to its `)`, and writes JSON. After each `read`:

    * `out`: the JSON that the last `read` produced. Concatenated, it is valid JSON once `done`, and a prefix
      of valid JSON at any time. It may come before `started`.
    * `started`: this is certainly not prose. For keyword arguments, the first value has begun as a literal: a quote, an
      opening bracket, a digit, or a whole word; a sole dict must be read to the closing bracket. Never set by `f()`.
    * `end`: where the last `run` stopped.
    * `mark`: the position after the last character that produced some of `out`.
    * `done`: the closing bracket has been read. `empty`: without arguments before it, as in `f()`.
    * `broken`: the character at the returned position does not fit. Everything before it has been consumed.
    * `waits`: the text at the returned position is undecided, and is to be read again with more text.

    With `alone`, it reads one value, JSON or Python, as that of an argument: nothing may follow it, not even the
    closing bracket, and `\/` is a slash as in JSON. With `listed`, its call is an element of a list.
    """

    __slots__ = (
        "_digits", "_held", "_lead", "_name_pieces", "_parts", "_quote", "_readers", "_stack", "_state", "_then",
        "_word_ends", "alone", "broken", "done", "empty", "end", "listed", "mark", "out", "started", "waits",
    )  # fmt: skip

    def __init__(self) -> None:
        self.out = ""
        self.end = self.mark = 0
        self.started = self.empty = self.done = self.broken = self.waits = self.alone = self.listed = False
        self._state = "arguments"
        self._stack = "k"
        self._lead = "{"  # JSON to write before the next element
        self._then = "after"  # the state after this scalar: "colon" if it is a key
        self._quote = ""  # closing quote of this string: one character or three
        self._held = ""  # the undecided part of a word, an escape or a run of quotes
        self._name_pieces: list[str] = []
        self._parts: list[str] = []
        self._digits = 0  # of the integer that is being read
        self._readers = READERS
        self._word_ends = WORD_ENDS

    @classmethod
    def within(cls, stack: str, state: str) -> PythonScanner:
        """Return a scanner inside these frames, in this state."""
        self = cls()
        self._stack, self._state, self._lead, self.started = stack, state, "", True
        return self

    def run(self, text: str) -> bool:
        """Consume `text`, a whole delta, and leave the JSON in `out`. Return whether there is more to come."""
        self.end = self.read(text, 0)
        return not (self.done or self.broken)

    def read(self, text: str, pos: int, final: bool = False, ended: bool = False) -> int:
        """Consume `text` from `pos` on; return the position after it, and leave the JSON in `out`."""
        parts = self._parts
        parts.clear()
        size = len(text)
        self.mark = pos
        written = 0
        while pos < size and not self.broken and not self.done:
            pos = self._readers[self._state](self, text, pos)
            if len(parts) > written:
                self.mark = pos
                written = len(parts)
        if self._stack[:1] == "d" or self._state in SOLE:
            self.started = self.done  # a second argument would still make it prose
        self.out = "".join(parts)
        return pos

    def dump(self) -> list[Any]:
        """Return all that the next `read` depends on, as JSON-able values."""
        state, then = self._state, "after" if self._state in BETWEEN_SCALARS else self._then
        lexical = [state, self._stack, self._lead, then, self._quote, self._held]
        digits = self._digits if state in _INTEGERS else 0
        return [self.started, self.alone, self.listed, *lexical, "".join(self._name_pieces), digits]

    @classmethod
    def load(cls, data: Any) -> PythonScanner:
        """Load what `dump` returned."""
        self = cls()
        self._set(data)
        return self

    def _set(self, data: Any) -> None:
        """Set the state that was dumped."""
        self.started, self.alone, self.listed, self._state, self._stack, self._lead, *rest = data
        self._then, self._quote, self._held, name, self._digits = rest
        self._name_pieces = [name] if name else []
        self.done = self._state == "over"
        self.empty = self.done and not self.started

    def passes(self, text: str) -> bool:
        """Return whether `text` is wholly inside a string and the same in JSON."""
        return self._state == "body" and not SPECIAL[self._quote](text)

    def open_brackets(self) -> OpenBrackets:
        """Return the open brackets, beginning with that of the arguments, and the quote of the string."""
        quote = self._quote[:1] if self._state in ("body", "escape") else ""
        brackets = self._stack.replace("k", "(").replace("t", "(").replace("d", "({").replace("s", "{")
        return OpenBrackets("[" * self.listed + brackets, quote, self.listed, python=True)

    @property
    def at_argument(self) -> bool:
        """True if the name of an argument and its equals sign have been read."""
        return self._state == "value" and self._stack == "k"

    @property
    def is_whole(self) -> bool:
        """True if no bracket of a value is open."""
        return self._stack == "k"

    @property
    def in_string(self) -> bool:
        """True if the next character, unless it is a quote, is inside a string."""
        opened = self._state == "opening" and len(self._held) == 1
        return opened or self._state in ("body", "escape", "quotes")

    # Each reader below is called with at least one character at `pos`.

    def _unfit(self, text: str, pos: int) -> int:
        """Skip blanks; the scanner is broken if a character follows that does not fit."""
        end = len(text) - len(text[pos:].lstrip(BLANKS))
        self.broken = end < len(text)
        return end

    # Arguments

    def _argument(self, text: str, pos: int) -> int:
        m = ARGUMENT[self._state](text, pos)
        if m.lastgroup is None:
            return self._unfit(text, pos)
        end = m.end()
        if m.lastgroup == "name":
            add_piece(self._name_pieces, m["name"])
            self._state = "equals" if end < len(text) else "name"
        elif m.lastgroup == "dict":
            self._stack = "d"
            self._state = "item"
        else:
            self.empty = self._state == "arguments"
            self._close()
        return end

    def _name(self, text: str, pos: int) -> int:
        if m := NAME.match(text, pos):
            add_piece(self._name_pieces, m[0])
            return m.end()
        self._state = "equals"
        return pos

    def _equals(self, text: str, pos: int) -> int:
        m = EQUALS(text, pos)
        if m.lastgroup is None:
            return self._unfit(text, pos)
        self._state = "value"
        return m.end()

    def _sole(self, text: str, pos: int) -> int:
        m = SOLE[self._state](text, pos)
        if m.lastgroup is None:
            return self._unfit(text, pos)
        if m.lastgroup == "comma":
            self._state = "last"
        else:
            self.started, self.done, self._state = True, True, "over"
        return m.end()

    # Containers

    def _item(self, text: str, pos: int) -> int:
        frame = self._stack[-1]
        m = ITEM[frame](text, pos)
        if m.lastgroup is None:
            return self._unfit(text, pos)
        if m.lastgroup == "close":
            self._close()
            return m.end()
        self._then = "colon" if frame in KEYED else "after"
        return self._begin(m.lastgroup, m[m.lastgroup], m.end())

    def _value(self, text: str, pos: int) -> int:
        m = VALUE(text, pos)
        if m.lastgroup is None:
            return self._unfit(text, pos)
        self._then = "after"
        return self._begin(m.lastgroup, m[m.lastgroup], m.end())

    def _begin(self, kind: str, char: str, end: int) -> int:
        """Begin an element: write what waits and enter its state. Its first character, just before `end`, is `char`."""
        if kind == "open" and len(self._stack) >= MAX_DEPTH:
            self.broken = True
            return end - 1
        parts = self._parts
        self._write_lead(kind in ("quote", "open"))
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

    def _write_lead(self, begun: bool) -> None:
        """Write what waits for an element. `begun`: its first character makes it a value."""
        parts = self._parts
        if self._lead:
            parts.append(self._lead)
            self._lead = ""
        if self._name_pieces:
            parts += ['"', "".join(self._name_pieces), '": ']
            self._name_pieces.clear()
        self.started |= begun and self._then == "after"  # a key is not a value yet, nor a sign a number

    def _colon(self, text: str, pos: int) -> int:
        m = COLON(text, pos)
        if m.lastgroup is None:
            return self._unfit(text, pos)
        self._parts.append(": ")
        self._state = "value"
        return m.end()

    def _after(self, text: str, pos: int) -> int:
        frame = self._stack[-1]
        m = AFTER[frame](text, pos)
        if m.lastgroup is None:
            return self._unfit(text, pos)
        if (self.alone and frame == "k") or (frame == "(" and m.lastgroup == "close"):  # `(1)` is no tuple
            self.broken = True
            return m.end() - 1
        if m.lastgroup == "comma":
            self._lead = ", "
            self._stack = self._stack[:-1] + frame.replace("(", "t")
            self._state = "argument" if frame == "k" else "item"
        else:
            self._close()
        return m.end()

    def _close(self) -> None:
        """Close the innermost frame. Its opening bracket may not be written yet; a trailing comma is dropped."""
        frame = self._stack[-1]
        closer = "]" if frame in "[(ts" else "}"
        self._parts.append(closer if self._lead == ", " else self._lead + closer)
        self._lead = ""
        self._stack = self._stack[:-1]
        if self._stack:
            self._state = "after"
        elif frame == "d":
            self._state = "sole"
        else:
            self.done, self._state = True, "over"

    # Words and numbers

    def _word(self, text: str, pos: int) -> int:
        char = text[pos]
        if self._held + char in WORD_PREFIXES:
            self._held += char
            return pos + 1
        if self._held not in WORDS or char not in self._word_ends:
            self.broken = True
            return pos
        self._parts.append(WORDS[self._held])
        self.started = True
        self._end_scalar()
        return pos

    def _number(self, text: str, pos: int) -> int:
        m = NUMBER_TOKEN.match(text, pos)
        if m is None or (step := NUMBER[self._state].get(m.lastgroup or "")) is None:
            return self._end_number(pos, m is not None)
        end = m.end()
        if m.lastgroup in ("zero", "digits") and step[0] in _INTEGERS:
            self._digits = end - pos + (self._digits if self._state in _INTEGERS else 0)
            if self._digits > MAX_DIGITS:
                end -= self._digits - MAX_DIGITS
                self._digits, self.broken = MAX_DIGITS, True
                if end > pos:
                    self._parts.append(text[pos:end])
                self.started = True
                return end
        self._state, written = step
        if written is None:
            written = m[0]
        if written:
            self._parts.append(written)
        if not self.started and self._then == "after":
            self.started = m.lastgroup in ("zero", "digits")
        return end

    def _end_number(self, pos: int, more: bool) -> int:
        """End a number, unless `more` of one follows directly: `01` is no number, and not two."""
        needed = NUMBER_ENDS.get(self._state)
        if needed:
            self._parts.append(needed)
        self.broken = more or needed is None
        if not self.broken:
            self._end_scalar()
        return pos

    def _based(self, text: str, pos: int) -> int:
        """Read a number with another base after its zero; it is held until it is over."""
        end = min(BASED_DIGITS(text, pos).end(), pos + LONGEST_WORD - len(self._held))
        self._held += text[pos:end]
        self.broken = end < len(text) and BASED(self._held) is None
        if end < len(text) and not self.broken:
            self._parts.append(str(int("0" + self._held.replace("_", ""), 0)))
            self._end_scalar()
        return end

    def _end_scalar(self) -> None:
        """End a word or number; as a key it was written as a string."""
        self._held = ""
        if self._then == "colon":
            self._parts.append('"')
        self._state = self._then

    # Strings

    def _opening(self, text: str, pos: int) -> int:
        """Decide one or two quotes: they open a string, are the empty string, or become a triple quote."""
        quote = self._held[0]
        if text[pos] == quote:
            self._held += quote
            if len(self._held) == 3:
                self._quote, self._held = self._held, ""
                self._state = "body"
            return pos + 1
        if len(self._held) == 1:
            self._quote, self._held = quote, ""
            self._state = "body"
        else:
            self._close_string()
        return pos

    def _body(self, text: str, pos: int) -> int:
        if m := RUN[self._quote].match(text, pos):
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
        """Read on after one or two quotes in a triple-quoted string, which they may end."""
        if text[pos] == self._quote[0]:
            self._held += text[pos]
            if self._held == self._quote:
                self._close_string()
            return pos + 1
        self._parts.append(json_text(self._held))
        self._state, self._held = "body", ""
        return pos

    def _escape(self, text: str, pos: int) -> int:
        escape, end, grows = more_of_escape(self._held, text, pos)
        if grows:
            self._held = escape
        elif escape[1] in "xuU" and is_short(escape):
            self.broken = True
        else:
            if unescaped := "/" if self.alone and escape == "\\/" else unescape(escape):
                self._parts.append(unescaped)
            self._state, self._held = "body", ""
        return end

    def _close_string(self) -> None:
        self._parts.append('"')
        self._state, self._held, self._quote = self._then, "", ""


READERS: dict[str, Callable[[Any, str, int], int]] = {
    "arguments": PythonScanner._argument,
    "argument": PythonScanner._argument,
    "name": PythonScanner._name,
    "equals": PythonScanner._equals,
    "item": PythonScanner._item,
    "value": PythonScanner._value,
    "colon": PythonScanner._colon,
    "after": PythonScanner._after,
    "opening": PythonScanner._opening,
    "body": PythonScanner._body,
    "quotes": PythonScanner._quotes,
    "escape": PythonScanner._escape,
    "word": PythonScanner._word,
    "based": PythonScanner._based,
    "sole": PythonScanner._sole,
    "last": PythonScanner._sole,
    **dict.fromkeys(NUMBER, PythonScanner._number),
}
