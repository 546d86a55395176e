"""What all writers of rules share: names, shared parts, text automata, and the expansion of what a target lacks.

Strategy: a writer walks the expression once.  Leaves become rules (or terminals), named by their kind and numbered in
order of appearance; equal leaves share a rule.  So the grammar depends on the request alone.  A part that occurs in
several places is a rule as well.  A target defines how its rules, texts and classes look, and what it can express.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from toolgram.export.expressions import (
    EMPTY,
    Break,
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
    choice,
    members_in_any_order,
    members_in_turn,
    optional,
    seq,
)
from toolgram.export.python_values import LEAVES, children
from toolgram.export.schemas import PLAIN_OBJECT, text_of, within

Note = Callable[[str], object]

MOST_COUNTED = (
    6  # with at most this many arguments in any order, every set is a rule; with more, only required ones are counted,
)
MOST_REQUIRED = 5  # if there are at most this many
BLANKS = optional(Chars(" \t\r\n", " \t\r\n", 32))
KEY_CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.$"


class RuleWriter:
    """Writes an expression as named rules."""

    arrow = "::="
    engine = "xgrammar"
    empty = '""'

    def __init__(self, note: Note) -> None:
        self.note = note
        self.rules: list[tuple[str, str]] = []
        self.names: dict[Any, str] = {}
        self.counts: dict[str, int] = {}
        self.uses: dict[int, int] = {}
        self.prefix = ""  # of the rules of an inner language
        self.kept: list[Expr] = []  # keeps nodes alive whose ids are keys

    def write(self, root: Expr) -> str:
        """The whole grammar."""
        self._count(root)
        body = self.body(root)
        lines = [f"{self.root_name} {self.arrow} {body}"]
        lines += [f"{name} {self.arrow} {text}" for name, text in self.rules]
        return "\n".join(lines) + "\n"

    root_name = "root"

    def _count(self, root: Expr) -> None:
        pending = [root]
        while pending:
            here = pending.pop()
            self.uses[id(here)] = self.uses.get(id(here), 0) + 1
            if self.uses[id(here)] == 1:
                self.kept.append(here)
                if not isinstance(here, Members | Rules):
                    pending += children(here)

    def new(self, kind: str) -> str:
        """The next name of a kind."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.spell(f"{kind}-{self.counts[kind]}")

    def spell(self, name: str) -> str:
        """A name in the notation of the target."""
        return name

    def rule(self, key: Any, kind: str, body: Callable[[], str]) -> str:
        """The rule for a key, made at its first use."""
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = self.new(kind)
            at = len(self.rules)
            self.rules.append((name, ""))
            self.rules[at] = (name, body())
        return name

    # --- expressions ----------------------------------------------------------------------------------------------

    def body(self, expr: Expr) -> str:
        """An expression as the body of a rule."""
        if isinstance(expr, Choice):
            return " | ".join(self._part(each) for each in expr.options)
        return self._part(expr)

    def _part(self, expr: Expr) -> str:
        if isinstance(expr, Seq):
            return " ".join(self.item(each) for each in expr.parts if not isinstance(each, Break)) or self.empty
        return self.item(expr)

    def item(self, expr: Expr) -> str:
        """An expression as one item of a sequence."""
        shared = isinstance(expr, Seq | Choice | Star) and expr != EMPTY and self.uses.get(id(expr), 0) > 1
        if shared:
            return self.rule(("shared", expr), "part", lambda: self.inner(expr))
        return self.inner_item(expr)

    def inner(self, expr: Expr) -> str:
        """A shared part as the body of its rule."""
        return self.inner_item(expr) if isinstance(expr, Star) else self.body(expr)

    def inner_item(self, expr: Expr) -> str:
        """An expression, inline or as a rule."""
        match expr:
            case Lit():
                return self.literal(expr.text)
            case Break():
                return self.empty
            case Token():
                return self.token(expr)
            case Seq():
                return f"({self._part(expr)})"
            case Choice():
                rest = [each for each in expr.options if each != EMPTY]
                if len(rest) < len(expr.options):
                    return f"({self.body(Choice(tuple(rest)))})?"
                return f"({self.body(expr)})"
            case Star():
                return f"({self.body(expr.body)})*"
            case Chars():
                return self.characters(expr)
            case Json():
                return self.json_value(expr)
            case Text():
                return self.text(expr)
            case Members():
                return self.members(expr)
            case Rules():
                return self.language(expr)
            case Ref():
                return self.reference(expr)

    # --- leaves ---------------------------------------------------------------------------------------------------

    def literal(self, text: str) -> str:
        """A fixed text."""
        raise NotImplementedError

    def token(self, expr: Token) -> str:
        """One special token, by its id or its name."""
        return expr.text if expr.id is None else f"<[{expr.id}]>"

    def char_class(self, characters: str, negated: bool = False) -> str:
        """A set of characters."""
        raise NotImplementedError

    def json_value(self, expr: Json) -> str:
        """A value by its schema."""
        raise NotImplementedError

    def python_leaf(self, name: str) -> str:
        """A string or a number as Python writes it."""
        raise NotImplementedError

    def run(self, characters: str, most: int) -> str:
        """Up to `most` of some characters."""
        return f"{self.char_class(characters)}{{0,{most}}}"

    def characters(self, expr: Chars) -> str:
        """A run of characters, that is none of some texts."""
        if not expr.but:
            if expr.most == 1:
                return self.char_class(expr.first)
            if expr.first == expr.rest:
                return f"{self.char_class(expr.first)}{{1,{expr.most}}}"
            return f"{self.char_class(expr.first)} {self.run(expr.rest, expr.most - 1)}"
        return self.rule(expr, "key", lambda: self._other_than(expr, ""))

    def _other_than(self, expr: Chars, read: str) -> str:
        """What may follow `read`, with which some of the excluded texts begin."""
        allowed = expr.rest if read else expr.first
        going = sorted({text[len(read)] for text in expr.but if text.startswith(read) and len(text) > len(read)})
        free = "".join(char for char in allowed if char not in going)
        options = [f"{self.char_class(free)} {self.run(expr.rest, expr.most - 1)}"] if free else []
        for char in going:
            if char in allowed:
                deeper = self.rule((expr, read + char), "key", lambda char=char: self._other_than(expr, read + char))  # type: ignore[misc]
                options.append(f"{self.literal(char)} {deeper}")
        if read and read not in expr.but:
            options.append(self.empty)
        return " | ".join(options)

    def text(self, expr: Text) -> str:
        """Free text, by its automaton."""
        from toolgram.export.texts import text_automaton

        key = (expr.forbidden, expr.closer)
        if key in self.names:
            return self.names[key]
        states = text_automaton(expr.forbidden, expr.closer)
        base = self.new("text")
        self.names[key] = base
        names = [base] + [self.spell(f"{base}-{at}") for at in range(1, len(states))]
        for name, state in zip(names, states, strict=True):
            options = [] if expr.closer else [self.empty]
            for move in state.moves:
                step = self.char_class(move.characters, move.negated)
                options.append(step if move.dest is None else f"{step} {names[move.dest]}")
            self.rules.append((name, " | ".join(options)))
        return base

    def members(self, expr: Members) -> str:
        """Arguments: in any order where few must be counted, in the order of the schema where there are more."""
        return self.item(self.ordered(expr))

    def ordered(self, expr: Members) -> Expr:
        """Arguments as an expression without `Members`."""
        names = frozenset(member.name for member in expr.members if member.name)
        required = frozenset(member.name for member in expr.members if member.required)
        if expr.any_order and 1 < len(names) <= MOST_COUNTED:
            found = members_in_any_order(expr, names)
        elif expr.any_order and len(names) > 1 and len(required) <= MOST_REQUIRED:
            self.note(f"where there are more than {MOST_COUNTED} arguments, one that is not required may be repeated")
            found = members_in_any_order(expr, required)
        else:
            if expr.any_order and len(names) > 1:
                self.note(f"more than {MOST_REQUIRED} required arguments are written in the order of the schema")
            found = members_in_turn(expr)
        self._count(found)
        return found

    def in_any_order(self, schema: dict[str, Any]) -> str | None:
        """The rule of an object whose keys may stand in any order; None where the engine must write it."""
        found = object_members(schema)
        if found is None:
            if len(schema.get("properties", ())) > 1:
                self.note("objects with keywords beside properties are written in the order of the schema")
            return None
        self._count(found)
        return self.rule(("object", text_of(schema)), "object", lambda: self.body(found))

    def language(self, expr: Rules) -> str:
        """An inner language, its rules under names of their own."""
        if expr in self.names:
            return self.names[expr]
        outer = self.prefix
        name = self.names[expr] = self.new("python")
        self.prefix = f"{name}-"
        for inner, body in expr.rules:
            self._count(body)
            self.rules.append((name if inner == expr.start else self.spell(self.prefix + inner), self.body(body)))
        self.prefix = outer
        return name

    def reference(self, expr: Ref) -> str:
        """A rule of the inner language."""
        if expr.name in LEAVES:
            return self.rule(expr.name, expr.name.removeprefix("py_"), lambda: self.python_leaf(expr.name))
        return self.spell(self.prefix + expr.name)


