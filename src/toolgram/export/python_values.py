"""Values and keyword arguments in Python's notation, from a JSON Schema. No engine has this language built in.

Strategy: a schema becomes rules of common expressions, one for each kind of value, so that every engine can express
them.  The rules enforce types, enumerations, constants, properties, `required`, `additionalProperties`, items, `anyOf`
and `oneOf`.  Notes name what is left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from toolgram.export.expressions import (
    NOTHING,
    Chars,
    Choice,
    Expr,
    Lit,
    Member,
    Members,
    Ref,
    Rules,
    Seq,
    Star,
    choice,
    members_in_turn,
    optional,
    seq,
    star,
)
from toolgram.parameters import resolve

Note = Callable[[str], object]

_ENFORCED = frozenset(
    {"type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "$ref",
     "$defs", "definitions"}
)  # fmt: skip
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_DIGITS = "0123456789"
_FIRST = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
_MOST_RULES = 200
_MOST_LISTED = 256  # numbers between bounds
LEAVES = ("py_string", "py_integer", "py_number")  # that every target writes in its own way
ANY = "any"
BASE: dict[str, Expr] = {
    "integer": Ref("py_integer"),
    "number": Ref("py_number"),
    "boolean": Choice((Lit("True"), Lit("False"))),
    "null": Lit("None"),
    "string": Ref("py_string"),
    "array": seq(Lit("["), optional(seq(Ref(ANY), star(seq(Lit(", "), Ref(ANY))))), Lit("]")),
    "object": seq(Lit("{"), optional(seq(Ref("pair"), star(seq(Lit(", "), Ref("pair"))))), Lit("}")),
    "pair": seq(Ref("py_string"), Lit(": "), Ref(ANY)),
    ANY: Choice(tuple(Ref(kind) for kind in ("string", "number", "boolean", "null", "array", "object"))),
}
_JSON_WORDS: dict[str, Expr] = {"boolean": Choice((Lit("true"), Lit("false"))), "null": Lit("null")}
KINDS = ("string", "integer", "number", "boolean", "null", "array", "object")


class PythonValues:
    """Rules for the values of one schema. `value` gives a reference; `rules` is the language with all of them."""

    def __init__(self, root: Mapping[str, Any], note: Note, json_words: bool = False) -> None:
        self.root, self.note = root, note
        self.json_words = json_words  # `true` and `null`, for templates that print values as JSON
        self.made: dict[str, Expr] = BASE | (_JSON_WORDS if json_words else {})
        self.named: dict[str, str] = {}  # references that have a rule

    def rules(self, start: Expr) -> Rules:
        """The language that begins with `start`."""
        return Rules("start", (("start", start), *self._used(start)))

    def _used(self, start: Expr) -> list[tuple[str, Expr]]:
        used: dict[str, Expr] = {}
        pending = list(_refs(start))
        while pending:
            name = pending.pop()
            if name not in LEAVES and name not in used:
                used[name] = self.made[name]
                pending += _refs(self.made[name])
        return list(used.items())

    def value(self, schema: Any) -> Expr:
        """How a value of this schema is written."""
        if schema is True or schema == {}:
            return Ref(ANY)
        if not isinstance(schema, Mapping):
            return NOTHING
        reference = schema.get("$ref")
        if reference is not None:
            return self._reference(str(reference))
        extra = sorted(set(schema) - _ENFORCED - _BOUNDS)
        if extra:
            self.note(f"{', '.join(extra)} of a Python value is not enforced")
        if "const" in schema:
            return self._constant(schema["const"])
        if "enum" in schema:
            return choice(*(self._constant(each) for each in schema["enum"]))
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return choice(*(self.value(each) for each in schema[key]))
        named = schema.get("type", ("object",) if "properties" in schema else KINDS)
        kinds = [named] if isinstance(named, str) else list(named)
        if "number" in kinds and "integer" in kinds:
            kinds.remove("integer")
        return choice(*(self._kind(kind, schema) for kind in kinds))

    def _constant(self, value: Any) -> Expr:
        """One value, in either kind of quotes."""
        if self.json_words:
            return Lit(json.dumps(value, ensure_ascii=False))
        return choice(Lit(python_text(value)), Lit(repr(value)))

    def _reference(self, reference: str) -> Expr:
        if reference not in self.named:
            if len(self.named) > _MOST_RULES:
                return Ref(ANY)
            name = f"ref_{len(self.named)}"
            self.named[reference] = name
            self.made[name] = self.value(resolve(reference, self.root))
        return Ref(self.named[reference])

    def _kind(self, kind: str, schema: Mapping[str, Any]) -> Expr:
        if kind in ("integer", "number") and _BOUNDS & set(schema):
            return self._bounded(kind, schema)
        if kind == "array" and "items" in schema:
            item = self.value(schema["items"])
            return seq(Lit("["), optional(seq(item, star(seq(Lit(", "), item)))), Lit("]"))
        if kind == "object" and ("properties" in schema or schema.get("additionalProperties") not in (None, True)):
            body = members_in_turn(self.members(schema, self._constant, Ref("py_string"), ": ", ", "))
            may_be_empty = not schema.get("required")
            return seq(Lit("{"), optional(body) if may_be_empty else body, Lit("}"))
        return Ref(kind)

    def _bounded(self, kind: str, schema: Mapping[str, Any]) -> Expr:
        """Whole numbers between bounds, listed where they are few."""
        least, most = schema.get("minimum"), schema.get("maximum")
        exact = not {"exclusiveMinimum", "exclusiveMaximum"} & set(schema)
        whole = range(least, most + 1) if isinstance(least, int) and isinstance(most, int) else range(0)
        if kind == "integer" and exact and 0 < len(whole) <= _MOST_LISTED:
            return choice(*(Lit(str(number)) for number in whole))
        self.note(f"the bounds of a {kind} in a Python value are not enforced")
        return Ref(kind)

    def members(
        self, schema: Mapping[str, Any], key: Callable[[str], Expr], other: Expr, equals: str, separator: str
    ) -> Members:
        """The members of an object, or the keyword arguments of a call."""
        required = set(schema.get("required", ()))
        found: list[Member] = []
        properties = dict(schema.get("properties", {}))
        for name in sorted(required - set(properties)):
            properties[name] = schema.get("additionalProperties", True)
        for name, declared in properties.items():
            written = seq(key(name), Lit(equals), self.value(declared))
            found.append(Member(name, written, seq(Lit(separator), written), name in required))
        beyond = schema.get("additionalProperties", True)
        if beyond is not False:
            keys = Chars(other.first, other.rest, other.most, tuple(properties)) if isinstance(other, Chars) else other
            if properties and not isinstance(other, Chars):
                return Members(tuple(found), False)  # there is no short expression for a string that is none of several
            written = seq(keys, Lit(equals), self.value(beyond))
            found.append(Member("", written, seq(Lit(separator), written), False))
        return Members(tuple(found), False)


def _refs(expr: Expr) -> list[str]:
    found: list[str] = []
    pending = [expr]
    while pending:
        here = pending.pop()
        if isinstance(here, Ref):
            found.append(here.name)
        pending += children(here)
    return found


def children(expr: Expr) -> list[Expr]:
    """The expressions directly inside one."""
    match expr:
        case Seq():
            return list(expr.parts)
        case Choice():
            return list(expr.options)
        case Star():
            return [expr.body]
        case Members():
            return [each for member in expr.members for each in (member.first, member.later)]
        case Rules():
            return [body for _, body in expr.rules]
    return []


def python_text(value: Any) -> str:
    """A JSON value as Python writes it, with double quotes."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(char if char.isprintable() else _escape(char) for char in escaped) + '"'
    if isinstance(value, list):
        return f"[{', '.join(python_text(each) for each in value)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{python_text(key)}: {python_text(each)}' for key, each in value.items())}}}"
    return repr(value)


def _escape(char: str) -> str:
    code = ord(char)
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    return short or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}")


def keyword_arguments(schema: Mapping[str, Any], note: Note, json_words: bool = False) -> tuple[Expr, bool]:
    """The arguments between the parentheses of a call, and whether there may be none."""
    values = PythonValues(schema, note, json_words)
    names = Chars(_FIRST, _FIRST + _DIGITS, 32)
    members = values.members(schema, Lit, names, "=", ", ")
    for member in members.members:
        if member.name and not member.name.isidentifier():
            note(f"the parameter {member.name!r} is not a Python name and cannot be written")
    usable = Members(tuple(each for each in members.members if not each.name or each.name.isidentifier()), True)
    lost = any(each.required and each not in usable.members for each in members.members)
    body: Expr = NOTHING if lost or not usable.members else usable
    extra = sorted(set(schema) - _ENFORCED)
    if extra:
        note(f"{', '.join(extra)} of Python arguments is not enforced")
    return (values.rules(body) if body != NOTHING else body), not any(each.required for each in members.members)
