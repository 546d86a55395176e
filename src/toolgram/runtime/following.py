"""Where blanks end, and text after arguments that shows that they have not ended."""

from __future__ import annotations

import re

from toolgram.limits import BLANKS, LONGEST_WORD

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff"  # characters that mean nothing between markers
# A quote or a backslash on the line on which arguments end: no text begins so, and the string before the bracket ended
# too early. In an envelope a key may follow, of which the comma is missing; no key begins with a bracket.
_SPACES, _QUOTES = r"[ \t]{0,64}+", "[\"']"
_ODD, _BEGUN = rf"(?:[\\\"']|,{_SPACES}{_QUOTES}{_SPACES}[}})\]])", rf"(?:,{_SPACES}(?:{_QUOTES}{_SPACES})?+)?+\Z"
goes_on, may_go_on = re.compile(_SPACES + _ODD).match, re.compile(_SPACES + _BEGUN).match
# The same for arguments without an envelope, of which a bracket too many may follow.
_CLOSERS = r"[ \t})\]]{0,64}+"
goes_on_alone, may_go_on_alone = re.compile(_CLOSERS + _ODD).match, re.compile(_CLOSERS + _BEGUN).match
# Text on that line, and in it what ends a string before a bracket or the next key: one may have gone on until there.
begins_text = re.compile(rf"{_CLOSERS}(?:[^\s,;{{}})\]<\"'\\]|,{_SPACES}[^\s,;{{}}\[\]()<\"'])").match
ends_string = re.compile(rf'"{_SPACES}(?:[}}\]]|,{_SPACES}")').search
# In an envelope, a quote after a value begins a key, of which the comma is missing; if not, an earlier quote was odd.
_KEY_BEGUN = rf"""(["'])(\w{{1,{LONGEST_WORD}}}+)"""
is_key = re.compile(rf"{_KEY_BEGUN}\1{BLANKS}:").match
may_be_key = re.compile(rf"(?:[\"']|{_KEY_BEGUN}(?:\1{BLANKS})?)\Z").match
_json_blanks = re.compile(r"[ \t\r\n]*+").match
_any_blanks = re.compile(r"\s*+").match
_blanks = re.compile(r"[ \t\r\n\f]*+").match
_blanks_of_line = re.compile(r"[ \t\f]*+").match
# An operator, a character that makes the call an operand, or a quote, so that an earlier string ended elsewhere.
expression_goes_on = re.compile(r"""[.=+\-*/%>&|^@'"\[(]|<(?![/|]|\Z)|(?:if|and|or|in|is|not|for)\b""").match
expression_may_go_on = re.compile(r"(?:<|i[fns]?|an?d?|or?|no?t?|fo?r?)\Z").match

# On the line of a Python call: brackets after it, the next call, a string's end before a bracket or an argument.
_closers = re.compile(_CLOSERS).match
next_call = re.compile(rf"[^\w\"'()\[\]{{}}\\]{{0,16}}+(?:[{{\[]|[\w.\-]{{1,{LONGEST_WORD}}}+{_SPACES}\()").match
ends_python_string = re.compile(rf"{_QUOTES}{_SPACES}(?:[)\]}}]|,{_SPACES}\w{{1,{LONGEST_WORD}}}+{_SPACES}=)").search


def end_of_json_blanks(text: str, pos: int) -> int:
    """Return the position after JSON whitespace."""
    return _json_blanks(text, pos).end()  # type: ignore[union-attr]


def end_of_blanks(text: str, pos: int) -> int:
    """Return the position after blanks of any kind."""
    return _any_blanks(text, pos).end()  # type: ignore[union-attr]


def end_of_python_blanks(text: str, pos: int, listed: bool) -> int:
    """Return where blanks after a Python call end. In a list, line ends are blanks as well."""
    return (_blanks if listed else _blanks_of_line)(text, pos).end()  # type: ignore[union-attr]


def end_of_closers(text: str, pos: int) -> int:
    """Return the position after a call's surplus brackets, and blanks on its line."""
    return _closers(text, pos).end()  # type: ignore[union-attr]
