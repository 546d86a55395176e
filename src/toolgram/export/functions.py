"""What depends on the function of a call: its name, and its arguments as one value or one by one.

Strategy: the automaton of a format is the same for every function, except for a few labels. These are slots in an
expression, which is made once for a format and a kind of request (`building`), and filled in for each function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import Self

from toolgram.export import expressions as ex
from toolgram.export.arguments import keyword_arguments, schema_text
from toolgram.export.markers import Tokens
from toolgram.export.notations import PYTHON, WORDS
from toolgram.export.requests import Tool
from toolgram.export.tagged_arguments import TaggedArguments, noting
from toolgram.observing.observed import Edge, ObservedPaths
from toolgram.spec.data import Spec

# The parts of slots; each one is a method of `Functions`, which takes the function and the rest of the slot.
NAME, QUOTED_NAME, NO_ARGUMENTS, ARGUMENTS, MEMBERS = "name", "quoted_name", "no_arguments", "arguments", "members"


class Functions:
    """The functions of a request, and what each of them writes in a slot."""

    def __init__(self, spec: Spec, paths: ObservedPaths, tokens: Tokens) -> None:
        self.spec, self.paths = spec, paths
        self.tools: Sequence[Tool] = ()
        self.tagged = TaggedArguments(spec, paths, str, tokens)
        self.fill = cache(self._fill)

    def of(self, tools: Sequence[Tool], note: ex.Note) -> Self:
        """Return the functions of a request."""
        found = copy(self)
        found.tools, found.tagged = tools, self.tagged.noting(note)
        found.fill = cache(found._fill)
        return found

    def expanded(self, root: ex.Expr) -> ex.Expr:
        """Return an expression without slots: what depends on the function is written for each of them."""
        if isinstance(root, ex.EachFunction):
            return ex.choice(*self.options(root))
        return ex.rebuilt(root, self.expanded)

    def options(self, each: ex.EachFunction) -> list[ex.Expr]:
        """Return a part of a call for each function."""
        slots = [part for part in ex.inside(each.body) if isinstance(part, ex.Slot)]
        return [ex.filled(each.body, {slot: self.fill(slot, at) for slot in slots}) for at in range(len(self.tools))]

    def _fill(self, slot: ex.Slot, at: int) -> ex.Expr:
        found: ex.Expr = getattr(self, slot.part)(self.tools[at], *slot.at)
        return found

    def name(self, tool: Tool, pattern: str) -> ex.Expr:
        """Return the name, if it is one there."""
        return ex.Lit(tool.name) if re.fullmatch(pattern, tool.name) else ex.NOTHING

    def quoted_name(self, tool: Tool) -> ex.Expr:
        """Return the name in quotes."""
        return ex.Lit(json.dumps(tool.name, ensure_ascii=False))

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
