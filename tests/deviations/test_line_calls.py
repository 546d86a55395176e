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
TEXTS = [
    'Call get_weather(city="Paris").',
    ' get_weather(city="Paris")',
    "get_times()\nother(a=1)\nget_weather is a function\nget_weather (a=1)",
    "get_weather",
    "f(",
    "\n\nget_weather",
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
@pytest.mark.parametrize("text", TEXTS)
def test_what_is_no_call_is_text_as_it_stands(name: str, text: str) -> None:
    fmt = toolgram.get_format(name)
    message = assert_same_however_split(fmt, text, tools=TOOLS)
    assert message == assert_same_however_split(fmt, text)
    assert message.content == text


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


def test_a_call_without_a_list_between_the_markers() -> None:
    for name, text in (
        ("llama4_pythonic", "Sure. <|python_start|>f(a=1)<|python_end|>ok"),
        ("lfm2", "Sure. <|tool_call_start|>f(a=1)<|tool_call_end|>ok"),
    ):
        message = assert_same_however_split(toolgram.get_format(name), text)
        assert calls_of(message) == [("f", '{"a": 1}', "complete")]
        assert message.content == "Sure. ok"
        assert [each.kind for each in message.anomalies] == ["unusual_form"]


def test_the_prompt_may_end_a_line() -> None:
    fmt = toolgram.get_format("llama4_pythonic")
    assert fmt.parse("get_time()", tools=TOOLS, prefix="\n\n").tool_calls
    assert not fmt.parse("get_time()", tools=TOOLS, prefix="Use ").tool_calls
