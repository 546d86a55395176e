"""Calls of Qwen2.5-Coder: JSON in a fence, alone in the text, or in other tags than its own."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram

TOOLS: list[dict[str, Any]] = [
    {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    {"name": "now"},
]
F = '{"name": "f", "arguments": {"a": 1}}'
HERMES = toolgram.get_format("hermes")


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
