"""Check a JSON Schema of a request: whether it is valid, where each part is, and where its references lead.

Strategy: one walk visits each part of the document once, even if it is shared or deeply nested. A part that cannot be
read is an error that names the tool and the path; a fault with one clear reading (a type by its Python name, an empty
list of values) is read that way, with a note.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, ValuesView
from typing import Any
from urllib.parse import unquote

from toolgram.errors import ToolgramError
from toolgram.export.ecmascript import NotAPattern, check_pattern
from toolgram.limits import MAX_CONSTANT_DEPTH, MOST_PROPERTIES, MOST_SCHEMA_PARTS

TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
_SAID = {"str": "string", "int": "integer", "long": "integer", "float": "number", "double": "number", "bool": "boolean",
         "list": "array", "tuple": "array", "dict": "object", "hashmap": "object", "none": "null"}  # fmt: skip
IGNORED = frozenset(
    {"not", "if", "dependentRequired", "dependentSchemas", "dependencies", "minContains", "maxContains", "$dynamicRef",
     "$recursiveRef", "unevaluatedItems"}
)  # fmt: skip
_ONE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "additionalItems",
        "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
_SEVERAL = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_INNER = (*_ONE, *_SEVERAL, *_NAMED)
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_LONGEST_SHOWN = 300


class Document:
    """A checked schema: `root`, the path of every part by its id, and the targets of references.

    Raises ToolgramError if this is not a schema.
    """

    def __init__(self, schema: Any, where: str) -> None:
        self.where = where
        if not isinstance(schema, Mapping):
            raise ToolgramError(f"{where}: not a JSON Schema: an object is needed, not {type(schema).__name__}")
        self.root = schema
        self.paths: dict[int, str] = {}
        self.anchors: dict[str, Any] = {}
        self.read_as: list[str] = []  # notes on parts that were not read as they are written
        self._texts: list[str] = []
        self._references: list[tuple[str, str]] = []
        self._parts = 0
        self._walk()
        try:
            "\n".join(self._texts).encode()
        except UnicodeEncodeError as error:
            raise ToolgramError(f"{where}: not a JSON Schema: {error}") from None
        for reference, path in self._references:
            if self.resolve(reference) is None:
                raise self.error(path, f"/$ref leads nowhere: {reference!r}")
            if self._is_circle(reference):
                raise self.error(path, f"/$ref leads back to itself: {reference!r}")

    def error(self, path: str, words: str) -> ToolgramError:
        """Return the one error about a schema."""
        return ToolgramError(f"{self.where}: not a valid JSON Schema: {path}{_short(words)}")

    def resolve(self, reference: str) -> Any:
        """Return the target of a reference in this document; None if there is no target."""
        before, _, pointer = reference.partition("#")
        base = self.anchors.get(before) if before else self.root
        if base is None or not pointer:
            return base
        if not pointer.startswith("/"):
            return self.anchors.get("#" + pointer)
        here: Any = base
        for step in pointer[1:].split("/"):
            step = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(here, Mapping):
                here = here.get(step)
            elif isinstance(here, list | tuple) and step.isdecimal() and len(step) < 10 and int(step) < len(here):
                here = here[int(step)]
            else:
                return None
        return here if isinstance(here, Mapping | bool) else None

    # --- the walk -------------------------------------------------------------------------------------------------

    def _walk(self) -> None:
        pending: list[tuple[Any, str]] = [(self.root, "#")]
        while pending:
            schema, path = pending.pop()
            if isinstance(schema, bool) or schema is None or id(schema) in self.paths:
                continue
            if not isinstance(schema, Mapping):
                raise self.error(path, " is not a schema")
            self._count(1)
            self.paths[id(schema)] = path
            self._check(schema, path)
            pending += [(each, _short(inner)) for each, inner in self._inner(schema, path)][::-1]

    def _count(self, parts: int) -> None:
        self._parts += parts
        if self._parts > MOST_SCHEMA_PARTS:
            raise ToolgramError(f"{self.where}: not a JSON Schema: it has more than {MOST_SCHEMA_PARTS:,} parts")

    def _inner(self, schema: Mapping[str, Any], path: str) -> Iterator[tuple[Any, str]]:
        for key in filter(schema.__contains__, _INNER):
            inner = schema[key]
            if inner is None:
                continue
            if key in _NAMED:
                yield from self._named(inner, key, path)
            elif key in _ONE and not (key == "items" and isinstance(inner, list | tuple)):
                yield inner, f"{path}/{key}"
            elif not isinstance(inner, list | tuple) or not (inner or key in ("prefixItems", "items")):
                raise self.error(path, f"/{key} is not a list of schemas")
            else:
                yield from ((each, f"{path}/{key}/{at}") for at, each in enumerate(inner))

    def _named(self, inner: Any, key: str, path: str) -> Iterator[tuple[Any, str]]:
        if not isinstance(inner, Mapping):
            raise self.error(path, f"/{key} is not a mapping of schemas")
        if len(inner) > MOST_PROPERTIES:
            raise self.error(path, f"/{key} has more than {MOST_PROPERTIES:,} names")
        for name, each in inner.items():
            if not isinstance(name, str):
                raise self.error(path, f"/{key} has the name {name!r}, which is not text")
            self._texts.append(name)
            if key == "patternProperties":
                self._pattern(name, path + "/patternProperties")
            yield each, f"{path}/{key}/{name}"

    def _check(self, schema: Mapping[str, Any], path: str) -> None:
        self._types(schema, path)
        for key in ("enum", "const"):
            if key in schema:
                self._constant(schema, key, path)
        required = () if schema.get("required") is None else schema["required"]
        if isinstance(required, list | tuple) and all(isinstance(each, str) for each in required):
            self._texts += required
        elif isinstance(required, bool):
            self.read_as.append(f"{path}/required is not a list of names and is ignored")
        else:
            raise self.error(path, "/required is not a list of names")
        self._check_counts(schema, path)
        if schema.get("pattern") is not None:
            self._pattern(schema["pattern"], path + "/pattern")
        reference = schema.get("$ref")
        if reference is not None:
            if not isinstance(reference, str):
                raise self.error(path, f"/$ref leads nowhere: {reference!r}")
            self._references.append((reference, path))
        for key, mark in (("$id", ""), ("$anchor", "#")):
            if isinstance(name := schema.get(key), str):
                self.anchors.setdefault(mark + name.removesuffix("#"), schema)

    def _check_counts(self, schema: Mapping[str, Any], path: str) -> None:
        for key in filter(schema.__contains__, _COUNTS):
            count = schema[key]
            whole = isinstance(count, int) or (isinstance(count, float) and count.is_integer())
            if count is not None and (not whole or isinstance(count, bool) or count < 0):
                raise self.error(path, f"/{key} is not a count")

    def _types(self, schema: Mapping[str, Any], path: str) -> None:
        named = schema.get("type")
        for each in named if isinstance(named, list | tuple) else [named]:
            if each in TYPES or (each is None and "type" not in schema):
                continue
            read = _type(each) if isinstance(each, str) else None
            if read not in (*TYPES, "any"):
                raise self.error(path, f"/type: {each!r} is not a type (one of {', '.join(sorted(TYPES))})")
            self.read_as.append(f"the type {each!r} is read as {'any type' if read == 'any' else read!r}")

    def _constant(self, schema: Mapping[str, Any], key: str, path: str) -> None:
        value = schema[key]
        if key == "enum" and value is None:
            return
        if key == "enum" and not isinstance(value, list | tuple):
            raise self.error(path, "/enum is not a list of values")
        if key == "enum" and not value:
            self.read_as.append(f"{path}/enum is empty and is not enforced")
        level = [value]
        for _ in range(MAX_CONSTANT_DEPTH):
            inner = (each.values() if isinstance(each, Mapping) else each for each in level)
            level = [part for parts in inner if isinstance(parts, ValuesView | list | tuple) for part in parts]
            self._count(len(level))
            if not level:
                break
        else:
            deeper = f"nests deeper than {MAX_CONSTANT_DEPTH} lists and objects"
            raise ToolgramError(f"{self.where}: not a JSON Schema: {path}/{key} {deeper}")
        try:
            self._texts.append(json.dumps(value, allow_nan=False, ensure_ascii=False))
        except (TypeError, ValueError) as error:
            raise ToolgramError(f"{self.where}: not a JSON Schema: {path}/{key}: {error}") from None

    def _pattern(self, pattern: Any, path: str) -> None:
        try:
            check_pattern(pattern)
        except (NotAPattern, TypeError):
            raise self.error(path, " is not a regular expression") from None
        self._texts.append(pattern)

    def _is_circle(self, reference: str) -> bool:
        """Return whether a reference leads back to itself through nothing but references and `allOf`."""
        seen: set[str] = set()
        pending = [reference]
        while pending and reference not in seen:
            target = self.resolve(pending.pop())
            parts = [target, *(target.get("allOf") or ())] if isinstance(target, Mapping) else []
            named = [each.get("$ref") for each in parts if isinstance(each, Mapping)]
            pending += [each for each in named if isinstance(each, str) and each not in seen]
            seen.update(pending)
        return reference in seen


def _short(text: str) -> str:
    """Return a path, or a fault, shortened."""
    return text if len(text) <= _LONGEST_SHOWN else text[:_LONGEST_SHOWN] + "..."


def type_names(schema: Mapping[str, Any]) -> list[str] | None:
    """Return the types that a part names; None if it allows any type."""
    named = schema.get("type")
    if named is None:
        return None
    found = [_type(str(each)) for each in ([named] if isinstance(named, str) else named)]
    return None if "any" in found else found


def _type(name: str) -> str:
    """Return the type with this name, in lower case or of another language."""
    return _SAID.get(name.lower(), name.lower())
