"""A call as Python writes it that stands alone at the beginning of a line, where tools are declared."""

from __future__ import annotations

import pytest

import toolgram
from tests.streams import assert_same_however_split, calls_of, cut

FORMATS = [name for name in toolgram.format_names() if toolgram.get_format(name).spec.line_calls]
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("get", "get_time", "get_weather", "f", "not a name")
]
PARIS = ("get_weather", '{"city": "Paris"}', "complete")
TIME = ("get_time", "{}", "complete")
CALLS = [
    ('get_weather(city="Paris")', None, [PARIS]),
    ('get_weather(city="Paris")\nget_time()', None, [PARIS, TIME]),
    ('get_weather(city="Paris")\r\n\r\nget_time()\n', None, [PARIS, TIME]),
    ('Sure.\n\nget_weather(city="Paris")\n\nThere.', "Sure. There.", [PARIS]),
    ("\n\nget_time()", None, [TIME]),
    ("get(a=1)", None, [("get", '{"a": 1}', "complete")]),
    ("f(x)\nget_time()", "f(x)", [TIME]),
]


def test_the_pythonic_formats() -> None:
    assert FORMATS == ["lfm2", "llama4_pythonic", "minicpm3", "olmo3"]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("text", "content", "calls"), CALLS)
def test_a_call(name: str, text: str, content: str | None, calls: list[tuple[str, str, str]]) -> None:
    fmt = toolgram.get_format(name)
    message = assert_same_however_split(fmt, text, tools=TOOLS, finish_reason="stop")
    assert message.content == content
    assert calls_of(message) == calls
    assert [each.kind for each in message.anomalies if each.kind != "repaired_python"] == ["unusual_form"] * len(calls)
    assert not fmt.parse(text).tool_calls
    assert not fmt.parse(text, tools=TOOLS, strict=True).tool_calls


@pytest.mark.parametrize("name", FORMATS)
def test_it_follows_a_call_in_the_format_s_own_form(name: str) -> None:
    fmt = toolgram.get_format(name)
    example = fmt.machine_dict["format"]["canonical"][-1]
    before = fmt.parse(example).tool_calls
    message = assert_same_however_split(fmt, f"{example}\nget_time()", tools=TOOLS)
    assert len(message.tool_calls) == len(before) + 1
    assert calls_of(message)[-1] == TIME


@pytest.mark.parametrize("name", FORMATS)
def test_a_thought_holds_none(name: str) -> None:
    fmt = toolgram.get_format(name)
    opener = fmt.program.literals.get("THINK")
    if opener is not None:
        assert not assert_same_however_split(fmt, f"{opener}\nget_time()\n", tools=TOOLS).tool_calls


@pytest.mark.parametrize("name", FORMATS)
def test_a_snapshot_anywhere(name: str) -> None:
    fmt = toolgram.get_format(name)
    text = 'Sure.\n\nget_weather(city="Paris")\nget_time()'
    for at in range(len(text)):
        first = fmt.parser(tools=TOOLS, call_ids=lambda: "x")
        events = first.feed(text[:at])
        second = fmt.restore(first.snapshot(), tools=TOOLS, call_ids=lambda: "x")
        for delta in cut(text[at:], 3):
            events += second.feed(delta)
        events += second.close()
        assert "".join(event.source for event in events) == text
        assert [event.name for event in events if event.type == "tool_call_start"] == ["get_weather", "get_time"]
