"""Mistral tokenizers v2 to v7: one marker and a JSON list of calls.

Strategy: as in `test_llama3_json`, each text is asked whole and streamed however it is split.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from itertools import permutations
from typing import Any

import pytest

import toolgram
from tests.json_prefix import complete
from tests.streams import assert_parses, assert_same_however_split, cut, held_after, statuses
from toolgram.events import Content, ToolCallDelta, ToolCallEnd, ToolCallStart

parses = partial(assert_parses, "mistral_v3")
F = '{"name": "f", "arguments": {"a": 1}}'
G = '{"name": "g", "arguments": {}}'
CALL_F = ("f", {"a": 1})
CALL_G: tuple[str, dict[str, Any]] = ("g", {})


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


@pytest.mark.parametrize(
    "text",
    [
        f"[TOOL_CALLS] [{F}]",
        f"[TOOL_CALLS][{F}]",
        f"[TOOL_CALLS]  \n[ {F} ]",
        f"[TOOL_CALLS] {F}",
        f"[TOOL_CALLS]{F}",
        f"[TOOL_CALLS] [{F}][/TOOL_CALLS]",
        f"[TOOL_CALLS] [{F}] [/TOOL_CALLS]\n",
        f"[TOOL_CALLS]{F}[/TOOL_CALLS]",
        '[TOOL_CALLS] [{"arguments": {"a": 1}, "name": "f"}]',
        '[TOOL_CALLS] [{ "name" : "f" , "arguments" : {"a": 1} } ]',
        '[TOOL_CALLS][\n  {\n    "name": "f",\n    "arguments": {\n      "a": 1\n    }\n  }\n]',
        '[TOOL_CALLS] [{"name": "f", "arguments": "{\\"a\\": 1}"}]',
        '[TOOL_CALLS] [{"arguments": "{\\"a\\": 1}", "name": "f"}]',
        '[TOOL_CALLS] [{"name": "\\u0066", "arguments": {"\\u0061": 1}}]',
        f"\n[TOOL_CALLS] [{F}]",
        f"[TOOL_CALLS] [{F}]</s>",
    ],
)
def test_spellings_of_one_call(text: str) -> None:
    parses(text, None, [CALL_F])


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_keys_in_any_order(order: Sequence[int]) -> None:
    members = ['"name": "f"', '"arguments": {"name": "inner", "arguments": {"id": 1}}', '"id": "bbc5b7ede"']
    text = "[TOOL_CALLS] [{" + ", ".join(members[i] for i in order) + "}]"
    message = parses(text, None, [("f", {"name": "inner", "arguments": {"id": 1}})])
    if order.index(2) < order.index(1):
        assert message.tool_calls[0].id == "bbc5b7ede"


@pytest.mark.parametrize("separator", [", ", ",", ",\n", " , "])
def test_several_calls_in_one_list(separator: str) -> None:
    parses(f"[TOOL_CALLS] [{F}{separator}{G}{separator}{F}]", None, [CALL_F, CALL_G, CALL_F])


def test_several_markers() -> None:
    parses(f"[TOOL_CALLS] [{F}][TOOL_CALLS] [{G}]", None, [CALL_F, CALL_G])
    parses(f"[TOOL_CALLS] [{F}] [TOOL_CALLS] [{G}, {F}]", None, [CALL_F, CALL_G, CALL_F])
    parses(f"[TOOL_CALLS]{F}[TOOL_CALLS]{G}", None, [CALL_F, CALL_G])
    parses(f"A [TOOL_CALLS][{F}][/TOOL_CALLS] B [TOOL_CALLS][{G}][/TOOL_CALLS] C", "A B C", [CALL_F, CALL_G])


@pytest.mark.parametrize("before", ["", "Sure.", "Sure.\n", "hi{hi ", "a [b] [TOOL ", " x"])
@pytest.mark.parametrize("after", ["", " Done.", "\nDone.", "Done.", " [1] {x}", " x \n"])
def test_text_before_and_after(before: str, after: str) -> None:
    content = before.rstrip() + (" " if before and after else "") + after.lstrip()
    parses(f"{before}[TOOL_CALLS] [{F}]{after}", content or None, [CALL_F])


@pytest.mark.parametrize(
    "text",
    [
        "Hello.",
        "  Hello \n",
        "See the [TOOL_CALLS] docs",
        "[TOOL_CALLS] not json at all",
        "[TOOL_CALLS",
        "[TOOL_CALLS]",
        "[TOOL_CALLS] ",
        "[TOOL_CALLS] [",
        "[TOOL_CALLS] [1, 2]",
        "[TOOL_CALLS] [{}]",
        '[TOOL_CALLS] [{"x": 1}]',
        '[TOOL_CALLS] [{"name": 1, "arguments": {}}]',
        '[TOOL_CALLS] [{"name": "f", "arguments": [1]}]',
        "[TOOL not a tag",
        "[TOOL_CALL]",
        '[{"name": "f", "arguments": {}}]',
        '{"name": "f", "arguments": {}}',
        "items[0] {x}",
    ],
)
def test_what_is_no_call_stays_in_content(text: str) -> None:
    parses(text, text)


def test_an_empty_list_is_no_call() -> None:
    message = assert_same_however_split(fmt(), "[TOOL_CALLS] []")
    assert message.tool_calls == []
    parses(f"[TOOL_CALLS] [][TOOL_CALLS] [{F}]", message.content, [CALL_F])


def test_later_calls_are_found_after_a_marker_that_was_mentioned() -> None:
    parses(f"The [TOOL_CALLS] marker. [TOOL_CALLS] [{F}]", "The [TOOL_CALLS] marker.", [CALL_F])
    parses(f"[TOOL_CALLS][TOOL_CALLS] [{F}]", None, [CALL_F])


def test_null_arguments_are_none() -> None:
    parses('[TOOL_CALLS] [{"name": "f", "arguments": null}]', None, [("f", {})])
    parses('[TOOL_CALLS] [{"arguments": null, "name": "f"}]', None, [("f", {})])


@pytest.mark.parametrize(
    "arguments",
    [
        "{}",
        '{"a": 3.5, "b": 4}',
        '{"a": -1, "b": 1e9, "c": 12345678901234567890, "d": 1.0}',
        '{"name": "John", "arguments": {"name": "x"}, "id": "y"}',
        '{"a": "]}", "b": "[TOOL_CALLS] [{}]", "c": "[/TOOL_CALLS]"}',
        '{"a": "caf\\u00e9 \\"q\\" \\\\ \\/"}',
        '{"a":   [ 1 ,2 ],\n "b" : {} }',
        '{"text": "Array notation: arr[0] = value[1]"}',
        '{"a": {"b": [{"c": [[]]}]}}',
    ],
)
def test_arguments_are_the_models_own_bytes(arguments: str) -> None:
    message = parses(
        f'[TOOL_CALLS] [{{"name": "f", "arguments": {arguments}}}, {G}]', None, [("f", json.loads(arguments)), CALL_G]
    )
    assert message.tool_calls[0].arguments == arguments
    early = parses(
        f'[TOOL_CALLS] [{{"arguments": {arguments}, "name": "f"}}, {G}]', None, [("f", json.loads(arguments)), CALL_G]
    )
    assert early.tool_calls[0].arguments == arguments


@pytest.mark.parametrize("raw", ["\n", "\t", "\x00", "\x1b"])
def test_raw_control_characters_are_escaped(raw: str) -> None:
    parses(f'[TOOL_CALLS] [{{"name": "f", "arguments": {{"a": "x{raw}y"}}}}]', None, [("f", {"a": f"x{raw}y"})])


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


def test_an_unclosed_list_leaves_its_calls_complete() -> None:
    parses(f"[TOOL_CALLS] [{F}, {G}", None, [CALL_F, CALL_G])
    parses(f"[TOOL_CALLS] [{F}", None, [CALL_F])
    parses(f"[TOOL_CALLS] [{F}, ", None, [CALL_F])


def test_a_broken_item_leaves_the_others() -> None:
    broken = '{"name": "h", "arguments": {"a": tru}}'
    message = assert_same_however_split(fmt(), f"[TOOL_CALLS] [{F}, {broken}] bye [TOOL_CALLS] [{G}]")
    assert statuses(message) == [
        ("f", "complete"),
        ("h", "malformed"),
        ("g", "complete"),
    ]
    assert message.content is not None
    assert message.content.endswith("bye")


def test_inner_objects_of_a_failed_call_are_never_promoted() -> None:
    for text in (
        f'[TOOL_CALLS] [{{"x": {F}}}]',
        f'[TOOL_CALLS] [{{"name": "f", "arguments": [{F}]}}]',
        f"[TOOL_CALLS] [[{F}]]",
        f"[TOOL_CALLS] nothing {F}",
    ):
        message = assert_same_however_split(fmt(), text)
        assert (message.tool_calls, message.content) == ([], text)


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


def test_an_unknown_tool_is_forwarded_with_an_anomaly() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    message = parses(f"[TOOL_CALLS] [{F}, {G}]", None, [CALL_F, CALL_G], tools=tools)
    assert [a.kind for a in message.anomalies] == ["unknown_tool"]


def test_clean_output_has_no_anomalies() -> None:
    assert parses(f"Sure. [TOOL_CALLS] [{F}, {G}]", "Sure.", [CALL_F, CALL_G]).anomalies == []


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


def test_vllm_54844_several_markers_do_not_raise() -> None:
    parses(f"[TOOL_CALLS] [{F}][TOOL_CALLS] [{G}]", None, [CALL_F, CALL_G])


def test_frontend_crates_60_closers_do_not_leak() -> None:
    parses(f"[TOOL_CALLS] [{F}] [/TOOL_CALLS] Here it is.", "Here it is.", [CALL_F])


def test_vllm_30724_braces_before_the_marker() -> None:
    parses(f"hi{{hi [TOOL_CALLS] [{F}]", "hi{hi", [CALL_F])
