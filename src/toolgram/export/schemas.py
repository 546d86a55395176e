"""The tools and schemas of a request. They are checked once, and an error says in one sentence what is wrong.

Strategy: the engines get a schema almost unchanged.  `additionalProperties` is added wherever an object has properties,
because JSON Schema and the engines differ in its default.  The writers note what an engine does not enforce.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from toolgram.errors import ToolgramError
from toolgram.parameters import resolve
from toolgram.tools import DeclaredTool, read_tools

_TYPES = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
_SCHEMAS = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_MOST_DEPTH = 64
_MOST_PARTS = 200_000
_UNICODE_CLASS = re.compile(r"\\[pP]\{[^}]*\}").sub  # JSON Schema has these, and Python does not
PLAIN_OBJECT = frozenset({"type", "properties", "required", "additionalProperties", "$defs", "definitions"})
ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$schema", "$id",
     "$comment", "strict", "nullable"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared function: its name, and the schema of its arguments as it will be exported."""

    name: str
    schema: Mapping[str, Any]


def tools_of(tools: Iterable[Any] | None) -> list[Tool]:
    """The tools of a request. Raises ToolgramError for one that cannot be exported."""
    found: dict[str, Tool] = {}
    for at, tool in enumerate(read_tools(tools)):
        name = tool.name
        if not tool.is_function:
            continue
        if not name.isascii() and any("\ud800" <= char <= "\udfff" for char in name):
            raise ToolgramError(f"tools[{at}]: the name {name!r} holds half a character (a lone surrogate)")
        if name in found:
            raise ToolgramError(f"tools[{at}]: the function {name!r} is declared twice")
        found[name] = Tool(name, _arguments(tool, f"the parameters of {name!r}"))
    return list(found.values())


def _arguments(tool: DeclaredTool, where: str) -> Mapping[str, Any]:
    schema = tool.parameters
    if tool.strict is False or schema is None:
        check_schema(schema or {}, where)
        return {"type": "object", "additionalProperties": True}
    checked = explicit(check_schema(schema, where), tool.strict is True)
    if checked.get("type", "object") != "object":
        raise ToolgramError(f"{where} are not an object: `type` is {checked.get('type')!r}")
    return {"type": "object", **checked}


