"""What a parser holds back after a beginning, spelled out: some text, or nothing."""

from __future__ import annotations

import pytest

import toolgram


@pytest.mark.parametrize(
    ("name", "text", "held"),
    [
        ("llama3_json", "Hello", ""),
        ("llama3_json", "Hello ", " "),
        ("llama3_json", "I used {", " {"),
        ("llama3_json", "I used {s", ""),
        ("llama3_json", '{"a": 1} is a dict', ""),
        ("llama3_json", '{"name": "Bingo", "a', '{"name": "Bingo", "a'),
        ("llama3_json", '{"name": "Bingo", "ag', ""),
        ("llama3_json", "1 <", " <"),
        ("llama3_json", "1 < 2", ""),
        ("llama3_json", '{"name": "f", "parameters": {', '{"name": "f", "parameters": {'),
        ("llama3_json", '{"name": "f", "parameters": {"', ""),
        ("llama3_json", '{"name": "f", "parameters": {"a": "some te', ""),
        ("llama4_pythonic", "see [1", ""),
        ("llama4_pythonic", "see [f", " [f"),
        ("llama4_pythonic", "see [f]", ""),
        ("llama4_pythonic", "[f(a=", "[f(a="),
        ("llama4_pythonic", "[f(a='some te", ""),
        ("mistral_v3", "Hi [TOOL", " [TOOL"),
        ("mistral_v3", "Hi [TOOLS", ""),
        ("mistral_v3", '[TOOL_CALLS] [{"name": "f", "arguments": {"a": "x', ""),
        ("mistral_v11", "Hi [TOOL", " [TOOL"),
        ("mistral_v11", "[TOOL_CALLS]get_wea", "[TOOL_CALLS]get_wea"),
        ("mistral_v11", '[TOOL_CALLS]f[ARGS]{"a": "x', ""),
        ("mistral_v11", "[THINK]because", ""),
        ("functionary_v3_2", "a >>", " >>"),
        ("functionary_v3_2", ">>>al", ">>>al"),
        ("functionary_v3_2", ">>>all\nx", ""),
        ("functionary_v3_2", ">>>f\n", ">>>f\n"),
        ("functionary_v3_2", ">>>python\nprint", ""),
        ("functionary_v3_2", '>>>f\n{"', ""),
        ("gpt_oss", " to=functions.f", " to=functions.f"),
        ("gpt_oss", " to be", ""),
        ("gpt_oss", "x to=f", ""),
        ("gpt_oss", "<|channel|>final", "<|channel|>final"),
        ("gpt_oss", "<|channel|>final<|message|>", ""),
        ("gpt_oss", "to=f<|message|>", "to=f<|message|>"),
        ("gpt_oss", 'to=f<|message|>{"', ""),
        ("granite_3", "</think> <resp", " <resp"),
        ("granite_3", "<think></think> <resp", " <resp"),
        ("granite_3", '<|tool_call|>[{"name": "f", "arguments": {"a": "x', ""),
        ("hermes", "the <tool", " <tool"),
        ("hermes", "the <tools", ""),
        ("hermes", "<tool_call>\n{", "<tool_call>\n{"),
        ("hermes", "<tool_call> tags", ""),
        ("hermes", '<tool_call>\n{"name": "f", "arguments": {"', ""),
        ("qwen3_coder", "the <tool", " <tool"),
        ("qwen3_coder", "the <tools", ""),
        ("qwen3_coder", "<tool_call>\n<function=f", "<tool_call>\n<function=f"),
        ("qwen3_coder", "<tool_call>\n<function=f>\n<parameter=a>\nx\n", "\n"),
        ("lfm2", "see [f(a=", ""),
        ("lfm2", "<|tool_call_start|>[f", "<|tool_call_start|>[f"),
        ("lfm2", "<|tool_call_start|>[f()", "<|tool_call_start|>[f()"),  # an expression may go on after the bracket
        ("lfm2", "<|tool_call_start|>[f(), ", " "),
    ],
)
def test_what_is_held(name: str, text: str, held: str) -> None:
    parser = toolgram.get_format(name).parser()
    told = "".join(event.source for character in text for event in parser.feed(character))
    assert text[len(told) :] == held
