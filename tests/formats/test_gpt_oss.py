"""gpt-oss: harmony messages, each with a channel and perhaps a recipient.

Strategy: as in `test_llama3_json`, each text is asked whole and streamed however it is split; most of them after the
prompt that the template writes, and without it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import toolgram
from tests.streams import assert_parses, assert_same_however_split, held_after, statuses
from toolgram.events import Content, Reasoning

parses = partial(assert_parses, "gpt_oss")
PROMPT = "<|start|>assistant"
F = '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>'
G = " to=functions.g<|channel|>commentary json<|message|>{}<|call|>"
HM = "<|channel|>analysis<|message|>Hm.<|end|>"
YES = "<|channel|>final<|message|>Yes."
CALL_F = ("f", {"a": 1})
CALL_G: tuple[str, dict[str, Any]] = ("g", {})


def fmt() -> toolgram.Format:
    return toolgram.get_format("gpt_oss")


@pytest.mark.parametrize("prefix", ["", PROMPT, f"<|start|>user<|message|>Hi<|end|>{PROMPT}"])
def test_channels(prefix: str) -> None:
    parses(YES, "Yes.", prefix=prefix)
    parses(f"{YES}<|return|>", "Yes.", prefix=prefix)
    parses(f"{HM}{PROMPT}{YES}", "Yes.", reasoning="Hm.", prefix=prefix)
    parses(f"{HM}{YES}", "Yes.", reasoning="Hm.", prefix=prefix)
    parses("<|channel|>analysis<|message|>Hm", None, reasoning="Hm", prefix=prefix)
    parses("<|channel|>commentary<|message|>I look.<|end|>", "I look.", prefix=prefix)
    parses(
        f"{HM}{PROMPT}{HM}{PROMPT}<|channel|>commentary<|message|>I look.<|end|>{PROMPT}{YES}<|return|>",
        "I look. Yes.",
        reasoning="Hm. Hm.",
        prefix=prefix,
    )
    parses("<|channel|>final<|message|>Line one\n\nLine two \n", "Line one\n\nLine two \n", prefix=prefix)


def test_the_content_type_of_a_final_message() -> None:
    for header in (" <|constrain|>json", "<|constrain|>json", " json", " "):
        parses(f'<|channel|>final{header}<|message|>{{"a": 1}}<|return|>', '{"a": 1}', prefix=PROMPT)


def test_a_header_that_the_prompt_has_finished() -> None:
    """Inside a message, what looks like the beginning of a header is text, whoever wrote the header."""
    text = " to=f<|message|>{}"
    parses(f"<|channel|>final<|message|>x{text}", f"x{text}", prefix=PROMPT)
    parses(f"x{text}", f"x{text}", prefix=f"{PROMPT}<|channel|>final<|message|>")
    parses(text, text.strip(), prefix=f"{PROMPT}<|channel|>final<|message|>")
    parses("Hm.", None, reasoning="Hm.", prefix=f"{PROMPT}<|channel|>analysis<|message|>")


def test_a_message_without_a_channel() -> None:
    parses("<|message|>Hello", "Hello", prefix=PROMPT)
    parses(" <|message|>Hello", "Hello", prefix=PROMPT)


@pytest.mark.parametrize(
    "text",
    ["Hello.", "  Hello \n", "I go to=x", " to be", "to", " to=", "a <| b", "json", "<|message", "x<|message|>y"],
)
def test_what_stands_before_any_channel_is_content(text: str) -> None:
    parses(text, text)
    parses(text, text.lstrip(), prefix=PROMPT)
    parses(f"{text}{F}", text.rstrip(), [CALL_F])


@pytest.mark.parametrize("prefix", ["", PROMPT])
@pytest.mark.parametrize("recipient", [" to=functions.f", " to=f", "to=functions.f"])
@pytest.mark.parametrize("hint", ["", " json", " <|constrain|>json", "<|constrain|>json", " code", "  "])
def test_headers_of_one_call(prefix: str, recipient: str, hint: str) -> None:
    body = '<|message|>{"a": 1}'
    for channel in ("commentary", "analysis", "final"):
        parses(f"{recipient}<|channel|>{channel}{hint}{body}<|call|>", None, [CALL_F], prefix=prefix)
        parses(f"<|channel|>{channel} {recipient.strip()}{hint}{body}", None, [CALL_F], prefix=prefix)
    parses(f"{recipient}{hint}{body}<|end|>", None, [CALL_F], prefix=prefix)


def test_several_messages() -> None:
    parses(f"{F}{PROMPT}{G}", None, [CALL_F, CALL_G])
    parses(f"{F}{PROMPT}{G}{PROMPT}{F}", None, [CALL_F, CALL_G, CALL_F])
    parses(
        f"{HM}{PROMPT}<|channel|>commentary<|message|>I look.<|end|>{PROMPT}{G}{PROMPT}{YES}",
        "I look. Yes.",
        [CALL_G],
        reasoning="Hm.",
    )
    parses(f"{F[:-8]}{PROMPT}{YES}", "Yes.", [CALL_F])
    parses(f"{HM[:-7]}{F}", None, [CALL_F], reasoning="Hm.")


@pytest.mark.parametrize(
    ("recipient", "name"),
    [
        ("functions.get_weather", "get_weather"),
        ("functions.a.b", "a.b"),
        ("functions", "functions"),
        ("functionsx", "functionsx"),
        ("browser.search", "browser.search"),
        ("python", "python"),
        ("get-time", "get-time"),
    ],
)
def test_names(recipient: str, name: str) -> None:
    parses(f" to={recipient}<|channel|>commentary json<|message|>{{}}", None, [(name, {})], prefix=PROMPT)
    parses(f"<|channel|>analysis to={recipient} code<|message|>{{}}<|call|>", None, [(name, {})], prefix=PROMPT)


def test_code_for_a_tool_is_content() -> None:
    code = "<|channel|>analysis to=python code<|message|>print({1})"
    parses(f"{code}<|call|>", "print({1})")
    parses(f"{HM}{PROMPT}{code}<|call|>{PROMPT}{YES}", "print({1}) Yes.", reasoning="Hm.")


@pytest.mark.parametrize(
    "header", [" to=python code<|channel|>commentary", " to=python<|channel|>final code", " to=python"]
)
def test_code_for_a_tool_that_is_not_declared(header: str) -> None:
    """The header is none of the content. A recipient in prose is."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    parses(f"{header}<|message|>print(1)<|call|>", "print(1)", tools=tools, prefix=PROMPT)
    parses(f"{header}<|message|>{{}}<|call|>", None, [("python", {})], tools=tools, prefix=PROMPT)
    parses("Go to=python code, then.", "Go to=python code, then.", tools=tools)


