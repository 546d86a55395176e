"""The notation that EBNF and GBNF share, with the same strings, classes and escapes; and GBNF for llama.cpp.

Strategy: llama.cpp reads rules character by character, without any compilation. So free text is its automaton, every
count is written, and undeclared names are expressed exactly.
"""

from __future__ import annotations

import json
from functools import lru_cache

from toolgram.export import expressions as ex
from toolgram.export.texts import reaches_into
from toolgram.export.writing import RuleWriter, written_class
from toolgram.export.written import Piece, row
from toolgram.limits import MOST_WRITTEN_BLANKS

_LINES = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
_SHORT = str.maketrans({**_LINES, '"': '\\"', "\\": "\\\\"})
ANY_CHARACTER = "[^\\x00]"


class BnfWriter(RuleWriter):
    """Writes the notation that EBNF and GBNF share."""

    def literal(self, text: str) -> Piece:
        """Return a string in double quotes."""
        return _in_quotes(text)

    def of_class(self, expr: ex.Class) -> Piece:
        """Return a class in brackets."""
        return Piece(written_class(expr.ranges, _in_class, ANY_CHARACTER))


@lru_cache(maxsize=4096)
def _in_quotes(text: str) -> Piece:
    written = text.translate(_SHORT)
    if not written.isprintable():
        written = "".join([_escaped(char, '"\\') for char in text])
    return Piece(f'"{written}"')


def _in_class(char: str) -> str:
    # `\^` and `\-` are xgrammar's alone, and its `\x` takes as many digits as follow
    return f"\\u{ord(char):04x}" if char in "^-" else _escaped(char, "\\][")


def _escaped(char: str, special: str) -> str:
    if short := _LINES.get(char):
        return short
    if char in special:
        return "\\" + char
    code = ord(char)
    return char if char.isprintable() else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# --- GBNF ------------------------------------------------------------------------------------------------------------


class GbnfWriter(BnfWriter):
    """GBNF for llama.cpp."""

    def spell(self, name: str) -> str:
        """Return a name with hyphens, the only separator that GBNF allows."""
        return name.replace("_", "-")

    def of_blanks(self, expr: ex.Blanks | None = None) -> Piece:
        """Return the rule for the blanks that JSON allows, which is written out only once."""
        return self.rule("blanks", "blanks", lambda: self.run(" \n\t\r", MOST_WRITTEN_BLANKS))

    def text(self, expr: ex.Text) -> Piece:
        """Return free text by its automaton. Texts share it, unless a forbidden word may continue in their closer."""
        words, closer = expr.forbidden.words, expr.closer
        if not closer or closer in words or reaches_into(words, closer):
            return self.automaton(expr)
        return row(self.automaton(ex.Text(expr.forbidden)), self.literal(closer))

    def name_but(self, expr: ex.OtherName) -> ex.Expr:
        """Return exactly the other names: after each beginning of a declared name, any other character."""
        names = tuple(dict.fromkeys(json.dumps(name, ensure_ascii=False)[1:-1] for name in expr.but))
        return ex.seq(ex.Lit('"'), _other_than(names, ""))


def _other_than(names: tuple[str, ...], read: str) -> ex.Expr:
    going = sorted({name[len(read)] for name in names if name.startswith(read) and len(name) > len(read)})
    free = ex.without_characters(ex.complement([(0, 31), (34, 34), (92, 92)]), map(ord, going))
    options: list[ex.Expr] = [ex.seq(ex.Class(free), ex.Ref("json_rest"))]
    if "\\" not in going:
        options.append(ex.seq(ex.Ref("json_escape"), ex.Ref("json_rest")))
    if read not in names:
        options.append(ex.Lit('"'))
    options += [ex.seq(ex.Lit(char), _other_than(names, read + char)) for char in going]
    return ex.choice(*options)
