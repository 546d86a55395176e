"""Tools in every known shape are read alike, and what is no known shape is an error that says so."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

import toolgram
from tests.export.engines import Engines
from tests.tables import table
from tests.work import at_most
from toolgram.tools.parameters import parameters_of, types_of
from toolgram.tools.reading import DeclaredTool, read_tools

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}, "required": ["a"]}
CODER = (
    "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n"
    + "<parameter=b>\n4\n</parameter>\n</function>\n</tool_call>"
)


class F(BaseModel):
    """What f does."""

    a: str
    b: int = 1


F.__name__ = "f"


def f(a: str, b: int = 1) -> None:
    """What f does."""


class _Inner(BaseModel):
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _Outer(BaseModel):
    type: str = "function"
    function: _Inner


class _Mcp(BaseModel):
    name: str
    description: str | None = None
    inputSchema: dict[str, Any]


class _SchemaModel(BaseModel):
    type: str = "object"
    properties: dict[str, Any]


class _WithSchemaModel(BaseModel):
    type: str | None = None
    name: str
    input_schema: _SchemaModel


SHAPES: dict[str, Any] = {
    "chat": {"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True}},
    "chat without type": {"function": {"name": "f", "parameters": SCHEMA}},
    "responses": {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True, "description": "d"},
    "anthropic": {"name": "f", "description": "d", "input_schema": SCHEMA, "cache_control": {"type": "ephemeral"}},
    "anthropic, custom": {"type": "custom", "name": "f", "input_schema": SCHEMA},
    "mcp": {"name": "f", "title": "F", "inputSchema": SCHEMA, "outputSchema": {"type": "object"}},
    "mcp object": _Mcp(name="f", inputSchema=SCHEMA),
    "attributes": SimpleNamespace(name="f", description="d", inputSchema=SCHEMA),
    "bare": {"name": "f", "parameters": SCHEMA},
    "nested objects": _Outer(function=_Inner(name="f", parameters=SCHEMA)),
    "a dict that holds an object": {"type": "function", "function": _Inner(name="f", parameters=SCHEMA)},
    "schema as an object": _WithSchemaModel(name="f", input_schema=_SchemaModel(properties=SCHEMA["properties"])),  # type: ignore[arg-type]
    "model": F,
    "model as the schema": {"name": "f", "parameters": F},
    "function": f,
    "partial": functools.partial(f),
}
SERVER: dict[str, Any] = {
    **table(__file__, "server"),
    "object": SimpleNamespace(type="file_search", vector_store_ids=["v"]),
}
UNKNOWN: list[tuple[Any, str]] = [
    *map(tuple, table(__file__, "unknown")),
    ({"name": "f", "parameters": int}, "the parameters of 'f' are the class 'int', and not a JSON Schema"),
    (SimpleNamespace(name="f", args_schema=SCHEMA), "it has no name"),
    (int, "it is not a pydantic model; this is the class 'int'"),
    ({"k" * 10_000: 1}, "it has no name; this is a mapping with the keys '" + "k" * 40 + "...'"),
]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_known_shape_types_the_same(shape: str) -> None:
    message = toolgram.get_format("qwen3_coder").parse(CODER.format("7"), tools=[SHAPES[shape]])
    assert message.tool_calls[0].arguments == '{"a": "7", "b": 4}'
    assert not message.anomalies


@pytest.mark.parametrize("shape", SHAPES)
def test_every_known_shape_exports_the_same_call(shape: str) -> None:
    grammar = toolgram.get_format("hermes").export("llguidance", [SHAPES[shape]], "required").text
    matcher = Engines().load("llguidance", grammar)
    call = '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>'
    assert matcher.accepts(call % '{"a": "x", "b": 4}')
    assert not matcher.accepts(call % '{"a": 4, "b": 4}')
    assert not matcher.accepts(call % '{"a": "x", "b": "4"}')


@pytest.mark.parametrize("shape", SHAPES)
def test_every_known_shape_has_a_chat_shape_that_reads_alike(shape: str) -> None:
    (tool,) = read_tools([SHAPES[shape]])
    (again,) = read_tools([tool.as_chat()])
    assert (again.name, again.parameters, again.description) == (tool.name, tool.parameters, tool.description)
    assert isinstance(tool, DeclaredTool)
    assert tool.is_function


@pytest.mark.parametrize("shape", SERVER)
def test_tools_of_the_server_pass(shape: str) -> None:
    tools = [SERVER[shape], SHAPES["chat"]]
    message = toolgram.get_format("qwen3_coder").parse(CODER.format("7"), tools=tools)
    assert message.tool_calls[0].arguments == '{"a": "7", "b": 4}'
    assert not message.anomalies
    assert len(read_tools(tools)) == 2
    assert next(iter(read_tools(tools))).parameters is None
    if shape.startswith("custom"):
        with pytest.raises(toolgram.ToolgramError, match="'code' has the type custom; its input is free text"):
            toolgram.get_format("hermes").export("llguidance", tools=tools)
        return
    made = toolgram.get_format("hermes").export("llguidance", tools=tools)
    assert any(note.startswith("tools without parameters of their own") for note in made.notes)


def test_a_tool_of_the_server_with_a_name_may_be_called() -> None:
    text = '<tool_call>\n{"name": "web_search", "arguments": {}}\n</tool_call>'
    tools = [SERVER["dated, with a name"]]
    assert not toolgram.get_format("hermes").parse(text, tools=tools).anomalies
    assert toolgram.get_format("hermes").parse(text, tools=[SHAPES["chat"]]).anomalies[0].kind == "unknown_tool"


@pytest.mark.parametrize(("tool", "words"), UNKNOWN)
def test_an_unknown_shape_is_a_clear_error(tool: Any, words: str) -> None:
    fmt = toolgram.get_format("qwen3_coder")
    for ask in (
        lambda tools: fmt.parser(tools=tools),
        lambda tools: fmt.parse("", tools=tools),
        lambda tools: fmt.explain("", tools),
        lambda tools: fmt.export("gbnf", tools=tools),
    ):
        with pytest.raises(toolgram.ToolgramError) as caught:
            ask([SHAPES["chat"], tool])
        said = str(caught.value)
        assert said.startswith("tools[1]: ")
        assert words in said
        assert "Known shapes: chat completions" in said
        assert len(said) < 1_000


@pytest.mark.parametrize("tools", [SHAPES["chat"], "f", f, 3, {"tools": []}])
def test_tools_that_are_no_list_are_an_error(tools: Any) -> None:
    with pytest.raises(toolgram.ToolgramError, match="tools are a list, one item for each tool; this is "):
        toolgram.get_format("hermes").parser(tools=tools)


def test_the_command_says_which_tool_it_cannot_read(tmp_path: Any) -> None:
    path = tmp_path / "tools.json"
    path.write_text(json.dumps([SHAPES["mcp"], {"name": "g", "args": {}}]))
    command = [sys.executable, "-m", "toolgram", "parse", "--format", "hermes", "--tools", str(path)]
    done = subprocess.run(command, input="hi", capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "tools[1]: 'g' has no parameters" in " ".join(done.stderr.split())


# --- bounds -------------------------------------------------------------------------------------------------------


def _cyclic() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["a"] = {"anyOf": [schema["properties"], schema, {"allOf": [schema]}]}
    schema["properties"]["a"]["anyOf"].append(schema["properties"]["a"])
    schema["allOf"] = [schema, schema]
    return schema


def _shared(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"anyOf": [schema, schema]}
    return {"type": "object", "properties": {"a": schema}}


def _deep(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"allOf": [schema]}
    return {"type": "object", "properties": {"a": schema}}


HOSTILE = {
    "cyclic": _cyclic(),
    "shared": _shared(60),
    "deep": _deep(50_000),
    "a reference to itself": {"properties": {"a": {"$ref": "#/properties/a"}}},
    "a reference to the root": {"$ref": "#", "properties": {"a": {"$ref": "#"}}},
    "a long reference": {"properties": {"a": {"$ref": "#" + "/properties" * 100_000}}},
    "an index of many digits": {"anyOf": [{}], "properties": {"a": {"$ref": "#/anyOf/" + "9" * 5_000}}},
    "many parts": {"anyOf": [{"properties": {"a": {"type": "string"}}}] * 100_000},
    "many types": {"properties": {"a": {"type": ["string"] * 100_000 + [{}]}}},
    "many values": {"properties": {"a": {"enum": [str(at) for at in range(100_000)]}}},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_costs_little(name: str) -> None:
    with at_most(calls=1_000_000):
        message = toolgram.get_format("qwen3_coder").parse(
            CODER.format("7"), tools=[{"name": "f", "parameters": HOSTILE[name]}]
        )
    assert message.tool_calls[0].status == "complete"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_is_exported_or_refused_in_time(name: str) -> None:
    refused = ""
    with at_most(calls=10_000_000):
        try:
            made = toolgram.get_format("hermes").export("gbnf", tools=[{"name": "f", "parameters": HOSTILE[name]}])
        except toolgram.ToolgramError as error:
            refused = str(error)
    assert "'f'" in refused if refused else len(made.text) < 20_000_000
    assert len(refused) < 1000


_COMBINING = ("$ref", "anyOf", "allOf", "properties", "additionalProperties", "patternProperties")
_KEYWORDS = ("type", "enum", "const", "required", "nullable", "a", *_COMBINING)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["string", "#/a", "#"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYWORDS), inner, max_size=4),
)


@given(_VALUES)
def test_no_schema_of_any_shape_is_refused_by_a_parser(schema: Any) -> None:
    found = parameters_of(schema)
    assert all(types is None or types <= _ALL for types in [*found.types.values(), found.others])


_ALL = {"string", "integer", "number", "boolean", "null", "array", "object"}


# --- what a schema allows -----------------------------------------------------------------------------------------

DEFS = {"$defs": {"Color": {"enum": ["red", "1"]}, "a/b": {"type": "integer"}}}


@pytest.mark.parametrize(("schema", "types"), table(__file__, "the_types_that_a_schema_allows"))
def test_the_types_that_a_schema_allows(schema: Any, types: str | None) -> None:
    assert types_of(schema, DEFS) == (None if types is None else frozenset(types.split()))


@pytest.mark.parametrize(
    ("schema", "given", "undeclared"),
    table(__file__, "the_parameters_that_a_schema_declares"),
)  # fmt: skip
def test_the_parameters_that_a_schema_declares(schema: Any, given: str | None, undeclared: str | None) -> None:
    found = parameters_of(schema)
    for name, types in (("a", given), ("zz", undeclared)):
        assert found.types_for(name) == (None if types is None else frozenset(types.split()))
