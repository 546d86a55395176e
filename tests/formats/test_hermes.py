"""Hermes and Qwen: a JSON object in tags for each call, thinking in tags of its own.

Strategy: as in `test_llama3_json`, each text is asked whole and streamed however it is split.
"""

from __future__ import annotations

from functools import partial

import pytest

import toolgram
from tests.streams import assert_parses, assert_same_however_split, held_after
from toolgram.events import Reasoning, ToolCallDelta

parses = partial(assert_parses, "hermes")
F = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'


def fmt() -> toolgram.Format:
    return toolgram.get_format("hermes")


# ----------------------------------------------------------------------------------------------------------- reasoning


def test_reasoning_streams_at_once() -> None:
    parser = fmt().parser()
    told = [e.text for c in "<think>because of" for e in parser.feed(c) if isinstance(e, Reasoning)]
    assert "".join(told) == "because of"


# ------------------------------------------------------------------------------------------------ arguments, and wrecks


def test_arguments_stream() -> None:
    parser = fmt().parser()
    text = '<tool_call>\n{"name": "add", "arguments": {"a": "some lo'
    told = [e.arguments for c in text for e in parser.feed(c) if isinstance(e, ToolCallDelta)]
    assert "".join(told) == '{"a": "some lo'


def test_what_is_held() -> None:
    assert held_after("hermes", "Hi <tool") == " <tool"
    assert held_after("hermes", "Hi <tools") == ""
    assert held_after("hermes", 'Hi <tool_call>\n{"name": "get_w') == ' <tool_call>\n{"name": "get_w'
    assert held_after("hermes", "Hi <tool_call> the d") == ""
    assert held_after("hermes", '<tool_call>{"name": "f", "arguments": {"') == ""


def test_with_token_ids_only_the_emitted_token_is_a_marker() -> None:
    ids = {"<tool_call>": 7, "</tool_call>": 8, "<think>": 5, "</think>": 6}
    parser = fmt().parser(special_tokens=ids)
    for delta, tokens in (
        (F, [1, 2, 3]),
        (" so ", [1]),
        ("<tool_call>", [7]),
        (F[11:-12], [1, 2]),
        ("</tool_call>", [8]),
    ):
        parser.feed(delta, token_ids=tokens)
    parser.close()
    assert parser.message.content == f"{F} so"
    assert [(c.name, c.arguments) for c in parser.message.tool_calls] == [("f", '{"a": 1}')]


# ------------------------------------------------------------------------------------------------ known bugs of others


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_vllm_32152_closing_braces_in_one_chunk(size: int) -> None:
    """The last brace of an integer argument was lost with the closing tag."""
    text = '<tool_call>\n{"name": "get_item", "arguments": {"id": 42}\n}\n</tool_call>'
    parses(text, None, [("get_item", {"id": 42})])
    assert held_after("hermes", text, size=size) == ""


PYTHON_SPELLINGS = [
    ("{\"arguments\": {'amount': 5000, 'ok': True}, \"name\": 'convert'}", "convert", {"amount": 5000, "ok": True}),
    (
        "{\"name\": 'f', 'arguments': {\"a\": [True, None, 'x'], \"b\": 'it'}}",
        "f",
        {"a": [True, None, "x"], "b": "it"},
    ),
    ('{"name": "f", "arguments": {"a": [1, True], "b": {"c": False}}}', "f", {"a": [1, True], "b": {"c": False}}),
    ('{"name": "f", "arguments": {"a": "x", \'b\': 2}}', "f", {"a": "x", "b": 2}),
    ('{"name": "f", "arguments": {"a": None}}', "f", {"a": None}),
]


@pytest.mark.parametrize("written", [written for written, _, _ in PYTHON_SPELLINGS])
def test_a_prompt_may_stop_anywhere_in_it(written: str) -> None:
    """What the prompt has written is not emitted, wherever the transcoder stands."""
    fmt = toolgram.get_format("hermes")
    text = f"<tool_call>\n{written}\n</tool_call>"
    for at in range(len(text)):
        assert_same_however_split(fmt, text[at:], prefix=text[:at])
