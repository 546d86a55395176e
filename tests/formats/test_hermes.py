"""Hermes and Qwen: a JSON object in tags for each call, thinking in tags of its own.

Strategy: as in `test_llama3_json`, each text is asked whole and streamed however it is split.
"""

from __future__ import annotations

import json
from functools import partial
from itertools import permutations
from typing import Any

import pytest

import toolgram
from tests.streams import assert_parses, assert_same_however_split, held_after, statuses
from toolgram.events import Reasoning, ToolCallDelta

parses = partial(assert_parses, "hermes")
F = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
G = '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>'
CALL_F = ("f", {"a": 1})
CALL_G: tuple[str, dict[str, Any]] = ("g", {})


def fmt() -> toolgram.Format:
    return toolgram.get_format("hermes")


@pytest.mark.parametrize(
    "text",
    [
        F,
        '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>',
        '<tool_call>\r\n{"name":"f","arguments":{"a": 1}}\r\n</tool_call>',
        '<tool_call>  \n {\n "name" : "f",\n "arguments" : {"a": 1}\n}\n\n</tool_call>\n',
        '<tool_call>\n{"arguments": {"a": 1}, "name": "f"}\n</tool_call>',
        '<tool_call>\n{"name": "f", "parameters": {"a": 1}}\n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": "{\\"a\\": 1}"}\n</tool_call>',
        '<tool_call>\n{"type": "function", "name": "f", "arguments": {"a": 1}}\n</tool_call>',
        "<tool_call>\n{'name': 'f', 'arguments': {'a': 1}}\n</tool_call>",
        '<tool_call>\n[{"name": "f", "arguments": {"a": 1}}]\n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": {"a": 1}, "why": ["x", {}]}\n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n',
        '<tool_call>\n{"name": "f", "arguments": {"a": 1}}',
        '<tool_call><tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>',
        f"{F}<|im_end|>",
        f"\n\n{F}\n<|im_end|>\n",
    ],
)
def test_spellings_of_one_call(text: str) -> None:
    parses(text, None, [CALL_F])


def test_several_calls() -> None:
    parses(f"{F}\n{G}", None, [CALL_F, CALL_G])
    parses(f"{F}{G}{F}", None, [CALL_F, CALL_G, CALL_F])
    parses(f"{F[:-13]}\n{G}", None, [CALL_F, CALL_G])
    parses(
        '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n{"name": "g", "arguments": {}}\n</tool_call>',
        None,
        [CALL_F, CALL_G],
    )
    parses(
        '<tool_call>[{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]</tool_call>',
        None,
        [CALL_F, CALL_G],
    )


@pytest.mark.parametrize("before", ["", "Sure.", "Sure.\n", " a {b} [c] "])
@pytest.mark.parametrize("between", ["", "\n", "\n\n", " and ", "and"])
@pytest.mark.parametrize("after", ["", "\nDone. ", "Done.", "\n{x} <tool"])
def test_text_before_between_and_after(before: str, between: str, after: str) -> None:
    parts = [before.rstrip(), between.strip(), after.lstrip()]
    parses(f"{before}{F}{between}{G}{after}", " ".join(p for p in parts if p) or None, [CALL_F, CALL_G])


@pytest.mark.parametrize(
    "text",
    [
        "Hello.",
        "  Hello \n",
        "Wrap the call in `<tool_call>` tags, then wait.",
        "<tool_call>",
        "<tool_call>\n",
        "<tool_call></tool_call>",
        "<tool_call>\n{}\n</tool_call>",
        '<tool_call>\n{"a": 1}\n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": [1]}\n</tool_call>',
        '<tool_call>\n{"name": "f", "arguments": {a}}\n</tool_call>',
        '<tool_call>\n["f"]\n</tool_call>',
        "<tool_call>f(a=1)</tool_call>",
        '{"name": "f", "arguments": {}}',
        "a </tool_call> b c",
        "<tool",
        "1 < 2",
    ],
)
def test_what_is_no_call_stays_in_content(text: str) -> None:
    parses(text, text)


def test_an_inner_object_of_a_failed_call_is_no_call() -> None:
    parses(
        '<tool_call>{"x": {"name": "f", "arguments": {}}}</tool_call>',
        '<tool_call>{"x": {"name": "f", "arguments": {}}}</tool_call>',
    )
    parses(
        f'<tool_call>{{"name": "f", "arguments": [{{"name": "g", "arguments": {{}}}}]}} {G}',
        '<tool_call>{"name": "f", "arguments": [{"name": "g", "arguments": {}}]}',
        [CALL_G],
    )


def test_keys_in_any_order() -> None:
    members = ['"name": "f"', '"arguments": {"a": 1}', '"type": "function"', '"id": "x1"']
    for order in permutations(members):
        message = parses("<tool_call>{" + ", ".join(order) + "}</tool_call>", None, [CALL_F])
        if order.index(members[3]) < min(order.index(members[0]), order.index(members[1])):
            assert message.tool_calls[0].id == "x1"


# ----------------------------------------------------------------------------------------------------------- reasoning


