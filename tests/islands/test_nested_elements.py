"""Values with elements inside: what the schema of each place says decides, however the text is split."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.streams import check_events, cut, merged, run

MARK = "]<]minimax[>["
SCHEMA = {
    "type": "object",
    "$defs": {"tree": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/tree"}}}},
    "properties": {
        "note": {"type": "string"},
        "days": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "point": {"type": "object", "properties": {"x": {"type": "number"}, "name": {"type": "string"}}},
        "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        "free": {"type": "object"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "either": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
        "tree": {"$ref": "#/$defs/tree"},
    },
}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}]


def output(elements: str) -> str:
    """A call with these arguments, each tag with its mark."""
    block = f'<tool_call>\n<invoke name="f">{elements}</invoke>\n</tool_call>'
    return block.replace("<", f"{MARK}<")


def arguments(elements: str, tools: list[Any] | None = TOOLS) -> Any:
    """What is read, whole and in pieces of every size, with a snapshot between any two pieces."""
    fmt, text = toolgram.get_format("minimax_m3"), output(elements)
    events, message = run(fmt, [text], tools=tools)
    check_events(events, text)
    for size in (1, 2, 7):
        assert merged(run(fmt, cut(text, size), tools=tools)[0]) == merged(events)
    parser = fmt.parser(tools, "", str)
    pieces: list[str] = []
    for piece in cut(text, 3):
        pieces += [event.arguments for event in parser.feed(piece) if event.type == "tool_call_delta"]
        parser = fmt.restore(json.loads(json.dumps(parser.snapshot())), tools, str)
    (call,) = message.tool_calls
    assert call.status == "complete"
    assert "".join(pieces) == call.arguments
    return json.loads(call.arguments)


@pytest.mark.parametrize(
    ("elements", "meant"),
    [
        ("<note>a [1] & {x}] </note>", {"note": "a [1] & {x}] "}),
        ("<note>a<b>c</b>]</note>", {"note": f"a{MARK}<b>c{MARK}</b>]"}),
        ("<days>3</days>", {"days": 3}),
        ("<days>three</days>", {"days": "three"}),
        ("<tags><item>1</item><x>b</x></tags>", {"tags": ["1", "b"]}),
        ("<tags>\n <item>a</item>\n</tags>\n", {"tags": ["a"]}),
        ('<tags>["a", "b"]</tags>', {"tags": ["a", "b"]}),
        (
            "<tags></tags><point></point><note></note><either></either>",
            {"tags": [], "point": {}, "note": "", "either": ""},
        ),
        ("<point><x>1.50</x><name>3</name></point>", {"point": {"x": 1.5, "name": "3"}}),
        ("<point><name>a</name><new><b>1</b></new></point>", {"point": {"name": "a", "new": {"b": 1}}}),
        ("<rows><item><n>1</n></item><item><n>2</n></item></rows>", {"rows": [{"n": 1}, {"n": 2}]}),
        ("<free><t>x</t><u>1</u><t>y</t></free>", {"free": {"t": ["x", "y"], "u": 1}}),
        ("<free>one <t>x</t> two</free>", {"free": {"t": "x", "$text": "one  two"}}),
        ("<free><note>v</note></free>", {"free": {"note": "v"}}),
        ("<map><k>1</k><l></l></map>", {"map": {"k": "1", "l": ""}}),
        ("<either>a</either>", {"either": "a"}),
        ("<either><item>1</item><item>2</item></either>", {"either": [1, 2]}),
        ("<tree><v>1</v><next><v>2</v></next></tree>", {"tree": {"v": 1, "next": {"v": 2}}}),
        ("<tool_call>v</tool_call>", {"tool_call": "v"}),
        ("<invoke>v</invoke>", {"invoke": "v"}),
    ],
)
def test_a_schema_types_every_place(elements: str, meant: Any) -> None:
    assert arguments(elements) == meant


@pytest.mark.parametrize(
    ("elements", "meant"),
    [
        ("<n>1</n><s>x y</s>", {"n": 1, "s": "x y"}),
        ("<l><item>a</item><item>2</item></l>", {"l": ["a", 2]}),
        ("<l><item>a</item></l>", {"l": ["a"]}),
        ("<o><item>a</item><b>2</b></o>", {"o": {"item": "a", "b": 2}}),
        ("<o><a><b><c>1</c><c>2</c></b></a></o>", {"o": {"a": {"b": {"c": [1, 2]}}}}),
        ("<o></o>", {"o": ""}),
        ('<o>{"a": true}</o>', {"o": {"a": True}}),
        ("<o>{'a': True}</o>", {"o": "{'a': True}"}),
    ],
)
def test_where_nothing_is_declared_the_elements_say_what_they_are(elements: str, meant: Any) -> None:
    assert arguments(elements, None) == meant


def test_elements_are_nested_no_deeper_than_a_limit() -> None:
    deep = "<n>" * 127 + "1" + "</n>" * 127
    assert arguments(f"<free>{deep}</free>")["free"]
    message = toolgram.get_format("minimax_m3").parse(output(f"<free><n>{deep}</n></free>"), TOOLS)
    assert [call.name for call in message.malformed] == ["f"]


def test_what_is_declared_is_sent_before_the_value_is_over() -> None:
    parser = toolgram.get_format("minimax_m3").parser(TOOLS)
    text = output("<rows><item><n>1</n></item><item><n>2").split("</invoke>")[0].removesuffix(MARK)
    events = parser.feed(text)
    written = "".join(event.arguments for event in events if event.type == "tool_call_delta")
    assert written == '{"rows": [{"n": 1}, {"n": '


NAMES = st.sampled_from(["item", "a", "b", "note"])
TREES = st.recursive(
    st.text(st.sampled_from('ab1 {["\n]<'), max_size=6),
    lambda inner: st.lists(st.tuples(NAMES, inner), min_size=1, max_size=3),
)


def written(tree: Any) -> str:
    """A tree as elements: its leaves are text."""
    return (
        tree
        if isinstance(tree, str)
        else "".join(f"{MARK}<{name}>{written(each)}{MARK}</{name}>" for name, each in tree)
    )


@given(
    st.lists(st.tuples(st.sampled_from(["note", "free", "tags", "rows", "other"]), TREES), max_size=3), st.booleans()
)
def test_any_tree_of_elements_is_json_however_it_is_split(trees: list[Any], declared: bool) -> None:
    fmt, tools = toolgram.get_format("minimax_m3"), TOOLS if declared else None
    text = output("").replace(f"{MARK}</invoke>", f"{written(trees)}{MARK}</invoke>")
    events, message = run(fmt, [text], tools=tools)
    check_events(events, text)
    for size in (1, 4):
        assert merged(run(fmt, cut(text, size), tools=tools)[0]) == merged(events)
    for call in message.tool_calls:
        assert isinstance(json.loads(call.arguments), dict)
