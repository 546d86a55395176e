"""Which JSON types the parameters of the declared tools may have.

Strategy: read no more of a JSON Schema than decides whether a value may be text: `type`, `enum`, `const`, references
into the same schema, and the combinations `anyOf`, `oneOf` and `allOf`.  What is said twice has to hold twice: the
types of an `enum` beside a `type`, or of the parts of an `allOf`, are those that all of them allow.

Schemas come from requests and are not trusted: what has another shape, goes too deep or refers to itself leaves a
parameter untyped, which is always safe.  A function's schema is looked at when the function is called, not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeGuard

from toolgram.limits import MAX_SCHEMA_DEPTH, MAX_SCHEMA_STEPS
from toolgram.tools.reading import Tools

Types: TypeAlias = frozenset[str] | None  # names of JSON Schema; None for any type

TEXT_ONLY: Types = frozenset({"string"})
_OF = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}
_SAID = {name: name for name in _OF.values()} | {
    # Words that are not JSON Schema, but that many schemas have. They can mean only one thing.
    "str": "string",
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "dict": "object",
    "none": "null",
}
_ALONE: dict[str, Types] = {name: frozenset({name}) for name in _OF.values()}
_COMBINES = frozenset({"$ref", "allOf", "anyOf", "oneOf"})
_ALSO_SAYS = _COMBINES | {"enum", "const", "nullable"}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one function: the types of each, which of them must be given, and the types of any other.

    `open` says that there may be others; an undeclared one is text, unless a type is declared for all others.
    """

    types: Mapping[str, Types] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    others: Types = None
    open: bool = True  # others may be given

    def types_for(self, name: str) -> Types:
        """Return the JSON types that the argument `name` may have."""
        return self.types.get(name, self.others)


def types_of_value(declared: Parameters | None, key: str, told: bool, any_tools: bool) -> Types:
    """Return the types that the value of a tagged argument may have; None for any. `declared` are the parameters of its
    function. If there are tools, an undeclared value is text, unless its markers have `told` what it is."""
    if declared is not None and key in declared.types:
        return declared.types[key]
    if told or not any_tools:
        return None
    others = declared.others if declared is not None else None
    return TEXT_ONLY if others is None else others


class Place:
    """A place in a value: the types that text may have there (None for any), and what is declared for what is inside.

    `named` says that what holds the place names it. Nothing need be known of a place.
    """

    __slots__ = ("_item", "_members", "_parameters", "_root", "_schema", "named", "types")

    def __init__(self, schema: Any, root: Mapping[str, Any], types: Types = None, named: bool = False) -> None:
        self._schema = schema if isinstance(schema, Mapping) else None
        self._root = root
        self.types = types
        self.named = named
        self._parameters: Parameters | None = None
        self._members: dict[str, Place] = {}  # those that are named
        self._item: Place | None = None

    @property
    def is_text(self) -> bool:
        """Return whether only text is declared."""
        return self._schema is not None and self.types == TEXT_ONLY

    @property
    def may_be_text(self) -> bool:
        """Return whether text is allowed here, as far as is declared."""
        return self.types is None or "string" in self.types

    @property
    def has_no_parts(self) -> bool:
        """Return whether what is declared is neither an object nor a list."""
        return self.named and bool(self.types) and not self.types & {"array", "object"}  # type: ignore[operator]

    @property
    def container(self) -> str:
        """Return what is declared for what has parts: "array", "object", or "" for either."""
        found = (self.types or frozenset()) & {"array", "object"} if self._schema is not None else frozenset()
        return next(iter(found)) if len(found) == 1 else ""

    def member(self, name: str) -> Place:
        """Return the place of a member of an object here."""
        if name in self._members:
            return self._members[name]
        if self._parameters is None:
            self._parameters = parameters_of(self._schema, self._root)
        declared, types = self._parameters, self._parameters.types_for(name)
        if name not in declared.types:
            return Place(self._inner("additionalProperties"), self._root, types)
        schemas = [_mapped(part.get("properties")).get(name) for part in self._described()]
        found = Place(_together(schemas), self._root, types, True)
        self._members[name] = found
        return found

    def item(self) -> Place:
        """Return the place of an item of a list here."""
        if self._item is None:
            schema = self._inner("items")
            self._item = Place(schema, self._root, types_of(schema, self._root))
        return self._item

    def _inner(self, key: str) -> Any:
        return _together([part.get(key) for part in self._described()])

    def _described(self) -> list[Mapping[str, Any]]:
        """Return the schemas that describe what is inside: those that hold together, or else those of which one may."""
        if self._schema is None:
            return []
        certain, possible = _parts(self._schema, self._root)
        return [*certain, *possible]


