"""The tools of a request, in whatever known shape they come: one reader for parsing, typing and exporting.

APIs declare the same three things (a name, a description, a JSON Schema of the arguments) under different keys.  A
tool that is read by the wrong keys has no schema, and arguments without a schema are typed by guessing.  So there is
one reader, and what it does not know is an error that says what was found and what is known.

Strategy: `read_tools` looks only at the outer two levels of each tool, because a parser is made for every request.
Schemas are not walked here, and what a Python function says is read once and kept.  Tools that run on the server (a
web search, an MCP connector) or take plain text have no parameters: they are known by their `type`, keep their name if
they have one, and pass.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from toolgram.errors import ToolgramError

KNOWN_SHAPES = (
    'chat completions {"type": "function", "function": {"name", "parameters"}}; '
    'Responses {"type": "function", "name", "parameters"}; Anthropic {"name", "input_schema"}; '
    'MCP {"name", "inputSchema"}; {"name", "parameters"}; an object with these attributes; a pydantic model class; '
    'a Python function with annotations; a tool that runs on the server, such as {"type": "web_search"}'
)
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
_PLACES = frozenset({"function", *_SCHEMA_KEYS})  # where parameters may be
_KEYS = ("type", "function", "custom", "name", "description", "strict", *_SCHEMA_KEYS)
# Keys beside the name of a function that declares no parameters. Any other key may be where they are.
_BESIDE = frozenset(_KEYS) | {
    "title", "annotations", "outputSchema", "output_schema", "icons", "_meta", "meta", "execution", "cache_control",
    "defer_loading", "allowed_callers", "input_examples", "eager_input_streaming",
}  # fmt: skip
_SCHEMA_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_CALLABLES = (
    types.FunctionType,
    types.MethodType,
    types.BuiltinFunctionType,
    functools.partial,
)
_MISSING: Any = object()
_LONGEST_SHOWN = 40


class DeclaredTool(NamedTuple):
    """One tool. `name` is empty for a tool of the server that has none; only functions have parameters to be typed."""

    name: str
    is_function: bool
    definition: Mapping[str, Any]  # which has the name, and whatever else is said beside it

    @property
    def parameters(self) -> Mapping[str, Any] | None:
        """The JSON Schema of the arguments, as it was given, or None."""
        if not self.is_function:
            return None
        for key in _SCHEMA_KEYS:
            given = self.definition.get(key)
            if given is not None:
                return given if type(given) is dict or isinstance(given, Mapping) else _dumped(given)
        return None

    @property
    def description(self) -> str | None:
        """What the function does, in the words of its declaration."""
        given = self.definition.get("description")
        return given if isinstance(given, str) else None

    @property
    def strict(self) -> bool | None:
        """Whether the arguments have to follow the schema; None if that is not said."""
        given = self.definition.get("strict")
        return given if isinstance(given, bool) else None

    def as_chat(self) -> Any:
        """Return the tool as chat completions declare it; one that is not a function stays as it was given."""
        if not self.is_function:
            return self.definition
        parts = {"description": self.description, "parameters": self.parameters, "strict": self.strict}
        said = {key: part for key, part in parts.items() if part is not None}
        return {"type": "function", "function": {"name": self.name, **said}}


class Tools:
    """The tools of a request, read. `names` are those that a model may call."""

    __slots__ = ("_tools", "names", "parameters")

    def __init__(self, tools: Iterable[DeclaredTool]) -> None:
        self._tools = tuple(tools)
        self.parameters: Any = None  # what `toolgram.tools.parameters` has read of them
        self.names = frozenset([tool.name for tool in self._tools if tool.name])

    def __iter__(self) -> Iterator[DeclaredTool]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)


NO_TOOLS = Tools(())


def read_tools(tools: Any) -> Tools:
    """Return the tools of a request, each in any known shape; None is no tools, and read tools stay as they are.

    Costs about a microsecond for a tool that is a dict or a pydantic model. Raises ToolgramError for an unknown shape:
    it names the index, what was found, and the shapes that are known.
    """
    if tools is None:
        return NO_TOOLS
    if isinstance(tools, Tools):
        return tools
    listed = type(tools) is list or (isinstance(tools, Iterable) and not isinstance(tools, (str, bytes, Mapping)))
    if not listed:
        raise ToolgramError(f"tools are a list, one item for each tool; this is {_found(tools)}")
    found = []
    for at, tool in enumerate(tools):
        function = _usual_function(tool)
        if type(function) is dict and type(function.get("parameters")) is dict:  # the usual case, at once
            name = function.get("name")
            if type(name) is str and name and "input_schema" not in function and "inputSchema" not in function:
                found.append(DeclaredTool(name, True, function))
                continue
        found.append(_read(tool, at))
    return Tools(found)


def _usual_function(tool: Any) -> Any:
    """Return the function of a tool that is a dict or a pydantic model, as a dict; None for anything else."""
    if type(tool) is dict:
        return tool.get("function", tool)
    fields = getattr(tool, "__dict__", None)
    function = fields.get("function", tool) if type(fields) is dict else None
    known = function is not None and getattr(type(function), "__pydantic_fields__", None) is not None
    return function.__dict__ if known and not getattr(function, "__pydantic_extra__", None) else None


def tool_schemas(*tools: Any) -> list[dict[str, Any]]:
    """Return tools as chat completions take them, from Python functions, pydantic model classes, or any known shape.

    A function's name, parameters, defaults and docstring are used. Simple annotations are read as they are, others by
    pydantic, if it is installed. Raises ToolgramError for what cannot be declared, with the parameter and the
    reason.
    """
    import copy

    return [copy.deepcopy(tool.as_chat()) for tool in read_tools(tools)]


def _read(tool: Any, at: int) -> DeclaredTool:
    """Read one tool in any shape."""
    if isinstance(tool, (type, *_CALLABLES)):
        return _from_python(tool, at)
    definition = tool if isinstance(tool, Mapping) else _attributes(tool)
    inner = definition.get("function")
    if inner is not None:
        definition = inner if isinstance(inner, Mapping) else _attributes(inner)
    schemas = [definition[key] for key in _SCHEMA_KEYS if definition.get(key) is not None]
    kind = definition.get("type")
    if inner is None and not schemas and isinstance(kind, str) and kind not in ("function", *_SCHEMA_TYPES):
        return _of_the_server(definition, tool, at)
    name = _name(definition, tool, at)
    if len(schemas) > 1 and any(schema != schemas[0] for schema in schemas):
        raise _unknown(tool, at, f"{name!r} has two schemas that differ")
    if schemas and not isinstance(schemas[0], Mapping) and _dumped(schemas[0]) is None:
        raise _unknown(tool, at, f"the parameters of {name!r} are {_found(schemas[0])}, and not a JSON Schema")
    if not schemas and (odd := next((key for key in definition if key not in _BESIDE), None)) is not None:
        raise _unknown(tool, at, f"{name!r} has no parameters, but the unknown key {_short(odd)}")
    return DeclaredTool(name, True, definition)


def _name(definition: Mapping[str, Any], tool: Any, at: int) -> str:
    """Return the name of a function. Raises ToolgramError if there is none."""
    name = definition.get("name")
    if name is None:
        raise _unknown(tool, at, "it has no name")
    if not isinstance(name, str) or not name:
        raise _unknown(tool, at, "its name is empty" if name == "" else f"its name is {_found(name)}, and not text")
    return name


def _of_the_server(definition: Mapping[str, Any], tool: Any, at: int) -> DeclaredTool:
    """Read a tool that is known by its type. What takes plain text may have its name one level down."""
    if any(isinstance(part, Mapping) and "properties" in part for part in definition.values()):
        raise _unknown(tool, at, "it has a schema, but under no known key")
    custom = definition.get("custom")
    named = custom if isinstance(custom, Mapping) else definition
    name = named.get("name")
    return DeclaredTool(name if isinstance(name, str) else "", False, definition)


def _from_python(tool: Any, at: int) -> DeclaredTool:
    """Read a function or a model class. What it says is kept, so that only the first look at it costs anything."""
    if isinstance(tool, type) and not callable(getattr(tool, "model_json_schema", None)):
        raise _unknown(tool, at, "it is not a pydantic model")
    from toolgram.tools.signatures import described

    try:
        definition = described(tool)
    except ToolgramError as error:
        raise ToolgramError(f"tools[{at}]: {error}") from None
    return DeclaredTool(definition["name"], True, definition)


def _attributes(tool: Any) -> Mapping[str, Any]:
    """Return the attributes of an object under the keys that are known; none if it has no place for parameters."""
    kind: Any = type(tool)
    keys = _model_keys(kind)
    if keys is None:
        found = {key: each for key in _KEYS if (each := getattr(tool, key, _MISSING)) is not _MISSING}
    else:
        found = {key: getattr(tool, key) for key in keys}
        extra = getattr(tool, "__pydantic_extra__", None)
        if extra:
            found |= {key: extra[key] for key in _KEYS if key in extra}
    there = {key: each for key, each in found.items() if each is not None}
    has_place = not _PLACES.isdisjoint(found)
    return there if has_place or isinstance(there.get("type"), str) else {}


@functools.lru_cache(maxsize=256)
def _model_keys(kind: type[Any]) -> Sequence[str] | None:
    """Return the known keys of a pydantic model's objects; None for any other class. A model takes microseconds to say
    that it lacks an attribute, and a server reads its tools for each request."""
    fields = getattr(kind, "__pydantic_fields__", None)
    return [key for key in _KEYS if key in fields or hasattr(kind, key)] if isinstance(fields, Mapping) else None


def _dumped(schema: Any) -> Mapping[str, Any] | None:
    """Return a schema that is an object or a model class, as a mapping; None if it is neither."""
    if isinstance(schema, type):
        from toolgram.tools.signatures import described

        return described(schema)["parameters"] if callable(getattr(schema, "model_json_schema", None)) else None
    dump = getattr(schema, "model_dump", None)
    if not callable(dump):
        return None
    made = dump(mode="json", by_alias=True, exclude_unset=True)
    return made if isinstance(made, Mapping) else None


def _unknown(tool: Any, at: int, why: str) -> ToolgramError:
    return ToolgramError(f"tools[{at}]: {why}; this is {_found(tool)}. Known shapes: {KNOWN_SHAPES}")


def _found(value: Any) -> str:
    """Return what something is, in a few words, however large it is."""
    if isinstance(value, type):
        return f"the class {_short(value.__name__)}"
    if not isinstance(value, Mapping):
        return "None" if value is None else f"a value of the type {type(value).__name__}"
    keys = [_short(key) for _, key in zip(range(6), value, strict=False)]
    more = ", ..." if len(value) > len(keys) else ""
    kind = f" and the type {_short(value['type'])}" if isinstance(value.get("type"), str) else ""
    return f"a mapping with {'the keys ' if keys else 'no keys'}{', '.join(keys)}{more}{kind}"


def _short(value: Any) -> str:
    """Return a key or a name, however long it is."""
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST_SHOWN else value[:_LONGEST_SHOWN] + "...")
    return f"a {type(value).__name__}"
