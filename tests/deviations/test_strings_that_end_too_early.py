"""A string that a marker or a quote ends too early, inside an escape or inside an object: nothing of it is lost."""

from __future__ import annotations

import json

import pytest

import toolgram
from tests.streams import CUT_SIZES, assert_same_however_split, check_events, cut, run

ROWS = {
    "functiongemma": '<start_function_call>call:f{k:"%s<end_function_call>',
    "gemma4": '<|tool_call>call:f{k:"%s<tool_call|>',
    "hermes": '<tool_call>{"name": "f", "arguments": {"k": "%s</tool_call>',
    "qwen3_coder": '<tool_call><function=f><parameter=k>"%s</function></tool_call>',
    "minimax_m3": ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="f">]<]minimax[>[<k>"%s]<]minimax[>[</k>',
    "lfm2": '<|tool_call_start|>[f(k="%s<|tool_call_end|>',
}


@pytest.mark.parametrize(
    "end", ["\\", "a\\", "a\\u", "a\\u00", "a\\u00e", "a\\ud83d", "a\\\\\\", '\\" \\', "\\}", "a\\]}"]
)
@pytest.mark.parametrize("name", ROWS)
def test_nothing_is_lost(name: str, end: str) -> None:
    fmt, text = toolgram.get_format(name), ROWS[name] % end
    whole = None
    for size in CUT_SIZES:
        events, message = run(fmt, cut(text, size))
        check_events(events, text)
        calls = [(call.name, call.arguments, call.status) for call in message.tool_calls]
        assert calls == (calls if whole is None else whole)
        whole = calls
        for call in message.tool_calls:
            assert call.status != "complete" or isinstance(json.loads(call.arguments), dict)


ESCAPED = {
    "gigachat35": '<｜GCML｜invoke name="k"><｜GCML｜parameter name="k" string="false">%s',
    "deepseek_v32": '<｜DSML｜invoke name="k"><｜DSML｜parameter name="k" string="false">%s',
    "qwen3_coder": "<tool_call><function=f><parameter=k>%s",
    "glm47": "<tool_call>f<arg_key>k</arg_key><arg_value>%s",
}
LIST = {"type": "function", "function": {"name": "f", "parameters": {"properties": {"k": {"type": "array"}}}}}


@pytest.mark.parametrize(
    "value",
    ['[\\"=""', '[\\"a" "', '[\\"a"b\\"]', '[\\"a\\"" ', '[\\"a\\", b', '[\\"a\\" \\"b"', '[\\"a\\"]"]', '[""\\"'],
)
@pytest.mark.parametrize("name", ESCAPED)
def test_an_escaped_literal_that_breaks(name: str, value: str) -> None:
    fmt, text = toolgram.get_format(name), ESCAPED[name] % value
    for whole in (text, text + "]</arg_value></tool_call>" if name == "glm47" else text + "]"):
        assert_same_however_split(fmt, whole, tools=[LIST])
