"""Llama 3 JSON: bare JSON calls in free text. Each requirement FR-001 to FR-013 by name, then the hostile cases.

Strategy: `parses` says once what a text means, and asks for it whole and streamed however it is split (FR-005 is so
exceeded by each test in the file).
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import pytest

import toolgram
from tests.json_prefix import complete
from tests.streams import assert_parses, assert_same_however_split, held_after, statuses
from toolgram.events import ToolCallDelta, ToolCallEnd, ToolCallStart

parses = partial(assert_parses, "llama3_json")
F = '{"name": "f", "parameters": {"a": 1}}'
G = '{"name": "g", "parameters": {}}'
CALL_F = ("f", {"a": 1})
CALL_G: tuple[str, dict[str, Any]] = ("g", {})


def fmt() -> toolgram.Format:
    return toolgram.get_format("llama3_json")


# ---------------------------------------------------------------------------------------------------- the requirements


@pytest.mark.parametrize("size", range(1, 30))
def test_fr_005_streaming_gives_the_same_result(size: int) -> None:
    text = f'Say "hi": {{x}} {F}; {G} and\n{F}<|eom_id|>'
    parser = fmt().parser()
    for at in range(0, len(text), size):
        parser.feed(text[at : at + size])
    parser.close()
    message = parser.message
    assert message.content == 'Say "hi": {x} and'
    assert [(c.name, c.arguments) for c in message.tool_calls] == [("f", '{"a": 1}'), ("g", "{}"), ("f", '{"a": 1}')]


@pytest.mark.parametrize("text", ["", " ", "\n", " \t\r\n ", "\n" * 500])
def test_fr_010_whitespace_only_is_none(text: str) -> None:
    parses(text, None)
    parses(f"{text}{F}{text}", None, [CALL_F])
    parses(f"{text}{F}{text}{G}{text}", None, [CALL_F, CALL_G])
    parses(f"{text}<|eot_id|>", None)


# --------------------------------------------------------------------------------------------------- prose stays prose


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("I used {", " {"),
        ("I used {s", ""),
        ('{"a": 1', ""),
        ('{"a": 1} is', ""),
        ('{"name": "Bingo", "age', ""),
        ('{"name": 3', ""),
        ("{'", ""),
        ("<|pyt", "<|pyt"),
        ("<|pyz", ""),
    ],
)
def test_held_text_is_released_at_the_first_character_that_rejects_it(text: str, held: str) -> None:
    assert held_after("llama3_json", text) == held


# ----------------------------------------------------------------------------------------------------------- arguments


def test_string_arguments_are_decoded_and_streamed_as_the_inner_object() -> None:
    inner = '{"x": 1, "y": "a\\"b\\\\\\n\\u00e9"}'
    message = parses(f'{{"name": "f", "parameters": {json.dumps(inner)}}}', None, [("f", json.loads(inner))])
    assert message.tool_calls[0].arguments == inner
    parser = fmt().parser()
    told = "".join(
        e.arguments
        for e in parser.feed('{"name": "f", "parameters": "{\\"x\\": \\"some lo')
        if isinstance(e, ToolCallDelta)
    )
    assert complete(told) == {"x": "some lo"}


def test_arguments_before_the_name_come_after_it() -> None:
    parser = fmt().parser()
    before = [e for c in '{"parameters": {"name": "inner"}, "name": "ou' for e in parser.feed(c)]
    assert before == []
    events = [e for c in 'ter"}' for e in parser.feed(c)] + parser.close()
    kinds = [type(e) for e in events if isinstance(e, (ToolCallStart, ToolCallDelta, ToolCallEnd))]
    assert kinds[0] is ToolCallStart
    assert kinds[-1] is ToolCallEnd
    assert (parser.message.tool_calls[0].name, parser.message.tool_calls[0].arguments) == (
        "outer",
        '{"name": "inner"}',
    )


# ------------------------------------------------------------------------------------------------ broken and truncated


def test_a_call_that_breaks_after_it_was_told_is_malformed() -> None:
    text = f'{{"name": "f", "parameters": {{"a": tru}}}} then {G}'
    message = assert_same_however_split(fmt(), text)
    (first,) = message.malformed
    assert statuses(message) == [("f", "malformed"), ("g", "complete")]
    assert '{"a": true}'.startswith(first.arguments)
    assert message.content is not None
    assert message.content.endswith("then")
    assert message.anomalies
    assert message.finish_reason == "tool_calls"


@pytest.mark.parametrize("finish_reason", [None, "length", "stop"])
def test_truncated_at_every_character(finish_reason: str | None) -> None:
    text = '{"name": "f", "parameters": {"city": "San Jos\\u00e9", "n": [-1.5e3, true], "o": {}}}'
    committed = text.index('"city"') + 1
    for at in range(1, len(text)):
        message = fmt().parse(text[:at], finish_reason=finish_reason)
        if at < committed:
            assert (message.content, message.tool_calls) == (text[:at], []), text[:at]
        else:
            (call,) = message.tool_calls
            status = "complete" if at == len(text) - 1 else "truncated"  # only the brace of the envelope is missing
            assert (call.name, call.status, message.content) == ("f", status, None), text[:at]
            complete(call.arguments)
            assert text[text.index('{"city') :].startswith(call.arguments)


def test_truncated_in_a_string() -> None:
    message = assert_same_however_split(fmt(), '{"name": "get_weather", "parameters": {"location": "Boston')
    (call,) = message.tool_calls
    assert (call.status, call.arguments) == ("truncated", '{"location": "Boston')
    assert message.finish_reason == "length"


# ---------------------------------------------------------------------------------------------------- ids, tools, bugs


def test_ids_are_call_and_24_characters() -> None:
    message = fmt().parse(f"{F}; {G}")
    ids = [call.id for call in message.tool_calls]
    assert all(re.fullmatch(r"call_[A-Za-z0-9]{24}", id) for id in ids)
    assert len(set(ids)) == 2


def test_finish_reasons() -> None:
    assert fmt().parse("Hello").finish_reason == "stop"
    assert fmt().parse(F).finish_reason == "tool_calls"
    assert fmt().parse(F[:-3]).finish_reason == "length"
    assert fmt().parse(F, finish_reason="stop").finish_reason == "stop"
    assert fmt().parse(F[:-3], finish_reason="content_filter").finish_reason == "content_filter"


def test_vllm_51577_more_than_one_token_per_delta() -> None:
    text = '{"name": "get_weather", "parameters": {"city": "San Francisco"}}'
    for size in range(1, len(text) + 1):
        parser = fmt().parser()
        for at in range(0, len(text), size):
            parser.feed(text[at : at + size])
        parser.close()
        assert [c.arguments for c in parser.message.tool_calls] == ['{"city": "San Francisco"}']


def test_a_second_call_in_the_same_delta_is_not_lost() -> None:
    parser = fmt().parser()
    events = parser.feed(f"{F};{G}")
    assert [e.name for e in events if isinstance(e, ToolCallStart)] == ["f", "g"]
    assert [e.status for e in events if isinstance(e, ToolCallEnd)] == ["complete", "complete"]


def test_vllm_28806_empty_arguments_are_streamed() -> None:
    parser = fmt().parser()
    deltas = [e.arguments for c in G for e in parser.feed(c) if isinstance(e, ToolCallDelta)]
    assert "".join(deltas) == "{}"


def test_vllm_32152_the_last_brace_is_not_lost() -> None:
    parser = fmt().parser()
    deltas: list[str] = []
    for chunk in ('{"name": "f", "parameters": {"o": {"id": 42', "}}}"):
        deltas += [e.arguments for e in parser.feed(chunk) if isinstance(e, ToolCallDelta)]
    assert "".join(deltas) == '{"o": {"id": 42}}'
