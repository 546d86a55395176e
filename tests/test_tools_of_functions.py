"""Tools that are functions and models: what is declared of them, and what is refused."""

from __future__ import annotations

import enum
import functools
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import toolgram
from tests.tables import table
from tests.test_tools import SCHEMA, F, f
from tests.work import at_most
from toolgram.tools.parameters import parameters_of
from toolgram.tools.reading import read_tools, tool_schemas


class Point(BaseModel):
    x: int
    y: int = 0


class Colour(enum.Enum):
    RED = "red"


class Options(TypedDict):
    deep: bool


@dataclass
class Size:
    width: float


def simple(
    city: str,
    days: int = 3,
    *,
    units: Literal["C", "F"] = "C",
    tags: list[str] | None = None,
    limit: Annotated[float, "At most this"] = 1.5,
    extra: dict[str, int] | None = None,
    anything: Any = None,
) -> str:
    """Get the weather.

    For some days.
    """
    return city


def nested(
    at: Point, colour: Colour, options: Options, size: Size, many: list[Point], count: int = Field(3, ge=1)
) -> None: ...


SIMPLE = table(__file__, "simple")


def test_a_function_with_simple_annotations() -> None:
    assert tool_schemas(simple) == [SIMPLE]
    assert toolgram.tool_schemas is tool_schemas


def test_simple_annotations_need_no_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    from toolgram.tools.signatures import described

    described.cache_clear()
    monkeypatch.setitem(sys.modules, "pydantic", None)
    assert tool_schemas(simple) == [SIMPLE]
    with pytest.raises(toolgram.ToolgramError, match=r"tools\[0\]: .*'at' of 'nested' .* pip install pydantic"):
        tool_schemas(nested)


class Function(BaseModel, extra="allow"):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ChatTool(BaseModel):
    type: str = "function"
    function: Function


def test_what_a_server_reads_into_models_is_read_like_the_dict() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    extras: list[dict[str, Any]] = [{}, {"strict": True}, {"input_schema": schema}]
    for more in extras:
        given: dict[str, Any] = {"name": "f", "description": "d", "parameters": schema, **more}
        plain = {"type": "function", "function": given}
        (flat,), (nested,), (meant,) = (
            read_tools(tools) for tools in ([Function(**given)], [ChatTool(function=Function(**given))], [plain])
        )
        assert flat.as_chat() == nested.as_chat() == meant.as_chat()
    with pytest.raises(toolgram.ToolgramError, match="two schemas that differ"):
        read_tools([Function.model_validate({"name": "f", "parameters": schema, "input_schema": {"type": "object"}})])
    assert [each.parameters for each in read_tools([Function(name="f")])] == [None]


def test_nested_types_are_read_by_pydantic() -> None:
    (tool,) = tool_schemas(nested)
    parameters = tool["function"]["parameters"]
    assert parameters["required"] == ["at", "colour", "options", "size", "many"]
    assert parameters["properties"]["at"] == {"$ref": "#/$defs/Point"}
    assert parameters["properties"]["many"]["items"] == {"$ref": "#/$defs/Point"}
    assert parameters["properties"]["count"] == {"default": 3, "minimum": 1, "type": "integer"}
    assert set(parameters["$defs"]) == {"Point", "Colour", "Options", "Size"}
    types = parameters_of(parameters).types
    assert types["at"] == frozenset({"object"})
    assert types["colour"] == frozenset({"string"})
    assert types["many"] == frozenset({"array"})
    assert types["count"] == frozenset({"integer"})


def test_the_schemas_of_a_function_are_valid_and_its_own() -> None:
    import jsonschema

    for tool in tool_schemas(simple, nested, F, f):
        jsonschema.Draft202012Validator.check_schema(tool["function"]["parameters"])
    first, again = tool_schemas(nested), tool_schemas(nested)
    first[0]["function"]["parameters"]["properties"].clear()
    assert again == tool_schemas(nested)


def test_a_bound_method_and_a_partial_leave_out_what_they_have() -> None:
    class Service:
        def look(self, a: str, b: int) -> None: ...

    (method,) = tool_schemas(Service().look)
    assert list(method["function"]["parameters"]["properties"]) == ["a", "b"]
    (partial,) = tool_schemas(functools.partial(Service().look, b=2))
    assert list(partial["function"]["parameters"]["properties"]) == ["a"]


def test_further_arguments_are_open() -> None:
    def many(a: int, *rest: int, **more: int) -> None: ...

    (tool,) = tool_schemas(many)
    assert tool["function"]["parameters"]["additionalProperties"] is True
    assert list(tool["function"]["parameters"]["properties"]) == ["a"]


def _positional(a: int, /) -> None: ...


def _unreadable(a: subprocess.Popen[str]) -> None: ...


def _forward(a: Gone) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (_positional, "the parameter 'a' of '_positional' takes no name"),
        (_unreadable, "the annotation of the parameter 'a' of '_unreadable' has no JSON Schema: "),
        (_forward, "the function '_forward' cannot be declared as a tool: name 'Gone' is not defined"),
        (lambda a: a, "a function that has no name cannot be declared as a tool: <lambda>"),
    ],
)
def test_a_function_that_cannot_be_declared_says_why(function: Any, words: str) -> None:
    with pytest.raises(toolgram.ToolgramError) as caught:
        toolgram.get_format("hermes").parser(tools=[function])
    assert str(caught.value).startswith(f"tools[0]: {words}")


def test_twenty_tools_cost_a_parser_little() -> None:
    tools = [{"type": "function", "function": {"name": f"f{at}", "parameters": SCHEMA}} for at in range(20)]
    read_tools(tools)
    with at_most(calls=300):
        read_tools(tools)
