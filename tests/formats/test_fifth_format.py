"""A fifth format by two files alone: Hermes, with its JSON in tags and its thinking in others.

Strategy: the grammar and the machine are `tests/own/fifth.*`, written to a temporary folder, as a user's own would be.
Everything else is what the package does for any format. No Python is written for it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolgram
from tests.streams import CUT_SIZES, check_events, check_message, cut, merged, run, statuses
from toolgram.events import ToolCallDelta

OWN = Path(__file__).parent.parent / "own"
GRAMMAR = (OWN / "fifth.lark").read_text("utf-8")

MACHINE = (OWN / "fifth.yaml").read_text("utf-8")

ADD = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
NOW = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


@pytest.fixture(scope="module")
def hermes(tmp_path_factory: pytest.TempPathFactory) -> toolgram.Format:
    folder: Path = tmp_path_factory.mktemp("hermes")
    grammar, machine = folder / "hermes.lark", folder / "hermes.yaml"
    grammar.write_text(GRAMMAR, encoding="utf-8")
    machine.write_text(MACHINE, encoding="utf-8")
    return toolgram.load_format(grammar, machine)


@pytest.mark.parametrize(
    ("text", "content", "reasoning", "calls"),
    [
        ("Hello", "Hello", None, []),
        (ADD, None, None, [("add", {"a": 1})]),
        (f"{ADD}\n{NOW}", None, None, [("add", {"a": 1}), ("now", {})]),
        (f"Sure.\n{ADD}\nDone.", "Sure. Done.", None, [("add", {"a": 1})]),
        (f"<think>\nA sum.\n</think>\n\nSure.\n{ADD}", "Sure.", "A sum.", [("add", {"a": 1})]),
        ("a <tool_call> b", "a <tool_call> b", None, []),
        ('<tool_call>{"a": 1}</tool_call>', '<tool_call>{"a": 1}</tool_call>', None, []),
    ],
)
def test_messages_whole_and_streamed(
    hermes: toolgram.Format, text: str, content: str | None, reasoning: str | None, calls: list[tuple[str, object]]
) -> None:
    whole, message = run(hermes, [text])
    check_events(whole, text)
    check_message(message, whole)
    assert (message.content, message.reasoning) == (content, reasoning)
    assert [(c.name, json.loads(c.arguments)) for c in message.tool_calls] == calls
    assert {c.status for c in message.tool_calls} <= {"complete"}
    for size in CUT_SIZES[1:]:
        events, streamed = run(hermes, cut(text, size))
        assert merged(events) == merged(whole)
        assert streamed == message


def test_arguments_stream(hermes: toolgram.Format) -> None:
    parser = hermes.parser()
    text = '<tool_call>\n{"name": "add", "arguments": {"a": "some lo'
    told = [e.arguments for c in text for e in parser.feed(c) if isinstance(e, ToolCallDelta)]
    assert "".join(told) == '{"a": "some lo'


def test_truncated(hermes: toolgram.Format) -> None:
    message = hermes.parse(f"{ADD}\n{NOW[:-14]}")
    assert statuses(message) == [("add", "complete"), ("now", "truncated")]


def test_the_other_tools_take_it_as_well(hermes: toolgram.Format) -> None:
    """Snapshot, reference parser and reference machine are made of the same two files."""
    parser = hermes.parser()
    parser.feed(ADD[:40])
    restored = hermes.restore(json.loads(json.dumps(parser.snapshot())))
    assert [e.source for e in parser.feed(ADD[40:])] == [e.source for e in restored.feed(ADD[40:])]
    assert hermes.reference_parse(hermes.example).tool_calls[0].name == "add"
    assert hermes.reference_machine().state == "WAITING_FOR_TOOL_START"


def test_shipped_formats_are_not_touched(hermes: toolgram.Format) -> None:
    assert "hermes_test" not in toolgram.format_names()
    with pytest.raises(toolgram.UnknownFormat):
        toolgram.get_format("hermes_test")
