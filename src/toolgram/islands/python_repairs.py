r"""Python arguments that are no literals, written as JSON all the same, where only one reading is possible.

Strategy: the scanner of literals, with readers of its own where a value begins and where a string ends.  A value that
is neither a string nor a container is read as *source* up to the comma or bracket after it, and only then judged.

* `07` is 7, and what is no literal (`1/6`, `a + b`, `f(x)`, `New York`) is a string of its source,
* a set is a list: the first string or scalar after a brace waits for what follows it,
* a quote inside a string (`'sed -n '1,9p' f'`): one ends the string only where a comma, a colon, a closing bracket, a
  quote or the end follows,
* a missing comma between two arguments, and a key of a dict without quotes.

What has several readings is broken as before: a colon or an equals sign in an expression, numbers side by side, an
operator after a string.  `notes` has the source of what was repaired.  What is held is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

from toolgram.islands import checked
from toolgram.islands.held_text import add_piece, take_pieces
from toolgram.islands.python_literals import BETWEEN_SCALARS, READERS, PythonScanner
from toolgram.islands.python_tokens import (
    BLANKS,
    CLOSED,
    COLON,
    ITEM,
    KEYED,
    VALUE,
    WORDS,
    Always,
    always,
    json_text,
)
from toolgram.limits import (
    LONGEST_FIRST_ITEM,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_HELD_VALUE,
    MAX_NESTED_EXPRESSION,
    MOST_BETWEEN,
    MOST_BLANKS,
)

_ENDS_STRING = ",:)]}"
_OPERATORS = "+%*.[(|&<>=!-/^@#"
_BETWEEN = frozenset({"if", "in", "and", "or", "for", "is", "not"})  # words that stand between two values
_PARTNERS = {")": "(", "]": "[", "}": "{"}
_OPENS_STRING = re.compile(r"(?:\A|[^\w\s])\s*(?:[rbfuRBFU]|[rR][bfBF]|[bfBF][rR])?\Z").search

_in_string = {quote: re.compile(rf"[^{quote}\\]+").match for quote in "'\""}


@cache
def _plain_source(stops: str) -> re.Pattern[str]:
    """Source in which no character matters, and none stands that a marker begins with."""
    return re.compile(rf"[^,:=()\[\]{{}}'\"\\{re.escape(stops)}]+")


_DIGITS = r"[0-9]+(?:_[0-9]+)*+"
_number = re.compile(
    rf"(?P<sign>[+-]?)(?P<whole>{_DIGITS})?(?P<point>\.(?P<fraction>{_DIGITS})?)?(?P<power>[eE][+-]?{_DIGITS})?"
).fullmatch
_radix = re.compile(r"[+-]?0(?:[xX](?:_?[0-9a-fA-F])+|[oO](?:_?[0-7])+|[bB](?:_?[01])+)").fullmatch
_side_by_side = re.compile(r"[\w.]*[0-9][\w.]*\s+[0-9.][\w.]*(?:\s+[\w.]+)*").fullmatch
_then_name = re.compile(rf"(?P<value>[^\s]+)[{BLANKS}]+(?P<name>[^\W\d]\w*)[{BLANKS}]*").fullmatch
_word = re.compile(r"[^\W\d]\w*").fullmatch
_after_a_quote = always(rf"[{BLANKS}]*\w*[{BLANKS}]*")


class RepairingPythonScanner(PythonScanner):
    """Reads keyword arguments as `PythonScanner` does, and repairs them; `notes` is what was repaired so far.

    `stops` are characters that a marker begins with: in source, the scanner breaks at one, and `pass_stop` goes on.

    What every delta takes calls that class by its name: `super()` costs a tenth of a delta, each time.
    """

    __slots__ = ("_first", "_nested", "_passed", "_source", "_stops", "at_stop", "back", "notes")

    def __init__(self, keywords: bool = True, max_depth: int = MAX_DEPTH, stops: str = "") -> None:
        super().__init__(keywords, max_depth)
        self._stops = stops
        self.at_stop = False  # it has broken at what may begin a marker
        self._passed = False  # the next character is no marker
        self.notes: list[str] = []
        self.back = 0  # how many characters the last of them begins before what is read next
        self._readers = _READERS
        self._forgets = _FORGETS
        self._cache = _CACHES.setdefault(stops, {})
        self._source: list[str] = []  # of the value that is read
        self._nested = ""  # the brackets that are open in it
        self._first: list[str] | None = None  # JSON of the first item after a brace, of a dict or of a set

    @property
    def _exact(self) -> bool:
        """Nothing is held that a cache does not know of."""
        return self._first is None and (self._state != "source" or len(self._source) <= 1)

    def run(self, text: str) -> bool:
        """As `PythonScanner.run`; a delta with a repair in it is to be looked at, like one that ends the arguments."""
        if self._first is None and (self._state != "source" or len(self._source) <= 1):  # `_exact`, without a call
            return PythonScanner.run(self, text) and not self.notes
        self.end = self.read(text, 0)
        return not (self.done or self.broken or self.notes)

    def _place(self) -> Any:
        state, held = self._state, self._held
        if state == "source":
            held = f"{held}\0{self._nested}\0{''.join(self._source)}"
        return state, self._stack, self._lead, self._then, self._quote, held

    def _jump(self, cached: Any) -> None:
        PythonScanner._jump(self, cached)
        if self._source:
            self._source.clear()
        if self._state == "source":
            self._held, self._nested, source = self._held.split("\0", 2)
            self._source += [source] if source else []

    def _remember(self, place: Any, text: str, name: str) -> None:
        if self._exact and not self.notes:
            super()._remember(place, text, name)

    def passes(self, text: str) -> bool:
        """Whether `text` lies wholly inside a string, and is the same in JSON."""
        return self._first is None and PythonScanner.passes(self, text)

    def read(self, text: str, pos: int, final: bool = False) -> int:
        """Consume `text` from `pos` on, up to the first repair; what a brace begins is held until it is known."""
        parts, readers, size = self._parts, self._readers, len(text)
        parts.clear()
        self.mark = pos
        written = 0
        while pos < size and not (self.broken or self.done or self.notes):
            first = self._first
            pos = readers[self._state](self, text, pos)
            if first is not None and self._first is first and len(parts) > written:
                first += parts[written:]
                del parts[written:]
                if sum(map(len, first)) > LONGEST_FIRST_ITEM:
                    self._is_dict()
            if len(parts) > written:
                self.mark = pos
                written = len(parts)
        if self._stack[:1] == "d" or self._state in ("sole", "last"):
            self.started = self.done
        self.out = "".join(parts)
        return pos

    @property
    def inside(self) -> str | None:
        """After a value: the brackets that are open inside the arguments. None elsewhere."""
        state = self._state
        behind = state == "after" or (state == "item" and self._lead == ", ")
        behind |= self.at_stop or (state == "closed" and len(self._quote) == 1)
        return self._stack.removeprefix("k") if behind and self._then == "after" and self._stack[0] != "d" else None

    def pass_stop(self) -> None:
        """There is no marker: read on."""
        self.broken, self.at_stop, self._passed = False, False, True

    def end_value(self) -> None:
        """A marker ends source, or shows that a quote ends its string. `out` is the JSON of that."""
        self.broken = False
        self._parts.clear()
        if self.at_stop:
            self.at_stop = False
            self._end_source(")")
        elif self._state == "closed":
            self._parts.append('"')
            self._state, self._held, self._quote = "after", "", ""
        self.out = "".join(self._parts)

    def close_inside(self) -> None:
        """Close these brackets: the next argument may follow. `out` is the JSON of that."""
        self.broken = False
        self._parts.clear()
        while self._stack.removeprefix("k"):
            self._close()
        self.out = "".join(self._parts)

    def close_all(self) -> None:
        """The same, and the arguments are over."""
        self.close_inside()
        self.out, self.done = self.out + "}", True

    # --- where a value begins -------------------------------------------------------------------------------------

    def _value(self, text: str, pos: int) -> int:
        self._then = "after"
        at = self._any(VALUE, text, pos)
        return super()._value(text, pos) if at < 0 else at

    def _item(self, text: str, pos: int) -> int:
        frame = self._stack[-1]
        self._then = "colon" if frame in KEYED else "after"
        at = self._any(ITEM[frame], text, pos)
        return super()._item(text, pos) if at < 0 else at

    def _any(self, expected: Always, text: str, pos: int) -> int:
        """What is neither a string nor a bracket is source. The new position; -1 where it is one of these."""
        match = expected(text, pos)
        at = match.end() - (match.lastgroup is not None)
        if match.lastgroup in ("quote", "open", "close") or at == len(text) or text[at] in ",:)]}=":
            return -1
        if self._then == "colon" and self._stack == "d":
            return -1
        self._write_lead(False)
        self._state, self._nested, self._quote, self._held = "source", "", "", ""
        return at

    def _begin(self, kind: str, char: str, end: int) -> int:
        if kind != "open" or char != "{" or len(self._stack) >= self._max_depth:
            return super()._begin(kind, char, end)
        self._write_lead(True)
        self._stack += char
        self._state, self._first = "item", []
        return end

    # --- source ---------------------------------------------------------------------------------------------------

    def _take_source(self, text: str, pos: int) -> int:
        """Source, up to the comma, bracket or colon that ends it."""
        while pos < len(text):
            if self._held == "=":
                self._held = ""
                if text[pos] != "=":
                    return self._next_argument(pos)
                add_piece(self._source, "==")
                pos += 1
                continue
            inside = _in_string[self._quote] if self._quote else _plain_source(self._stops).match
            match = None if self._held else inside(text, pos)
            end = match.end() if match else pos + 1
            if match is None and not self._character(text[pos]):
                return pos if self.broken or self._state != "source" else pos + 1
            if match is not None:
                add_piece(self._source, match.group())
                if not self.started and self._then == "after":
                    self.started = any(each.isdecimal() for each in match.group())
            pos = end
            if sum(map(len, self._source)) > MAX_HELD_VALUE:
                self.broken = True
                return pos
        return pos

    def _character(self, char: str) -> bool:
        """A character that matters. False where the source is over before it, or it is to be looked at again."""
        if char in self._stops and not (self._quote or self._nested or self._held or self._passed):
            self.broken = self.at_stop = True
            return False
        self._passed = False
        if "\\" in (self._held, char):
            self._held = "" if self._held else char
        elif self._quote:
            self._quote = ""
        elif char in "'\"":
            self._quote_in_source(char)
        elif char in "([{" or self._nested:
            self._bracket_in_source(char)
        elif char == "=":
            if "".join(self._source[-1:])[-1:] not in tuple("!<>:="):
                self._held = "="  # the next character says whether it compares
                return True
        elif char not in self._stops and not (char == ":" and self._then == "after" and self._stack[-1] not in KEYED):
            self._end_source(char)  # no marker, and no colon of a lambda
            return False
        if self.broken:
            return False
        add_piece(self._source, char)
        return True

    def _quote_in_source(self, quote: str) -> None:
        before = "".join(self._source)
        self.broken = before[-1:] in BLANKS and before.rstrip(BLANKS)[-1:].isalnum()  # a comma may be missing
        if not self.broken and _OPENS_STRING(before):
            self._quote = quote

    def _bracket_in_source(self, char: str) -> None:
        """An opening bracket, or what is inside of brackets."""
        if char in _PARTNERS.values():
            self._nested += char
            self.broken = len(self._nested) > MAX_NESTED_EXPRESSION
        elif char in _PARTNERS:
            self.broken = self._nested[-1] != _PARTNERS[char]
            self._nested = self._nested[:-1]

    def _end_source(self, char: str) -> None:
        taken = take_pieces(self._source)
        source, self.back = taken.rstrip(BLANKS), len(taken)
        if (char == ":") != (self._then == "colon") and self._first is None:
            self.broken = True
        elif char == ":":
            self._write_key(source)
        else:
            self._write_value(source)
        if not self.broken:
            self._state = self._then

    def _write_key(self, source: str) -> None:
        written = _number_as_json(source) if _number(source) else WORDS.get(source)
        if written is None:
            if not _word(source):
                self.broken = True
                return
            self.notes.append(source)
        self._parts.append(f'"{written or source}"')

    def _write_value(self, source: str) -> None:
        written, number = WORDS.get(source), _number(source)
        if written is None and number is not None and (number["whole"] or number["fraction"]):
            written = _number_as_json(source)
            whole, integer = number["whole"] or "", not number["point"] and not number["power"]
            if integer and len(written.lstrip("-")) > MAX_DIGITS:
                self.broken = True
                return
            if integer and whole[0] == "0" and whole.strip("0_"):
                self.notes.append(source)
        elif written is None and _radix(source) and len(source) <= MOST_BLANKS:
            written = str(int(source.replace("_", ""), 0))
        elif written is None:
            if not source or _side_by_side(source):
                self.broken = True
                return
            self.notes.append(source)
            written = f'"{json_text(source)}"'
        self.started = self.started or self._then == "after"
        self._parts.append(written)

    def _next_argument(self, pos: int) -> int:
        """An equals sign that compares nothing: the comma before the next argument is missing."""
        source = take_pieces(self._source)
        match = _then_name(source)
        if match is None or self._stack != "k" or not (match["value"] in WORDS or _number(match["value"])):
            self.broken = True
            return pos
        self._write_value(match["value"])
        self._add_comma(match["name"], 1 + len(source) - match.start("name"))
        self._state = "value"
        return pos

    def _add_comma(self, name: str, back: int) -> None:
        self.notes.append(name)
        self.back = back
        self._lead = ", "
        self._name_pieces.append(name)

    # --- a dict or a set ------------------------------------------------------------------------------------------

    def _is_dict(self) -> None:
        if self._first is not None:
            self._parts += ["{", *self._first]
            self._first = None

    def _colon(self, text: str, pos: int) -> int:
        match = COLON(text, pos)
        end = match.end()
        if self._first is not None and end < len(text) and match.lastgroup is None and text[end] in ",}":
            self.notes.append("{")
            self.back = 0
            self._parts += ["[", *self._first]
            self._stack, self._first, self._state = self._stack[:-1] + "s", None, "after"
            return end
        if match.lastgroup is not None:
            self._is_dict()
        return super()._colon(text, pos)

    def _close(self) -> None:
        self._is_dict()
        super()._close()

    # --- where a string ends --------------------------------------------------------------------------------------

    def _close_string(self) -> None:
        if self._state == "opening":
            self._quote = ""  # of an empty one: a quote in it would have several readings
        super()._close_string()

    def _closed(self, text: str, pos: int) -> int:
        match = CLOSED(text, pos)
        at = match.end() - (match.lastgroup is not None)
        if len(self._quote) != 1 or len(self._held) + at - pos > MOST_BLANKS:
            return self._ends(text, pos)
        if at == len(text):
            self._held += text[pos:]
            return at
        if match.lastgroup == "quote" or text[at] in _ENDS_STRING:
            return self._ends(text, pos)
        if text[at] in _OPERATORS:
            self.broken = True
            return at
        self._held += text[pos:at]
        if self._held and (text[at].isalpha() or text[at] == "_"):
            self._state = "after a quote"
            return at
        return self._goes_on(at)

    def _ends(self, text: str, pos: int) -> int:
        self._held = ""
        return super()._closed(text, pos)

    def _goes_on(self, at: int) -> int:
        """The quote was part of the string."""
        self.notes.append(self._quote)
        self.back = len(self._quote + self._held)
        self._parts.append(json_text(self._quote + self._held))
        self._state, self._held = "body", ""
        return at

    def _read_after_a_quote(self, text: str, pos: int) -> int:
        """A word after a string: the name of the next argument, or the string goes on."""
        held = self._held + text[pos:]
        match = _after_a_quote(held, 0)
        end = pos + match.end() - len(self._held)
        self._held = match.group()
        if len(self._held) > MOST_BETWEEN:
            return self._goes_on(end)
        if end == len(text):
            return end
        word = self._held.strip(BLANKS)
        if word in _BETWEEN:
            self.broken = True
            return end
        if text[end] != "=" or self._stack != "k":
            return self._goes_on(end)
        self._parts.append('"')
        self._add_comma(word, len(self._held.lstrip(BLANKS)))
        self._state, self._held, self._quote = "equals", "", ""
        return end

    # --- snapshots ------------------------------------------------------------------------------------------------

    def dump(self) -> list[Any]:
        """All that the next `read` depends on, as JSON-able values."""
        first = None if self._first is None else "".join(self._first)
        return [super().dump(), first, "".join(self._source), self._nested, [*self.notes], self._stops, self._passed]

    @classmethod
    def load(cls, data: Any) -> RepairingPythonScanner:
        """Load what `dump` returned. Raises ValueError for anything else."""
        literal, first, source, nested, notes, stops, passed = checked(
            data, list, (str, None), str, str, list, str, bool
        )
        self = cls(stops=stops)
        self._passed = passed
        self._set(literal)
        self._first = None if first is None else [first]
        self._source, self._nested = [source] if source else [], nested
        self.notes = checked(notes, *[str] * len(notes))[:]
        fits = (bool(source or stops) or self._state != "source") and not nested.strip("([{")
        fits &= self._held in ("", "=", "\\") or self._state != "source"
        fits &= self._state != "after a quote" or (len(self._quote) == 1)
        fits &= first is None or self._stack[-1:] == "{"
        fits &= self._state != "closed" or not self._held.strip(BLANKS)
        if not fits:
            raise ValueError("no state of a repair")
        return self


def _number_as_json(source: str) -> str:
    """A number of Python, as JSON."""
    number = _number(source)
    assert number is not None
    whole = (number["whole"] or "0").replace("_", "").lstrip("0") or "0"
    fraction = "." + (number["fraction"] or "0").replace("_", "") if number["point"] else ""
    return f"{number['sign'].strip('+')}{whole}{fraction}{(number['power'] or '').replace('_', '')}"


_FORGETS = BETWEEN_SCALARS - {"item", "after"}  # where `inside` looks at it
_CACHES: dict[str, dict[Any, Any]] = {}  # by the characters that markers begin with
_READERS: dict[str, Callable[[Any, str, int], int]] = {
    **READERS,
    "value": RepairingPythonScanner._value,
    "item": RepairingPythonScanner._item,
    "colon": RepairingPythonScanner._colon,
    "closed": RepairingPythonScanner._closed,
    "source": RepairingPythonScanner._take_source,
    "after a quote": RepairingPythonScanner._read_after_a_quote,
}
