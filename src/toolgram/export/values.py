"""Values of a schema's normal form, as expressions that every target can write.

Strategy: a definition of the schema becomes a rule, every other part an expression. JSON and Python differ only in
their `Notation`, so there is one converter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from toolgram.export import expressions as ex
from toolgram.export.digits import integers, numbers
from toolgram.export.ecmascript import ALL, FORMATS, FORMS_ONLY, pattern_text, shortened
from toolgram.export.notations import JSON, MOST_IN_NAME, Notation
from toolgram.limits import MAX_BOUND_DIGITS, MOST_MULTIPLES


class Values:
    """The values of one normal form. `value` returns an expression, `rules` the language with all rules it uses."""

    def __init__(self, root: Mapping[str, Any], note: ex.Note, notation: Notation) -> None:
        self.definitions: Mapping[str, Any] = root.get("$defs", {})
        self.scope = json.dumps(self.definitions) if self.definitions else ""
        self.note, self.notation = note, notation
        self.made: dict[str, ex.Expr] = dict(notation.kinds)
        self.pending: list[str] = []

    def rules(self, start: ex.Expr) -> ex.Rules:
        """Return the language that begins with `start`."""
        self.finish()
        used: dict[str, ex.Expr] = {}
        pending = _refs(start) if self.made else []
        while pending:
            name = pending.pop()
            if name in self.made and name not in used:
                used[name] = self.made[name]
                pending += _refs(self.made[name])
        return ex.Rules("start", (("start", start), *used.items()))

    def alone_or_rules(self, start: ex.Expr) -> ex.Expr:
        """Return the language that begins with `start`, or the expression itself if it uses no rule."""
        while isinstance(start, ex.Ref) and start.name in self.notation.kinds:
            start = self.made[start.name]
        return self.rules(start) if _refs(start) else start

    def value(self, schema: Any) -> ex.Expr:
        """Return how a value of this schema is written."""
        if schema is True or schema == {}:
            return self.notation.ref("any")
        if not isinstance(schema, Mapping):
            return ex.NOTHING
        if "$ref" in schema:
            return self._reference(schema["$ref"].removeprefix("#/$defs/"))
        if "enum" in schema:
            return ex.choice(*(self.notation.constant(each) for each in schema["enum"]))
        if "anyOf" in schema:
            return ex.choice(*(self.value(each) for each in schema["anyOf"]))
        kind = schema.get("type", "any")
        if not set(schema) - {"type", "$defs"} or (kind == "object" and _is_any_object(schema)):
            return self.notation.ref(kind)
        made: ex.Expr = getattr(self, f"_{'number' if kind == 'integer' else kind}")(schema)  # each kind has a method
        return made

    def _reference(self, name: str) -> ex.Expr:
        if name not in self.made:
            self.made[name] = ex.NOTHING  # until `finish`
            self.pending.append(name)
        return ex.Ref(name, self.scope)

    def finish(self) -> None:
        """Make the definitions in use one by one, without recursion: a long chain of them may refer to each other."""
        while self.pending:
            name = self.pending.pop(0)
            self.made[name] = self.value(self.definitions[name])

    def _string(self, schema: Mapping[str, Any]) -> ex.Expr:
        text = text_of_schema(schema, self.note)
        return self.notation.ref("string") if text is None else self.notation.quote(text)

    def _number(self, schema: Mapping[str, Any]) -> ex.Expr:
        kind = schema["type"]
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        step = schema.get("multipleOf")
        if step is not None:
            if isinstance(step, int) and isinstance(low, int) and isinstance(high, int) and kind == "integer":
                multiples = range(-(-low // step) * step, high + 1, step)
                if len(multiples) <= MOST_MULTIPLES:
                    return ex.choice(*(ex.Lit(str(each)) for each in multiples))
            self.note(f"multipleOf {step} is not enforced")
        for bound in (low, high):
            if bound is not None and abs(bound) > 10**MAX_BOUND_DIGITS:
                self.note(f"bounds of more than {MAX_BOUND_DIGITS} digits are not enforced")
                return self.notation.ref(kind)
        if low is None and high is None:
            return self.notation.ref(kind)
        if kind == "integer":
            return integers(low, high)
        return numbers(low, "exclusiveMinimum" in schema, high, "exclusiveMaximum" in schema)

    def _array(self, schema: Mapping[str, Any]) -> ex.Expr:
        first = [self.value(each) for each in schema.get("prefixItems", ())]
        rest = self.value(schema["items"]) if "items" in schema else self.notation.ref("any")
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        separator, edge = self.notation.separator, self.notation.edge
        if most is not None:
            first = first[:most]
        more = None if most is None else most - max(len(first), 1)
        here = first or ([rest] if more is None or more >= 0 else [])
        if not here:
            return ex.seq(ex.Lit("["), edge, ex.Lit("]"))
        following = times(ex.seq(separator, rest), max(least - len(here), 0), more)
        for at in range(len(here) - 1, 0, -1):
            following = ex.seq(separator, here[at], following)
            following = following if at < least else ex.optional(following)
        body = ex.seq(here[0], following, edge)
        return ex.seq(ex.Lit("["), edge, body if least else ex.optional(body), ex.Lit("]"))

    def whole_object(self, schema: Mapping[str, Any]) -> ex.Expr:
        """Return the arguments of a call, whose members may be in any order."""
        forms = alternatives(schema, self.definitions)
        if any(set(each) <= {"type"} or "enum" in each or _is_any_object(each) for each in forms):
            return self.value(schema)
        return ex.choice(*(self._object(each, any_order=True) for each in forms))

    def _object(self, schema: Mapping[str, Any], any_order: bool = False) -> ex.Expr:
        found = self.members(schema, any_order)
        edge = self.notation.edge
        if not found.members:
            return ex.seq(ex.Lit("{"), edge, ex.Lit("}"))
        body = ex.seq(
            self._counted(schema, found) or (found if any_order else ex.members_in_turn(found, self.note)), edge
        )
        may_be_empty = not schema.get("required") and not schema.get("minProperties")
        return ex.seq(ex.Lit("{"), edge, ex.optional(body) if may_be_empty else body, ex.Lit("}"))

    def _counted(self, schema: Mapping[str, Any], found: ex.Members) -> ex.Expr | None:
        """Return the members of a map with a limited number of them."""
        least, most = schema.get("minProperties", 0), schema.get("maxProperties")
        if least <= len(schema.get("required", ())) + (1 if not schema.get("required") else 0) and most is None:
            return None
        if any(each.name for each in found.members):
            self.note("minProperties and maxProperties are not enforced beside properties")
            return None
        first = ex.choice(*(each.first for each in found.members))
        later = ex.choice(*(each.later for each in found.members))
        self.note("the names of a map are not counted apart: a name may be repeated")
        return ex.seq(first, times(later, max(least - 1, 0), None if most is None else max(most - 1, 0)))

    def members(self, schema: Mapping[str, Any], any_order: bool) -> ex.Members:
        """Return the members of an object."""
        key = self.notation.member_name
        separator, member = self.notation.separator, self.notation.member
        required = set(schema.get("required", ()))
        properties = schema.get("properties", {})
        values = {name: self.value(declared) for name, declared in properties.items()}
        found = [
            ex.Member(name, member(key(name), value), name in required, separator, None)
            for name, value in values.items()
            if value is not ex.NOTHING
        ]
        for pattern, declared in schema.get("patternProperties", {}).items():
            text = pattern_text(pattern)
            if text is None:
                self.note(f"the pattern {shortened(pattern)} of names is not enforced")
                text = ex.Star(ALL)
            found.append(ex.Member("", member(self.notation.quote(text), self.value(declared)), False, separator))
        further = schema.get("additionalProperties", True)
        if further is not False:
            other = member(self._other_name(schema, tuple(properties)), self.value(further))
            found.append(ex.Member("", other, False, separator))
        return ex.Members(tuple(found), any_order)

    def _other_name(self, schema: Mapping[str, Any], declared: tuple[str, ...]) -> ex.Expr:
        """Return a name that is not declared: one that begins with another character."""
        if schema.get("patternProperties"):
            self.note("a name that fits a pattern may have the value of one that fits none")
        names = schema.get("propertyNames", {})
        text = None
        if isinstance(names, Mapping) and names:
            forms = alternatives(names, self.definitions)
            if len(forms) == 1 and forms[0].get("type") == "string":
                text = text_of_schema(forms[0], self.note)
            if text is not None and declared:
                self.note("propertyNames is not enforced beside properties")
        if not declared:
            return self.notation.any_name() if text is None else self.notation.quote(text)
        if self.notation is JSON:
            return ex.OtherName(declared)
        if bare := self.notation.bare:
            first = other_beginnings(declared, bare, self.note)
            return ex.seq(first, ex.Repeat(bare, 0, MOST_IN_NAME - 1, is_length=True)) if first.ranges else ex.NOTHING
        return self.notation.quote(other_names(declared, self.note))


def other_beginnings(declared: Sequence[str], among: ex.Class, note: ex.Note) -> ex.Class:
    """Return the characters with which none of some names begins."""
    if declared:
        note("names that no schema declares begin with another character than those that are declared")
    return ex.Class(ex.without_characters(among.ranges, {ord(name[0]) for name in declared if name}))


def other_names(declared: Sequence[str], note: ex.Note) -> ex.Expr:
    """Return texts that differ from some names: those that begin with another character."""
    return ex.seq(other_beginnings(declared, ALL, note), ex.Star(ALL))


def text_of_schema(schema: Mapping[str, Any], note: ex.Note) -> ex.Expr | None:
    """Return the texts that a schema of the type `string` allows; None for any text."""
    found: ex.Expr | None = None
    if "pattern" in schema:
        found = pattern_text(schema["pattern"])
        if found is None:
            note(f"the pattern {shortened(schema['pattern'])} is not enforced")
    if form := schema.get("format"):
        if found is not None or form not in FORMATS:
            note(f"the format {form} is not enforced{' beside a pattern' * (found is not None)}")
        else:
            found = pattern_text(FORMATS[form])
            if form in FORMS_ONLY:
                note(f"the format {form} is enforced in its form, but not {FORMS_ONLY[form]}")
    return _with_length(found, schema, note)


def _with_length(found: ex.Expr | None, schema: Mapping[str, Any], note: ex.Note) -> ex.Expr | None:
    """Return texts with the limits on their length that a schema has."""
    low, high = schema.get("minLength", 0), schema.get("maxLength")
    if found is None:
        return ex.Repeat(ALL, low, high, True) if low or high is not None else None
    if not low and high is None:
        return found
    if isinstance(found, ex.Repeat) and isinstance(found.body, ex.Class):  # one class of characters, repeated
        most = min((each for each in (found.high, high) if each is not None), default=None)
        return ex.Repeat(found.body, max(low, found.low), most, True)
    if isinstance(found, ex.Star) and isinstance(found.body, ex.Class):
        return ex.Repeat(found.body, low, high, True)
    note(f"{'minLength and maxLength' if low and high else 'maxLength' if high else 'minLength'} is not enforced "
         "beside a pattern or a format")  # fmt: skip
    return found


def times(body: ex.Expr, low: int, high: int | None) -> ex.Expr:
    """Return an expression repeated from `low` to `high` times."""
    if body == ex.NOTHING:
        return ex.EMPTY if not low else ex.NOTHING
    if high == 0:
        return ex.EMPTY
    if (low, high) == (0, None):
        return ex.star(body)
    if (low, high) == (0, 1):
        return ex.optional(body)
    return ex.Repeat(body, low, high) if (low, high) != (1, 1) else body


def _is_any_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("additionalProperties") is True and not set(schema) - {"type", "additionalProperties", "$defs"}


def alternatives(schema: Any, definitions: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the alternative schemas for a value, without references and `anyOf` at the top."""
    found: list[Mapping[str, Any]] = []
    pending, seen = [schema], set()
    while pending:
        here = pending.pop(0)
        if not isinstance(here, Mapping):
            if here is True:
                found.append({})
        elif "$ref" in here:
            name = here["$ref"].removeprefix("#/$defs/")
            if name not in seen:
                seen.add(name)
                pending.insert(0, definitions[name])
        elif "anyOf" in here:
            pending[:0] = here["anyOf"]
        else:
            found.append({key: value for key, value in here.items() if key != "$defs"})
    return found


def _refs(expr: ex.Expr) -> list[str]:
    return [each.name for each in ex.inside(expr) if isinstance(each, ex.Ref)]
