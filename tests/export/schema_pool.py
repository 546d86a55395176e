"""Schemas of tools as they are found in the wild, written and generated: what the export is measured on.

Strategy: a few dozen schemas in `schemas.json` show every way of writing that was seen (references, recursion,
alternatives beside properties, names of other languages for types, tuples, maps, old spellings).  The rest is generated
from a seed, in the manners of four kinds of sources: function lists of benchmarks, MCP servers, strict tools, and what
libraries print for nested and recursive classes.
"""

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer"}
WORDS = ("query", "path", "user_id", "limit", "offset", "tags", "filters", "start_date", "units", "city", "recursive",
         "content", "options", "mode", "items", "threshold", "x-y", "max_results", "email", "url", "naïve", "a", "b",
         "ab", "abc")  # fmt: skip


def said_nothing(*required: str, **properties: Any) -> dict[str, Any]:
    """An object that says nothing of further names."""
    return {"type": "object", "properties": properties, "required": list(required)}


def nested(depth: int, array: bool = False) -> dict[str, Any]:
    """Objects or lists in each other."""
    found = TEXT
    for _ in range(depth):
        found = {"type": "array", "items": found} if array else {"type": "object", "properties": {"a": found}}
    return found


def chained(count: int) -> dict[str, Any]:
    """Definitions that refer to each other in a row."""
    rows = {f"d{at}": {"type": "object", "properties": {"a": {"$ref": f"#/$defs/d{at + 1}"}}} for at in range(count)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**rows, f"d{count}": TEXT}}


WRITTEN: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "schemas.json").read_text(encoding="utf-8"))
# What is not JSON Schema, so that the judge reads it otherwise: there the normal form is the judge.
READ_OTHERWISE = {"types of another language", "upper case", "empty enum", "required is a word", "old tuple",
                  "old exclusive"}  # fmt: skip


