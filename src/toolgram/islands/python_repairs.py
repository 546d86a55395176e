"""Python arguments with damage that has one reading: an unescaped quote inside a string, and local mistakes.

Strategy: the scanner of literals with a few readers of its own; anything that is not a literal breaks it. Repaired are

* a missing comma between two arguments, and a key of a dict without quotes,
* a set, which becomes a list: the first string or scalar after a brace waits for the next character,
* one string of a call with quotes of its own kind inside (`'sed -n '1,9p' f'`), as a whole.

A quote ends a string if the text after it continues the arguments or the calls (`_follows`). If an operator or another
string follows, or a comma or bracket with anything else after it, there are two readings, an expression or a text, and
the call is broken. So it is if a quote in the string comes after `=` and all that follows can be read as a value and
further arguments: then the string may have ended before. If anything else follows, the
string is *damaged*: each later quote is a candidate for its end, and the text after a candidate is read strictly
(`StrictRest`) up to the closing marker or the end. The first candidate for which this works is the end; without one the
call is broken. So a damaged string contains no marker, and no escape that Python knows: nobody can say whether the
model meant an escape or its text.

Nothing is taken back: undecided text is not consumed (`waits`), and comes again with the next delta. `_probed` says how
much of it the candidates have read, so that each of them reads every character once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from toolgram.islands import OpenBrackets
from toolgram.islands.python_literals import READERS, PythonScanner
from toolgram.islands.python_tokens import BLANKS, COLON, ITEM, KEYED, SPECIAL, WORDS, always, is_escape, json_text
from toolgram.limits import LONGEST_FIRST_ITEM, LONGEST_WORD, MAX_DEPTH, MAX_UNDECIDED, MOST_BETWEEN, MOST_CANDIDATES
from toolgram.program.expressions import NOWHERE, FindMatch

FITS, DAMAGED, SEVERAL, OPEN = "fits", "damaged", "several", "open"
WORDS_BETWEEN = frozenset({"if", "in", "and", "or", "for", "is", "not", "else"})  # words between two operands
OPERATORS = frozenset("+%*.[(|&<>=!-/^@#")
# Bits of `_flags`: an escape in the string, a first item of a set that is no string, a marker in the string, a repair.
_ESCAPED, _SCALAR, _MARKED, _REPAIRED = 1, 2, 4, 8
_QUOTES = ('"', "'")
_BEFORE_STRING = (",", ":", "=", "[", "{", "(")  # in a list or a dict
_NAME = rf"[^\W\d]\w{{0,{LONGEST_WORD}}}+"
_blanks = always(rf"[{BLANKS}]*+")
_word = always(rf"(?:{_NAME})?")
_begins_element = always(rf"[{BLANKS}]*+(?P<first>[-+.\w\"'\[({{\]}})])?")
_next_argument = always(rf"[{BLANKS}]*+(?:(?P<close>\))|{_NAME}[{BLANKS}]*+(?P<equals>=(?P<value>[^=])?)?)?")
_missing_comma = always(rf"(?:(?P<name>{_NAME})[{BLANKS}]*+(?P<equals>=(?P<value>[^=])?)?)?")
_next_call = always(rf"[{BLANKS}]*+(?:(?P<close>\])|[^\W\d][\w.\-]{{0,{LONGEST_WORD}}}+[{BLANKS}]*+(?P<open>\()?)?")
_backslash = re.compile(r"\\.?", re.DOTALL).finditer


class Around(NamedTuple):
    """What may follow the call: in a list (`listed`) a comma or a bracket, in `lines` the next call. `stops` are the
    characters that begin markers."""

    listed: bool = False
    lines: bool = False
    stops: str = ""


class RepairingPythonScanner(PythonScanner):
    """Reads keyword arguments as `PythonScanner` does, and repairs them; `notes` are the repairs so far.

    In a damaged string, the scanner stops at each character that may begin a marker, `stop`: then `leave_stop` goes on,
    or `end_damaged` ends the string at a marker. `why` says why the scanner broke.
    """

    __slots__ = (
        "_around", "_candidates", "_ended", "_final", "_first", "_flags", "_passed", "_probed", "_seen", "back",
        "markers", "notes", "stop", "why",
    )  # fmt: skip

    def __init__(self, around: Around | None = None) -> None:
        super().__init__()
        self._around = around or Around()
        self.listed = self._around.listed
        self.notes: list[str] = []
        self.back = 0  # how far before the next character the last of them begins
        self.stop = -1  # where a marker may begin
        self.why = ""
        self._readers = _READERS
        self._word_ends += self._around.stops
        self._final = self._ended = False
        self._first: list[str] | None = None  # JSON of the first item after a brace, of a dict or of a set
        self._candidates: list[StrictRest] = []
        self._flags = 0
        self._probed = 0  # how much of the unconsumed text the candidates have read
        self._passed = False  # the next character begins no marker
        self._seen = ""  # the end of the open string, with its last character that is not blank
        self.markers: FindMatch = NOWHERE  # finds a marker

    def run(self, text: str) -> bool:
        """Do what `PythonScanner.run` does; also return False for a delta with a repair in it."""
        self.end = self.read(text, 0)
        return not (self.done or self.broken or self.notes or self.waits)

    def passes(self, text: str) -> bool:
        """Return whether `text` is wholly inside a string and the same in JSON."""
        if self._first is not None or self._state != "body" or SPECIAL[self._quote](text):
            return False
        if self.markers(text):
            self._flags |= _MARKED
        if not text.isspace():
            self._seen = text
        return True

    def _see(self, text: str) -> None:
        self._flags |= _MARKED * (self.markers(text) is not None)
        if not text.isspace():
            self._seen = text

    def read(self, text: str, pos: int, final: bool = False, ended: bool = False) -> int:
        """Consume `text` from `pos` on, up to the first repair; hold the first item after a brace until it is decided.
        `final`: nothing follows the text; `ended`: that is the end of the turn."""
        parts, readers, size = self._parts, self._readers, len(text)
        parts.clear()
        self.mark = pos
        self.waits, self._final, self._ended = False, final, ended
        written = 0
        while pos < size and not (self.broken or self.done or self.notes or self.waits):
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
        if self.broken:
            self.started |= self._state not in ("arguments", "equals")
        elif self._stack[:1] == "d" or self._state in ("sole", "last"):
            self.started = self.done
        self.out = "".join(parts)
        return pos

    def open_brackets(self) -> OpenBrackets:
        """Return the open brackets, beginning with that of the arguments. A marker ends a damaged string."""
        return OpenBrackets("<", python=True) if self._state == "damaged" else super().open_brackets()

    # --- the closing marker ---------------------------------------------------------------------------------------

    @property
    def inside(self) -> str | None:
        """The brackets that are open inside the arguments, after a value; None elsewhere."""
        whole = self._state in ("after", "far") or (self._state == "item" and self._lead == ", ")
        return self._stack.removeprefix("k") if whole and self._first is None and self._stack[0] != "d" else None

    def close_all(self) -> None:
        """Close all brackets at the marker; `out` is the JSON of that."""
        self.broken = False
        self._parts.clear()
        while self._stack:
            self._close()
        self.out = "".join(self._parts)

    # --- where a value begins -------------------------------------------------------------------------------------

    def _item(self, text: str, pos: int) -> int:
        if self._stack[-1] in KEYED:
            match = ITEM[self._stack[-1]](text, pos)
            at = match.end() - (match.lastgroup is not None)
            if at < len(text) and (text[at].isalpha() or text[at] == "_") and self._stack != "d":
                return self._bare_key(text, at)
        return super()._item(text, pos)

    def _bare_key(self, text: str, pos: int) -> int:
        """Read a key without quotes, or a Python word, which is a key or the first item of a set."""
        word = _word(text, pos).group()
        end = pos + len(word)
        if end == len(text) and end - pos <= LONGEST_WORD:
            self.waits = True
            return pos
        if word in WORDS:
            return super()._item(text, pos)
        colon = COLON(text, end)
        if colon.end() == len(text) and colon.lastgroup is None:
            self.waits = colon.end() - pos <= MOST_BETWEEN
            self.broken = not self.waits
        elif colon.lastgroup is None:
            self.broken = True
        else:
            self._then = "colon"
            self._write_lead(False)
            self.notes.append(word)
            self.back = end - pos
            self._parts.append(f'"{word}"')
            self._state = "colon"
            return end
        return pos

    def _begin(self, kind: str, char: str, end: int) -> int:
        self._flags &= _REPAIRED
        self._seen = ""
        if kind != "quote" and self._first is not None:
            self._flags |= _SCALAR
        if kind != "open" or char != "{" or len(self._stack) >= MAX_DEPTH:
            return super()._begin(kind, char, end)
        self._write_lead(True)
        self._stack += char
        self._state, self._first = "item", []
        return end

    def _after(self, text: str, pos: int) -> int:
        """Read on after a value: a blank and the name of the next argument mean that the comma is missing."""
        if self._stack != "k" or text[pos] not in BLANKS:
            return super()._after(text, pos)
        at = _blanks(text, pos).end()
        match = _missing_comma(text, at)
        if match.end() - pos > MOST_BETWEEN or (self._final and match.end() == at):
            self._state = "far"
            return pos
        if match.end() == len(text) and not match["value"]:
            self.waits = True
            return pos
        if not match["value"]:
            return super()._after(text, pos)
        self.notes.append(match["name"])
        self.back = 0
        self._lead, self._state = ", ", "argument"
        return at

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
            first = "".join(self._first)
            self._parts += ["[", first[1:-1] if self._flags & _SCALAR else first]
            self._stack, self._first, self._state = self._stack[:-1] + "s", None, "after"
            return end
        if match.lastgroup is not None:
            self._is_dict()
        return super()._colon(text, pos)

    def _close(self) -> None:
        self._is_dict()
        super()._close()

    # --- where a string ends --------------------------------------------------------------------------------------

    def _opening(self, text: str, pos: int) -> int:
        if len(self._held) == 2 and text[pos] != self._held[0]:
            return self._after_quote(text, pos, self._held[0])
        return super()._opening(text, pos)

    def _body(self, text: str, pos: int) -> int:
        if len(self._quote) == 1 and text[pos] == self._quote:
            return self._after_quote(text, pos + 1, self._quote)
        end = super()._body(text, pos)
        self._see(text[pos:end])
        return end

    def _escape(self, text: str, pos: int) -> int:
        held = self._held
        end = super()._escape(text, pos)
        if self._state == "body" and is_escape(held + text[pos:end]):
            self._flags |= _ESCAPED
        return end

    def _after_quote(self, text: str, at: int, quote: str) -> int:
        """Decide whether the quote before `at` ends the string."""
        found = self._follows(text, at)
        begun = at if self._state == "opening" else at - 1
        if found == OPEN:
            self.waits = True
            return begun
        if found == FITS:
            self._close_string()
            return at
        self.why = "the text after the string is not a literal"
        last = self._seen.rstrip()[-1:]
        lost = self._stack[-1] != "k" and last in _BEFORE_STRING  # the end of the string before
        is_part = self._first is not None or self._then == "colon"  # a key, or the first item after a brace
        if found == SEVERAL or lost or self._flags & (_ESCAPED | _REPAIRED | _MARKED) or is_part:
            self.broken = True
            return begun
        if begun == at:
            self._parts.append(json_text(quote))
        self.notes.append(quote)
        self.back = 1 - (at - begun)
        self._flags |= _REPAIRED
        self._state, self._quote, self._held = "damaged", quote, ""
        self._probed = at - begun
        if self._stack == "k" and last == "=":
            self._candidates = [StrictRest.of_value(0, quote, self._around)]
        return begun

    def _follows(self, text: str, pos: int) -> str:
        """Return whether the text after a quote fits the end of the string."""
        at = _blanks(text, pos).end()
        if at == len(text) or at - pos > MOST_BETWEEN:
            return OPEN if at - pos <= MOST_BETWEEN else SEVERAL
        char, frame = text[at], self._stack[-1]
        if self._then == "colon":
            return FITS if char == ":" or (self._first is not None and char in ",}") else SEVERAL
        if char in self._around.stops and char not in "()[]{},":
            return FITS
        if char == ",":
            return self._after_comma(text, at + 1, frame)
        if char in ")]}":
            if char != {"k": ")", "(": ")", "t": ")", "[": "]"}.get(frame, "}"):
                return SEVERAL
            return _after_call(text, at + 1, self._around, self._final, self._ended) if frame == "k" else FITS
        if char in OPERATORS or char in "\"'" or (char == ":" and frame != "k"):
            return SEVERAL
        return self._after_word(text, at) if at > pos and (char.isalpha() or char == "_") else DAMAGED

    def _after_comma(self, text: str, pos: int, frame: str) -> str:
        if frame != "k":
            element = _begins_element(text, pos)
            if element.end() == len(text) and not element["first"]:
                return OPEN if element.end() - pos <= MOST_BETWEEN else SEVERAL
            return FITS if element["first"] or text[element.end()] in self._around.stops else SEVERAL
        match = _next_argument(text, pos)
        return FITS if match["close"] or match["value"] else _open_or(_at_quote(text, pos), text, pos, match)

    def _after_word(self, text: str, pos: int) -> str:
        match = _missing_comma(text, pos)
        if match.end() < len(text) and match["name"] in WORDS_BETWEEN:
            return SEVERAL
        return FITS if match["value"] and self._stack == "k" else _open_or(DAMAGED, text, pos, match)

    # --- a damaged string -----------------------------------------------------------------------------------------

    def _damaged(self, text: str, pos: int) -> int:
        """Read the string up to its first candidate, or to a possible marker."""
        at, size = pos + self._probed, len(text)
        while at < size and not self.broken:
            char = text[at]
            if self._candidates and at - pos - self._candidates[0].at > MAX_UNDECIDED:
                self.broken = True
                break
            if char in self._around.stops and not self._passed:
                self.stop, self.broken = at, True
                break
            self._passed = False
            if not self._probe(char):
                break
            if char == self._quote:
                self._add_candidate(at - pos, text[pos:at])
            at += 1
        certain = pos + self._candidates[0].at if self._candidates else at
        if not self._candidates and text[at - 1 : at] == "\\" and at > pos:
            certain -= 1  # the next character decides whether it is an escape
        certain = self._say(text, pos, certain)
        for each in self._candidates:
            each.at -= certain - pos
        self._probed = at - certain
        self.waits = certain < size and not self.broken
        return certain

    def _probe(self, char: str) -> bool:
        """Let the candidates read a character. Return False if one fails that had already begun an argument or call."""
        alive = []
        for each in self._candidates:
            if each.read(char):
                alive.append(each)
            elif each.goes_on and not each.is_rival:
                self.broken, self.why = True, "a string with quotes inside that may end in several places"
        self._candidates = alive if not self.broken else self._candidates
        return not self.broken

    def _add_candidate(self, at: int, before: str) -> None:
        """Add the quote at `at` as a candidate, and as its rival if it comes after `=`."""
        if len(self._candidates) >= MOST_CANDIDATES:
            self.broken = True
            return
        if (before.rstrip() or self._seen.rstrip()).endswith("="):
            self._candidates.append(StrictRest.of_value(at, self._quote, self._around))
        self._candidates.append(StrictRest(at, self._stack, self._around))

    def _say(self, text: str, pos: int, end: int) -> int:
        """Write more of the damaged string and return the new position; break at an escape, which has two readings."""
        escapes = (match.start() for match in _backslash(text, pos, end))
        escape = next((at for at in escapes if is_escape(text[at : at + 2])), None)
        if escape is not None:
            self.broken, self.stop, self.why = True, -1, "an escape in a string with quotes inside"
            end = escape
        self._see(text[pos:end])
        self._parts.append(json_text(text[pos:end]))
        return end

    def leave_stop(self, passed: bool) -> None:
        """Read on, since there is no marker at `stop`, or wait for the rest of it."""
        self.broken, self.stop, self._passed = False, -1, passed

    def end_damaged(self, text: str, pos: int) -> int:
        """End the damaged string before a marker or the end, at the first candidate whose rest fits. Return the
        position after its quote; without one, the scanner is broken."""
        ready = next((each for each in self._candidates if each.ready), None)
        found = None if ready is None or ready.is_rival else ready.at
        self._parts.clear()
        self.broken, self.stop, self.out = found is None, -1, ""
        self.why = "a string with quotes inside that has no certain end"
        if found is None:
            return pos
        self.mark = self._say(text, pos, pos + found)
        self._candidates, self._probed = [], 0
        if not self.broken:
            self._close_string()
            self.mark += 1
        self.out = "".join(self._parts)
        return self.mark

    def dump(self) -> list[Any]:
        """Return all that the next `read` depends on, as JSON-able values; unconsumed text is read again."""
        first = None if self._first is None else "".join(self._first)
        of_string = (_ESCAPED | _MARKED) * (self._state in ("body", "escape"))
        alive = _REPAIRED | of_string | _SCALAR * (self._first is not None)
        first_rival = self._candidates[:1] != [] and self._candidates[0].is_rival
        string = [self._seen.rstrip()[-1:], first_rival and all(each.at or each.is_rival for each in self._candidates)]
        return [super().dump(), first, self._flags & alive, string, [*self.notes], *self._around]

    @classmethod
    def load(cls, data: Any) -> RepairingPythonScanner:
        """Load what `dump` returned."""
        literal, first, flags, (seen, has_rival), notes, *around = data
        self = cls(Around(*around))
        self._set(literal)
        self._seen = seen
        if has_rival:  # the quote with which it begins is not consumed
            self._candidates, self._probed = [StrictRest.of_value(0, self._quote, self._around)], 1
        self._first, self._flags, self.notes = None if first is None else [first], flags, [*notes]
        return self


class StrictRest:
    """The text after a candidate for the end of a damaged string, read without repairs. `at` is the place of the
    candidate; `goes_on`: a further argument or call has begun; `ready`: only a marker or the end may follow. If it
    `is_rival`, the candidate is no end, but the beginning of a value."""

    __slots__ = ("_around", "_between", "_scanner", "at", "goes_on", "is_rival", "ready")

    def __init__(self, at: int, stack: str, around: Around) -> None:
        self.at, self._around = at, around
        self._scanner: PythonScanner | None = PythonScanner.within(stack, "after")
        self._between = ""  # text since the end of the last call
        self.ready = self.goes_on = self.is_rival = False

    @classmethod
    def of_value(cls, at: int, quote: str, around: Around) -> StrictRest:
        """Return a rival: it reads a string as the value of an argument, from its quote on."""
        self = cls(at, "k", around)
        self._scanner, self.is_rival = PythonScanner.within("k", "value"), True
        self.read(quote)
        return self

    def read(self, char: str) -> bool:
        """Read a character. Return whether it fits."""
        scanner = self._scanner
        if scanner is not None:
            scanner.read(char, 0)
            self.goes_on |= scanner.at_argument
            if scanner.done:
                self._scanner, self._between = None, ""
                self.ready = not self._around.listed
            return not scanner.broken
        self._between += char
        if self.ready and not self._between.strip(BLANKS):
            return len(self._between) <= MOST_BETWEEN
        if self.ready and not self._around.lines:
            return False
        return self._next(self._between)

    def _next(self, between: str) -> bool:
        """Read the text between two calls, or after the last one. Return whether it fits."""
        at = _blanks(between, 0).end()
        self.ready = False
        if at == len(between):
            return at <= MOST_BETWEEN
        if self._around.listed:
            if between[at] == "]":
                self.ready, self._around, self._between = True, Around(), ""
                return True
            if between[at] != ",":
                return False
            at += 1
        elif "\n" not in between[:at]:
            return False
        match = _next_call(between, at)
        if match.end() < len(between) or len(between) > 2 * MOST_BETWEEN:
            return False
        if match["close"]:
            self.ready, self._around, self._between = True, Around(), ""
            return self._around.listed or not self._around.lines
        if match["open"]:
            self._scanner = PythonScanner()
        return True


def _after_call(text: str, pos: int, around: Around, final: bool, ended: bool) -> str:
    """Return whether the text after the parenthesis of a call fits the quote before it as the end of a string."""
    at = _blanks(text, pos).end()
    if at == len(text) and final:
        return FITS
    if at == len(text) or at - pos > MOST_BETWEEN:
        return OPEN if at - pos <= MOST_BETWEEN else SEVERAL
    char, line = text[at], "\n" in text[pos:at] and not around.listed
    if line or char in around.stops or char in ")]}" or (char == "#" and around.lines):
        return FITS
    call = at + 1 if char == "," and around.listed else at
    if call > at or (char.isalpha() and around.lines):
        match = _next_call(text, call)
        if match["open"] or (match["close"] and around.listed):
            return FITS
        grows = match.end() == len(text) and match.end() - at <= MOST_BETWEEN
        return (FITS if ended else OPEN) if grows else _at_quote(text, call)
    return _at_quote(text, at)


def _at_quote(text: str, pos: int) -> str:
    """Return DAMAGED if a quote at `pos` closes something, OPEN if that is not known, else SEVERAL."""
    at = _blanks(text, pos).end()
    if text[at : at + 1] not in _QUOTES:
        return SEVERAL
    return OPEN if at + 1 >= len(text) else SEVERAL if text[at + 1].isalnum() else DAMAGED


def _open_or(decided: str, text: str, pos: int, match: re.Match[str]) -> str:
    """Return OPEN if more text may change a match after `pos`, else what is `decided`."""
    return OPEN if match.end() == len(text) and match.end() - pos <= MOST_BETWEEN else decided


_READERS: dict[str, Callable[[Any, str, int], int]] = {
    **READERS,
    "item": RepairingPythonScanner._item,
    "after": RepairingPythonScanner._after,
    "far": PythonScanner._after,
    "colon": RepairingPythonScanner._colon,
    "opening": RepairingPythonScanner._opening,
    "body": RepairingPythonScanner._body,
    "escape": RepairingPythonScanner._escape,
    "damaged": RepairingPythonScanner._damaged,
}
