"""Free text in pieces, for an engine with a lexer: what stands before, between and behind what may begin a call.

Strategy: where calls begin with a bracket or a marker and a name, a text up to such a beginning is a terminal for each
name.  The lexer follows all of them at once, each with everything that must not stand in a text, and with tens of
functions it gives up.  So text is pieces that end with the bracket or the marker, and names are symbols of their own.
A piece behind a bracket does not begin as a call goes on.  The pieces are the same for all names, and the language is
the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import takewhile

from toolgram.export.expressions import (
    Break,
    Choice,
    Class,
    Expr,
    Forbidden,
    Lit,
    Members,
    Repeat,
    Seq,
    Star,
    Text,
    children,
    choice,
    seq,
    star,
)
from toolgram.export.texts import Pattern, character, is_character, literal_pattern, spelled

_FEW = 2  # ends of a text that begin alike and are a terminal each


def changed(root: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """An expression with other leaves; what several parts share, they share again."""
    known: dict[int, Expr] = {}

    def made(expr: Expr) -> Expr:
        if id(expr) not in known:
            known[id(expr)] = _made(expr)
        return known[id(expr)]

    def _made(expr: Expr) -> Expr:
        match expr:
            case Seq():
                return seq(*map(made, expr.parts))
            case Choice():
                return choice(*map(made, expr.options))
            case Star():
                return star(made(expr.body))
            case Repeat() if not isinstance(expr.body, Class):
                return replace(expr, body=made(expr.body))
            case Members():
                found = (replace(each, first=made(each.first), later=made(each.later)) for each in expr.members)
                return Members(tuple(found), expr.any_order)
        return leaf(expr)

    return made(root)


def in_pieces(root: Expr) -> Expr:
    """The expression with texts in pieces, where many ends of a text begin with the same word."""
    closers: dict[Forbidden, set[str]] = {}
    pending, seen = [root], {id(root)}
    while pending:
        here = pending.pop()
        if isinstance(here, Text) and here.within is None:
            closers.setdefault(here.forbidden, set()).add(here.closer)
        for each in children(here):
            if id(each) not in seen:
                seen.add(id(each))
                pending.append(each)
    heads = {each: _head(each, ends) for each, ends in closers.items()}

    def leaf(expr: Expr) -> Expr:
        head = heads.get(expr.forbidden) if isinstance(expr, Text) and expr.within is None else None
        return _divided(expr, head) if isinstance(expr, Text) and head else expr

    return changed(root, leaf)


def _head(forbidden: Forbidden, closers: set[str]) -> str | None:
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
