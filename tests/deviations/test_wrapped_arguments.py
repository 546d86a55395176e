"""One argument that holds the object of all arguments, where the function has no such parameter."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram
from tests.streams import check_events, cut, merged, run

PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": PROPERTIES}}}]
OWN = [
    {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"input": {"type": "object"}}}},
    }
]
OPENING, CLOSING = '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n', "</｜DSML｜invoke>\n</｜DSML｜tool_calls>"


def parameter(key: str, value: str, told: str = "false") -> str:
    """A parameter of DeepSeek-V4."""
    return f'<｜DSML｜parameter name="{key}" string="{told}">{value}</｜DSML｜parameter>\n'


def read(body: str, tools: list[Any] | None = TOOLS) -> tuple[Any, list[str]]:
    """The arguments of the only call and the kinds of anomalies, whole and in pieces of every size."""
    fmt, text = toolgram.get_format("deepseek_v4"), OPENING + body + CLOSING
    events, message = run(fmt, [text], tools=tools)
    check_events(events, text)
    for size in (1, 2, 5):
        assert merged(run(fmt, cut(text, size), tools=tools)[0]) == merged(events)
    parser = fmt.parser(tools, "", str)
    pieces: list[str] = []
    for piece in cut(text, 4):
        pieces += [event.arguments for event in parser.feed(piece) if event.type == "tool_call_delta"]
        parser = fmt.restore(json.loads(json.dumps(parser.snapshot())), tools, str)
    (call,) = message.tool_calls
    assert ("".join(pieces), call.status) == (call.arguments, "complete")
    return json.loads(call.arguments), [anomaly.kind for anomaly in message.anomalies]


@pytest.mark.parametrize("key", ["arguments", "input"])
@pytest.mark.parametrize("told", ["true", "false"])
def test_the_object_is_the_arguments(key: str, told: str) -> None:
    assert read(parameter(key, '{"city": "Paris", "days": 3}', told)) == (
        {"city": "Paris", "days": 3},
        ["unusual_form"],
    )


@pytest.mark.parametrize(
    ("body", "tools", "meant", "kinds"),
    [
        (parameter("input", "{}"), TOOLS, {}, ["unusual_form"]),
        (parameter("input", '{"city": {"a": {}}}'), TOOLS, {"city": {"a": {}}}, ["unusual_form"]),
        (
            parameter("input", '{"city": "a"}') + parameter("days", "2"),
            TOOLS,
            {"city": "a", "days": 2},
            ["unusual_form"],
        ),
        (parameter("input", '{"x": 1}'), TOOLS, {"input": {"x": 1}}, []),
        (parameter("input", "hello", "true"), TOOLS, {"input": "hello"}, []),
        (parameter("days", "2") + parameter("input", '{"city": "a"}'), TOOLS, {"days": 2, "input": {"city": "a"}}, []),
        (parameter("input", '{"city": "a"}'), OWN, {"input": {"city": "a"}}, []),
        (parameter("input", '{"city": "a"}'), None, {"input": {"city": "a"}}, []),
        (parameter("other", '{"city": "a"}'), TOOLS, {"other": {"city": "a"}}, []),
    ],
)
def test_where_it_may_be_an_argument_it_is_one(body: str, tools: Any, meant: Any, kinds: list[str]) -> None:
    arguments, found = read(body, tools)
    assert arguments == meant or (arguments == {"other": '{"city": "a"}'} and "other" in meant)
    assert [kind for kind in found if kind != "undeclared_argument"] == kinds


def test_a_strict_parser_reads_what_is_written() -> None:
    fmt = toolgram.get_format("deepseek_v4")
    message = fmt.parse(OPENING + parameter("input", '{"city": "a"}') + CLOSING, TOOLS, strict=True)
    assert json.loads(message.tool_calls[0].arguments) == {"input": {"city": "a"}}


def test_what_is_cut_off_is_truncated() -> None:
    parser = toolgram.get_format("deepseek_v4").parser(TOOLS)
    parser.feed(OPENING + '<｜DSML｜parameter name="input" string="false">{"city": "a"')
    parser.close("length")
    assert [(call.arguments, call.status) for call in parser.message.tool_calls] == [("{", "truncated")]
