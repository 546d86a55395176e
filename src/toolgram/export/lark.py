"""Two writers of Lark: one for llguidance's dialect, one for the part of it that xgrammar reads.

Strategy: llguidance has a lexer, so free text must be one terminal that defines its own end: any text without a marker
before that end.  Arguments in any order are rules, one for each set of arguments that may already be written.  xgrammar
has no lexer and no `&`: free text is written as its automaton, and few arguments as all their orders.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from types import UnionType
from typing import Any, ClassVar

from toolgram.export.arguments import in_braces, json_members
from toolgram.export.ebnf import EbnfWriter
from toolgram.export.engines import fitted
from toolgram.export.expressions import (
    EMPTY,
    NOTHING,
    Blanks,
    Break,
    Chars,
    Choice,
    Class,
    Expr,
    Json,
    Lit,
    Members,
    OtherName,
    Ref,
    Repeat,
    Seq,
    Star,
    Step,
    Text,
    Token,
    children,
    choice,
    complement,
    joined_ranges,
    members_in_turn,
    seq,
    star,
)
from toolgram.export.pieces import changed, in_pieces
from toolgram.export.regexes import JSON_STRING, regex, regex_class, regex_count, regex_ranges, regular
from toolgram.export.texts import literal_pattern
from toolgram.export.writing import Note, RuleWriter, is_length
from toolgram.limits import MOST_WRITTEN_BLANKS

_MOST_BITS = 60
_LONGEST_RAW = 16  # a limit on the length of a raw value: with a larger one llguidance may not find its end


_LEAST_ALIKE, _LEAST_SHARED = 4, 4  # texts that begin alike, and characters that they share, to be cut behind these


def lark_string(text: str) -> str:
    """A text as a Lark string; characters that cannot be printed are escaped."""
    written = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in written)


_PLAIN = Class(complement([(0, 31), (34, 34), (92, 92)]))  # in JSON; tokenizers of llguidance know what has only these


def _is_quoted(before: Expr, following: Expr) -> bool:
    """Whether fixed texts before and behind something make it a string of JSON, and not an attribute of a tag."""
    if not isinstance(before, Lit) or not isinstance(following, Lit):
        return False
    return before.text.endswith('"') and before.text[:-1].rstrip().endswith(":") and following.text.startswith('"')


def _holds(expr: Expr, kinds: type[Any] | UnionType) -> bool:
    pending, seen = [expr], {id(expr)}
    while pending:
        here = pending.pop()
        if isinstance(here, kinds):
            return True
        for each in children(here):
            if id(each) not in seen:
                seen.add(id(each))
                pending.append(each)
    return False


class LarkWriter(RuleWriter):
    """The notation of Lark, for both engines."""

    arrow = ":"
    root_name = "start"

    def spell(self, name: str) -> str:
        """Rules are lower case, with underscores."""
        return name.replace("-", "_").lower()

    def literal(self, text: str) -> str:
        """A Lark string."""
        return lark_string(text)

    def token(self, expr: Token) -> str:
        """A token by its id or its name."""
        return expr.text if expr.id is None else f"<[{expr.id}]>"

    def char_class(self, characters: str, negated: bool = False) -> str:
        """A regular expression of one class."""
        return f"/{regex_class(characters, negated)}/"

    def class_item(self, expr: Class) -> str:
        """A regular expression of one class."""
        return f"/{regex_ranges(expr.ranges)}/"

    def run(self, characters: str, most: int) -> str:
        """A bounded run, as one regular expression."""
        return f"/{regex_class(characters, False)}{{0,{most}}}/"

    def characters(self, expr: Chars) -> str:
        """A run, as one regular expression where nothing is excluded."""
        if expr.but:
            return super().characters(expr)
        rest = f"{regex_class(expr.rest, False)}{{0,{expr.most - 1}}}" if expr.most > 1 else ""
        return f"/{regex_class(expr.first, False)}{rest}/"


class XgrammarWriter(LarkWriter, EbnfWriter):
    """Lark as xgrammar reads it: every rule is matched character by character."""

    lookaheads: ClassVar = {}
    dispatches = False

    def blanks(self) -> str:
        """Blanks where JSON allows them."""
        return r"/[ \n\t\r]*/"

    def starred(self, expr: Star) -> str:
        """A set of characters as one regular expression, anything else as a rule that calls itself."""
        if isinstance(expr.body, Class):
            return f"/{regex_ranges(expr.body.ranges)}*/"
        return super().starred(expr)

    def repeated(self, expr: Repeat) -> str:
        """A set of characters as one regular expression."""
        if isinstance(expr.body, Class) and not expr.is_length and (expr.high is None or expr.high < 64):
            return f"/{regex_ranges(expr.body.ranges)}{regex_count(expr)}/"
        return super().repeated(expr)

    def regex(self, written: str) -> str:
        """A regular expression."""
        return f"/{written}/"

    def text(self, expr: Text) -> str:
        """Free text, by its automaton."""
        return self.text_and_closer(expr)


class LlguidanceWriter(LarkWriter):
    """Lark as llguidance reads it: terminals are upper case, and the longest match wins."""

    has_tokens = False

    def __init__(self, note: Note, length_limits: bool = False) -> None:
        super().__init__(note)
        self.length_limits = length_limits

    def write(self, root: Expr) -> str:
        """The whole grammar. Where one of two texts may stand, neither begins with the other: a lexer would take the
        longer one and could not go back.
        """
        root = in_pieces(root)
        self.has_tokens = _holds(root, Token)
        while cuts := cuts_of(root):
            root = cut(root, cuts)
        return super().write(root)

    def terminal(self, key: object, kind: str, body: str) -> str:
        """A terminal, made when it is first asked for."""
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = self.new(kind).upper()
            self.rules.append((name, body))
        return name

    def run(self, characters: str, most: int) -> str:
        """A bounded run, as a terminal."""
        body = f"/{regex_class(characters, False)}{{0,{most}}}/"
        return self.terminal(body, "run", body)

    def characters(self, expr: Chars) -> str:
        """A run, as a terminal."""
        rest = f"{regex_class(expr.rest, False)}{{0,{expr.most - 1}}}" if expr.most > 1 else ""
        body = f"/{regex_class(expr.first, False)}{rest}/"
        if expr.but:
            body += f" & ~/({'|'.join(map(regex, expr.but))})/"
        return self.terminal(body, "run", body)

    # --- parts that are one terminal: a lexer reads sets of characters and their repetition --------------------------

    def body(self, expr: Expr) -> str:
        """An expression as the body of a rule."""
        return self._regular(expr) or super().body(expr)

    def item(self, expr: Expr) -> str:
        """An expression as one item of a sequence."""
        return self._regular(expr) or super().item(expr)

    def _part(self, expr: Expr) -> str:
        if isinstance(expr, Seq) and not self.length_limits:
            expr = Seq(tuple(map(self._id, (EMPTY, *expr.parts), expr.parts, (*expr.parts[1:], EMPTY))))
        return self._regular(expr) or super()._part(expr)

    def _id(self, before: Expr, expr: Expr, following: Expr) -> Expr:
        """An id that a token ends, or one in quotes, without a count: each state of a lexer costs 0.3 ms."""
        if isinstance(expr, Chars) and expr.most > 1 and not expr.but and _is_quoted(before, following):
            self.note(
                "llguidance takes any text without escapes for an id in quotes, because that is fast; "
                "`length_limits=True` takes ids alone"
            )
            return Repeat(_PLAIN, 1, None)
        if not isinstance(following, Token):
            return expr
        if isinstance(expr, Chars) and expr.most > 1 and not expr.but:
            first, rest = (
                Class(joined_ranges((ord(char), ord(char)) for char in each)) for each in (expr.first, expr.rest)
            )
        elif isinstance(expr, Repeat) and isinstance(expr.body, Class) and expr.low == expr.high:
            first = rest = expr.body
        else:
            return expr
        self.note(
            "llguidance does not count the characters of an id that a token ends, because that is slow; "
            "`length_limits=True` counts them"
        )
        return Repeat(first, 1, None) if first == rest else seq(first, star(rest))

    def _regular(self, expr: Expr) -> str:
        """The terminal of an expression with sets of characters that is regular as a whole; "" for any other."""
        if isinstance(expr, Lit | Json | Text | Members) or not _holds(expr, Class | Repeat):
            return ""
        if isinstance(expr, Seq) and any(isinstance(part, Break) for part in expr.parts):
            return ""  # the first piece is a terminal elsewhere, and a lexer that goes on cannot come back to it
        if _ends_in_words(expr):
            return ""  # what follows may begin as they do, and a lexer that has begun a word cannot come back
        found = regular(expr)
        return self.terminal(found, "value", f"/{found}/") if found is not None else ""

    def reference(self, expr: Ref) -> str:
        """A rule of the inner language, or a terminal. A string beside JSON is the one that JSON has."""
        if expr.name == "mixed_double":
            return self.rule(expr.name, "json", lambda: '%json {"type":"string"}')
        found = regular(expr)
        return super().reference(expr) if found is None else self.terminal(found, "value", f"/{found}/")

    def blanks(self) -> str:
        """Blanks where JSON allows them."""
        return self.terminal("blanks", "run", rf"/[ \t\r\n]{{1,{MOST_WRITTEN_BLANKS}}}/") + "?"

    def other_name(self, expr: OtherName) -> str:
        """A name in JSON that is none of some names."""
        names = "|".join(regex(json.dumps(name, ensure_ascii=False)) for name in expr.but)
        return self.terminal(expr, "key", f"/{JSON_STRING}/ & ~/{names}/")

    def json_value(self, expr: Json) -> str:
        """`%json`; or, where it can be expressed, an object with its keys in any order."""
        key = ("json", expr)
        if key not in self.names:
            schema = fitted(json.loads(expr.schema), self.note)
            members = json_members(schema, schema) if expr.any_order else None
            if members is not None:
                found = in_braces(members)
                self._count(found)
                self.names[key] = self.rule(("object", expr), "object", lambda: self.body(found))
            else:
                text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
                if expr.any_order and "properties" in text:
                    self.note("objects with keywords beside properties are written in the order of the schema")
                self.names[key] = self.rule(("schema", text), "json", lambda: f"%json {text}")
        return self.names[key]

    def text(self, expr: Text) -> str:
        """Free text as one terminal: up to the first marker, or to the end without any.

        The end of a raw value is the first place where it may be, which is said only where tokens are: behind a text
        that might go on, llguidance cannot say whether a token may come.
        """
        first_end = self.has_tokens and literal_pattern(expr.closer) in expr.forbidden.patterns
        patterns = [each for each in expr.forbidden.patterns if not first_end or each != literal_pattern(expr.closer)]
        marker = "|".join(_pattern(each) for each in patterns)
        if expr.closer:
            longer = [each for each in patterns if _ends_longer(each, expr.closer)]
            body = f"/(?s:.*){regex(expr.closer)}/" + (f" & ~/(?s:.*)({marker})(?s:.+)/" if marker else "")
            if longer:
                body += f" & ~/(?s:.*)({'|'.join(_pattern(each) for each in longer)})/"
        elif marker:
            body = f"/(?s:.*)/ & ~/(?s:.*)({marker})(?s:.*)/"
        else:
            body = "/(?s:.*)/"
        if expr.forbidden.beginnings:
            body += f" & ~/({'|'.join(map(_pattern, expr.forbidden.beginnings))})(?s:.*)/"
        within = expr.within
        if isinstance(within, Repeat) and is_length(within) and max(within.low, within.high or 0) > _LONGEST_RAW:
            self.note(f"a limit of more than {_LONGEST_RAW} on the length of a raw value is not enforced")
        elif within is not None:
            found = regular(within)
            if found is None:
                raise AssertionError("a pattern is regular")
            body += f" & /({found}){regex(expr.closer)}/"
        name = self.terminal(("text", body), "text", body)
        if first_end and ("lazy", name) not in self.names:
            self.names["lazy", name] = self.new("raw")
            self.rules.append((f"{self.names['lazy', name]}[lazy]", name))
        return self.names["lazy", name] if first_end else name

    def text_within(self, expr: Text) -> str:
        """Free text that must fit a pattern: both at once."""
        return self.text(expr)

    def members(self, expr: Members) -> str:
        """Arguments in any order: a rule for each set of arguments that may already be written."""
        named = [member for member in expr.members if member.name]
        if not expr.any_order or len(named) > _MOST_BITS:
            if expr.any_order:
                self.note(f"more than {_MOST_BITS} arguments are written in the order of the schema")
            return self.item(self.ordered_in_turn(expr))
        if expr in self.names:
            return self.names[expr]
        if all(member.later == NOTHING for member in expr.members):  # one argument at most
            needed_alone = [member.first for member in named if member.required]
            return self.item(choice(*(needed_alone or (member.first for member in expr.members))))
        first, later = self.new("first"), self.new("later")
        self.names[expr] = f"{first}::0x0"
        firsts, laters = [], []
        bit = 0
        needed = []
        for member in expr.members:
            then, where = f"{later}::_", ""
            if member.name:
                then, where = f"{later}::set_bit({bit})", f" %if bit_clear({bit})"
                if member.required:
                    needed.append(f"bit_set({bit})")
                bit += 1
            firsts += [f"{self.item(each)} {then}" for each in (member.first,) if each != NOTHING]
            laters += [f"{self.item(each)} {then}{where}" for each in (member.later,) if each != NOTHING]
        condition = ""
        for each in needed:
            condition = f"and({condition}, {each})" if condition else each
        end = f'"" %if {condition}' if condition else '""'
        self.rules.append((f"{first}::_", "\n  | ".join(firsts)))
        self.rules.append((f"{later}::_", "\n  | ".join([end, *laters])))
        return self.names[expr]

    def ordered_in_turn(self, expr: Members) -> Expr:
        """Arguments in their own order."""
        found = members_in_turn(expr)
        self._count(found)
        return found


def _ends_in_words(expr: Expr) -> bool:
    """Whether an expression may end in any number of what has more than one character."""
    match expr:
        case Star() | Repeat():
            return not isinstance(expr.body, Class) or _ends_in_words(expr.body)
        case Choice():
            return any(map(_ends_in_words, expr.options))
        case Seq():
            ends = [each for each in expr.parts if not isinstance(each, Break)]
            return bool(ends) and _ends_in_words(ends[-1])
    return False


def cuts_of(root: Expr) -> dict[str, int]:
    """Where to cut fixed texts, so that of two texts that may stand at one place neither begins with the other, and
    what many of them begin with is one piece, if only fixed texts may stand there.

    The subset construction finds what may stand at one place: the sets of places that the same symbols lead to.
    """
    places = _Places()
    end = places.new()
    places.add(root, 0, end)
    cuts: dict[str, int] = {}
    alike: list[tuple[str, int]] = []
    whole: set[str] = set()
    first = places.closed({0})
    seen, pending = {first}, [first]
    while pending:
        ways = places.ways(pending.pop())
        texts = sorted(symbol.text for symbol in ways if isinstance(symbol, Lit))
        if any(isinstance(symbol, Json) for symbol in ways):  # which may begin with a brace of its own
            cuts.update({text: max(cuts.get(text, 0), 1) for text in texts if text.startswith("{") and len(text) > 1})
        for at, text in enumerate(texts):
            for other in texts[at + 1 :]:
                if not other.startswith(text):
                    break
                cuts[other] = max(cuts.get(other, 0), len(text))
        if all(isinstance(symbol, Lit | Token) for symbol in ways):
            alike += _shared_beginnings(texts)
        else:  # of which one may go on where a piece ends
            whole.update(texts)
        for dests in ways.values():
            after = places.closed(dests)
            if after not in seen:
                seen.add(after)
                pending.append(after)
    heads = {text[:at] for text, at in alike}
    kept = {head for head in heads if any(text.startswith(head) for text in whole)}
    cuts.update({text: max(cuts.get(text, 0), at) for text, at in alike if text[:at] not in kept})
    return cuts


def _shared_beginnings(texts: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Sorted texts that begin alike, and how far: a lexer reads such a beginning once, and not once for each text."""
    for _, found in groupby(texts, lambda text: text[:_LEAST_SHARED]):
        group = list(found)
        ends = zip(group[0], group[-1], strict=False)
        shared = len([*takewhile(lambda pair: pair[0] == pair[1], ends)])
        if len(group) >= _LEAST_ALIKE and shared >= _LEAST_SHARED:
            yield from ((text, shared) for text in group if len(text) > shared)