def standard(schema: Any) -> Any:
    """A schema with the names of JSON Schema for its types, and without `$schema`."""
    if isinstance(schema, list):
        return [standard(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: standard(value) for key, value in schema.items() if key not in ("$schema", "title", "description")}
    said = {"dict": "object", "float": "number"}
    if isinstance(made.get("type"), str):
        made["type"] = said.get(made["type"], made["type"])
    return made


def pool(size: int = 420, seed: int = 20) -> dict[str, dict[str, Any]]:
    """Schemas by name: all that are written, and as many generated ones as are wanted."""
    rng = random.Random(seed)
    made = dict(WRITTEN)
    kinds: list[Callable[[random.Random], dict[str, Any]]] = [_benchmark, _server, _strict, _classes]
    while len(made) < size:
        kind = kinds[len(made) % len(kinds)]
        made[f"{kind.__name__.strip('_')} {len(made)}"] = kind(rng)
    return made


def _names(rng: random.Random, most: int) -> list[str]:
    return rng.sample(WORDS, rng.randint(1, most))


def _some(rng: random.Random, names: list[str]) -> list[str]:
    return [name for name in names if rng.random() < 0.5]


def _benchmark(rng: random.Random) -> dict[str, Any]:
    """As the function lists of benchmarks have them: flat, with Python's names for types, and sloppy."""
    names = [name for name in _names(rng, 6) if name.isidentifier()] or ["a"]
    kinds = ["string", "integer", "float", "boolean", "array", "dict", "enum"]
    made: dict[str, Any] = {}
    for name in names:
        kind = rng.choice(kinds)
        made[name] = {"type": kind, "description": f"The {name}."}
        if kind == "array":
            made[name]["items"] = {"type": rng.choice(["string", "integer", "float"])}
        elif kind == "dict":
            made[name]["properties"] = {each: {"type": rng.choice(["string", "float"])} for each in _names(rng, 2)}
        elif kind == "enum":
            made[name] = {"type": "string", "enum": rng.sample(["celsius", "kelvin", "metric", "a b", "É"], 3)}
        if rng.random() < 0.2:
            made[name]["default"] = None
    return {"type": "dict", "properties": made, "required": _some(rng, names)}


def _server(rng: random.Random) -> dict[str, Any]:
    """As MCP servers print them: `$schema`, defaults, bounds, formats, sometimes open."""
    names = _names(rng, 8)
    made = said_nothing(*_some(rng, names), **{name: _leaf(rng, 2) for name in names})
    made["$schema"] = "http://json-schema.org/draft-07/schema#"
    if rng.random() < 0.6:
        made["additionalProperties"] = rng.random() < 0.2
    return made


def _strict(rng: random.Random) -> dict[str, Any]:
    """As strict tools must be: all required, closed, optional ones as null."""
    names = _names(rng, 5)
    properties = {}
    for name in names:
        leaf = _leaf(rng, 1)
        properties[name] = {"anyOf": [leaf, {"type": "null"}]} if rng.random() < 0.3 else leaf
    return {**said_nothing(*names, **properties), "additionalProperties": False}


def _classes(rng: random.Random) -> dict[str, Any]:
    """As libraries print classes: definitions, references, unions, recursion."""
    kinds = [f"Model{at}" for at in range(rng.randint(1, 4))]
    defs = {}
    for kind in kinds:
        names = _names(rng, 4)
        properties: dict[str, Any] = {}
        for name in names:
            chance = rng.random()
            other = {"$ref": f"#/$defs/{rng.choice(kinds)}"}
            if chance < 0.2:
                properties[name] = {"type": "array", "items": other}
            elif chance < 0.4:
                properties[name] = {"anyOf": [other, {"type": "null"}], "default": None}
            else:
                properties[name] = {**_leaf(rng, 1), "title": name.title()}
        defs[kind] = {"type": "object", "title": kind, "properties": properties, "required": _required(rng, properties)}
    names = _names(rng, 3)
    root = {name: {"$ref": f"#/$defs/{rng.choice(kinds)}"} if rng.random() < 0.5 else _leaf(rng, 1) for name in names}
    return {"$defs": defs, "type": "object", "properties": root, "required": _required(rng, root)}


def _required(rng: random.Random, properties: dict[str, Any]) -> list[str]:
    return [name for name, each in properties.items() if "$ref" not in each and rng.random() < 0.7]


def _leaf(rng: random.Random, depth: int) -> dict[str, Any]:
    leaves: list[Callable[[], dict[str, Any]]] = [
        lambda: dict(TEXT),
        lambda: {**TEXT, "description": "Any text."},
        lambda: {**TEXT, "minLength": 1, "maxLength": rng.choice([8, 64, 200])},
        lambda: {**TEXT, "enum": rng.sample(["asc", "desc", "none", "two words", "é"], rng.randint(1, 4))},
        lambda: {**TEXT, "format": rng.choice(["date", "date-time", "uri", "email", "uuid"])},
        lambda: {
            **TEXT,
            "pattern": rng.choice(["^[a-z_]+$", "^#[0-9a-f]{6}$", r"^\d{4}-\d{2}$", "^.+@.+$", "^v[0-9]"]),
        },
        lambda: dict(COUNT),
        lambda: {**COUNT, "minimum": rng.randint(-5, 1), "maximum": rng.choice([10, 100, 65535])},
        lambda: {**COUNT, "exclusiveMinimum": 0},
        lambda: {"type": "number"},
        lambda: {"type": "number", "minimum": 0, "maximum": 1},
        lambda: {"type": "boolean", "default": False},
        lambda: {"const": rng.choice(["fixed", 3, True])},
        lambda: {"type": ["string", "null"]},
        lambda: {"anyOf": [dict(TEXT), dict(COUNT)]},
    ]
    deep: list[Callable[[], dict[str, Any]]] = [
        lambda: {"type": "array", "items": _leaf(rng, depth - 1)},
        lambda: {"type": "array", "items": _leaf(rng, depth - 1), "minItems": rng.randint(0, 2), "maxItems": 5},
        lambda: {"type": "object", "additionalProperties": _leaf(rng, depth - 1)},
        lambda: said_nothing(*_some(rng, names := _names(rng, 3)), **{name: _leaf(rng, depth - 1) for name in names}),
    ]
    return rng.choice(leaves if depth <= 0 or rng.random() < 0.65 else deep)()


def values(form: dict[str, Any], rng: random.Random, count: int) -> Iterator[Any]:
    """Random values of a normal form; what patterns and formats ask for is not always met."""
    for _ in range(count):
        yield _value(form, form.get("$defs", {}), rng, 0)


_PATTERNED = ("abc", "a", "ABC-12", "x 7", "123.45", "abcbc", "a1b2c3", "#a1b2c3", "2024-05", "me@example.org", "v2x",
              "x-a",               "s_1", "f00ba4")  # fmt: skip
_FORMATS = {"date": "2024-02-29", "uuid": "123e4567-e89b-12d3-a456-426614174000", "date-time": "2024-02-29T10:00:00Z",
            "email": "me.too@mail.example.org", "uri": "https://example.org/a?b=c#d", "ipv4": "10.0.0.1",
            "time": "10:00:00Z"}  # fmt: skip
_TEXTS = ("", "Paris", 'a "quoted" \\ one', "naïve ☕ 🎉", "x\ny\tz", "<tag>", "true", "12", "a/b", "é", "xy")


def _value(schema: Any, defs: dict[str, Any], rng: random.Random, depth: int) -> Any:
    if schema is True or schema == {}:
        return rng.choice((None, True, 3, "any", [1], {"k": "v"}))
    if "$ref" in schema:
        return _value(defs[schema["$ref"].removeprefix("#/$defs/")], defs, rng, depth + 1)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "anyOf" in schema:
        options = schema["anyOf"]
        flat = [each for each in options if each.get("type") not in ("object", "array") and "$ref" not in each]
        return _value(rng.choice(flat if flat and depth > 6 else options), defs, rng, depth + 1)
    kind = schema["type"]
    if kind == "string":
        if "format" in schema:
            return _FORMATS.get(schema["format"], "x")
        if "pattern" in schema:
            return rng.choice(_PATTERNED)
        return rng.choice(_TEXTS).ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 99)]
    if kind in ("integer", "number"):
        return _number(schema, kind, rng)
    if kind in ("boolean", "null"):
        return rng.random() < 0.5 if kind == "boolean" else None
    if kind == "array":
        least, most = schema.get("minItems", 0), schema.get("maxItems", 99)
        first = schema.get("prefixItems", [])
        size = min(most, least + (rng.choice((0, 1, 2, len(first))) if depth < 5 else 0))
        items = [first[at] if at < len(first) else schema.get("items", True) for at in range(size)]
        return [_value(each, defs, rng, depth + 1) for each in items]
    required = schema.get("required", [])
    names = [
        name
        for name, each in schema.get("properties", {}).items()
        if each is not False and (name in required or (rng.random() < 0.5 and depth < 5))
    ]
    made = {name: _value(schema["properties"][name], defs, rng, depth + 1) for name in names}
    further = schema.get("additionalProperties", True)
    if further is not False and (rng.random() < 0.4 or len(made) < schema.get("minProperties", 0)):
        begins = {name[:1] for name in schema.get("properties", {})}
        free = [name for name in ("zz", "further", "q", "~") if name[0] not in begins]
        made.setdefault(rng.choice(free), _value(further, defs, rng, depth + 1))
    for pattern, each in schema.get("patternProperties", {}).items():
        made["x-k" if "x-" in pattern else "s_k"] = _value(each, defs, rng, depth + 1)
    return made


