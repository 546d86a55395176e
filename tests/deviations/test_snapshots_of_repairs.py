"""A snapshot stays what it was when its parser reads on: nothing that a repair still changes is part of it."""

from __future__ import annotations

import json

import pytest

import toolgram

ARGUMENTS = [
    '{{"a": 1}}',
    "{\n{\"a\": 1}, 'b': [1, 2}",
    '{"a": "x" "b": tru, c: NaN // d\n}',
    '{"a": {"b": [1}, "c": 07}}}',
    "{(1, 2), {3}}",
]
ROWS = {
    "hermes": '<tool_call>{"name": "f", "arguments": %s}</tool_call> so',
    "lfm2": '<|tool_call_start|>[{"arguments": %s, "name": "f"}]<|tool_call_end|> so',
    "llama4_pythonic": "[f(a=%s), g(b={1, 2, 07})] so",
    "kimi_k2": "<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>%s<|tool_call_end|> so",
    "qwen3_coder": "<tool_call><function=f><parameter=a>%s</parameter></function></tool_call> so",
    "functiongemma": "<start_function_call>call:f%s<end_function_call> so",
}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "object"}}}}}]


@pytest.mark.parametrize("arguments", ARGUMENTS)
@pytest.mark.parametrize("name", ROWS)
def test_it_stays_what_it_was(name: str, arguments: str) -> None:
    fmt, text = toolgram.get_format(name), ROWS[name] % arguments
    for at in range(len(text)):
        parser = fmt.parser(TOOLS)
        parser.feed(text[:at])
        state = parser.snapshot()
        taken = json.dumps(state)
        for going_on in (parser, fmt.restore(state, TOOLS)):
            going_on.feed(text[at:])
            going_on.close()
            assert json.dumps(state) == taken, text[:at]
