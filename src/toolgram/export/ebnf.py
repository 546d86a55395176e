"""EBNF for xgrammar, in the forms that it compiles fast.

Strategy: the engine unrolls counted repetition, so limits on the length of a text are only written on request. Free
text is the engine's own dispatch, of which it compiles a state for each character of an excluded word. So long special
tokens, phrases and function names are represented by a part, which excludes a little more than the word does, and notes
report it. With eight functions, OLMo 3 compiles in 92 ms instead of 167, and Llama 4 in 84 instead of 158 (tekken).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from toolgram.export import expressions as ex
from toolgram.export.bnf import ANY_CHARACTER, BnfWriter
from toolgram.export.regexes import regular
from toolgram.export.written import Piece, counted, row
from toolgram.limits import MOST_COUNTED, MOST_WRITTEN_BLANKS

_MOST_UNROLLED = 4  # characters of a text with a minimum length
_MOST_CHARACTERS = 8  # of an id; each one takes 3 ms to compile
_WIDE = 2000  # characters of a set for which the engine's vocabulary has many tokens


class EbnfWriter(BnfWriter):
    """EBNF for xgrammar."""

    most_counted = most_required = 4  # each rule takes time to compile

    def of_token(self, expr: ex.Token) -> Piece:
        """Return a token by its id. Without an id, which rules need, it is text, which the parser also reads."""
        if expr.id is None:
            self.note(
                f"inside of lists and objects {expr.text} is written as text, because rules know tokens by their ids"
            )
            return self.literal(expr.text)
        return Piece(f"Token({expr.id})")

    def of_chars(self, expr: ex.Chars) -> Piece:
        """Return a run of characters, which is counted only if that is cheap or requested."""
        if expr.but or expr.most <= _MOST_CHARACTERS or self.length_limits:
            return super().of_chars(expr)
        self.note(
            "xgrammar does not count the characters of an id, because that is slow; `length_limits=True` counts them"
        )
        return row(self.char_class(expr.first), counted(self.char_class(expr.rest), "*"))

    def of_blanks(self, expr: ex.Blanks | None = None) -> Piece:
        """Return the blanks that JSON allows, uncounted: a count compiles each state, and visits it for each mask."""
        return super().of_blanks() if not self.length_limits else self.run(" \n\t\r", MOST_WRITTEN_BLANKS)

    def of_repeat(self, expr: ex.Repeat) -> Piece:
        """Return a repetition, without limits on the length of a text unless they are requested."""
        found = self._uncounted(expr)
        if found != expr:
            return self.option(found)
        if max(expr.low, expr.high or 0) > MOST_COUNTED:
            return super().of_repeat(expr)
        if self._is_slow(expr) and self.length_limits:
            return self._limited(expr)
        if expr.high is None and (expr.low <= _MOST_UNROLLED or not isinstance(expr.body, ex.Class)):
            return self.option(ex.seq(*[expr.body] * expr.low, ex.star(expr.body)))
        return super().of_repeat(expr)

    def _is_slow(self, expr: ex.Repeat) -> bool:
        """Return whether the engine unrolls a repetition at a high cost."""
        if expr.high is None and expr.low <= _MOST_UNROLLED:
            return False
        return expr.is_length or ((expr.high or expr.low) > _MOST_UNROLLED and _has_wide_class(expr.body))

    def _uncounted(self, expr: ex.Repeat) -> ex.Expr:
        """Return a repetition without a limit that is not enforced."""
        if self.length_limits or not self._is_slow(expr):
            return expr
        self.note(
            "xgrammar does not enforce limits on the length of a text, because they make it slow; `length_limits=True` "
            "enforces them"
        )
        return ex.Repeat(expr.body, min(expr.low, _MOST_UNROLLED), None)

    def pattern(self, expr: ex.Expr) -> Piece:
        """Return a text of some form as one regular expression: five patterns compile in 79 ms instead of 126."""
        written = regular(self._without_limits(expr))
        if written is None or self.length_limits or "(?s" in written:
            return self.body(expr)
        return Piece(f"Regex({self.literal(written).text})")

    def _without_limits(self, expr: ex.Expr) -> ex.Expr:
        """Return the expression without the counts that are not enforced."""
        found = self._uncounted(expr) if isinstance(expr, ex.Repeat) else expr
        return self._without_limits(found) if found != expr else ex.rebuilt(expr, self._without_limits)

    def _limited(self, expr: ex.Repeat) -> Piece:
        """Return a rule with a limit on its characters; a short escape counts as two of them."""
        if expr.high is None:
            return super().of_repeat(expr)
        key = ("limited", expr)
        if key not in self.names:
            name = self.names[key] = self.new("limited")
            body = self.option(ex.seq(*[expr.body] * expr.low, ex.star(expr.body)))
            self.rules.append((f"{name}[max_chars={expr.high}]", body))
            self.note("in a text of limited length, an escape counts as two characters or more")
        return Piece(self.names[key])

    # --- text -----------------------------------------------------------------------------------------------------

    def text(self, expr: ex.Text) -> Piece:
        """Return free text as the engine's dispatch, which excludes the words that the text must not contain."""
        words = excluded(expr, self.note)
        base = self.rule(("text", words), "text", lambda: self._without(words))
        return row(base, self.literal(expr.closer)) if expr.closer else base

    def _without(self, words: Sequence[str]) -> Piece:
        """Return any text without some words."""
        shown = ", ".join(self.literal(word).text for word in words)
        dispatch = Piece(f"TagDispatch(loop_after_dispatch=false, excludes=({shown}{',' * (len(words) == 1)}))")
        return dispatch if words else counted(Piece(ANY_CHARACTER), "*")


