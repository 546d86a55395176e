"""Lark for llguidance, which has a lexer.

Strategy: free text must be one terminal that defines its own end: any text without a marker before that end. Sets of
characters and their repetition are terminals as well. Arguments in any order are rules, one for each set of arguments
that may already be written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from toolgram.export import expressions as ex
from toolgram.export.passes import in_pieces, without_prefixes
from toolgram.export.regexes import JSON_STRING, regex, regex_ranges, regular
from toolgram.export.writing import RuleWriter, is_length
from toolgram.export.written import EMPTY_ROW, Piece, counted, either, row
from toolgram.limits import MOST_WRITTEN_BLANKS

_MOST_BITS = 60
_LONGEST_RAW = 16  # a larger limit on the length of a raw value may prevent llguidance from finding its end


def lark_string(text: str) -> str:
    """Return a text as a Lark string; characters that cannot be printed are escaped."""
    written = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in written)


class LlguidanceWriter(RuleWriter):
    """Lark as llguidance reads it: rules are lower case, terminals upper case, and the longest match wins."""

    arrow = ":"
    root_name = "start"
    has_tokens = False

    def write(self, root: ex.Expr) -> str:
        """Return the whole grammar, after the passes."""
        root = in_pieces(root)
        self.has_tokens = any(isinstance(each, ex.Token) for each in ex.inside(root))
        return super().write(without_prefixes(root))

    def literal(self, text: str) -> Piece:
        """Return a Lark string."""
        return Piece(lark_string(text))

    def of_class(self, expr: ex.Class) -> Piece:
        """Return a regular expression of one class."""
        return Piece(f"/{regex_ranges(expr.ranges)}/")

    def terminal(self, key: object, kind: str, body: str) -> Piece:
        """Return a terminal, which is made at its first use."""
        name = self.names.get(key)
        if name is None:
            name = self.names[key] = self.new(kind).upper()
            self.rules.append((name, Piece(body)))
        return Piece(name)

    def of_chars(self, expr: ex.Chars) -> Piece:
        """Return a run as a terminal."""
        rest = f"{regex_ranges(ex.class_of(expr.rest).ranges)}{{0,{expr.most - 1}}}" if expr.most > 1 else ""
        body = f"/{regex_ranges(ex.class_of(expr.first).ranges)}{rest}/"
        if expr.but:
            body += f" & ~/({'|'.join(map(regex, expr.but))})/"
        return self.terminal(body, "run", body)

    # --- parts that are one terminal: a lexer reads sets of characters and their repetition --------------------------

    def body(self, expr: ex.Expr) -> Piece:
        """Return an expression as the body of a rule."""
        return self._regular(expr) or super().body(expr)

    def item(self, expr: ex.Expr) -> Piece:
        """Return an expression as one item of a sequence."""
        return self._regular(expr) or super().item(expr)

    def of_seq(self, expr: ex.Seq) -> Piece:
        """Return the items of a sequence."""
        return self._regular(expr) or super().of_seq(expr)

    def _regular(self, expr: ex.Expr) -> Piece | None:
        """Return the terminal of an expression with sets of characters if all of it is regular, or None."""
        if isinstance(expr, ex.Lit | ex.Json | ex.Text | ex.Members):
            return None
        if not any(isinstance(each, ex.Class | ex.Repeat) for each in ex.inside(expr)):
            return None
        if isinstance(expr, ex.Seq) and any(isinstance(part, ex.Break) for part in expr.parts):
            return None  # the first piece is a terminal elsewhere, to which a lexer that continues cannot return
        if _ends_in_words(expr):
            return None  # what follows may begin with the same text, and a lexer cannot backtrack in a word
        found = regular(expr)
        return self.terminal(found, "value", f"/{found}/") if found is not None else None

    def of_ref(self, expr: ex.Ref) -> Piece:
        """Return a rule of the inner language, or a terminal."""
        found = regular(expr)
        return super().of_ref(expr) if found is None else self.terminal(found, "value", f"/{found}/")

    def of_blanks(self, expr: ex.Blanks | None = None) -> Piece:
        """Return the blanks that JSON allows."""
        return counted(self.terminal("blanks", "run", rf"/[ \t\r\n]{{1,{MOST_WRITTEN_BLANKS}}}/"), "?")

    def of_othername(self, expr: ex.OtherName) -> Piece:
        """Return a name in JSON that differs from some names."""
        names = "|".join(regex(json.dumps(name, ensure_ascii=False)) for name in expr.but)
        return self.terminal(expr, "key", f"/{JSON_STRING}/ & ~/{names}/")

    def text(self, expr: ex.Text) -> Piece:
        """Return free text as one terminal: up to the first marker, or to the end without any.

        A raw value ends at the first possible place. The grammar requires this only if it has tokens: after a text that
        may continue, llguidance cannot decide whether a token is allowed.
        """
        first_end = self.has_tokens and expr.closer in expr.forbidden.words
        words = [each for each in expr.forbidden.words if not first_end or each != expr.closer]
        body = _terminal_of_text(words, expr.closer) + self._form(expr)
        name = self.terminal(("text", body), "text", body)
        if not first_end:
            return name
        if ("lazy", name) not in self.names:
            self.names["lazy", name] = self.new("raw")
            self.rules.append((f"{self.names['lazy', name]}[lazy]", name))
        return Piece(self.names["lazy", name])

    def _form(self, expr: ex.Text) -> str:
        """Return what a text must also match, as an intersection."""
        within = expr.within
        if within is None:
            return ""
        if isinstance(within, ex.Repeat) and is_length(within) and max(within.low, within.high or 0) > _LONGEST_RAW:
            self.note(f"a limit of more than {_LONGEST_RAW} on the length of a raw value is not enforced")
            return ""
        return f" & /({regular(within)}){regex(expr.closer)}/"

    def text_within(self, expr: ex.Text) -> Piece:
        """Return free text that must fit a pattern, as one terminal."""
        return self.text(expr)

    def of_members(self, expr: ex.Members) -> Piece:
        """Return arguments in any order: a rule for each set of arguments that may already be written."""
        named = [member for member in expr.members if member.name]
        if not expr.any_order or len(named) > _MOST_BITS:
            if expr.any_order:
                self.note(f"more than {_MOST_BITS} arguments are written in the order of the schema")
            return self.item(self.counted(ex.members_in_turn(expr, self.note)))
        if expr in self.names:
            return Piece(self.names[expr])
        if all(member.later == ex.NOTHING for member in expr.members):  # one argument at most
            needed_alone = [member.first for member in named if member.required]
            return self.item(ex.choice(*(needed_alone or (member.first for member in expr.members))))
        return self._by_bits(expr)

    def _by_bits(self, expr: ex.Members) -> Piece:
        """Return the rules of the first argument and of later ones, with a bit for each that is written."""
        first, later = self.new("first"), self.new("later")
        self.names[expr] = f"{first}::0x0"
        firsts: list[Piece] = []
        laters: list[Piece] = []
        bits = {member.name: bit for bit, member in enumerate(each for each in expr.members if each.name)}
        condition = ""
        for each in (each for member in expr.members for each in (member.first, member.later)):
            self.counted(each)
        for member in expr.members:
            then, where = f"{later}::_", ""
            if member.name:
                then, where = f"{later}::set_bit({bits[member.name]})", f" %if bit_clear({bits[member.name]})"
            if member.required:
                needed = f"bit_set({bits[member.name]})"
                condition = f"and({condition}, {needed})" if condition else needed
            firsts += [row(self.item(each), Piece(then)) for each in (member.first,) if each != ex.NOTHING]
            laters += [row(self.item(each), Piece(then + where)) for each in (member.later,) if each != ex.NOTHING]
        end = Piece(f'"" %if {condition}') if condition else EMPTY_ROW
        self.rules.append((f"{first}::_", either(*firsts)))
        self.rules.append((f"{later}::_", either(end, *laters)))
        return Piece(self.names[expr])


def _ends_in_words(expr: ex.Expr) -> bool:
    """Return whether an expression may end in a repetition of texts longer than one character."""
    match expr:
        case ex.Star() | ex.Repeat():
            return not isinstance(expr.body, ex.Class) or _ends_in_words(expr.body)
        case ex.Choice():
            return any(map(_ends_in_words, expr.options))
        case ex.Seq():
            ends = [each for each in expr.parts if not isinstance(each, ex.Break)]
            return bool(ends) and _ends_in_words(ends[-1])
    return False


def _terminal_of_text(words: Sequence[str], closer: str) -> str:
    """Return text without some words, and its closer, as one terminal."""
    marker = "|".join(map(regex, words))
    if not closer:
        return "/(?s:.*)/" + (f" & ~/(?s:.*)({marker})(?s:.*)/" if marker else "")
    body = f"/(?s:.*){regex(closer)}/" + (f" & ~/(?s:.*)({marker})(?s:.+)/" if marker else "")
    longer = "|".join(regex(each) for each in words if len(each) > len(closer) and each.endswith(closer))
    return body + (f" & ~/(?s:.*)({longer})/" if longer else "")
