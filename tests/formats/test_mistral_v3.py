"""Mistral tokenizers v2 to v7: one marker and a JSON list of calls.

Strategy: as in `test_llama3_json`, each text is asked whole and streamed however it is split.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import pytest

import toolgram
from tests.json_prefix import complete
from tests.streams import assert_parses, cut, held_after
from toolgram.events import Content, ToolCallDelta, ToolCallEnd, ToolCallStart

parses = partial(assert_parses, "mistral_v3")
F = '{"name": "f", "arguments": {"a": 1}}'
G = '{"name": "g", "arguments": {}}'
CALL_F = ("f", {"a": 1})


def fmt() -> toolgram.Format:
    return toolgram.get_format("mistral_v3")


def streamed(chunks: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names and joined argument texts told before the end of the output."""
    parser = fmt().parser()
    names: list[str] = []
    arguments: list[str] = []
    for chunk in chunks:
        for event in parser.feed(chunk):
            if isinstance(event, ToolCallStart):
                names.append(event.name)
                arguments.append("")
            elif isinstance(event, ToolCallDelta):
                arguments[event.index] += event.arguments
    return names, arguments


def test_ids() -> None:
    message = fmt().parse(f"[TOOL_CALLS] [{F}, {G}]")
    ids = [call.id for call in message.tool_calls]
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", id) for id in ids)
    assert len(set(ids)) == 2
    before = parses('[TOOL_CALLS] [{"id": "bbc5b7ede", "name": "f", "arguments": {"a": 1}}]', None, [CALL_F])
    assert before.tool_calls[0].id == "bbc5b7ede"
    after = parses('[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}, "id": "bbc5b7ede"}]', None, [CALL_F])
    assert after.tool_calls[0].id != "bbc5b7ede"


def test_truncated_at_every_character() -> None:
    text = '[TOOL_CALLS] [{"name": "f", "arguments": {"city": "San Jos\\u00e9", "n": [1, -2]}}'
    named = text.index('"f"') + len('"f"')
    for at in range(1, len(text)):
        message = fmt().parse(text[:at], finish_reason="length")
        if at < named:
            assert (message.content, message.tool_calls) == (text[:at], []), text[:at]
        else:
            (call,) = message.tool_calls
            status = "truncated" if at < len(text) - 1 else "complete"  # only the brace of the envelope is missing
            assert (call.name, call.status, message.content) == ("f", status, None), text[:at]
            if call.arguments:
                complete(call.arguments)
            assert text[text.index('{"city') :].startswith(call.arguments)


def test_arguments_stream_while_they_are_written() -> None:
    text = '[TOOL_CALLS] [{"name": "f", "arguments": {"a": "some lo'
    assert streamed(cut(text, 1)) == (["f"], ['{"a": "some lo'])
    string = '[TOOL_CALLS] [{"name": "f", "arguments": "{\\"a\\": \\"some lo'
    assert streamed(cut(string, 1)) == (["f"], ['{"a": "some lo'])


def test_what_is_held() -> None:
    assert held_after("mistral_v3", "Hi [TOOL") == " [TOOL"
    assert held_after("mistral_v3", "Hi [TOOLS") == ""
    assert held_after("mistral_v3", "Hi [TOOL_CALLS] x ") == " "
    assert held_after("mistral_v3", '[TOOL_CALLS] [{"name": "f", "arguments": {"') == ""


# ------------------------------------------------------------------------------------------------ known bugs of others


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 7])
def test_vllm_13622_integer_arguments(size: int) -> None:
    """Integer arguments were dropped while streaming."""
    text = '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 3, "b": 4}}]'
    assert streamed(cut(text, size)) == (["add"], ['{"a": 3, "b": 4}'])


@pytest.mark.parametrize("value", ["3", "-3", "3.5", "true", "false", "null", "[1]", "{}", '"x"', "1e5", '""'])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_vllm_13622_any_type_of_argument(value: str, size: int) -> None:
    text = f'[TOOL_CALLS] [{{"name": "f", "arguments": {{"a": {value}}}}}]'
    assert streamed(cut(text, size)) == (["f"], [f'{{"a": {value}}}'])


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 7])
def test_vllm_17585_punctuation_and_final_deltas(size: int) -> None:
    """Missing punctuation, and the last delta sent twice."""
    arguments = '{"city": "Paris, \\"FR\\".", "days": [1, 2], "o": {"p": "q; r: s!"}}'
    text = f'[TOOL_CALLS] [{{"name": "w", "arguments": {arguments}}}]'
    assert streamed(cut(text, size)) == (["w"], [arguments])


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_second_call_in_the_same_delta_is_not_lost(size: int) -> None:
    parser = fmt().parser()
    events = [e for chunk in cut(f"[TOOL_CALLS] [{F}, {G}]", size) for e in parser.feed(chunk)]
    assert [e.name for e in events if isinstance(e, ToolCallStart)] == ["f", "g"]
    assert [e.status for e in events if isinstance(e, ToolCallEnd)] == ["complete", "complete"]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_empty_arguments_are_streamed(size: int) -> None:
    assert streamed(cut(f"[TOOL_CALLS] [{G}, {F}]", size)) == (["g", "f"], ["{}", '{"a": 1}'])


def test_the_last_brace_is_not_lost() -> None:
    assert streamed(['[TOOL_CALLS] [{"name": "f", "arguments": {"o": {"id": 42', "}}}]"]) == (
        ["f"],
        ['{"o": {"id": 42}}'],
    )


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_sglang_36692_the_second_element_does_not_leak_into_content(size: int) -> None:
    parser = fmt().parser()
    events = [e for chunk in cut(f"[TOOL_CALLS] [{G}, {G}]", size) for e in parser.feed(chunk)] + parser.close()
    assert [e for e in events if isinstance(e, Content)] == []
    assert len([e for e in events if isinstance(e, ToolCallStart)]) == 2
