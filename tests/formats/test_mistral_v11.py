"""Mistral tokenizers v11 and v13: a marker, a name and an object for each call; reasoning in [THINK].

Strategy: as in `test_llama3_json`, each text is asked whole and streamed however it is split.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

import toolgram
from tests.json_prefix import complete
from tests.streams import assert_parses, assert_same_however_split, cut, held_after, statuses
from toolgram.events import Content, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart

parses = partial(assert_parses, "mistral_v11")
F = '[TOOL_CALLS]f[ARGS]{"a": 1}'
G = "[TOOL_CALLS]g[ARGS]{}"
CALL_F = ("f", {"a": 1})
CALL_G: tuple[str, dict[str, Any]] = ("g", {})


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


@pytest.mark.parametrize(
    "text",
    [
        '[TOOL_CALLS]f[ARGS]{"a": 1}',
        '[TOOL_CALLS]f{"a": 1}',
        '[TOOL_CALLS] f [ARGS] {"a": 1}',
        '[TOOL_CALLS]f {"a": 1}',
        '[TOOL_CALLS]\nf\n[ARGS]\n{"a": 1}\n',
        '[TOOL_CALLS]        f        [ARGS]        {"a": 1}',
        '[TOOL_CALLS]f[CALL_ID]abc123def[ARGS]{"a": 1}',
        '[TOOL_CALLS]f [CALL_ID] abc123def [ARGS] {"a": 1}',
        '\n[TOOL_CALLS]f[ARGS]{"a": 1}',
        '[TOOL_CALLS]f[ARGS]{"a": 1}</s>',
    ],
)
def test_spellings_of_one_call(text: str) -> None:
    parses(text, None, [CALL_F])


def test_more_than_eight_blanks_are_no_call() -> None:
    text = "[TOOL_CALLS]" + " " * 9 + 'f[ARGS]{"a": 1}'
    parses(text, text)


def test_several_calls() -> None:
    parses(F + G, None, [CALL_F, CALL_G])
    parses(F + "\n" + G + " " + F, None, [CALL_F, CALL_G, CALL_F])
    parses('[TOOL_CALLS]f{"a": 1}[TOOL_CALLS]g{}', None, [CALL_F, CALL_G])


@pytest.mark.parametrize("before", ["", "Sure.", "Sure.\n", " a {b} [c] "])
@pytest.mark.parametrize("between", ["", " ", " and ", "and"])
@pytest.mark.parametrize("after", ["", " Done. ", "Done.", "\n{x} [TOOL"])
def test_text_before_between_and_after(before: str, between: str, after: str) -> None:
    parts = [before.rstrip(), between.strip(), after.lstrip()]
    parses(f"{before}{F}{between}{G}{after}", " ".join(p for p in parts if p) or None, [CALL_F, CALL_G])


@pytest.mark.parametrize("name", ["f", "get_weather", "a.b", "get-time", "say_hello2", "_x"])
def test_names(name: str) -> None:
    parses(f"[TOOL_CALLS]{name}[ARGS]{{}}", None, [(name, {})])
    parses(f"[TOOL_CALLS]{name}{{}}", None, [(name, {})])


@pytest.mark.parametrize(
    "text",
    [
        "Hello.",
        "  Hello \n",
        "See the [TOOL_CALLS] docs",
        "[TOOL_CALLS",
        "[TOOL_CALLS]",
        "[TOOL_CALLS] ",
        "[TOOL_CALLS] f",
        "[TOOL_CALLS]f[ARGS]x",
        "[TOOL_CALLS]f[ARGS][1]",
        "[TOOL_CALLS]f[ARGS]null",
        "[TOOL_CALLS]f(a=1)",
        "[TOOL_CALLS]{}",
        "[TOOL_CALLS]f{x}",
        "[TOOL not a tag",
        "[ARG",
        "f{}",
        'f{"a": 1}',
        "items[0] {x}",
    ],
)
def test_what_is_no_call_stays_in_content(text: str) -> None:
    parses(text, text)


def test_later_calls_are_found_after_a_marker_that_was_mentioned() -> None:
    parses(f"The [TOOL_CALLS] marker. {F}", "The [TOOL_CALLS] marker.", [CALL_F])
    parses(f"[TOOL_CALLS]{F}", None, [CALL_F])
    parses(f"[TOOL_CALLS]x y {F}", "[TOOL_CALLS]x y", [CALL_F])


def test_a_name_at_the_end_of_the_output() -> None:
    """If what follows shows that it is whole, or the model has stopped, a truncated call; else text."""
    for reason in (None, "stop", "length"):
        for rest in (" ", "[", "[ARG", "[ARGS]", "[ARGS]{", "[CALL_ID]", "[CALL_ID]abc123def"):
            message = assert_same_however_split(fmt(), f"Hi {F} [TOOL_CALLS]now{rest}", finish_reason=reason)
            assert statuses(message) == [("f", "complete"), ("now", "truncated")], rest
            assert message.tool_calls[1].arguments in ("", "{"), rest
            assert message.content == "Hi"
        message = assert_same_however_split(fmt(), "[TOOL_CALLS]now", finish_reason=reason)
        if reason == "stop":
            assert (statuses(message), message.content) == ([("now", "truncated")], None)
        else:
            assert (message.content, message.tool_calls) == ("[TOOL_CALLS]now", [])


# ----------------------------------------------------------------------------------------------------------- reasoning


def test_reasoning() -> None:
    parses("[THINK]Hm.[/THINK]Yes.", "Yes.", reasoning="Hm.")
    parses("[THINK]\nHm.\n[/THINK]\n\nYes.\n", "Yes.\n", reasoning="Hm.")
    parses("[THINK]Hm.[/THINK]", None, reasoning="Hm.")
    parses("[THINK][/THINK]Yes.", "Yes.")
    parses("[THINK]  \n [/THINK]Yes.", "Yes.")
    parses(f"[THINK]Hm.[/THINK]{F}", None, [CALL_F], reasoning="Hm.")
    parses(f"[THINK]Hm.[/THINK]Yes. {F} Done.", "Yes. Done.", [CALL_F], reasoning="Hm.")


def test_reasoning_after_text() -> None:
    parses("So: [THINK]Hm.[/THINK] Yes.", "So: Yes.", reasoning="Hm.")


def test_reasoning_left_open_by_the_prompt() -> None:
    parses("Hm.[/THINK]Yes.", "Yes.", reasoning="Hm.", prefix="[THINK]")
    parses("Hm.[/THINK]Yes.", "Yes.", reasoning="Hm.", prefix="<s>[INST]Hi[/INST][THINK]")
    parses(f"Hm. [/THINK] {F}", None, [CALL_F], reasoning="Hm.", prefix="[THINK]")
    parses("Hm.", None, reasoning="Hm.", prefix="[THINK]")
    parses("Yes.", "Yes.", prefix="[THINK]a[/THINK]")


def test_reasoning_that_is_never_closed() -> None:
    parses("[THINK]Hm, I", None, reasoning="Hm, I")
    message = parses("[THINK]Hm [/THI", None, reasoning="Hm")
    assert [anomaly.kind for anomaly in message.anomalies] == ["unfinished_marker"]


def test_a_call_in_reasoning_that_is_never_closed_is_found() -> None:
    parses(f"[THINK]I need it.{F}", None, [CALL_F], reasoning="I need it.", finish_reason="stop")
    parses(f"[THINK]I need it. {F}{G}", None, [CALL_F, CALL_G], reasoning="I need it.", finish_reason="stop")
    parses(f"[THINK]I need it. {F}{G} ok", None, reasoning=f"I need it. {F}{G} ok")


def test_a_marker_mentioned_in_reasoning_is_no_call() -> None:
    message = assert_same_however_split(fmt(), "[THINK]I write [TOOL_CALLS] now.[/THINK]Yes.")
    assert message.tool_calls == []
    assert "Yes." in (message.content or "")
    assert (message.reasoning or "").startswith("I write")


def test_reasoning_streams_at_once() -> None:
    parser = fmt().parser()
    told = [e.text for c in "[THINK]because of" for e in parser.feed(c) if isinstance(e, Reasoning)]
    assert "".join(told) == "because of"


@pytest.mark.parametrize("text", ["a [THINK", "a [/THINK", "[THINK]a[/THINK]b [TOOL"])
def test_torn_markers_at_the_end_are_text(text: str) -> None:
    message = assert_same_however_split(fmt(), text)
    assert (message.content or "").endswith(text.split(" ")[-1])


# ----------------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    "arguments",
    [
        "{}",
        "{ }",
        '{"a": 3.5, "b": 4}',
        '{"a": -1, "b": 1e9, "c": 12345678901234567890, "d": 1.0}',
        '{"a": true, "b": false, "c": null, "d": []}',
        '{"name": "inner", "arguments": {}}',
        '{"a": "}", "b": "[TOOL_CALLS]g[ARGS]{}", "c": "[/THINK]", "d": "\\"}\\\\"}',
        '{"a": "caf\\u00e9 \\ud83d\\ude00 é"}',
        '{\n  "a": [\n    1,\n    2\n  ]\n}',
        '{"a": {"b": [{"c": [[]]}]}}',
        '{"": {"": ""}}',
    ],
)
@pytest.mark.parametrize("head", ["f[ARGS]", "f", "f[CALL_ID]abc123def[ARGS]"])
def test_arguments_are_the_models_own_bytes(arguments: str, head: str) -> None:
    message = parses(f"[TOOL_CALLS]{head}{arguments}{G}", None, [("f", json.loads(arguments)), CALL_G])
    assert message.tool_calls[0].arguments == arguments


@pytest.mark.parametrize("raw", ["\n", "\t", "\x00", "\x1b"])
def test_raw_control_characters_are_escaped(raw: str) -> None:
    parses(f'[TOOL_CALLS]f[ARGS]{{"a": "x{raw}y"}}', None, [("f", {"a": f"x{raw}y"})])


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


def test_a_call_that_breaks_leaves_the_others() -> None:
    message = assert_same_however_split(fmt(), f'{F}[TOOL_CALLS]h[ARGS]{{"a": tru}} bye {G}')
    assert statuses(message) == [
        ("f", "complete"),
        ("h", "malformed"),
        ("g", "complete"),
    ]
    assert message.content is not None
    assert message.content.endswith("bye")


def test_a_marker_after_broken_arguments_is_a_call() -> None:
    """Arguments that never close: the next marker, outside any string, begins a call."""
    message = assert_same_however_split(fmt(), f'[TOOL_CALLS]h[ARGS]{{"a": 1 {G}')
    calls = statuses(message)
    assert (calls[0], calls[-1]) == (("h", "malformed"), ("g", "complete"))


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


def test_an_unknown_tool_is_forwarded_with_an_anomaly() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    message = parses(F + G, None, [CALL_F, CALL_G], tools=tools)
    assert [a.kind for a in message.anomalies] == ["unknown_tool"]


def test_clean_output_has_no_anomalies() -> None:
    message = parses(f"[THINK]Hm.[/THINK]Sure. {F}{G}", "Sure.", [CALL_F, CALL_G], reasoning="Hm.")
    assert message.anomalies == []


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


def test_mlx_lm_1448_parallel_calls_are_not_one_greedy_match() -> None:
    text = '[TOOL_CALLS]w[ARGS]{"city": "Paris"}[TOOL_CALLS]w[ARGS]{"city": "Tokyo"}'
    parses(text, None, [("w", {"city": "Paris"}), ("w", {"city": "Tokyo"})])


def test_vllm_40531_text_and_call_in_one_delta() -> None:
    parser = fmt().parser()
    events = parser.feed(f"Sure.\n{F}")
    assert "".join(e.text for e in events if isinstance(e, Content)) == "Sure."
    assert [e.name for e in events if isinstance(e, ToolCallStart)] == ["f"]


def test_ollama_a_name_that_is_a_prefix_of_another_does_not_fire_early() -> None:
    tools = [{"type": "function", "function": {"name": n, "parameters": {}}} for n in ("say", "say_hello")]
    parses('[TOOL_CALLS]say_hello[ARGS]{"to": "Bob"}', None, [("say_hello", {"to": "Bob"})], tools=tools)


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
