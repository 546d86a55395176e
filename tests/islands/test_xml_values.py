"""Values of XML: sections and entities, however the text is split, and what a broken section does."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.streams import check_events, cut, merged, run

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "f",
            "parameters": {
                "type": "object",
                "properties": {"q": {"type": "string"}, "l": {"type": "array"}, "n": {"type": "integer"}},
            },
        },
    }
]


def output(key: str, value: str) -> str:
    """A call with one argument."""
    return f'<function name="f"><param name="{key}">{value}</param></function>'


def read(text: str) -> list[tuple[str, str]]:
    """Arguments and statuses, whole and in pieces of every size."""
    fmt = toolgram.get_format("minicpm5")
    events, message = run(fmt, [text], tools=TOOLS)
    check_events(events, text)
    for size in (1, 2, 3, 5):
        assert merged(run(fmt, cut(text, size), tools=TOOLS)[0]) == merged(events)
    parser = fmt.parser(TOOLS, "", str)
    for piece in cut(text, 2):
        parser.feed(piece)
        parser = fmt.restore(json.loads(json.dumps(parser.snapshot())), TOOLS, str)
    parser.close()
    return [(call.arguments, call.status) for call in message.tool_calls]


@pytest.mark.parametrize("key", ["q", "l"])
def test_a_section_that_is_not_closed_makes_no_complete_call(key: str) -> None:
    assert not [status for _, status in read(output(key, "<![CDATA[['x']")) if status == "complete"]


@given(
    st.lists(
        st.sampled_from(["a", "&", "lt;", "&amp;", "<![CDATA[", "]]>", "]", "<", "</param>", '"', "\n"]), max_size=8
    )
)
def test_any_value_is_read_the_same_however_it_is_split(parts: list[str]) -> None:
    for arguments, status in read(output("q", "".join(parts))):
        if status == "complete":
            assert isinstance(json.loads(arguments)["q"], str)
