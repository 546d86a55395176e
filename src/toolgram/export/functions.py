"""What depends on the function of a call: its name, and its arguments as one value or one by one.

Strategy: the expression of a format is made once for each kind of request (`building`). In it, a half of a surrogate
pair represents the name of a function, because no name and no marker contains one. Arguments are slots. Here both are
filled in for each function.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
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
        self.known: dict[tuple[str, ex.Slot], ex.Expr] = {}
        self.tagged = TaggedArguments(spec, paths, str, tokens)

    def of(self, request: ExportRequest, note: ex.Note) -> Self:
        """Return the functions of a request."""
        found = copy(self)
        found.tools, found.names, found.known = request.tools, request.declared, {}
        found.tagged = self.tagged.noting(note)
        return found

    def expanded(self, expr: ex.Expr, tool: Tool | None = None) -> ex.Expr:
        """Return an expression in which each part of a call is written for each function; within one, for `tool`."""
        name = tool.name if tool is not None else ""
        match expr:
            case ex.EachFunction():
                return ex.choice(*(self.expanded(expr.body, each) for each in self.tools))
            case ex.Slot():
                if (name, expr) not in self.known:
                    self.known[name, expr] = getattr(self, expr.part)(tool, *expr.at)
                return self.known[name, expr]
            case ex.Lit():
                return ex.Lit(ex.named(expr.text, name))
            case ex.Text():
                forbidden = ex.Forbidden(with_names(expr.forbidden.words, self.names))
                return ex.Text(forbidden, ex.named(expr.closer, name), expr.within)
        return ex.rebuilt(expr, lambda each: self.expanded(each, tool))

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
