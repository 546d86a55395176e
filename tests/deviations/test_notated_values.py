"""What models write wrong in a notation of its own (`{k:<q>text<q>,n:3}`): every format that has one.

Strategy: one table of arguments, with `\\1` for the quotes of the notation, and the calls that each gives. Formats
differ in quotes and markers only.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolgram
from tests.streams import assert_same_however_split, calls_of

# Before a call, the quotes of its strings, behind a call, and the token that ends the turn.
MARKERS = {
    "gemma4": ("<|tool_call>", '<|"|>', "<tool_call|>", "<turn|>"),
    "functiongemma": ("<start_function_call>", "<escape>", "<end_function_call>", "<end_of_turn>"),
}
FORMATS = [name for name in toolgram.format_names() if toolgram.get_format(name).spec.notation[2:] == ()
           and toolgram.get_format(name).spec.notation]  # fmt: skip
PROPERTIES = {"a": "string", "o": "object", "l": "array", "n": "integer"}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {
        key: {"type": kind} for key, kind in PROPERTIES.items()}}}}
    for name in "fg"
]  # fmt: skip
VALUE, ENVELOPE, ARGUMENTS, JSON, FORM = (
    "unclosed_value", "unclosed_envelope", "unclosed_arguments", "repaired_json", "unusual_form",
)  # fmt: skip

# The arguments as they are written, what they are, and the anomalies.
ROWS: list[tuple[str, dict[str, Any], set[str]]] = [
    ("{a:\1x\1,}", {"a": "x"}, set()),
    ("{o:{x:1,},n:2}", {"o": {"x": 1}, "n": 2}, {JSON}),
    ("{l:[1,\1x\1, ],n:2}", {"l": [1, "x"], "n": 2}, {JSON}),
    ("{a:\1x\1 n:2}", {"a": "x", "n": 2}, {FORM}),
    ("{a:\1x\1\n\1n\1:2}", {"a": "x", "n": 2}, {FORM}),
    ("{a:\1x\1 'n':2}", {"a": "x", "n": 2}, {FORM}),
    ("{o:{x:\1y\1 z:1}}", {"o": {"x": "y", "z": 1}}, {JSON}),
    ("{l:[\1x\1 \1y\1{z:1}[2]]}", {"l": ["x", "y", {"z": 1}, [2]]}, {JSON}),
    ("{o:{x::1}}", {"o": {"x": 1}}, {JSON}),
    ("{n::1}", {"n": 1}, {JSON}),
    ("{o:{'x':1,'it\\'s':2}}", {"o": {"x": 1, "it's": 2}}, {JSON}),
    ("{o:{/* one */x:\1y\1/* two */}}", {"o": {"x": "y"}}, {JSON}),
    ("{o:{x:\1y\1,// one\nz:1}}", {"o": {"x": "y", "z": 1}}, {JSON}),
    ('{a:"say "hi" now"}', {"a": 'say "hi" now'}, {JSON}),
    ('{o:{"x":"a\\d",}}', {"o": {"x": "a\\d"}}, {JSON}),
    # the quote, brackets, or both are missing where the call is closed
    ("{a:\1x}", {"a": "x"}, {VALUE}),
    ("{a:\1x", {"a": "x"}, {VALUE}),
    ("{o:{x:\1y}}", {"o": {"x": "y"}}, {VALUE}),
    ("{o:{x:\1y}", {"o": {"x": "y"}}, {VALUE}),
    ("{l:[\1x\1,\1y] } ", {"l": ["x", "y"]}, {VALUE}),
    ("{l:[\1x\1,\1f(y)]}", {"l": ["x", "f(y)"]}, {VALUE}),
    ('{a:"x}', {"a": "x"}, {VALUE}),
    ('{a:"x \\" y}', {"a": 'x " y'}, {VALUE}),
    ("{a:\1x\1", {"a": "x"}, {ENVELOPE}),
    ("{o:{x:1}", {"o": {"x": 1}}, {ENVELOPE}),
    ("{o:{x:1", {"o": {"x": 1}}, {ARGUMENTS, ENVELOPE}),
    ("{l:[1,2}", {"l": [1, 2]}, {JSON}),
    ("{o:{x:1]}", {"o": {"x": 1}}, {JSON}),
    ("{o:{x:[{y:1} ] ", {"o": {"x": [{"y": 1}]}}, {ARGUMENTS, ENVELOPE}),
    ("{o:{x:[1,{y:2}}}", {"o": {"x": [1, {"y": 2}]}}, {JSON}),
    ("{o:{x:[\1y\1", {"o": {"x": ["y"]}}, {ARGUMENTS, ENVELOPE}),
]


def text_of(name: str, arguments: str, function: str = "f") -> str:
    opening, quote, closing, _ = MARKERS[name]
    return f"{opening}call:{function}{arguments}".replace("\1", quote) + closing


def read(name: str, text: str) -> tuple[toolgram.Message, list[tuple[str, Any, str]]]:
    message = assert_same_however_split(toolgram.get_format(name), text, tools=TOOLS, finish_reason="stop")
    return message, [(call, json.loads(arguments), status) for call, arguments, status in calls_of(message)]


def kinds(message: toolgram.Message) -> set[str]:
    return {anomaly.kind for anomaly in message.anomalies}


def test_every_such_format_is_here() -> None:
    assert {*FORMATS} == {*MARKERS}


@pytest.mark.parametrize(("arguments", "meant", "noted"), ROWS)
@pytest.mark.parametrize("name", MARKERS)
def test_one_reading(name: str, arguments: str, meant: dict[str, Any], noted: set[str]) -> None:
    call = ("f", meant, "complete")
    message, calls = read(name, text_of(name, arguments))
    assert (calls, message.content, kinds(message)) == ([call], None, noted)
    message, calls = read(name, text_of(name, arguments) + MARKERS[name][3])
    assert (calls, message.content, kinds(message)) == ([call], None, noted)
    other = text_of(name, "{a:\1z\1}", "g")
    message, calls = read(name, f"One.{text_of(name, arguments)}\n{other}")
    assert (calls, kinds(message)) == ([call, ("g", {"a": "z"}, "complete")], noted)
    assert message.content == "One."


@pytest.mark.parametrize("name", MARKERS)
def test_a_strict_parser_repairs_nothing(name: str) -> None:
    for arguments, _, noted in ROWS:
        message = toolgram.get_format(name).parse(text_of(name, arguments), TOOLS, strict=True)
        assert "complete" not in [call.status for call in message.tool_calls] or not noted
        assert not noted & kinds(message)


@pytest.mark.parametrize("name", MARKERS)
def test_what_is_cut_off_is_not_complete(name: str) -> None:
    for arguments, _, _ in ROWS:
        text = text_of(name, arguments)
        whole = toolgram.get_format(name).parse(text, TOOLS).tool_calls[0]
        for at in range(len(text)):
            for call in toolgram.get_format(name).parse(text[:at], TOOLS, finish_reason="length").tool_calls:
                assert call.status == "truncated" or json.loads(call.arguments) == json.loads(whole.arguments)


@pytest.mark.parametrize("name", MARKERS)
def test_a_snapshot_keeps_all_of_it(name: str) -> None:
    fmt = toolgram.get_format(name)
    for arguments, _, _ in ROWS:
        text = text_of(name, arguments) + text_of(name, "{n:1}", "g")
        parser = fmt.parser(TOOLS, "", str)
        pieces, anomalies = [], []
        for character in text:
            pieces += [event.arguments for event in parser.feed(character) if event.type == "tool_call_delta"]
            anomalies += [anomaly.kind for anomaly in parser.take_anomalies()]
            parser = fmt.restore(json.loads(json.dumps(parser.snapshot())), TOOLS, str)
        message = fmt.parse(text, TOOLS)
        assert "".join(pieces) == "".join(call.arguments for call in message.tool_calls)
        assert anomalies == [anomaly.kind for anomaly in message.anomalies]
