"""The notation that EBNF and GBNF share: double-quoted strings, and classes in brackets, with the same escapes."""

from __future__ import annotations

from functools import lru_cache

from toolgram.export.expressions import Class, complement, is_wide
from toolgram.export.writing import RuleWriter, written_ranges
from toolgram.export.written import Atom

ANY_CHARACTER = "[^\\x00]"


class BnfWriter(RuleWriter):
    """Writes the notation that EBNF and GBNF share."""

    def literal(self, text: str) -> Atom:
        """Return a string in double quotes."""
        if text.isprintable():
            return Atom('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')
        return Atom('"' + "".join(_escaped(char, '"\\') for char in text) + '"')

    def of_class(self, expr: Class) -> Atom:
        """Return a class in brackets."""
        return Atom(_ranged(expr.ranges))

    def spell(self, name: str) -> str:
        """Return a name with underscores, as xgrammar writes names."""
        return name.replace("-", "_")


@lru_cache(maxsize=512)
def _ranged(found: tuple[tuple[int, int], ...]) -> str:
    if not is_wide(found):
        return f"[{written_ranges(found, _in_class)}]"
    others = complement(found)
    return f"[^{written_ranges(others, _in_class)}]" if others else ANY_CHARACTER


def _in_class(char: str) -> str:
    # `\^` and `\-` are xgrammar's alone, and its `\x` takes as many digits as follow
    return f"\\u{ord(char):04x}" if char in "^-" else _escaped(char, "\\][")


def _escaped(char: str, special: str) -> str:
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    if short:
        return short
    if char in special:
        return "\\" + char
    code = ord(char)
    return char if char.isprintable() else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
