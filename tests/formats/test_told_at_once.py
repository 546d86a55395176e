"""What a parser tells before the end of the output: names and values as soon as they are certain, in any deltas.

Strategy: a row has a text and what has been told when all of it has come: reasoning, content, and for each call its
name, its arguments so far, and whether it has ended. Most are bugs that parsers of inference servers once had.
"""

from __future__ import annotations

import json
import re

import pytest

import toolgram
from tests.streams import cut
from toolgram.events import Content, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart

SIZES = (0, 1, 2, 3, 4, 5, 7)
SOME = '{"a": "some lo'
ODD = '{"city": "Paris, \\"FR\\".", "days": [1, 2], "o": {"p": "q; r: s!"}}'
NUMBERS = '{"a": 3, "b": -4.5, "c": true, "d": null, "e": [1], "f": {}, "g": "", "h": 1e5}'
DEEP = '{"o": {"id": 42}}'
V3 = '[TOOL_CALLS] [{"name": "f", "arguments": %s'
V11 = "[TOOL_CALLS]f[ARGS]%s"
TURN = "<|end|><|start|>assistant"
HERMES = '<tool_call>\n{"name": "f", "arguments": %s'
LLAMA = '{"name": "f", "parameters": %s'
# format, text, and what has gone out: reasoning, content, calls
ROWS: list[tuple[str, str, str, str, list[tuple[str, str, bool]]]] = [
    ("mistral_v3", V3 % SOME, "", "", [("f", SOME, False)]),
    ("mistral_v3", V3 % json.dumps(SOME).removesuffix('"'), "", "", [("f", SOME, False)]),
    ("mistral_v3", V3 % NUMBERS + "}]", "", "", [("f", NUMBERS, True)]),
    ("mistral_v3", V3 % ODD + "}]", "", "", [("f", ODD, True)]),
    ("mistral_v3", V3 % DEEP + "}]", "", "", [("f", DEEP, True)]),
    ("mistral_v3", V3 % '{}}, {"name": "g", "arguments": {}}]', "", "", [("f", "{}", True), ("g", "{}", True)]),
    ("mistral_v11", V11 % SOME, "", "", [("f", SOME, False)]),
    ("mistral_v11", V11 % NUMBERS, "", "", [("f", NUMBERS, False)]),  # the end of a call shows in what follows
    ("mistral_v11", V11 % ODD, "", "", [("f", ODD, False)]),
    ("mistral_v11", f"[TOOL_CALLS]f{DEEP}", "", "", [("f", DEEP, False)]),
    ("mistral_v11", V11 % "{}" + V11 % DEEP, "", "", [("f", "{}", True), ("f", DEEP, False)]),
    ("mistral_v11", "Sure.\n" + V11 % "{}", "", "Sure.", [("f", "{}", False)]),
    ("mistral_v11", "[THINK]because of", "because of", "", []),
    ("llama3_json", LLAMA % SOME, "", "", [("f", SOME, False)]),
    ("llama3_json", LLAMA % json.dumps(SOME).removesuffix('"'), "", "", [("f", SOME, False)]),
    ("llama3_json", '{"parameters": {"name": "inner"}, "name": "ou', "", "", []),
    ("llama3_json", '{"parameters": {"b": 2}, "name": "outer"', "", "", [("outer", '{"b": 2}', False)]),
    ("llama3_json", LLAMA % DEEP + "}", "", "", [("f", DEEP, True)]),
    ("llama3_json", LLAMA % "{}};" + LLAMA % DEEP + "}", "", "", [("f", "{}", True), ("f", DEEP, True)]),
    ("llama4_pythonic", "[f(a=1), g()]", "", "", [("f", '{"a": 1}', True), ("g", "{}", True)]),
    ("llama4_pythonic", '[f(a=1, b="some lo', "", "", [("f", '{"a": 1, "b": "some lo', False)]),
    ("llama4_pythonic", "[f(a=[1, {'k': 'v", "", "", [("f", '{"a": [1, {"k": "v', False)]),
    ("llama4_pythonic", "[f(a='it\\'s", "", "", [("f", '{"a": "it\'s', False)]),
    ("lfm2", "<|tool_call_start|>[g()", "", "", []),
    ("lfm2", "<|tool_call_start|>[g(),", "", "", [("g", "{}", True)]),
    ("hermes", HERMES % SOME, "", "", [("f", SOME, False)]),
    ("hermes", HERMES % DEEP + "\n}\n</tool_call>", "", "", [("f", DEEP, True)]),
    ("hermes", "<think>because of", "because of", "", []),
    ("gpt_oss", f"<|channel|>analysis<|message|>Hm.{TURN}<|channel|>final<|message|>Yes.", "Hm.", "Yes.", []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "reasoning", "content", "calls"), ROWS)
def test_what_is_told_before_the_end(
    name: str, text: str, reasoning: str, content: str, calls: list[tuple[str, str, bool]]
) -> None:
    for size in SIZES:
        parser = toolgram.get_format(name).parser(prefix="")
        events = [event for delta in cut(text, size) for event in parser.feed(delta)]
        assert "".join(event.text for event in events if isinstance(event, Reasoning)) == reasoning
        assert "".join(event.text for event in events if isinstance(event, Content)) == content
        names = [event.name for event in events if isinstance(event, ToolCallStart)]
        deltas = [event for event in events if isinstance(event, ToolCallDelta)]
        ended = {event.index for event in events if isinstance(event, ToolCallEnd) and event.status == "complete"}
        assert calls == [
            (name, "".join(delta.arguments for delta in deltas if delta.index == at), at in ended)
            for at, name in enumerate(names)
        ], size


@pytest.mark.parametrize(
    ("name", "text", "shape"),
    [
        ("mistral_v3", V3 % '{}}, {"name": "g", "arguments": {}}]', r"[A-Za-z0-9]{9}"),
        ("mistral_v11", V11 % "{}" + V11 % "{}", r"[A-Za-z0-9]{9}"),
        ("llama3_json", LLAMA % "{}};" + LLAMA % "{}}", r"call_[A-Za-z0-9]{24}"),
        ("llama4_pythonic", "[f(a=1), g()]", r"call_[A-Za-z0-9]{24}"),
    ],
)
def test_ids_are_made_in_the_shape_of_the_family(name: str, text: str, shape: str) -> None:
    ids = [call.id for call in toolgram.get_format(name).parse(text).tool_calls]
    assert all(re.fullmatch(shape, each) for each in ids)
    assert len({*ids}) == 2
