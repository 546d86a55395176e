"""An anomaly about a value between markers stands where the value is repaired, not where it ends."""

from __future__ import annotations

import json

import pytest

import toolgram
from tests.derive.turns import derived
from tests.streams import assert_same_however_split

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {"type": "object", "properties": {"a": {"type": "object"}, "l": {"type": "array"}}},
        },
    }
]
# A value, and what stands where it is repaired.
VALUES = [
    ("a", '{"x": 1, "y": {z: 2}, "w": 3}', "z: 2"),
    ("a", "{'x': 1, y: 2}", "y"),
    ("a", '{"x": [1, 2}', "}"),
    ("a", '```json\n{"x": 1}\n```', "```json"),
    ("a", '{\\"x\\": 1}', '\\"x'),
    ("l", '[[{\\"a\\": \\"b\\"}]]', '\\"a'),
    ("l", "[1 2, 3]", "2"),
]
FORMATS = {
    "qwen3_coder": "<tool_call>\n<function=f>\n<parameter={}>\n{}\n</parameter>\n</function>\n</tool_call>",
    "glm45": "<tool_call>f\n<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n</tool_call>",
}


@pytest.mark.parametrize(("key", "value", "place"), VALUES)
@pytest.mark.parametrize("name", FORMATS)
def test_the_place(name: str, key: str, value: str, place: str) -> None:
    text = FORMATS[name].format(key, value)
    fmt = toolgram.get_format(name)
    message = assert_same_however_split(fmt, text, tools=TOOLS)
    (call,) = message.tool_calls
    assert call.status == "complete"
    first = message.anomalies[0]
    assert (first.kind, first.text) == ("repaired_json", key)
    assert text.startswith(place, first.start), text[first.start :]
    assert not fmt.parse(text, TOOLS, strict=True).tool_calls


@pytest.mark.parametrize(("key", "value", "place"), VALUES)
def test_a_repair_before_a_snapshot_is_told_once(key: str, value: str, place: str) -> None:
    text = FORMATS["qwen3_coder"].format(key, value)
    fmt = toolgram.get_format("qwen3_coder")
    wanted = fmt.parse(text, TOOLS).anomalies
    for at in range(len(text)):
        parser = fmt.parser(TOOLS)
        parser.feed(text[:at])
        found = parser.take_anomalies()
        parser = fmt.restore(parser.snapshot(), tools=TOOLS)
        parser.feed(text[at:])
        parser.close()
        assert [(each.kind, each.start) for each in [*found, *parser.take_anomalies()]] == [
            (each.kind, each.start) for each in wanted
        ]


def test_a_raw_line_end_in_json_that_no_marker_ends() -> None:
    text = 'call f\n  s = "Paris\n"  l = [2, "a\tb\n"]\nend\n'
    message = assert_same_however_split(derived("kv_equals"), text)
    assert [json.loads(call.arguments) for call in message.tool_calls] == [{"s": "Paris\n", "l": [2, "a\tb\n"]}]
    assert [(each.kind, text[each.start]) for each in message.anomalies] == [
        ("repaired_json", "\n"),
        ("repaired_json", "\t"),
    ]
    assert not derived("kv_equals").parse(text, strict=True).tool_calls
