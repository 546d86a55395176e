"""Nothing where the arguments of a call should be: an empty object, where the call is closed there.

Strategy: formats that write the arguments behind a marker of their own, each with calls before and behind the empty
one, whole and character by character.
"""

from __future__ import annotations

import pytest

import toolgram
from tests.streams import run

DEEPSEEK = "<｜tool▁call▁begin｜>{}<｜tool▁call▁end｜>"
PLAMO = "<|plamo:begin_tool_request:plamo|>{}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>"
PLAMO_HEAD = (
    "<|plamo:begin_tool_name:plamo|>{}<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:msg|>"
)
SHAPES = {
    "deepseek_v3": ("<｜tool▁calls▁begin｜>", DEEPSEEK.format("function<｜tool▁sep｜>{}\n```json\n{}\n```")),
    "deepseek_v31": ("<｜tool▁calls▁begin｜>", DEEPSEEK.format("{}<｜tool▁sep｜>{}")),
    "kimi_k2": (
        "<|tool_calls_section_begin|>",
        "<|tool_call_begin|>functions.{}:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    ),
    "plamo3": ("<|plamo:begin_tool_requests:plamo|>", PLAMO.format(PLAMO_HEAD + "{}")),
    "solar_open": (
        "<|tool_calls|>",
        "<|tool_call:begin|>abc<|tool_call:name|>{}<|tool_call:args|>{}<|tool_call:end|>",
    ),
}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in "fg"]


@pytest.mark.parametrize("nothing", ["", "\n", "  "])
@pytest.mark.parametrize("name", SHAPES)
def test_nothing_between_the_markers_of_arguments_is_an_empty_object(name: str, nothing: str) -> None:
    fmt = toolgram.get_format(name)
    opener, call = SHAPES[name]
    text = opener + call.format("f", nothing) + call.format("g", '{"a": 1}') + call.format("f", nothing)
    expected = [("f", "{}", "complete"), ("g", '{"a": 1}', "complete"), ("f", "{}", "complete")]
    for chunks in ([text], list(text)):
        _, message = run(fmt, chunks, tools=TOOLS)
        assert [(each.name, each.arguments, each.status) for each in message.tool_calls] == expected
        assert message.content is None
        assert sum(each.kind == "unusual_form" for each in message.anomalies) == 2
    strict = fmt.parse(text, tools=TOOLS, prefix="", strict=True)
    assert "f" not in {each.name for each in strict.tool_calls}
