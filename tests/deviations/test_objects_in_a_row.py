"""Calls as JSON objects with a comma between them, and without the brackets of a list around them.

Strategy: every format that reads several objects between its markers, with the blanks that models write, however the
text is split. What only begins like another call is text.
"""

from __future__ import annotations

import pytest

import toolgram
from tests.streams import CUT_SIZES, cut, run

MARKERS = {
    "apertus": ("<|tools_prefix|>", "<|tools_suffix|>"),
    "apriel": ("<tool_calls>", "</tool_calls>"),
    "cohere_command3": ("<|START_ACTION|>", "<|END_ACTION|>"),
    "cohere_command4": ("<|START_ACTION|>", "<|END_ACTION|>"),
    "ernie45": ("<tool_call>\n", "\n</tool_call>"),
    "hermes": ("<tool_call>\n", "\n</tool_call>"),
    "hunyuan_a13b": ("<tool_calls>", "</tool_calls>"),
    "internlm2": ("<|action_start|><|plugin|>", "<|action_end|>"),
    "jamba": ("<tool_calls>", "</tool_calls>"),
    "longcat": ("<longcat_tool_call>\n", "\n</longcat_tool_call>"),
    "minimax_m1": ("<tool_calls>\n", "\n</tool_calls>"),
    "nemotron_v2": ("<TOOLCALL>", "</TOOLCALL>"),
    "phi4_mini": ("<|tool_call|>", "<|/tool_call|>"),
}
KEYS = {"cohere_command3": ("tool_name", "parameters"), "cohere_command4": ("tool_name", "parameters")}


def call(format_name: str, name: str, arguments: str) -> str:
    if format_name == "apertus":
        return f'{{"{name}": {arguments}}}'
    key, value = KEYS.get(format_name, ("name", "arguments"))
    return f'{{"{key}": "{name}", "{value}": {arguments}}}'


@pytest.mark.parametrize("comma", [",", ", ", " ,\n", ",\n    "])
@pytest.mark.parametrize("format_name", MARKERS)
def test_a_comma_between_two_calls_needs_no_list(format_name: str, comma: str) -> None:
    fmt = toolgram.get_format(format_name)
    opener, closer = MARKERS[format_name]
    objects = [
        call(format_name, "f", '{"a": "},{"}'),
        call(format_name, "g", "{}"),
        call(format_name, "h", '{"b": [1]}'),
    ]
    text = f"Hi\n{opener}{comma.join(objects)}{closer}\nBye"
    for size in CUT_SIZES:
        _, message = run(fmt, cut(text, size))
        assert [(each.name, each.arguments, each.status) for each in message.tool_calls] == [
            ("f", '{"a": "},{"}', "complete"),
            ("g", "{}", "complete"),
            ("h", '{"b": [1]}', "complete"),
        ]
        assert message.content == "Hi Bye"
        assert [each.kind for each in message.anomalies] == ["repaired_json"] * 2


@pytest.mark.parametrize("rest", [", and so on", ", {x}", ', {"g"}', ', "g", {}', ",", ", {", ', {"name"', ", [1]"])
@pytest.mark.parametrize("format_name", MARKERS)
def test_a_comma_before_no_call_is_text(format_name: str, rest: str) -> None:
    fmt = toolgram.get_format(format_name)
    text = MARKERS[format_name][0] + call(format_name, "f", "{}") + rest
    for size in CUT_SIZES:
        _, message = run(fmt, cut(text, size))
        assert [(each.name, each.status) for each in message.tool_calls] == [("f", "complete")]
        assert message.content == rest


@pytest.mark.parametrize("format_name", [name for name in MARKERS if name != "apertus"])  # whose key is any name
def test_a_comma_before_an_object_that_is_no_call_stays(format_name: str) -> None:
    fmt = toolgram.get_format(format_name)
    rest = ', {"x": 1}'
    text = MARKERS[format_name][0] + call(format_name, "f", "{}") + rest
    for size in CUT_SIZES:
        _, message = run(fmt, cut(text, size))
        assert [(each.name, each.status) for each in message.tool_calls] == [("f", "complete")]
        assert message.content == rest
        assert "repaired_json" not in {each.kind for each in message.anomalies}


# Formats in which nothing closes a call: the marker that announces it
UNCLOSED = {
    "gigachat3": "<|function_call|>",
    "granite_20b_fc": "<function_call> ",
    "granite_3": "<|tool_call|>",
    "mistral_v3": "[TOOL_CALLS] ",
    "mistral_v11": "[TOOL_CALLS] ",
}


@pytest.mark.parametrize("between", ["", "\n", " ", ",", ",\n ", ";", "; "])
@pytest.mark.parametrize("format_name", UNCLOSED)
def test_where_nothing_closes_a_call_the_next_one_needs_no_marker(format_name: str, between: str) -> None:
    fmt = toolgram.get_format(format_name)
    objects = [
        call(format_name, name, arguments) for name, arguments in (("f", '{"a": "},{"}'), ("g", "{}"), ("h", "{}"))
    ]
    for wrapped in (False, True):
        first = f"[{objects[0]}]" if wrapped else objects[0]
        text = f"Hi{UNCLOSED[format_name]}{between.join([first, *objects[1:]])} Bye"
        for size in CUT_SIZES:
            _, message = run(fmt, cut(text, size))
            assert [(each.name, each.arguments, each.status) for each in message.tool_calls] == [
                ("f", '{"a": "},{"}', "complete"),
                ("g", "{}", "complete"),
                ("h", "{}", "complete"),
            ]
            assert message.content == "Hi Bye"
            assert [each.kind for each in message.anomalies if each.text == between.strip()][-2:] == [
                "unusual_form"
            ] * 2
            assert {each.kind for each in message.anomalies} == {"unusual_form"}


@pytest.mark.parametrize(
    "rest", ['{"x": 1}', ', {"x": 1}', "; and", '{"name": 5}', ', {"name": "g", "x": 1}', ",", ";", "{"]
)
@pytest.mark.parametrize("format_name", UNCLOSED)
def test_what_is_no_call_stays_text(format_name: str, rest: str) -> None:
    fmt = toolgram.get_format(format_name)
    text = UNCLOSED[format_name] + call(format_name, "f", "{}") + rest
    for size in CUT_SIZES:
        _, message = run(fmt, cut(text, size))
        assert [(each.name, each.status) for each in message.tool_calls] == [("f", "complete")]
        assert message.content == rest.strip()


@pytest.mark.parametrize("format_name", UNCLOSED)
def test_behind_text_an_object_is_no_call(format_name: str) -> None:
    text = f"{UNCLOSED[format_name]}{call(format_name, 'f', '{}')} So: {call(format_name, 'g', '{}')}"
    message = toolgram.get_format(format_name).parse(text)
    assert [each.name for each in message.tool_calls] == ["f"]
    assert message.content == f"So: {call(format_name, 'g', '{}')}"