def check_schema(schema: Any, where: str) -> Mapping[str, Any]:
    """The schema, if it is valid. Raises ToolgramError that says where it is not."""
    if too_large := _too_large(schema):
        raise ToolgramError(f"{where}: not a JSON Schema: {too_large}")
    try:
        json.dumps(schema, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolgramError(f"{where}: not a JSON Schema: {error}") from None
    if not isinstance(schema, Mapping):
        raise ToolgramError(f"{where}: not a JSON Schema: an object is needed, not {type(schema).__name__}")
    for problem in _problems(schema, schema, "#", 0):
        raise ToolgramError(f"{where}: not a valid JSON Schema: {problem}")
    return schema


def _too_large(value: Any) -> str:
    """Why a schema is not worked through, "" where it is: a constant counts as any other part, and a part that is
    shared as often as it stands there."""
    level, parts = [value], 1
    for _ in range(2 * _MOST_DEPTH):
        inner = (
            part
            for each in level
            if isinstance(each, Mapping | list)
            for part in (each.values() if isinstance(each, Mapping) else each)
        )
        level = list(islice(inner, _MOST_PARTS + 1))
        parts += len(level)
        if parts > _MOST_PARTS:
            return f"it has more than {_MOST_PARTS:,} parts"
        if not level:
            return ""
    return f"it nests deeper than {2 * _MOST_DEPTH} lists and objects"


def _problems(schema: Any, root: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, Mapping):
        yield f"{path} is no schema"
        return
    if depth > _MOST_DEPTH:
        yield f"{path} is nested too deeply"
        return
    named = schema.get("type", [])
    for each in named if isinstance(named, list) else [named]:
        if not isinstance(each, str) or each not in _TYPES:
            yield f"{path}/type: {each!r} is no type (one of {', '.join(sorted(_TYPES))})"
    if "enum" in schema and not (isinstance(schema["enum"], list) and schema["enum"]):
        yield f"{path}/enum is no list of values"
    required = schema.get("required", [])
    if not isinstance(required, list) or not all(isinstance(each, str) for each in required):
        yield f"{path}/required is no list of names"
    for key in ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"):
        if key in schema and (not isinstance(schema[key], int) or isinstance(schema[key], bool) or schema[key] < 0):
            yield f"{path}/{key} is no count"
    if "pattern" in schema:
        try:
            re.compile(_UNICODE_CLASS("x", schema["pattern"]))
        except (re.error, TypeError, RecursionError):
            yield f"{path}/pattern is no regular expression"
    if "$ref" in schema and resolve(schema["$ref"], root) is None:
        yield f"{path}/$ref leads nowhere: {schema['$ref']!r}"
    elif "$ref" in schema and _is_circle(schema["$ref"], root):
        yield f"{path}/$ref leads back to itself: {schema['$ref']!r}"
    for key in _SCHEMAS:
        if key in schema:
            yield from _problems(schema[key], root, f"{path}/{key}", depth + 1)
    for key in _LISTS:
        if key in schema:
            if not isinstance(schema[key], list) or not schema[key]:
                yield f"{path}/{key} is no list of schemas"
                continue
            for at, each in enumerate(schema[key]):
                yield from _problems(each, root, f"{path}/{key}/{at}", depth + 1)
    for key in _MAPS:
        if key in schema:
            if not isinstance(schema[key], Mapping):
                yield f"{path}/{key} is no mapping of schemas"
                continue
            for name, each in schema[key].items():
                yield from _problems(each, root, f"{path}/{key}/{name}", depth + 1)


def _is_circle(reference: str, root: Mapping[str, Any]) -> bool:
    """Whether a reference leads back to itself through nothing but references and `allOf`."""
    seen: set[str] = set()
    pending = [reference]
    while pending:
        target = resolve(pending.pop(), root)
        parts = [target, *target.get("allOf", ())] if isinstance(target, Mapping) else []
        further = [each["$ref"] for each in parts if isinstance(each, Mapping) and isinstance(each.get("$ref"), str)]
        if reference in further:
            return True
        pending += [each for each in further if each not in seen]
        seen.update(further)
    return False


def explicit(schema: Any, strict: bool) -> Any:
    """The schema without annotations, and with `additionalProperties` wherever an object has properties.

    `allOf` becomes one schema where its parts do not conflict, because few engines support it.
    """
    return _explicit(schema, strict, schema if isinstance(schema, Mapping) else {}, frozenset())


def _explicit(schema: Any, strict: bool, root: Mapping[str, Any], within_refs: frozenset[str]) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    if "allOf" in schema and (joined := _joined(schema, root, within_refs)) is not None:
        schema, within_refs = joined

    def inner(schema: Any) -> Any:
        return _explicit(schema, strict, root, within_refs)

    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ANNOTATIONS:
            continue
        if key in _SCHEMAS:
            made[key] = inner(value)
        elif key in _LISTS and isinstance(value, list):
            made[key] = [inner(each) for each in value]
        elif key in _MAPS and isinstance(value, Mapping):
            made[key] = {name: inner(each) for name, each in value.items()}
        else:
            made[key] = value
    objects = made.get("type") == "object" or (isinstance(made.get("type"), list) and "object" in made["type"])
    if (objects or "properties" in made) and "additionalProperties" not in made:
        made["additionalProperties"] = not strict
    return made


def _joined(
    schema: Mapping[str, Any], root: Mapping[str, Any], within_refs: frozenset[str]
) -> tuple[Mapping[str, Any], frozenset[str]] | None:
    """The schema with the parts of its `allOf` in it, and the references followed so far; None where parts differ."""
    if '"#/allOf' in text_of(root):
        return None  # references into it would lead nowhere
    parts = [{key: value for key, value in schema.items() if key != "allOf" and key not in ANNOTATIONS}]
    pending = list(schema["allOf"])
    if len(pending) == 1 and not parts[0] and isinstance(pending[0], Mapping):
        return pending[0], within_refs
    while pending:
        part = pending.pop(0)
        if isinstance(part, Mapping) and set(part) - ANNOTATIONS == {"$ref"}:
            if part["$ref"] in within_refs or len(within_refs) > _MOST_DEPTH:
                return None  # a schema that is part of itself
            within_refs |= {part["$ref"]}
            part = resolve(part["$ref"], root)
        if not isinstance(part, Mapping):
            return None
        pending[:0] = part.get("allOf", ())
        parts.append({key: value for key, value in part.items() if key != "allOf" and key not in ANNOTATIONS})
    made: dict[str, Any] = {}
    for part in parts:
        if part.get("additionalProperties", True) is not True and len([each for each in parts if each]) > 1:
            return None  # it would forbid what the other parts allow
        for key, value in part.items():
            if key in ("properties", "$defs", "definitions") and isinstance(made.get(key, {}), Mapping):
                known = made.get(key, {})
                if any(known.get(name, each) != each for name, each in value.items()):
                    return None
                made[key] = {**known, **value}
            elif key == "required":
                made[key] = list(dict.fromkeys([*made.get(key, ()), *value]))
            elif made.setdefault(key, value) != value:
                return None
    return made, within_refs


def text_of(schema: Any) -> str:
    """The schema as text. The order of keys is kept, because the order of properties matters."""
    return json.dumps(schema, ensure_ascii=False, separators=(",", ":"))


def within(schema: Any, root: Mapping[str, Any]) -> Any:
    """A part of a schema as a schema of its own, with the definitions that references may need."""
    if not isinstance(schema, Mapping) or '"$ref"' not in text_of(schema):
        return schema
    return {**schema, **{key: root[key] for key in ("$defs", "definitions") if key in root}}


def keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """All keywords of a schema with their values, wherever they stand."""
    if not isinstance(schema, Mapping):
        return
    for key, value in schema.items():
        yield key, value
        if key in _SCHEMAS:
            yield from keywords(value)
        elif key in _LISTS and isinstance(value, list):
            for each in value:
                yield from keywords(each)
        elif key in _MAPS and isinstance(value, Mapping):
            for each in value.values():
                yield from keywords(each)


def without(schema: Any, dropped: Iterable[str]) -> Any:
    """The schema without some keywords."""
    if not isinstance(schema, Mapping):
        return schema
    dropped = frozenset(dropped)
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in dropped:
            continue
        if key in _SCHEMAS:
            made[key] = without(value, dropped)
        elif key in _LISTS and isinstance(value, list):
            made[key] = [without(each, dropped) for each in value]
        elif key in _MAPS and isinstance(value, Mapping):
            made[key] = {name: without(each, dropped) for name, each in value.items()}
        else:
            made[key] = value
    return made
