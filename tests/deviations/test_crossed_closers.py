"""Closing brackets that do not fit: one that closes another bracket than the innermost one, or that comes too early.

Strategy: the examples of each format that writes JSON arguments, with other arguments in the place of its own. Where
only closing brackets follow, all readings are the same arguments; where more follows there are several, and none is
taken.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram
from tests.deviations.test_json_forms import (
    ARGUMENTS,
    BARE,
    ENVELOPES,
    JSON_FORMATS,
    PARIS,
    TOOLS,
    check,
    examples,
    read,
)
from tests.streams import assert_same_however_split

ENCLOSED = [name for name in JSON_FORMATS if name not in (*BARE, "glm4", "functionary_v3_2")]
CROSSED: dict[str, tuple[str, dict[str, Any]]] = {
    "a list closed by a brace": ('{"city": ["Paris", 2}}', {"city": ["Paris", 2]}),
    "a list not closed": ('{"city": ["Paris"}', {"city": ["Paris"]}),
    "a list not closed, and blanks": ('{"city": [{"a": 1}, 2 }\n}', {"city": [{"a": 1}, 2]}),
    "an object closed by a bracket": ('{"city": {"a": 1]}', {"city": {"a": 1}}),
    "an object in a list closed by both": ('{"city": [{"a": 1]}}', {"city": [{"a": 1}]}),
    "arguments closed by a bracket": ('{"city": "Paris"]', PARIS),
}


@pytest.mark.parametrize("row", CROSSED)
@pytest.mark.parametrize("name", ENCLOSED)
def test_one_reading(name: str, row: str) -> None:
    written, arguments = CROSSED[row]
    for prefix, example in examples(name):
        if '": [{' in written and ("}, {" in " ".join(example.split()) or "}\n{" in example):
            continue  # what follows may be an item of the list that the arguments hold
        kinds = {"repaired_json", "unclosed_envelope", "surplus_closer"}
        check(name, prefix, example, example.replace(ARGUMENTS, written, 1), arguments, kinds)


@pytest.mark.parametrize(
    "written", ['{"city": ["Paris"}, "days": 2}', '{"city": {"a": 1], "days": 2}}', '{"city": [[1}, 2]}']
)
@pytest.mark.parametrize("name", ENCLOSED)
def test_several_readings(name: str, written: str) -> None:
    for prefix, example in examples(name):
        message = read(name, prefix, example.replace(ARGUMENTS, written, 1))
        assert "get_weather" not in [call.name for call in message.tool_calls]
        assert [call.name for call in message.malformed] == ["get_weather"]
        assert written[:12] in (message.content or "")


@pytest.mark.parametrize("name", ENCLOSED)
def test_a_member_behind_the_arguments_is_no_content_without_an_anomaly(name: str) -> None:
    """The arguments were whole and sent when it came, so it cannot be part of them."""
    early = '{"city": {"a": 1}}, "days": 2}'
    for prefix, example in examples(name):
        for text in {example.replace(ARGUMENTS, early, 1), example.replace(ARGUMENTS + "}", early + "}", 1)} - {
            example
        }:
            message = read(name, prefix, text)
            assert message.anomalies
            for call in message.tool_calls:
                assert call.name != "get_weather" or json.loads(call.arguments) == {"city": {"a": 1}}
            markers = toolgram.get_format(name).program.markers
            assert message.malformed or not any(marker in (message.content or "") for marker in markers)


PARAMETERS = {"city": {"type": "string"}, "days": {"type": "integer"}}
DECLARED = [
    {
        "type": "function",
        "function": {"name": "get_weather", "parameters": {"type": "object", "properties": PARAMETERS}},
    }
]


@pytest.mark.parametrize("name", [name for name in ENVELOPES if name not in BARE])
def test_a_parameter_beside_the_arguments(name: str) -> None:
    """It may be an argument, or not: an anomaly says where it stands. What is no parameter is dropped, as before."""
    fmt = toolgram.get_format(name)
    for prefix, example in examples(name):
        if name == "apertus":
            continue  # its objects have no such members
        for key, kinds in (("days", ["unusual_form"]), ("other", [])):
            text = example.replace(ARGUMENTS, f'{ARGUMENTS}, "{key}": 2', 1)
            message = assert_same_however_split(fmt, text, prefix=prefix, tools=DECLARED)
            assert message.tool_calls[0].arguments == ARGUMENTS
            assert [anomaly.kind for anomaly in message.anomalies if anomaly.text == key] == kinds


def test_text_behind_a_call_is_text() -> None:
    for text in (', and "this": too', ', "quoted" text', ",", ", 'a", ', "a"'):
        for name, call in (
            ("mistral_v11", '[TOOL_CALLS]f[ARGS]{"a": 1}'),
            ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'),
            ("gemma4", "<|tool_call>call:f{a:1}<tool_call|>"),
        ):
            message = assert_same_however_split(toolgram.get_format(name), call + text, tools=TOOLS)
            assert (message.content, [call.status for call in message.tool_calls]) == (text, ["complete"])


@pytest.mark.parametrize("text", [', "note": it rains', ',"name": "', ',"parameters": {', ", note: it rains"])
def test_text_behind_the_closing_marker_of_a_call_is_no_member_of_it(text: str) -> None:
    """And it does not take the next call into a string."""
    for name, call in (
        ("hermes", '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'),
        ("deepseek_r1", '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'),
        ("gemma4", "<|tool_call>call:f{a:1}<tool_call|>"),
    ):
        message = assert_same_however_split(toolgram.get_format(name), call + text + call)
        assert (message.content, [call.status for call in message.tool_calls]) == (text, ["complete"] * 2)
        assert not message.anomalies


def test_what_is_cut_off_behind_a_bracket_that_does_not_fit_is_truncated() -> None:
    fmt = toolgram.get_format("mistral_v11")
    text = '[TOOL_CALLS]f[ARGS]{"a": [1}'
    assert fmt.parse(text, finish_reason="length").tool_calls[0].status == "truncated"
    for reason in ("stop", "tool_calls", None):
        (call,) = fmt.parse(text, finish_reason=reason).tool_calls
        assert (call.arguments, call.status) == ('{"a": [1]}', "complete")
    assert not fmt.parse(text, strict=True).tool_calls
