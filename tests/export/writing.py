"""Outputs written from a grammar's own expression: what every export of it must accept.

Strategy: walk the expression and choose at random.  JSON values follow their schemas as far as the schemas of these
tests go, and are written as `json.dumps` writes them; free text is prose with beginnings of markers in it, kept only if
the automaton of the place lets it pass.
"""

from __future__ import annotations

import json
import random

from tests.export.schema_pool import values
from toolgram.export.expressions import (
    Blanks,
    Chars,
    Choice,
    Class,
    Expr,
    Json,
    Lit,
    Member,
    Members,
    OtherName,
    Quoted,
    Ref,
    Repeat,
    Rules,
    Seq,
    Star,
    Text,
    Token,
    is_wide,
)
from toolgram.export.notations import BASE
from toolgram.export.texts import text_automaton
from toolgram.export.writing import narrowed

LEAVES = {"string": '"y z"', "integer": "-12", "number": "0.5e+3", "any": "[]", "rest": 'q"', "escape": "\\n"}
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
                return json.dumps(next(values(schema, rng, 1)), ensure_ascii=False)
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
                leaf = LEAVES.get(expr.name.partition("_")[2]) if expr.name in BASE else None
                return self._deeper(expr) if leaf is None else leaf
            case Class():
                return self._wide(expr) if is_wide(expr.ranges) else chr(rng.choice(expr.ranges)[rng.random() < 0.5])
            case Repeat():
                most = expr.low + 3 if expr.high is None else min(expr.high, expr.low + 3)
                return "".join(self.write(expr.body) for _ in range(rng.randint(expr.low, most)))
            case Quoted():
                return self.write(expr.body)
            case Blanks():
                return rng.choice(("", "", " ", "\n  "))
            case OtherName():
                begins = {each[:1] for each in expr.but}
                return next(f'"{name}"' for name in ("~further", "zz", "über") if name[0] not in begins)
        return ""

    def _wide(self, expr: Class) -> str:
        liked = [char for char in "ax 0Z-é日" if any(low <= ord(char) <= high for low, high in expr.ranges)]
        return self.rng.choice(liked or ["☃"])

    def _deeper(self, expr: Ref) -> str:
        self.depth += 1
        written = self.write({**BASE, **self.rules}[expr.name]) if self.depth < 30 else "0"
        self.depth -= 1
        return written

    def _chars(self, expr: Chars) -> str:
        while True:
            length = self.rng.randint(1, min(expr.most, 4))
            text = self.rng.choice(expr.first) + "".join(self.rng.choice(expr.rest) for _ in range(length - 1))
            if text not in expr.but:
                return text

    def _text(self, expr: Text) -> str:
        if expr.within is not None:
            return self._text_within(expr)
        states = text_automaton(expr.forbidden, expr.closer)
        while True:
            text = "".join(self.rng.choice(PROSE) for _ in range(self.rng.randint(0, 3))) + expr.closer
            at: int | None = 0
            for index, char in enumerate(text):
                moves = [move for move in states[at or 0] if (char in move.characters) != move.negated]
                if not moves or (moves[0].dest is None) != (bool(expr.closer) and index == len(text) - 1):
                    break
                at = moves[0].dest
            else:
                return text

    def _text_within(self, expr: Text) -> str:
        assert expr.within is not None
        begins = {word[0] for word in expr.forbidden.words}
        body = narrowed(expr.within, frozenset(map(ord, begins | set(expr.closer[:1]))))
        return self.write(body) + expr.closer

    def _members(self, expr: Members) -> str:
        chosen: list[Member] = [
            member for member in expr.members if member.name and (member.required or self.rng.random() < 0.5)
        ]
        if not chosen:
            chosen = [self.rng.choice(expr.members)]
        return "".join(self.write(each.later if at else each.first) for at, each in enumerate(chosen))


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
