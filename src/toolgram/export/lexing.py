"""Passes over the expression for llguidance, whose lexer reads the longest terminal and cannot go back.

* `in_pieces`: where calls begin with a bracket or a marker and a name, a text up to such a beginning is a terminal for
  each name.  The lexer follows all of them at once, each with everything that must not stand in a text.  So text is
  pieces that end with the bracket or the marker, and names are symbols of their own.  A piece behind a bracket does not
  begin as a call goes on.  The pieces are the same for all names, and the language is the same.  Without this pass,
  llguidance 1.9.1 runs out of fuel for Functionary with 40 functions, and Llama 4 compiles in 41 ms instead of 16.
* `without_prefixes`: of two fixed texts that may stand at one place, neither begins with the other, because the lexer
  would take the longer one.  This is no tuning: without it, calls are impossible.  What many texts begin with is one
  piece, which the lexer reads once: p95 of a mask is 210 us instead of 358 for Llama 3 with 40 functions.

Measured with `python -m benchmarks.exports` over tekken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, takewhile

from toolgram.export.expressions import (
    Break,
    Expr,
    Forbidden,
    Json,
    Lit,
    Text,
    Token,
    choice,
    seq,
    star,
)
from toolgram.export.passes import Places, changed, closers_of_texts
from toolgram.export.texts import Pattern, character, is_character, literal_pattern, spelled

_FEW = 2  # ends of a text that begin alike and are a terminal each
_LEAST_ALIKE, _LEAST_SHARED = 4, 4  # texts that begin alike, and characters that they share, to be cut behind these


def in_pieces(root: Expr) -> Expr:
    """The expression with texts in pieces, where many ends of a text begin with the same word."""
    closers = closers_of_texts(root)
    heads = {each: _head(each, ends) for each, ends in closers.items()}

    def leaf(expr: Expr) -> Expr:
        head = heads.get(expr.forbidden) if isinstance(expr, Text) and expr.within is None else None
        return _divided(expr, head) if isinstance(expr, Text) and head else expr

    return changed(root, leaf)


def _head(forbidden: Forbidden, closers: Collection[str]) -> str | None:
    """The word with which many ends of a text begin, as a pattern does that must not stand in it."""
    for pattern in forbidden.patterns:
        head = "".join(map(character, takewhile(is_character, pattern)))
        ends = [closer[len(head) :] for closer in closers if closer.startswith(head)]
        others = [spelled(each) for each in (*forbidden.patterns, *forbidden.beginnings) if not _begins(each, head)]
        if head and len(ends) > _FEW and not any(head in each for each in (*ends, *others)):
            return head if all(ends) else None
    return None


def _begins(pattern: Pattern, head: str) -> bool:
    return spelled(pattern).startswith(head)


def _divided(expr: Text, head: str) -> Expr:
    forbidden = expr.forbidden
    others = tuple(each for each in forbidden.patterns if not _begins(each, head))
    behind = tuple(each[len(head) :] for each in forbidden.patterns if _begins(each, head))
    inside = (*others, literal_pattern(head))
    first, later = Forbidden(inside, forbidden.beginnings), Forbidden(inside, behind)
    opened = seq(Text(first, head), star(Text(later, head)))
    if expr.closer.startswith(head):
        return seq(opened, Break(), Lit(expr.closer[len(head) :]))
    return choice(Text(first, expr.closer), seq(opened, Text(later, expr.closer)))


def without_prefixes(root: Expr) -> Expr:
    """The expression with fixed texts cut, until of two that may stand at one place neither begins with the other."""
    while cuts := cuts_of(root):
        root = cut(root, cuts)
    return root


def cuts_of(root: Expr) -> dict[str, int]:
    """Where to cut fixed texts, so that of two texts that may stand at one place neither begins with the other, and
    what many of them begin with is one piece, if only fixed texts may stand there.

    The subset construction finds what may stand at one place: the sets of places that the same symbols lead to.
    """
    places = Places()
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


def cut(root: Expr, cuts: Mapping[str, int]) -> Expr:
    """The expression with some texts in two pieces; equal first pieces are shared."""

    def leaf(expr: Expr) -> Expr:
        at = cuts.get(expr.text) if isinstance(expr, Lit) else None
        return seq(Lit(expr.text[:at]), Break(), Lit(expr.text[at:])) if isinstance(expr, Lit) and at else expr

    return changed(root, leaf)
