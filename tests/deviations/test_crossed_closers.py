"""Closing brackets that do not fit: one that closes another bracket than the innermost one, or that comes too early.

Strategy: the examples of each format that writes JSON arguments, with other arguments in the place of its own. A
bracket may stand for another one, or another one may be missing: there are several readings, and none is taken.
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
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split
from tests.work import at_most

ENCLOSED = [name for name in JSON_FORMATS if name not in (*BARE, "glm4", "functionary_v3_2")]
CROSSED = [
    '{"city": ["Paris", 2}}',
    '{"city": ["Paris"}',
    '{"city": [{"a": 1}, 2 }\n}',
    '{"city": {"a": 1]}',
    '{"city": [{"a": 1]}}',
    '{"city": "Paris"]',
]


@pytest.mark.parametrize("written", CROSSED)
@pytest.mark.parametrize("name", quarter(ENCLOSED, "each bracket closes the innermost"))
def test_each_bracket_closes_the_innermost_one(name: str, written: str) -> None:
    for prefix, example in examples(name):
        for reason in ("stop", None, "length"):
            message = read(name, prefix, example.replace(ARGUMENTS, written, 1), reason)
            assert "get_weather" not in [call.name for call in message.tool_calls]
            assert [call.name for call in message.malformed] == ["get_weather"]


ENCODED: dict[str, tuple[str, dict[str, Any]]] = {
    "nothing closed": ('{"city": [{"a": 1', {"city": [{"a": 1}]}),
    "nothing closed behind text": ('{"city": ["Paris"', {"city": ["Paris"]}),
    "closed too often": ('{"city": "Paris"}]}', PARIS),
}


@pytest.mark.parametrize("row", ENCODED)
@pytest.mark.parametrize("name", quarter([each for each in ENVELOPES if each not in BARE], "in a string"))
def test_in_a_string(name: str, row: str) -> None:
    """Arguments that are written as a string: its end closes what is open in them."""
    written, arguments = ENCODED[row]
    for prefix, example in examples(name):
        for text in (json.dumps(written), json.dumps(written + " \n")):
            check(name, prefix, example, example.replace(ARGUMENTS, text, 1), arguments, {"repaired_json"})


@pytest.mark.parametrize(
    "written",
    [
        *CROSSED,
        '{"city": ["Paris"}, "days": 2}',
        '{"city": [1}}, "days": 2}',
        '{"city": [1}x',
        '{"city": tru',
        '{"city":',
    ],
)
@pytest.mark.parametrize("name", quarter([each for each in ENVELOPES if each not in BARE], "in a string"))
def test_several_readings_in_a_string(name: str, written: str) -> None:
    for prefix, example in examples(name):
        message = read(name, prefix, example.replace(ARGUMENTS, json.dumps(written), 1))
        assert "get_weather" not in [call.name for call in message.tool_calls]
        assert [call.name for call in message.malformed] == ["get_weather"]


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


MEMBERS = {  # a key beside the arguments, and its value
    "days": "2",
    "other": '{"days": [2, "}"]}',
    "arguments": '{"days": 2}',
    "name": '"get_time"',
    "get_rain": "{}",
}


@pytest.mark.parametrize("key", MEMBERS)
@pytest.mark.parametrize("name", quarter([*ENVELOPES, "apertus"], "a member beside the arguments"))
def test_a_member_beside_the_arguments(name: str, key: str) -> None:
    """It may be an argument or another call, or not: it is dropped, and an anomaly says where it stands."""
    for prefix, example in examples(name):
        text = example.replace(ARGUMENTS, f'{ARGUMENTS}, "{key}": {MEMBERS[key]}', 1)
        for tools in (None, DECLARED):
            check_member(name, prefix, text, key, tools)


@pytest.mark.parametrize("name", [*ENVELOPES, "apertus"])
def test_a_member_behind_a_bracket_that_came_too_early(name: str) -> None:
    """Whether or not the brackets balance at the end."""
    early = '{"city": {"a": 1}}, "days": 2'
    for prefix, example in examples(name):
        for brackets in ("", "}"):
            check_member(name, prefix, example.replace(ARGUMENTS, early + brackets, 1), "days", None)


def check_member(name: str, prefix: str, text: str, key: str, tools: Any) -> None:
    message = assert_same_however_split(toolgram.get_format(name), text, prefix=prefix, tools=tools)
    assert message.tool_calls[0].name == "get_weather"
    assert [text[each.start :].startswith(f'"{key}"') for each in message.anomalies if each.text == key] == [True]
    assert [(each.kind, each.call) for each in message.anomalies if each.text == key] == [("unusual_form", 0)]


@pytest.mark.parametrize("member", [
    '"type": "tool"', '"type": "func"', r'"type": "\u0067o"', '"type": null', '"id": 5', '"id": {"a": [1]}',
])  # fmt: skip
@pytest.mark.parametrize("name", quarter(ENVELOPES, "a known key with a"))
def test_a_known_key_with_a_value_that_it_never_has(name: str, member: str) -> None:
    """The member is dropped like any other; what follows is read."""
    for prefix, example in examples(name):
        wanted = read(name, prefix, example)
        message = read(name, prefix, example.replace(ARGUMENTS, f"{ARGUMENTS}, {member}", 1))
        assert [call.name for call in message.tool_calls] == [call.name for call in wanted.tool_calls]
        assert message.content == wanted.content
        assert [(each.kind, each.text) for each in message.anomalies] == [("unusual_form", member.split('"')[1])]


def test_a_member_that_is_dropped_is_read_on_from_a_snapshot() -> None:
    call = '<tool_call>{"name": "f", "arguments": {}, "other": "a\\"b", "type": "tool", "id": 12}</tool_call>'
    fmt = toolgram.get_format("hermes")
    for at in range(len(call)):
        parser = fmt.parser()
        parser.feed(call[:at])
        found = parser.take_anomalies()
        parser = fmt.restore(parser.snapshot())
        parser.feed(call[at:])
        parser.close()
        found += parser.take_anomalies()
        assert [each.text for each in found] == ["other", "type", "id"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hy_v4", "<think:6124c78e>x<tool_calls:6124c78e><<tool_calls:6124c78e><"),
        ("hermes", '<think>So <tool_call>{"name": "get_time", "arguments": {}}</tool_call> <</think>Hi'),
        ("hermes", '<think>So <tool_call>{"name": "get_time", "arguments": {}}</tool_call> </th</think>Hi'),
    ],
)
def test_what_may_begin_a_marker_before_the_closer_of_a_thought_is_read_once(name: str, text: str) -> None:
    fmt = toolgram.get_format(name)
    fmt.parse("", tools=TOOLS, prefix="")
    with at_most(calls=2_000_000):
        message = fmt.parse(text, tools=TOOLS, prefix="", finish_reason="stop")
    assert not message.tool_calls
    assert_same_however_split(fmt, text, tools=TOOLS, finish_reason="stop")
