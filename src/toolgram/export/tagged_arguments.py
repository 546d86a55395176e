"""Arguments between markers: each named argument as an expression, with a value of its declared type.

Strategy: between two places where an argument may begin lies a small automaton of its own (the key, the markers, the
value, its end).  It is solved for every parameter.  The declared type decides what a value may be, as it does when it
is read: text up to its marker, a literal, or either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from toolgram.export.expressions import (
    EMPTY,
    NOTHING,
    Chars,
    Expr,
    Forbidden,
    Json,
    Lit,
    Member,
    Members,
    Seq,
    Text,
    Token,
    choice,
    seq,
)
from toolgram.export.observed_paths import Edge, ObservedPaths
from toolgram.export.python_values import PythonValues
from toolgram.export.schemas import Tool, keywords, text_of, within
from toolgram.export.solving import solve
from toolgram.export.texts import WORD, characters_of, literal_pattern, rest_of
from toolgram.parameters import TEXT_ONLY, types_of
from toolgram.spec import Literal, Run, Spec, rows_of


def noting(tool: Tool, note: Callable[[str], object]) -> Callable[[str], object]:
    """Notes about one function."""
    return lambda words: note(f"{tool.name}: {words}")


class _Place(NamedTuple):
    """A state inside an argument; `echoed` after a marker that repeats the key."""

    state: str
    echoed: bool = False


class TaggedArguments:
    """Writes the tagged arguments of a format for one request. `marker` is the text or token of a transition."""

    def __init__(
        self, spec: Spec, paths: ObservedPaths, marker: Callable[[Edge], Expr], note: Callable[[str], object]
    ) -> None:
        self.spec, self.paths, self.marker, self.note = spec, paths, marker, note
        self.rows = rows_of(spec)
        self.known_members: dict[tuple[Any, ...], Expr] = {}

    def members(self, tool: Tool, first: list[Edge], later: list[Edge], waiting: str) -> Expr:
        """All arguments of a function, each in its first and its later form."""
        key = (tool.name, *first)
        if key not in self.known_members:
            self.known_members[key] = self._made_members(tool, first, later, waiting)
        return self.known_members[key]

    def _made_members(self, tool: Tool, first: list[Edge], later: list[Edge], waiting: str) -> Expr:
        schema = tool.schema

        def written(key: str | tuple[str, ...], declared: Any) -> tuple[Expr, Expr]:
            again = choice(*(self._member(tool, edge, key, declared, waiting) for edge in later))
            if first == later:
                return again, again
            return choice(*(self._member(tool, edge, key, declared, waiting) for edge in first)), again

        required = set(schema.get("required", ()))
        properties: dict[str, Any] = dict(schema.get("properties", {}))
        beyond = schema.get("additionalProperties", True)
        for name in sorted(required - set(properties)):
            properties[name] = beyond
        extra = sorted(set(schema) - {"type", "properties", "required", "additionalProperties", "$defs", "definitions"})
        if extra:
            self.note(f"{tool.name}: {', '.join(extra)} of the parameters is not enforced on tagged arguments")
        found: list[Member] = []
        for name, declared in properties.items():
            begun, again = written(name, declared)
            if begun == NOTHING and name in required:
                self.note(f"{tool.name}: the parameter {name!r} cannot be written in this format, so no call can be")
                return NOTHING
            if begun == NOTHING:
                self.note(f"{tool.name}: the parameter {name!r} cannot be written in this format")
                continue
            found.append(Member(name, begun, again, name in required))
        types = types_of(beyond, schema)
        if beyond is not False and types is not None and "string" not in types:
            self.note(f"{tool.name}: further arguments would be read as text, so they are not allowed")
        elif beyond is not False:
            self.note("arguments that no schema declares are not counted: a name may be repeated")
            begun, again = written(tuple(properties), beyond)
            found.append(Member("", begun, again, False))
        return Members(tuple(found), True) if found else NOTHING

    def _member(self, tool: Tool, edge: Edge, key: str | tuple[str, ...], declared: Any, waiting: str) -> Expr:
        """One argument, from the edge that begins it to the place where another may begin."""
        first, begun = _Place(""), _Place(edge.dest)
        equations: dict[_Place, dict[_Place | None, Expr]] = {
            first: {begun: seq(Lit(edge.lead), self._key_label(edge, key))}
        }
        pending, order = [begun], [first]
        while pending:
            place = pending.pop()
            if place in equations:
                continue
            row: dict[_Place | None, Expr] = {}
            if place.state == waiting:
                row[None] = EMPTY
            else:
                for each in self.paths.edges.get(place.state, ()):
                    echoed = place.echoed and isinstance(self.spec.terminals.get(each.trigger), Run)
                    label = EMPTY if echoed else self._value_label(tool, each, key, declared)
                    label = seq(Lit(each.lead), label)
                    source = self.spec.states[each.source]
                    dest = _Place(each.dest, source.meaning == "value" and source.echo)
                    if label != NOTHING:
                        row[dest] = choice(row[dest], label) if dest in row else label
                        pending.append(dest)
            equations[place] = row
            order.append(place)
        return solve(equations, order, first)

    def _key_label(self, edge: Edge, key: str | tuple[str, ...]) -> Expr:
        shape = self.spec.terminals.get(edge.trigger)
        if not isinstance(shape, Run) or edge.text.isspace():
            return self.marker(edge)
        if isinstance(key, str):
            return Lit(key) if re.fullmatch(shape.pattern, key) else NOTHING
        first, rest = characters_of(shape.first, WORD[:52] + "_"), characters_of(rest_of(shape), WORD)
        return Chars(first, rest, 32, key)

    def _value_label(self, tool: Tool, edge: Edge, key: str | tuple[str, ...], declared: Any) -> Expr:
        state = self.spec.states[edge.source]
        if state.meaning != "value":
            if state.echo or isinstance(self.spec.terminals.get(edge.trigger), Run):
                return self._key_label(edge, key)
            return self.marker(edge)
        if state.typed == "notated":
            written = self._notated(tool, declared)
            return written if edge.trigger == "value_end" else seq(written, self.marker(edge))
        if edge.trigger == "value_end":
            return self._literal(tool, declared, with_text=not self._has_text_frame())
        if state.echo and not isinstance(key, str):
            return NOTHING  # its closing marker repeats a key that is not known
        name = key if isinstance(key, str) else ""
        echoed = name if state.echo else ""  # the end of the marker; the state after it does not read it again
        types = types_of(declared, tool.schema)
        texts = types is None or "string" in types
        if state.typed == "json":
            literal = self._literal(tool, declared, with_text=not self._has_text_frame())
            return seq(literal, self.marker(edge), Lit(echoed))
        raw = self._raw(tool, name, declared, edge, echoed) if texts else NOTHING
        if state.typed == "text" or types is None or types == TEXT_ONLY or _is_free(raw):
            return raw
        return choice(raw, seq(self._literal(tool, declared, with_text=False), self.marker(edge), Lit(echoed)))

    def _notated(self, tool: Tool, declared: Any) -> Expr:
        """A value in the format's own quotes. Lists and objects are JSON, which the parser reads as well."""
        opening, closing = self.spec.notation
        types = types_of(declared, tool.schema)
        options = [self._literal(tool, declared, with_text=False)]
        if types is None or "string" in types:
            texts = _enumerated(declared)
            if texts is not None:
                options += [Lit(opening + each + closing) for each in texts if closing not in each]
            else:
                marks = dict.fromkeys(literal_pattern(mark) for mark in (opening, closing))
                options.append(seq(Lit(opening), Text(Forbidden(tuple(marks)), closing)))
        if types is None or {"array", "object"} & types:
            self.note("lists and objects are written as JSON, not in the quotes of the format")
        return choice(*options)

    def _has_text_frame(self) -> bool:
        return any(
            self.spec.states[edge.source].meaning == "value" and self.spec.states[edge.source].typed in ("", "text")
            for edges in self.paths.edges.values()
            for edge in edges
        )

    def _literal(self, tool: Tool, declared: Any, with_text: bool) -> Expr:
        """A value as JSON, or as Python where the format writes Python; without text, unless `with_text`."""
        schema = declared if with_text else _without_text(declared, tool.schema)
        if schema is False:
            return NOTHING
        written: Expr = Json(text_of(within(schema, tool.schema)))
        if self.paths.python_values:
            values = PythonValues(tool.schema, noting(tool, self.note))
            start = values.value(schema)
            written = choice(written, values.rules(start)) if start != NOTHING else written
        return written

    def _raw(self, tool: Tool, name: str, declared: Any, edge: Edge, echoed: str) -> Expr:
        """Text as it is, up to its closing marker."""
        texts = _enumerated(declared)
        if texts is not None:
            for each in texts:
                if edge.text in each:
                    self.note(
                        f"{tool.name}: a value of {name!r} contains the marker that would end it, and cannot be written"
                    )
            return seq(choice(*(Lit(each) for each in texts if edge.text not in each)), self.marker(edge), Lit(echoed))
        kept = sorted({"minLength", "maxLength", "pattern", "format"} & _text_keywords(declared))
        if kept:
            self.note(f"{tool.name}: {', '.join(kept)} of {name!r} is not enforced on raw text")
        found = []
        for trigger in self.rows[edge.source]:
            shape = self.spec.terminals.get(trigger)
            if isinstance(shape, Literal):
                found.append(literal_pattern(shape.text + echoed))
        forbidden = Forbidden(tuple(dict.fromkeys(found)))
        marker = self.marker(edge)
        if isinstance(marker, Token):
            return seq(Text(forbidden), marker, Lit(echoed))
        return Text(forbidden, edge.text + echoed)


