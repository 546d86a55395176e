"""Python arguments that are no literals: repaired where one reading is possible, never retracted, else broken."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.json_prefix import is_json_prefix
from tests.streams import assert_same_however_split
from toolgram.events import ToolCallDelta
from toolgram.limits import LONGEST_FIRST_ITEM, MAX_HELD_VALUE

LISTED = "<|tool_call_start|>[f(%s), g(b=2)]<|tool_call_end|>"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]

REPAIRED: list[tuple[str, dict[str, Any], int]] = [
    ("p=1/6", {"p": "1/6"}, 1),
    ("x=a + b, y=2", {"x": "a + b", "y": 2}, 1),
    ("x=g(y, z=[1, 2]), y=-1", {"x": "g(y, z=[1, 2])", "y": -1}, 1),
    ("x=a==b, y=lambda z: z", {"x": "a==b", "y": "lambda z: z"}, 2),
    ("x=f'{y}', y=$5", {"x": "f'{y}'", "y": "$5"}, 2),
    ("city=New York, to=C\u00f4te d'Ivoire", {"city": "New York", "to": "C\u00f4te d'Ivoire"}, 2),
    ("x=[1/6, 07, {'a': b}]", {"x": ["1/6", 7, {"a": "b"}]}, 3),
    ("m=07, n=-007, o=00, p=07.5, q=0", {"m": 7, "n": -7, "o": 0, "p": 7.5, "q": 0}, 2),
    ("x=0x1F, y=0b11, z=1_0", {"x": 31, "y": 3, "z": 10}, 0),
    ("x={'a', 'b'}, y={1}, z=[{'c'}]", {"x": ["a", "b"], "y": [1], "z": [["c"]]}, 3),
    ("x={}, y={'a': {}}, z={1: 2}", {"x": {}, "y": {"a": {}}, "z": {"1": 2}}, 0),
    ("x={a: 1, 'b': c}", {"x": {"a": 1, "b": "c"}}, 2),
    (f"x={{'{'a' * 2 * LONGEST_FIRST_ITEM}': 1}}", {"x": {"a" * 2 * LONGEST_FIRST_ITEM: 1}}, 0),
    ("c='sed -n '1,9p' f', y=2", {"c": "sed -n '1,9p' f", "y": 2}, 2),
    ('c=\'it\'s\', y="say "x" now"', {"c": "it's", "y": 'say "x" now'}, 3),
    ("x='a' y=2", {"x": "a", "y": 2}, 1),
    ("x=1 y=True z='c'", {"x": 1, "y": True, "z": "c"}, 2),
    ("x='a' 'b', y=None, from=''", {"x": "ab", "y": None, "from": ""}, 0),
    (f"x={'9' * 4300}", {"x": int("9" * 4300)}, 0),
    ("{'x': 1/6}", {"x": "1/6"}, 1),
]
REFUSED = [
    "x='a' + 'b'",
    "x='a' if y else 'b'",
    "x='a' # y",
    "x=[1 2]",
    "x='' y",
    "x={'a': 1, b}",
    "x={'a', 'b': 1}",
    "x={'a': 1 'b': 2}",
    "x=(1 + 2) * 3",
    "x=a 'b'",
    "x=a y=2",
    f"x={'9' * 4301}",
    f"x={'a' * (MAX_HELD_VALUE + 1)}",
    f"x=g{'(' * 33}1{')' * 33}",
]


def arguments_so_far(text: str) -> list[str]:
    """The deltas of the first call, read by character."""
    parser = toolgram.get_format("lfm2").parser()
    events = [event for character in text for event in parser.feed(character)] + parser.close()
    return [event.arguments for event in events if isinstance(event, ToolCallDelta) and event.index == 0]


@pytest.mark.parametrize(("written", "meant", "count"), REPAIRED)
def test_repairs(written: str, meant: dict[str, Any], count: int) -> None:
    message = assert_same_however_split(toolgram.get_format("lfm2"), LISTED % written)
    assert [(call.name, json.loads(call.arguments), call.status) for call in message.tool_calls] == [
        ("f", meant, "complete"),
        ("g", {"b": 2}, "complete"),
    ]
    assert [each.kind for each in message.anomalies] == ["repaired_python"] * count
    assert [each.call for each in message.anomalies] == [0] * count
    assert is_json_prefix("".join(arguments_so_far(LISTED % written)))


@pytest.mark.parametrize("written", REFUSED)
def test_what_has_several_readings_is_refused(written: str) -> None:
    message = assert_same_however_split(toolgram.get_format("lfm2"), LISTED % written)
    assert "f" not in [call.name for call in message.tool_calls if call.status == "complete"]
    assert (message.content or "").startswith("<|tool_call_start|>[f(")


@pytest.mark.parametrize("written", [written for written, _, count in REPAIRED if count])
def test_strict_parsers_repair_nothing(written: str) -> None:
    message = toolgram.get_format("lfm2").parse(LISTED % written, strict=True)
    assert "f" not in [call.name for call in message.tool_calls]
    assert "repaired_python" not in [each.kind for each in message.anomalies]


def test_where_it_may_be_prose_only_a_declared_function_is_repaired() -> None:
    fmt = toolgram.get_format("llama4_pythonic")
    text = "See [f(x=y)] and [h(x=y)] here"
    assert assert_same_however_split(fmt, text).content == text
    message = fmt.parse(text, tools=TOOLS)
    assert [(call.name, call.arguments) for call in message.tool_calls] == [("f", '{"x": "y"}')]
    assert message.content == "See and [h(x=y)] here"
    assert [call.name for call in fmt.parse("<|python_start|>[h(x=y)]").tool_calls] == ["h"]


def test_a_snapshot_keeps_what_is_held() -> None:
    fmt = toolgram.get_format("lfm2")
    for written, meant, count in REPAIRED:
        text = LISTED % written
        for at in range(len(text) if len(text) < 200 else 0):
            first = fmt.parser()
            events = first.feed(text[:at])
            parser = fmt.restore(json.loads(json.dumps(first.snapshot())))
            events += parser.feed(text[at:]) + parser.close()
            arguments = "".join(
                event.arguments for event in events if isinstance(event, ToolCallDelta) and event.index == 0
            )
            assert json.loads(arguments) == meant, text[:at]
            assert len(first.take_anomalies() + parser.take_anomalies()) == count


@given(st.text("a1.0'\"{}[](),:= \\\\\nx_TrueNone+-", max_size=24))
def test_nothing_is_retracted_whatever_is_written(written: str) -> None:
    message = assert_same_however_split(toolgram.get_format("lfm2"), LISTED % written)
    for call in message.tool_calls:
        if call.status == "complete":
            assert isinstance(json.loads(call.arguments), dict)
    assert is_json_prefix("".join(arguments_so_far(LISTED % written)))
