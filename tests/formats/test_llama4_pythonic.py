"""Llama 4 pythonic: calls as a Python list, read by a scanner and never evaluated.

Strategy: as in `test_llama3_json`, each text is asked whole and streamed in deltas of many sizes.
"""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import pytest

import toolgram
from tests.json_prefix import complete, is_json_prefix
from tests.streams import assert_parses, assert_same_however_split, held_after
from toolgram.events import ToolCallDelta, ToolCallEnd, ToolCallStart

parses = partial(assert_parses, "llama4_pythonic")
CALL_F = ("f", {"a": 1})


def fmt() -> toolgram.Format:
    return toolgram.get_format("llama4_pythonic")


def arguments_after(text: str) -> str:
    """What was streamed of the last call's arguments when `text` had arrived, one character at a time."""
    parser = fmt().parser()
    return "".join(e.arguments for c in text for e in parser.feed(c) if isinstance(e, ToolCallDelta))


def test_the_example_of_the_format() -> None:
    parses(
        '[f(a=1, b="x", c=[1, {"k": None}]), g()]', None, [("f", {"a": 1, "b": "x", "c": [1, {"k": None}]}), ("g", {})]
    )


@pytest.mark.parametrize(
    "text",
    [
        "[f(a=1)]",
        "[ f(a=1) ]",
        "[f( a=1 )]",
        "[f(a = 1)]",
        "[\n  f(\n    a=1\n  )\n]",
        "[f(a=1,)]",
        "[f(a=1),]",
        "[f(a=1, ), ]",
        "<|python_start|>[f(a=1)]<|python_end|>",
        "<|python_start|> [f(a=1)] <|python_end|>",
        "<|python_start|>\n[f(a=1)]\n<|python_end|>\n",
        "<|python_start|>[f(a=1)]",
        "\n\n[f(a=1)]",
        "[f(a=1)]\n",
        "[f(a=1)]<|eot_id|>",
        "[f(a=1)]<|eom_id|>",
        "<|python_start|>[f(a=1)]<|python_end|><|eot_id|>",
    ],
)
def test_spellings_of_one_call(text: str) -> None:
    parses(text, None, [CALL_F])


@pytest.mark.parametrize("text", ["[f({'a': 1})]", '[f({"a": 1},)]', "[ f( {'a' : 1} ) ]"])
def test_one_dict_as_the_only_positional_argument_is_the_arguments(text: str) -> None:
    parses(text, None, [CALL_F])
    parses(f"{text} {text} ok", "ok", [CALL_F, CALL_F])
    parses("[f({}), g()]", None, [("f", {}), ("g", {})])


@pytest.mark.parametrize("separator", [", ", ",", " , ", ",\n", ",\n  "])
def test_parallel_calls(separator: str) -> None:
    parses(f"[f(a=1){separator}g(){separator}f(a=1)]", None, [CALL_F, ("g", {}), CALL_F])


@pytest.mark.parametrize("name", ["f", "get_weather", "a.b.c", "_x", "Say2", "math.gcd", "from.import", "SQL.makeFrom"])
def test_names(name: str) -> None:
    parses(f"[{name}(a=1)]", None, [(name, {"a": 1})])
    parses(f"[{name}()]", None, [(name, {})])


@pytest.mark.parametrize("key", ["from", "class", "import", "lambda", "None", "True", "a1", "_", "def", "é"])
def test_keyword_names_are_parameter_names(key: str) -> None:
    parses(f"[f({key}=1)]", None, [("f", {key: 1})])
    parses(f"[f(x=2, {key}=1)]", None, [("f", {"x": 2, key: 1})])


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("1", 1),
        ("0", 0),
        ("-1", -1),
        ("1.5", 1.5),
        ("-3.14", -3.14),
        ("1.0", 1.0),
        ("1e5", 1e5),
        ("-2.5E-3", -2.5e-3),
        ("12345678901234567890", 12345678901234567890),
        (".5", 0.5),
        ("5.", 5.0),
        ("1_000", 1000),
        ("+7", 7),
        ("True", True),
        ("False", False),
        ("None", None),
        ("true", True),
        ("false", False),
        ("null", None),
        ("[]", []),
        ("[1, 2, 3]", [1, 2, 3]),
        ("[1, 2, 3,]", [1, 2, 3]),
        ("[ 1 ,\n2 ]", [1, 2]),
        ("()", []),
        ("(1,)", [1]),
        ("(1, 2)", [1, 2]),
        ("((1, 2), (3, 4))", [[1, 2], [3, 4]]),
        ("{}", {}),
        ("{'k': 1}", {"k": 1}),
        ("{\"k\": None, 'l': True}", {"k": None, "l": True}),
        ("{'k': {'l': [{'m': ()}]}}", {"k": {"l": [{"m": []}]}}),
        ("{'k': 1,}", {"k": 1}),
        ("[true, None, 'x', -1]", [True, None, "x", -1]),
        ("''", ""),
        ('""', ""),
        ("'x'", "x"),
        ('"it\'s"', "it's"),
        ("'say \"hi\"'", 'say "hi"'),
        (r"'it\'s'", "it's"),
        (r'"say \"hi\""', 'say "hi"'),
        (r"'a\nb\tc\\d'", "a\nb\tc\\d"),
        (r"'\x41\u00e9\U0001F600'", "Aé😀"),
        (r"'\a\b\f\v\r\0'", "\a\b\f\v\r\0"),
        (r"'\d \w \.'", r"\d \w \."),
        ("'hello]world) , x=1'", "hello]world) , x=1"),
        ("'raw\nnewline'", "raw\nnewline"),
        ("'raw\ttab'", "raw\ttab"),
        ("'你好 👍'", "你好 👍"),
        ("'<|python_end|> [g(b=2)]'", "<|python_end|> [g(b=2)]"),
        ('\'{"name": "x", "parameters": {}}\'', '{"name": "x", "parameters": {}}'),
    ],
)
def test_literals(literal: str, value: Any) -> None:
    message = parses(f"[f(a={literal})]", None, [("f", {"a": value})])
    assert type(json.loads(message.tool_calls[0].arguments)["a"]) is type(value)
    parses(
        f"[f(x='y', a={literal}, b=2), g(c={literal})]",
        None,
        [("f", {"x": "y", "a": value, "b": 2}), ("g", {"c": value})],
    )