def object_members(schema: dict[str, Any]) -> Expr | None:
    """An object as members in any order; None where the expression would lose a part of the schema."""
    if not set(schema) <= PLAIN_OBJECT or schema.get("type") != "object" or not schema.get("properties"):
        return None
    blanks = BLANKS
    required = set(schema.get("required", ()))
    beyond = schema.get("additionalProperties", True)
    properties = dict(schema["properties"])
    for name in sorted(required - set(properties)):
        properties[name] = beyond
    if len(properties) < 2:
        return None
    found = []
    for name, declared in properties.items():
        if declared is False:
            if name in required:
                return None
            continue  # it cannot be given, and no other key may have its name
        value = Json(text_of(within(declared, schema)))
        written = seq(Lit(json.dumps(name, ensure_ascii=False)), blanks, Lit(":"), blanks, value)
        found.append(Member(name, written, seq(blanks, Lit(","), blanks, written), name in required))
    if beyond is not False:
        key = Chars(KEY_CHARACTERS, KEY_CHARACTERS, 64, tuple(properties))
        value = Json(text_of(within(beyond, schema)))
        written = seq(Lit('"'), key, Lit('"'), blanks, Lit(":"), blanks, value)
        found.append(Member("", written, seq(blanks, Lit(","), blanks, written), False))
    members: Expr = seq(Members(tuple(found), True), blanks)
    return seq(Lit("{"), blanks, members if required else choice(members, EMPTY), Lit("}"))


def ranges(characters: str, escaped: Callable[[str], str]) -> str:
    """The inside of a character class: sorted, and neighbours as ranges."""
    codes = sorted({ord(char) for char in characters})
    written = []
    while codes:
        most = 1
        while most < len(codes) and codes[most] == codes[0] + most:
            most += 1
        run, codes = codes[:most], codes[most:]
        if most > 2:
            written.append(f"{escaped(chr(run[0]))}-{escaped(chr(run[-1]))}")
        else:
            written += [escaped(chr(code)) for code in run]
    return "".join(written)