def _has_wide_class(expr: ex.Expr) -> bool:
    """Return whether a set with most characters is a part of an expression."""
    if isinstance(expr, ex.Class):
        return sum(high - low + 1 for low, high in expr.ranges) > _WIDE
    return isinstance(expr, ex.Seq | ex.Choice) and any(map(_has_wide_class, ex.children(expr)))


# --- words that a text excludes --------------------------------------------------------------------------------------

_SPECIAL = re.compile(r"(<｜|<\|[^\W\d_]\w\w)")  # this part of a special token is looked for: nothing else begins so
_MARKER = re.compile(r"(</?[^\W\d_]{3,}_|\[/?[A-Z]{3,}(?:_| [A-Z]{3,})|\{\"[^\W\d_]{3,}_)")  # and of other markers
_PHRASE = re.compile(r"[\w' ]+ (\w[\w' ]{10,}[\w':])\Z")  # for a phrase: its last words
_NAME = re.compile(r"[\"']?\w+(_\w+[\"'(])\Z")  # for a function name as a call writes it: its last word


def excluded(text: ex.Text, note: ex.Note) -> tuple[str, ...]:
    """Return the words that the engine looks for in a text: those that the text must not contain, and its closer."""
    words, shown = _looked_for(text.forbidden.words, "" if is_told_apart(text) else text.closer)
    if shown:
        note(f"text holds no part of a marker or a name such as {' or '.join(shown)}, with the rest of it or without")
    return words


@lru_cache(maxsize=64)
def _looked_for(forbidden: tuple[str, ...], closer: str) -> tuple[tuple[str, ...], dict[str, None]]:
    """Return the words that the engine looks for, and which of them are parts of words."""
    parts = {word: _part(word) for word in forbidden}
    found = dict.fromkeys((*parts.values(), *([closer] if closer else [])))
    words = tuple(word for word in found if not any(each != word and each in word for each in found))
    return words, dict.fromkeys(repr(part) for word, part in parts.items() if part in words and part != word)


def is_told_apart(text: ex.Text) -> bool:
    """Return whether a text always ends before its closer, because the closer contains an excluded word."""
    return not text.closer or any(_part(word) in text.closer for word in text.forbidden.words)


@lru_cache(maxsize=4096)
def _part(word: str) -> str:
    """Return the part of a word that is looked for instead of the word."""
    found = _NAME.match(word) or _PHRASE.match(word) or _SPECIAL.match(word) or _MARKER.match(word)
    return found[1] if found else word
