"""Calls that the generation prompt has begun, as servers begin them when a tool is forced."""

from __future__ import annotations

import json

import pytest

import toolgram
from tests.streams import CUT_SIZES, check_events, cut, run


@pytest.mark.parametrize(
    ("name", "prefix", "text"),
    [
        ("mistral_v11", "[TOOL_CALLS]", 'f[ARGS]{"a": 1}'),
        ("mistral_v11", "[INST]Hi[/INST][TOOL_CALLS]f[ARGS]", '{"a": 1}'),
        ("mistral_v11", '[TOOL_CALLS]f[ARGS]{"', 'a": 1}'),
        ("mistral_v3", "[TOOL_CALLS]", ' [{"name": "f", "arguments": {"a": 1}}]'),
        ("mistral_v3", "[TOOL_CALLS] [", '{"name": "f", "arguments": {"a": 1}}]'),
        ("mistral_v3", '[TOOL_CALLS] [{"name": "f", "arguments": ', '{"a": 1}}]'),
        ("llama3_json", "<|python_tag|>", '{"name": "f", "parameters": {"a": 1}}'),
        ("llama3_json", '{"name": "f", "parameters": {', '"a": 1}}'),
        ("llama4_pythonic", "<|python_start|>[", "f(a=1)]<|python_end|>"),
        ("llama4_pythonic", "[f(", "a=1)]"),
        ("functionary_v3_2", "<|start_header_id|>assistant<|end_header_id|>\n\n>>>", 'f\n{"a": 1}'),
        ("functionary_v3_2", ">>>f\n", '{"a": 1}'),
        ("gpt_oss", "<|start|>assistant", ' to=functions.f<|channel|>commentary json<|message|>{"a": 1}<|call|>'),
        ("gpt_oss", "<|start|>assistant<|channel|>commentary to=functions.f", ' json<|message|>{"a": 1}'),
        ("gpt_oss", "<|start|>assistant to=functions.f<|channel|>commentary json<|message|>", '{"a": 1}<|call|>'),
        (
            "granite_3",
            "<|start_of_role|>assistant<|end_of_role|><|tool_call|>",
            '[{"name": "f", "arguments": {"a": 1}}]',
        ),
        ("hermes", "<|im_start|>assistant\n<tool_call>", '\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'),
        ("hermes", '<tool_call>\n{"name": "f", "arguments": ', '{"a": 1}}\n</tool_call>'),
        (
            "qwen3_coder",
            "<|im_start|>assistant\n<tool_call>\n<function=f>\n",
            "<parameter=a>\n1\n</parameter>\n</function>",
        ),
        ("lfm2", "<|im_start|>assistant\n<|tool_call_start|>[", "f(a=1)]<|tool_call_end|>"),
    ],
)
def test_a_call_that_the_prompt_has_begun(name: str, prefix: str, text: str) -> None:
    """A forced tool choice writes the beginning of a call into the prompt; the call is whole all the same."""
    for size in CUT_SIZES:
        events, message = run(toolgram.get_format(name), cut(text, size), prefix=prefix)
        check_events(events, text)
        assert [(c.name, json.loads(c.arguments), c.status) for c in message.tool_calls] == [
            ("f", {"a": 1}, "complete")
        ]
        assert message.content is None
