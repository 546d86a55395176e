"""Patterns of JSON Schema in the form that each engine reads.

A pattern of JSON Schema may match anywhere in a text.  llguidance reads it so.  xgrammar matches whole texts, so a
pattern without anchors gets `.*` at its ends.  Neither has lookaround or backreferences; a pattern with them is left
out, and a note says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

_constants: Any = re._constants
_parser: Any = re._parser

_PLAIN = {"LITERAL", "NOT_LITERAL", "ANY", "IN", "BRANCH", "SUBPATTERN", "MAX_REPEAT", "AT"}
_OCTAL = re.compile(r"(?<!\\)(?:\\\\)*\\[0-9]").search
_PIECE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()|]|[^\\\[()|]+", re.DOTALL)


@lru_cache(maxsize=512)
def for_engine(pattern: str, engine: str) -> str | None:
    """The pattern as the engine reads it; None where it cannot."""
    if _OCTAL(pattern):
        return None  # the engines read it as a backreference
    try:
        parsed = _parser.parse(pattern)
    except (re.error, RecursionError):
        return None
    if parsed.state.flags & ~re.UNICODE or not all(_is_plain(op) for op in _operations(parsed)):
        return None
    alternatives = list(_alternatives(pattern))
    inner = [_without_anchors(each) for each in alternatives]
    if any(op is _constants.AT for each, _, _ in inner for op in _operations(_parser.parse(each))):
        return None  # an anchor in the middle, which one engine ignores
    if engine == "llguidance":
        return pattern
    if parsed.state.groupdict:
        return None
    whole = [f"{'' if begins else _ANY}({each}){'' if ends else _ANY}" for each, begins, ends in inner]
    return f"^({'|'.join(whole)})$"


_ANY = ".*"  # no line ends: in xgrammar a pattern matches no character that JSON escapes


def _is_plain(op: Any) -> bool:
    return str(op) in _PLAIN


def _operations(parsed: Any) -> Iterator[Any]:
    """Every operation of a parsed pattern."""
    pending = [parsed]
    while pending:
        for op, argument in pending.pop():
            yield op
            if op is _constants.BRANCH:
                pending += argument[1]
            elif op is _constants.SUBPATTERN:
                pending.append(argument[-1])
            elif op is _constants.MAX_REPEAT:
                pending.append(argument[2])


def _alternatives(pattern: str) -> Iterator[str]:
    """The alternatives of the whole pattern."""
    depth, begun = 0, 0
    for piece in _PIECE.finditer(pattern):
        text = piece.group()
        depth += (text == "(") - (text == ")")
        if text == "|" and not depth:
            yield pattern[begun : piece.start()]
            begun = piece.end()
    yield pattern[begun:]


def _without_anchors(text: str) -> tuple[str, bool, bool]:
    """An alternative without the anchors at its ends, and whether there were any."""
    begins = text.startswith("^")
    text = text[begins:]
    ends = re.search(r"(?<!\\)(?:\\\\)*\$\Z", text) is not None
    return (text[:-1] if ends else text), begins, ends
