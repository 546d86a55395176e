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
@pytest.mark.parametrize("name", ENCLOSED)
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
@pytest.mark.parametrize("name", [name for name in ENVELOPES if name not in BARE])
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
@pytest.mark.parametrize("name", [name for name in ENVELOPES if name not in BARE])
def test_several_readings_in_a_string(name: str, written: str) -> None:
    for prefix, example in examples(name):
        message = read(name, prefix, example.replace(ARGUMENTS, json.dumps(written), 1))
        assert "get_weather" not in [call.name for call in message.tool_calls]
        assert [call.name for call in message.malformed] == ["get_weather"]


def test_a_quote_in_a_string_that_is_part_of_it() -> None:
    message = read("hermes", "", '<tool_call>{"name": "f", "arguments": "{\\"a\\": 1 "b\\"}"}</tool_call>')
    assert not message.tool_calls
    assert [call.name for call in message.malformed] == ["f"]


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
@pytest.mark.parametrize("name", [*ENVELOPES, "apertus"])
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
@pytest.mark.parametrize("name", ENVELOPES)
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


def test_a_member_beside_the_arguments_of_one_call_in_a_list_that_is_no_json() -> None:
    text = '<|tool_call_start|>[{"name": "get_weather", "arguments": {"city": "Paris"}, "days": 2}]<|tool_call_end|>'
    check_member("lfm2", "", text, "days", None)


def test_a_member_beside_a_list_of_calls() -> None:
    call = '{"name": "get_weather", "arguments": {"city": "Paris"}, "days": 2}'
    message = read("hermes", "", f'<tool_call>{{"tool_calls": [{call}], "other": 3}}</tool_call>')
    assert [each.text for each in message.anomalies] == ['"tool_calls"', "days", "other"]
    assert [call.arguments for call in message.tool_calls] == [ARGUMENTS]


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


def test_the_fence_of_a_call_that_failed_opens_none_around_the_next_call() -> None:
    """It is the rest of that call, whose opening fence was read with it."""
    begin, end = "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```<｜tool▁call▁end｜>"
    first = f'{begin}get_weather\n```json\n{{"city": "Paris"]{end}'
    text = f"<｜tool▁calls▁begin｜>{first}\n{begin}get_time\n```json\n{{}}{end}<｜tool▁calls▁end｜>"
    fmt = toolgram.get_format("deepseek_v3")
    for reason in ("stop", None, "length"):
        message = assert_same_however_split(fmt, text, prefix="<think>\n</think>", tools=TOOLS, finish_reason=reason)
        assert [call.name for call in message.malformed] == ["get_weather"]
        assert [(call.name, call.status) for call in message.tool_calls] == [("get_time", "complete")]
        assert [each.kind for each in message.anomalies] == ["malformed"]


@pytest.mark.parametrize("fence", ["```", "\n```\n", "`` `"])
def test_what_is_quoted_ends_with_the_call_however_the_text_is_split(fence: str) -> None:
    call = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
    text = f"See:\n```\n{call}{fence}and more"
    message = assert_same_however_split(toolgram.get_format("hermes"), text, tools=TOOLS, finish_reason="stop")
    assert (message.tool_calls, message.content) == ([], text)
    assert [(each.kind, each.text) for each in message.anomalies] == [("quoted_call", call)]


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
