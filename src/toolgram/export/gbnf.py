"""GBNF for llama.cpp, which reads rules character by character, without any compilation.

Strategy: free text is its automaton, every count is written, and undeclared names are expressed exactly.
"""

from __future__ import annotations

import json

from toolgram.export.bnf import BnfWriter
from toolgram.export.expressions import (
    Blanks,
    Class,
    Expr,
    Lit,
    OtherName,
    Ref,
    Text,
    choice,
    complement,
    seq,
    without_characters,
)
from toolgram.export.texts import reaches_into
from toolgram.export.written import Piece, row
from toolgram.limits import MOST_WRITTEN_BLANKS


class GbnfWriter(BnfWriter):
    """GBNF for llama.cpp."""

    def spell(self, name: str) -> str:
        """Return a name with hyphens, the only separator that GBNF allows."""
        return name.replace("_", "-")

    def of_blanks(self, expr: Blanks | None = None) -> Piece:
        """Return the rule for the blanks that JSON allows, which is written out only once."""
        return self.rule("blanks", "blanks", lambda: self.run(" \n\t\r", MOST_WRITTEN_BLANKS))

    def text(self, expr: Text) -> Piece:
        """Return free text by its automaton. Texts share it, unless a forbidden word may continue in their closer."""
        words, closer = expr.forbidden.words, expr.closer
        if not closer or closer in words or reaches_into(words, closer):
            return self.automaton(expr)
        return row(self.automaton(Text(expr.forbidden)), self.literal(closer))

    def name_but(self, expr: OtherName) -> Expr:
        """Return exactly the other names: after each beginning of a declared name, any other character."""
        names = tuple(dict.fromkeys(json.dumps(name, ensure_ascii=False)[1:-1] for name in expr.but))
        return seq(Lit('"'), _other_than(names, ""))


def _other_than(names: tuple[str, ...], read: str) -> Expr:
    going = sorted({name[len(read)] for name in names if name.startswith(read) and len(name) > len(read)})
    free = without_characters(complement([(0, 31), (34, 34), (92, 92)]), map(ord, going))
    options: list[Expr] = [seq(Class(free), Ref("json_rest"))]
    if "\\" not in going:
        options.append(seq(Ref("json_escape"), Ref("json_rest")))
    if read not in names:
        options.append(Lit('"'))
    options += [seq(Lit(char), _other_than(names, read + char)) for char in going]
    return choice(*options)
