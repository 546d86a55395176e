"""Patterns and formats of JSON Schema as expressions, and in the form that llguidance reads.

Strategy: Python's own parser of regular expressions gives a tree, which is a tree of expressions already.  A pattern
may match anywhere in a text, so whatever is not anchored has any text beside it.  Lookaround, backreferences and
anchors in the middle have no expression: such a pattern is left out, and a note says so.  Classes are ECMAScript's:
`\\d` and `\\w` are ASCII.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from toolgram.export.expressions import (
    EMPTY,
    NOTHING,
    Choice,
    Class,
    Expr,
    Lit,
    Repeat,
    Seq,
    Star,
    choice,
    complement,
    joined_ranges,
    seq,
    star,
)
from toolgram.limits import MOST_PATTERN_PARTS, MOST_REPETITIONS

_constants: Any = re._constants
_parser: Any = re._parser

_OCTAL = re.compile(r"(?<!\\)(?:\\\\)*\\[0-9]").search
_RANGES = {
    "CATEGORY_DIGIT": ((48, 57),),
    "CATEGORY_WORD": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "CATEGORY_SPACE": ((9, 13), (32, 32), (160, 160), (0x2028, 0x2029), (0xFEFF, 0xFEFF)),
}
ALL = Class(((0, 0x10FFFF),))
_LINE = Class(complement(((10, 10), (13, 13), (0x2028, 0x2029))))
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
_FOURTH = r"([02468][048]|[13579][26])"  # two digits that four divides
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
# Formats of which a regular expression says the form, and not every rule.
FORMS_ONLY = {
    "email": "how long its parts are",
    "hostname": "how long its parts are",
    "ipv6": "how many groups it has",
    "uri": "what its host and port may be",
}


class _NotRegular(Exception):
    """A pattern that has no expression."""


def for_llguidance(pattern: str) -> str | None:
    """The pattern as llguidance reads it; None where it cannot."""
    return pattern if pattern_text(pattern) is not None else None


@lru_cache(maxsize=512)
def pattern_text(pattern: str) -> Expr | None:
    """The texts in which a pattern is found; None where there is no expression for them."""
    if _OCTAL(pattern):
        return None  # a backreference, or nearly one
    try:
        parsed = _parser.parse(pattern)
        if parsed.state.flags & ~re.UNICODE:
            return None
        return _Reader().anywhere(parsed.data, False, False)
    except (re.error, RecursionError, OverflowError, _NotRegular):
        return None


@lru_cache(maxsize=64)
def format_text(name: str) -> Expr | None:
    """The texts of a format; None where it is not known."""
    return pattern_text(FORMATS[name]) if name in FORMATS else None


class _Reader:
    def __init__(self) -> None:
        self.parts = 0

    def anywhere(self, items: Sequence[Any], begun: bool, ended: bool) -> Expr:
        """Whole texts: any text stands where nothing is anchored."""
        items = list(items)
        while items and items[0] == (_constants.AT, _constants.AT_BEGINNING):
            items, begun = items[1:], True
        while items and items[-1] in _ENDS:
            items, ended = items[:-1], True
        if len(items) == 1:
            op, argument = items[0]
            if op is _constants.BRANCH:
                return choice(*(self.anywhere(each.data, begun, ended) for each in argument[1]))
            if op is _constants.SUBPATTERN and not argument[1] and not argument[2]:
                return self.anywhere(argument[-1].data, begun, ended)
        before = EMPTY if begun else star(ALL)
        after = EMPTY if ended else star(ALL)
        found = self.sequence(items)
        if found == EMPTY and before != EMPTY and after != EMPTY:
            after = EMPTY
        return seq(before, found, after)

    def sequence(self, items: Sequence[Any]) -> Expr:
        return seq(*(self.one(op, argument) for op, argument in items))

    def one(self, op: Any, argument: Any) -> Expr:
        self.parts += 1
        if self.parts > MOST_PATTERN_PARTS:
            raise _NotRegular
        match str(op):
            case "LITERAL":
                return Lit(chr(argument)) if not 0xD800 <= argument <= 0xDFFF else NOTHING
            case "NOT_LITERAL":
                return Class(complement(((argument, argument),)))
            case "ANY":
                return _LINE
            case "IN":
                return _set(argument)
            case "BRANCH":
                return choice(*(self.sequence(each.data) for each in argument[1]))
            case "SUBPATTERN" if not argument[1] and not argument[2]:
                return self.sequence(argument[-1].data)
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self.repeated(*argument)
        raise _NotRegular

    def repeated(self, low: int, high: Any, items: Any) -> Expr:
        body = self.sequence(items.data)
        most = None if high is _constants.MAXREPEAT else int(high)
        if low > MOST_REPETITIONS or (most is not None and most > MOST_REPETITIONS):
            raise _NotRegular
        if body == EMPTY or most == 0:
            return EMPTY
        return Repeat(body, low, most) if (low, most) != (1, 1) else body


_ENDS = ((_constants.AT, _constants.AT_END), (_constants.AT, _constants.AT_END_STRING))


def _set(items: Sequence[Any]) -> Expr:
    """A class in brackets."""
    found: list[tuple[int, int]] = []
    negated = False
    for op, argument in items:
        match str(op):
            case "NEGATE":
                negated = True
            case "LITERAL":
                found.append((argument, argument))
            case "RANGE":
                found.append(argument)
            case "CATEGORY":
                name = str(argument)
                outside = "_NOT_" in name
                known = _RANGES.get(name.replace("_NOT_", "_").replace("UNI_", ""))
                if known is None:
                    raise _NotRegular
                found += complement(known) if outside else known
            case _:
                raise _NotRegular
    ranges = joined_ranges(found)
    return Class(complement(ranges) if negated else ranges)


def children(expr: Expr) -> Iterator[Expr]:
    """The parts of the expression of a pattern."""
    match expr:
        case Seq():
            yield from expr.parts
        case Choice():
            yield from expr.options
        case Repeat() | Star():
            yield expr.body
