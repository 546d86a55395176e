"""A marker that a model writes twice, where only a name, a key or another marker can follow: one is dropped.

Strategy: in the examples of every format, each marker behind which nothing but another token can stand is written
twice. The calls are those of the example, and nothing of the markup is content. A value and a text may hold a marker,
so there a second one is kept (`stray_marker`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import toolgram
from tests.deviations.examples import examples
from toolgram.spec.data import Literal, Spec

# In text they may open something else; a quote twice is an empty string; the tags of elements nest.
KEPT = {
    "beam": {"<|message|>"},
    "functiongemma": {"<escape>"},
    "gemma4": {'<|"|>'},
    "gpt_oss": {"<|message|>"},
    "granite_3": {"<response>", "</response>"},
    "ernie45": {"<response>"},
    "hunyuan_a13b": {"<answer>"},
    "minicpm5": {'<function name="'},
    "minimax_m3": {"]<]minimax[>[<", ']<]minimax[>[<invoke name="'},
    "muse": {"<|message|>"},
}


def markers(spec: Spec) -> Iterator[str]:
    """The markers in brackets of their own that lead to no value, and that are in no longer one."""
    texts = {name: shape.text for name, shape in spec.terminals.items() if isinstance(shape, Literal)}
    values = {each.trigger for each in spec.transitions if spec.states[each.dest].meaning == "value"}
    for name, text in texts.items():
        if name not in values and re.match(r"\s*[<\[].", text) and sum(text in each for each in texts.values()) == 1:
            yield text


@pytest.mark.parametrize("name", toolgram.format_names())
def test_a_marker_twice_is_one(name: str) -> None:
    fmt = toolgram.get_format(name)
    for prefix, text in examples(name):
        plain = fmt.parse(text, prefix=prefix)
        calls = [(call.name, call.arguments, call.status) for call in plain.tool_calls]
        for marker in markers(fmt.spec):
            if marker in KEPT.get(name, ()) or marker in (plain.content or ""):
                continue
            for found in re.finditer(re.escape(marker), text):
                doubled = text[: found.start()] + marker + text[found.start() :]
                message = fmt.parse(doubled, prefix=prefix)
                assert [(call.name, call.arguments, call.status) for call in message.tool_calls] == calls, doubled
                assert marker not in (message.content or ""), doubled
                assert "malformed" not in {each.kind for each in message.anomalies}, doubled


@pytest.mark.parametrize("count", [2, 3, 500])
def test_often_is_like_twice(count: int) -> None:
    message = toolgram.get_format("glm45").parse("<tool_call>" * count + "f</tool_call>")
    assert [call.name for call in message.tool_calls] == ["f"]
    assert [each.kind for each in message.anomalies] == ["unusual_form"] * (count - 1)
    assert message.content is None


def test_as_a_token_it_is_one_that_was_emitted() -> None:
    """Where ids are known, the same text in other tokens is no marker."""
    fmt = toolgram.get_format("glm45")
    for ids, calls in (((1, 1), ["f"]), ((1, 7), [])):
        parser = fmt.parser(special_tokens={"<tool_call>": 1, "</tool_call>": 2})
        for token in ids:
            parser.feed("<tool_call>", token_ids=[token])
        parser.feed("f", token_ids=[9])
        parser.feed("</tool_call>", token_ids=[2])
        parser.close()
        assert [call.name for call in parser.message.tool_calls] == calls
