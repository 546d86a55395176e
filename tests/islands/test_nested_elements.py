"""Values with elements inside: how deep they are, and what of them is sent at once."""

from __future__ import annotations

import toolgram
from tests.tables import table

MARK = "]<]minimax[>["
SCHEMA = table(__file__, "schema")
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]


def output(elements: str) -> str:
    """A call with these arguments, each tag with its mark."""
    block = f'<tool_call>\n<invoke name="f">{elements}</invoke>\n</tool_call>'
    return block.replace("<", f"{MARK}<")


def test_elements_are_nested_no_deeper_than_a_limit() -> None:
    deep = "<n>" * 127 + "1" + "</n>" * 127
    fmt = toolgram.get_format("minimax_m3")
    assert [call.status for call in fmt.parse(output(f"<free>{deep}</free>"), TOOLS).tool_calls] == ["complete"]
    message = fmt.parse(output(f"<free><n>{deep}</n></free>"), TOOLS)
    assert [call.name for call in message.malformed] == ["f"]


def test_what_is_declared_is_sent_before_the_value_is_over() -> None:
    parser = toolgram.get_format("minimax_m3").parser(TOOLS)
    text = output("<rows><item><n>1</n></item><item><n>2").split("</invoke>")[0].removesuffix(MARK)
    events = parser.feed(text)
    written = "".join(event.arguments for event in events if event.type == "tool_call_delta")
    assert written == '{"rows": [{"n": 1}, {"n": '
