"""Tools in every known shape are read alike, and what is no known shape is an error that says so."""

from __future__ import annotations

import enum
import functools
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

import toolgram
from tests.cli.running import run
from tests.export.engines import Engines
from tests.tables import table
from tests.work import at_most
from toolgram.tools import validation
from toolgram.tools.parameters import parameters_of, types_of
from toolgram.tools.reading import DeclaredTool, read_tools, tool_schemas
from toolgram.tools.signatures import described
from toolgram.tools.validation import CheckedCall

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


class _Inner(BaseModel, extra="allow"):
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
def test_every_known_shape_is_read_alike(shape: str) -> None:
    """It types and exports the same call, and so does its chat shape."""
    message = toolgram.get_format("qwen3_coder").parse(CODER.format("7"), tools=[SHAPES[shape]])
    assert (message.tool_calls[0].arguments, message.anomalies) == ('{"a": "7", "b": 4}', [])
    grammar = toolgram.get_format("hermes").export("llguidance", [SHAPES[shape]], "required").text
    matcher = Engines().load("llguidance", grammar)
    for arguments, fits in (('{"a": "x", "b": 4}', True), ('{"a": 4, "b": 4}', False), ('{"a": "x", "b": "4"}', False)):
        call = f'<tool_call>\n{{"name": "f", "arguments": {arguments}}}\n</tool_call>'
        assert matcher.accepts(call) == fits, arguments
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
    assert not toolgram.get_format("hermes").parse(text, tools=[SERVER["dated, with a name"]]).anomalies
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


def _cyclic() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["a"] = {"anyOf": [schema["properties"], schema, {"allOf": [schema]}]}
    schema["properties"]["a"]["anyOf"].append(schema["properties"]["a"])
    schema["allOf"] = [schema, schema]
    return schema