def _together(schemas: Iterable[Any]) -> Any:
    """Return the schemas of one place as one; None if there is none."""
    found = [each for each in schemas if isinstance(each, Mapping)]
    return found[0] if len(found) == 1 else {"allOf": found} if found else None


UNDECLARED = Place(None, {})
UNDECLARED_TEXT = Place(None, {}, TEXT_ONLY)  # if there are tools


class DeclaredParameters:
    """The parameters of the tools of a request by function name, each read when it is first asked for."""

    __slots__ = ("_known", "_places", "_tools")

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._known: dict[str, Parameters] = {}
        self._places: dict[str, Place] = {}

    def get(self, name: str) -> Parameters | None:
        """Return the parameters of a function, the last of its name; None if it is not declared."""
        if name not in self._known:
            if name not in self._tools.names:
                return None
            self._known[name] = parameters_of(self._schema(name))
        return self._known[name]

    def place(self, name: str) -> Place:
        """Return the place of the arguments of a function, from which all places inside are found."""
        if name not in self._places:
            if name not in self._tools.names:
                return UNDECLARED
            schema = self._schema(name)
            self._places[name] = Place(schema, schema if isinstance(schema, Mapping) else {})
        return self._places[name]

    def _schema(self, name: str) -> Any:
        return [tool for tool in self._tools if tool.name == name][-1].parameters


def declared_parameters(tools: Tools) -> DeclaredParameters:
    """Return the parameters of these tools, read once for all parsers that are given the same `Tools`."""
    if tools.parameters is None:
        tools.parameters = DeclaredParameters(tools)
    read: DeclaredParameters = tools.parameters
    return read


def parameters_of(schema: Any, root: Mapping[str, Any] | None = None) -> Parameters:
    """Return what the schema of arguments, or of an object inside them, says about each member. Any other
    value says nothing. `root` is the schema that references point into, if it is another one."""
    if not _is_mapping(schema):
        return Parameters()
    root = schema if root is None else root
    certain, possible = _parts(schema, root)
    types = _properties(certain, root, _both)
    for name, alternatives in _properties(possible, root, _either).items() if possible else ():
        types.setdefault(name, alternatives)
    required = [each for part in certain for each in _listed(part.get("required")) if isinstance(each, str)]
    others, is_open = _others(certain, root, bool(types))
    return Parameters(types, tuple(dict.fromkeys(required)), others, is_open)


def _others(certain: Sequence[Mapping[str, Any]], root: Mapping[str, Any], has_types: bool) -> tuple[Types, bool]:
    """Return the types of members that are not declared by name, and whether there may be any."""
    more = [part["additionalProperties"] for part in certain if "additionalProperties" in part]
    patterned = [part["patternProperties"] for part in certain if "patternProperties" in part]
    patterns = [each for some in patterned for each in _mapped(some).values()]
    if patterns:
        matching = types_of({"anyOf": patterns}, root)
        declared = bool(more) and more[0] is not True
        return matching if declared else _either(matching, TEXT_ONLY), True
    more = more or [not has_types]
    if any(each is False for each in more):
        return TEXT_ONLY, False
    return None if more[0] is True else types_of(more[0], root), True


