"""The places of a normalised schema: which values fit them, which places no value fits, and how they are written.

Strategy: places may form cycles, so nothing here follows them by unbounded recursion: a loop over all places runs until
nothing changes, and a place that is used twice, or in itself, or that is deeply nested, is a definition.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

from toolgram.export.ecmascript import matches, pattern_text
from toolgram.limits import MAX_INSIDE_DEFINITION


@dataclass(eq=False, slots=True)
class Place:
    """One part of a schema. Exactly one of `anything`, `options`, `values` and `kind` decides which values fit."""

    anything: bool = False
    options: list[Place] | None = None
    values: list[Any] | None = None
    beside: Place | None = None  # what `values` must also fit
    kind: str = ""
    said: dict[str, Any] = field(default_factory=dict)  # keywords whose values are not schemas
    first: list[Place] = field(default_factory=list)  # of a list
    rest: Place | None = None  # its other items; None for any
    properties: dict[str, Place] = field(default_factory=dict)
    required: dict[str, None] = field(default_factory=dict)
    patterns: dict[str, Place] = field(default_factory=dict)
    names: Place | None = None
    further: Place | None = None  # None if no other names are allowed
    impossible: bool = False

    def alternatives(self) -> Iterator[Place]:
        """Yield the places with a type or values of their own."""
        pending, seen = [self], set()
        while pending:
            here = pending.pop()
            if id(here) in seen:
                continue
            seen.add(id(here))
            if here.options is None:
                yield here
            else:
                pending += here.options

    def inner(self) -> Iterator[Place]:
        """Yield the places directly inside."""
        if self.options is not None:
            yield from self.options
        yield from self.first
        yield from self.properties.values()
        yield from self.patterns.values()
        yield from (each for each in (self.rest, self.names, self.further) if each is not None)


_LONGEST_MATCHED = 1000


def fits(value: Any, place: Place) -> bool:
    """Return whether a constant fits a place. Constants are not nested deeply, so this recursion is not deep either."""
    if place.options is not None:
        return any(fits(value, each) for each in place.alternatives())
    if place.anything:
        return True
    if place.values is not None:
        return any(type(each) is type(value) and each == value for each in place.values)
    if not fits_kind(value, place.kind):
        return False
    match value:
        case str():
            return is_found(place.said.get("pattern", ""), value) and _counted(len(value), place.said, "Length")
        case list() | tuple():
            items = zip(value, chain(place.first, repeat(place.rest or _ANY)), strict=False)
            return _counted(len(value), place.said, "Items") and all(fits(each, inner) for each, inner in items)
        case Mapping():
            members = [(each, place.properties.get(name) or place.further) for name, each in value.items()]
            fit = (bool(place.patterns) if inner is None else fits(each, inner) for each, inner in members)
            return set(value).issuperset(place.required) and all(fit)
        case int() | float() if not isinstance(value, bool):
            low, high, above, below = _bounds(place.said)
            return bool(low <= value <= high and above < value < below)
    return True


def fits_kind(value: Any, kind: str) -> bool:
    """Return whether a value has a type of JSON Schema."""
    if isinstance(value, bool) or value is None:
        return kind == ("null" if value is None else "boolean")
    if isinstance(value, int | float):
        return kind == "number" or (kind == "integer" and float(value).is_integer())
    return kind == ("string" if isinstance(value, str) else "array" if isinstance(value, list | tuple) else "object")


def _bounds(said: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Return the bounds of a number: the least, the most, what it is above and what it is below."""
    above, below = said.get("exclusiveMinimum", -math.inf), said.get("exclusiveMaximum", math.inf)
    return said.get("minimum", -math.inf), said.get("maximum", math.inf), above, below


def is_found(pattern: str, value: str) -> bool:
    """Return whether a pattern is found in a text; True if it has no expression, or if the text is long."""
    expr = pattern_text(pattern)
    return expr is None or len(value) > _LONGEST_MATCHED or matches(expr, value)


_ANY = Place(anything=True)


def _counted(count: int, said: Mapping[str, Any], what: str) -> bool:
    return bool(said.get(f"min{what}", 0) <= count <= said.get(f"max{what}", math.inf))


# --- places that nothing fits -------------------------------------------------------------------------------------


def removed_impossible(places: Sequence[Place]) -> None:
    """Mark the places that no finite value fits, and remove them from the others."""
    for place in places:
        if place.values is not None and place.beside is not None:
            place.values = [value for value in place.values if fits(value, place.beside)]
            place.beside = None
        place.impossible = True
    changed = True
    while changed:
        changed = False
        for place in reversed(places):
            if place.impossible and _possible(place):
                place.impossible, changed = False, True
    for place in places:
        _remove_impossible_parts(place)


