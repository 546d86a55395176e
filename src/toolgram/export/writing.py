"""The base of all writers of rules: names, shared parts, text automata, and expansion of forms that a target lacks.

Strategy: a writer walks the expression once, and returns typed pieces (`written`). Leaves become rules (or terminals),
named by their kind and numbered in order of appearance; equal leaves share a rule. So the grammar depends on the
request alone. A part that occurs in several places is also a rule. A target defines the notation of its rules, texts
and classes, and what it can express.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from toolgram.export import expressions as ex
from toolgram.export.ecmascript import ALL
from toolgram.export.notations import BASE, JSON
from toolgram.export.texts import text_automaton
from toolgram.export.values import Values, other_names
from toolgram.export.written import EMPTY_ROW, Atom, Counted, Piece, either, row, spelled
from toolgram.limits import MOST_COUNTED


class RuleWriter:
    """Writes an expression as named rules."""

    arrow = "::="
    root_name = "root"
    # Up to this many arguments in any order, every set is a rule; with more, only required ones are counted,
    most_counted = 6
    most_required = 5  # if there are at most this many.

    def __init__(self, note: ex.Note, length_limits: bool = False) -> None:
        self.note, self.length_limits = note, length_limits  # whether limits on the length of a text must hold
        self.rules: list[tuple[str, Piece]] = []
        self.names: dict[Any, str] = {}
        self.counts: dict[str, int] = {}
        self.uses: dict[ex.Expr, int] = {}
        self.prefix = ""  # of the rules of an inner language

    def write(self, root: ex.Expr) -> str:
        """Return the whole grammar."""
        return self.text_of_rules(self.all_rules(root))

    def all_rules(self, root: ex.Expr) -> list[tuple[str, Piece]]:
        """Return the rules of the grammar, beginning with the start rule."""
        body = self.body(self.counted(root))
        return [(self.root_name, body), *self.rules]

    def text_of_rules(self, rules: Iterable[tuple[str, Piece]]) -> str:
        """Return rules in the notation of the target."""
        return "".join(f"{name} {self.arrow} {spelled(body)}\n" for name, body in rules)

    def counted(self, root: ex.Expr) -> ex.Expr:
        """Count how often each part occurs in an expression that is to be written, and return it."""
        pending = [root]
        while pending:
            here = pending.pop()
            if isinstance(here, ex.Lit):  # never a rule of its own
                continue
            self.uses[here] = self.uses.get(here, 0) + 1
            if self.uses[here] == 1 and not isinstance(here, ex.Members | ex.Rules):
                pending += ex.children(here)
        return root

    def new(self, kind: str) -> str:
        """Return the next name of a kind."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.spell(f"{kind}-{self.counts[kind]}")

    def spell(self, name: str) -> str:
        """Return a name in the notation of the target."""
        return name

    def rule(self, key: Any, kind: str, body: Callable[[], Piece]) -> Atom:
        """Return the rule for a key, which is made at its first use."""
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = self.new(kind)
            self.add(name, body)
        return Atom(name)

    def add(self, name: str, body: Callable[[], Piece]) -> None:
        """Add a rule before those that its body makes."""
        at = len(self.rules)
        self.rules.append((name, EMPTY_ROW))
        self.rules[at] = (name, body())

    # --- expressions ----------------------------------------------------------------------------------------------

    def body(self, expr: ex.Expr) -> Piece:
        """Return an expression as the body of a rule."""
        if isinstance(expr, ex.Choice):
            return either(*(self.option(each) for each in expr.options))
        return self.option(expr)

    def option(self, expr: ex.Expr) -> Piece:
        """Return an expression as one of several alternatives."""
        return self.of_seq(expr) if isinstance(expr, ex.Seq) else self.item(expr)

    def of_seq(self, expr: ex.Seq) -> Piece:
        """Return the items of a sequence."""
        return row(*(self.item(each) for each in expr.parts if not isinstance(each, ex.Break)))

    def item(self, expr: ex.Expr) -> Piece:
        """Return an expression as a part of another one: a part that several others share is a rule."""
        if isinstance(expr, ex.Seq | ex.Choice | ex.Star) and expr != ex.EMPTY and self.uses.get(expr, 0) > 1:
            written = self.of_star if isinstance(expr, ex.Star) else self.body
            return self.rule(("shared", expr), "part", lambda: written(expr))  # type: ignore[arg-type]
        if isinstance(expr, ex.Lit | ex.Break):
            return self.literal(expr.text) if isinstance(expr, ex.Lit) else EMPTY_ROW
        inline: Piece = getattr(self, f"of_{type(expr).__name__.lower()}")(expr)  # each kind has a method
        return inline

    def of_choice(self, expr: ex.Choice) -> Piece:
        """Return a choice of options."""
        rest = [each for each in expr.options if each != ex.EMPTY]
        found = either(*(self.option(each) for each in rest))
        return Counted(found, "?") if len(rest) < len(expr.options) else found

    def of_star(self, expr: ex.Star) -> Piece:
        """Return a body repeated any number of times."""
        return Counted(self.body(expr.body), "*")

    # --- leaves ---------------------------------------------------------------------------------------------------

    def literal(self, text: str) -> Atom:
        """Return a fixed text."""
        raise NotImplementedError

    def of_token(self, expr: ex.Token) -> Piece:
        """Return one special token, by its id or its name."""
        return Atom(expr.text if expr.id is None else f"<[{expr.id}]>")

    def of_class(self, expr: ex.Class) -> Atom:
        """Return one character of a set."""
        raise NotImplementedError

    def char_class(self, characters: str, negated: bool = False) -> Atom:
        """Return one of some characters, or of all others."""
        found = ex.class_of(characters)
        return self.of_class(ex.Class(ex.complement(found.ranges)) if negated else found)

    def run(self, characters: str, most: int) -> Piece:
        """Return up to `most` of some characters."""
        return Counted(self.char_class(characters), f"{{0,{most}}}")

    def of_chars(self, expr: ex.Chars) -> Piece:
        """Return a run of characters that differs from some texts."""
        if not expr.but:
            if expr.most == 1:
                return self.char_class(expr.first)
            if expr.first == expr.rest:
                return Counted(self.char_class(expr.first), f"{{1,{expr.most}}}")
            return row(self.char_class(expr.first), self.run(expr.rest, expr.most - 1))
        return self.rule(expr, "key", lambda: self._other_than(expr, ""))

    def _other_than(self, expr: ex.Chars, read: str) -> Piece:
        """Return what may follow `read`, with which some of the excluded texts begin."""
        allowed = expr.rest if read else expr.first
        going = sorted({text[len(read)] for text in expr.but if text.startswith(read) and len(text) > len(read)})
        free = "".join(char for char in allowed if char not in going)
        options = [row(self.char_class(free), self.run(expr.rest, expr.most - 1))] if free else []
        for char in going:
            if char in allowed:
                deeper = self.rule((expr, read + char), "key", lambda char=char: self._other_than(expr, read + char))  # type: ignore[misc]
                options.append(row(self.literal(char), deeper))
        if read and read not in expr.but:
            options.append(EMPTY_ROW)
        return either(*options)

    def text(self, expr: ex.Text) -> Piece:
        """Return free text."""
        raise NotImplementedError

    def of_text(self, expr: ex.Text) -> Piece:
        """Return free text, or text of some form."""
        return self.text(expr) if expr.within is None else self.text_within(expr)

    def automaton(self, expr: ex.Text) -> Piece:
        """Return free text, by its automaton."""
        key = (expr.forbidden, expr.closer)
        if key not in self.names:
            states = text_automaton(expr.forbidden, expr.closer)
            base = self.names[key] = self.new("text")
            names = [Atom(base), *(Atom(self.spell(f"{base}-{at}")) for at in range(1, len(states)))]
            for name, state in zip(names, states, strict=True):
                options: list[Piece] = [] if expr.closer else [EMPTY_ROW]
                for move in state:
                    step = self.char_class(move.characters, move.negated)
                    options.append(step if move.dest is None else row(step, names[move.dest]))
                self.rules.append((name.text, either(*options)))
        return Atom(self.names[key])

    def of_members(self, expr: ex.Members) -> Piece:
        """Return arguments: in any order if few must be counted, else in the order of the schema."""
        names = frozenset(member.name for member in expr.members if member.name)
        required = frozenset(member.name for member in expr.members if member.required)
        if expr.any_order and 1 < len(names) <= self.most_counted:
            found = ex.members_in_any_order(expr, names)
        elif expr.any_order and len(names) > 1 and len(required) <= self.most_required:
            self.note(f"with more than {self.most_counted} arguments, one that is not required may be repeated")
            found = ex.members_in_any_order(expr, required)
        else:
            if expr.any_order and len(names) > 1:
                self.note(f"more than {self.most_required} required arguments are written in the order of the schema")
            found = ex.members_in_turn(expr, self.note)
        return self.item(self.counted(found))

    def of_rules(self, expr: ex.Rules) -> Piece:
        """Return an inner language, whose rules have names of their own."""
        if expr not in self.names:
            outer = self.prefix
            name = self.names[expr] = self.new("value")
            self.prefix = f"{name}-"
            for inner, body in expr.rules:
                rule = name if inner == expr.start else self.spell(self.prefix + inner)
                self.rules.append((rule, self.body(self.counted(body))))
            self.prefix = outer
        return Atom(self.names[expr])

    def of_ref(self, expr: ex.Ref) -> Piece:
        """Return a rule of the inner language, or one that all languages share."""
        if expr.name in BASE:
            return self.base(expr.name)
        return Atom(self.spell(self.prefix + expr.name))

    def base(self, name: str) -> Atom:
        """Return a rule that all languages share."""
        key = ("base", name)
        if key not in self.names:
            self.names[key] = self.spell(name.replace("_", "-"))
            self.add(self.names[key], lambda: self.body(BASE[name]))
        return Atom(self.names[key])

    # --- values ---------------------------------------------------------------------------------------------------

    def of_json(self, expr: ex.Json) -> Piece:
        """Return the rules of a value."""
        key = ("json", expr)
        if key not in self.names:
            schema = json.loads(expr.schema)
            values = Values(schema, self.note, JSON)
            start = values.whole_object(schema) if expr.any_order else values.value(schema)
            shared = isinstance(start, ex.Ref) and start.name in BASE
            found = self.item(start) if shared else self.of_rules(values.rules(start))
            assert isinstance(found, Atom)
            self.names[key] = found.text
        return Atom(self.names[key])

    def of_blanks(self, expr: ex.Blanks | None = None) -> Piece:
        """Return the blanks that JSON allows."""
        return Counted(self.char_class(" \n\t\r"), "*")

    def of_quoted(self, expr: ex.Quoted) -> Piece:
        """Return the rule of a text as a value, which may be used in many places."""
        return self.rule(expr, "quoted", lambda: self.pattern(expr.body))

    def of_othername(self, expr: ex.OtherName) -> Piece:
        """Return a name in JSON that differs from some names."""
        return self.rule(expr, "key", lambda: self.body(self.name_but(expr)))

    def name_but(self, expr: ex.OtherName) -> ex.Expr:
        """Return a name that begins with another character."""
        return JSON.quote(other_names(expr.but, self.note))

    def of_repeat(self, expr: ex.Repeat) -> Piece:
        """Return a counted repetition."""
        if expr.high is None and expr.low == 0:
            return self.item(ex.star(expr.body))
        if max(expr.low, expr.high or 0) > MOST_COUNTED:
            self.note(f"a count of more than {MOST_COUNTED} is not enforced")
            return self.item(ex.Repeat(expr.body, min(expr.low, MOST_COUNTED), None))
        high = "" if expr.high is None else str(expr.high)
        count = str(expr.low) if expr.low == expr.high else f"{expr.low},{high}"
        return Counted(self.item(expr.body), f"{{{count}}}")

    def text_within(self, expr: ex.Text) -> Piece:
        """Return free text that must fit a pattern: the pattern, without the characters with which a marker begins.

        A length alone is left out, because without those characters most texts could not be written.
        """
        assert expr.within is not None
        if is_length(expr.within) and not self.length_limits:
            self.note("a limit on the length of a raw value is not enforced; `length_limits=True` enforces it")
            return self.text(replace(expr, within=None))
        begins = {word[0] for word in expr.forbidden.words}
        begins |= {expr.closer[0]} if expr.closer else set()
        found = narrowed(expr.within, frozenset(map(ord, begins)))
        if found != expr.within:
            shown = " ".join(repr(char) for char in sorted(begins))
            self.note(f"a raw value with a pattern or a length holds none of the characters {shown}")
        return row(self.pattern(found), self.literal(expr.closer)) if expr.closer else self.pattern(found)

    def pattern(self, expr: ex.Expr) -> Piece:
        """Return a text of some form."""
        return self.body(expr)