def _parts(
    schema: Mapping[str, Any], root: Mapping[str, Any]
) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    """Return the schemas that describe the arguments together, and those of which one may: references are followed."""
    if _COMBINES.isdisjoint(schema):
        return [schema], []
    certain: list[Mapping[str, Any]] = []
    possible: list[Mapping[str, Any]] = []
    pending: list[tuple[Any, bool]] = [(schema, True)]
    while pending and len(certain) + len(possible) < MAX_SCHEMA_STEPS:
        part, is_certain = pending.pop()
        if not isinstance(part, Mapping):
            continue
        (certain if is_certain else possible).append(part)
        if isinstance(part.get("$ref"), str):
            pending.append((resolve(part["$ref"], root), is_certain))
        pending += [(each, is_certain) for each in _listed(part.get("allOf"))[:MAX_SCHEMA_STEPS]]
        for key in ("anyOf", "oneOf"):
            pending += [(each, False) for each in _listed(part.get(key))[:MAX_SCHEMA_STEPS]]
    return certain, possible


def _properties(parts: Iterable[Mapping[str, Any]], root: Mapping[str, Any], join: Any) -> dict[str, Types]:
    found: dict[str, Types] = {}
    for part in parts:
        for name, declared in _mapped(part.get("properties")).items():
            name, types = str(name), types_of(declared, root)
            found[name] = join(found[name], types) if name in found else types
    return found


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else list(value) if isinstance(value, tuple) else []


def _mapped(value: Any) -> Mapping[Any, Any]:
    return value if _is_mapping(value) else {}


def _is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    return type(value) is dict or isinstance(value, Mapping)  # the second costs five times as much


def types_of(schema: Any, root: Mapping[str, Any]) -> Types:
    """Return the JSON types that a value of `schema` may have. `root` is the schema that references point into."""
    return _types(schema, root, iter(range(MAX_SCHEMA_STEPS)), MAX_SCHEMA_DEPTH)


def _types(schema: Any, root: Mapping[str, Any], steps: Iterator[int], depth: int) -> Types:
    """Do the same within a number of steps and a depth."""
    if not _is_mapping(schema) or depth == 0 or next(steps, None) is None:
        return None
    said = schema.get("type")
    if type(said) is str and said in _ALONE and _ALSO_SAYS.isdisjoint(schema):
        return _ALONE[said]  # nearly all schemas
    found = _both(_named(schema.get("type")), _listed_values(schema))
    if isinstance(schema.get("$ref"), str):
        found = _both(found, _types(resolve(schema["$ref"], root), root, steps, depth - 1))
    for key in ("anyOf", "oneOf"):
        parts = _listed(schema.get(key))
        if parts:
            several = _types(parts[0], root, steps, depth - 1)
            for part in parts[1:MAX_SCHEMA_STEPS]:
                several = _either(several, _types(part, root, steps, depth - 1))
            found = _both(found, several if len(parts) <= MAX_SCHEMA_STEPS else None)
    for part in _listed(schema.get("allOf"))[:MAX_SCHEMA_STEPS]:
        found = _both(found, _types(part, root, steps, depth - 1))
    return found if found is None or schema.get("nullable") is not True else found | {"null"}


def _named(named: Any) -> Types:
    """Return the types that `type` names; unknown words are ignored."""
    names = [named] if isinstance(named, str) else _listed(named)[:MAX_SCHEMA_STEPS]
    types = {_SAID.get(each.lower()) if isinstance(each, str) else None for each in names}
    return frozenset(each for each in types if each) if types and None not in types else None


def _listed_values(schema: Mapping[str, Any]) -> Types:
    """Return the types of the values that a schema lists."""
    values = [schema["const"]] if "const" in schema else _listed(schema.get("enum"))
    return frozenset(_OF.get(kind, "object") for kind in set(map(type, values))) or None


def _either(one: Types, other: Types) -> Types:
    return None if one is None or other is None else one | other


def _both(one: Types, other: Types) -> Types:
    """Return what two schemas allow together. Integers are numbers. If they contradict each other, the first counts."""
    if one is None or other is None:
        return one if other is None else other
    if one == other:
        return one
    shared = one & other
    if ("integer" in one and "number" in other) or ("integer" in other and "number" in one):
        shared |= {"integer"}
    return shared or one


def resolve(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return what a reference such as `#/$defs/Point` points at in the same schema; None if it leads nowhere."""
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    here: Any = root
    for step in reference[2:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(here, Mapping):
            here = here.get(step)
        elif isinstance(here, list) and step.isdecimal() and len(step) < 10 and int(step) < len(here):
            here = here[int(step)]
        else:
            return None
    return here
