"""Which whole outputs need no parser, and which do. That both give the same message is a property."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from tests.derive.turns import TEMPLATES
from toolgram.runtime.whole_outputs import whole_message

# A format of each way in which calls are written.
SHAPES = [
    "hermes",
    "mistral_v3",
    "mistral_v11",
    "gpt_oss",
    "kimi_k2",
    "llama4_pythonic",
    "qwen3_coder",
    "glm45",
    "gemma4",
]
PYTHON_AFTER_THOUGHT = TEMPLATES / "python_after_thought.jinja"
HERMES_CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def whole(fmt: toolgram.Format, text: str, tools: Any = None) -> toolgram.Message | None:
    return whole_message(fmt.program, text, tools, lambda: "id", None)


@pytest.mark.parametrize("name", SHAPES)
def test_examples_of_every_shape_need_no_parser(name: str) -> None:
    fmt = toolgram.get_format(name)
    found = whole(fmt, fmt.example)
    assert found is not None
    assert [call.name for call in found.tool_calls] == [call.name for call in fmt.parse(fmt.example).tool_calls]


@pytest.mark.parametrize("name", ["deepseek_v3", "functionary_v3_2", "gpt_oss", "granite_3", "hermes", "llama3_json",
                                  "mistral_v3", "mistral_v11"])  # fmt: skip
def test_names_and_blanks_may_be_others(name: str) -> None:
    """Every call of the example, in a name and a spelling of another model."""
    fmt = toolgram.get_format(name)
    for call in fmt.parse(fmt.example).tool_calls:
        text = fmt.example.replace(call.name, "Another_name-2").replace('": ', '"  :\n').replace(', "', '  ,"')
        found = whole(fmt, text)
        assert found is not None
        assert "Another_name-2" in [each.name for each in found.tool_calls]


def test_derived_formats_need_no_parser() -> None:
    template = (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content or '' }}"
        "{% for call in message.tool_calls or [] %}<tool_call>\n"
        '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n</tool_call>'
        "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    fmt = toolgram.derive_format(template, name="derived")
    found = whole(fmt, HERMES_CALL)
    assert found is not None
    assert [(call.name, call.arguments) for call in found.tool_calls] == [("f", '{"a": 1}')]


@pytest.mark.parametrize(
    "text",
    [
        HERMES_CALL.replace('"name": "f", "arguments": {"a": 1}', '"arguments": {"a": 1}, "name": "f"'),
        HERMES_CALL.replace('"name": "f", "arguments"', '"id": "1", "type": "function", "name": "f", "parameters"'),
        HERMES_CALL.replace('{"name"', '[{"name"').replace("}}", "}}, " + '{"arguments": {}, "name": "g"}]'),
        HERMES_CALL.replace('"', "'"),
        HERMES_CALL.replace('"f"', "'f'").replace('{"a": 1}', "{'a': [True, None, 'b']}"),
        "Let me look.\n" + HERMES_CALL + "\n" + HERMES_CALL + "\n",
        "It is `sunny`.",
    ],
)
def test_other_spellings_need_no_parser(text: str) -> None:
    """Another order of keys, other quotes, several calls, text before them."""
    fmt = toolgram.get_format("hermes")
    found = whole(fmt, text)
    assert found is not None
    parser = fmt.parser(call_ids=lambda: "id")
    parser.feed(text)
    parser.close()
    assert found == parser.message


def test_a_name_that_is_a_word_is_text() -> None:
    """What may be a name is read as text at once if nothing after it makes it one."""
    fmt = toolgram.get_format("glm4")
    found = whole(fmt, "It is sunny.")
    assert found is not None
    assert found.content == "It is sunny."


def test_names_keys_and_values_may_be_others() -> None:
    fmt = toolgram.get_format("qwen3_coder")
    text = "<tool_call>\n<function=f_2>\n<parameter=a_b>\nO'Brien & co\n</parameter>\n</function>\n</tool_call>"
    found = whole(fmt, text)
    assert found is not None
    assert [(call.name, call.arguments) for call in found.tool_calls] == [("f_2", '{"a_b": "O\'Brien & co"}')]


@pytest.mark.parametrize(
    "text",
    [
        HERMES_CALL.replace("1", "1,"),  # repaired
        HERMES_CALL.replace('"a": 1', '"a": 1, "a": 2'),  # repeated
        HERMES_CALL.removesuffix("}\n</tool_call>"),  # not closed
        HERMES_CALL + "}",  # closed once too often
        HERMES_CALL + "It is sunny.",
        "See [" + HERMES_CALL,
        HERMES_CALL.replace("1", "NaN"),
        HERMES_CALL.replace("1", "[" * 100 + "]" * 100),
        "It is <tool",
        "</think>It is sunny.",
    ],
)
def test_what_is_not_plain_is_left_to_a_parser(text: str) -> None:
    assert whole(toolgram.get_format("hermes"), text) is None


def test_tools_that_are_not_declared_are_left_to_a_parser() -> None:
    fmt = toolgram.get_format("hermes")
    assert whole(fmt, HERMES_CALL) is not None
    assert whole(fmt, HERMES_CALL, [{"name": "g", "parameters": {"type": "object"}}]) is None
    assert [each.kind for each in fmt.parse(HERMES_CALL, [{"name": "g", "parameters": {}}]).anomalies] == [
        "unknown_tool"
    ]


def test_a_format_whose_calls_begin_lines_may_begin_in_any_state() -> None:
    """A parser of such a format begins with a line end, also where no text stays."""
    fmt = toolgram.derive_format(PYTHON_AFTER_THOUGHT.read_text(encoding="utf-8"), eos_token="</s>")
    text = "Good morning!\nIs 3 < 4?"
    assert fmt.parse(text).content == text