def _number(schema: dict[str, Any], kind: str, rng: random.Random) -> Any:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -1000))
    high = schema.get("maximum", schema.get("exclusiveMaximum", max(low + 10, 100000)))
    if kind == "integer":
        return rng.randint(low, high)
    found = rng.choice((low, high, (low + high) / 2, round(rng.uniform(low, high), 3)))
    if found == schema.get("exclusiveMinimum") or found == schema.get("exclusiveMaximum"):
        return (low + high) / 2
    return found


def spoiled(value: Any, rng: random.Random) -> Any:
    """The value with something changed in it, which may or may not fit."""
    if isinstance(value, dict) and value and rng.random() < 0.75:
        name = rng.choice(sorted(value))
        chance = rng.random()
        if chance < 0.3:
            return {key: each for key, each in value.items() if key != name}
        if chance < 0.4:
            return {**value, "zz": 1}
        return {**value, name: spoiled(value[name], rng)}
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return [*value[:at], *([spoiled(value[at], rng)] if rng.random() < 0.7 else []), *value[at + 1 :]]
    if isinstance(value, str) and rng.random() < 0.5:
        return rng.choice((value + "!", value[:-1], value * 3, value.upper()))
    if isinstance(value, int) and rng.random() < 0.5:
        return rng.choice((value + 1, -value - 1, value * 1000, value + 0.5))
    return rng.choice((None, True, 3, -2.5, "odd", [1], {}, {"k": 1}, "", 10**25))
