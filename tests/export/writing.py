"""Outputs written from a grammar's own expression: what every export of it must accept.

Strategy: walk the expression and choose at random.  JSON values follow their schemas as far as the schemas of these
tests go, and are written as `json.dumps` writes them; free text is prose with beginnings of markers in it, kept only if
the automaton of the place lets it pass.
"""

from __future__ import annotations

import json
import random
from typing import Any

from toolgram.export.expressions import (
    Chars,
    Choice,
    Expr,
    Json,
    Lit,
    Member,
    Members,
    Ref,
    Rules,
    Seq,
    Star,
    Text,
    Token,
)
from toolgram.export.texts import text_automaton
from toolgram.parameters import resolve

PROSE = (
    "",
    "Hello.",
    "Is 3 < 4?\n",
    "a [list] of {things}",
    "<",
    "[",
    "{",
    "<tool",
    "[TOOL",
    "naïve ☕ 🎉",
    "\n\n",
    "`x`",
)


class Writer:
    """Writes outputs of one expression."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rules: dict[str, Expr] = {}
        self.depth = 0

    def write(self, expr: Expr) -> str:
        """A random output."""
        rng = self.rng
        match expr:
            case Lit():
                return expr.text
            case Token():
                return expr.text
            case Chars():
                return self._chars(expr)
            case Seq():
                return "".join(self.write(part) for part in expr.parts)
            case Choice():
                self.depth += 1
                options = expr.options if self.depth < 40 else expr.options[:1]
                written = self.write(rng.choice(options))
                self.depth -= 1
                return written
            case Star():
                return "".join(
                    self.write(expr.body) for _ in range(rng.choice((0, 0, 1, 1, 2)) if self.depth < 20 else 0)
                )
            case Json():
                schema = json.loads(expr.schema)
                return json.dumps(self.value(schema, schema), ensure_ascii=False)
            case Text():
                return self._text(expr)
            case Members():
                return self._members(expr)
            case Rules():
                outer, self.rules = self.rules, dict(expr.rules)
                written = self.write(self.rules[expr.start])
                self.rules = outer
                return written
            case Ref():
                leaf = {"py_string": '"y z"', "py_integer": "-12", "py_number": "0.5e+3"}.get(expr.name)
                return self._deeper(expr) if leaf is None else leaf
        return ""

    def _deeper(self, expr: Ref) -> str:
        self.depth += 1
        written = self.write(self.rules[expr.name]) if self.depth < 30 else "0"
        self.depth -= 1
        return written

    def _chars(self, expr: Chars) -> str:
        while True:
            length = self.rng.randint(1, min(expr.most, 4))
            text = self.rng.choice(expr.first) + "".join(self.rng.choice(expr.rest) for _ in range(length - 1))
            if text not in expr.but:
                return text

    def _text(self, expr: Text) -> str:
        states = text_automaton(expr.forbidden, expr.closer)
        while True:
            text = "".join(self.rng.choice(PROSE) for _ in range(self.rng.randint(0, 3))) + expr.closer
            at: int | None = 0
            for index, char in enumerate(text):
                moves = [move for move in states[at or 0].moves if (char in move.characters) != move.negated]
                if not moves or (moves[0].dest is None) != (bool(expr.closer) and index == len(text) - 1):
                    break
                at = moves[0].dest
            else:
                return text

    def _members(self, expr: Members) -> str:
        chosen: list[Member] = [
            member for member in expr.members if member.name and (member.required or self.rng.random() < 0.5)
        ]
        if not chosen:
            chosen = [self.rng.choice(expr.members)]
        return "".join(self.write(each.later if at else each.first) for at, each in enumerate(chosen))

    # --- values ---------------------------------------------------------------------------------------------------

    def value(self, schema: Any, root: Any) -> Any:
        """A value that a schema allows, of the keywords that these tests use."""
        rng = self.rng
        if schema is True or not schema:
            return rng.choice((None, True, 3, "any", [1], {"k": "v"}))
        if "$ref" in schema:
            return self.value(resolve(schema["$ref"], root), root)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return rng.choice(schema["enum"])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self.value(rng.choice(schema[key]), root)
        kinds = schema.get("type", ["null"])
        kind = rng.choice(kinds) if isinstance(kinds, list) else kinds
        if kind == "string":
            text = rng.choice(("", "Paris", 'a "quoted" \\ one', "naïve ☕", "x\ny", "<tag>", "true", "12"))
            return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 99)]
        if kind == "integer":
            return rng.randint(schema.get("minimum", -7), schema.get("maximum", 120))
        if kind == "number":
            return rng.choice((0, 1.5, -20.25, 7))
        if kind == "boolean":
            return rng.random() < 0.5
        if kind == "null":
            return None
        if kind == "array":
            least = schema.get("minItems", 0)
            return [self.value(schema.get("items", True), root) for _ in range(rng.randint(least, least + 2))]
        required = schema.get("required", [])
        names = [name for name in schema.get("properties", {}) if name in required or rng.random() < 0.5]
        return {name: self.value(schema["properties"][name], root) for name in names}


def random_output(root: Expr, rng: random.Random) -> str:
    """A random output of an expression."""
    return Writer(rng).write(root)


def mutated(text: str, rng: random.Random) -> str:
    """The text with one small thing wrong."""
    at = rng.randrange(len(text)) if text else 0
    way = rng.random()
    if way < 0.4:
        return text[:at] + text[at + rng.randint(1, 3) :]
    if way < 0.7:
        return text[:at] + rng.choice('{}[]",:\\x<') + text[at:]
    return text[:at] if way < 0.85 else text[:at] + rng.choice('{}[]",:\\x<') + text[at + 1 :]
