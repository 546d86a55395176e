"""What a parser tells before the end of the output: names and values as soon as they are certain, in any deltas.

Strategy: a row has a text and what has been told when all of it has come: reasoning, content, and for each call its
name, its arguments so far, and whether it has ended. Most are bugs that parsers of inference servers once had.
"""

import re
from typing import Any

import pytest

import toolgram
from tests.streams import cut
from tests.tables import table
from toolgram.events import Content, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart

SIZES = (0, 1, 2, 3, 4, 5, 7)
V3 = '[TOOL_CALLS] [{"name": "f", "arguments": %s'
V11 = "[TOOL_CALLS]f[ARGS]%s"
LLAMA = '{"name": "f", "parameters": %s'


@pytest.mark.parametrize(("name", "text", "reasoning", "content", "calls"), table(__file__, "rows"))
def test_what_is_told_before_the_end(
    name: str, text: str, reasoning: str, content: str, calls: list[list[Any]]
) -> None:
    for size in SIZES:
        parser = toolgram.get_format(name).parser(prefix="")
        events = [event for delta in cut(text, size) for event in parser.feed(delta)]
        assert "".join(event.text for event in events if isinstance(event, Reasoning)) == reasoning
        assert "".join(event.text for event in events if isinstance(event, Content)) == content
        names = [event.name for event in events if isinstance(event, ToolCallStart)]
        deltas = [event for event in events if isinstance(event, ToolCallDelta)]
        ended = {event.index for event in events if isinstance(event, ToolCallEnd) and event.status == "complete"}
        assert calls == [
            [name, "".join(delta.arguments for delta in deltas if delta.index == at), at in ended]
            for at, name in enumerate(names)
        ], size


@pytest.mark.parametrize(
    ("name", "text", "shape"),
    [
        ("mistral_v3", V3 % '{}}, {"name": "g", "arguments": {}}]', r"[A-Za-z0-9]{9}"),
        ("mistral_v11", V11 % "{}" + V11 % "{}", r"[A-Za-z0-9]{9}"),
        ("llama3_json", LLAMA % "{}};" + LLAMA % "{}}", r"call_[A-Za-z0-9]{24}"),
        ("llama4_pythonic", "[f(a=1), g()]", r"call_[A-Za-z0-9]{24}"),
    ],
)
def test_ids_are_made_in_the_shape_of_the_family(name: str, text: str, shape: str) -> None:
    ids = [call.id for call in toolgram.get_format(name).parse(text).tool_calls]
    assert all(re.fullmatch(shape, each) for each in ids)
    assert len({*ids}) == 2
