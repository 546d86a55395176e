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


@pytest.mark.parametrize("name", IN_STRINGS)
@pytest.mark.parametrize("escape", [r"\u001f", r"\u0041", r"\n", r"\u00e9"])
def test_an_escape_behind_a_repair_is_read_whole_wherever_it_is_cut(name: str, escape: str) -> None:
    """A backslash that escapes nothing is repaired when the next character comes, which is an escape of the string."""
    text = OUTPUTS[name] % (r'"{\"b\": \"x\\' + escape + r'y\"}"')
    message = assert_same_however_split(toolgram.get_format(name), text)
    (call,) = message.tool_calls
    assert json.loads(call.arguments) == {"b": "x\\" + json.loads(f'"{escape}"') + "y"}


@pytest.mark.parametrize("name", IN_STRINGS)
@pytest.mark.parametrize("written", NOT_IN_STRINGS)
def test_what_is_not_repaired_in_a_string_is_text_and_told(name: str, written: str) -> None:
    text = encoded(name, written)
    message = assert_same_however_split(toolgram.get_format(name), text)
    assert not message.tool_calls
    assert message.content is not None
    assert json.dumps(written)[1:-1] in message.content


@pytest.mark.parametrize("written", REFUSED)
def test_what_has_several_readings_is_refused_in_a_string_as_well(written: str) -> None:
    message = assert_same_however_split(toolgram.get_format("hermes"), encoded("hermes", written))
    assert "complete" not in [call.status for call in message.tool_calls]


@pytest.mark.parametrize("written", ["{'a': 1}", '{"a": 1,}', "", '```json\n{"a": 1}\n```'])
def test_strict_parsers_repair_no_string(written: str) -> None:
    message = toolgram.get_format("hermes").parse(encoded("hermes", written), strict=True)
    assert "complete" not in [call.status for call in message.tool_calls]


def test_an_escape_that_is_none_in_the_string_itself() -> None:
    text = OUTPUTS["hermes"] % r'"{\"a\": \"it\'s \d\"}"'
    (call,) = assert_same_however_split(toolgram.get_format("hermes"), text).tool_calls
    assert json.loads(call.arguments) == {"a": "it's \\d"}


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
def test_a_key_twice_is_an_anomaly(name: str) -> None:
    fmt, text = toolgram.get_format(name), OUTPUTS[name] % '{"a": 1, "b": {"a": 1, "a": 2}, "a" : 3}'
    message = assert_same_however_split(fmt, text)
    assert json.loads(message.tool_calls[0].arguments)["a"] == 3
    assert [(each.kind, each.text, each.call) for each in message.anomalies] == [("repeated_argument", "a", 0)]


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("written", ['{"a": %s}', '{"a": [%s], }', "{'a': %s}", '"{\\"a\\": %s}"'])
def test_an_integer_that_python_refuses_is_malformed(name: str, written: str) -> None:
    if written[0] == '"' and name == "mistral_v11":
        return  # whose arguments are never a string
    for count, statuses in ((4300, ["complete"]), (4301, [])):
        message = toolgram.get_format(name).parse(OUTPUTS[name] % (written % ("9" * count)))
        assert [call.status for call in message.tool_calls] == statuses


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", "<think>abc</thi"),
        ("mistral_v11", "[THINK]abc[/THIN"),
        ("qwen3_coder", "<think>abc</"),
    ],
)
def test_half_a_marker_that_closes_a_thought_is_dropped(name: str, text: str) -> None:
    message = assert_same_however_split(toolgram.get_format(name), text)
    assert (message.reasoning, message.content) == ("abc", None)
    assert [each.kind for each in message.anomalies] == ["unfinished_marker"]
    lone = text[: text.index("abc") + 4]
    assert toolgram.get_format(name).parse(lone).reasoning == f"abc{lone[-1]}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", '<tool_call>{"name":"r","arguments":"{\\"\\"\\]'),
        ("mistral_v11", '[TOOL_CALLS]{"arguments":"\\}'),
        ("mistral_v11", '[TOOL_CALLS]{"name":"r""arguments":{"":[]}"type":0'),
        ("mistral_v11", '[TOOL_CALLS]{"name":"r""arguments":{}"id":0} x'),
    ],
)
def test_what_breaks_while_it_is_repaired_is_conserved(name: str, text: str) -> None:
    assert_same_however_split(toolgram.get_format(name), text)
