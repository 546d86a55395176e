"""Outputs written from a grammar's own expression: what every export of it must accept.

Strategy: walk the expression and choose at random.  JSON values follow their schemas as far as the schemas of these
tests go, and are written as `json.dumps` writes them; free text is prose with beginnings of markers in it, kept only if
the automaton of the place lets it pass.
"""

import json
import random

from tests.export.schema_pool import values
from tests.tables import table
from toolgram.export import expressions as ex
from toolgram.export.notations import BASE
from toolgram.export.texts import text_automaton
from toolgram.export.writing import narrowed

LEAVES = {"string": '"y z"', "integer": "-12", "number": "0.5e+3", "any": "[]", "rest": 'q"', "escape": "\\n"}
PROSE = table(__file__, "prose")


class Writer:
    """Writes outputs of one expression."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.rules: dict[str, ex.Expr] = {}
        self.depth = 0

    def write(self, expr: ex.Expr) -> str:
        """A random output."""
        rng = self.rng
        match expr:
            case ex.Lit() | ex.Token():
                return expr.text
            case ex.Chars():
                return self._chars(expr)
            case ex.Seq():
                return "".join(map(self.write, expr.parts))
            case ex.Choice():
                self.depth += 1
                written = self.write(rng.choice(expr.options if self.depth < 40 else expr.options[:1]))
                self.depth -= 1
                return written
            case ex.Star():
                count = rng.choice((0, 0, 1, 1, 2)) if self.depth < 20 else 0
                return "".join(self.write(expr.body) for _ in range(count))
            case ex.Json():
                return json.dumps(next(values(json.loads(expr.schema), rng, 1)), ensure_ascii=False)
            case ex.Text():
                return self._text(expr)
            case ex.Members():
                return self._members(expr)
            case ex.Rules():
                outer, self.rules = self.rules, dict(expr.rules)
                written = self.write(self.rules[expr.start])
                self.rules = outer
                return written
            case ex.Ref():
                leaf = LEAVES.get(expr.name.partition("_")[2]) if expr.name in BASE else None
                return self._deeper(expr) if leaf is None else leaf
            case ex.Class():
                return self._wide(expr) if ex.is_wide(expr.ranges) else chr(rng.choice(expr.ranges)[rng.random() < 0.5])
            case ex.Repeat():
                most = expr.low + 3 if expr.high is None else min(expr.high, expr.low + 3)
                return "".join(self.write(expr.body) for _ in range(rng.randint(expr.low, most)))
            case ex.Quoted():
                return self.write(expr.body)
            case ex.Blanks():
                return rng.choice(("", "", " ", "\n  "))
            case ex.OtherName():
                begins = {each[:1] for each in expr.but}
                return next(f'"{name}"' for name in ("~further", "zz", "über") if name[0] not in begins)
        return ""

    def _wide(self, expr: ex.Class) -> str:
        liked = [char for char in "ax 0Z-é日" if any(low <= ord(char) <= high for low, high in expr.ranges)]
        return self.rng.choice(liked or ["☃"])

    def _deeper(self, expr: ex.Ref) -> str:
        self.depth += 1
        written = self.write({**BASE, **self.rules}[expr.name]) if self.depth < 30 else "0"
        self.depth -= 1
        return written

    def _chars(self, expr: ex.Chars) -> str:
        while True:
            length = self.rng.randint(1, min(expr.most, 4))
            text = self.rng.choice(expr.first) + "".join(self.rng.choice(expr.rest) for _ in range(length - 1))
            if text not in expr.but:
                return text

    def _text(self, expr: ex.Text) -> str:
        if expr.within is not None:
            return self._text_within(expr)
        while True:
            text = "".join(self.rng.choice(PROSE) for _ in range(self.rng.randint(0, 3))) + expr.closer
            if taken(expr.forbidden, text, expr.closer):
                return text

    def _text_within(self, expr: ex.Text) -> str:
        assert expr.within is not None
        begins = {word[0] for word in expr.forbidden.words}
        body = narrowed(expr.within, frozenset(map(ord, begins | set(expr.closer[:1]))))
        return self.write(body) + expr.closer

    def _members(self, expr: ex.Members) -> str:
        chosen: list[ex.Member] = [
            member for member in expr.members if member.name and (member.required or self.rng.random() < 0.5)
        ]
        if not chosen:
            chosen = [self.rng.choice(expr.members)]
        return "".join(self.write(each.later if at else each.first) for at, each in enumerate(chosen))


def taken(forbidden: ex.Forbidden, text: str, closer: str = "") -> bool:
    """Whether the automaton of texts takes one."""
    states, at = text_automaton(forbidden, closer), 0
    for place, char in enumerate(text, 1):
        move = next((each for each in states[at] if (char in each.characters) != each.negated), None)
        if move is None or move.dest is None:
            return move is not None and place == len(text)
        at = move.dest
    return not closer


def random_output(root: ex.Expr, rng: random.Random) -> str:
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
