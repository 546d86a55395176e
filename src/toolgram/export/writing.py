"""What all writers of rules share: names, shared parts, text automata, and the expansion of what a target lacks.

Strategy: a writer walks the expression once.  Leaves become rules (or terminals), named by their kind and numbered in
order of appearance; equal leaves share a rule.  So the grammar depends on the request alone.  A part that occurs in
several places is a rule as well.  A target defines how its rules, texts and classes look, and what it can express.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from toolgram.export.expressions import (
    EMPTY,
    NOTHING,
    Blanks,
    Break,
    Chars,
    Choice,
    Class,
    EngineFormat,
    Expr,
    Json,
    Lit,
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
    children,
    choice,
    members_in_any_order,
    members_in_turn,
    seq,
    star,
    without_characters,
)
from toolgram.export.notations import BASE, JSON
from toolgram.export.patterns import ALL
from toolgram.export.values import Values, other_names

Note = Callable[[str], object]


class RuleWriter:
    """Writes an expression as named rules."""

    arrow = "::="
    empty = '""'
    # With at most so many arguments in any order, every set is a rule; with more, only required ones are counted,
    most_counted = 6
    most_required = 5  # if there are at most so many.

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
    length_limits = False  # whether limits on the length of a text must hold at any price

    def _count(self, root: Expr) -> None:
        pending = [root]
        while pending:
            here = pending.pop()
            if isinstance(here, Lit):  # never a rule of its own
                continue
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
                return self.starred(expr)
            case Chars():
                return self.characters(expr)
            case Class():
                return self.class_item(expr)
            case Repeat():
                return self.repeated(expr)
            case Json():
                return self.json_value(expr)
            case Blanks():
                return self.blanks()
            case Quoted():
                return self.quoted(expr)
            case OtherName():
                return self.other_name(expr)
            case Text():
                return self.text(expr) if expr.within is None else self.text_within(expr)
            case Members():
                return self.members(expr)
            case Rules():
                return self.language(expr)
            case Ref():
                return self.reference(expr)
            case EngineFormat():
                raise AssertionError("only a structural tag has formats, and `export` gives them to no other target")

    def starred(self, expr: Star) -> str:
        """Any number of times."""
        return f"{self.item(expr.body)}*" if isinstance(expr.body, Class) else f"({self.body(expr.body)})*"

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
        if expr.any_order and 1 < len(names) <= self.most_counted:
            found = members_in_any_order(expr, names)
        elif expr.any_order and len(names) > 1 and len(required) <= self.most_required:
            self.note(
                f"where there are more than {self.most_counted} arguments, one that is not required may be repeated"
            )
            found = members_in_any_order(expr, required)
        else:
            if expr.any_order and len(names) > 1:
                self.note(f"more than {self.most_required} required arguments are written in the order of the schema")
            found = members_in_turn(expr)
        self._count(found)
        return found

    def language(self, expr: Rules) -> str:
        """An inner language, its rules under names of their own."""
        if expr in self.names:
            return self.names[expr]
        outer = self.prefix
        name = self.names[expr] = self.new("value")
        self.prefix = f"{name}-"
        for inner, body in expr.rules:
            self._count(body)
            self.rules.append((name if inner == expr.start else self.spell(self.prefix + inner), self.body(body)))
        self.prefix = outer
        return name

    def reference(self, expr: Ref) -> str:
        """A rule of the inner language, or one that all languages share."""
        if expr.name in BASE:
            return self.base(expr.name)
        return self.spell(self.prefix + expr.name)

    def base(self, name: str) -> str:
        """A rule that all languages share."""
        key = ("base", name)
        if key not in self.names:
            self.names[key] = self.spell(name.replace("_", "-"))
            at = len(self.rules)
            self.rules.append((self.names[key], ""))
            self.rules[at] = (self.names[key], self.body(BASE[name]))
        return self.names[key]

    # --- values ---------------------------------------------------------------------------------------------------

    def json_value(self, expr: Json) -> str:
        """The rules of a value."""
        key = ("json", expr)
        if key not in self.names:
            schema = json.loads(expr.schema)
            values = Values(schema, self.note, JSON)
            start = values.whole_object(schema) if expr.any_order else values.alone(values.value(schema))
            if isinstance(start, Ref) and start.name in BASE:
                self.names[key] = self.reference(start)
            else:
                self.names[key] = self.language(values.rules(start))
        return self.names[key]

    def blanks(self) -> str:
        """Blanks where JSON allows them."""
        return self.char_class(" \n\t\r") + "*"

    def quoted(self, expr: Quoted) -> str:
        """A text as a value: a rule, which may stand in many places."""
        return self.rule(expr, "quoted", lambda: self.body(expr.body))

    def other_name(self, expr: OtherName) -> str:
        """A name in JSON that is none of some names."""
        return self.rule(expr, "key", lambda: self.body(self._first_of_other_name(expr)))

    def _first_of_other_name(self, expr: OtherName) -> Expr:
        return JSON.quote(other_names(expr.but, self.note))

    def class_item(self, expr: Class) -> str:
        """One character of a set."""
        raise NotImplementedError

    def repeated(self, expr: Repeat) -> str:
        """So many times."""
        if expr.high is None and expr.low == 0:
            return self.item(star(expr.body))
        high = "" if expr.high is None else str(expr.high)
        count = str(expr.low) if expr.low == expr.high else f"{expr.low},{high}"
        return f"{self.item(expr.body)}{{{count}}}"

    def text_within(self, expr: Text) -> str:
        """Free text that must fit a pattern: the pattern, without the characters with which a marker begins.

        A length alone is left out, because without those characters most texts could not be written.
        """
        assert expr.within is not None
        if is_length(expr.within) and not self.length_limits:
            self.note("a limit on the length of a raw value is not enforced; `length_limits=True` enforces it")
            return self.text(replace(expr, within=None))
        begins = {min(pattern[0].characters) for pattern in expr.forbidden.patterns if pattern}
        begins |= {expr.closer[0]} if expr.closer else set()
        found = narrowed(expr.within, frozenset(map(ord, begins)))
        if found != expr.within:
            shown = " ".join(repr(char) for char in sorted(begins))
            self.note(f"a raw value with a pattern or a length holds none of the characters {shown}")
        return f"({self.pattern(found)} {self.literal(expr.closer)})" if expr.closer else self.pattern(found)

    def pattern(self, expr: Expr) -> str:
        """A text of some form."""
        return self.item(expr)


def is_length(expr: Expr) -> bool:
    """Whether a pattern is nothing but a limit on the length of a text."""
    return isinstance(expr, Repeat) and expr.is_length and expr.body == ALL


def narrowed(expr: Expr, codes: frozenset[int]) -> Expr:
    """A pattern without those of its texts that hold certain characters."""
    match expr:
        case Lit():
            return NOTHING if any(ord(char) in codes for char in expr.text) else expr
        case Class():
            found = without_characters(expr.ranges, codes)
            return Class(found) if found else NOTHING
        case Seq():
            return seq(*(narrowed(each, codes) for each in expr.parts))
        case Choice():
            return choice(*(narrowed(each, codes) for each in expr.options))
        case Star() | Repeat():
            body = narrowed(expr.body, codes)
            if body == NOTHING:
                return NOTHING if isinstance(expr, Repeat) and expr.low else EMPTY
            return star(body) if isinstance(expr, Star) else Repeat(body, expr.low, expr.high, expr.is_length)
    return expr


def written_ranges(found: tuple[tuple[int, int], ...], escaped: Callable[[str], str]) -> str:
    """The inside of a character class, from ranges of code points."""
    written = []
    for low, high in found:
        if 0xD800 <= low <= 0xDFFF:
            low = 0xE000
        if 0xD800 <= high <= 0xDFFF:
            high = 0xD7FF
        if high - low > 1:
            written.append(f"{escaped(chr(low))}-{escaped(chr(high))}")
        elif low <= high:
            written += [escaped(chr(code)) for code in range(low, high + 1)]
    written.sort(key=lambda each: "\\u" in each)  # xgrammar's escapes take all hexadecimal digits that follow
    return "".join(written)


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
