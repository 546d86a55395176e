r"""Outputs whose lines end in `\r\n`: they say what the same outputs say with `\n`, in shipped and derived formats.

Strategy: the line ends of a format's own examples are replaced, all of them and each by itself, however the text is
split. A line end inside a value is the model's: it stays as it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import toolgram
from tests.deviations.test_every_format import examples_of
from tests.properties.selection import quarter
from tests.properties.test_derived import NAMES as TEMPLATES
from tests.properties.test_derived import derived
from tests.streams import CUT_SIZES, cut, run
from toolgram.message import Message
from toolgram.spec.data import Literal

NAMES = toolgram.format_names()


def said(message: Message) -> object:
    r"""What an output says, its line ends as `\n`."""
    calls = [(call.name, plain(call.arguments), call.status) for call in message.tool_calls]
    return calls, plain(message.content), plain(message.reasoning), [each.kind for each in message.anomalies]


def plain(text: str | None) -> str | None:
    return text and text.replace("\r\n", "\n").replace("\\r\\n", "\\n")


def with_other_ends(text: str) -> Iterator[str]:
    """The text with all line ends replaced, and with each."""
    yield text.replace("\n", "\r\n")
    places = [at for at, character in enumerate(text) if character == "\n"]
    yield from (f"{text[:at]}\r{text[at:]}" for at in places if len(places) > 1)


def assert_says_the_same(fmt: toolgram.Format, prefix: str, text: str) -> None:
    expected = said(fmt.parse(text, prefix=prefix))
    for changed in with_other_ends(text):
        for size in CUT_SIZES:
            _, message = run(fmt, cut(changed, size), prefix=prefix)
            assert said(message) == expected, (changed, size)
            assert not any("\\r" in call.arguments for call in message.tool_calls), (changed, size)


@pytest.mark.parametrize("name", NAMES)
def test_shipped(name: str) -> None:
    fmt = toolgram.get_format(name)
    for prefix, text in examples_of(fmt):
        assert_says_the_same(fmt, prefix, text)


@pytest.mark.parametrize("name", quarter(TEMPLATES, "line ends"))
def test_derived(name: str) -> None:
    fmt, _ = derived(name)
    for prefix, text in examples_of(fmt):
        assert_says_the_same(fmt, prefix, text)


def line_ends(name: str) -> bool:
    """Whether a marker of a value has a line end in it."""
    spec = toolgram.get_format(name).spec
    rows = [row for row in spec.transitions if spec.states[row.source].meaning == "value"]
    shapes = [spec.terminals.get(row.trigger) for row in rows]
    return any(isinstance(shape, Literal) and "\n" in shape.text for shape in shapes)


LINED = {
    "qwen3_coder": "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>",
    "step5": "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>",
    "beam": ' to=f<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="a">\n{}\n</rfl:parameter><|end|>',
    "hermes": "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>",
    "kimi_vl": "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>",
    "deepseek_r1": "</think><tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>\n</tool_call>",
}


def test_every_format_whose_values_stand_on_lines_is_here() -> None:
    assert sorted(filter(line_ends, NAMES)) == sorted(LINED)


@pytest.mark.parametrize("value", ["", "x", "\r\nx\r\n", "x\r\ny", "\n\r\n", "\r", "x\r", "\rx", " \r\n", "a\n\nb"])
@pytest.mark.parametrize("name", LINED)
def test_one_line_end_on_each_side_belongs_to_the_markers(name: str, value: str) -> None:
    text = LINED[name].replace("\n", "\r\n").replace("{}", value)
    for size in CUT_SIZES:
        _, message = run(toolgram.get_format(name), cut(text, size))
        assert [(call.name, call.status) for call in message.tool_calls] == [("f", "complete")]
        assert json.loads(message.tool_calls[0].arguments) == {"a": value}
