"""EBNF for xgrammar, and GBNF for llama.cpp: the same rules in almost the same notation.

Strategy: the shapes that xgrammar compiles fast.  Free text is its own dispatch with excluded words.  Texts end by
right recursion.  A repeated group is a rule that calls itself.  It unrolls counted repetition, so limits on the
length of a text are only written when they are asked for.  llama.cpp reads the same rules character by character,
without any compilation: there, free text is its automaton, and every count is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import ClassVar

from toolgram.export.dispatches import Dispatch, dispatch_of, fixed_words
from toolgram.export.expressions import (
    EMPTY,
    NOTHING,
    Break,
    Chars,
    Choice,
    Class,
    Expr,
    Forbidden,
    Lit,
    Members,
    OtherName,
    Quoted,
    Ref,
    Repeat,
    Seq,
    Star,
    Text,
    Token,
    choice,
    complement,
    divided,
    first_words,
    is_wide,
    seq,
    star,
    without_characters,
)
from toolgram.export.following import characters_behind_texts
from toolgram.export.notations import BLANK
from toolgram.export.pieces import changed
from toolgram.export.regexes import regular
from toolgram.export.texts import Move, reaches_into, takes
from toolgram.export.writing import Note, RuleWriter, ranges, written_ranges
from toolgram.limits import MOST_WRITTEN_BLANKS

_MOST_COUNTED = 2000  # in llama.cpp
_MOST_UNROLLED = 4  # characters of a text with a minimum length
_MOST_CHARACTERS = 8  # of an id, each of which takes 3 ms to compile
_NEVER = "\x01"  # a character that no model writes: nothing follows
_FEW_MEMBERS = 2
_WIDE = 2000  # characters of a set, of which the engine has many tokens


@dataclass(frozen=True, slots=True)
class _Calls:
    """What may follow a text, as rules have it: behind a head, behind other words, and in the states behind a head."""

    heads: Mapping[str, str] = field(default_factory=dict)
    triggers: Mapping[str, str] = field(default_factory=dict)
    inside: Sequence[str] = ()


class EbnfWriter(RuleWriter):
    """EBNF for xgrammar."""

    most_counted = most_required = 4  # each rule takes time to compile

    def __init__(self, note: Note, length_limits: bool = False) -> None:
        super().__init__(note)
        self.length_limits = length_limits
        self.closers: dict[Forbidden, dict[str, None]] = {}
        self.behind_texts: dict[Text, frozenset[str] | None] = {}

    def write(self, root: Expr) -> str:
        """The whole grammar. A text that ends in one of many ways is written once, before them: each place of it costs
        the engine time."""
        root = changed(root, self._apart)
        self.behind_texts = characters_behind_texts(root) if self.dispatches else {}
        return super().write(root)

    def _apart(self, expr: Expr) -> Expr:
        """A text, and its closer behind it where the text has no part of it in any case."""
        if not isinstance(expr, Text) or expr.within is not None:
            return expr
        self.closers.setdefault(expr.forbidden, {}).setdefault(expr.closer)
        found = dispatched(expr, self.note) if self.dispatches else None
        if found is None or found.excluded(expr.closer) != found.words:
            return expr
        return seq(Text(expr.forbidden), Lit(expr.closer))

    dispatches = True  # whether free text is the engine's dispatch

    def literal(self, text: str) -> str:
        """A string in double quotes."""
        if text.isprintable():
            return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return '"' + "".join(_escaped(char, '"\\') for char in text) + '"'

    def char_class(self, characters: str, negated: bool = False) -> str:
        """A class in brackets."""
        if not characters:
            return "[^\\x00]" if negated else '""'
        return f"[{'^' if negated else ''}{_class(characters)}]"

    def class_item(self, expr: Class) -> str:
        """A class in brackets."""
        return _ranged(expr.ranges)

    def token(self, expr: Token) -> str:
        """A token by its id. Rules have no other name for it: without one it is text, which is read as well."""
        if expr.id is None:
            self.note(
                f"inside of lists and objects {expr.text} is written as text, because rules know tokens by their ids"
            )
            return self.literal(expr.text)
        return f"Token({expr.id})"

    def characters(self, expr: Chars) -> str:
        """A run of characters, which is only counted where that is cheap, or asked for."""
        if expr.but or expr.most <= _MOST_CHARACTERS or self.length_limits:
            return super().characters(expr)
        self.note(
            "xgrammar does not count the characters of an id, because that is slow; `length_limits=True` counts them"
        )
        return f"{self.char_class(expr.first)} {self.char_class(expr.rest)}*"

    def spell(self, name: str) -> str:
        """Names have underscores, as in xgrammar."""
        return name.replace("-", "_")

    def base(self, name: str) -> str:
        """A rule that all languages share; what follows a string inside of an object or a list is told beforehand."""
        known = ("base", name) in self.names
        found = super().base(name)
        if self._behind(name) and not known:
            at = next(at for at, (rule, _) in enumerate(self.rules) if rule == found)
            self.rules[at] = (found, f"({self.rules[at][1]}){self._behind(name)}")
        return found

    def blanks(self) -> str:
        """Blanks where JSON allows them, uncounted: every state of a count is compiled, and looked at for each mask."""
        return super().blanks() if not self.length_limits else self.run(" \n\t\r", MOST_WRITTEN_BLANKS)

    lookaheads: ClassVar = {
        "json_rest": "([ \\n\\r\\t]* [,}\\]:])",
        "python_double": "[,)}\\]:< \\n\\r\\t]",  # where no blank comes, the set alone is faster
        "python_single": "[,)}\\]:< \\n\\r\\t]",
        "blank": "[\"'0-9\\-\\[{TFNtfn]",
    }

    def item(self, expr: Expr) -> str:
        """An expression as one item of a sequence; what follows a blank before a value is told beforehand."""
        if expr is not BLANK or "blank" not in self.lookaheads:
            return super().item(expr)
        return self.rule("blank", "blank", lambda: f'(" " | ""){self._behind("blank")}')

    def starred(self, expr: Star) -> str:
        """A rule that calls itself, unless it is one character."""
        if isinstance(expr.body, Class):
            return f"{self.item(expr.body)}*"
        name = self.names.get(("star", expr))
        if name is None:
            name = self.names["star", expr] = self.new("more")
            at = len(self.rules)
            self.rules.append((name, ""))
            options = expr.body.options if isinstance(expr.body, Choice) else (expr.body,)
            self.rules[at] = (name, " | ".join([self.empty, *(f"{self._part(each)} {name}" for each in options)]))
        return name

    def repeated(self, expr: Repeat) -> str:
        """Limits on the length of a text are left out, unless they are asked for."""
        found = self._uncounted(expr)
        if found != expr:
            return f"({self._part(found)})"
        if self._is_slow(expr) and self.length_limits:
            return self._limited(expr)
        if expr.high is None and (expr.low <= _MOST_UNROLLED or not isinstance(expr.body, Class)):
            return f"({self._part(seq(*[expr.body] * expr.low, star(expr.body)))})"
        return super().repeated(expr)

    def _is_slow(self, expr: Repeat) -> bool:
        """Whether the engine unrolls a repetition at a high price."""
        if expr.high is None and expr.low <= _MOST_UNROLLED:
            return False
        return expr.is_length or _has_wide_class(expr)

    def _uncounted(self, expr: Repeat) -> Expr:
        """A repetition without a limit that is not enforced."""
        if self.length_limits or not self._is_slow(expr):
            return expr
        self.note(
            "xgrammar does not enforce limits on the length of a text, because they make it slow; `length_limits=True` "
            "enforces them"
        )
        return Repeat(expr.body, min(expr.low, _MOST_UNROLLED), None)

    def quoted(self, expr: Quoted) -> str:
        """A text as a value: a rule, which may stand in many places. Where it may have either quote, what follows it is
        told beforehand, as for all strings of Python; for one quote, the engine finds it out more exactly."""
        behind = self._behind("python_double") if isinstance(expr.body, Choice) else ""
        return self.rule(
            expr, "quoted", lambda: f"({self.pattern(expr.body)}){behind}" if behind else self.pattern(expr.body)
        )

    def _behind(self, name: str) -> str:
        """What follows a string inside of an object, a list or a call."""
        return f" (={self.lookaheads[name]})" if name in self.lookaheads else ""

    def pattern(self, expr: Expr) -> str:
        """A text of some form as one regular expression, where it is one."""
        written = regular(self._without_limits(expr))
        if written is None or self.length_limits or "(?s" in written:
            return self.body(expr)
        return self.regex(written)

    def regex(self, written: str) -> str:
        """A regular expression."""
        return f"Regex({self.literal(written)})"

    def _without_limits(self, expr: Expr) -> Expr:
        """The expression without the counts that are not enforced."""
        match expr:
            case Seq():
                return seq(*map(self._without_limits, expr.parts))
            case Choice():
                return choice(*map(self._without_limits, expr.options))
            case Star():
                return star(self._without_limits(expr.body))
            case Repeat():
                found = self._uncounted(expr)
                if found != expr:
                    return self._without_limits(found)
                return Repeat(self._without_limits(expr.body), expr.low, expr.high, expr.is_length)
        return expr

    def _limited(self, expr: Repeat) -> str:
        """A rule with a limit on its characters; a short escape counts as two of them."""
        if expr.high is None:
            return super().repeated(expr)
        name = self.names.get(("limited", expr))
        if name is None:
            name = self.names["limited", expr] = self.new("limited")
            self.rules.append(
                (f"{name}[max_chars={expr.high}]", self._part(seq(*[expr.body] * expr.low, star(expr.body))))
            )
            self.note("in a text of limited length, an escape counts as two characters or more")
        return name

    def ordered(self, expr: Members) -> Expr:
        """Arguments as an expression without `Members`. Each is a rule, because it stands in many orders."""
        if self.prefix or len(expr.members) < _FEW_MEMBERS:
            return super().ordered(expr)
        found = (
            replace(each, first=self._apart_rule(each.first), later=self._apart_rule(each.later))
            for each in expr.members
        )
        return super().ordered(Members(tuple(found), expr.any_order))

    def _apart_rule(self, expr: Expr) -> Expr:
        if not isinstance(expr, Seq) or expr == EMPTY:
            return expr
        self._count(expr)
        return Ref(self.rule(("argument", expr), "argument", lambda: self.body(expr)))

    def text(self, expr: Text) -> str:
        """Free text as the engine's dispatch, where words and a few rules say what must not stand in it. What keeps out
        words of prose besides stands for a text that does not, so that there is one of them."""
        found = dispatched(expr, self.note)
        if found is None:
            return self.text_and_closer(expr)
        others = (dispatched(Text(each), self.note) for each in self.closers)
        found = next((each for each in others if each is not None and each.covers(found)), found)
        words = found.excluded(expr.closer)
        ahead = self._ahead(expr, found)
        key = ("text", found, frozenset(words), ahead)
        if key not in self.names:
            later = self._dispatch(found, words, self._may_end(expr, found), _Calls(), ahead)
            self.names[key] = self._first_part(expr, found, later)
        return f"({self.names[key]} {self.literal(expr.closer)})" if expr.closer else self.names[key]

    def _first_part(self, expr: Text, found: Dispatch, later: str) -> str:
        """The rule with which a text begins: the text itself, or a first part in which more must not stand."""
        first = found.first
        if first is None:
            return later
        closers = "".join(self.closers.get(expr.forbidden, ()))
        exits = {char: later for char in found.exits if char not in closers}
        ends, ahead = self._may_end(expr, first), self._ahead(expr, first)
        begin = self._dispatch(first, first.excluded(expr.closer), ends, _Calls(triggers=exits), ahead)
        if not found.lead:
            return begin
        name = f"{begin}_lead"
        self.rules.append((name, f"{begin} | {self.char_class(found.lead)} {name}"))
        return name

    def _ahead(self, expr: Text, found: Dispatch) -> str:
        """What follows a text with rules, as the engine is told it: it then tries fewer tokens where a text may end."""
        behind = self.behind_texts.get(expr)
        if behind is None:
            return ""
        return f" (={self.char_class(''.join(sorted(behind)) or _NEVER)})"

    def _may_end(self, expr: Text, found: Dispatch) -> bool:
        """Whether text may end behind a head; all texts of a place are alike, so that they are compiled once."""
        if found.may_end_behind_a_head(self.closers.get(expr.forbidden, ())):
            return True
        self.note(f"text does not end behind {' or '.join(repr(head) for head, _ in found.heads)}")
        return False

    def _part(self, expr: Expr) -> str:
        """A sequence; a text and the calls that may follow it are one part."""
        if isinstance(expr, Seq) and self.dispatches:
            parts = [each for each in expr.parts if not isinstance(each, Break)]
            for at in range(len(parts)):
                joined, end = self._text_and_calls(parts, at)
                if joined:
                    return " ".join([*map(self.item, parts[:at]), joined, *map(self.item, parts[end:])])
        return super()._part(expr)

    def _text_and_calls(self, parts: Sequence[Expr], at: int) -> tuple[str, int]:
        """A text, and calls that may follow it, each with such a text behind it; and the place behind them. "" if this
        is none.

        Where calls begin with a head, rules behind the head say how it goes on: otherwise all tokens that begin so
        would be tried for every mask.
        """
        text, following = parts[at], [*parts[at + 1 : at + 3], EMPTY, EMPTY]
        if not isinstance(text, Text) or text.within is not None or text.closer:
            return "", at
        name, end, uses = self.spell("turn"), at + 2, 1
        calls = following[0]
        if isinstance(calls, Star) and isinstance(calls.body, Seq) and calls.body.parts[-1] == text:
            calls, uses = seq(*calls.body.parts[:-1], Ref(name)), 2
            if _is_optional(following[1]):
                calls, end = choice(calls, following[1]), at + 3
        elif not _is_optional(calls):
            return "", at
        found = dispatched(text, self.note) if self.uses.get(id(text)) == uses and "turn" not in self.counts else None
        if found is None or found.begins or len(found.heads) != 1:
            return "", at
        options = choice(*(each for each in _options(calls) if each != EMPTY))
        head = found.heads[0][0]
        behind, others = divided(options, head) or (NOTHING, NOTHING)
        words = first_words(options)
        if behind == NOTHING or not words or not self._follow(text, words):
            return "", at
        triggers: dict[str, list[Expr]] = {}
        inside: list[Expr] = []
        for each in _options(others):
            begins = {found.trigger_of(word) for word in first_words(each) or [""]}
            trigger = begins.pop()
            rest, no_rest = divided(each, trigger) or (NOTHING, EMPTY)
            if begins or not trigger or no_rest != NOTHING:
                return "", at
            triggers.setdefault(trigger, []).append(rest)
            if found.may_end_behind_a_head(first_words(each)):
                inside.append(each)
        for trigger in triggers:
            if any(each != trigger and each.startswith(trigger) for each in triggers):
                return "", at
            self.note(f"text holds no {trigger!r} but where a call begins")
        self.counts["turn"] = 1
        calls_behind = _Calls(
            {head: self.body(behind)},
            {trigger: " | ".join(self.body(each) for each in rests) for trigger, rests in triggers.items()},
            [self.body(each) for each in inside],
        )
        self.rules.append((name, self._dispatch(found, found.words, True, calls_behind, self._ahead(text, found))))
        return name, end

    def _follow(self, text: Text, words: Sequence[str]) -> bool:
        """Whether a text ends at the end of the output, or before one of some words, and nowhere else."""
        behind = self.behind_texts.get(text)
        closers = [closer for closer in self.closers[text.forbidden] if closer]
        if behind is None or not behind <= {word[0] for word in words}:
            return False
        return all(any(word.startswith(closer) for word in words) for closer in closers)

    def _dispatch(self, found: Dispatch, words: tuple[str, ...], ends: bool, calls: _Calls, ahead: str = "") -> str:
        """The rules of a dispatch, with calls behind its heads; the name of the rule that text begins with."""
        base = self.new("text")
        names = [f"{base}_{at}" for at in range(1, len(found.states) + 1)]
        own = {head: names[at] for head, at in found.heads}
        behind_heads = {
            head: [*filter(None, [calls.heads.get(head)]), *self._passed(found, head, base)] for head in own
        }
        entries = {head: f"{name}_entry" if behind_heads[head] else name for head, name in own.items()}
        parts = [f"({self.literal(head)}, {name})" for head, name in entries.items()]
        triggers = {trigger: f"{base}_call_{at}" for at, trigger in enumerate(calls.triggers, 1)}
        parts += [f"({self.literal(trigger)}, {name})" for trigger, name in triggers.items()]
        parts.append("loop_after_dispatch=false")
        words = tuple(word for word in words if not word.startswith(tuple(triggers)))  # a trigger is read before
        if words:
            parts.append(f"excludes=({', '.join(map(self.literal, words))}{',' if len(words) == 1 else ''})")
        rules = [(base, f"TagDispatch({', '.join(parts)})" if words or found.heads else "[^\\x00]*")]
        rules += [(entries[head], " | ".join([own[head], *each])) for head, each in behind_heads.items() if each]
        rules += [(triggers[trigger], body) for trigger, body in calls.triggers.items()]
        for at, (name, moves) in enumerate(zip(names, found.states, strict=True)):
            stay, options = "", [self.empty, *calls.inside] if ends else []
            for move in moves:
                dest = base if move.dest is None else names[move.dest]
                again = {
                    head[-1]: entries[head]
                    for head, state in found.heads
                    if state == move.dest and (len(head) == 1 or (state == at and set(head) == {head[-1]}))
                }
                taken, others = self._moved(move, {char: name for char, name in again.items() if name != dest})
                if taken and dest == name:
                    stay = f"{taken}* "
                elif taken:
                    options.append(f"{taken} {dest}")
                options += others
            for head, before, _ in found.passed:
                if (head, at) in found.heads:
                    options += (f"{self.char_class(before)} {each}" for each in self._passed(found, head, base))
            # a rule that calls itself and another one that calls it is not cached, so it stays where it is by a star
            rules.append((name, f"{stay}({' | '.join(options)})" if stay else " | ".join(options)))
        self.rules += [(name, f"({body}){ahead}" if ahead else body) for name, body in rules]
        return names[0] if found.begins else base

    def _moved(self, move: Move, entries: Mapping[str, str]) -> tuple[str, list[str]]:
        """The set of characters of a move, "" for none, and options for those with which a head ends."""
        again = [char for char in entries if takes(move, char)]
        plain = "".join(char for char in move.characters if char not in again)
        if move.negated:
            plain += "".join(again)
        taken = self.char_class(plain, move.negated) if move.negated or plain or not again else ""
        return taken, [f"{self.literal(char)} {entries[char]}" for char in again]

    def _passed(self, found: Dispatch, head: str, base: str) -> list[str]:
        """What leads from behind a head back to the text."""
        return [f"{self.literal(char)} {base}" for each, _, char in found.passed if each == head]

    def text_and_closer(self, expr: Text) -> str:
        """Free text by its automaton, which texts with different closers share, and the closer behind it.

        A text shares nothing where what it must not contain may go on in its closer.
        """
        if expr.closer and reaches_into(expr.forbidden, expr.closer):
            return RuleWriter.text(self, expr)
        shared = RuleWriter.text(self, Text(expr.forbidden))
        return f"({shared} {self.literal(expr.closer)})" if expr.closer else shared


class GbnfWriter(EbnfWriter):
    """GBNF for llama.cpp."""

    most_counted, most_required = RuleWriter.most_counted, RuleWriter.most_required

    dispatches = False

    def blanks(self) -> str:
        """Blanks where JSON allows them: a rule, which is written out only once."""
        return self.rule("blanks", "blanks", lambda: self.run(" \n\t\r", MOST_WRITTEN_BLANKS))

    def characters(self, expr: Chars) -> str:
        """A counted run."""
        return RuleWriter.characters(self, expr)

    def pattern(self, expr: Expr) -> str:
        """A text of some form."""
        return self.body(expr)

    lookaheads: ClassVar = {}

    def token(self, expr: Token) -> str:
        """A token by its id or its name."""
        return expr.text if expr.id is None else f"<[{expr.id}]>"

    def spell(self, name: str) -> str:
        """Names have hyphens only."""
        return name.replace("_", "-")

    def repeated(self, expr: Repeat) -> str:
        """Counted, as far as llama.cpp counts."""
        if max(expr.low, expr.high or 0) <= _MOST_COUNTED:
            return RuleWriter.repeated(self, expr)
        self.note(f"llama.cpp counts to {_MOST_COUNTED}, so a larger limit is not enforced")
        return RuleWriter.repeated(self, Repeat(expr.body, min(expr.low, _MOST_COUNTED), None))

    def starred(self, expr: Star) -> str:
        """A group with a star."""
        return RuleWriter.starred(self, expr)

    def text(self, expr: Text) -> str:
        """Free text, by its automaton; texts that end in many ways share it."""
        if fixed_words(expr.forbidden) is None:
            return self.text_and_closer(expr)
        return RuleWriter.text(self, expr)

    def _first_of_other_name(self, expr: OtherName) -> Expr:
        """Exactly the other names: after each beginning of a declared one, any other character."""
        return seq(Lit('"'), _other_than(tuple(dict.fromkeys(map(_inside_quotes, expr.but))), ""))


def _options(expr: Expr) -> tuple[Expr, ...]:
    return expr.options if isinstance(expr, Choice) else (expr,)


def _is_optional(expr: Expr) -> bool:
    return isinstance(expr, Choice) and EMPTY in expr.options


def dispatched(expr: Text, note: Note) -> Dispatch | None:
    """The dispatch of a text; None where it cannot say what must not stand in it."""
    found = dispatch_of(expr.forbidden)
    for each in found.notes if found else ():
        note(each)
    return found


def _inside_quotes(name: str) -> str:
    import json

    return json.dumps(name, ensure_ascii=False)[1:-1]


def _other_than(names: tuple[str, ...], read: str) -> Expr:
    going = sorted({name[len(read)] for name in names if name.startswith(read) and len(name) > len(read)})
    free = without_characters(complement([(0, 31), (34, 34), (92, 92)]), map(ord, going))
    options: list[Expr] = [seq(Class(free), Ref("json_rest"))]
    if "\\" not in going:
        options.append(seq(Ref("json_escape"), Ref("json_rest")))
    if read not in names:
        options.append(Lit('"'))
    options += [seq(Lit(char), _other_than(names, read + char)) for char in going]
    return choice(*options)


def _has_wide_class(expr: Repeat) -> bool:
    """Whether a repetition is of a set with most characters."""
    pending: list[Expr] = [expr.body]
    while pending:
        here = pending.pop()
        if isinstance(here, Class) and sum(high - low + 1 for low, high in here.ranges) > _WIDE:
            return (expr.high or expr.low) > _MOST_UNROLLED
        if isinstance(here, Choice):
            pending += here.options
        elif isinstance(here, Seq):
            pending += here.parts
    return False


@lru_cache(maxsize=512)
def _class(characters: str) -> str:
    return ranges(characters, _in_class)


@lru_cache(maxsize=512)
def _ranged(found: tuple[tuple[int, int], ...]) -> str:
    if not is_wide(found):
        return f"[{written_ranges(found, _in_class)}]"
    others = complement(found)
    return f"[^{written_ranges(others, _in_class)}]" if others else "[^\\x00]"


def _in_class(char: str) -> str:
    # `\^` and `\-` are xgrammar's alone, and its `\x` takes as many digits as follow
    return f"\\u{ord(char):04x}" if char in "^-" else _escaped(char, "\\][")


def _escaped(char: str, special: str) -> str:
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    if short:
        return short
    if char in special:
        return "\\" + char
    code = ord(char)
    return char if char.isprintable() else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
