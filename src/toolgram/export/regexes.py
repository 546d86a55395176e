"""Expressions as regular expressions, in the dialect that llguidance and xgrammar both read.

Strategy: an expression without recursive rules is a regular expression, written from the inside out. Strings are the
exception: their rules are recursive, but their regular expressions are known.
"""

from __future__ import annotations

from toolgram.export import expressions as ex
from toolgram.export.notations import BASE
from toolgram.export.writing import written_class

# a backslash before any other character is itself; \x, \u, \N and octals would have to be complete
_PYTHON_STRINGS = [
    rf"{quote}([^{quote}\\\x00-\x1f]|\\[^0-7xuUN\x00-\x1f]|\\x[0-9a-fA-F]{{2}}|"
    rf"\\u(?:[0-9a-ce-fA-CE-F][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{{2}})*{quote}"
    for quote in "\"'"
]
JSON_STRING = r'"([^"\\\x00-\x1f]|\\(["\\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_LEAVES = {
    "python_string": "|".join(_PYTHON_STRINGS),
    "words_string": "|".join(_PYTHON_STRINGS),
    "mixed_single": _PYTHON_STRINGS[1],
    "json_string": JSON_STRING,
}
_FLAT = ("integer", "number", "boolean", "null", "escape", "escaped")  # rules that call no string, list or object
_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escaped(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char in "\\]^-[/":
        return "\\" + char
    code = ord(char)
    return char if char.isprintable() or code > 0xFFFF else f"\\u{code:04x}"


def regex_ranges(found: tuple[tuple[int, int], ...]) -> str:
    """Return a character class of a regular expression, from ranges."""
    return written_class(found, _escaped, "(?s:.)")


def regex_count(expr: ex.Repeat) -> str:
    if expr.high is None and expr.low < 2:
        return "+" if expr.low else "*"
    return f"{{{expr.low},{'' if expr.high is None else expr.high}}}"


def regular(expr: ex.Expr) -> str | None:
    """Return an expression as a regular expression; None if it is not regular."""
    match expr:
        case ex.Lit():
            return regex(expr.text)
        case ex.Class():
            return regex_ranges(expr.ranges)
        case ex.Repeat() | ex.Star():
            inner = regular(expr.body)
            count = regex_count(expr) if isinstance(expr, ex.Repeat) else "*"
            return None if inner is None else f"({inner}){count}"
        case ex.Seq() | ex.Choice():
            parts = [regular(each) for each in ex.children(expr)]
            if None in parts:
                return None
            joined = ("" if isinstance(expr, ex.Seq) else "|").join(part or "" for part in parts)
            return joined if isinstance(expr, ex.Seq) else f"({joined})"
        case ex.Break():
            return ""
        case ex.Ref():
            if expr.name in _LEAVES:
                return f"({_LEAVES[expr.name]})"
            flat = expr.name in BASE and expr.name.partition("_")[2] in _FLAT
            return regular(BASE[expr.name]) if flat else None
        case ex.Quoted():
            return regular(expr.body)
    return None


def regex(text: str) -> str:
    """Return a text as a regular expression between slashes."""
    return "".join(
        _SHORT[char] if char in _SHORT else "\\" + char if char in r"\.+*?()|[]{}^$#&-~/" else char for char in text
    )
