"""Muse and Beam: messages whose headers say who they are for, beyond what their canonical outputs show."""

from __future__ import annotations

import pytest

import toolgram
from tests.streams import assert_same_however_split, calls_of

INVOKE = '<atem:invoke name="f">\n<atem:parameter name="a">x</atem:parameter>\n</atem:invoke>'
CALL = f"<atem:function_calls>\n{INVOKE}\n</atem:function_calls>"
READ = [("f", '{"a": "x"}', "complete")]
NEXT = "<|eom|><|start|>assistant"
BEAM = ' to=f<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="a">\nx\n</rfl:parameter>'


@pytest.mark.parametrize("name", ["muse", "muse_glimmer"])
@pytest.mark.parametrize(
    ("text", "reasoning", "content", "calls"),
    [
        (f" to=self<|message|>plan to=f<|message|>{CALL}<|eot|>", "plan", None, READ),
        (f" to=self<|message|>see {CALL}{NEXT} to=user<|message|>hi<|eot|>", f"see {CALL}", "hi", []),
        (f"{CALL}<|eot|>", None, None, READ),
        (f" to=user<|message|>{CALL}{NEXT} to=user<|message|>done", None, "done", READ),
        (" to=user<|message|>write to=x or to=self, see?<|eot|>", None, "write to=x or to=self, see?", []),
        (f" to=user<|message|>a{NEXT} to=f<|message|>{CALL}{NEXT} to=f<|message|>{CALL}<|eot|>", None, "a", READ * 2),
        (f" to=self<|message|>one{NEXT} to=self<|message|>two<|eom|>", "one two", None, []),
    ],
)
def test_who_a_message_is_for(
    name: str, text: str, reasoning: str | None, content: str | None, calls: list[tuple[str, str, str]]
) -> None:
    message = assert_same_however_split(toolgram.get_format(name), text)
    assert (message.reasoning, message.content, calls_of(message)) == (reasoning, content, calls)


def test_a_message_without_a_recipient() -> None:
    text = "<|message|>hm<|eom|><|start|>assistant to=user<|message|>hi<|eot|>"
    assert toolgram.get_format("muse").parse(text).reasoning == "hm"
    assert toolgram.get_format("muse_glimmer").parse(text).content == "hm hi"


@pytest.mark.parametrize(
    "end", ["<|call|>", "<|end|>", "<|end|><|start|>", "<|end|><|start|>assistant", "", "<|return|>"]
)
def test_the_end_of_a_message_closes_the_call_of_beam(end: str) -> None:
    message = assert_same_however_split(toolgram.get_format("beam"), BEAM + end, finish_reason="stop")
    assert (message.content, calls_of(message)) == (None, READ)
    assert [each.kind for each in message.anomalies] == ([] if end not in ("", "<|return|>") else ["unclosed_envelope"])


def test_calls_of_beam_follow_each_other_with_and_without_arguments() -> None:
    thought, turn = "<|channel|>analysis<|message|>hm", "<|end|><|start|>assistant"
    text = f"{thought}{turn}{BEAM}{turn} to=g<|message|><|call|>"
    message = assert_same_however_split(toolgram.get_format("beam"), text)
    assert (message.reasoning, calls_of(message)) == ("hm", [*READ, ("g", "{}", "complete")])


def test_what_is_no_argument_is_content_with_its_header() -> None:
    text = " to=f<|channel|>analysis <|constrain|>xml<|message|>hello<|end|>"
    message = assert_same_however_split(toolgram.get_format("beam"), text)
    assert message.content == text.removesuffix("<|end|>")
    assert not message.tool_calls


CALL = (
    '<atem:function_calls>\n<atem:invoke name="get_weather">\n<atem:parameter name="city">Rome</atem:parameter>\n'
    "</atem:invoke>\n</atem:function_calls>"
)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
MADE = [("get_weather", '{"city": "Rome"}', "complete")]
TO_USER, TO_TOOL, NEXT = " to=user<|message|>", " to=get_weather<|message|>", "<|eom|><|start|>assistant"


@pytest.mark.parametrize("name", ["muse", "muse_glimmer"])
@pytest.mark.parametrize(
    ("text", "content", "made"),
    [
        (f"{TO_USER}{CALL}<|eot|>", None, MADE),
        (f"{TO_USER}{CALL}{NEXT}{TO_USER}Done.<|eot|>", "Done.", MADE),
        (f"{TO_USER}{CALL}{NEXT}{TO_TOOL}{CALL}<|eot|>", None, [*MADE, *MADE]),
        (f"{TO_USER}So:{NEXT}{TO_TOOL}{CALL}<|eot|>", "So:", MADE),
        (f"{TO_USER}One writes {CALL} for that.<|eot|>", f"One writes {CALL} for that.", []),
        (f"{TO_USER}{CALL} does it.<|eot|>", f"{CALL} does it.", []),
        (f"{TO_USER}So: {CALL}<|eot|>", f"So: {CALL}", []),
        (f"{TO_USER}A {CALL}{NEXT}{TO_TOOL}{CALL}<|eot|>", f"A {CALL}", MADE),
        (f"{TO_USER}A {CALL[:70]}", f"A {CALL[:70]}", []),
    ],
)
def test_a_call_in_a_message_to_the_user_is_one_if_it_is_the_whole_message(
    name: str, text: str, content: str | None, made: list[tuple[str, str, str]]
) -> None:
    fmt = toolgram.get_format(name)
    message = assert_same_however_split(fmt, text, tools=TOOLS, prefix="", finish_reason="stop")
    assert message.content == content
    assert [(call.name, call.arguments, call.status) for call in message.tool_calls] == made
