"""The base of all writers of rules: names, shared parts, text automata, and expansion of forms that a target lacks.

Strategy: a writer walks the expression once, and returns typed pieces (`written`). Leaves become rules (or terminals),
named by their kind and numbered in order of appearance; equal leaves share a rule. So the grammar depends on the
request alone. A part that occurs in several places is also a rule. A target defines the notation of its rules, texts
and classes, and what it can express.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any, TypeAlias

from toolgram.export import expressions as ex
from toolgram.export.ecmascript import ALL
from toolgram.export.notations import BASE, JSON
from toolgram.export.texts import text_automaton
from toolgram.export.values import Values, other_names
from toolgram.export.written import EMPTY_ROW, Piece, counted, either, joined, optional, row
from toolgram.limits import MAX_KEPT_SCHEMA, MOST_COUNTED, MOST_KEPT_SCHEMAS, MOST_OUTLINES

_SHARED = {ex.Seq, ex.Choice, ex.Star}  # what is a rule of its own if it occurs several times
_LEAVES = {ex.Blanks, ex.Json, ex.Rules}  # what is written once


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
        self.leaves: dict[ex.Expr, Piece] = {}
        self.prefix = ""  # of the rules of an inner language

    def write(self, root: ex.Expr) -> str:
        """Return the whole grammar, beginning with its start rule."""
        rules = [(self.root_name, self.body(self.counted(root))), *self.rules]
        return "".join([f"{name} {self.arrow} {body.text}\n" for name, body in rules])

    def counted(self, root: ex.Expr) -> ex.Expr:
        """Count how often each part occurs in an expression that is to be written, and return it."""
        self.count([root])
        return root

    def count(self, pending: list[ex.Expr]) -> None:
        """Count how often each part that has parts occurs in expressions that are to be written."""
        uses = self.uses
        while pending:
            here = pending.pop()
            kind = type(here)
            parts = ex.CHILDREN.get(kind)
            if parts is not None:
                known = uses[here] = uses.get(here, 0) + 1
                if known == 1 and kind is not ex.Members and kind is not ex.Rules:
                    pending += parts(here)

    def new(self, kind: str) -> str:
        """Return the next name of a kind."""
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.spell(f"{kind}_{self.counts[kind]}")

    def spell(self, name: str) -> str:
        """Return a name in the notation of the target."""
        return name

    def rule(self, key: Any, kind: str, body: Callable[[], Piece], name: str = "") -> Piece:
        """Return the rule for a key, which is made at its first use, before the rules that its body makes."""
        if key not in self.names:
            name = self.names[key] = name or self.new(kind)
            at = len(self.rules)
            self.rules.append((name, EMPTY_ROW))
            self.rules[at] = (name, body())
        return Piece(self.names[key])

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
        return row(*map(self.item, expr.parts))

    def item(self, expr: ex.Expr) -> Piece:
        """Return an expression as a part of another one: a part that several others share is a rule."""
        kind = type(expr)
        if kind is ex.Lit:
            return self.literal(expr.text)  # type: ignore[attr-defined]
        known = self.leaves.get(expr)
        if known is not None:
            return known
        if kind in _SHARED and expr is not ex.EMPTY and self.uses.get(expr, 0) > 1:
            written = self.of_star if kind is ex.Star else self.body
            found = self.rule(("shared", expr), "part", lambda: written(expr))  # type: ignore[arg-type]
        else:
            write: Callable[[ex.Expr], Piece] = getattr(self, _method(kind))
            found = write(expr)
            if kind not in _LEAVES and expr not in self.names:
                return found
        self.leaves[expr] = found
        return found

    def of_break(self, expr: ex.Break) -> Piece:
        """Return the empty text."""
        return EMPTY_ROW

    def of_choice(self, expr: ex.Choice) -> Piece:
        """Return a choice of options."""
        return optional(*map(self.option, expr.options))

    def of_star(self, expr: ex.Star) -> Piece:
        """Return a body repeated any number of times."""
        return counted(self.body(expr.body), "*")

    # --- leaves ---------------------------------------------------------------------------------------------------

    def literal(self, text: str) -> Piece:
        """Return a fixed text."""
        raise NotImplementedError

    def of_token(self, expr: ex.Token) -> Piece:
        """Return one special token, by its id or its name."""
        return Piece(expr.text if expr.id is None else f"<[{expr.id}]>")

    def of_class(self, expr: ex.Class) -> Piece:
        """Return one character of a set."""
        raise NotImplementedError

    def char_class(self, characters: str, negated: bool = False) -> Piece:
        """Return one of some characters, or of all others."""
        found = ex.class_of(characters)
        return self.of_class(ex.Class(ex.complement(found.ranges)) if negated else found)

    def run(self, characters: str, most: int) -> Piece:
        """Return up to `most` of some characters."""
        return counted(self.char_class(characters), f"{{0,{most}}}")

    def of_chars(self, expr: ex.Chars) -> Piece:
        """Return a run of characters that differs from some texts."""
        if not expr.but:
            if expr.most == 1:
                return self.char_class(expr.first)
            if expr.first == expr.rest:
                return counted(self.char_class(expr.first), f"{{1,{expr.most}}}")
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
            names = [Piece(base), *(Piece(self.spell(f"{base}_{at}")) for at in range(1, len(states)))]
            for name, state in zip(names, states, strict=True):
                options: list[Piece] = [] if expr.closer else [EMPTY_ROW]
                for move in state:
                    step = self.char_class(move.characters, move.negated)
                    options.append(step if move.dest is None else row(step, names[move.dest]))
                self.rules.append((name.text, either(*options)))
        return Piece(self.names[key])

    def of_members(self, expr: ex.Members) -> Piece:
        """Return arguments: in any order if few must be counted, else in the order of the schema."""
        named = [each for each in expr.members if each.name]
        required = [each for each in expr.members if each.required]
        few = len(named) <= self.most_counted
        if not expr.any_order or len(named) < 2 or not (few or len(required) <= self.most_required):
            if expr.any_order and len(named) > 1:
                self.note(f"more than {self.most_required} required arguments are written in the order of the schema")
            return self.item(self.counted(ex.members_in_turn(expr, self.note)))
        if not few:
            self.note(f"with more than {self.most_counted} arguments, one that is not required may be repeated")
        once = named if few else required
        if self.uses.get(expr, 0) < 2:
            return _in_any_order(self, expr, once)
        return self.rule(expr, "part", lambda: _in_any_order(self, expr, once))

    def joinable(self, parts: Sequence[ex.Expr]) -> Piece:
        """Return a part of a sequence. Only if it begins with a fixed text, it is joined to one before it."""
        found = row(*map(self.item, parts))
        joins = found is EMPTY_ROW or type(parts[0]) is ex.Lit or found.text[0] != '"'
        return found if joins else counted(found, "")

    def of_rules(self, expr: ex.Rules) -> Piece:
        """Return an inner language, whose rules have names of their own."""
        outer, name = self.prefix, self.new("value")
        self.prefix = f"{name}_"
        for inner, body in expr.rules:
            rule = name if inner == expr.start else self.spell(self.prefix + inner)
            self.rules.append((rule, self.body(self.counted(body))))
        self.prefix = outer
        return Piece(name)

    def of_ref(self, expr: ex.Ref) -> Piece:
        """Return a rule of the inner language, or one that all languages share."""
        if expr.name not in BASE:
            return Piece(self.spell(self.prefix + expr.name))
        return self.rule(expr, "", lambda: self.body(BASE[expr.name]), self.spell(expr.name))

    # --- values ---------------------------------------------------------------------------------------------------

    def of_json(self, expr: ex.Json) -> Piece:
        """Return the rules of a value."""
        value, notes = (_json_value if len(expr.schema) <= MAX_KEPT_SCHEMA else _json_value.__wrapped__)(expr)
        for words in notes:
            self.note(words)
        return self.item(value)

    def of_blanks(self, expr: ex.Blanks | None = None) -> Piece:
        """Return the blanks that JSON allows."""
        return counted(self.char_class(" \n\t\r"), "*")

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
        return counted(self.item(expr.body), f"{{{count}}}")

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


@cache
def _method(kind: type[ex.Expr]) -> str:
    """Return the name of the method that writes expressions of a kind."""
    return f"of_{kind.__name__.lower()}"


def _in_any_order(writer: RuleWriter, expr: ex.Members, once: Sequence[ex.Member]) -> Piece:
    """Return arguments in any order, of which each of `once` is written at most once."""
    members = [*once, *(each for each in expr.members if each not in once)]
    begin, firsts = ex.without_alike({each: each.first for each in members})
    between = members[0].separator
    if between is not None and all(each.separator is between for each in members):
        separator, laters = (*ex.parts_of(between), *begin), firsts
    else:
        separator, laters = ex.without_alike({each: each.later for each in members})
    rests = [part for found in (firsts, laters) for parts in found.values() for part in parts]
    writer.count([*(*begin, *separator) * len(members), *rests])
    needed = frozenset(at for at, each in enumerate(once) if each.required)
    parts = [begin, separator, *map(firsts.get, members), *map(laters.get, members)]
    return _written_orders(writer, len(once), needed, parts)


def _written_orders(
    writer: RuleWriter, once: int, needed: frozenset[int], parts: Sequence[tuple[ex.Expr, ...] | None]
) -> Piece:
    """Return the orders of arguments, with the rules of both in the order in which they are used."""
    pieces: dict[tuple[ex.Expr, ...] | None, tuple[_Outline, str]] = {None: (None, ""), (): (False, "")}
    rules: list[int] = []
    steps = _orders(once, needed, tuple([pieces[each][0] if each in pieces else _ANY for each in parts])).steps
    for step in steps:
        if step is None:
            rules.append(len(writer.rules))
            writer.rules.append((writer.new("part"), EMPTY_ROW))
        elif parts[step] not in pieces:
            text, strength = writer.joinable(parts[step] or ())
            opens, closes = text[0] == '"', text[-1] == '"'
            pieces[parts[step]] = (opens, closes, strength), text[opens : len(text) - closes]
    found = [pieces.get(each, (_ANY, "")) for each in parts]
    orders = _orders(once, needed, tuple([outline for outline, _ in found]))
    known = [*(text for _, text in found), *(writer.rules[at][0] for at in rules)]
    for at, (body, strength) in zip(rules, orders.bodies, strict=True):
        writer.rules[at] = (writer.rules[at][0], Piece(_filled(body, known), strength))
    return Piece(_filled(orders.root, known), orders.strength)


# Whether a quote begins a piece, and ends it; how strongly it binds. False for the empty piece, None for none.
_Outline: TypeAlias = tuple[bool, bool, int] | bool | None
_ANY: _Outline = (False, False, 0)


@lru_cache(maxsize=MOST_OUTLINES)
def _orders(once: int, needed: frozenset[int], outlines: tuple[_Outline, ...]) -> _Orders:
    return _Orders(once, needed, outlines)


class _Orders:
    """The orders of some arguments, whatever these are: a choice for every set of the first `once` that was written.

    The `needed` ones must be among those; the others may occur any number of times. Arguments of other functions have
    the same orders, so they are made once, with a number between zero bytes for each text and each rule. `steps` are
    the numbers of the texts as they are used, with None for each rule.
    """

    def __init__(self, once: int, needed: frozenset[int], outlines: tuple[_Outline, ...]) -> None:
        every = len(outlines) // 2 - 1
        self.once, self.loose, self.needed, self.outlines = range(once), range(once, every), needed, outlines
        self.firsts = {at: 2 + at for at in range(every) if outlines[2 + at] is not None}  # the numbers of their texts
        self.laters = {at: 2 + every + at for at in range(every) if outlines[2 + every + at] is not None}
        self.turned = outlines[_SEPARATOR] is not False  # `(x a)* x b` is `x (a x)* b`
        self.steps: list[int | None] = []
        self.rules: dict[Any, tuple[Piece, list[Piece]]] = {}
        self.following = cache(self._following)
        root = self._whole()
        self.root, self.strength = _template(root.text), root.strength
        self.bodies = [(_template(body.text), body.strength) for _, [body] in self.rules.values()]

    def _use(self, number: int) -> Piece:
        """Return the piece with a number."""
        outline = self.outlines[number]
        if not isinstance(outline, tuple):
            return EMPTY_ROW
        if number not in self.steps:
            self.steps.append(number)
        opens, closes, strength = outline
        return Piece('"' * opens + f"\0{number}\0" + '"' * closes, strength)

    def _rule(self, key: Any, body: Callable[[], Piece]) -> Piece:
        if key not in self.rules:
            self.steps.append(None)
            self.rules[key] = Piece(f"\0{len(self.outlines) + len(self.rules)}\0"), []
            self.rules[key][1].append(body())
        return self.rules[key][0]

    def _whole(self) -> Piece:
        begin = self._use(_BEGIN)
        only = self.needed - self.laters.keys()  # the only possible first one
        first = [at for at in self.firsts if only <= {at}]
        seen = {at: frozenset({at}) & {*self.once} for at in first}
        options = [joined(self._use(self.firsts[at]), self.following(seen[at])) for at in first]
        return row(begin, either(*options))

    def _following(self, seen: frozenset[int]) -> Piece:
        ways = [at for at in self.once if at not in seen and at in self.laters]
        ends = self.needed <= seen
        begun = EMPTY_ROW if ends else self._use(_SEPARATOR)
        if not self.laters.keys().isdisjoint(self.loose):
            begun = joined(begun, self._rule(ends or not self.turned, lambda: self._repeated(ends)))
        if len(seen or self.loose) > 1 and ways and (ends or len(ways) > 1):  # it occurs in several places
            return joined(begun, self._rule(seen, lambda: either(*self._options(seen, ways, ends))))
        return joined(begun, optional(*self._options(seen, ways, ends))) if ways else begun

    def _options(self, seen: frozenset[int], ways: Iterable[int], ends: bool) -> Iterator[Piece]:
        found = (joined(self._use(self.laters[at]), self.following(seen | {at})) for at in ways)
        yield from [joined(self._use(_SEPARATOR), either(*found))] if ends and self.turned else found
        if ends:
            yield EMPTY_ROW

    def _repeated(self, ends: bool) -> Piece:
        """Return any number of those that may be repeated."""
        twice = self.needed and self.turned and len(self.loose) > 1
        found = self._rule("loose", self._one) if twice else self._one()
        separator = self._use(_SEPARATOR)
        return counted(joined(separator, found) if ends else joined(found, separator), "*")

    def _one(self) -> Piece:
        return either(*[self._use(self.laters[at]) for at in self.loose if at in self.laters])


_BEGIN, _SEPARATOR = 0, 1  # the numbers of what all arguments begin with, and of what is between two
_Template: TypeAlias = tuple[str, tuple[int, ...]]


def _template(text: str) -> _Template:
    """Return a text in which the numbers between zero bytes are to be filled in, and these numbers."""
    parts = text.split("\0")
    return "%s".join([part.replace("%", "%%") for part in parts[::2]]), tuple(map(int, parts[1::2]))


def _filled(template: _Template, known: Sequence[str]) -> str:
    text, numbers = template
    return text % tuple([known[number] for number in numbers])


@lru_cache(maxsize=MOST_KEPT_SCHEMAS)
def _json_value(expr: ex.Json) -> tuple[ex.Expr, tuple[str, ...]]:
    """Return the rules of a value, and the notes on them."""
    schema, notes = json.loads(expr.schema), dict[str, None]()
    values = Values(schema, notes.setdefault, JSON)
    start = values.whole_object(schema) if expr.any_order else values.value(schema)
    return start if isinstance(start, ex.Ref) and start.name in BASE else values.rules(start), tuple(notes)


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
