"""A structural tag: the JSON form for xgrammar and vLLM. It has no named rules, so everything nests.

Strategy: texts, sequences and choices are the tag's own formats; arguments are its `json_schema`.  What it cannot
express (text without a pattern, a run of characters, values in Python's notation) is an embedded grammar of EBNF rules.
"""

from __future__ import annotations

import json
from typing import Any

from toolgram.export.ebnf import EbnfWriter, rules_are_printed
from toolgram.export.engines import fitted, note_escapes, text_lengths
from toolgram.export.expressions import (
    EMPTY,
    Break,
    Chars,
    Choice,
    Expr,
    Json,
    Lit,
    Members,
    Ref,
    Rules,
    Seq,
    Star,
    Text,
    Token,
    members_in_turn,
)
from toolgram.export.python_values import children
from toolgram.export.writing import Note, object_members


def structural_tag(root: Expr, note: Note) -> str:
    """The whole tag as JSON text."""
    return json.dumps({"type": "structural_tag", "format": _Formats(note).of(root)}, ensure_ascii=False)


class _Formats:
    """Writes each part once; parts that occur in several places are the same object."""

    def __init__(self, note: Note) -> None:
        self.note = note
        self.known: dict[Expr, dict[str, Any]] = {}

    def of(self, expr: Expr) -> dict[str, Any]:
        """The format of an expression."""
        if expr not in self.known:
            self.known[expr] = self._made(expr)
        return self.known[expr]

    def _made(self, expr: Expr) -> dict[str, Any]:
        note = self.note
        if isinstance(expr, Seq | Choice | Star) and _is_rules(expr):
            return self._embedded(expr)
        match expr:
            case Lit():
                return {"type": "const_string", "value": expr.text}
            case Break():
                return {"type": "const_string", "value": ""}
            case Token():
                return {"type": "token", "token": expr.text if expr.id is None else expr.id}
            case Seq():
                if not expr.parts:
                    return {"type": "const_string", "value": ""}
                return {"type": "sequence", "elements": [self.of(each) for each in expr.parts]}
            case Choice():
                rest = [each for each in expr.options if each != EMPTY]
                options = [self.of(each) for each in rest]
                body = options[0] if len(options) == 1 else {"type": "or", "elements": options}
                return body if len(rest) == len(expr.options) else {"type": "optional", "content": body}
            case Star():
                return {"type": "star", "content": self.of(expr.body)}
            case Json():
                schema = fitted(json.loads(expr.schema), "xgrammar", note)
                members = object_members(schema) if expr.any_order else None
                if members is not None and self._can_embed("objects"):
                    return self._embedded(members)
                if text_lengths(schema) is not None and self._can_embed("texts"):
                    return self._embedded(expr)
                note_escapes(schema, note)
                return {"type": "json_schema", "json_schema": schema}
            case Text():
                return self._text(expr)
            case Members():
                if not _rules_can_write(expr):
                    note(
                        "arguments are written in the order of the schema, because the tokens between them have no ids"
                    )
                    return self.of(members_in_turn(expr))
                if not self._can_embed("arguments"):
                    return self.of(members_in_turn(expr))
                return self._embedded(expr)
            case Chars() | Rules():
                return self._embedded(expr)
            case Ref():
                raise AssertionError("a rule is only known inside its language")

    def _can_embed(self, what: str) -> bool:
        """Whether xgrammar can print the rules of a schema; otherwise the schema itself is used, in its order."""
        if rules_are_printed():
            return True
        self.note(f"xgrammar is not installed here, so that {what} are left to its `json_schema`, in the order of that")
        return False

    def _text(self, expr: Text) -> dict[str, Any]:
        """Text by its excluded words, where these are fixed words with the closer among them; else EBNF rules."""
        words = []
        for pattern in expr.forbidden.patterns:
            if any(step.repeated or step.negated or len(step.characters) != 1 for step in pattern):
                return self._embedded(expr)
            words.append("".join(next(iter(step.characters)) for step in pattern))
        if expr.closer and not all(word == expr.closer or word not in expr.closer for word in words):
            return self._embedded(expr)
        text: dict[str, Any] = {"type": "any_text", "excludes": words}
        if not expr.closer:
            return text
        return {"type": "sequence", "elements": [text, {"type": "const_string", "value": expr.closer}]}

    def _embedded(self, expr: Expr) -> dict[str, Any]:
        return {"type": "grammar", "grammar": EbnfWriter(self.note).write(expr)}


def _rules_can_write(expr: Expr) -> bool:
    """Whether rules can write an expression: they know tokens by their ids."""
    pending = [expr]
    while pending:
        here = pending.pop()
        if _goes_by_name(here):
            return False
        pending += children(here)
    return True


def _goes_by_name(expr: Expr) -> bool:
    return isinstance(expr, Token) and expr.id is None


def _is_rules(expr: Expr) -> bool:
    """Whether an expression must be rules: the tag cannot express a part of it, and rules can express all of it."""
    pending, needed = [expr], False
    while pending:
        here = pending.pop()
        if isinstance(here, Json) or _goes_by_name(here):
            return False
        needed = needed or isinstance(here, Rules | Members)
        pending += children(here)
    return needed
