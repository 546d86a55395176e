"""JSON as the value of one argument, with the deviations that JSON arguments have: every format with such values.

Strategy: the examples of a format in which `Paris` stands between the markers of a value. It is replaced by an object
that is wrong in one place, and the tools say that the argument is an object. The result must be the calls and the
content of the example, and the object that was meant, with an anomaly; whole, and however the text is split.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import toolgram
from tests.deviations.test_json_forms import ARGUMENTS, REPAIRS
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split, calls_of

STRING, OBJECT, LIST, EITHER = "string", "object", "array", ["object", "string"]
# In these a value is a literal of Python by itself, so this is clean.
LITERALS = ("single quotes", "words of Python", "a trailing comma", "an illegal escape", "a raw control character")
# A notation of its own has keys without quotes, and values that are words.
NOTATED = ("gemma4", "functiongemma")
QUOTES = {"gemma4": '<|"|>', "functiongemma": "<escape>"}


def tools(kind: Any) -> list[dict[str, Any]]:
    properties = {"city": {"type": kind}, "days": {"type": "integer"}}
    parameters = {"type": "object", "properties": properties}
    return [
        {"type": "function", "function": {"name": name, "parameters": parameters}}
        for name in ("get_weather", "get_time")
    ]


def value(name: str) -> str:
    """The value of the example, as the format writes a string."""
    quote = QUOTES.get(name, "")
    return f"{quote}Paris{quote}"


def examples(name: str) -> Iterator[tuple[str, str]]:
    """The first example of a format that has the value: its prefix and its text, with a place for the value."""
    for example in toolgram.get_format(name).machine_dict["format"]["canonical"]:
        prefix, text = (example.get("prefix", ""), example["output"]) if isinstance(example, dict) else ("", example)
        told = ' string="true">Paris', ' type="string"<|sep|>Paris'
        for marker in told:  # of what is told here, the tools say another type
            text = text.replace(
                marker, marker.replace('string="true"', 'string="false"').replace('"string"', '"object"')
            )
        if value(name) in text and ARGUMENTS not in text and f'"{value(name)}"' not in text:
            yield prefix, text.replace(value(name), "\0", 1)
            return


FORMATS = [name for name in toolgram.format_names() if name not in NOTATED and any(examples(name))]


def read(name: str, written: str, kind: Any, **options: Any) -> toolgram.Message:
    for prefix, text in examples(name):
        return assert_same_however_split(
            toolgram.get_format(name), text.replace("\0", written), prefix=prefix, tools=tools(kind), **options
        )
    raise AssertionError(name)


def wanted(name: str) -> list[tuple[str, str]]:
    return [(call, "complete") for call, _, _ in calls_of(read(name, "{}", OBJECT))]


def kinds_of(message: toolgram.Message) -> set[str]:
    return {anomaly.kind for anomaly in message.anomalies}


def test_there_are_formats() -> None:
    assert len(FORMATS) > 20
    assert {"qwen3_coder", "glm45", "minimax_m2", "deepseek_v32", "kimi_k3", "minimax_m3"} <= {*FORMATS}


@pytest.mark.parametrize("row", REPAIRS)
@pytest.mark.parametrize("name", quarter(FORMATS, "objects in values"))
def test_an_object_that_is_wrong_in_one_place(name: str, row: str) -> None:
    written, arguments, kinds = REPAIRS[row]
    message = read(name, written, OBJECT)
    assert [(call, status) for call, _, status in calls_of(message)] == wanted(name)
    assert json.loads(message.tool_calls[0].arguments)["city"] == arguments
    assert message.content == read(name, "{}", OBJECT).content
    found = kinds_of(message) - kinds_of(read(name, "{}", OBJECT))
    assert found <= kinds | {"repaired_json"}
    if row not in LITERALS:
        assert found or row == "a key twice"


@pytest.mark.parametrize("name", FORMATS)
def test_closing_brackets_that_may_close_either_are_refused(name: str) -> None:
    for written in ('{"a": [1}, "b": 2}', '{"a": {"b": 1], "c": 2}}', '{"a": {"b": [{"c": 1]}'):
        message = read(name, written, OBJECT)
        assert "get_weather" not in [call.name for call in message.tool_calls]


@pytest.mark.parametrize("name", FORMATS)
def test_quotes_in_a_list_have_several_readings(name: str) -> None:
    """The comma may be missing, or the quotes, or both may be part of one string."""
    for written in ('["a" "b"]', '["a "b" c"]', '["a "b", "c" d"]'):
        message = read(name, written, LIST)
        assert "get_weather" not in [call.name for call in message.tool_calls]


@pytest.mark.parametrize("name", quarter(FORMATS, "lists in values"))
def test_a_list_that_is_wrong_in_one_place(name: str) -> None:
    rows = {
        "[1 2]": [1, 2],
        "[1, // one\n 2]": [1, 2],
        "[[1]": [[1]],
        '[{"a": 1]': [{"a": 1}],
        '["a"}': ["a"],
        '[{"a": [1}]': [{"a": [1]}],
    }
    for written, meant in rows.items():
        message = read(name, written, LIST)
        assert [(call, status) for call, _, status in calls_of(message)] == wanted(name)
        assert json.loads(message.tool_calls[0].arguments)["city"] == meant
        assert {"repaired_json", "unclosed_arguments"} & {anomaly.kind for anomaly in message.anomalies}


@pytest.mark.parametrize("name", quarter(FORMATS, "fences in values"))
def test_a_fence_around_an_object(name: str) -> None:
    for written in ('```json\n{"a": 1}\n```', '```\n{"a": 1}```', '\n``` json\n{"a": 1}\n```\n', '```{"a": 1}'):
        message = read(name, written, OBJECT)
        assert [(call, status) for call, _, status in calls_of(message)] == wanted(name)
        assert json.loads(message.tool_calls[0].arguments)["city"] == {"a": 1}
        assert "repaired_json" in {anomaly.kind for anomaly in message.anomalies}


@pytest.mark.parametrize("name", quarter(FORMATS, "text in values"))
def test_what_may_be_text_is_not_repaired(name: str) -> None:
    for kind in (STRING, EITHER):
        for written, _, _ in REPAIRS.values():
            message = read(name, written, kind)
            assert "repaired_json" not in {anomaly.kind for anomaly in message.anomalies}
        written = '{"a": 1 "b": 2}'
        assert json.loads(read(name, written, kind).tool_calls[0].arguments)["city"] == written


@pytest.mark.parametrize("name", quarter(FORMATS, "readings of values"))
def test_what_has_several_readings_is_refused(name: str) -> None:
    for written in ('{"a": foo', '{"a": [1, 2}, "b": 3}', '{"a": ["x"", "y"]}', '{"a": 1,', '{"a": "x'):
        message = read(name, written, OBJECT)
        assert not any('"a"' in call.arguments for call in message.tool_calls if call.status == "complete")


@pytest.mark.parametrize("name", FORMATS)
def test_a_strict_parser_repairs_nothing(name: str) -> None:
    for prefix, text in examples(name):
        written = text.replace("\0", '{"a": 1 "b": 2}')
        message = toolgram.get_format(name).parse(written, tools(OBJECT), prefix=prefix, strict=True)
        assert not any('"b"' in call.arguments for call in message.tool_calls)


@pytest.mark.parametrize("name", quarter(FORMATS, "snapshots of values"))
def test_a_snapshot_keeps_what_is_repaired(name: str) -> None:
    fmt, declared = toolgram.get_format(name), tools(OBJECT)
    for prefix, text in examples(name):
        for written in ("{'a': NaN, b: 'it's', // c\n \"d\": [1 2", '```json\n{"a": "\\u12", }\n```'):
            whole = text.replace("\0", written)
            parser = fmt.parser(declared, prefix, str)
            pieces, anomalies = [], []
            for character in whole:
                events = parser.feed(character)
                pieces += [event.arguments for event in events if event.type == "tool_call_delta" and not event.index]
                anomalies += [anomaly.kind for anomaly in parser.take_anomalies()]
                parser = fmt.restore(json.loads(json.dumps(parser.snapshot())), declared, str)
            message = fmt.parse(whole, declared, prefix=prefix)
            assert "".join(pieces) == message.tool_calls[0].arguments
            assert anomalies == [anomaly.kind for anomaly in message.anomalies]
