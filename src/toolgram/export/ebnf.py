"""EBNF for xgrammar, in the shapes that it compiles fast.

Strategy: free text is the engine's own dispatch with excluded words.  Texts end by right recursion.  A repeated group
is a rule that calls itself.  The engine unrolls counted repetition, so limits on the length of a text are only written
when they are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

from toolgram.export.bnf import ANY_CHARACTER, BnfWriter
from toolgram.export.dispatches import Dispatch, dispatch_of
from toolgram.export.expressions import (
    Blanks,
    Chars,
    Choice,
    Class,
    Expr,
    Forbidden,
    Quoted,
    Repeat,
    Seq,
    Star,
    Text,
    Token,
    choice,
    seq,
    star,
)
from toolgram.export.notations import BLANK
from toolgram.export.passes import characters_behind_texts, closers_of_texts, with_closers_apart
from toolgram.export.regexes import regular
from toolgram.export.texts import Move, takes
from toolgram.export.writing import Note
from toolgram.export.written import EMPTY_ROW, Atom, Counted, Piece, either, row
from toolgram.limits import MOST_COUNTED, MOST_WRITTEN_BLANKS

_MOST_UNROLLED = 4  # characters of a text with a minimum length
_MOST_CHARACTERS = 8  # of an id, each of which takes 3 ms to compile
_NEVER = "\x01"  # a character that no model writes: nothing follows
_WIDE = 2000  # characters of a set, of which the engine has many tokens
_NO_EXITS: Mapping[str, str] = MappingProxyType({})


class EbnfWriter(BnfWriter):
    """EBNF for xgrammar."""

    most_counted = most_required = 4  # each rule takes time to compile

    def __init__(self, note: Note, length_limits: bool = False) -> None:
        super().__init__(note, length_limits)
        self.closers: dict[Forbidden, tuple[str, ...]] = {}
        self.behind_texts: dict[Text, frozenset[str] | None] = {}

    def all_rules(self, root: Expr) -> list[tuple[str, Piece]]:
        """The rules of the grammar, after the passes."""
        self.closers = closers_of_texts(root)
        root = with_closers_apart(root, self._is_told_apart)
        self.behind_texts = characters_behind_texts(root)
        return super().all_rules(root)

    def _is_told_apart(self, text: Text) -> bool:
        """Whether a text has no part of its closer in any case."""
        found = dispatched(text, self.note)
        return found is not None and found.excluded(text.closer) == found.words

    def token(self, expr: Token) -> Piece:
        """A token by its id. Rules have no other name for it: without one it is text, which is read as well."""
        if expr.id is None:
            self.note(
                f"inside of lists and objects {expr.text} is written as text, because rules know tokens by their ids"
            )
            return self.literal(expr.text)
        return Atom(f"Token({expr.id})")

    def characters(self, expr: Chars) -> Piece:
        """A run of characters, which is only counted where that is cheap, or asked for."""
        if expr.but or expr.most <= _MOST_CHARACTERS or self.length_limits:
            return super().characters(expr)
        self.note(
            "xgrammar does not count the characters of an id, because that is slow; `length_limits=True` counts them"
        )
        return row(self.char_class(expr.first), Counted(self.char_class(expr.rest), "*"))

    def base_body(self, name: str) -> Piece:
        """The body of a rule that all languages share; what follows a string inside of an object or a list is told
        beforehand."""
        return row(super().base_body(name), *self._behind(name))

    def blanks(self, expr: Blanks | None = None) -> Piece:
        """Blanks where JSON allows them, uncounted: every state of a count is compiled, and looked at for each mask."""
        return super().blanks() if not self.length_limits else self.run(" \n\t\r", MOST_WRITTEN_BLANKS)

    lookaheads: ClassVar = {
        "json_rest": "([ \\n\\r\\t]* [,}\\]:])",
        "python_double": "[,)}\\]:< \\n\\r\\t]",  # where no blank comes, the set alone is faster
        "python_single": "[,)}\\]:< \\n\\r\\t]",
        "blank": "[\"'0-9\\-\\[{TFNtfn]",
    }

    def _behind(self, name: str) -> list[Piece]:
        """What follows a string inside of an object, a list or a call.

        With strings of patterns in Python calls (LFM2), p95 of a mask is 7 us instead of 11.
        """
        return [Atom(f"(={self.lookaheads[name]})")] if name in self.lookaheads else []

    def item(self, expr: Expr) -> Piece:
        """An expression as one item of a sequence; what follows a blank before a value is told beforehand."""
        if expr is not BLANK:
            return super().item(expr)
        return self.rule("blank", "blank", lambda: row(either(Atom('" "'), EMPTY_ROW), *self._behind("blank")))

    def starred(self, expr: Star) -> Piece:
        """A rule that calls itself, unless it is one character."""
        if isinstance(expr.body, Class):
            return Counted(self.item(expr.body), "*")
        key = ("star", expr)
        if key not in self.names:
            name = self.names[key] = self.new("more")
            options = expr.body.options if isinstance(expr.body, Choice) else (expr.body,)
            self.add(name, lambda: either(EMPTY_ROW, *(row(self.option(each), Atom(name)) for each in options)))
        return Atom(self.names[key])

    def repeated(self, expr: Repeat) -> Piece:
        """Limits on the length of a text are left out, unless they are asked for."""
        found = self._uncounted(expr)
        if found != expr:
            return self.option(found)
        if max(expr.low, expr.high or 0) > MOST_COUNTED:
            return super().repeated(expr)
        if self._is_slow(expr) and self.length_limits:
            return self._limited(expr)
        if expr.high is None and (expr.low <= _MOST_UNROLLED or not isinstance(expr.body, Class)):
            return self.option(seq(*[expr.body] * expr.low, star(expr.body)))
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

    def quoted(self, expr: Quoted) -> Piece:
        """A text as a value: a rule, which may stand in many places. Where it may have either quote, what follows it is
        told beforehand, as for all strings of Python; for one quote, the engine finds it out more exactly."""
        behind = self._behind("python_double") if isinstance(expr.body, Choice) else []
        return self.rule(expr, "quoted", lambda: row(self.pattern(expr.body), *behind))

    def pattern(self, expr: Expr) -> Piece:
        """A text of some form as one regular expression: five patterns compile in 79 ms instead of 126."""
        written = regular(self._without_limits(expr))
        if written is None or self.length_limits or "(?s" in written:
            return self.body(expr)
        return Atom(f"Regex({self.literal(written).text})")

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

    def _limited(self, expr: Repeat) -> Piece:
        """A rule with a limit on its characters; a short escape counts as two of them."""
        if expr.high is None:
            return super().repeated(expr)
        key = ("limited", expr)
        if key not in self.names:
            name = self.names[key] = self.new("limited")
            body = self.option(seq(*[expr.body] * expr.low, star(expr.body)))
            self.rules.append((f"{name}[max_chars={expr.high}]", body))
            self.note("in a text of limited length, an escape counts as two characters or more")
        return Atom(self.names[key])

    # --- text -----------------------------------------------------------------------------------------------------

    def text(self, expr: Text) -> Piece:
        """Free text as the engine's dispatch, where words and a few rules say what must not stand in it. What keeps out
        words of prose besides stands for a text that does not, so that there is one of them."""
        found = dispatched(expr, self.note)
        if found is None:
            return self.text_and_closer(expr)
        others = (dispatched(Text(each), self.note) for each in self.closers)
        found = next((each for each in others if each is not None and each.covers(found)), found)
        words = found.excluded(expr.closer)
        ahead = self._ahead(expr)
        key = ("text", found, frozenset(words), tuple(ahead))
        if key not in self.names:
            later = self._dispatch(found, words, self._may_end(expr, found), ahead)
            self.names[key] = self._first_part(expr, found, later)
        base = Atom(self.names[key])
        return row(base, self.literal(expr.closer)) if expr.closer else base

    def _first_part(self, expr: Text, found: Dispatch, later: str) -> str:
        """The rule with which a text begins: the text itself, or a first part in which more must not stand."""
        first = found.first
        if first is None:
            return later
        closers = "".join(self.closers.get(expr.forbidden, ()))
        exits = {char: later for char in found.exits if char not in closers}
        begin = self._dispatch(first, first.excluded(expr.closer), self._may_end(expr, first), self._ahead(expr), exits)
        if not found.lead:
            return begin
        name = f"{begin}_lead"
        self.rules.append((name, either(Atom(begin), row(self.char_class(found.lead), Atom(name)))))
        return name

    def _ahead(self, expr: Text) -> list[Piece]:
        """What follows a text with rules, as the engine is told it: it then tries fewer tokens where a text may end."""
        behind = self.behind_texts.get(expr)
        if behind is None:
            return []
        return [Atom(f"(={self.char_class(''.join(sorted(behind)) or _NEVER).text})")]

    def _may_end(self, expr: Text, found: Dispatch) -> bool:
        """Whether text may end behind a head; all texts of a place are alike, so that they are compiled once."""
        if found.may_end_behind_a_head(self.closers.get(expr.forbidden, ())):
            return True
        self.note(f"text does not end behind {' or '.join(repr(head) for head, _ in found.heads)}")
        return False

    def _dispatch(
        self,
        found: Dispatch,
        words: Sequence[str],
        ends: bool,
        ahead: list[Piece],
        exits: Mapping[str, str] = _NO_EXITS,
    ) -> str:
        """The rules of a dispatch, which `exits` leave for another rule; the name of the rule that text begins with."""
        base = self.new("text")
        names = [f"{base}_{at}" for at in range(1, len(found.states) + 1)]
        own = {head: names[at] for head, at in found.heads}
        passed = {head: self._passed(found, head, base) for head in own}
        entries = {head: f"{name}_entry" if passed[head] else name for head, name in own.items()}
        rules = [(base, self._first_rule(found, words, entries, exits))]
        rules += [(entries[head], either(Atom(own[head]), *each)) for head, each in passed.items() if each]
        rules += [(name, self._state(found, at, [base, *names], entries, ends)) for at, name in enumerate(names)]
        self.rules += [(name, row(body, *ahead)) for name, body in rules]
        return names[0] if found.begins else base

    def _first_rule(
        self, found: Dispatch, words: Sequence[str], entries: Mapping[str, str], exits: Mapping[str, str]
    ) -> Piece:
        """The dispatch itself; any text where there is nothing that it would look for."""
        if not words and not found.heads:
            return Counted(Atom(ANY_CHARACTER), "*")
        parts = [f"({self.literal(word).text}, {name})" for word, name in (*entries.items(), *exits.items())]
        parts.append("loop_after_dispatch=false")
        if words:
            shown = ", ".join(self.literal(word).text for word in words)
            parts.append(f"excludes=({shown}{',' if len(words) == 1 else ''})")
        return Atom(f"TagDispatch({', '.join(parts)})")

    def _state(self, found: Dispatch, at: int, names: list[str], entries: Mapping[str, str], ends: bool) -> Piece:
        """A state behind a head. `names` are the rule of the text and those of the states."""
        base, name = names[0], names[at + 1]
        stay: list[Piece] = []
        options: list[Piece] = [EMPTY_ROW] if ends else []
        for move in found.states[at]:
            dest = base if move.dest is None else names[move.dest + 1]
            again = {head[-1]: entries[head] for head, state in found.heads if _is_again(head, state, move.dest, at)}
            taken, others = self._moved(move, {char: name for char, name in again.items() if name != dest})
            if taken is not None and dest == name:
                stay = [Counted(taken, "*")]  # a rule that calls itself and that another one calls is not cached
            elif taken is not None:
                options.append(row(taken, Atom(dest)))
            options += others
        for head, before, _ in found.passed:
            if (head, at) in found.heads:
                options += (row(self.char_class(before), each) for each in self._passed(found, head, base))
        return row(*stay, either(*options))

    def _moved(self, move: Move, entries: Mapping[str, str]) -> tuple[Atom | None, list[Piece]]:
        """The set of characters of a move, None for none, and options for those with which a head ends."""
        again = [char for char in entries if takes(move, char)]
        plain = "".join(char for char in move.characters if char not in again)
        if move.negated:
            plain += "".join(again)
        taken = self.char_class(plain, move.negated) if move.negated or plain or not again else None
        return taken, [row(self.literal(char), Atom(entries[char])) for char in again]

    def _passed(self, found: Dispatch, head: str, base: str) -> list[Piece]:
        """What leads from behind a head back to the text."""
        return [row(self.literal(char), Atom(base)) for each, _, char in found.passed if each == head]


def _is_again(head: str, state: int, dest: int | None, at: int) -> bool:
    """Whether a move to a state reads the last character of a head that leads there."""
    return state == dest and (len(head) == 1 or (state == at and set(head) == {head[-1]}))


def dispatched(expr: Text, note: Note) -> Dispatch | None:
    """The dispatch of a text; None where it cannot say what must not stand in it."""
    found = dispatch_of(expr.forbidden)
    for each in found.notes if found else ():
        note(each)
    return found


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
