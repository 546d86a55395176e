"""Which JSON types the parameters of the declared tools may have.

Strategy: read no more of a JSON Schema than decides whether a value may be text: `type`, `enum`, `const`, references
into the same schema, and the combinations `anyOf`, `oneOf` and `allOf`.  Schemas come from requests and are not
trusted: what has another shape, goes too deep or refers to itself leaves a parameter untyped, which is always safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Types: TypeAlias = frozenset[str] | None  # names of JSON Schema; None where any type may stand

TEXT_ONLY: Types = frozenset({"string"})
_KNOWN = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})
_MOST_STEPS = 64  # schemas looked at for one parameter
_OF = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one function: the types of each, which of them must be given, and the types of any other.

    A parameter that is not declared is text, unless the schema says that there may be others, or names none at all.
    """

    types: Mapping[str, Types] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    others: Types = None
    open: bool = True  # others may be given

    def types_for(self, name: str) -> Types:
        """The JSON types that the argument `name` may have."""
        return self.types.get(name, self.others)


def parameters_of(tools: Iterable[Any]) -> dict[str, Parameters]:
    """The parameters of OpenAI tool dicts by function name; what has another shape is passed over."""
    found: dict[str, Parameters] = {}
    for tool in tools:
        function = tool.get("function") if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if isinstance(name, str) and isinstance(function, Mapping):
            found[name] = _parameters(function.get("parameters"))
    return found


def _parameters(schema: Any) -> Parameters:
    if not isinstance(schema, Mapping):
        return Parameters()
    properties = schema.get("properties")
    required = schema.get("required")
    types = {
        str(name): types_of(declared, schema)
        for name, declared in (properties.items() if isinstance(properties, Mapping) else ())
    }
    names = tuple(name for name in required if isinstance(name, str)) if isinstance(required, list | tuple) else ()
    more = schema.get("additionalProperties", not types)
    others = types_of(more, schema) if isinstance(more, Mapping) else None if more is True else TEXT_ONLY
    return Parameters(types, names, others, bool(more))


def types_of(schema: Any, root: Mapping[str, Any]) -> Types:
    """The JSON types that a value of `schema` may have. `root` is the schema that references point into."""
    found: set[str] = set()
    pending, steps = [schema], 0
    while pending:
        here = pending.pop()
        steps += 1
        if steps > _MOST_STEPS or not isinstance(here, Mapping):
            return None
        if "type" in here:
            named = here["type"]
            names = {named} if isinstance(named, str) else set(named) if _is_strings(named) else set()
            if not names or not names <= _KNOWN:
                return None
            found |= names
        elif "const" in here:
            found.add(_OF.get(type(here["const"]), "object"))
        elif isinstance(here.get("enum"), list) and here["enum"]:
            found |= {_OF.get(type(value), "object") for value in here["enum"]}
        elif isinstance(here.get("$ref"), str):
            pending.append(_referred(here["$ref"], root))
        else:
            several = next((here[key] for key in ("anyOf", "oneOf", "allOf") if isinstance(here.get(key), list)), None)
            if not several:
                return None
            pending += several
    return frozenset(found)


def _is_strings(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(each, str) for each in value)


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    """What a reference such as `#/$defs/Point` points at; None where it leads nowhere."""
    here: Any = root
    if not reference.startswith("#/"):
        return None
    for step in reference[2:].split("/"):
        here = here.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(here, Mapping) else None
    return here