def test_reasoning() -> None:
    parses("<think>Hm.</think>Yes.", "Yes.", reasoning="Hm.")
    parses("<think>\nHm.\n</think>\n\nYes.\n", "Yes.\n", reasoning="Hm.")
    parses("<think>\n\n</think>\n\nYes.", "Yes.")
    parses(f"<think>Hm.</think>\n\n{F}\n{G}", None, [CALL_F, CALL_G], reasoning="Hm.")
    parses(f"<think>use <b> and </thin</think>Yes.\n{F}\nDone.", "Yes. Done.", [CALL_F], reasoning="use <b> and </thin")
    parses("So: <think>Hm.</think> Yes.", "So: Yes.", reasoning="Hm.")
    parses("<think>Hm, I", None, reasoning="Hm, I")


@pytest.mark.parametrize(
    "prefix", ["<think>", "<think>\n", "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n"]
)
def test_reasoning_opened_by_the_prompt(prefix: str) -> None:
    parses("Hm.\n</think>\n\nYes.", "Yes.", reasoning="Hm.", prefix=prefix)
    parses(f"\n</think>\n\n{F}", None, [CALL_F], prefix=prefix)
    parses("Hm.", None, reasoning="Hm.", prefix=prefix)


def test_reasoning_closed_by_the_prompt() -> None:
    parses("Yes.", "Yes.", prefix="<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_a_call_in_reasoning_that_was_never_closed() -> None:
    parses(f"<think>I need it. {F}", None, [CALL_F], reasoning="I need it.", finish_reason="stop")
    parses(f"<think>I need it. {F} ok", None, reasoning=f"I need it. {F} ok")


def test_a_marker_mentioned_in_reasoning_is_reasoning() -> None:
    parses("<think>I write <tool_call> now.</think>Yes.", "Yes.", reasoning="I write <tool_call> now.")


def test_reasoning_streams_at_once() -> None:
    parser = fmt().parser()
    told = [e.text for c in "<think>because of" for e in parser.feed(c) if isinstance(e, Reasoning)]
    assert "".join(told) == "because of"


# ------------------------------------------------------------------------------------------------ arguments, and wrecks


@pytest.mark.parametrize(
    "arguments",
    [
        "{}",
        '{"a": 3.50, "b": 12345678901234567890, "c": 1e9}',
        '{"a": "}", "b": "</tool_call>", "c": "<tool_call>{\\"name\\": \\"g\\"}", "d": "</think>"}',
        '{"name": "inner", "arguments": {}}',
        '{"a": "caf\\u00e9 \\ud83d\\ude00 é"}',
        '{\n  "a": [\n    1,\n    2\n  ]\n}',
    ],
)
def test_arguments_are_the_models_own_bytes(arguments: str) -> None:
    text = f'<tool_call>\n{{"name": "f", "arguments": {arguments}}}\n</tool_call>'
    message = assert_same_however_split(fmt(), text)
    assert [(c.name, c.arguments, c.status) for c in message.tool_calls] == [("f", arguments, "complete")]
    assert message.content is None


def test_arguments_stream() -> None:
    parser = fmt().parser()
    text = '<tool_call>\n{"name": "add", "arguments": {"a": "some lo'
    told = [e.arguments for c in text for e in parser.feed(c) if isinstance(e, ToolCallDelta)]
    assert "".join(told) == '{"a": "some lo'


def test_a_call_that_breaks_leaves_the_others() -> None:
    message = assert_same_however_split(
        fmt(), f'{F}<tool_call>{{"name": "h", "arguments": {{"a": tru}}}}</tool_call> bye {G}'
    )
    assert statuses(message) == [
        ("f", "complete"),
        ("h", "malformed"),
        ("g", "complete"),
    ]
    assert (message.content or "").endswith("bye")


def test_a_tag_after_broken_arguments_is_a_call() -> None:
    message = assert_same_however_split(fmt(), f'<tool_call>{{"name": "h", "arguments": {{"a": 1 {G}')
    assert statuses(message) == [("h", "malformed"), ("g", "complete")]


def test_truncated() -> None:
    for at in range(F.index('{"a"') + 2, F.rindex("}}") + 1):
        message = assert_same_however_split(fmt(), F[:at])
        assert statuses(message) == [("f", "truncated")]
        assert message.content is None


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


def test_ollama_17274_a_name_with_blanks() -> None:
    parses('<tool_call>{"name": "Apply tags", "arguments": {}}</tool_call>', None, [("Apply tags", {})])


def test_clean_output_has_no_anomalies() -> None:
    assert parses(f"<think>Hm.</think>Sure.\n{F}\n{G}", "Sure.", [CALL_F, CALL_G], reasoning="Hm.").anomalies == []


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


@pytest.mark.parametrize(("written", "name", "arguments"), PYTHON_SPELLINGS)
def test_python_spelling_may_begin_anywhere(written: str, name: str, arguments: dict[str, object]) -> None:
    text = f"<tool_call>\n{written}\n</tool_call>"
    message = assert_same_however_split(toolgram.get_format("hermes"), text)
    (call,) = message.tool_calls
    assert (call.name, json.loads(call.arguments), call.status) == (name, arguments, "complete")
    assert {anomaly.kind for anomaly in message.anomalies} == {"repaired_json"}


@pytest.mark.parametrize("written", [written for written, _, _ in PYTHON_SPELLINGS])
def test_a_prompt_may_stop_anywhere_in_it(written: str) -> None:
    """What the prompt has written is not emitted, wherever the transcoder stands."""
    fmt = toolgram.get_format("hermes")
    text = f"<tool_call>\n{written}\n</tool_call>"
    for at in range(len(text)):
        assert_same_however_split(fmt, text[at:], prefix=text[:at])
