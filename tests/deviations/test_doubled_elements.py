"""Elements that are opened or written twice, in a format whose arguments are elements: nothing of that is quiet."""

from __future__ import annotations

import pytest

import toolgram
from tests.streams import assert_same_however_split

MARK = "]<]minimax[>["
NESTED = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {
                    "a": {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}},
                    "s": {"type": "string"},
                    "l": {"type": "array", "items": {"type": "integer"}},
                },
            },
        },
    }
]
DOUBLED = [  # elements, "~" for the mark; the arguments, and what is told of them
    ("~<a>~<x>1~</x>~<x>2~</x>~</a>", '{"a": {"x": 1, "x": 2}}', "repeated_argument"),
    ("~<s>1~</s>~<s>2~</s>", '{"s": "1", "s": "2"}', "repeated_argument"),
    ("~<a>~<x>~<x>1~</x>~</x>~</a>", '{"a": {"x": {"x": 1}}}', "unexpected_type"),
    ("~<s>~<s>q~</s>~</s>", '{"s": "~<s>q~</s>"}', "unexpected_type"),
    ("~<a>~<y>~<y>q~</y>~</y>~</a>", '{"a": {"y": "~<y>q~</y>"}}', "unexpected_type"),
    ("~<a>~<x>~<x>1~</x>~</a>", None, "malformed"),
    ("~<a>~<x>1~</x>~</x>~</a>", None, "malformed"),
    ("~<s>~<s>q~</s>", None, "malformed"),
    ("~<l>~<item>~<item>1~</item>~</l>", None, "malformed"),
    ("~<a>~<a>~<x>1~</x>~</a>", None, "malformed"),
]


@pytest.mark.parametrize(("written", "arguments", "kind"), DOUBLED)
def test_an_element_that_is_opened_or_written_twice(written: str, arguments: str | None, kind: str) -> None:
    """It is told, or the call is none."""
    body = written.replace("~", MARK)
    text = f'{MARK}<tool_call>\n{MARK}<invoke name="f">{body}{MARK}</invoke>\n{MARK}</tool_call>'
    message = assert_same_however_split(toolgram.get_format("minimax_m3"), text, tools=NESTED)
    wanted = [] if arguments is None else [arguments.replace("~", MARK)]
    assert [call.arguments for call in message.tool_calls] == wanted
    assert [each.kind for each in message.anomalies] == [kind]
