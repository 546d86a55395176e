"""What depends on the function of a call: its name, and its arguments as one value or one by one.

Strategy: the expression of a format is made once for each kind of request (`building`). In it, a half of a surrogate
pair represents the name of a function, because no name and no marker contains one. Arguments are slots. Here both are
filled in for each function. What is written for some parameters is kept with them, for other functions and requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from toolgram.export import expressions as ex
from toolgram.export.markers import Tokens
from toolgram.export.requests import ExportRequest, Tool
from toolgram.export.tagged_arguments import ArgumentWriter
from toolgram.observing.observed import ObservedPaths
from toolgram.spec.data import Spec


def with_names(words: tuple[str, ...], names: Sequence[str]) -> tuple[str, ...]:
    """Return some words: one that has a name, with each of the names."""
    if not any(map(ex.has_name, words)):
        return words
    return tuple(ex.named(word, name) for word in words for name in (names if ex.has_name(word) else ("",)))


class Functions:
    """The functions of a request, and what each of them writes."""

    def __init__(self, spec: Spec, paths: ObservedPaths, tokens: Tokens) -> None:
        self.request = ExportRequest()
        self.note: ex.Note = str
        self.writer = ArgumentWriter(spec, paths, str, tokens)
        self.same: set[ex.Expr] = set()  # parts that no function changes

    def of(self, request: ExportRequest, note: ex.Note) -> Self:
        """Return the functions of a request."""
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__, request=request, note=note)
        return found

    def expanded(self, expr: ex.Expr, tool: Tool | None = None) -> ex.Expr:
        """Return an expression in which each part of a call is written for each function; within one, for `tool`."""
        if expr in self.same:
            return expr
        name = tool.name if tool is not None else ""
        match expr:
            case ex.EachFunction():
                return ex.choice(*[self.expanded(expr.body, each) for each in self.request.tools])
            case ex.Slot():
                return expr if tool is None else self.in_slot(tool, expr)
            case ex.Lit():
                found: ex.Expr = ex.Lit(ex.named(expr.text, name))
            case ex.Text():
                forbidden = ex.Forbidden(with_names(expr.forbidden.words, self.request.declared))
                found = ex.Text(forbidden, ex.named(expr.closer, name), expr.within)
            case _:
                found = ex.rebuilt(expr, lambda each: self.expanded(each, tool))
        if found is expr:
            self.same.add(expr)
        return found

    def in_slot(self, tool: Tool, slot: ex.Slot) -> ex.Expr:
        """Return what a function has in a slot."""
        kept = tool.parameters.written.setdefault(self.writer, {})
        if slot not in kept:
            notes: dict[str, None] = {}
            writer = self.writer.noting(notes.setdefault)
            kept[slot] = getattr(writer, slot.part)(tool.parameters, *slot.at), tuple(notes)
        for words in kept[slot][1]:
            self.note(words.replace(ex.ANY_NAME, tool.name))
        return kept[slot][0]
