"""How a raw value is typed by the schema of its parameter: one table, the same in every format that writes values raw.

Strategy: each row is a schema, what the model wrote, and the JSON that this is. It is read in several formats whose
markers differ, whole and by character. A number is compared as it is written, so that no digit is lost.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram

# by format: a call of f, its only argument
FRAMES = {
    "glm45": "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
    "minimax_m2": '<minimax:tool_call><invoke name="f"><parameter name="a">{}</parameter></invoke></minimax:tool_call>',
    "qwen3_coder": "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>",
}
DOTS = '<dots_function_call><invoke name="f"><parameter name="a">{}</parameter></invoke></dots_function_call>'
INTEGER, NUMBER, BOOLEAN, STRING = ({"type": name} for name in ("integer", "number", "boolean", "string"))
OBJECT, ARRAY, NULL = ({"type": name} for name in ("object", "array", "null"))


def either(*names: str) -> dict[str, Any]:
    return {"type": list(names)}


# schema of the parameter, what is written, the JSON that it is
ROWS: list[tuple[Any, str, str]] = [
    # a declared string is text as it stands
    (STRING, "Paris", '"Paris"'),
    (STRING, "3", '"3"'),
    (STRING, "null", '"null"'),
    (STRING, "true", '"true"'),
    (STRING, '"q"', r'"\"q\""'),
    (STRING, '{"a": 1}', r'"{\"a\": 1}"'),
    (STRING, "", '""'),
    (STRING, "  a  ", '"  a  "'),
    # numbers, as they are written
    (INTEGER, "3", "3"),
    (INTEGER, "-3", "-3"),
    (INTEGER, " 3 ", "3"),
    (INTEGER, "3.0", "3.0"),
    (INTEGER, "9007199254740993", "9007199254740993"),
    (INTEGER, "123456789012345678901234567890", "123456789012345678901234567890"),
    (INTEGER, "three", '"three"'),
    (INTEGER, "true", '"true"'),
    (INTEGER, "null", '"null"'),
    (INTEGER, "1_000", '"1_000"'),
    (INTEGER, "+49 30", '"+49 30"'),
    (INTEGER, '"3"', r'"\"3\""'),
    (INTEGER, "[3]", '"[3]"'),
    (INTEGER, "", '""'),
    (NUMBER, "5.0", "5.0"),
    (NUMBER, "1e3", "1e3"),
    (NUMBER, "2.50", "2.50"),
    (NUMBER, "9007199254740993", "9007199254740993"),
    (NUMBER, "0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827"),
    (NUMBER, "NaN", '"NaN"'),
    (NUMBER, "false", '"false"'),
    # booleans
    (BOOLEAN, "true", "true"),
    (BOOLEAN, "True", "true"),
    (BOOLEAN, "1", "true"),
    (BOOLEAN, "false", "false"),
    (BOOLEAN, "False", "false"),
    (BOOLEAN, "0", "false"),
    (BOOLEAN, "yes", '"yes"'),
    (BOOLEAN, "10", '"10"'),
    (BOOLEAN, "2", '"2"'),
    (BOOLEAN, "null", '"null"'),
    (BOOLEAN, "None", '"None"'),
    # objects and lists, in JSON's spelling or in Python's
    (OBJECT, '{"a": {"b": [1, null]}}', '{"a": {"b": [1, null]}}'),
    (OBJECT, "{'a': True, 'b': None}", '{"a": true, "b": null}'),
    (OBJECT, '{"n": 9007199254740993}', '{"n": 9007199254740993}'),
    (OBJECT, "3", '"3"'),
    (OBJECT, "true", '"true"'),
    (OBJECT, "null", '"null"'),
    (OBJECT, "text", '"text"'),
    (ARRAY, '["x", "y"]', '["x", "y"]'),
    (ARRAY, "['x', False]", '["x", false]'),
    (ARRAY, "x, y", '"x, y"'),
    (ARRAY, "1", '"1"'),
    (ARRAY, '"x"', r'"\"x\""'),
    # null only where it is allowed
    (NULL, "null", "null"),
    (NULL, "None", "null"),
    (NULL, "nothing", '"nothing"'),
    (either("string", "null"), "null", "null"),
    (either("string", "null"), "nullable", '"nullable"'),
    (either("string", "null"), "3", '"3"'),
    ({"type": "string", "nullable": True}, "null", "null"),
    ({"anyOf": [INTEGER, NULL]}, "null", "null"),
    ({"anyOf": [INTEGER, NULL]}, "4", "4"),
    # a union takes the first that fits: null, integer, number, boolean, object, array, string
    (either("string", "integer"), "3", "3"),
    (either("string", "integer"), "3.5", '"3.5"'),
    (either("string", "number"), "3.5", "3.5"),
    (either("integer", "boolean"), "1", "1"),
    (either("integer", "boolean"), "true", "true"),
    (either("string", "boolean"), "1", "true"),
    (either("string", "boolean"), "true", "true"),
    (either("string", "object"), '{"a": 1}', '{"a": 1}'),
    (either("string", "object"), "{a}", '"{a}"'),
    (either("string", "object"), "[1]", '"[1]"'),
    (either("string", "array"), "[1]", "[1]"),
    (either("number", "null"), "none", '"none"'),
    # what lists values, or puts schemas together
    ({"enum": ["1", "2"]}, "1", '"1"'),
    ({"enum": [1, 2]}, "1", "1"),
    ({"enum": ["auto", 3]}, "3", "3"),
    ({"enum": ["auto", 3]}, "auto", '"auto"'),
    ({"enum": ["a", None]}, "null", "null"),
    ({"const": 7}, "7", "7"),
    ({"oneOf": [INTEGER, ARRAY]}, "[1]", "[1]"),
    ({"allOf": [either("integer", "string"), STRING]}, "3", '"3"'),
    ({"type": "array", "items": STRING}, "[1, 2]", "[1, 2]"),
]


def read(name: str, written: str, properties: Any) -> str:
    fmt = toolgram.get_format(name)
    text = (DOTS if name == "dots" else FRAMES[name]).replace("{}", written, 1)
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}]
    tools = tools if properties is not None else []
    whole = fmt.parse(text, tools=tools, prefix="")
    parser = fmt.parser(tools=tools, prefix="")
    for character in text:
        parser.feed(character)
    parser.close()
    assert [call.arguments for call in parser.message.tool_calls] == [call.arguments for call in whole.tool_calls]
    (call,) = whole.tool_calls
    assert call.status == "complete"
    assert isinstance(json.loads(call.arguments), dict)
    return call.arguments.removeprefix('{"a": ').removesuffix("}")


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize(("schema", "written", "value"), ROWS)
def test_a_value_is_what_its_parameter_says(name: str, schema: Any, written: str, value: str) -> None:
    assert read(name, written, {"a": schema}) == value


@pytest.mark.parametrize("name", FRAMES)
def test_a_parameter_that_is_not_declared_is_text(name: str) -> None:
    assert read(name, "3", {"b": INTEGER}) == '"3"'


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("written", ["3", "[1, True]", "x", "null"])
def test_a_function_without_properties_takes_text(name: str, written: str) -> None:
    assert read(name, written, {}) == json.dumps(written)


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("3", "3"),
        ("3.10", '"3.10"'),
        ("[1, true]", "[1, true]"),
        ("[1, True]", '"[1, True]"'),
        ("x", '"x"'),
        ("null", "null"),
    ],
)
def test_without_tools_json_that_is_written_the_same_is_json(name: str, written: str, value: str) -> None:
    assert read(name, written, None) == value


@pytest.mark.parametrize(
    ("schema", "written", "value"),
    [
        (STRING, " \n a  b \n", '"a  b"'),
        (STRING, "a", '"a"'),
        (STRING, "  ", '""'),
        (INTEGER, " 3\n", "3"),
        (INTEGER, "\n three ", '"three"'),
        (either("string", "null"), " null ", "null"),
        (either("string", "null"), " none of it ", '"none of it"'),
        (ARRAY, "\n[1]\n", "[1]"),
    ],
)
def test_a_trimmed_value_has_no_blanks_at_its_ends(schema: Any, written: str, value: str) -> None:
    assert read("dots", written, {"a": schema}) == value
