"""Templates that print nested values as plain elements: what they render comes back, where tools say what is text."""

from __future__ import annotations

from typing import Any

import pytest

import toolgram
from tests.derive.test_shapes import ENDS, NAME, TURNS, calls_of, report_of
from tests.streams import check_events, cut, run
from toolgram.check import check_format
from toolgram.derive.rendering import ChatTemplate

MACRO = (
    "{% macro v(x) %}{% if x is string %}{{ x }}"
    "{% elif x is mapping %}{% for k, y in x.items() %}BETWEEN<{{ k }}>{{ v(y) }}</{{ k }}>{% endfor %}END"
    "{% elif x is sequence %}{% for y in x %}BETWEEN<item>{{ v(y) }}</item>{% endfor %}END"
    "{% else %}{{ x|tojson }}{% endif %}{% endmacro %}"
)
EACH = "{% for k, y in c.function.arguments.items() %}ARGUMENT{% endfor %}"
NAMED = EACH.replace("ARGUMENT", "<{{ k }}>{{ v(y) }}</{{ k }}>")
ALIKE = EACH.replace("ARGUMENT", '<with name="{{ k }}">{{ v(y) }}</with>')
CALLS = {
    "section": f"<use><name>{NAME}</name><with>{NAMED}</with></use>",
    "lines": f"<use>\n<name>{NAME}</name>\n{NAMED.replace('{% endfor', chr(10) + '{% endfor')}</use>\n",
    "attribute": f'<do name="{NAME}">{NAMED}</do>',
    "parameters": f'<do name="{NAME}">{ALIKE}</do>',
    "parameter lines": f'<do name="{NAME}">\n{ALIKE.replace("{% endfor", chr(10) + "{% endfor")}</do>\n',
    "pairs": f"<call>{NAME}{EACH.replace('ARGUMENT', '<k>{{ k }}</k><v>{{ v(y) }}</v>')}</call>",
}
TEXT = {"type": "string"}


def object_of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


PARAMETERS = object_of(
    tags={"type": "array", "items": TEXT},
    where=object_of(city=TEXT, at=object_of(x={"type": "integer"})),
    steps={"type": "array", "items": object_of(do=TEXT)},
    code=TEXT,
    n={"type": "integer"},
)
TOOL = {"type": "function", "function": {"name": "f.g", "parameters": PARAMETERS}}
VALUES: list[dict[str, Any]] = [
    {"tags": ["x", "y <b>"], "where": {"city": "Paris", "at": {"x": 1}}, "n": 3},
    {"code": "if a < b:\n  <p>x<br>y</i> <code>z</code>", "tags": [], "steps": [{"do": "a"}, {"do": "<item>b</item>"}]},
    {"steps": [], "where": {}, "code": ""},
]


@pytest.mark.parametrize("between", ["", "\n"])
@pytest.mark.parametrize("call", CALLS)
def test_plain_elements_inside_arguments(call: str, between: str) -> None:
    macro = MACRO.replace("BETWEEN", between and "{{ '\\n' }}").replace("END", between and "{{ '\\n' if x }}")
    source = macro + TURNS + CALLS[call] + ENDS
    fmt = toolgram.derive_format(source)
    assert {each.case for each in report_of(fmt).failed} <= {"nested arguments"}, str(report_of(fmt))
    assert not report_of(fmt).ok  # an empty list, an empty object and an empty text are written alike
    assert check_format(fmt, 4).ok
    template = ChatTemplate(source, "", "")
    for value in VALUES:
        calls = [{"id": "k3JwzQxTv", "type": "function", "function": {"name": "f.g", "arguments": value}}] * 2
        said = template.render([{"role": "assistant", "content": "Yes.", "tool_calls": calls}], tools=[TOOL])
        text = said.removeprefix("<|assistant|>").removesuffix("<|end|>")
        for size in (1, 3, len(text)):
            events, message = run(fmt, cut(text, size), tools=[TOOL])
            check_events(events, text)
            assert (message.content, calls_of(message)) == ("Yes.", [("f.g", value)] * 2), text


def test_a_text_that_closes_what_is_around_it_breaks_the_call() -> None:
    fmt = toolgram.derive_format(MACRO.replace("BETWEEN", "").replace("END", "") + TURNS + CALLS["section"] + ENDS)
    text = "<use><name>f.g</name><with><where><city>Paris</where></with></use>"
    for size in (1, 3, len(text)):
        events, message = run(fmt, cut(text, size), tools=[TOOL])
        check_events(events, text)
        assert not message.tool_calls
        assert [each.status for each in events if isinstance(each, toolgram.ToolCallEnd)] == ["malformed"]
