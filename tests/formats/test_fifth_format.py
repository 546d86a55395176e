"""A fifth format by two files alone: Hermes, with its JSON in tags and its thinking in others.

Strategy: the grammar and the machine stand here as text and are written to a temporary folder, as a user's own would
be; everything else is what the package does for any format. No Python is written for it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import toolgram
from tests.streams import CUT_SIZES, check_events, check_message, cut, merged, run, statuses
from toolgram.events import ToolCallDelta

GRAMMAR = r"""
// Hermes 2 Pro and its kin: each call is a JSON object in tags.
%import common.envelope (envelope)

start: (TEXT | reasoning | call)*

reasoning: THINK THOUGHT? END_THINK
call: TOOL_CALL WS? envelope WS? END_TOOL_CALL

TOOL_CALL: "<tool_call>"
END_TOOL_CALL: "</tool_call>"
THINK: "<think>"
END_THINK: "</think>"
WS: /[ \t\r\n]{1,64}/
TEXT: /(?:(?!<tool_call>|<\/?think>)[\s\S])+/
THOUGHT: /(?:(?!<\/think>)[\s\S])+/
"""

MACHINE = r"""
format:
  title: Hermes
  models: [Hermes 2 Pro]
  parser: lalr
  call_ids: call_24
  example: "<think>A sum.</think><tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>"
machine:
  name: hermes_test
  initial: WAITING_FOR_TOOL_START
  auto_transitions: false
  states:
    - {name: WAITING_FOR_TOOL_START, tags: [content]}
    - {name: REASONING, tags: [reasoning]}
    - {name: WAITING_FOR_TOOL, tags: [held]}
    - {name: WAITING_FOR_TOOL_KEY, tags: [held]}
    - {name: PARSING_NAME, tags: [name, held]}
    - {name: PARSING_NAME_COMPLETED, tags: [held]}
    - {name: WAITING_FOR_ARGUMENTS_START, tags: [held]}
    - {name: PARSING_ARGUMENTS, tags: [arguments]}
    - {name: PARSING_ARGUMENTS_COMPLETED}
    - {name: TOOL_COMPLETE}
    - {name: RECOVERING, tags: [malformed]}
    - {name: ALL_TOOLS_COMPLETE, final: true}
  transitions:
    - {trigger: TEXT, source: [WAITING_FOR_TOOL_START, REASONING], dest: '='}
    - {trigger: THINK, source: WAITING_FOR_TOOL_START, dest: REASONING}
    - {trigger: END_THINK, source: REASONING, dest: WAITING_FOR_TOOL_START}
    - {trigger: TOOL_CALL, source: [WAITING_FOR_TOOL_START, RECOVERING], dest: WAITING_FOR_TOOL}
    - {trigger: WS, source: [WAITING_FOR_TOOL, TOOL_COMPLETE], dest: '='}
    - {trigger: start_map item, source: WAITING_FOR_TOOL, dest: WAITING_FOR_TOOL_KEY}
    - {trigger: map_key item.name, source: WAITING_FOR_TOOL_KEY, dest: PARSING_NAME}
    - {trigger: string item.name, source: PARSING_NAME, dest: PARSING_NAME_COMPLETED, after: name}
    - {trigger: map_key item.arguments, source: PARSING_NAME_COMPLETED, dest: WAITING_FOR_ARGUMENTS_START}
    - trigger: start_map item.arguments
      source: WAITING_FOR_ARGUMENTS_START
      dest: PARSING_ARGUMENTS
      after: start_call
    - {trigger: end_map item.arguments, source: PARSING_ARGUMENTS, dest: PARSING_ARGUMENTS_COMPLETED}
    - {trigger: end_map item, source: PARSING_ARGUMENTS_COMPLETED, dest: TOOL_COMPLETE, after: end_call}
    - {trigger: END_TOOL_CALL, source: [TOOL_COMPLETE, RECOVERING], dest: WAITING_FOR_TOOL_START}
    - trigger: malformed
      source: [PARSING_ARGUMENTS, PARSING_ARGUMENTS_COMPLETED, TOOL_COMPLETE]
      dest: RECOVERING
      after: fail_call
    - {trigger: recovered, source: RECOVERING, dest: WAITING_FOR_TOOL_START}
    - trigger: end
      source:
        - WAITING_FOR_TOOL_START
        - REASONING
        - PARSING_ARGUMENTS
        - PARSING_ARGUMENTS_COMPLETED
        - TOOL_COMPLETE
        - RECOVERING
      dest: ALL_TOOLS_COMPLETE
"""

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
