"""Calls as JSON objects with a comma between them, and without the brackets of a list around them.

Strategy: every format that reads several objects between its markers, with the blanks that models write, however the
text is split. What only begins like another call is text.
"""

from __future__ import annotations

import pytest

import toolgram
from tests.streams import CUT_SIZES, cut, run

MARKERS = {
    "apertus": ("<|tools_prefix|>", "<|tools_suffix|>"),
    "apriel": ("<tool_calls>", "</tool_calls>"),
    "cohere_command3": ("<|START_ACTION|>", "<|END_ACTION|>"),
    "cohere_command4": ("<|START_ACTION|>", "<|END_ACTION|>"),
    "ernie45": ("<tool_call>\n", "\n</tool_call>"),
    "hermes": ("<tool_call>\n", "\n</tool_call>"),
    "hunyuan_a13b": ("<tool_calls>", "</tool_calls>"),
    "internlm2": ("<|action_start|><|plugin|>", "<|action_end|>"),
    "jamba": ("<tool_calls>", "</tool_calls>"),
    "longcat": ("<longcat_tool_call>\n", "\n</longcat_tool_call>"),
    "minimax_m1": ("<tool_calls>\n", "\n</tool_calls>"),
    "nemotron_v2": ("<TOOLCALL>", "</TOOLCALL>"),
    "phi4_mini": ("<|tool_call|>", "<|/tool_call|>"),
}
KEYS = {"cohere_command3": ("tool_name", "parameters"), "cohere_command4": ("tool_name", "parameters")}


def call(format_name: str, name: str, arguments: str) -> str:
    if format_name == "apertus":
        return f'{{"{name}": {arguments}}}'
    key, value = KEYS.get(format_name, ("name", "arguments"))
    return f'{{"{key}": "{name}", "{value}": {arguments}}}'


@pytest.mark.parametrize("rest", [", and so on", ", {x}", ', {"g"}', ', "g", {}', ",", ", {", ', {"name"', ", [1]"])
@pytest.mark.parametrize("format_name", MARKERS)
def test_a_comma_before_no_call_is_text(format_name: str, rest: str) -> None:
    fmt = toolgram.get_format(format_name)
    text = MARKERS[format_name][0] + call(format_name, "f", "{}") + rest
    for size in CUT_SIZES:
        _, message = run(fmt, cut(text, size))
        assert [(each.name, each.status) for each in message.tool_calls] == [("f", "complete")]
        assert message.content == rest
