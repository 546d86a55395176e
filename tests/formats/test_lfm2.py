"""LFM2: a Python list of calls between markers, thinking in tags.

Strategy: as in `test_llama4_pythonic`, whose list this is; what is new are the markers, without which a list is text.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import toolgram
from tests.streams import assert_parses, assert_same_however_split, held_after, statuses

parses = partial(assert_parses, "lfm2")
F = "<|tool_call_start|>[f(a=1)]<|tool_call_end|>"
G = "<|tool_call_start|>[g()]<|tool_call_end|>"
CALL_F = ("f", {"a": 1})
CALL_G: tuple[str, dict[str, Any]] = ("g", {})


def fmt() -> toolgram.Format:
    return toolgram.get_format("lfm2")


@pytest.mark.parametrize(
    "text",
    [
        F,
        "<|tool_call_start|>[f(a=1)]",
        "<|tool_call_start|> [ f( a = 1 ) ] <|tool_call_end|>\n",
        "<|tool_call_start|>[f(a=1),]<|tool_call_end|><|im_end|>",
        "<|tool_call_start|>\n[\n  f(a=1,)\n]\n<|tool_call_end|>",
        "<|tool_call_start|>[f({'a': 1})]<|tool_call_end|>",
        "<|tool_call_start|><|tool_call_start|>[f(a=1)]<|tool_call_end|>",
    ],
)
def test_spellings_of_one_call(text: str) -> None:
    parses(text, None, [CALL_F])


def test_several_calls() -> None:
    parses("<|tool_call_start|>[f(a=1), g(), f(a=1)]<|tool_call_end|>", None, [CALL_F, CALL_G, CALL_F])
    parses(f"{G}{F}", None, [CALL_G, CALL_F])
    parses(f"Sure. {F} and {G}\nDone.", "Sure. and Done.", [CALL_F, CALL_G])


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("'x'", "x"),
        ('"it\'s [x] )"', "it's [x] )"),
        ("-1.5", -1.5),
        ("True", True),
        ("false", False),
        ("None", None),
        ("null", None),
        ("[1, (2, 3), {'k': []}]", [1, [2, 3], {"k": []}]),
        ("'<|tool_call_end|>'", "<|tool_call_end|>"),
        ("'caf\\u00e9 \\n'", "café \n"),
    ],
)
def test_values(source: str, value: object) -> None:
    parses(f"<|tool_call_start|>[f(a={source})]<|tool_call_end|>", None, [("f", {"a": value})])


@pytest.mark.parametrize(
    "text",
    [
        "Hello.",
        "  Hello",
        "[f(a=1)]",
        "see items[0] and [1, 2]",
        "the <|tool_call_start|> marker",
        "<|tool_call_start|>",
        "<|tool_call_start|>[",
        "<|tool_call_start|>[]",
        "<|tool_call_start|>[f",
        "<|tool_call_start|>[f(x)]",
        "<|tool_call_start|>[1]",
        "<|tool_call_start|>f is text",
    ],
)
def test_what_is_no_call_stays_in_content(text: str) -> None:
    parses(text, text)
    parses(f"{text}. {F}", f"{text}.", [CALL_F])


def test_reasoning() -> None:
    parses("<think>Hm.</think>Yes.", "Yes.", reasoning="Hm.")
    parses(f"<think>\nHm [1].\n</think>\n\nYes. {F}", "Yes.", [CALL_F], reasoning="Hm [1].")
    parses("Hm.</think>Yes.", "Yes.", reasoning="Hm.", prefix="<|im_start|>assistant\n<think>")
    parses(f"<think>I need it. {F}", None, [CALL_F], reasoning="I need it.", finish_reason="stop")
    parses(f"<think>I need it. {F} ok", None, reasoning=f"I need it. {F} ok")
    parses("<think>the <|tool_call_start|> marker</think>Yes.", "Yes.", reasoning="the <|tool_call_start|> marker")


def test_a_call_without_arguments_is_one_if_no_expression_goes_on() -> None:
    parser = fmt().parser()
    parser.feed("<|tool_call_start|>[g()")
    assert not parser.message.tool_calls
    parser.feed(",")
    assert [(c.name, c.arguments, c.status) for c in parser.message.tool_calls] == [("g", "{}", "complete")]


def test_calls_that_break() -> None:
    message = assert_same_however_split(fmt(), f"<|tool_call_start|>[f(a=1), h(a=1, b='x' + 'y'), g()] bye {F}")
    assert statuses(message) == [
        ("f", "complete"),
        ("h", "malformed"),
        ("g", "complete"),
        ("f", "complete"),
    ]
    assert message.content is not None
    assert message.content.endswith("bye")
    message = assert_same_however_split(fmt(), "<|tool_call_start|>[f(a=1) so then")
    assert statuses(message) == [("f", "complete")]
    assert message.content == "so then"


def test_truncated() -> None:
    text = "<|tool_call_start|>[f(a='some text', b=[1, 2])]"
    for at in range(text.index("'") + 1, text.rindex(")")):
        message = assert_same_however_split(fmt(), text[:at])
        assert statuses(message) == [("f", "truncated")]
        assert message.content is None


def test_what_is_held() -> None:
    assert held_after("lfm2", "see [f(a=") == ""
    assert held_after("lfm2", "see <|tool") == " <|tool"
    assert held_after("lfm2", "<|tool_call_start|>[get_w") == "<|tool_call_start|>[get_w"
    assert held_after("lfm2", "<|tool_call_start|>[f(a='") == ""


def test_clean_output_has_no_anomalies() -> None:
    assert parses(f"<think>Hm.</think>Sure. {F}", "Sure.", [CALL_F], reasoning="Hm.").anomalies == []
