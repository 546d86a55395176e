"""Calls of Qwen2.5-Coder: JSON in a fence, alone in the text, or in other tags than its own."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from tests.streams import assert_same_however_split, calls_of

TOOLS: list[dict[str, Any]] = [
    {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    {"name": "now"},
]
F = '{"name": "f", "arguments": {"a": 1}}'
CALL = ("f", '{"a": 1}', "complete")
HERMES = toolgram.get_format("hermes")


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (F, None, [CALL]),
        (f"Sure.\n{F}", "Sure.", [CALL]),
        (f"{F}\n{F}", None, [CALL, CALL]),
        (f"{F}<|im_end|>", None, [CALL]),
        (f"Sure.\n```json\n{F}\n```", "Sure.", [CALL]),
        (f"```\n{F}\n```", None, [CALL]),
        (f"```json\n{F}\n```\n```json\n{F}\n```", None, [CALL, CALL]),
        (f"```json\n{F}\n```\nSo.\n```json\n{F}\n```", f"```json\n{F}\n```\nSo.", [CALL]),
        (f"<tools>\n{F}\n</tools>", None, [CALL]),
        (f"<tools>\n{F}\n{F}\n</tools>", None, [CALL, CALL]),
        (f"<function_call>{F}</function_call>", None, [CALL]),
        (f"{F}\n<tool_call>\n{F}\n</tool_call>", None, [CALL, CALL]),
        ('{"arguments": {"a": 1}, "name": "f"}', None, [CALL]),
        ('{"name": "f", "arguments": {"a": 1}', None, [CALL]),
        ('<tools>{"name": "now"}</tools>', None, [("now", "{}", "complete")]),
    ],
)
def test_a_call_of_a_declared_function(text: str, content: str | None, calls: list[tuple[str, str, str]]) -> None:
    message = assert_same_however_split(HERMES, text, tools=TOOLS, finish_reason="stop")
    assert (message.content, calls_of(message)) == (content, calls)
    assert "unusual_form" in [each.kind for each in message.anomalies]


@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```", "```\n{}\n```", "<tools>\n{}\n</tools>", "So {} it is."])
@pytest.mark.parametrize(
    ("call", "tools", "strict"),
    [
        (F, None, False),
        (F, [], False),
        (F, TOOLS, True),
        (F.replace('"f"', '"g"'), TOOLS, False),
        ('{"arguments": {"a": 1}, "name": "g"}', TOOLS, False),
        ('{"name": "Bob", "age": 3}', TOOLS, False),
        ('{"name": "f", "args": 1}', TOOLS, False),
        ('{"name": "g"}', TOOLS, False),
        ('{"a": {"name": 1}}', TOOLS, False),
    ],
)
def test_anything_else_is_text(form: str, call: str, tools: list[dict[str, Any]] | None, strict: bool) -> None:
    text = form.replace("{}", call)
    message = HERMES.parse(text, tools=tools, strict=strict)
    assert (message.content, message.tool_calls, message.malformed) == (text, [], [])
    for size in (1, 2, 5):
        parser = HERMES.parser(tools, strict=strict)
        for at in range(0, len(text), size):
            parser.feed(text[at : at + size])
        parser.close()
        assert parser.message.content == text


def test_prose_after_whole_arguments_makes_the_object_text() -> None:
    text = '{"name": "f", "arguments": {"a": 1} is an object.'
    message = assert_same_however_split(HERMES, text, tools=TOOLS, finish_reason="stop")
    assert message.content == text
    assert not message.tool_calls