def _is_free(raw: Expr) -> bool:
    head = raw.parts[0] if isinstance(raw, Seq) and raw.parts else raw
    return isinstance(head, Text)


def _enumerated(schema: Any) -> list[str] | None:
    """The texts that a value may be, where the schema lists them."""
    if not isinstance(schema, Mapping):
        return None
    if "const" in schema:
        return [schema["const"]] if isinstance(schema["const"], str) else []
    if isinstance(schema.get("enum"), list):
        return [each for each in schema["enum"] if isinstance(each, str)]
    return None


def _text_keywords(schema: Any) -> set[str]:
    return {key for key, _ in keywords(schema)}


def _without_text(schema: Any, root: Mapping[str, Any]) -> Any:
    """The schema of the values that are not text; False where there are none."""
    types = types_of(schema, root)
    if types is None:
        rest = ["integer", "number", "boolean", "null", "array", "object"]
        return {**schema, "type": rest} if isinstance(schema, Mapping) and "$ref" not in schema else {"type": rest}
    if "string" not in types:
        return schema
    if types == TEXT_ONLY:
        return False
    if "enum" in schema:
        return {**schema, "enum": [each for each in schema["enum"] if not isinstance(each, str)]}
    if "type" in schema:
        return {**schema, "type": [each for each in schema["type"] if each != "string"]}
    for key in ("anyOf", "oneOf"):
        if key in schema:
            kept = [each for each in (_without_text(one, root) for one in schema[key]) if each is not False]
            return {**schema, key: kept} if kept else False
    return schema