def _nested(depth: int, key: str, count: int) -> dict[str, Any]:
    """A schema so often in itself, each time so many times."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {key: [schema] * count}
    return {"type": "object", "properties": {"a": schema}}


HOSTILE = {
    "cyclic": _cyclic(),
    "shared": _nested(60, "anyOf", 2),
    "deep": _nested(50_000, "allOf", 1),
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
    """It is exported or refused in time."""
    tools, refused = [{"name": "f", "parameters": HOSTILE[name]}], ""
    with at_most(calls=1_000_000):
        message = toolgram.get_format("qwen3_coder").parse(CODER.format("7"), tools=tools)
    assert message.tool_calls[0].status == "complete"
    with at_most(calls=10_000_000):
        try:
            made = toolgram.get_format("hermes").export("gbnf", tools=tools)
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


DEFS = {"$defs": {"Color": {"enum": ["red", "1"]}, "a/b": {"type": "integer"}}}


@pytest.mark.parametrize(("schema", "types"), table(__file__, "the_types_that_a_schema_allows"))
def test_the_types_that_a_schema_allows(schema: Any, types: str | None) -> None:
    assert types_of(schema, DEFS) == (None if types is None else frozenset(types.split()))


@pytest.mark.parametrize(("schema", "given", "undeclared"), table(__file__, "the_parameters_that_a_schema_declares"))
def test_the_parameters_that_a_schema_declares(schema: Any, given: str | None, undeclared: str | None) -> None:
    found = parameters_of(schema)
    for name, types in (("a", given), ("zz", undeclared)):
        assert found.types_for(name) == (None if types is None else frozenset(types.split()))


# --- functions and models: what is declared of them, and what is refused --------------------------------------------


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


def test_a_function_with_simple_annotations_needs_no_pydantic(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tool_schemas(simple) == [SIMPLE]
    assert toolgram.tool_schemas is tool_schemas
    described.cache_clear()
    monkeypatch.setitem(sys.modules, "pydantic", None)
    assert tool_schemas(simple) == [SIMPLE]
    with pytest.raises(toolgram.ToolgramError, match=r"tools\[0\]: .*'at' of 'nested' .* pip install pydantic"):
        tool_schemas(nested)


def test_what_a_server_reads_into_models_is_read_like_the_dict() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    extras: list[dict[str, Any]] = [{}, {"strict": True}, {"input_schema": schema}]
    for more in extras:
        given: dict[str, Any] = {"name": "f", "description": "d", "parameters": schema, **more}
        plain = {"type": "function", "function": given}
        lists = [_Inner(**given)], [_Outer(function=_Inner(**given))], [plain]
        (flat,), (nested,), (meant,) = map(read_tools, lists)
        assert flat.as_chat() == nested.as_chat() == meant.as_chat()
    with pytest.raises(toolgram.ToolgramError, match="two schemas that differ"):
        read_tools([_Inner.model_validate({"name": "f", "parameters": schema, "input_schema": {"type": "object"}})])
    assert [each.parameters for each in read_tools([_Inner(name="f")])] == [None]


def test_nested_types_are_read_by_pydantic() -> None:
    (tool,) = tool_schemas(nested)
    parameters = tool["function"]["parameters"]
    assert parameters["required"] == ["at", "colour", "options", "size", "many"]
    assert parameters["properties"]["at"] == {"$ref": "#/$defs/Point"}
    assert parameters["properties"]["many"]["items"] == {"$ref": "#/$defs/Point"}
    assert parameters["properties"]["count"] == {"default": 3, "minimum": 1, "type": "integer"}
    assert set(parameters["$defs"]) == {"Point", "Colour", "Options", "Size"}
    types = parameters_of(parameters).types
    found = [types[each] for each in ("at", "colour", "many", "count")]
    assert found == [frozenset({each}) for each in ("object", "string", "array", "integer")]


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


# --- calls against their schemas: every fault with its path, nothing fetched, nothing that takes long ---------------

FMT = toolgram.get_format("hermes")


def declared(name: str = "book", **schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", **schema}}}


TOOLS = table(__file__, "tools")
BOOK = TOOLS["book"]


def call(arguments: Any, name: str = "book") -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def checked(text: str, *tools: Any) -> list[CheckedCall]:
    return FMT.parse(text).validate(tools)


@pytest.mark.parametrize("name", table(__file__, "checked"))
def test_a_call_is_checked(name: str) -> None:
    row = table(__file__, "checked")[name]
    text = row["text"] if "text" in row else call(row["arguments"], row.get("name", "book"))
    tools = [TOOLS[each] for each in row["tools"]] if "tools" in row else None
    (found,) = FMT.parse(text, finish_reason=row.get("finish_reason")).validate(tools)
    assert (sorted(fault.path for fault in found.faults), found.notes) == (row["paths"], ())
    assert (found.is_valid, found.reply == "") == (not row["paths"],) * 2
    assert [words for words in row.get("says", ()) if words not in found.reply] == []
    assert "problem" not in row or found.faults[0].problem == row["problem"]
    assert found.is_valid or found.reply.startswith(f"The call of {found.name} was not made:")


def test_a_pattern_that_would_take_seconds_takes_none() -> None:
    slow = declared(properties={"a": {"type": "string", "pattern": "^(a+)+$"}})
    with at_most(calls=100_000):  # and an expression that tries all ways would not end
        (found,) = checked(call({"a": "a" * 5_000 + "b"}), slow)
    assert not found.is_valid


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(", r"^(\w{1,1000}){1,1000}$"])
def test_a_pattern_that_is_not_supported_is_a_note(pattern: str) -> None:
    schema = {"a": {"type": "string", "pattern": pattern}, "n": {"type": "integer"}}
    (found,) = checked(call({"a": "x", "n": "no"}), declared(properties=schema, patternProperties={"(?!x)": {}}))
    assert [fault.path for fault in found.faults] == ["n"], "the rest is checked"
    assert len(found.notes) == 2
    assert "properties.a: the pattern" in " ".join(found.notes)


@pytest.mark.parametrize("schema", table(__file__, "a_schema_that_cannot_be_used_is_a_note"))
def test_a_schema_that_cannot_be_used_is_a_note(schema: dict[str, Any]) -> None:
    (found,) = checked(call({"a": "x"}), declared(**schema))
    assert found.is_valid
    assert "were not checked" in found.notes[0]


def test_a_schema_that_is_no_json_or_too_deep() -> None:
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(3_000):
        inner["items"] = inner = {}
    for odd in ({"a": deep}, {"a": {1, 2}}):
        (found,) = checked(call({"a": "x"}), declared(properties=odd))
        assert "were not checked" in found.notes[0]


def test_deep_arguments_a_long_name_and_many_faults() -> None:
    text = f'<tool_call>\n{{"name": "book", "arguments": {{"to": {"[" * 90}{"]" * 90}}}}}\n</tool_call>'
    assert checked(text, BOOK)[0].faults
    assert len(checked(call({}, "x" * 100_000), BOOK)[0].reply) < 1_000
    many = {f"k{number}": number for number in range(100)}
    (found,) = checked(call(many), declared(additionalProperties={"type": "null"}))
    assert len(found.faults) == 21
    assert len(found.reply) < 7_000


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    validation._validator.cache_clear()
    with pytest.raises(toolgram.ToolgramError, match=r"\[validate\]"):
        checked(call({}), BOOK)


def test_the_command(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text(json.dumps([BOOK]))
    (tmp_path / "good.txt").write_text(call({"to": "Rome"}))
    (tmp_path / "bad.txt").write_text(call({"to": 3}))
    (tmp_path / "rows.jsonl").write_text(json.dumps({"output": call({"to": 3})}))
    parse = ["parse", "-f", "hermes", "--tools", str(tmp_path / "tools.json"), "--validate"]
    good = run(*parse, str(tmp_path / "good.txt"))
    assert good.exit_code == 0
    assert json.loads(good.stdout)["validation"][0]["valid"] is True
    bad = run(*parse, str(tmp_path / "bad.txt"))
    assert bad.exit_code == 1
    assert json.loads(bad.stdout)["validation"][0]["faults"] == [{"path": "to", "problem": '3 is not of type "string"'}]
    rows = run(*parse, "--jsonl", "output", str(tmp_path / "rows.jsonl"))
    assert json.loads(rows.stdout)["message"]["validation"][0]["valid"] is False
    assert run("parse", "-f", "hermes", "--validate", "x").exit_code == 2
    assert run(*parse, "--events", "x").exit_code == 2
