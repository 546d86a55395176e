"""Mistral tokenizers v11 and v13: a marker, a name and an object for each call; reasoning in [THINK].

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
from toolgram.events import Content, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart

parses = partial(assert_parses, "mistral_v11")
F = '[TOOL_CALLS]f[ARGS]{"a": 1}'
G = "[TOOL_CALLS]g[ARGS]{}"
CALL_F = ("f", {"a": 1})


def fmt() -> toolgram.Format:
    return toolgram.get_format("mistral_v11")


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


# ----------------------------------------------------------------------------------------------------------- reasoning


def test_reasoning_streams_at_once() -> None:
    parser = fmt().parser()
    told = [e.text for c in "[THINK]because of" for e in parser.feed(c) if isinstance(e, Reasoning)]
    assert "".join(told) == "because of"


# ----------------------------------------------------------------------------------------------------------- arguments


def test_ids() -> None:
    message = fmt().parse(F + G)
    ids = [call.id for call in message.tool_calls]
    assert all(re.fullmatch(r"[A-Za-z0-9]{9}", id) for id in ids)
    assert len(set(ids)) == 2
    given = parses('[TOOL_CALLS]f[CALL_ID]abc123def[ARGS]{"a": 1}', None, [CALL_F])
    assert given.tool_calls[0].id == "abc123def"


@pytest.mark.parametrize("finish_reason", [None, "length", "stop"])
def test_truncated_at_every_character(finish_reason: str | None) -> None:
    text = '[TOOL_CALLS]f[ARGS]{"city": "San Jos\\u00e9", "n": [1, -2]}'
    for at in range(len("[TOOL_CALLS]f["), len(text)):
        message = fmt().parse(text[:at], finish_reason=finish_reason)
        (call,) = message.tool_calls
        assert (call.name, call.status, message.content) == ("f", "truncated", None), text[:at]
        if call.arguments:
            complete(call.arguments)
        assert text[text.index('{"city') :].startswith(call.arguments)


def test_what_is_held() -> None:
    assert held_after("mistral_v11", "Hi [TOOL") == " [TOOL"
    assert held_after("mistral_v11", "Hi [TOOLS") == ""
    assert held_after("mistral_v11", "Hi [TOOL_CALLS]get_w") == " [TOOL_CALLS]get_w"
    assert held_after("mistral_v11", "Hi [TOOL_CALLS] the d") == ""
    assert held_after("mistral_v11", '[TOOL_CALLS]f[ARGS]{"') == ""


IDS = {"[TOOL_CALLS]": 9, "[ARGS]": 32, "[THINK]": 34, "[/THINK]": 35}


def test_with_token_ids_only_the_emitted_token_is_a_marker() -> None:
    parser = fmt().parser(special_tokens=IDS)
    for delta, ids in (
        ("I write ", [1001]),
        ("[TOOL_CALLS]", [1091, 1002, 1093]),
        ('f[ARGS]{"a": 1} so: ', [1003, 1004, 1005]),
        ("[TOOL_CALLS]", [9]),
        ("f", [1003]),
        ("[ARGS]", [32]),
        ('{"a": "[TOOL_CALLS]"}', [1006, 1091, 1002, 1093]),
    ):
        parser.feed(delta, token_ids=ids)
    parser.close()
    assert parser.message.content == 'I write [TOOL_CALLS]f[ARGS]{"a": 1} so:'
    assert [(c.name, c.arguments) for c in parser.message.tool_calls] == [("f", '{"a": "[TOOL_CALLS]"}')]


def test_without_token_ids_the_text_decides() -> None:
    parser = fmt().parser(special_tokens=IDS)
    parser.feed(F)
    parser.close()
    assert [c.name for c in parser.message.tool_calls] == ["f"]


# ------------------------------------------------------------------------------------------------ known bugs of others


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 7])
def test_vllm_13622_integer_arguments(size: int) -> None:
    """Integer arguments were dropped while streaming."""
    assert streamed(cut('[TOOL_CALLS]add[ARGS]{"a": 3, "b": 4}', size)) == (["add"], ['{"a": 3, "b": 4}'])


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 7])
def test_vllm_17585_punctuation_and_final_deltas(size: int) -> None:
    """Missing punctuation, and the last delta sent twice."""
    arguments = '{"city": "Paris, \\"FR\\".", "days": [1, 2], "o": {"p": "q; r: s!"}}'
    assert streamed(cut(f"[TOOL_CALLS]w[ARGS]{arguments}", size)) == (["w"], [arguments])


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 7])
def test_vllm_20028_mistral_small_3_2(size: int) -> None:
    """JSONDecodeError where the arguments follow the name with nothing in between."""
    text = '[TOOL_CALLS]get_current_weather{"city": "San Francisco", "state": "CA"}'
    assert streamed(cut(text, size)) == (["get_current_weather"], ['{"city": "San Francisco", "state": "CA"}'])


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_second_call_in_the_same_delta_is_not_lost(size: int) -> None:
    parser = fmt().parser()
    events = [e for chunk in cut(F + G, size) for e in parser.feed(chunk)]
    assert [e.name for e in events if isinstance(e, ToolCallStart)] == ["f", "g"]
    events += parser.close()  # the end of a call is sent last
    assert [e.status for e in events if isinstance(e, ToolCallEnd)] == ["complete", "complete"]


@pytest.mark.parametrize("size", [0, 1, 2, 3, 5])
def test_empty_arguments_are_streamed(size: int) -> None:
    assert streamed(cut(G + F, size)) == (["g", "f"], ["{}", '{"a": 1}'])


def test_the_last_brace_is_not_lost() -> None:
    assert streamed(['[TOOL_CALLS]f[ARGS]{"o": {"id": 42', "}}"]) == (["f"], ['{"o": {"id": 42}}'])


def test_vllm_40531_text_and_call_in_one_delta() -> None:
    parser = fmt().parser()
    events = parser.feed(f"Sure.\n{F}")
    assert "".join(e.text for e in events if isinstance(e, Content)) == "Sure."
    assert [e.name for e in events if isinstance(e, ToolCallStart)] == ["f"]


@pytest.mark.parametrize("at", range(len('[TOOL_CALLS]get_weather[ARGS]{"a": 1}')))
def test_a_prefix_may_end_anywhere_in_a_call(at: int) -> None:
    text = '[TOOL_CALLS]get_weather[ARGS]{"a": 1}'
    for size in (1, 3, 99):
        parser = toolgram.get_format("mistral_v11").parser(prefix=text[:at])
        events = []
        for begin in range(at, len(text), size):
            events += parser.feed(text[begin : begin + size])
        events += parser.close()
        assert "".join(event.source for event in events) == text[at:]
        (call,) = parser.message.tool_calls
        assert (call.name, call.arguments, call.status) == ("get_weather", '{"a": 1}', "complete")
        assert parser.message.content is None


def test_a_prefix_may_end_in_what_is_no_marker() -> None:
    parser = toolgram.get_format("mistral_v11").parser(prefix="see [TOOL")
    assert "".join(event.source for event in parser.feed("BOX] x") + parser.close()) == "BOX] x"
    assert parser.message.content == "BOX] x"
