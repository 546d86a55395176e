"""Granite 3: one marker and a JSON list of calls; thinking and the response after it in tags.

Strategy: as in `test_mistral_v3`, whose list this is; what is new are the tags, and where they are text.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import toolgram
from tests.streams import assert_parses, assert_same_however_split, held_after, statuses

parses = partial(assert_parses, "granite_3")
F = '{"name": "f", "arguments": {"a": 1}}'
G = '{"name": "g", "arguments": {}}'
CALL_F = ("f", {"a": 1})
CALL_G: tuple[str, dict[str, Any]] = ("g", {})


def fmt() -> toolgram.Format:
    return toolgram.get_format("granite_3")


@pytest.mark.parametrize(
    "text",
    [
        f"<|tool_call|>[{F}]",
        f"<|tool_call|> [ {F} ]",
        f"<|tool_call|>\n[\n{F}\n]\n",
        f"<|tool_call|>{F}",
        f"<tool_call>[{F}]",
        f"<|tool_call|><|tool_call|>[{F}]",
        f"\n<|tool_call|>[{F}]<|end_of_text|>",
        '<|tool_call|>[{"arguments": {"a": 1}, "name": "f"}]',
        '<|tool_call|>[{"name": "f", "arguments": "{\\"a\\": 1}"}]',
        "<|tool_call|>[{'name': 'f', 'arguments': {'a': 1}}]",
    ],
)
def test_spellings_of_one_call(text: str) -> None:
    parses(text, None, [CALL_F])


def test_several_calls() -> None:
    parses(f"<|tool_call|>[{F}, {G}]", None, [CALL_F, CALL_G])
    parses(f"<|tool_call|>[{F},{G},{F}]", None, [CALL_F, CALL_G, CALL_F])
    parses(f"<|tool_call|>[{F} {G}]", None, [CALL_F, CALL_G])
    parses(f"<|tool_call|>[{F}]<|tool_call|>[{G}]", None, [CALL_F, CALL_G])
    parses("<|tool_call|>[]", None)


def test_null_arguments_are_empty() -> None:
    parses('<|tool_call|>[{"name": "g", "arguments": null}]', None, [CALL_G])


@pytest.mark.parametrize("before", ["", "Sure.", "Sure.\n"])
@pytest.mark.parametrize("after", ["", " Done.", "\n[x] <|tool"])
def test_text_around_the_list(before: str, after: str) -> None:
    parts = [before.rstrip(), after.lstrip()]
    parses(f"{before}<|tool_call|>[{F}]{after}", " ".join(p for p in parts if p) or None, [CALL_F])


@pytest.mark.parametrize(
    "text",
    [
        "Hello.",
        "  Hello \n",
        "The <|tool_call|> marker",
        "<|tool_call|>",
        '<|tool_call|>[{"x": 1}]',
        "<|tool_call|>[1, 2]",
        f"[{F}]",
        F,
        "an <response>x</response> element",
        "The smaller one is a <",
    ],
)
def test_what_is_no_call_stays_in_content(text: str) -> None:
    parses(text, text)


def test_thinking_and_response() -> None:
    parses("<think>Hm.</think><response>Yes.</response>", "Yes.", reasoning="Hm.")
    parses("<think>\nHm.\n</think>\n\n<response>\nYes.\n</response>\n", "Yes.", reasoning="Hm.")
    parses("<think>Hm.</think>Yes.", "Yes.", reasoning="Hm.")
    parses("<think>Hm.</think>\n\nYes \n", "Yes \n", reasoning="Hm.")
    parses("<think>Hm.</think><response>Yes, bu", "Yes, bu", reasoning="Hm.")
    parses("<think>Hm.</think> <respon", "<respon", reasoning="Hm.")
    parses("<think>Hm.</think><response></response>", None, reasoning="Hm.")
    parses(
        "<think>Hm.</think><response>a <response> b</response> c </response>",
        "a <response> b c </response>",
        reasoning="Hm.",
    )
    parses("Hm.</think><response>Yes.</response>", "Yes.", reasoning="Hm.", prefix="<|end_of_role|><think>")
    parses("Yes.</response>", "Yes.", prefix="<think>Hm.</think><response>")


def test_thinking_and_calls() -> None:
    parses(f"<think>Hm.</think><|tool_call|>[{F}]", None, [CALL_F], reasoning="Hm.")
    parses(f"<think>Hm.</think> <|tool_call|>[{F}]", None, [CALL_F], reasoning="Hm.")
    parses(f"<think>Hm.</think><response>Yes.</response><|tool_call|>[{F}]", "Yes.", [CALL_F], reasoning="Hm.")
    parses(f"<think>Hm.</think><response>Yes. <|tool_call|>[{F}] x", "Yes. x", [CALL_F], reasoning="Hm.")
    parses(f"<think>Hm. <|tool_call|>[{F}]", None, [CALL_F], reasoning="Hm.", finish_reason="stop")
    parses(f"<think>Hm. <|tool_call|>[{F}] x", None, reasoning=f"Hm. <|tool_call|>[{F}] x")
    parses("<think>the <|tool_call|> marker</think>Yes.", "Yes.", reasoning="the <|tool_call|> marker")


def test_broken_and_truncated_calls() -> None:
    message = assert_same_however_split(
        fmt(), f'<|tool_call|>[{F}, {{"name": "h", "arguments": {{"a": tru}}}}, {G}] bye'
    )
    assert statuses(message) == [
        ("f", "complete"),
        ("h", "malformed"),
        ("g", "complete"),
    ]
    assert (message.content or "").endswith("bye")
    message = assert_same_however_split(fmt(), f"<|tool_call|>[{F}, {F[:-3]}")
    assert statuses(message) == [("f", "complete"), ("f", "truncated")]
    assert message.content is None


def test_markers_in_arguments_are_data() -> None:
    value = "]}<|tool_call|>[{</response><|end_of_text|>"
    parses(f'<|tool_call|>[{{"name": "f", "arguments": {{"a": "{value}"}}}}]', None, [("f", {"a": value})])


def test_what_is_held() -> None:
    assert held_after("granite_3", "Hi <|tool") == " <|tool"
    assert held_after("granite_3", "Hi <response>") == ""
    assert held_after("granite_3", "<think>a</think> <resp") == " <resp"
    assert held_after("granite_3", '<|tool_call|>[{"name": "f", "arguments": {"') == ""


def test_clean_output_has_no_anomalies() -> None:
    text = f"<think>Hm.</think><response>Yes.</response><|tool_call|>[{F}, {G}]"
    assert parses(text, "Yes.", [CALL_F, CALL_G], reasoning="Hm.").anomalies == []
