"""A structural tag: the JSON form that xgrammar and vLLM take, where nothing has a name and everything nests.

Strategy: texts, sequences and choices are the format's own, arguments are its `json_schema`.  What it has no word for
(text without a pattern, a run of characters, values as Python writes them) is an embedded grammar of EBNF rules.
"""

from __future__ import annotations

import json
from typing import Any

from toolgram.export.ebnf import EbnfWriter
from toolgram.export.engines import fitted
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
from toolgram.export.writing import Note


def structural_tag(root: Expr, note: Note) -> str:
    """The whole tag as JSON text."""
    return json.dumps({"type": "structural_tag", "format": _format(root, note)}, ensure_ascii=False, indent=1)


def _format(expr: Expr, note: Note) -> dict[str, Any]:
    if isinstance(expr, Seq | Choice | Star) and _is_rules(expr):
        return _embedded(expr, note)
    match expr:
        case Lit():
            return {"type": "const_string", "value": expr.text}
        case Break():
            return {"type": "const_string", "value": ""}
        case Token():
            return {"type": "token", "token": expr.id}
        case Seq():
            if not expr.parts:
                return {"type": "const_string", "value": ""}
            return {"type": "sequence", "elements": [_format(each, note) for each in expr.parts]}
        case Choice():
            rest = [each for each in expr.options if each != EMPTY]
            options = [_format(each, note) for each in rest]
            body = options[0] if len(options) == 1 else {"type": "or", "elements": options}
            return body if len(rest) == len(expr.options) else {"type": "optional", "content": body}
        case Star():
            return {"type": "star", "content": _format(expr.body, note)}
        case Json():
            schema = fitted(json.loads(expr.schema), "xgrammar", note)
            if expr.any_order and len(schema.get("properties", ())) > 1:
                note("objects are written in the order of the schema")
            return {"type": "json_schema", "json_schema": schema}
        case Text():
            return _text(expr, note)
        case Members():
            if expr.any_order and len([member for member in expr.members if member.name]) > 1:
                note("arguments stand in the order of the schema")
            return _format(members_in_turn(expr), note)
        case Chars() | Rules():
            return _embedded(expr, note)
        case Ref():
            raise AssertionError("a rule is only known inside its language")


def _text(expr: Text, note: Note) -> dict[str, Any]:
    """Text by its excluded words, where they are words and the closer is one of them; else an embedded grammar."""
    words = []
    for pattern in expr.forbidden.patterns:
        if any(step.repeated or step.negated or len(step.characters) != 1 for step in pattern):
            return _embedded(expr, note)
        words.append("".join(next(iter(step.characters)) for step in pattern))
    if expr.closer and not all(word == expr.closer or word not in expr.closer for word in words):
        return _embedded(expr, note)
    text: dict[str, Any] = {"type": "any_text", "excludes": words}
    if not expr.closer:
        return text
    return {"type": "sequence", "elements": [text, {"type": "const_string", "value": expr.closer}]}


def _embedded(expr: Expr, note: Note) -> dict[str, Any]:
    return {"type": "grammar", "grammar": EbnfWriter(note).write(expr)}


def _is_rules(expr: Expr) -> bool:
    """Whether an expression is without JSON, and holds what has no word here: then it is rules as a whole."""
    pending, needed = [expr], False
    while pending:
        here = pending.pop()
        if isinstance(here, Json):
            return False
        needed = needed or isinstance(here, Rules | Members)
        pending += children(here)
    return needed
