"""JSON arguments and what stands around them: in a string, in a code fence, with raw control characters, keys twice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.islands.test_json_repairs import NOT_IN_STRINGS, OUTPUTS, REFUSED, REPAIRED
from tests.json_prefix import is_json_prefix
from tests.streams import assert_same_however_split
from toolgram.events import ToolCallDelta

IN_STRINGS = ("hermes", "mistral_v3", "granite_3", "llama3_json")
FENCED = [
    ("hermes", '<tool_call>\n```json\n{"name": "f", "arguments": {"a": 1}}\n```\n</tool_call> hi'),
    ("mistral_v11", '[TOOL_CALLS]f[ARGS]```json\n{"a": 1}\n``` hi'),
    ("mistral_v11", '[TOOL_CALLS]f[ARGS] ```\n\n{"a": 1}```\nhi'),
    ("mistral_v3", '[TOOL_CALLS]```json\n[{"name": "f", "arguments": {"a": 1}}]\n``` hi'),
    ("gpt_oss", '<|channel|>commentary to=functions.f<|message|>```json\n{"a": 1}\n```<|end|>hi'),
    ("granite_3", '<|tool_call|>```json [{"name": "f", "arguments": {"a": 1}}]``` hi'),
]


def encoded(name: str, written: str) -> str:
    """An output in which the arguments are a JSON string."""
    return OUTPUTS[name] % json.dumps(written, ensure_ascii=False)


@pytest.mark.parametrize("name", IN_STRINGS)
@pytest.mark.parametrize(
    ("written", "meant"),
    [case for case in REPAIRED if case[1] and case[0] not in NOT_IN_STRINGS]
    + [("```json\n{'a': 1,}\n```", {"a": 1}), ("", {}), (" \n", {})],
)
def test_arguments_in_a_string_are_repaired(name: str, written: str, meant: dict[str, Any]) -> None:
    message = assert_same_however_split(toolgram.get_format(name), encoded(name, written))
    (call,) = message.tool_calls
    assert (call.status, json.loads(call.arguments)) == ("complete", meant)
    assert {each.kind for each in message.anomalies} <= {"repaired_json"}


@pytest.mark.parametrize("written", REFUSED)
def test_what_has_several_readings_is_refused_in_a_string_as_well(written: str) -> None:
    message = assert_same_however_split(toolgram.get_format("hermes"), encoded("hermes", written))
    assert "complete" not in [call.status for call in message.tool_calls]


@pytest.mark.parametrize("written", ["{'a': 1}", '{"a": 1,}', "", '```json\n{"a": 1}\n```'])
def test_strict_parsers_repair_no_string(written: str) -> None:
    message = toolgram.get_format("hermes").parse(encoded("hermes", written), strict=True)
    assert "complete" not in [call.status for call in message.tool_calls]


@given(st.text("a1.\"'{}[],: \\\n`json#", max_size=24))
def test_nothing_in_a_string_is_retracted(written: str) -> None:
    fmt, text = toolgram.get_format("hermes"), encoded("hermes", written)
    for call in assert_same_however_split(fmt, text).tool_calls:
        if call.status == "complete":
            assert isinstance(json.loads(call.arguments), dict)
    parser = fmt.parser()
    events = [event for character in text for event in parser.feed(character)] + parser.close()
    assert is_json_prefix("".join(event.arguments for event in events if isinstance(event, ToolCallDelta)))


@pytest.mark.parametrize(("name", "text"), FENCED)
def test_a_code_fence_inside_the_markers_is_left_out(name: str, text: str) -> None:
    message = assert_same_however_split(toolgram.get_format(name), text)
    assert [(call.name, json.loads(call.arguments), call.status) for call in message.tool_calls] == [
        ("f", {"a": 1}, "complete")
    ]
    assert message.content == "hi"
    assert {each.kind for each in message.anomalies} == {"repaired_json", "surplus_closer"}
    assert not toolgram.get_format(name).parse(text, strict=True).tool_calls


@pytest.mark.parametrize("name", [*IN_STRINGS[:3], "mistral_v11"])
def test_the_first_raw_control_character_of_a_call_is_an_anomaly(name: str) -> None:
    fmt, text = toolgram.get_format(name), OUTPUTS[name] % '{"a": "x\ty\nz", "b": "\n"}'
    message = assert_same_however_split(fmt, text)
    (call,) = message.tool_calls
    assert (call.status, json.loads(call.arguments)) == ("complete", {"a": "x\ty\nz", "b": "\n"})
    assert [(each.kind, each.start, each.text) for each in message.anomalies] == [
        ("repaired_json", text.index("\t"), "\t")
    ]
    assert not fmt.parse(text, strict=True).tool_calls


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("written", ['{"a": %s}', '{"a": [%s], }', "{'a': %s}", '"{\\"a\\": %s}"'])
def test_an_integer_that_python_refuses_is_malformed(name: str, written: str) -> None:
    if written[0] == '"' and name == "mistral_v11":
        return  # whose arguments are never a string
    for count, statuses in ((4300, ["complete"]), (4301, [])):
        message = toolgram.get_format(name).parse(OUTPUTS[name] % (written % ("9" * count)))
        assert [call.status for call in message.tool_calls] == statuses