def is_length(expr: ex.Expr) -> bool:
    """Return whether a pattern is only a limit on the length of a text."""
    return isinstance(expr, ex.Repeat) and expr.is_length and expr.body == ALL


def narrowed(expr: ex.Expr, codes: frozenset[int]) -> ex.Expr:
    """Return a pattern without those of its texts that contain certain characters."""
    match expr:
        case ex.Lit():
            return ex.NOTHING if any(ord(char) in codes for char in expr.text) else expr
        case ex.Class():
            found = ex.without_characters(expr.ranges, codes)
            return ex.Class(found) if found else ex.NOTHING
        case ex.Repeat() if narrowed(expr.body, codes) == ex.NOTHING:
            return ex.NOTHING if expr.low else ex.EMPTY
    return ex.rebuilt(expr, lambda each: narrowed(each, codes))


@lru_cache(maxsize=512)
def written_class(found: tuple[tuple[int, int], ...], escaped: Callable[[str], str], everything: str) -> str:
    """Return a character class in brackets; `everything` is written for the class of all characters."""
    if not ex.is_wide(found):
        return f"[{written_ranges(found, escaped)}]"
    others = ex.complement(found)
    return f"[^{written_ranges(others, escaped)}]" if others else everything


def written_ranges(found: tuple[tuple[int, int], ...], escaped: Callable[[str], str]) -> str:
    """Return the inside of a character class, from ranges of code points."""
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
