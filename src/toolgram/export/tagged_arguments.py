"""Arguments between markers: each named argument as an expression, with a value of its declared type.

Strategy: between two places where an argument may begin is a small automaton of its own (the key, the markers, the
value, its end). It is solved for every parameter. The declared type decides what a value may be, as it does in the
parser: text up to its marker, a literal, or either.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple, Self, cast

from toolgram.errors import ToolgramError
from toolgram.export import expressions as ex
from toolgram.export.arguments import keyword_arguments, schema_text
from toolgram.export.elements import Elements
from toolgram.export.markers import Tokens
from toolgram.export.notations import MIXED, PYTHON, WORDS, notated
from toolgram.export.requests import Parameters
from toolgram.export.solving import solve
from toolgram.export.texts import WORD, characters_of, rest_of
from toolgram.export.values import Values, alternatives, text_of_schema
from toolgram.islands.escapes import escaped
from toolgram.limits import MAX_KEPT_SCHEMA, MOST_KEPT_SCHEMAS
from toolgram.observing.observed import Edge, ObservedPaths
from toolgram.program.values import SURE_MARKER
from toolgram.spec.data import Literal, Run, Spec, rows_of


def noting(note: ex.Note) -> ex.Note:
    """Return a function that adds notes about the function whose arguments are written."""
    return lambda words: note(f"{ex.ANY_NAME}: {words}")


class _Place(NamedTuple):
    """A state inside an argument; `echoed` is True after a marker that repeats the key."""

    state: str
    echoed: bool = False


class ArgumentWriter:
    """Writes the arguments of a function in one format. The notes have a placeholder for its name."""

    def __init__(self, spec: Spec, paths: ObservedPaths, note: ex.Note, tokens: Tokens) -> None:
        self.spec, self.paths, self.note, self.tokens = spec, paths, note, tokens
        self.rows = rows_of(spec)
        self.skeleton = cache(self._skeleton)
        self.values: dict[tuple[Edge, str], ex.Expr] = {}
        self.same: set[ex.Expr] = set()  # parts of skeletons that no argument changes

    def noting(self, note: ex.Note) -> Self:
        """Return a writer with the same skeletons, whose notes are those of another request."""
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__, note=note)
        return found

    def no_arguments(self, parameters: Parameters) -> ex.Expr:
        """Return the empty text if a call may have no arguments."""
        needs_some = all(form.get("required") or form.get("minProperties") for form in parameters.forms)
        return ex.NOTHING if needs_some else ex.EMPTY

    def arguments(self, parameters: Parameters, state: str) -> ex.Expr:
        """Return the arguments as one value."""
        schema = parameters.schema
        if self.spec.states[state].python:
            notation = WORDS if self.paths.json_words else PYTHON
            body = keyword_arguments(parameters.forms, schema, noting(self.note), notation)
            return ex.seq(ex.Lit("("), body, ex.Lit(")"))
        return ex.Json(schema_text(schema, schema.get("$defs", {})), any_order=True)

    def members(
        self, parameters: Parameters, first: tuple[Edge, ...], later: tuple[Edge, ...], waiting: str
    ) -> ex.Expr:
        """Return all arguments of a function, each in its first and its later form."""
        return ex.choice(*(self._members_of(parameters, form, first, later, waiting) for form in parameters.forms))

    def _members_of(
        self, parameters: Parameters, schema: Mapping[str, Any], first: tuple[Edge, ...], later: tuple[Edge, ...],
        waiting: str,
    ) -> ex.Expr:  # fmt: skip
        """Return the arguments of one alternative of the schema."""
        note = noting(self.note)

        forms = [[self.skeleton(edge, waiting) for edge in edges] for edges in (first, later)]
        written = partial(self._argument, parameters, forms)
        required = set(schema.get("required", ()))
        properties: dict[str, Any] = {
            name: each for name, each in schema.get("properties", {}).items() if each is not False
        }
        extra = sorted(set(schema) - {"type", "properties", "required", "additionalProperties", "$defs"})
        if extra:
            note(f"{', '.join(extra)} of the parameters is not enforced on tagged arguments")
        found: list[ex.Member] = []
        for name, declared in properties.items():
            begun, again = written(name, declared)
            if begun == ex.NOTHING:
                note(f"the parameter {name!r} cannot be written in this format")
                if name in required:
                    return ex.NOTHING
                continue
            found.append(ex.Member(name, begun, name in required, None, again))
        beyond = True if "patternProperties" in schema else schema.get("additionalProperties", True)
        if beyond is not False and not _texts_and_others(parameters, beyond)[0]:
            note("further arguments would be read as text, so they are not allowed")
        elif beyond is not False:
            self.note("arguments that no schema declares are not counted: a name may be repeated")
            begun, again = written(tuple(properties), beyond)
            found.append(ex.Member("", begun, False, None, again))
            if begun == ex.NOTHING:  # the marker that closes the argument also has the key, which must be known
                others = [name for name in parameters.names if name not in schema.get("properties", {})]
                pairs = ((name, *written(name, beyond)) for name in others)
                found[-1:] = [ex.Member(name, begun, False, None, again) for name, begun, again in pairs]
        return ex.Members(tuple(found), True) if found else ex.NOTHING

    def _argument(
        self, parameters: Parameters, forms: list[list[ex.Expr]], key: str | tuple[str, ...], declared: Any
    ) -> tuple[ex.Expr, ex.Expr]:
        """Return an argument in its first and its later form."""
        slots: dict[ex.Expr, ex.Expr] = {}

        def in_slot(slot: ex.Slot) -> ex.Expr:
            if slot not in slots:
                slots[slot] = getattr(self, f"_{slot.part}")(parameters, *slot.at, key, declared)
            return slots[slot]

        known = {each: ex.filled(each, in_slot, self.same) for form in forms for each in form}
        first, later = (ex.choice(*map(known.__getitem__, form)) for form in forms)
        return first, later

    def _skeleton(self, edge: Edge, waiting: str) -> ex.Expr:
        """Return what all arguments have in common, from the edge that begins one to the place where another may begin.

        What depends on the argument is a slot.
        """

        def label(each: Edge) -> ex.Expr:
            if each != edge and self.spec.states[each.source].meaning == "value":
                return ex.Slot("value", (each,))
            if isinstance(self.spec.terminals.get(each.trigger), Run) and not each.text.isspace():
                return ex.Slot("key", (replace(each, text=""),))  # the same for all keys of the examples
            return self.tokens.written(each.text)

        def moves(place: _Place) -> Iterator[tuple[ex.Expr, _Place | None]]:
            if place == first:
                yield ex.seq(ex.Lit(edge.lead), label(edge)), _Place(edge.dest)
            if place.state == waiting:
                yield ex.EMPTY, None
                return
            for each in self.paths.edges.get(place.state, ()):
                if "close_arguments" in each.actions:
                    continue
                echoed = place.echoed and isinstance(self.spec.terminals.get(each.trigger), Run)
                source = self.spec.states[each.source]
                echoes = source.meaning == "value" and source.echo
                yield ex.seq(ex.Lit(each.lead), ex.EMPTY if echoed else label(each)), _Place(each.dest, echoes)

        first = _Place("")
        return solve(first, moves)

    def _key(self, _: Parameters, edge: Edge, key: str | tuple[str, ...], __: Any) -> ex.Expr:
        shape = cast(Run, self.spec.terminals[edge.trigger])
        if isinstance(key, str):
            return ex.Lit(key) if re.fullmatch(shape.pattern, key) else ex.NOTHING
        first, rest = characters_of(shape.first, WORD[:52] + "_"), characters_of(rest_of(shape), WORD)
        return ex.Chars(first, rest, 32, key)

    def _value(self, parameters: Parameters, edge: Edge, key: str | tuple[str, ...], declared: Any) -> ex.Expr:
        """Return a value, which is kept if only its own schema decides how it is written."""
        state, schema = self.spec.states[edge.source], schema_text(declared, {})
        if state.echo or state.typed not in READ_AS_TEXT_OR_JSON or not isinstance(key, str) or '"$ref"' in schema:
            return self._made_value(parameters, edge, key, declared)
        found = self.values.get((edge, schema))
        if found is None:
            notes: dict[str, None] = {}
            found = self.noting(notes.setdefault)._made_value(parameters, edge, key, declared)
            for words in notes:
                self.note(words)
            if not notes and len(schema) <= MAX_KEPT_SCHEMA and len(self.values) < MOST_KEPT_SCHEMAS:
                self.values[edge, schema] = found
        return found

    def _made_value(self, parameters: Parameters, edge: Edge, key: str | tuple[str, ...], declared: Any) -> ex.Expr:
        marker = self.tokens.written(edge.text)
        state = self.spec.states[edge.source]
        if state.typed not in READ_AS_TEXT_OR_JSON:
            if state.typed not in VALUE_WRITERS:
                raise ToolgramError(f"values that are tagged `{state.typed}` cannot be exported")
            written = VALUE_WRITERS[state.typed](self, parameters, key, declared)
            return written if edge.trigger == "value_end" else ex.seq(written, marker)
        if edge.trigger == "value_end":
            return self._literal(parameters, declared, with_text=not self._has_text_frame())
        if state.echo and not isinstance(key, str):
            return ex.NOTHING  # its closing marker repeats a key that is not known
        name = key if isinstance(key, str) else ""
        echoed = name if state.echo else ""  # the end of the marker; the state after it does not read it again
        if state.typed == "json":
            literal = self._literal(parameters, declared, with_text=not self._has_text_frame())
            return ex.seq(literal, marker, ex.Lit(echoed))
        texts, others = _texts_and_others(parameters, declared)
        if state.typed == "html" and any(form.get("type", "array") in ("array", "object") for form in others):
            self.note(f"{ex.ANY_NAME}: JSON of {name!r} has escapes, so it is written as text")
            return self._raw(parameters, name, {}, edge, echoed)
        free = [form for form in texts if not set(form) - {"type"}]  # which includes any value
        raw = ex.choice(*(self._raw(parameters, name, each, edge, echoed) for each in free[:1] or texts))
        head, _ = ex.split(raw)
        if state.typed == "text" or (isinstance(head, ex.Text) and head.within is None):
            return raw
        return ex.choice(raw, ex.seq(self._literal(parameters, declared, with_text=False), marker, ex.Lit(echoed)))

    def elements(self, parameters: Parameters, key: str | tuple[str, ...], declared: Any) -> ex.Expr:
        """Return a value with elements inside, up to the tag that closes it."""
        if not isinstance(key, str) and len(self.spec.notation) < 4:
            return ex.NOTHING  # that tag has a key that is not known
        elements = Elements(self.spec.notation, parameters.schema.get("$defs", {}), noting(self.note), self.tokens)
        return elements.argument(str(key), declared)

    def notated(self, parameters: Parameters, key: str | tuple[str, ...], declared: Any) -> ex.Expr:
        """Return a value in the format's own quotes."""
        opening, closing = self.spec.notation
        ends = {each.trigger for each in self.spec.transitions if "unclosed_value" in each.actions}
        shapes = [self.spec.terminals.get(trigger) for trigger in sorted(ends)]
        markers = tuple(shape.text for shape in shapes if isinstance(shape, Literal))
        values = Values(parameters.schema, noting(self.note), notated(opening, closing, markers, self.tokens))
        return values.alone_or_rules(values.value(declared))

    def _has_text_frame(self) -> bool:
        sources = [self.spec.states[edge.source] for edges in self.paths.edges.values() for edge in edges]
        return any(state.meaning == "value" and state.typed in ("", "text") for state in sources)

    def _literal(self, parameters: Parameters, declared: Any, with_text: bool) -> ex.Expr:
        """Return a value as JSON, or also as Python if the format writes it; without text, unless `with_text`."""
        texts, others = _texts_and_others(parameters, declared)
        schema = declared if with_text else others[0] if len(others) == 1 else {"anyOf": others}
        if not with_text and not others:
            return ex.NOTHING
        written: ex.Expr = ex.Json(schema_text(schema, parameters.schema.get("$defs", {})))
        forms = [*texts, *others] if with_text else others
        numbers = all(form.get("type") in ("integer", "number") for form in forms)
        if self.paths.python_values and not numbers:  # which Python writes as JSON does
            values = Values(parameters.schema, noting(self.note), MIXED)
            start = values.value(schema)
            written = ex.choice(written, values.rules(start)) if start != ex.NOTHING else written
        return written

    def _raw(self, parameters: Parameters, name: str, declared: Any, edge: Edge, echoed: str) -> ex.Expr:
        """Return unescaped text, up to its closing marker."""
        texts, marker = declared.get("enum"), self.tokens.written(edge.text)
        if texts is not None:
            texts = [escaped(each, self.spec.states[edge.source].typed) for each in texts]
            kept = [each for each in texts if edge.text not in each]
            if kept != texts:
                self.note(f"{ex.ANY_NAME}: a value of {name!r} contains the marker that ends it, and cannot be written")
            return ex.seq(ex.choice(*map(ex.Lit, kept)), marker, ex.Lit(echoed))
        within = text_of_schema(declared, noting(self.note))
        shapes = [self.spec.terminals.get(trigger) for trigger in self.rows[edge.source]]
        texts = [shape.text for shape in shapes if isinstance(shape, Literal) and self.tokens.is_text(shape.text)]
        if len(edge.text + echoed) < SURE_MARKER:
            self.note(f"a text value holds no {edge.text!r}, whatever comes after it")
        return self.tokens.text_until(edge.text + echoed, dict.fromkeys(text + echoed for text in texts), within)


READ_AS_TEXT_OR_JSON = ("", "text", "trimmed", "xml", "html", "json")
# Values with a notation of their own, by the tag of their state: each function writes the value of a parameter with
# this key and this declared schema.
VALUE_WRITERS: Mapping[str, Callable[[ArgumentWriter, Parameters, str | tuple[str, ...], Any], ex.Expr]] = {
    "elements": ArgumentWriter.elements,
    "notated": ArgumentWriter.notated,
}


def _texts_and_others(parameters: Parameters, declared: Any) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return the alternatives of a schema that are text, and those that are not. Any value is both."""
    texts: list[Mapping[str, Any]] = []
    others: list[Mapping[str, Any]] = []
    for form in alternatives(declared, parameters.schema.get("$defs", {})):
        if "enum" in form:
            for found, is_text in ((texts, True), (others, False)):
                if values := [each for each in form["enum"] if isinstance(each, str) == is_text]:
                    found.append({"enum": values})
        elif form == {}:
            texts.append(form)
            others += [{"type": kind} for kind in ("number", "boolean", "null", "array", "object")]
        else:
            (texts if form["type"] == "string" else others).append(form)
    return texts, others
