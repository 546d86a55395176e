"""Calls as JSON objects in the tags of a block, where a format writes tags in them.

Strategy: each text however it is split; blocks of tags beside blocks of objects.
"""

from __future__ import annotations

import pytest

import toolgram
from tests.streams import CUT_SIZES, cut, run

OPEN, CLOSE = "<dots_function_call>", "</dots_function_call>"
F = '{"name": "f", "arguments": {"a": "</dots_function_call>"}}'
G = '{"name": "g", "parameters": {}}'
TAGGED = '<invoke name="f">\n<parameter name="a">1</parameter>\n</invoke>'
CALL_F, CALL_G = ("f", '{"a": "</dots_function_call>"}', "complete"), ("g", "{}", "complete")
CALL_TAGGED = ("f", '{"a": 1}', "complete")


@pytest.mark.parametrize(
    ("text", "calls", "kinds"),
    [
        (f"{OPEN}\n{F}\n{CLOSE}", [CALL_F], []),
        (f"{OPEN}{F}\n{G}{CLOSE}", [CALL_F, CALL_G], []),
        (f"{OPEN}{F}, {G}{CLOSE}", [CALL_F, CALL_G], ["repaired_json"]),
        (f"{OPEN}{G}{CLOSE}\n{OPEN}\n{TAGGED}\n{CLOSE}{OPEN}{F}{CLOSE}", [CALL_G, CALL_TAGGED, CALL_F], []),
        (f"{OPEN}{OPEN}{G}", [CALL_G], ["unclosed_envelope"]),
        (f"{OPEN}{G}{CLOSE[:9]}", [CALL_G], ["unfinished_marker"]),
        (f"{OPEN}{G}}}{CLOSE}", [CALL_G], ["surplus_closer"]),
        (f"{OPEN}{F[:-1]}{CLOSE}", [CALL_F], ["unclosed_envelope"]),
    ],
)
def test_objects_are_calls(text: str, calls: list[tuple[str, str, str]], kinds: list[str]) -> None:
    fmt = toolgram.get_format("dots")
    for size in CUT_SIZES:
        _, message = run(fmt, cut(f"<think>t</think>Hi\n{text}", size))
        assert [(each.name, each.arguments, each.status) for each in message.tool_calls] == calls
        assert (message.reasoning, message.content) == ("t", "Hi")
        counted = [each.kind for each in message.anomalies if each.kind != "unusual_form"]
        assert counted == kinds
        assert any(each.kind == "unusual_form" for each in message.anomalies)  # the family writes tags


def test_another_object_is_text() -> None:
    text = f'{OPEN}\n{{"a": 1}}\n{CLOSE}'
    for size in CUT_SIZES:
        _, message = run(toolgram.get_format("dots"), cut(text, size))
        assert (message.content, message.tool_calls) == (text, [])
