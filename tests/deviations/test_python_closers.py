"""Closing brackets that do not fit in Python: in the arguments of calls, and in dicts where a format has JSON.

Strategy: one table of arguments, in each format that writes calls as Python writes them; and the tables of JSON in the
quotes of Python, in each format that reads these.  A bracket that does not close the innermost one makes a call
malformed; a marker that closes calls closes what is open after a whole value.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import toolgram
from tests.deviations.test_crossed_closers import CROSSED
from tests.deviations.test_json_forms import ARGUMENTS, BARE, ENVELOPES, REPAIRS, examples, read
from tests.streams import assert_same_however_split

TOOLS = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in "fg"]
# A format, and its calls behind and before what is tried.
LISTS = {
    "lfm2": ("<|tool_call_start|>[", "]<|tool_call_end|>"),
    "llama4_pythonic": ("<|python_start|>[", "]<|python_end|>"),
    "olmo3": ("<function_calls>", "</function_calls>"),
}
CROSSED_CALLS = {
    "two swapped": 'a=[1, {"b": 2]})',
    "all swapped": 'a=[1, {"b": 2)]}',
    "a brace missing": 'a=[1, {"b": 2])',
    "a bracket missing": 'a=[1, {"b": 2})',
    "a brace for a bracket": "a=[1, 2})",
    "a bracket for a brace": 'a={"b": 1])',
    "a bracket for a parenthesis": "a=(1, 2])",
    "behind a comma": "a=[1, 2, })",
    "behind a string": "a=['x', \"y\"})",
    "behind a word": "a=[None, True})",
    "behind a set": "a=[{1, 2]})",
    "with blanks": "a=[1, 2\n}\n)",
    "before an argument": "a=[1, 2}, c=3)",
    "one missing before an argument": 'a=[1, {"b": 2], c=3)',
    "a parenthesis before an argument": "a=[1, 2), c=3)",
    "a brace for the parenthesis": "a=1}",
    "one too many": "a=[1]])",
    "an item": "a=[1}, 2])",
    "an item after a dict": 'a=[1, {"b": 2]}, 3])',
    "an operator": "a=[1} + [2])",
}  # fmt: skip


@pytest.mark.parametrize("row", CROSSED_CALLS)
@pytest.mark.parametrize("name", LISTS)
def test_a_closing_bracket_that_does_not_fit_makes_the_call_malformed(name: str, row: str) -> None:
    before, behind = LISTS[name]
    message = assert_same_however_split(
        toolgram.get_format(name), f"{before}f({CROSSED_CALLS[row]}{behind}", tools=TOOLS
    )
    assert not message.tool_calls
    assert [call.name for call in message.malformed] == ["f"]


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ("a=1", {"a": 1}),
        ("a='x'", {"a": "x"}),
        ("a='<', b=[True", {"a": "<", "b": [True]}),
        ("a=['x', {'y': None", {"a": ["x", {"y": None}]}),
        ("a=[{}", {"a": [{}]}),
        ("a=[[], {}", {"a": [[], {}]}),
        ("a=[{'x': 1}", {"a": [{"x": 1}]}),
        ("a={'x': {}", {"a": {"x": {}}}),
        ("a=[1, ", {"a": [1]}),
        ("a={'x': 'it', ", {"a": {"x": "it"}}),
    ],
)
@pytest.mark.parametrize("name", LISTS)
def test_the_closing_marker_closes_what_is_open(name: str, written: str, arguments: dict[str, Any]) -> None:
    before, behind = LISTS[name]
    text = f"{before}f({written}{behind.removeprefix(']')}"
    message = assert_same_however_split(toolgram.get_format(name), text, tools=TOOLS)
    assert [(json.loads(call.arguments), call.status) for call in message.tool_calls] == [(arguments, "complete")]
    (unclosed,) = [each for each in message.anomalies if each.kind == "unclosed_arguments"]
    assert text[unclosed.start :] == behind.removeprefix("]")
    assert not message.content
    assert not toolgram.get_format(name).parse(text, TOOLS, strict=True).tool_calls


@pytest.mark.parametrize("at", range(1, 40))
def test_from_a_snapshot(at: int) -> None:
    fmt = toolgram.get_format("lfm2")
    for written in ("a=[1, {'b': 'x < y'", "a=[1, {'b': 2}], c=['x'", "a='1<2', c=[1"):
        text = f"<|tool_call_start|>[f({written}<|tool_call_end|>"
        parser = fmt.parser(TOOLS)
        events = parser.feed(text[:at])
        parser = fmt.restore(json.loads(json.dumps(parser.snapshot())), tools=TOOLS)
        events += parser.feed(text[at:]) + parser.close()
        arguments = "".join(event.arguments for event in events if event.type == "tool_call_delta")
        assert json.loads(arguments) == json.loads(fmt.parse(text, TOOLS).tool_calls[0].arguments)


# --- dicts of Python where JSON belongs -------------------------------------------------------------------------------


def in_quotes_of_python(text: str) -> str:
    return text.replace("'", '"').replace('"', "'")


PYTHON_DICTS = [
    name
    for name in ENVELOPES
    if name not in BARE and toolgram.get_format(name).machine_dict["format"].get("python_json")
]
IN_PYTHON = {
    **{row: (written, arguments) for row, (written, arguments, kinds) in REPAIRS.items() if kinds == {"repaired_json"}},
    "an apostrophe in a string": ('{"city": "it"s", "days": 2}', {"city": "it's", "days": 2}),
}


@pytest.mark.parametrize("row", [row for row in IN_PYTHON if row != "a quote inside a string"])
@pytest.mark.parametrize("name", PYTHON_DICTS)
def test_a_dict_that_is_wrong_in_one_place(name: str, row: str) -> None:
    written, arguments = IN_PYTHON[row]
    for prefix, example in examples(name):
        if '": [{' in written and ("}, {" in " ".join(example.split()) or "}\n{" in example):
            continue  # what follows may be an item of the list that the arguments hold
        wanted = read(name, prefix, example)
        message = read(name, prefix, example.replace(ARGUMENTS, in_quotes_of_python(written), 1))
        assert [call.name for call in message.tool_calls] == [call.name for call in wanted.tool_calls]
        assert json.loads(message.tool_calls[0].arguments) == arguments
        assert message.content == wanted.content
        assert "repaired_json" in {each.kind for each in message.anomalies}


@pytest.mark.parametrize("written", CROSSED)
@pytest.mark.parametrize("name", PYTHON_DICTS)
def test_crossed_brackets_in_a_dict_have_no_reading(name: str, written: str) -> None:
    for prefix, example in examples(name):
        message = read(name, prefix, example.replace(ARGUMENTS, in_quotes_of_python(written), 1))
        assert "get_weather" not in [call.name for call in message.tool_calls]
        assert [call.name for call in message.malformed] == ["get_weather"]


def test_broken_lists_are_never_complete_without_an_anomaly() -> None:
    """Brackets of valid arguments dropped, doubled, swapped or replaced: what was meant, or an anomaly."""
    chosen = random.Random(14)
    values = ['[1, {"b": 2}]', "{'x': [1, 2], 'y': (3, 4)}", "[[], [{}], [[1]]]", "{'k': {'l': [None]}}"]
    fmt = toolgram.get_format("lfm2")
    for _ in range(400):
        calls = ", ".join(f"{name}(a={chosen.choice(values)}, c={chosen.choice(values)})" for name in "fg")
        text = f"<|tool_call_start|>[{calls}]<|tool_call_end|>"
        meant = [json.loads(call.arguments) for call in fmt.parse(text, TOOLS).tool_calls]
        at = chosen.choice([at for at, character in enumerate(text) if character in "[](){}"])
        broken = chosen.choice(
            [
                text[:at] + text[at + 1 :],
                text[:at] + text[at] + text[at:],
                text[:at] + text[at + 1] + text[at] + text[at + 2 :],
                text[:at] + chosen.choice("[](){}") + text[at + 1 :],
            ]
        )
        message = assert_same_however_split(fmt, broken, tools=TOOLS)
        found = [json.loads(call.arguments) for call in message.tool_calls if call.status == "complete"]
        if found != meant:
            assert message.anomalies, broken
