"""What a request requires of an output: its tools, and which of them may, must or must not be called.

Strategy: the words and forms of the APIs (chat completions, Responses, Anthropic) are read into one record. Every
schema is read once (`normalising`), and a note with the name of the tool reports what was not kept. Anything unknown is
an error that names what was found.
"""

from __future__ import annotations

import json
import marshal
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from toolgram.errors import ToolgramError
from toolgram.export.arguments import schema_text
from toolgram.export.expressions import EngineFormat, Expr, Json, Note
from toolgram.export.markers import NO_TOKENS, Tokens
from toolgram.export.normalising import normal_form
from toolgram.export.values import alternatives
from toolgram.limits import MAX_KEPT_SCHEMA, MOST_KEPT_SCHEMAS
from toolgram.tools.reading import DeclaredTool, read_tools

ToolChoice: TypeAlias = str | Mapping[str, Any] | Sequence[str] | None
_WORDS = {"auto": "auto", "required": "required", "any": "required", "none": "none"}
_KNOWN = (
    'auto, required, none, {"type": "function", "function": {"name": ...}}, a list of names, or '
    '{"type": "allowed_tools", "mode": ..., "tools": [...]}'
)


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """What a request requires of an output."""

    tools: tuple[Tool, ...] = ()
    declared: tuple[str, ...] = ()  # the names of all functions, including those that must not be called
    calls: bool = False  # whether calls are allowed
    required: bool = False  # whether a call is required
    parallel: bool = True
    reasoning: bool | None = None
    answer: Expr | None = None  # the expression that the text of the answer must match
    tokens: Tokens = NO_TOKENS  # the markers that are special tokens
    text_before_calls: bool = False  # whether text is allowed before a required call
    named: bool = False  # exactly one call, and nothing after it


def export_request(
    tools: Sequence[Any] | None = None, tool_choice: ToolChoice = "auto", parallel_tool_calls: bool = True,
    reasoning: bool | None = None, json_schema: Mapping[str, Any] | None = None,
    special_tokens: Mapping[str, int | None] | None = None, note: Note = str, strict: bool | None = None,
    open_objects: bool = False, text_before_calls: bool = False, answer_format: Mapping[str, Any] | None = None,
) -> ExportRequest:  # fmt: skip
    """Return a checked request. Raises ToolgramError that names the fault."""
    answer = _answer(json_schema, answer_format, note, open_objects)
    declared = tuple(tools_of(tools, note, strict, open_objects))
    known = [tool.name for tool in declared]
    mode, names = _chosen(tool_choice)
    chosen = declared if names is None else tuple(tool for tool in declared if tool.name in names)
    for name in names or ():
        if name not in known:
            tools_known = ", ".join(known) or "none"
            raise ToolgramError(f"tool_choice names the function {name!r}, which is not declared; tools: {tools_known}")
    if mode == "required" and not declared:
        raise ToolgramError("tool_choice is required, and no tools are given")
    calls = bool(chosen) and mode != "none"
    named = mode == "named"
    tokens, required = Tokens(tuple((special_tokens or {}).items())), mode in ("required", "named")
    return ExportRequest(
        chosen if calls else (), tuple(known), calls, required, parallel_tool_calls and not named, reasoning, answer,
        tokens, text_before_calls, named,
    )  # fmt: skip


