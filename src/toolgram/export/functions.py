"""What depends on the function of a call: its name, and its arguments as one value or one by one.

Strategy: the expression of a format is made once for each kind of request (`building`). In it, a half of a surrogate
pair represents the name of a function, because no name and no marker contains one. Arguments are slots. Here both are
filled in for each function.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import Self

from toolgram.export import expressions as ex
from toolgram.export.arguments import keyword_arguments, schema_text
from toolgram.export.markers import Tokens
from toolgram.export.notations import PYTHON, WORDS
from toolgram.export.requests import ExportRequest, Tool
from toolgram.export.tagged_arguments import TaggedArguments, noting
from toolgram.observing.observed import Edge, ObservedPaths
from toolgram.spec.data import Spec


def with_names(words: tuple[str, ...], names: Sequence[str]) -> tuple[str, ...]:
    """Return some words: one that has a name, with each of the names."""
    if not any(map(ex.has_name, words)):
        return words
    return tuple(ex.named(word, name) for word in words for name in (names if ex.has_name(word) else ("",)))


class Functions:
    """The functions of a request, and what each of them writes."""

    def __init__(self, spec: Spec, paths: ObservedPaths, tokens: Tokens) -> None:
        self.spec, self.paths = spec, paths
        self.tools: Sequence[Tool] = ()
        self.names: Sequence[str] = ()
        self.tagged = TaggedArguments(spec, paths, str, tokens)
        self.forbidden = cache(self._forbidden)

    def of(self, request: ExportRequest, note: ex.Note) -> Self:
        """Return the functions of a request."""
        found = copy(self)
        found.tools, found.names, found.tagged = request.tools, request.declared, self.tagged.noting(note)
        found.forbidden = cache(found._forbidden)
        return found

    def expanded(self, root: ex.Expr) -> ex.Expr:
        """Return an expression in which each part of a call is written for each function."""
        match root:
            case ex.EachFunction():
                return ex.choice(*(self._of(tool, root.body) for tool in self.tools))
            case ex.Text():
                return ex.Text(self.forbidden(root.forbidden), root.closer, root.within)
        return ex.rebuilt(root, self.expanded)

    def _of(self, tool: Tool, expr: ex.Expr) -> ex.Expr:
        """Return an expression for one function."""
        match expr:
            case ex.Slot():
                found: ex.Expr = getattr(self, expr.part)(tool, *expr.at)
                return found
            case ex.Lit():
                return ex.Lit(ex.named(expr.text, tool.name))
            case ex.Text():
                return ex.Text(self.forbidden(expr.forbidden), ex.named(expr.closer, tool.name), expr.within)
        return ex.rebuilt(expr, lambda each: self._of(tool, each))

    def _forbidden(self, forbidden: ex.Forbidden) -> ex.Forbidden:
        return ex.Forbidden(with_names(forbidden.words, self.names))

    def no_arguments(self, tool: Tool) -> ex.Expr:
        """Return the empty text if a call may have no arguments."""
        return ex.EMPTY if tool.may_be_empty else ex.NOTHING

    def members(self, tool: Tool, first: tuple[Edge, ...], later: tuple[Edge, ...], waiting: str) -> ex.Expr:
        """Return arguments between markers."""
        return self.tagged.members(tool, first, later, waiting)

    def arguments(self, tool: Tool, state: str) -> ex.Expr:
        """Return the arguments as one value."""
        if self.spec.states[state].python:
            notation = WORDS if self.paths.json_words else PYTHON
            body = keyword_arguments(tool.forms, tool.schema, noting(tool, self.tagged.note), notation)
            return ex.seq(ex.Lit("("), body, ex.Lit(")"))
        return ex.Json(schema_text(tool.schema, tool.schema.get("$defs", {})), any_order=True)