class _Places:
    """The places of an expression, and the symbols between them; values and texts without an end are one symbol."""

    def __init__(self) -> None:
        self.edges: list[list[tuple[Expr, int]]] = [[]]
        self.free: list[list[int]] = [[]]  # without a symbol

    def new(self) -> int:
        """A place."""
        self.edges.append([])
        self.free.append([])
        return len(self.edges) - 1

    def add(self, expr: Expr, begin: int, end: int) -> None:
        """The places of an expression between two others."""
        match expr:
            case Seq():
                for part in expr.parts:
                    here, begin = begin, self.new()
                    self.add(part, here, begin)
                self.free[begin].append(end)
            case Break():
                self.free[begin].append(end)
            case Blanks():
                self.edges[begin].append((expr, end))
                self.free[begin].append(end)
            case Choice():
                for option in expr.options:
                    self.add(option, begin, end)
            case Star() | Repeat() if isinstance(expr, Star) or not isinstance(expr.body, Class):
                inner = self.new()
                self.free[begin].append(inner)
                self.add(expr.body, inner, inner)
                self.free[inner].append(end)
            case Members():
                inner = self.new()
                for member in expr.members:
                    self.add(member.first, begin, inner)
                    self.add(member.later, inner, inner)
                self.free[inner].append(end)
            case _:
                self.edges[begin].append((expr, end))

    def closed(self, places: Iterable[int]) -> frozenset[int]:
        """The places with all that follow without a symbol."""
        found = set(places)
        pending = list(found)
        while pending:
            for place in self.free[pending.pop()]:
                if place not in found:
                    found.add(place)
                    pending.append(place)
        return frozenset(found)

    def ways(self, places: Iterable[int]) -> dict[Expr, set[int]]:
        """Where each symbol leads from any of the places."""
        found: dict[Expr, set[int]] = {}
        for place in places:
            for symbol, dest in self.edges[place]:
                found.setdefault(symbol, set()).add(dest)
        return found


def cut(root: Expr, cuts: Mapping[str, int]) -> Expr:
    """The expression with some texts in two pieces; equal first pieces are shared."""

    def leaf(expr: Expr) -> Expr:
        at = cuts.get(expr.text) if isinstance(expr, Lit) else None
        return seq(Lit(expr.text[:at]), Break(), Lit(expr.text[at:])) if isinstance(expr, Lit) and at else expr

    return changed(root, leaf)


def _pattern(pattern: tuple[Step, ...]) -> str:
    return "".join(_step(step) for step in pattern)


def _step(step: Step) -> str:
    if len(step.characters) == 1 and not step.negated:
        body = regex(next(iter(step.characters)))
    else:
        body = regex_class("".join(sorted(step.characters)), step.negated)
    return body + ("*" if step.repeated else "")


def _ends_longer(pattern: tuple[Step, ...], closer: str) -> bool:
    """Whether a fixed pattern ends in the closer, and begins before it."""
    if any(step.repeated or step.negated or len(step.characters) != 1 for step in pattern):
        return False
    text = "".join(next(iter(step.characters)) for step in pattern)
    return len(text) > len(closer) and text.endswith(closer)
