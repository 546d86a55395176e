"""The response templates of transformers: written from a derived format, and heard as a second opinion."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

import toolgram
from tests.derive.test_shapes import derived
from toolgram.derive.response_templates import write_response_template
from toolgram.errors import ToolgramError


def test_json_in_tags_and_a_thought() -> None:
    written = write_response_template(derived("thinking_opened"))
    fields = written.template["fields"]
    assert written.template["start_anchor"] == "<|assistant|>\n"
    assert fields["thinking"] == {"open": "<think>", "close": "</think>", "content": "text"}
    assert fields["tool_calls"]["close"] == "</tool_call>"
    assert fields["tool_calls"]["content"] == "json"
    assert re.fullmatch(fields["tool_calls"]["open_pattern"], "\n<tool_call>")
    assert fields["tool_calls"]["transform"] == {"type": "function", "function": "{content}"}
    assert re.fullmatch(fields["content"]["close_pattern"], "\n<|end|>")


def test_tags_with_arguments() -> None:
    fields = write_response_template(derived("null_omitted")).template["fields"]
    calls = fields["tool_calls"]
    match = re.match(calls["open_pattern"], "<f=look_up><a=x>1</a></f>")
    assert match is not None
    assert match["name"] == "look_up"
    pair = re.search(calls["content_args"]["tag_pattern"], "<a=x>1</a>")
    assert pair is not None
    assert (pair["key"], pair["value"]) == ("x", "1")


@pytest.mark.parametrize("name", ["python_calls", "id_in_json", "openai_wrapper", "id_before_name", "bare_lines"])
def test_what_cannot_be_expressed_is_noted(name: str) -> None:
    written = write_response_template(derived(name))
    assert "tool_calls" not in written.template["fields"]
    assert any("content" in note and ("express" in note) for note in written.notes)


def test_a_shipped_format_has_no_analysis() -> None:
    with pytest.raises(ToolgramError, match="no analysis"):
        write_response_template(toolgram.get_format("hermes"))


class Tokenizer(SimpleNamespace):
    """A tokenizer with a response template, and what it makes of any text."""

    bos_token = ""
    eos_token = "</s>"
    response_template = ("not", "empty")

    def parse_response(self, text: str, prefix: str) -> dict[str, Any]:
        """Always the same."""
        assert prefix.endswith("\n")
        if self.answer is None:
            raise ValueError("no")
        return dict(self.answer)


def test_a_second_opinion() -> None:
    template = "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>{% endfor %}"
    template += "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
    for answer, words in (({"content": "else"}, "reads content otherwise"), (None, "raises on content: no")):
        tokenizer = Tokenizer(chat_template=template + f"{{# {words} #}}", answer=answer)
        report = toolgram.from_tokenizer(tokenizer).report
        assert report is not None
        assert sum(words in each for each in report.warnings) == 1