def _remove_impossible_parts(place: Place) -> None:
    if place.options is not None:
        place.options = [each for each in place.options if not each.impossible]
    at = next((at for at, each in enumerate(place.first) if each.impossible), None)
    if at is None and place.rest is not None and place.rest.impossible:
        at = len(place.first)
    if at is not None:  # a list ends before the first impossible item
        place.said["maxItems"] = min(place.said.get("maxItems", at), at)
        place.first, place.rest = place.first[:at], None
    place.patterns = {name: each for name, each in place.patterns.items() if not each.impossible}
    if place.further is not None and place.further.impossible:
        place.further = None
    if place.further is None:
        place.properties = {name: each for name, each in place.properties.items() if not each.impossible}


def _possible(place: Place) -> bool:
    said = place.said
    if place.options is not None:
        return any(not each.impossible for each in place.options)
    if place.values is not None:
        return bool(place.values)
    if place.kind == "string":
        return bool(said.get("minLength", 0) <= said.get("maxLength", math.inf))
    if place.kind in ("integer", "number"):
        low, high, above, below = _bounds(said)
        return bool(low <= high and above < below and low < below and above < high)
    if place.kind == "array":
        least = said.get("minItems", 0)
        if least > said.get("maxItems", math.inf):
            return False
        if any(each.impossible for each in place.first[:least]):
            return False
        return least <= len(place.first) or place.rest is None or not place.rest.impossible
    if said.get("minProperties", 0) > said.get("maxProperties", math.inf):
        return False
    return not any(place.properties[name].impossible for name in place.required)


# --- writing it down ----------------------------------------------------------------------------------------------


def nesting(root: Place) -> int:
    """Return how many places are nested, on the shortest path to the deepest one."""
    level, seen, depth = [root], {id(root)}, 0
    while level:
        inner = {id(each): each for place in level for each in place.inner() if id(each) not in seen}
        seen.update(inner)
        level, depth = list(inner.values()), depth + 1
    return depth


def printed(root: Place) -> Mapping[str, Any]:
    """Return the places as JSON, with definitions."""
    root = _lone(root)
    return _Printer(root).whole()


def _lone(place: Place) -> Place:
    """Return the place itself, or the only alternative if it has just one."""
    seen = set()
    while place.options is not None and len(place.options) == 1 and id(place) not in seen:
        seen.add(id(place))
        place = place.options[0]
    return place


class _Printer:
    def __init__(self, root: Place) -> None:
        self.root = root
        self.names: dict[int, str] = {}
        self.pending: list[Place] = []
        self.shared = self._shared()

    def whole(self) -> Mapping[str, Any]:
        """Return the root, and the definitions that it needs."""
        made = dict(self.body(self.root, 0))
        definitions: dict[str, Any] = {}
        while self.pending:
            place = self.pending.pop(0)
            definitions[self.names[id(place)]] = self.body(place, 0)
        return {**made, "$defs": definitions} if definitions else made

    def _shared(self) -> set[int]:
        """Return the places that several others use, or that contain themselves, except small ones."""
        seen: set[int] = set()
        twice: set[int] = set()
        pending = [self.root]
        while pending:
            here = pending.pop()
            if id(here) in seen:
                if not _is_small(here):
                    twice.add(id(here))
                continue
            seen.add(id(here))
            pending += [_lone(each) for each in here.inner()]
        return twice

    def of(self, place: Place, depth: int) -> Mapping[str, Any]:
        """Return a place inside another."""
        place = _lone(place)
        if id(place) in self.shared or (depth > MAX_INSIDE_DEFINITION and not _is_small(place)):
            if id(place) not in self.names:
                self.names[id(place)] = f"d{len(self.names) + 1}"
                self.pending.append(place)
            return {"$ref": f"#/$defs/{self.names[id(place)]}"}
        return self.body(place, depth)

    def body(self, place: Place, depth: int) -> Mapping[str, Any]:
        """Return a place in full."""
        depth += 1
        if place.options is not None:
            return {"anyOf": [self.of(each, depth) for each in place.options]}
        if place.values is not None:
            return {"enum": place.values}
        if place.anything:
            return {}
        made: dict[str, Any] = {"type": place.kind}
        if place.first:
            made["prefixItems"] = [self.of(each, depth) for each in place.first]
        if place.rest is not None:
            made["items"] = self.of(place.rest, depth)
        if place.kind == "object":
            made |= self._members(place, depth)
        return {**made, **place.said}

    def _members(self, place: Place, depth: int) -> Iterator[tuple[str, Any]]:
        if place.properties:
            named = place.properties.items()
            yield "properties", {name: not each.impossible and self.of(each, depth) for name, each in named}
        if place.required:
            yield "required", list(place.required)
        if place.patterns:
            yield "patternProperties", {name: self.of(each, depth) for name, each in place.patterns.items()}
        if place.names is not None and not place.names.impossible:
            yield "propertyNames", self.of(place.names, depth)
        further = place.further
        free = further is not None and _lone(further).anything
        yield "additionalProperties", free if further is None or free else self.of(further, depth)


def _is_small(place: Place) -> bool:
    if place.values is not None:
        return len(place.values) < 4
    return (
        place.options is None and not any(True for _ in place.inner()) and not {"pattern", "format"} & set(place.said)
    )
