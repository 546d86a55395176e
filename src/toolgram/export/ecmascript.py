"""Regular expressions of JSON Schema, which are ECMAScript's, as expressions.

Strategy: a small parser, because the libraries on the index give no tree, and Python's own parser reads another
language. A pattern may match anywhere in a text, so any text may precede or follow it unless it is anchored. A pattern
without an expression (lookaround, backreferences, scripts, anchors in the middle) is left out, and a note reports it.
Derivatives decide whether a text matches, so no untrusted pattern is ever run with backtracking.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from typing import TypeAlias

from toolgram.export import expressions as ex
from toolgram.limits import MAX_PATTERN_DEPTH, MOST_PATTERN_PARTS, MOST_REPETITIONS

Ranges: TypeAlias = tuple[tuple[int, int], ...]

ALL = ex.Class(((0, 0x10FFFF),))
_LINE = ex.Class(ex.complement(((10, 10), (13, 13), (0x2028, 0x2029))))
_DIGIT: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Ranges = (
    *((9, 13), (32, 32), (160, 160), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F)),
    *((0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
)
_SETS = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}
_MARKS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_COUNT = re.compile(r"\{(\d{1,9})(,(\d{0,9}))?\}")
_CODE = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|c([A-Za-z])")
_PROPERTY = re.compile(r"([pP])\{(?:(?:General_Category|gc)=)?(\w+)\}")
_GROUP = re.compile(r"\?(?::|<[A-Za-z_$][\w$]*>|P<\w+>)")
_LONG_NAMES = {"Letter": "L", "Uppercase_Letter": "Lu", "Lowercase_Letter": "Ll", "Mark": "M", "Number": "N",
               "Decimal_Number": "Nd", "Punctuation": "P", "Symbol": "S", "Separator": "Z", "Space_Separator": "Zs",
               "Other": "C", "Control": "Cc"}  # fmt: skip
_LONGEST_SHOWN = 80
_BEGIN, _END = ex.Ref("^"), ex.Ref("$")


class NotAPattern(ValueError):
    """Text that is not a regular expression."""


class _NoExpression(Exception):
    """A pattern that has no expression."""


@lru_cache(maxsize=512)
def pattern_text(pattern: str) -> ex.Expr | None:
    """Return the texts in which a pattern is found; None if there is no expression for them."""
    try:
        return _whole(_Reader(pattern).whole(), False, False)
    except (_NoExpression, NotAPattern):
        return None


def check_pattern(pattern: str) -> None:
    """Raise NotAPattern if the text is not a regular expression."""
    try:
        _Reader(pattern).whole()
    except _NoExpression:
        return


def shortened(pattern: str) -> str:
    """Return a pattern as notes show it."""
    return repr(pattern if len(pattern) <= _LONGEST_SHOWN else pattern[:_LONGEST_SHOWN] + "...")


# --- reading ------------------------------------------------------------------------------------------------------


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth, self.parts = text, 0, 0, 0

    def whole(self) -> ex.Choice:
        found = self.options()
        if self.at < len(self.text):
            raise NotAPattern("a bracket closes nothing")
        return found

    def takes(self, text: str) -> bool:
        """Return whether the given text comes next, and consume it if so."""
        found = self.text.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def matched(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def options(self) -> ex.Choice:
        """Return the alternatives up to a bracket or the end, each as a sequence, without any simplification."""
        found: list[list[ex.Expr]] = [[]]
        while self.at < len(self.text) and self.text[self.at] != ")":
            if self.takes("|"):
                found.append([])
                continue
            self.parts += 1
            if self.parts > MOST_PATTERN_PARTS:
                raise _NoExpression
            found[-1].append(self.times(self.term()))
        return ex.Choice(tuple(ex.Seq(tuple(each)) for each in found))

    def term(self) -> ex.Expr:
        char = self.text[self.at]
        self.at += 1
        match char:
            case "^":
                return _BEGIN
            case "$":
                return _END
            case "(":
                return self.group()
            case "[":
                return ex.Class(self.set())
            case ".":
                return _LINE
            case "\\":
                found = self.escape(inside=False)
                return _character(found) if isinstance(found, int) else ex.Class(found)
            case "*" | "+" | "?":
                raise NotAPattern(f"{char} repeats nothing")
        return _character(ord(char))

    def group(self) -> ex.Choice:
        if self.text.startswith("?", self.at) and not self.matched(_GROUP):
            raise _NoExpression  # lookaround, or flags
        self.depth += 1
        if self.depth > MAX_PATTERN_DEPTH:
            raise _NoExpression
        found = self.options()
        self.depth -= 1
        if not self.takes(")"):
            raise NotAPattern("a bracket is not closed")
        return found

    def times(self, body: ex.Expr) -> ex.Expr:
        """Return a term with its quantifier, if one follows."""
        low, most = 1, None
        counted = self.matched(_COUNT)
        if counted:
            low = int(counted[1])
            most = low if counted[2] is None else int(counted[3]) if counted[3] else None
        elif self.text[self.at : self.at + 1] in (*_MARKS,):
            low, most = _MARKS[self.text[self.at]]
            self.at += 1
        else:
            return body
        self.takes("?")  # lazy matching, which does not change the language
        if body in (_BEGIN, _END):
            raise _NoExpression
        if most is not None and low > most:
            raise NotAPattern("a count ends before it begins")
        return ex.Repeat(body, low, most)

    def escape(self, inside: bool) -> int | Ranges:
        """Return the character or set that follows a backslash."""
        if self.at >= len(self.text):
            raise NotAPattern("a backslash escapes nothing")
        code = self.matched(_CODE)
        if code:
            return self.code(code)
        named = self.matched(_PROPERTY)
        if named:
            return ex.complement(_category(named[2])) if named[1] == "P" else _category(named[2])
        char = self.text[self.at]
        self.at += 1
        if char.lower() in _SETS:
            return ex.complement(_SETS[char.lower()]) if char.isupper() else _SETS[char]
        if char == "b" and inside:
            return 8
        if char in "bBkpP" or char in "123456789" or (char == "0" and self.text[self.at : self.at + 1].isdigit()):
            raise _NoExpression  # a place, a backreference, or an octal number
        return _CONTROLS.get(char, ord(char))

    def code(self, found: re.Match[str]) -> int:
        """Return a character by its number; two surrogate escapes are one character."""
        if found[4]:
            return ord(found[4]) % 32
        number = int(found[1] or found[2] or found[3], 16)
        if number > sys.maxunicode:
            raise NotAPattern("no character has this number")
        second = re.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})").match(self.text, self.at)
        if found[2] and 0xD800 <= number < 0xDC00 and second:
            self.at = second.end()
            return 0x10000 + (number - 0xD800) * 0x400 + int(second[1], 16) - 0xDC00
        return number

    def set(self) -> Ranges:
        """Return the ranges of a class in brackets."""
        negated = self.takes("^")
        found: list[tuple[int, int]] = []
        while not self.takes("]"):
            first = self.member()
            if not isinstance(first, int):
                found += first
            elif self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                last = self.member()
                if not isinstance(last, int):
                    found += [(first, first), (45, 45), *last]
                elif last < first:
                    raise NotAPattern("a range ends before it begins")
                else:
                    found.append((first, last))
            else:
                found.append((first, first))
        return ex.complement(found) if negated else ex.joined_ranges(found)

    def member(self) -> int | Ranges:
        if self.at >= len(self.text):
            raise NotAPattern("a class is not closed")
        if self.takes("\\"):
            return self.escape(inside=True)
        self.at += 1
        return ord(self.text[self.at - 1])


def _character(code: int) -> ex.Expr:
    return ex.NOTHING if 0xD800 <= code <= 0xDFFF else ex.Lit(chr(code))


@lru_cache(maxsize=64)
def _category(name: str) -> Ranges:
    """Return the characters of a general category."""
    short = _LONG_NAMES.get(name, name)
    if short == "Any":
        return ALL.ranges
    codes = [code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)).startswith(short)]
    if not codes or len(short) > 2:
        raise _NoExpression  # a script, or another property
    return ex.joined_ranges((code, code) for code in codes)


# --- expressions --------------------------------------------------------------------------------------------------


def _whole(read: ex.Choice, begun: bool, ended: bool) -> ex.Expr:
    """Return whole texts: any text may precede or follow what is not anchored."""
    return ex.choice(*(_anchored(list(ex.children(items)), begun, ended) for items in read.options))


def _anchored(items: list[ex.Expr], begun: bool, ended: bool) -> ex.Expr:
    while items and items[0] is _BEGIN:
        items, begun = items[1:], True
    while items and items[-1] is _END:
        items, ended = items[:-1], True
    if len(items) == 1 and isinstance(items[0], ex.Choice) and items[0] != ex.NOTHING:
        return _whole(items[0], begun, ended)
    found = ex.seq(*map(_expression, items))
    if found == ex.EMPTY and not begun and not ended:
        return ex.star(ALL)
    return ex.seq(ex.EMPTY if begun else ex.star(ALL), found, ex.EMPTY if ended else ex.star(ALL))


def _expression(item: ex.Expr) -> ex.Expr:
    if isinstance(item, ex.Ref):
        raise _NoExpression  # an anchor in the middle
    if not isinstance(item, ex.Repeat):
        return ex.rebuilt(item, _expression)
    body = _expression(item.body)
    if max(item.low, item.high or 0) > MOST_REPETITIONS:
        raise _NoExpression
    if body == ex.EMPTY or item.high == 0:
        return ex.EMPTY
    if body == ex.NOTHING:
        return ex.EMPTY if not item.low else ex.NOTHING
    return body if (item.low, item.high) == (1, 1) else ex.Repeat(body, item.low, item.high)


# --- matching -----------------------------------------------------------------------------------------------------


def matches(expr: ex.Expr, text: str) -> bool:
    """Return whether an expression of a pattern matches a whole text."""
    for char in text:
        expr = ex.rest_after(expr, char)
        if expr == ex.NOTHING:
            return False
    return ex.may_be_empty(expr)


# --- formats ---------------------------------------------------------------------------------------------------------

_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_FOURTH = r"([02468][048]|[13579][26])"  # two digits that are divisible by four
_DATE = (
    r"([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
    rf"|([0-9]{{2}}(0[48]|[2468][048]|[13579][26])|{_FOURTH}00)-02-29)"
)
_HOST = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*"
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
_BYTE = r"(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_SPAN = r"([0-9]+H([0-9]+M)?([0-9]+S)?|[0-9]+M([0-9]+S)?|[0-9]+S)"
_IN_URI = r"([A-Za-z0-9._~:/?@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})"
FORMATS = {
    "date": f"^{_DATE}$",
    "time": f"^{_TIME}$",
    "date-time": f"^{_DATE}[Tt]{_TIME}$",
    "duration": f"^P([0-9]+W|([0-9]+Y([0-9]+M)?([0-9]+D)?|[0-9]+M([0-9]+D)?|[0-9]+D)(T{_SPAN})?|T{_SPAN})$",
    "email": rf"^{_ATOM}+(\.{_ATOM}+)*@{_HOST}$",
    "hostname": f"^{_HOST}$",
    "ipv4": rf"^{_BYTE}(\.{_BYTE}){{3}}$",
    "ipv6": r"^[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:.]*$",
    "uuid": "^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$",
    "uri": rf"^[A-Za-z][A-Za-z0-9+.-]*:(//\[[0-9A-Fa-f:.]+\]|{_IN_URI}){_IN_URI}*(#{_IN_URI}*)?$",
}
# Formats whose regular expression enforces the form, but not every rule.
FORMS_ONLY = {
    "email": "how long its parts are",
    "hostname": "how long its parts are",
    "ipv6": "how many groups it has",
    "uri": "what its host and port may be",
}
