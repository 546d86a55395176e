"""What each engine enforces of a JSON Schema, and the schema that it is given.

Strategy: a keyword that an engine refuses or ignores is removed, and a note says so.  The lists come from experiments
with the pinned versions.  The tests sample from every engine and check against the schema, so they find a keyword that
is listed and not enforced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolgram.export.patterns import for_engine
from toolgram.export.schemas import keywords, without

Note = Callable[[str], object]

_STRUCTURE = {"type", "enum", "const", "anyOf", "$ref", "$defs", "definitions", "properties", "required",
              "additionalProperties", "items"}  # fmt: skip
_KNOWN_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"}
ENFORCED: dict[str, frozenset[str]] = {
    "llguidance": frozenset(
        _STRUCTURE
        | {"oneOf", "allOf", "prefixItems", "minItems", "maxItems", "minLength", "maxLength", "pattern", "format",
           "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "patternProperties",
           "minProperties", "maxProperties"}
    ),
    "xgrammar": frozenset(
        _STRUCTURE
        | {"oneOf", "prefixItems", "minItems", "maxItems", "minLength", "maxLength", "pattern",
           "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    ),
}  # fmt: skip


def fitted(schema: Any, engine: str, note: Note) -> Any:
    """The part of a schema that this engine enforces; notes name the rest."""
    if not isinstance(schema, Mapping):
        return schema
    several = [value for key, value in keywords(schema) if key == "properties" and len(value) > 1]
    if len(several) > (len(schema.get("properties", ())) > 1):
        note("objects inside arguments are written in the order of their schema")
    kept = ENFORCED[engine]
    left = sorted({key for key, _ in keywords(schema)} - kept)
    if left:
        note(f"{engine} does not enforce {', '.join(left)} of a JSON Schema")
        schema = without(schema, left)
    schema = _with_patterns(schema, engine, note)
    if engine == "xgrammar":
        schema = _map(schema, _spelled_out)
    if engine == "llguidance":
        unknown = sorted({str(value) for key, value in keywords(schema) if key == "format"} - _KNOWN_FORMATS)
        if unknown:
            note(f"llguidance does not know the formats {', '.join(unknown)}")
            schema = _without_formats(schema)
        if any(key == "oneOf" for key, _ in keywords(schema)):
            note("llguidance reads oneOf as anyOf")
            schema = _any_for_one(schema)
    return schema


def _map(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    if isinstance(schema, list):
        return [_map(each, change) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("enum", "const", "default", "required"):
            made[key] = value
        elif key in ("properties", "patternProperties", "$defs", "definitions") and isinstance(value, Mapping):
            made[key] = {name: _map(each, change) for name, each in value.items()}
        else:
            made[key] = _map(value, change)
    return change(made)


def _with_patterns(schema: Any, engine: str, note: Note) -> Any:
    """Patterns in the form that the engine reads."""

    def change(one: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(one.get("pattern"), str):
            return one
        taken = for_engine(one["pattern"], engine)
        if taken is not None:
            return {**one, "pattern": taken}
        note(f"{engine} does not enforce the pattern {one['pattern']!r}")
        return {key: value for key, value in one.items() if key != "pattern"}

    return _map(schema, change)


def text_lengths(schema: Any) -> tuple[int, int | None] | None:
    """The minimum and maximum length of a text, where a schema says nothing else; None for any other schema.

    xgrammar counts characters but then allows none that JSON escapes, so the writers of rules count themselves.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "string" or len(schema) < 2:
        return None
    if not set(schema) <= {"type", "minLength", "maxLength"}:
        return None
    return schema.get("minLength", 0), schema.get("maxLength")


def note_escapes(schema: Any, note: Note) -> None:
    """Note the limits of xgrammar for the texts of a schema that it writes itself."""
    found = {key for key, _ in keywords(schema)}
    if "pattern" in found:
        note("xgrammar allows no character that JSON escapes in a text with a pattern")
    if {"minLength", "maxLength"} & found:
        note("xgrammar allows no character that JSON escapes in a text of limited length inside a list or an object")


def _spelled_out(one: dict[str, Any]) -> dict[str, Any]:
    """Constant lists and objects as schemas of their parts, because xgrammar allows no blanks in a constant.

    And any items after those of `prefixItems`: xgrammar allows none where the schema has no `items`.
    """
    if "prefixItems" in one and "items" not in one:
        return {**one, "items": {}}
    if "const" in one and isinstance(one["const"], list | dict):
        return _constant(one["const"])
    if not any(isinstance(each, list | dict) for each in one.get("enum", ())):
        return one
    plain = [each for each in one["enum"] if not isinstance(each, list | dict)]
    others = [_constant(each) for each in one["enum"] if isinstance(each, list | dict)]
    return {"anyOf": [*([{"enum": plain}] if plain else []), *others]}


def _constant(value: Any) -> dict[str, Any]:
    """The schema of one value, part by part."""
    if isinstance(value, dict):
        members = {key: _constant(each) for key, each in value.items()}
        return {"type": "object", "properties": members, "required": list(value), "additionalProperties": False}
    if isinstance(value, list):
        size = len(value)
        some = {"prefixItems": [_constant(each) for each in value]} if value else {}
        return {"type": "array", **some, "items": False, "minItems": size, "maxItems": size}
    return {"const": value}


def _without_formats(schema: Any) -> Any:
    return _map(schema, lambda one: {k: v for k, v in one.items() if k != "format" or v in _KNOWN_FORMATS})


def _any_for_one(schema: Any) -> Any:
    def change(one: dict[str, Any]) -> dict[str, Any]:
        if "oneOf" in one and "anyOf" not in one:
            return {("anyOf" if key == "oneOf" else key): value for key, value in one.items()}
        return one

    return _map(schema, change)