def test_an_empty_message_is_a_call_without_arguments() -> None:
    header = "<|channel|>commentary to=functions.g json<|message|>"
    parses(f"{header}<|call|>", None, [CALL_G])
    parses(f"{header} <|call|>{PROMPT}{YES}", "Yes.", [CALL_G])
    by_reason = {reason: fmt().parse(header, finish_reason=reason) for reason in (None, "stop", "length")}
    for message in by_reason.values():  # a name, and then the end
        assert [(c.name, c.arguments, c.status) for c in message.tool_calls] == [("g", "", "truncated")]
    for reason in by_reason:
        assert_same_however_split(fmt(), f"{HM}{header}", finish_reason=reason)


@pytest.mark.parametrize(
    "text",
    [
        "<|channel|>",
        "<|channel|>comment",
        "<|channel|>commentary to=<|message|>{}",
        "<|start|>",
        "<|start|>user<|message|>x",
        "<|channel|>final x y<|message|>z",
    ],
)
def test_a_header_that_is_none_stays_in_content(text: str) -> None:
    parses(text, text)
    parses(f"{text}<|end|>{PROMPT}{F}", text, [CALL_F])


@pytest.mark.parametrize(
    ("text", "content", "reasoning", "calls"),
    [
        ("<|channel|>??<|message|>x", "x", None, []),
        ("<|channel|>finale<|message|>x", "x", None, []),
        ("<|channel|>final x<|message|>y", "y", None, []),
        ("<|channel|>final<|constrain|>response<|message|>y", "y", None, []),
        ("<|channel|>commentary 2?<|message|>x", "x", None, []),
        ("<|channel|>analysis 2?<|message|>x", None, "x", []),
        ("<|channel|>commentary to=assistant<|channel|>analysis<|message|>x", None, "x", []),
        ("<|channel|>commentary to=assistant<|channel|>analysis ??<|message|>x", None, "x", []),
        ("<|channel|>commentary to=python code<|message|>x", "x", None, []),
        ("<|channel|>commentary to=f json<|message|>[1]", "[1]", None, []),
        ('<|channel|>comment to=functions.f json<|message|>{"a": 1}<|call|>', None, None, [CALL_F]),
        ('<|channel|>commentary to=functions.f x<|message|>{"a": 1}<|call|>', None, None, [CALL_F]),
        ('<|channel|>commentary to=functions.f <|constrain|>response<|message|>{"a": 1}<|call|>', None, None, [CALL_F]),
        ('<|channel|>commentary 2? to=functions.f json<|message|>{"a": 1}<|call|>', None, None, [CALL_F]),
        (' to=functions.f<|channel|>analysis json<|message|>{"a": 1}<|call|>', None, None, [CALL_F]),
    ],
)
def test_a_header_that_is_damaged(
    text: str, content: str | None, reasoning: str | None, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    parses(text, content, calls, reasoning=reasoning)
    end = "" if calls else "<|end|>"
    message = parses(f"{text}{end}{PROMPT}{F}", content, [*calls, CALL_F], reasoning=reasoning)
    if " to=functions.f<|channel|>analysis" not in text:
        assert "unusual_form" in [each.kind for each in message.anomalies]


def test_broken_and_truncated_calls() -> None:
    text = f'<|channel|>commentary to=functions.h json<|message|>{{"a": tru}}<|call|>{PROMPT}{G}'
    message = assert_same_however_split(fmt(), text)
    assert statuses(message) == [("h", "malformed"), ("g", "complete")]
    text = '<|channel|>commentary to=functions.f<|constrain|>json<|message|>{"a": {"b": {}}}'
    for at in range(text.index('{"a') + 2, len(text)):
        message = assert_same_however_split(fmt(), text[:at])
        assert statuses(message) == [("f", "truncated")]
        assert message.content is None


def test_markers_in_arguments_are_data() -> None:
    value = "}<|call|><|channel|>final<|message|>"
    parses(f'to=f<|message|>{{"a": "{value}"}}<|call|>', None, [("f", {"a": value})])


def test_text_streams_at_once() -> None:
    parser = fmt().parser(prefix=PROMPT)
    events = [e for c in f"{HM}{PROMPT}{YES}" for e in parser.feed(c)]
    assert "".join(e.text for e in events if isinstance(e, Reasoning)) == "Hm."
    assert "".join(e.text for e in events if isinstance(e, Content)) == "Yes."


def test_what_is_held() -> None:
    assert held_after("gpt_oss", " to=functions.get_w") == " to=functions.get_w"
    assert held_after("gpt_oss", " to b") == ""
    assert (
        held_after("gpt_oss", "<|channel|>commentary to=f json<|message|>")
        == "<|channel|>commentary to=f json<|message|>"
    )
    assert held_after("gpt_oss", '<|channel|>commentary to=f json<|message|>{"') == ""
    assert held_after("gpt_oss", "<|channel|>final<|message|>") == ""


def test_with_token_ids_only_the_emitted_token_is_a_marker() -> None:
    parser = fmt().parser(prefix=PROMPT, special_tokens={"<|channel|>": 5, "<|message|>": 8, "<|end|>": 7})
    for delta, ids in (
        ("<|channel|>", [5]),
        ("final", [1]),
        ("<|message|>", [8]),
        ("I write <|end|> and <|channel|>.", [1, 2, 3]),
        ("<|end|>", [7]),
    ):
        parser.feed(delta, token_ids=ids)
    parser.close()
    assert parser.message.content == "I write <|end|> and <|channel|>."


def test_clean_output_has_no_anomalies() -> None:
    text = f"{HM}{PROMPT}<|channel|>commentary<|message|>I look.<|end|>{PROMPT}{F}"
    assert parses(text, "I look.", [CALL_F], reasoning="Hm.", prefix=PROMPT).anomalies == []
