"""Which calls are read in one step, and when the readers read them. That both say the same is a property."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram
from tests.properties.test_straight_paths import all_said
from toolgram.runtime import straight_paths
from toolgram.runtime.straight_paths import StraightPaths

JSON_FORMATS = ["deepseek_v3", "functionary_v3_2", "gpt_oss", "granite_3", "hermes", "llama3_json", "mistral_v3",
                "mistral_v11"]  # fmt: skip


def fed(fmt: toolgram.Format, text: str) -> toolgram.Message:
    """The message of a parser that is fed the whole text."""
    parser = fmt.parser()
    parser.feed(text)
    parser.close()
    return parser.message


@pytest.mark.parametrize("name", JSON_FORMATS)
def test_calls_are_read_straight(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Into the arguments and out of them, for every call of the example, in a name and a spelling of another model."""
    taken: list[str] = []

    def noted(which: str) -> Any:
        method = getattr(StraightPaths, which)

        def call(self: StraightPaths, *arguments: Any) -> int:
            found: int = method(self, *arguments)
            if found >= 0:
                taken.append(which)
            return found

        return call

    for which in ("enter", "leave"):
        monkeypatch.setattr(StraightPaths, which, noted(which))
    fmt = toolgram.get_format(name)
    calls = fed(fmt, fmt.example).tool_calls
    assert taken.count("leave") == len(calls)
    assert "enter" in taken
    for call in calls:
        taken.clear()
        text = fmt.example.replace(call.name, "Another_name-2").replace('": ', '"  :\n').replace(', "', '  ,"')
        assert "Another_name-2" in [each.name for each in fed(fmt, text).tool_calls]
        assert taken.count("leave") == len(calls)


def test_derived_formats_have_paths() -> None:
    hermes = toolgram.get_format("hermes")
    template = (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content or '' }}"
        "{% for call in message.tool_calls or [] %}<tool_call>\n"
        '{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}\n</tool_call>'
        "{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    fmt = toolgram.derive_format(template, name="derived")
    text = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    assert all_said(fmt, [text], straight=True) == all_said(fmt, [text], straight=False)
    fmt.parse(text)
    assert isinstance(fmt.program.straight, StraightPaths)
    assert fmt.program.straight.entries
    assert json.loads(fmt.parse(text).tool_calls[0].arguments) == {"a": 1}
    assert hermes.parse(text).tool_calls[0].name == "f"


def test_a_trace_and_token_ids_see_the_readers() -> None:
    fmt = toolgram.get_format("hermes")
    steps: list[Any] = []
    traced = fmt.parser(trace=steps.append)
    traced.feed(fmt.example)
    assert len(steps) > 10
    by_id = fmt.parser(special_tokens={"<tool_call>": 7})
    by_id.feed("<tool_call>", [7])
    assert by_id.state != fmt.parser().state
    assert [event.type for event in by_id.feed('{"name": "f", "arguments": {"a": 1}}')][-1] == "tool_call_end"


def test_a_few_calls_record_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that reads one output, or derivation, does not pay for what only many calls pay back."""
    monkeypatch.setattr(straight_paths, "FIRST_CALLS", 3)
    hermes = toolgram.get_format("hermes")
    fmt = toolgram.Format(hermes.spec)
    calls = len(fmt.parse(fmt.example).tool_calls)
    paths = fmt.program.straight
    assert isinstance(paths, StraightPaths)
    assert calls < 3
    assert paths.entries is None
    fmt.parse(fmt.example)
    assert paths.entries