def _answer(
    schema: Mapping[str, Any] | None, engine_format: Mapping[str, Any] | None, note: Note, open_objects: bool
) -> Expr | None:
    """Return the expression that the text of the answer must match; None for any text."""
    if schema is not None and engine_format is not None:
        raise ToolgramError("json_schema and answer_format both bind the text of the answer; give one of them")
    if schema is not None:
        normal = normal_form(schema, "json_schema", lambda words: note(f"json_schema: {words}"), "", open_objects)
        return Json(schema_text(normal, normal.get("$defs", {})))
    if engine_format is None:
        return None
    if not isinstance(engine_format, dict) or not isinstance(engine_format.get("type"), str):
        raise ToolgramError(f"answer_format is a dict with a type, such as regex; got {reprlib.repr(engine_format)}")
    try:
        return EngineFormat(json.dumps(engine_format, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise ToolgramError(f"answer_format cannot be written as JSON: {type(error).__name__} {error}") from None


def _chosen(choice: ToolChoice) -> tuple[str, list[str] | None]:
    """Return the mode of calls (auto, required, none or named), and the names that it allows; None for all."""
    if choice is None:
        return "auto", None
    if isinstance(choice, str):
        if choice not in _WORDS:
            raise ToolgramError(f"unknown tool_choice {choice!r}; it is {_KNOWN}")
        return _WORDS[choice], None
    if not isinstance(choice, Mapping):
        return "auto", [_name(each) for each in choice]
    kind = choice.get("type")
    if kind == "allowed_tools":
        inner = choice.get("allowed_tools", choice)
        tools = inner.get("tools") if isinstance(inner, Mapping) else None
        mode = inner.get("mode", "auto") if isinstance(inner, Mapping) else None
        if mode not in ("auto", "required") or not isinstance(tools, list | tuple):
            raise ToolgramError(f"tool_choice allows no tools that can be read: {reprlib.repr(dict(choice))}")
        return mode, [_name(each) for each in tools]
    if isinstance(kind, str) and kind in _WORDS and "name" not in choice:
        return _WORDS[kind], None
    return "named", [_name(choice)]


def _name(choice: Any) -> str:
    """Return the name in a choice of one tool."""
    if isinstance(choice, str):
        return choice
    function = choice.get("function", choice) if isinstance(choice, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str):
        raise ToolgramError(f"tool_choice names no function: {reprlib.repr(choice)}; it is {_KNOWN}")
    return name


# --- tools -----------------------------------------------------------------------------------------------------------

_ANY_OBJECT: Mapping[str, Any] = {"type": "object", "additionalProperties": True}


@dataclass(frozen=True, eq=False)
class Parameters:
    """The parameters of a function: the normal form of their schema, its alternatives, and the notes on it.

    `forms` are the alternatives: plain objects, whose parts may refer to definitions of the schema. `names` are the
    declared parameters, even if the schema is not enforced. `written` keeps what each format writes for them.
    """

    schema: Mapping[str, Any]
    forms: tuple[Mapping[str, Any], ...]
    names: tuple[str, ...]
    notes: tuple[str, ...]
    written: WeakKeyDictionary[Any, dict[Any, tuple[Expr, tuple[str, ...]]]] = field(default_factory=WeakKeyDictionary)


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared function."""

    name: str
    parameters: Parameters


def tools_of(
    tools: Iterable[Any] | None, note: Note, strict: bool | None = None, open_objects: bool = False
) -> list[Tool]:
    """Return the tools of a request. Raises ToolgramError for one that cannot be exported."""
    found: dict[str, Tool] = {}
    for at, tool in enumerate(read_tools(tools)):
        name = tool.name
        if not tool.is_function and tool.definition.get("type") == "custom":
            raise ToolgramError(
                f"tools[{at}]: {name!r} has the type custom; its input is free text, and exports write arguments by a "
                "schema. Leave it out, or declare a function with one string"
            )
        if not tool.is_function:
            continue
        if not name.isascii() and any("\ud800" <= char <= "\udfff" for char in name):
            raise ToolgramError(f"tools[{at}]: the name {name!r} holds half a character (a lone surrogate)")
        if name in found:
            raise ToolgramError(f"tools[{at}]: the function {name!r} is declared twice")
        is_strict = tool.strict if strict is None else strict
        parameters = _parameters(tool, is_strict is not False, open_objects and not is_strict)
        for words in parameters.notes:
            note(f"{name}: {words}")
        found[name] = Tool(name, parameters)
    return list(found.values())


def _parameters(tool: DeclaredTool, enforced: bool, open_objects: bool) -> Parameters:
    """Return the parameters of a function. Those of small schemas are kept: functions come back in other requests."""
    schema: Any = tool.parameters
    try:
        data = marshal.dumps(schema)  # quick, no two different values are alike, and shared parts are written once
        if len(data) <= MAX_KEPT_SCHEMA:
            return _kept_parameters(data, enforced, open_objects)
    except (ValueError, ToolgramError):
        pass  # it has other objects than those of JSON, or an error has to name the function
    return _read_parameters(schema, f"the parameters of {tool.name!r}", enforced, open_objects)


@lru_cache(maxsize=MOST_KEPT_SCHEMAS)
def _kept_parameters(data: bytes, enforced: bool, open_objects: bool) -> Parameters:
    return _read_parameters(marshal.loads(data), "", enforced, open_objects)


def _read_parameters(schema: Any, where: str, enforced: bool, open_objects: bool) -> Parameters:
    properties = (schema or {}).get("properties")
    names = tuple(properties) if isinstance(properties, Mapping) else ()
    notes: dict[str, None] = {}
    if schema is not None:
        normal = normal_form(schema, where, notes.setdefault, "object" if enforced else "", open_objects)
    if schema is None or not enforced:
        normal, notes = _ANY_OBJECT, {}
    return Parameters(normal, tuple(_plain(normal)), names, tuple(notes))


def _plain(schema: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield the alternative objects for the arguments. The members of a listed object are listed values."""
    for form in alternatives(schema, schema.get("$defs", {})):
        if "enum" not in form:
            yield form
            continue
        for value in form["enum"]:
            members = {name: {"enum": [each]} for name, each in value.items()}
            yield {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}