def test_numbers_are_the_models_own() -> None:
    message = parses("[f(a=1.0, b=1.50, c=1e5)]", None, [("f", {"a": 1.0, "b": 1.5, "c": 1e5})])
    assert re.sub(r"\s", "", message.tool_calls[0].arguments) == '{"a":1.0,"b":1.50,"c":1e5}'


@pytest.mark.parametrize("before", ["", "Let me look. ", "\n\n", "A\n"])
@pytest.mark.parametrize("after", ["", " Done.", "\n", "\n\nB"])
@pytest.mark.parametrize("tagged", [False, True])
def test_text_before_and_after(before: str, after: str, tagged: bool) -> None:
    call = "<|python_start|>[f(a=1)]<|python_end|>" if tagged else "[f(a=1)]"
    content = " ".join(part.strip() for part in (before, after) if part.strip()) or None
    parses(f"{before}{call}{after}", content, [CALL_F])


def test_several_lists() -> None:
    parses("One [f(a=1)] two [g()] three", "One two three", [CALL_F, ("g", {})])
    parses("[f(a=1)]\n[g()]", None, [CALL_F, ("g", {})])


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2, 3]",
        "items[0]",
        "Use items[0] and items[i] or matrix[1, 2].",
        "[link](https://example.org)",
        "[a, b]",
        "[x for x in range(10)]",
        "[]",
        "[[]]",
        "[None]",
        "['f', {'a': 1}]",
        "[('f', {'a': 1})]",
        "[{'name': 'f', 'params': {'a': 1}}]",
        "[1] see [2]",
        "[see the docs]",
        "f(a=1)",
        "call f(a=1, b=2) now",
        "(see [RFC 8259])",
        "x = [",
        "x = [f",
        "x = [f(",
        "x = [f(a",
        "x = [f(a=",
        "[f.]",
        "[.f(a=1)]",
        "[f a=1]",
        "[1f(a=1)]",
        "<|python",
        "- [ ] todo\n- [x] done",
        "[fibonacci(20)]",
        "[f(x)]",
        "[f(*args)]",
        "[f({'a': 1}, {'b': 2})]",
        "[f(1, a=2)]",
        "\n\nNone",
    ],
)
def test_prose_stays_prose(text: str) -> None:
    parses(text, text)


def test_prose_before_a_call() -> None:
    parses("items[0] and [1, 2] then [f(a=1)] ok", "items[0] and [1, 2] then ok", [CALL_F])
    parses("[ [f(a=1)]", "[", [CALL_F])
    parses("[fibonacci(20)] or [f(a=1)]", "[fibonacci(20)] or", [CALL_F])


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("see [", " ["),
        ("see [1", ""),
        ("see [f", " [f"),
        ("see [f.g", " [f.g"),
        ("see [f]", ""),
        ("see [f(1", ""),
        ("see [f(a)", ""),
        ("see [f(a=", " [f(a="),
        ("see [f(a=x", ""),
        ("see [f(a=1", ""),
    ],
)
def test_held_text_is_released_at_the_first_character_that_decides(text: str, held: str) -> None:
    assert held_after("llama4_pythonic", text) == held


