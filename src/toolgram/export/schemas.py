"""The tools of a request, with their schemas in normal form.

Strategy: every schema is read once (`normalising`), and a note with the name of the tool reports what was not kept. An
invalid schema is one error with the tool and the path.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolgram.errors import ToolgramError
from toolgram.export.expressions import Note
from toolgram.export.normalising import normal_form
from toolgram.export.values import alternatives
from toolgram.tools.reading import DeclaredTool, read_tools

_ANY_OBJECT: Mapping[str, Any] = {"type": "object", "additionalProperties": True}


@dataclass(frozen=True, slots=True)
class Tool:
    """A declared function: its name, and the normal form of the schema of its arguments.

    `forms` are the alternatives of that schema: plain objects, whose parts may refer to definitions of the schema.
    `names` are the declared parameters, even if the schema is not enforced.
    """

    name: str
    schema: Mapping[str, Any]
    forms: tuple[Mapping[str, Any], ...]
    names: tuple[str, ...] = ()

    @property
    def may_be_empty(self) -> bool:
        """Whether a call may have no arguments."""
        return any(not form.get("required") and not form.get("minProperties") for form in self.forms)


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
        schema = _arguments(tool, lambda words, name=name: note(f"{name}: {words}"), is_strict, open_objects)  # type: ignore[misc]
        properties = (tool.parameters or {}).get("properties")
        names = tuple(properties) if isinstance(properties, Mapping) else ()
        found[name] = Tool(name, schema, tuple(_plain(schema)), names)
    return list(found.values())


def _arguments(tool: DeclaredTool, note: Note, strict: bool | None, open_objects: bool) -> Mapping[str, Any]:
    schema, where = tool.parameters, f"the parameters of {tool.name!r}"
    if schema is None:
        return _ANY_OBJECT
    if strict is False:
        normal_form(schema, where, lambda words: None)
        return _ANY_OBJECT
    return normal_form(schema, where, note, "object", open_objects and not strict)


def _plain(schema: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield the alternative objects for the arguments. The members of a listed object are listed values."""
    for form in alternatives(schema, schema.get("$defs", {})):
        if "enum" not in form:
            yield form
            continue
        for value in form["enum"]:
            members = {name: {"enum": [each]} for name, each in value.items()}
            yield {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}
