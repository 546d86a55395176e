"""A structural tag: the JSON form for xgrammar and vLLM.

Strategy: the whole tag is one embedded grammar of EBNF rules, because only there parts have names: a repeated part is
written, and compiled, once. Rules know tokens by their ids only, and no formats. So around a token that is known by its
name, and around a given format, the tag joins parts in its own way.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from toolgram.export import expressions as ex
from toolgram.export.ebnf import EbnfWriter, excluded


def structural_tag(root: ex.Expr, note: ex.Note, length_limits: bool = False) -> str:
    """Return the whole tag as JSON text."""
    formats = _Formats(note, length_limits)
    made = formats.embedded(root) if _rules_can_write(root) else formats.of(root)
    return json.dumps({"type": "structural_tag", "format": made}, ensure_ascii=False)


class _Formats:
    """Writes each part once; parts that occur in several places are the same object."""

    def __init__(self, note: ex.Note, length_limits: bool) -> None:
        self.note, self.length_limits = note, length_limits
        self.of = cache(self._made)

    def _made(self, expr: ex.Expr) -> dict[str, Any]:
        match expr:
            case ex.Lit():
                return {"type": "const_string", "value": expr.text}
            case ex.Break():
                return {"type": "const_string", "value": ""}
            case ex.Text() if expr.within is None:
                text: dict[str, Any] = {"type": "any_text", "excludes": list(excluded(expr, self.note))}
                closer = {"type": "const_string", "value": expr.closer}
                return {"type": "sequence", "elements": [text, closer]} if expr.closer else text
            case ex.Token():
                return {"type": "token", "token": expr.text if expr.id is None else expr.id}
            case ex.EngineFormat():
                return dict(json.loads(expr.text))
        joins = isinstance(expr, ex.Seq | ex.Choice | ex.Star | ex.Members) and not _rules_can_write(expr)
        return self._joined(expr) if joins else self.embedded(expr)

    def _joined(self, expr: ex.Expr) -> dict[str, Any]:
        """Return parts of which one has no rules, as the tag joins them."""
        match expr:
            case ex.Seq():
                return {"type": "sequence", "elements": [self.of(each) for each in expr.parts]}
            case ex.Choice():
                rest = [each for each in expr.options if each != ex.EMPTY]
                options = [self.of(each) for each in rest]
                body = options[0] if len(options) == 1 else {"type": "or", "elements": options}
                return body if len(rest) == len(expr.options) else {"type": "optional", "content": body}
            case ex.Star():
                return {"type": "star", "content": self.of(expr.body)}
        assert isinstance(expr, ex.Members)
        self.note("arguments are written in the order of the schema, because the tokens between them have no ids")
        return self.of(ex.members_in_turn(expr, self.note))

    def embedded(self, expr: ex.Expr) -> dict[str, Any]:
        """Return an expression as rules."""
        return {"type": "grammar", "grammar": EbnfWriter(self.note, self.length_limits).write(expr)}


def _rules_can_write(expr: ex.Expr) -> bool:
    """Return whether rules can write an expression: they know tokens by their ids, and no formats."""
    parts = [*ex.inside(expr)]
    kinds = {*map(type, parts)}
    if ex.EngineFormat in kinds:
        return False
    return ex.Token not in kinds or not any(isinstance(each, ex.Token) and each.id is None for each in parts)
