"""Python functions and pydantic models as tools: what their signatures say, as JSON Schema.

Strategy: simple annotations (`int`, `list[str]`, `str | None`, `Literal["a"]`, ...) are translated here, so that a
function with nothing else needs no library and gives the same schema everywhere.  What is not simple is pydantic's,
one `TypeAdapter` for each parameter; all parameters of a function share one set of definitions.  pydantic is loaded
only then, and is not a dependency.

Functions are the application's own code.  Nothing here reads anything from a request or a model.
"""

from __future__ import annotations

import functools
import inspect
import json
import types
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from toolgram.errors import ToolgramError
from toolgram.limits import LONGEST_DEFAULT, MAX_ANNOTATION_DEPTH

_PLAIN: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    list: {"type": "array", "items": {}},
    dict: {"type": "object", "additionalProperties": True},
    Any: {},
    Parameter.empty: {},
}
_NOT_SIMPLE: Any = object()
_LOST: Any = object()


@functools.lru_cache(maxsize=1024)
def described(tool: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the name, description and parameters of a Python function or a pydantic model class.

    Raises ToolgramError, naming the parameter, if an annotation cannot be said in JSON Schema.
    """
    if isinstance(tool, type):
        return _model(tool)
    function, bound = tool, set()
    while isinstance(function, functools.partial):
        bound |= set(function.keywords)
        function = function.func
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise ToolgramError(
            f"a function that has no name cannot be declared as a tool: {name or type(function).__name__}"
        )
    try:
        parameters = inspect.signature(tool).parameters
        hints = get_type_hints(function, include_extras=True)
    except (TypeError, ValueError, NameError) as error:
        raise ToolgramError(f"the function {name!r} cannot be declared as a tool: {error}") from None
    open_, declared = False, {}
    for key, parameter in parameters.items():
        if parameter.kind is Parameter.POSITIONAL_ONLY:
            raise ToolgramError(f"the parameter {key!r} of {name!r} takes no name, and a call has only named arguments")
        if parameter.kind is Parameter.VAR_KEYWORD:
            open_ = True
        elif parameter.kind is not Parameter.VAR_POSITIONAL and key not in bound:
            declared[key] = parameter
    return _definition(name, inspect.getdoc(function), _schema(name, declared, hints, open_))


def _definition(name: str, description: str | None, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, **({"description": description} if description else {}), "parameters": parameters}


def _model(model: Any) -> Mapping[str, Any]:
    try:
        schema = dict(model.model_json_schema())
    except Exception as error:  # of pydantic's many kinds, whichever version is there
        raise ToolgramError(f"the model {model.__name__!r} has no JSON Schema: {_brief(error)}") from None
    schema.pop("title", None)
    return _definition(model.__name__, schema.pop("description", None), schema)


def _schema(name: str, declared: Mapping[str, Parameter], hints: Mapping[str, Any], open_: bool) -> dict[str, Any]:
    """Return the schema of all parameters of a function."""
    made: dict[str, Any] = {}
    others: dict[str, Any] = {}  # annotations that pydantic has to read
    required = []
    for key, parameter in declared.items():
        annotation, default = hints.get(key, Parameter.empty), parameter.default
        field = type(default).__name__ == "FieldInfo"  # what pydantic's Field() gives
        schema = _NOT_SIMPLE if field else _simple(annotation, 0)
        if schema is _NOT_SIMPLE:
            others[key] = Annotated[annotation, default] if field else annotation
        made[key] = schema
        if default is Parameter.empty or (field and default.is_required()):
            required.append(key)
    definitions: Mapping[str, Any] = {}
    if others:
        schemas, definitions = _by_pydantic(name, others)
        made.update(schemas)
    for key, parameter in declared.items():
        if key not in required and "default" not in made[key] and (default := _as_json(parameter.default)) is not _LOST:
            made[key] = {**made[key], "default": default}
    parts = {"$defs": definitions} if definitions else {}
    return {"type": "object", "properties": made, "required": required, "additionalProperties": open_, **parts}


def _simple(annotation: Any, depth: int) -> Any:
    """Return the schema of a simple annotation, or `_NOT_SIMPLE`."""
    try:
        if annotation in _PLAIN:
            return dict(_PLAIN[annotation])
    except TypeError:
        return _NOT_SIMPLE  # not hashable
    origin, arguments = get_origin(annotation), get_args(annotation)
    if depth > MAX_ANNOTATION_DEPTH:
        return _NOT_SIMPLE
    if origin is Annotated and len(arguments) == 2 and isinstance(arguments[1], str):
        inner = _simple(arguments[0], depth + 1)
        return inner if inner is _NOT_SIMPLE else {**inner, "description": arguments[1]}
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        parts = [_simple(each, depth + 1) for each in arguments]
        return _NOT_SIMPLE if _NOT_SIMPLE in parts else {"anyOf": parts}
    if origin is list:
        inner = _simple(arguments[0], depth + 1)
        return inner if inner is _NOT_SIMPLE else {"type": "array", "items": inner}
    if origin is dict and arguments[0] is str:
        inner = _simple(arguments[1], depth + 1)
        return inner if inner is _NOT_SIMPLE else {"type": "object", "additionalProperties": inner or True}
    return _NOT_SIMPLE


def _literal(values: tuple[Any, ...]) -> Any:
    kinds = {type(value) for value in values}
    if not kinds <= {str, int, bool, type(None)}:
        return _NOT_SIMPLE  # members of an Enum
    kind = _PLAIN[kinds.pop()] if len(kinds) == 1 else {}
    return {"const": values[0], **kind} if len(values) == 1 else {"enum": list(values), **kind}


def _by_pydantic(name: str, annotations: Mapping[str, Any]) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return the schemas of annotations that are not simple, and the definitions that they refer to."""
    try:
        from pydantic import TypeAdapter
        from pydantic.json_schema import GenerateJsonSchema
    except ImportError:
        key = next(iter(annotations))
        raise ToolgramError(
            f"the annotation of the parameter {key!r} of {name!r} is not a simple one; pydantic reads it: "
            "pip install pydantic"
        ) from None

    class Quiet(GenerateJsonSchema):
        """Without a title for each field, and without warnings: a default that JSON cannot hold is left out."""

        ignored_warning_kinds = frozenset({"skipped-choice", "non-serializable-default"})  # type: ignore[assignment]

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    adapters: list[tuple[str, Literal["validation"], Any]] = []
    for key, annotation in annotations.items():
        try:
            adapter: Any = TypeAdapter(annotation)
            adapter.json_schema(schema_generator=Quiet)
        except Exception as error:  # of pydantic's many kinds, and what a class of the application raises
            raise ToolgramError(
                f"the annotation of the parameter {key!r} of {name!r} has no JSON Schema: {_brief(error)}"
            ) from None
        adapters.append((key, "validation", adapter))
    found, shared = TypeAdapter.json_schemas(adapters, schema_generator=Quiet)
    return {key: schema for (key, _), schema in found.items()}, shared.get("$defs", {})


def _as_json(value: Any) -> Any:
    """Return a default as a schema can have it, or `_LOST`: what an object prints as is its own affair."""
    try:
        text = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return _LOST
    return json.loads(text) if len(text) <= LONGEST_DEFAULT else _LOST


def _brief(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0][:200] if lines else type(error).__name__
