"""Which whole outputs need no parser, and which do. That both give the same message is a property."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from toolgram import formats
from toolgram.call_ids import random_call_ids
from toolgram.runtime import whole_outputs
from toolgram.runtime.whole_outputs import whole_message
from toolgram.runtime.whole_recording import examples

IDS = random_call_ids()
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
HERMES_CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def warm(name: str) -> toolgram.Format:
    """A format whose examples were read, so that its pieces are recorded."""
    fmt = toolgram.get_format(name)
    for text in examples(fmt.program):
        fmt.parse(text)
    return fmt


def whole(fmt: toolgram.Format, text: str, tools: Any = None) -> toolgram.Message | None:
    return whole_message(fmt.program, text, tools, IDS, None)


@pytest.mark.parametrize("name", SHAPES)
def test_examples_of_every_shape_need_no_parser(name: str) -> None:
    fmt = warm(name)
    found = whole(fmt, fmt.example)
    assert found is not None
    assert [call.name for call in found.tool_calls] == [call.name for call in fmt.parse(fmt.example).tool_calls]


@pytest.mark.parametrize("name", ["deepseek_v3", "functionary_v3_2", "gpt_oss", "granite_3", "hermes", "llama3_json",
                                  "mistral_v3", "mistral_v11"])  # fmt: skip
def test_names_and_blanks_may_be_others(name: str) -> None:
    """Every call of the example, in a name and a spelling of another model."""
    fmt = warm(name)
    for call in fmt.parse(fmt.example).tool_calls:
        text = fmt.example.replace(call.name, "Another_name-2").replace('": ', '"  :\n').replace(', "', '  ,"')
        found = whole(fmt, text)
        assert found is not None
        assert "Another_name-2" in [each.name for each in found.tool_calls]


def test_derived_formats_are_recorded() -> None:
    """From the examples that derivation writes."""
    template = (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content or '' }}"
        "{% for call in message.tool_calls or [] %}<tool_call>\n"
        '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n</tool_call>'
        "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    fmt = toolgram.derive_format(template, name="derived")
    found = whole(fmt, HERMES_CALL)
    assert found is not None
    assert found == fmt.parse(HERMES_CALL, call_ids=lambda: found.tool_calls[0].id)


def test_a_few_outputs_record_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that reads one output, or derivation, does not pay for what only many outputs pay back."""
    monkeypatch.setattr(formats, "FIRST_OUTPUTS", 3)
    fmt = toolgram.Format(toolgram.get_format("hermes").spec)
    for _ in range(3):
        fmt.parse(fmt.example)
    assert not fmt.program.whole
    fmt.parse(fmt.example)
    assert fmt.program.whole


def test_names_keys_and_values_may_be_others() -> None:
    fmt = warm("qwen3_coder")
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
    assert whole(warm("hermes"), text) is None


def test_tools_that_are_not_declared_are_left_to_a_parser() -> None:
    fmt = warm("hermes")
    assert whole(fmt, HERMES_CALL) is not None
    assert whole(fmt, HERMES_CALL, [{"name": "g", "parameters": {"type": "object"}}]) is None
    assert [each.kind for each in fmt.parse(HERMES_CALL, [{"name": "g", "parameters": {}}]).anomalies] == [
        "unknown_tool"
    ]


def test_a_signature_that_differs_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where readers and pieces disagree, the readers count."""
    fmt = toolgram.Format(toolgram.get_format("hermes").spec)
    fmt.parse(HERMES_CALL)
    compared: list[str] = []
    same = whole_outputs.WholeOutputs._compare

    def differs(self: whole_outputs.WholeOutputs, text: str, *arguments: Any) -> bool:
        compared.append(text)
        same(self, text, *arguments)
        return False

    monkeypatch.setattr(whole_outputs.WholeOutputs, "_compare", differs)
    for _ in range(3):
        assert whole(fmt, HERMES_CALL) is None
        assert fmt.parse(HERMES_CALL).tool_calls[0].arguments == '{"a": 1}'
    assert compared == [HERMES_CALL]


def test_no_more_signatures_are_compared_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """An output of any other is read once, by a parser."""
    monkeypatch.setattr(whole_outputs, "MOST_SIGNATURES", 1)
    fmt = toolgram.Format(toolgram.get_format("hermes").spec)
    fmt.parse(HERMES_CALL)
    compared: list[str] = []
    same = whole_outputs.WholeOutputs._compare

    def noted(self: whole_outputs.WholeOutputs, text: str, *arguments: Any) -> bool:
        compared.append(text)
        return same(self, text, *arguments)

    monkeypatch.setattr(whole_outputs.WholeOutputs, "_compare", noted)
    assert whole(fmt, HERMES_CALL) is not None
    assert whole(fmt, "Sure. " + HERMES_CALL) is None
    assert whole(fmt, HERMES_CALL) is not None
    assert compared == [HERMES_CALL]
