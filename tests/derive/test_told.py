"""Calls that a template only tells of: the example in its instructions is read, and the report says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram
from tests.derive.test_shapes import calls_of, derived, report_of
from toolgram.derive.conversation import CALLS, TOOLS
from toolgram.derive.rebuilding import write_calls
from toolgram.derive.told import find_told, without_tools
from toolgram.limits import MAX_INSTRUCTIONS

CITY = {"city": "Paris", "days": 2}
WRITTEN: dict[str, str] = {
    "told_json": '<use_tool>\n{"name": "look_up", "args": {"city": "Paris", "days": 2}}\n</use_tool>',
    "told_tags": (
        "<tool_call>\n<function=look_up>\n<parameter=city>\nParis\n</parameter>\n"
        "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>"
    ),
    "told_list": '[{"name": "look_up", "arguments": {"city": "Paris", "days": 2}}]',
    "told_python": "[look_up(city='Paris', days=2)]",
    "told_word_and_list": 'functools[{"name": "look_up", "arguments": {"city": "Paris", "days": 2}}]',
    "told_pairs": (
        "<tool_call>look_up\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n"
        "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>"
    ),
    "told_attributes": (
        '<block_calls>\n<invoke name="look_up">\n<parameter name="city">Paris</parameter>\n'
        '<parameter name="days">2</parameter>\n</invoke>\n</block_calls>'
    ),
    "told_typed_attributes": (
        '<~X~calls>\n<~X~invoke name="look_up">\n<~X~parameter name="city" string="true">Paris</~X~parameter>\n'
        '<~X~parameter name="days" string="false">2</~X~parameter>\n</~X~invoke>\n</~X~calls>'
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_the_told_example_is_read(name: str) -> None:
    fmt = derived(name)
    message = fmt.parse(WRITTEN[name])
    assert calls_of(message) == [("look_up", CITY)]
    assert message.content is None
    assert fmt.parse("Just text, and no call.").content == "Just text, and no call."


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_told_is_no_promise(name: str) -> None:
    report = report_of(derived(name))
    assert not report.ok
    assert not report.failed
    assert {"one call", "two calls"} <= {probe.case for probe in report.probes}
    assert any("told, not printed" in each for each in report.unexplained)


def test_no_format_is_guessed_from_a_marker_alone() -> None:
    """`<tool_call>` occurs in the instructions of both, and neither writes JSON in it."""
    assert report_of(derived("told_tags")).shipped is None
    assert report_of(derived("told_pairs")).shipped is None


def test_a_shipped_format_is_taken_where_it_reads_what_is_told() -> None:
    source = (
        "{% if tools %}Write <tool_call>\\n{'name': <function-name>, 'arguments': <args>}\\n</tool_call>.{% endif %}"
    )
    rest = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    fmt = toolgram.derive_format(source.replace("\\n", "\n") + rest)
    assert report_of(fmt).shipped == "hermes"
    assert any("is taken from what it tells" in each for each in report_of(fmt).unexplained)


def test_instructions_without_an_example_are_said_to_be_open() -> None:
    report = report_of(derived("told_nothing"))
    assert any("how they are written is not known" in each for each in report.unexplained)


def test_printed_calls_win_over_told_ones_and_the_conflict_is_said() -> None:
    told = '{% if tools %}Write <a>{"name": <function-name>, "arguments": <args>}</a>.{% endif %}'
    printed = "{% for c in m.tool_calls %}<b>{{ c.function|tojson }}</b>{% endfor %}"
    body = "{% for m in messages %}<|{{ m.role }}|>{{ m.content if m.content }}" + printed + "<|end|>{% endfor %}"
    fmt = toolgram.derive_format(told + body + "{% if add_generation_prompt %}<|assistant|>{% endif %}")
    assert report_of(fmt).ok
    assert fmt.parse('<b>{"name": "f", "arguments": {}}</b>').tool_calls
    assert any("tells of calls like '<a>" in each for each in report_of(fmt).warnings)


@pytest.mark.parametrize(
    ("told", "written"),
    [
        ('<|call|>{"name": "..."}', None),
        ("Use the tool (name it) wisely.", None),
        ('{"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}', None),
        ("respond only with <|tool_call|> followed by a JSON list of tools used", '<|tool_call|>[{"name": "f", "ar'),
        ("<c>tool_call_name<s>tool_call_arguments</c>", '<c>f<s>{"a": 1}</c>'),
        ('<function=example_function_name>{"example_name": "example_value"}</function>', '<function=f>{"a": 1}</func'),
        (
            '<calls>\n<call>\n{"tool": "tool name", "input": {}}\n</call>\n</calls>',
            '<calls>\n<call>\n{"tool": "f", "in',
        ),
        ('{"type": "function", "function": {"name": "function name", "arguments": {}}}', '{"type": "function", "fun'),
        ('[TOOL_CALLS] [{"name": "function_name", "arguments": {}, "id": "call id"}]', '[TOOL_CALLS] [{"name": "f"'),
        ('```json\n{"tool": "name", "input": {}}\n```', '```json\n{"tool": "f"'),
        (
            '<｜DSML｜calls>\n<｜DSML｜invoke name="$FUNCTION_NAME">\n'
            '<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>\n...\n'
            "</｜DSML｜invoke>\n</｜DSML｜calls>",
            '<｜DSML｜calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="a" string="false">1</',
        ),
        ('<i name="$TOOL_NAME"><p name="$PARAM" kind="a|b">x</p></i>', None),
    ],
)
def test_examples(told: str, written: str | None) -> None:
    found = find_told(f"You may call tools.\n{told}\nBe brief.")
    call = CALLS[0].__class__("f", {"a": 1})
    assert (write_calls(found, [call])[: len(written or "")] if found else None) == written


@pytest.mark.parametrize(
    "piece", ["{", "<a ", "[", '{"name": ', "<tool_call>", "function(", "<call=name>", "`" * 3, "name "]
)
def test_hostile_instructions_cost_little(piece: str) -> None:
    text = piece * (MAX_INSTRUCTIONS // len(piece))
    find_told(text)
    find_told(text + text[::-1])


def test_lists_of_tools_are_no_examples() -> None:
    listed: Any = json.dumps(TOOLS, indent=2)
    assert without_tools(f"Tools: {listed} End.").split() == ["Tools:", "End."]