def test_arguments_stream_while_the_call_is_written() -> None:
    assert complete(arguments_after('[f(a=1, b="some lo')) == {"a": 1, "b": "some lo"}
    assert complete(arguments_after("[f(a=[1, {'k': 'v")) == {"a": [1, {"k": "v"}]}
    assert complete(arguments_after("[f(a='x', b=(1, 2")) in ({"a": "x", "b": [1, 2]}, {"a": "x", "b": [1]})
    assert complete(arguments_after("[f(a='it\\'s")) == {"a": "it's"}


def test_every_beginning_streams_honest_json() -> None:
    text = "[f(a=-1.5, b='x\\'yz', c=[1, {\"k\": None, 'l': (True,)}], d=\"\\x41\\n\"), g()]"
    final = [json.loads(c.arguments) for c in fmt().parse(text).tool_calls]
    assert final == [{"a": -1.5, "b": "x'yz", "c": [1, {"k": None, "l": [True]}], "d": "A\n"}, {}]
    for at in range(len(text)):
        message = fmt().parse(text[:at])
        for call in message.tool_calls:
            assert is_json_prefix(call.arguments)
            assert call.status == "complete" or at <= text.index("), g") or call.name == "g"


def test_truncated_at_every_character() -> None:
    text = "[get_weather(city='San Jos\\u00e9', n=[1, 2])]"
    for at in range(1, len(text) - 2):
        message = fmt().parse(text[:at], finish_reason="length")
        if at <= text.index("'"):
            assert (message.content, message.tool_calls) == (text[:at], [])
        else:
            (call,) = message.tool_calls
            assert (call.name, call.status, message.content) == ("get_weather", "truncated", None)
            complete(call.arguments)


def test_an_unclosed_list_leaves_its_calls_complete() -> None:
    parses("[f(a=1)", None, [CALL_F])
    parses("[f(a=1), g()", None, [CALL_F, ("g", {})])
    parses("[f(a=1), ", None, [CALL_F])


@pytest.mark.parametrize(
    "value",
    [
        "__import__('os').system('x')",
        "open('/etc/passwd')",
        "1 + 1",
        "x",
        "lambda: 1",
        "f'{x}'",
        "g(1)",
        "a.b",
        "3.5/100",
        "...",
    ],
)
def test_nothing_is_evaluated(value: str) -> None:
    text = f"[f(a={value})] [g()]"
    message = assert_same_however_split(fmt(), text)
    assert [c.name for c in message.tool_calls if c.status == "complete"] == ["g"]
    assert message.content is not None


def test_a_call_that_breaks_leaves_the_calls_before_and_after() -> None:
    message = assert_same_however_split(fmt(), "[f(a=1), g(b='x' + 'y'), h(c=2)] ok [k(d=3)]")
    complete_calls = [c.name for c in message.tool_calls if c.status == "complete"]
    assert complete_calls[0] == "f"
    assert complete_calls[-1] == "k"
    assert "g" not in complete_calls
    assert message.content is not None
    assert message.content.endswith("ok")


def test_deep_values() -> None:
    parses("[f(a=" + "[" * 60 + "]" * 60 + ")]", None, [("f", {"a": json.loads("[" * 60 + "]" * 60)})])


def test_markers_without_a_list_show_in_content() -> None:
    for text in ("Use <|python_start|> to call.", "<|python_start|>hello"):
        parses(text, text)


def test_ids_tools_and_finish_reason() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    message = parses("[f(a=1), g()]", None, [CALL_F, ("g", {})], tools=tools)
    assert [a.kind for a in message.anomalies] == ["unknown_tool"]
    assert message.finish_reason == "tool_calls"
    parsed = fmt().parse("[f(a=1), g()]")
    assert all(re.fullmatch(r"call_[A-Za-z0-9]{24}", call.id) for call in parsed.tool_calls)
    assert parsed.anomalies == []


def test_vllm_22917_text_before_the_list_does_not_hide_it() -> None:
    parses(
        "To determine the weather, I will look it up. [w(c='Dublin')]",
        "To determine the weather, I will look it up.",
        [("w", {"c": "Dublin"})],
    )


def test_vllm_44777_negative_numbers() -> None:
    parses("[move(x=-10, y=5, z=-3.14)]", None, [("move", {"x": -10, "y": 5, "z": -3.14})])


def test_vllm_47906_json_literals() -> None:
    parses("[c(a=true, b=false, c=null)]", None, [("c", {"a": True, "b": False, "c": None})])


def test_sglang_31912_a_bracket_in_a_string() -> None:
    parses('[search(query="hello]world")]', None, [("search", {"query": "hello]world"})])


def test_a_second_call_in_the_same_delta_is_not_lost() -> None:
    events = fmt().parser().feed("[f(a=1), g()]")
    assert [e.name for e in events if isinstance(e, ToolCallStart)] == ["f", "g"]
    assert [e.status for e in events if isinstance(e, ToolCallEnd)] == ["complete", "complete"]


def test_no_arguments_are_streamed_as_an_empty_object() -> None:
    assert arguments_after("[g()]") == "{}"
