"""Convert a JSON Schema as clients send it to the one form that all writers read.

Strategy: a place of the normal form combines what several parts of the document require, because `$ref`, `allOf` and
the keywords beside `anyOf` all add to each other. A place is computed once for each list of such parts. Alternatives
are taken first: the keywords beside them become a part of each. Places that no value fits are removed afterwards.

Each part of the normal form is one of: `{}`; `{"anyOf": [...]}`; `{"enum": [...]}`; `{"$ref": "#/$defs/d1"}`; or
`{"type": ...}` with one type and keywords of that type alone. An object always has `additionalProperties`. Notes report
what cannot be kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from json.encoder import encode_basestring_ascii
from typing import Any

from toolgram.export.ecmascript import shortened
from toolgram.export.expressions import Note
from toolgram.export.schema_checks import IGNORED, TYPES, Document, type_names
from toolgram.export.schema_graph import Place, fits_kind, is_found, nesting, printed, removed_impossible
from toolgram.limits import (
    MAX_INSIDE_DEFINITION,
    MAX_SCHEMA_NESTING,
    MOST_COMBINED,
    MOST_ENUM_VALUES,
    MOST_PROPERTIES,
    MOST_SCHEMA_PLACES,
)  # fmt: skip

Side = tuple[Any, int]  # a part of the document, and which of its alternatives have been taken
Sides = tuple[Side, ...]

_ALTERNATIVES = (("anyOf", 1), ("oneOf", 2))
_TAKEN, _FOLLOWED = 3, 4  # whether alternatives were taken, and whether references were followed
_PLAIN: dict[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains",
              "unevaluatedItems"),
    "object": ("properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
               "maxProperties", "unevaluatedProperties"),
}  # fmt: skip
_PLAIN["integer"] = _PLAIN["number"]


def normal_form(schema: Any, where: str, note: Note, only: str = "", open_objects: bool = False) -> Mapping[str, Any]:
    """Return the normal form of a schema; with `only`, of those of its values that have this type.

    An object with `properties` and no keyword for further ones is closed, unless `open_objects`. Raises ToolgramError
    with `where` and the path if this is not a schema, or if no value fits it. Costs time in proportion to the size of
    the document; if several alternatives combine, up to 64 times as much.
    """
    plain = _Plain(open_objects)
    found = plain.form(schema, 0) if only == "object" and type(schema) is dict and schema.get("type") == only else None
    if found is None:
        return _Normaliser(Document(schema, where), note, open_objects).form(only)
    if plain.closes:
        note(_CLOSED)
    return found


_CLOSED = (
    "an object whose schema names properties and does not say `additionalProperties` is closed: no other names are "
    "written"
)
_COMMENTS = {"description", "title", "default", "examples", "$schema", "$comment"}
_OF_OBJECT = {"type", "properties", "required", "additionalProperties"}


class _Plain:
    """Returns the normal form of a schema in which nothing adds to anything else, as in those of most functions: parts
    of one type, in their own places, and without limits. `form` returns None for all others."""

    def __init__(self, open_objects: bool) -> None:
        self.open_objects, self.closes = open_objects, False
        self.seen: set[int] = set()  # a part that occurs twice is a definition
        self.parts = 0

    def form(self, schema: Any, depth: int) -> Mapping[str, Any] | None:
        """Return the normal form of a part."""
        self.parts += 1
        if type(schema) is not dict or self.parts > MOST_PROPERTIES:  # far below the limits of all schemas
            return None
        kind, keys = schema.get("type"), schema.keys() - _COMMENTS
        if len(keys) == 1 and kind in TYPES[:-2]:
            return {"type": kind}
        if id(schema) in self.seen or depth > MAX_INSIDE_DEFINITION or not isinstance(kind, str):
            return None
        self.seen.add(id(schema))
        if keys == {"type", "enum"} and kind == "string":
            return self._texts(schema["enum"])
        if keys == {"type", "items"} and kind == "array":
            items = self.form(schema["items"], depth + 1)
            return items and {"type": kind, "items": items}
        return self._object(schema, depth) if kind == "object" and "properties" in keys <= _OF_OBJECT else None

    def _texts(self, values: Any) -> Mapping[str, Any] | None:
        plain = type(values) is list and 0 < len(values) <= MOST_ENUM_VALUES and _are_texts(values)
        return {"enum": values} if plain and len({*values}) == len(values) else None

    def _object(self, schema: Mapping[str, Any], depth: int) -> Mapping[str, Any] | None:
        properties, required = schema["properties"], schema.get("required", [])
        further = schema.get("additionalProperties", self.open_objects)
        if type(properties) is not dict or type(required) is not list or type(further) is not bool:
            return None
        if not 0 < len(properties) <= MOST_PROPERTIES or not (_are_texts(properties) and _are_texts(required)):
            return None
        found = {name: self.form(each, depth + 1) for name, each in properties.items()}
        if None in found.values() or not properties.keys() >= {*required}:
            return None
        self.closes |= "additionalProperties" not in schema and not further
        needed = {"required": [*dict.fromkeys(required)]} if required else {}
        return {"type": "object", "properties": found, **needed, "additionalProperties": further}


def _are_texts(values: Iterable[Any]) -> bool:
    return all(type(each) is str and each.isascii() for each in values)


class _Normaliser:
    """The places of one document."""

    def __init__(self, document: Document, note: Note, open_objects: bool) -> None:
        self.document, self.say, self.open_objects = document, note, open_objects
        self.places: dict[tuple[tuple[int, int], ...], Place] = {}
        self.pending: list[tuple[Place, Sides, int]] = []
        self.every: list[Place] = []
        self.exclusive: list[tuple[Any, list[Place]]] = []  # the alternatives of `oneOf`
        self.kept: list[Any] = []  # parts made here, alive as long as their ids are keys

    def note(self, raw: Any, words: str) -> None:
        """Add a note with the path of a part."""
        path = self.document.paths.get(id(raw), "#")
        self.say(f"{path}: {words}" if path != "#" else words)

    def form(self, only: str) -> Mapping[str, Any]:
        """Read all places, and return the normal form of the root."""
        for words in self.document.read_as:
            self.say(words)
        sides: list[Side] = [(self.document.root, 0)]
        if only:
            sides.append((self._made({"type": only}), 0))
        root = self.place(tuple(sides))
        while self.pending:
            self._fill(*self.pending.pop())
        for raw, options in self.exclusive:
            kinds = [each.kind.replace("integer", "number") for option in options for each in option.alternatives()]
            if "" in kinds or len({*kinds}) < len(kinds):
                self.note(raw, "oneOf is read as anyOf: whether a value fits several alternatives is not checked")
        removed_impossible(self.every)
        if root.impossible:
            raise self.document.error("", "no value fits this schema" + (f" and is an {only}" if only else ""))
        if nesting(root) > MAX_SCHEMA_NESTING:
            raise self.document.error("", f"it nests deeper than {MAX_SCHEMA_NESTING} objects and lists")
        return printed(root)

    def _new(self) -> Place:
        self.every.append(Place())
        return self.every[-1]

    def _made(self, raw: Any) -> Any:
        self.kept.append(raw)
        return raw

    def place(self, sides: Sides, combined: int = 1) -> Place:
        """Return the place that combines these parts."""
        key = tuple((id(raw), taken) for raw, taken in sides)
        if key not in self.places:
            if len(self.places) > MOST_SCHEMA_PLACES:
                self.say(f"the schema has more than {MOST_SCHEMA_PLACES:,} parts, and what is deeper is not enforced")
                return Place(anything=True)
            self.places[key] = made = self._new()
            self.kept.append(sides)
            self.pending.append((made, sides, combined))
        return self.places[key]

    # --- parts that add to each other -----------------------------------------------------------------------------

    def _flat(self, sides: Sides) -> list[Side] | None:
        """Return the parts with those that they refer to; None if nothing fits, or if alternatives form a cycle."""
        found: dict[int, Side] = {}
        pending = list(sides)[::-1]
        while pending:
            raw, taken = pending.pop()
            if raw is False:
                return None
            if not isinstance(raw, Mapping):
                continue
            if id(raw) in found:
                if found[id(raw)][1] & _TAKEN and not taken:
                    return None
                continue
            found[id(raw)] = (raw, taken | _FOLLOWED)
            if taken & _FOLLOWED:
                continue
            further: list[Any] = []
            if isinstance(raw.get("$ref"), str):
                further.append(self.document.resolve(raw["$ref"]))
            further += raw.get("allOf") or ()
            pending += [(each, 0) for each in reversed(further)]
        return list(found.values())

    def _fill(self, place: Place, sides: Sides, combined: int) -> None:
        flat = self._flat(sides)
        if flat is None:
            place.options = []
            return
        for at, (raw, taken) in enumerate(flat):
            for key, bit in _ALTERNATIVES:
                options = raw.get(key)
                if taken & bit or not options:
                    continue
                options = list({id(option): option for option in options}.values())
                if combined * len(options) > max(MOST_COMBINED, len(options)):
                    self.note(raw, f"{key} is not enforced: together with others it has too many combinations")
                    flat[at] = (raw, taken := taken | bit)
                    continue
                others = [*flat[:at], (raw, taken | bit), *flat[at + 1 :]]
                place.options = [self.place((*others, (option, 0)), combined * len(options)) for option in options]
                if key == "oneOf" and len(options) > 1:
                    self.exclusive.append((raw, place.options))
                return
        self._join(place, [raw for raw, _ in flat])

    def _join(self, place: Place, raws: list[Mapping[str, Any]]) -> None:
        """Combine keywords in a place."""
        for raw in raws:
            for key in raw:
                if key in IGNORED:
                    self.note(raw, f"{key} is not enforced")
        kinds = _kinds(raws)
        said = {key for raw in raws for key in raw}
        raws = [self._without_long_list(raw) for raw in raws]
        lists = [raw["enum"] if "enum" in raw else [raw["const"]] for raw in raws if "const" in raw or raw.get("enum")]
        lists += [[raw["const"]] for raw in raws if "const" in raw and raw.get("enum")]
        if lists:
            self._values(place, raws, kinds, lists)
        elif len(kinds) == len(TYPES) - 1 and not any(said & set(_PLAIN[kind]) for kind in _PLAIN):
            place.anything = True
        elif len(kinds) == 1:
            self._typed(place, kinds[0], raws)
        else:
            place.options = []
            for kind in kinds:
                option = self._new()
                self._typed(option, kind, raws)
                place.options.append(option)

    def _without_long_list(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        if len(raw.get("enum") or ()) <= MOST_ENUM_VALUES:
            return raw
        self.note(raw, f"an enum of {len(raw['enum'])} values is not enforced: at most {MOST_ENUM_VALUES} are")
        rest: Mapping[str, Any] = self._made({key: value for key, value in raw.items() if key != "enum"})
        return rest

    def _values(self, place: Place, raws: list[Mapping[str, Any]], kinds: list[str], lists: list[list[Any]]) -> None:
        """Keep the listed values that have an allowed type and satisfy the keywords beside the list."""
        texts = set.intersection(*({_identity(value) for value in values} for values in lists))
        found: dict[str, Any] = {}
        for value in lists[0]:
            if any(fits_kind(value, kind) for kind in kinds):
                found.setdefault(_identity(value), value)
        place.values = [value for text, value in found.items() if text in texts]
        rest = [
            self._made({k: v for k, v in raw.items() if k not in ("enum", "const", "$ref", "allOf")}) for raw in raws
        ]
        if any(set(raw) & {key for kind in _PLAIN for key in _PLAIN[kind]} for raw in rest):
            place.beside = self.place(tuple((raw, _TAKEN | _FOLLOWED) for raw in rest))

    # --- one type -------------------------------------------------------------------------------------------------

    def _typed(self, place: Place, kind: str, raws: list[Mapping[str, Any]]) -> None:
        place.kind = kind
        if kind == "string":
            self._text(place, raws)
        elif kind in ("integer", "number"):
            self._number(place, kind, raws)
        elif kind == "array":
            self._list(place, raws)
        elif kind == "object":
            self._object(place, raws)

    def _counts(self, place: Place, raws: Sequence[Mapping[str, Any]], least: str, most: str) -> None:
        lows = [int(raw[least]) for raw in raws if raw.get(least)]
        highs = [int(raw[most]) for raw in raws if raw.get(most) is not None]
        if lows:
            place.said[least] = max(lows)
        if highs:
            place.said[most] = min(highs)

    def _text(self, place: Place, raws: list[Mapping[str, Any]]) -> None:
        self._counts(place, raws, "minLength", "maxLength")
        for key, raw in ((key, raw) for key in ("pattern", "format") for raw in raws):
            value = raw.get(key)
            if isinstance(value, str) and place.said.setdefault(key, value) != value:
                self.note(raw, f"the {key} {shortened(value)} is not enforced, because another one holds there as well")

    def _number(self, place: Place, kind: str, raws: list[Mapping[str, Any]]) -> None:
        for raw in raws:
            self._step(place, raw)
        lows = [bound for raw in raws for bound in _bounds(raw, "minimum", "exclusiveMinimum")]
        highs = [bound for raw in raws for bound in _bounds(raw, "maximum", "exclusiveMaximum")]
        if lows:
            low, excluded = max(lows)
            if kind == "integer":
                low, excluded = math.floor(low) + 1 if excluded else math.ceil(low), False
            place.said["exclusiveMinimum" if excluded else "minimum"] = low
        if highs:
            high, excluded = min(highs, key=lambda bound: (bound[0], not bound[1]))
            if kind == "integer":
                high, excluded = math.ceil(high) - 1 if excluded else math.floor(high), False
            place.said["exclusiveMaximum" if excluded else "maximum"] = high
        if kind == "integer" and place.said.get("multipleOf") == 1:
            del place.said["multipleOf"]

    def _step(self, place: Place, raw: Mapping[str, Any]) -> None:
        step = raw.get("multipleOf", 0)
        if not _is_bound(step) or step <= 0:
            return
        known = place.said.setdefault("multipleOf", step)
        if isinstance(known, int) and isinstance(step, int):
            place.said["multipleOf"] = math.lcm(known, step)
        elif known != step:
            self.note(raw, f"multipleOf {step} is not enforced, because another one holds there as well")

    def _list(self, place: Place, raws: list[Mapping[str, Any]]) -> None:
        self._counts(place, raws, "minItems", "maxItems")
        shapes = [_items(raw) for raw in raws]
        for raw in raws:
            for key in ("uniqueItems", "contains"):
                if raw.get(key):
                    self.note(raw, f"{key} is not enforced")
        length = max((len(first) for first, _ in shapes), default=0)
        for at in range(length):
            place.first.append(self.place(tuple((first[at] if at < len(first) else rest, 0) for first, rest in shapes)))
        rests = tuple((rest, 0) for _, rest in shapes if rest is not True)
        if rests:
            place.rest = self.place(rests)

    def _object(self, place: Place, raws: list[Mapping[str, Any]]) -> None:
        self._counts(place, raws, "minProperties", "maxProperties")
        names = dict.fromkeys(name for raw in raws for name in raw.get("properties") or ())
        allowed = self._listed_names(raws)
        said = [raw[key] for raw in raws for key in ("additionalProperties", "unevaluatedProperties") if key in raw]
        declares = any("properties" in raw or raw.get("patternProperties") for raw in raws)
        closed = not said and declares and not self.open_objects and allowed is None
        if closed:
            self.say(_CLOSED)
        for name in dict.fromkeys([*names, *(allowed or ())]):
            place.properties[name] = self.place(self._of_name(name, raws))
        self._required(place, raws, said)
        if allowed is None:
            self._further(place, raws, said, closed)

    def _required(self, place: Place, raws: list[Mapping[str, Any]], said: list[Any]) -> None:
        lists = [(raw, raw["required"]) for raw in raws if isinstance(raw.get("required"), list | tuple)]
        for part, name in ((raw, name) for raw, names in lists for name in names):
            place.required.setdefault(name)
            if name not in place.properties:
                self.note(part, f"{name!r} is required and not declared, so it may be any value")
                more = tuple((each, 0) for each in said if each is not False and each is not True)
                place.properties[name] = self.place(more or ((True, 0),))

    def _further(self, place: Place, raws: list[Mapping[str, Any]], said: list[Any], closed: bool) -> None:
        """Add the names that are not declared: by pattern, or any."""
        for raw in raws:
            for pattern, declared in (raw.get("patternProperties") or {}).items():
                if pattern in place.patterns:
                    self.note(raw, f"of two schemas for {shortened(pattern)} only one is enforced")
                place.patterns[pattern] = self.place(((declared, 0),))
        names = [raw["propertyNames"] for raw in raws if isinstance(raw.get("propertyNames"), Mapping)]
        if names and not closed:
            place.names = self.place((*((each, 0) for each in names), (self._made({"type": "string"}), 0)))
        if closed or any(each is False for each in said):
            place.further = None
        else:
            more = tuple((each, 0) for each in said if each is not True)
            place.further = self.place(more or ((True, 0),))

    def _of_name(self, name: str, raws: list[Mapping[str, Any]]) -> Sides:
        """Return everything that is required of one declared name."""
        found: list[Side] = []
        for raw in raws:
            here = []
            if name in (raw.get("properties") or {}):
                here.append(raw["properties"][name])
            for pattern, declared in (raw.get("patternProperties") or {}).items():
                if is_found(pattern, name):
                    here.append(declared)
            if not here and raw.get("additionalProperties", True) is not True:
                here.append(raw["additionalProperties"])
            names = raw.get("propertyNames")
            pattern, listed = (names.get("pattern"), names.get("enum")) if isinstance(names, Mapping) else (None, None)
            mismatch = isinstance(pattern, str) and not is_found(pattern, name)
            if names is False or mismatch or (listed and name not in listed):
                here.append(False)
            found += [(each, 0) for each in here]
        return tuple(found) or ((True, 0),)

    def _listed_names(self, raws: list[Mapping[str, Any]]) -> list[str] | None:
        """Return the names that `propertyNames` lists."""
        found: list[str] | None = None
        for raw in raws:
            names = raw.get("propertyNames")
            if names is False:
                return []
            listed = names.get("enum") if isinstance(names, Mapping) else None
            if listed:
                texts = [each for each in listed if isinstance(each, str)]
                found = texts if found is None else [each for each in found if each in texts]
        return found


def _identity(value: Any) -> str:
    if isinstance(value, str):
        return encode_basestring_ascii(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True)


def _bounds(raw: Mapping[str, Any], inclusive: str, exclusive: str) -> list[tuple[Any, bool]]:
    """Return the bounds of a part, including the old spelling in which `exclusiveMinimum` is a boolean."""
    flag = raw.get(exclusive)
    return [pair for pair in ((raw.get(inclusive), flag is True), (flag, True)) if _is_bound(pair[0])]


def _is_bound(value: Any) -> bool:
    return not isinstance(value, bool) and (
        isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    )


def _items(raw: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """Return the schemas of the first items, and of the others."""
    items = raw.get("items", True)
    if isinstance(items, list | tuple):  # the old spelling
        return list(items), raw.get("additionalItems", True)
    return list(raw.get("prefixItems") or ()), items


def _kinds(raws: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the types that all of these schemas allow. An integer is a number."""
    kinds = list(TYPES)
    for raw in raws:
        named = type_names(raw)
        if named is not None:
            kinds = [kind for kind in kinds if kind in named or (kind == "integer" and "number" in named)]
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")
    return kinds
