"""Llama 3 JSON: bare JSON calls in free text. Each requirement FR-001 to FR-013 by name, then the hostile cases.

Strategy: `parses` says once what a text means, and asks for it whole and streamed however it is split (FR-005 is so
exceeded by each test in the file).
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


def test_fr_001_all_calls() -> None:
    parses(F, None, [CALL_F])
    parses(f"{F} {G}", None, [CALL_F, CALL_G])
    parses(f"{F};{G};{F}", None, [CALL_F, CALL_G, CALL_F])
    parses("; ".join([F] * 12), None, [CALL_F] * 12)


def test_fr_002_text_before_and_after_is_kept() -> None:
    parses(f"I will look. {F}", "I will look.", [CALL_F])
    parses(f"{F} Done.", "Done.", [CALL_F])
    parses(f"I will look.\n\n{F}\n\nDone.", "I will look. Done.", [CALL_F])


def test_fr_003_text_is_in_the_one_content_field() -> None:
    text = 'Here is the result: {"name": "searchTool", "parameters": {"query": "test"}} Would you like to know more?'
    parses(text, "Here is the result: Would you like to know more?", [("searchTool", {"query": "test"})])


@pytest.mark.parametrize("before", ["", " ", "\n", "  \n\t "])
@pytest.mark.parametrize("after", ["", " ", "\n", "  \n\t "])
def test_fr_004_segments_are_stripped_at_the_seams_and_joined_by_one_space(before: str, after: str) -> None:
    parses(f"A{before}{F}{after}B", "A B", [CALL_F])
    parses(f"A{before}{F}{after}B{before}{G}{after}C", "A B C", [CALL_F, CALL_G])


def test_fr_004_what_touches_no_call_is_untouched() -> None:
    parses(f"  \n A  b {F}", "  \n A  b", [CALL_F])
    parses(f"{F} A  b \n ", "A  b \n ", [CALL_F])
    parses(f"A {F}  \n", "A", [CALL_F])


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


@pytest.mark.parametrize("before", ["", "Before."])
@pytest.mark.parametrize("between", ["", "between"])
@pytest.mark.parametrize("after", ["", "After."])
def test_fr_007_any_text_part_may_be_absent(before: str, between: str, after: str) -> None:
    content = " ".join(part for part in (before, between, after) if part) or None
    parses(f"{before} {F} {between} {G} {after}".rstrip(), content, [CALL_F, CALL_G])


@pytest.mark.parametrize(
    "text",
    [
        "Hello.",
        "  Hello.  \n",
        "\n\nHello\n\n\nthere ",
        "a; b, c;",
        '```python\nprint({"a": 1})\n```\n',
        "Ünïcödé 你好 👍🏽 \u200d \ufeff x",
        "tabs\tand\r\nlines\r",
        "null",
        "0",
    ],
)
def test_fr_008_without_calls_content_is_the_output(text: str) -> None:
    parses(text, text)


MALFORMED = [
    '{"name": "f", "parameters": }',
    '{"name": "f", "parameters": [1]}',
    '{"name": "f", "parameters": 3}',
    '{"name": "f", "parameters": null}',
    '{"name": "f", "parameters": "no object"}',
    '{"name": "f" "parameters": {}}',
    '{"name": 3, "parameters": {}}',
    '{"name": null, "parameters": {"a": 1}}',
    '{"name": ["f"], "parameters": {}}',
    '{"name": {"x": 1}, "parameters": {}}',
    '{name: "f", parameters: {}}',
    "{'name': 'f', 'parameters': {}}",
    '{"name": "f", "parameters": {a: 1}}',
    '{"name": "f", "parameters": {1: 1}}',
    '{"name": "f",, "parameters": {}}',
    '{"name": "f"; "parameters": {}}',
    '{"name"= "f", "parameters": {}}',
    '{"name": "f"}',
    '{"parameters": {}}',
    '{"id": "x", "type": "function"}',
    "{{}}",
    "{}",
    "{ }",
    '{"name": f}',
]


@pytest.mark.parametrize("text", MALFORMED)
def test_fr_009_malformed_json_is_content(text: str) -> None:
    parses(text, text)
    parses(f"Look: {text} \n", f"Look: {text} \n")


@pytest.mark.parametrize("text", MALFORMED)
def test_fr_009_later_valid_calls_are_still_found(text: str) -> None:
    parses(f"{text} then {F}", f"{text} then", [CALL_F])
    parses(f"{text}\n{F}\nbye", f"{text} bye", [CALL_F])
    parses(f"{F} {text} {G}", text, [CALL_F, CALL_G])


@pytest.mark.parametrize("text", ["", " ", "\n", " \t\r\n ", "\n" * 500])
def test_fr_010_whitespace_only_is_none(text: str) -> None:
    parses(text, None)
    parses(f"{text}{F}{text}", None, [CALL_F])
    parses(f"{text}{F}{text}{G}{text}", None, [CALL_F, CALL_G])
    parses(f"{text}<|eot_id|>", None)


def test_fr_011_text_between_calls_is_kept() -> None:
    parses(f"{F} and then {G}", "and then", [CALL_F, CALL_G])
    parses(f"One {F} two {G} three {F} four", "One two three four", [CALL_F, CALL_G, CALL_F])
    parses(f"{F}x{G}", "x", [CALL_F, CALL_G])


@pytest.mark.parametrize(
    "text",
    [
        "He said \"hello\" and 'bye'.",
        'C:\\temp\\new \\n \\\\ \\"',
        "{ } {} {{ }} }{ }}} {{{",
        '"{" and "}"',
        "a } b ] c",
        'open " quote { and no end',
        "\\{escaped\\}",
    ],
)
def test_fr_012_quotes_braces_and_backslashes_in_text(text: str) -> None:
    parses(text, text)
    parses(f"{F} {text}", text, [CALL_F])
    parses(f"{text}\n{F}", text, [CALL_F])


@pytest.mark.parametrize(
    "delimiter", ["", " ", "\n", ";", "; ", " ;", " ; ", ",", ", ", " , ", ";\n", "\n;\n", "\t", "\n\n\n"]
)
def test_fr_013_delimiters_between_calls_never_reach_content(delimiter: str) -> None:
    parses(f"{F}{delimiter}{G}", None, [CALL_F, CALL_G])
    parses(f"{F}{delimiter}{G}{delimiter}{F}", None, [CALL_F, CALL_G, CALL_F])
    parses(f"Hi {F}{delimiter}{G} bye", "Hi bye", [CALL_F, CALL_G])


@pytest.mark.parametrize("text", ["; and then", ", and", ";;", "; ;", ",;", "; x ;", ". "])
def test_fr_013_a_semicolon_in_text_is_text(text: str) -> None:
    parses(f"{F}{text} {G}", text.strip(), [CALL_F, CALL_G])


@pytest.mark.parametrize("text", [";", ",", " ; "])
def test_fr_013_a_delimiter_with_no_call_after_it_is_text(text: str) -> None:
    message = assert_same_however_split(fmt(), F + text)
    assert (message.content or "").strip() in ("", text.strip())
    parses(f"a; b{text}", f"a; b{text}")


def test_fr_013_a_semicolon_in_arguments_is_an_argument() -> None:
    parses('{"name": "f", "parameters": {"sql": "a; b, c;"}}', None, [("f", {"sql": "a; b, c;"})])


# --------------------------------------------------------------------------------------------------- prose stays prose


@pytest.mark.parametrize(
    "text",
    [
        "I used {searchTool} for this.",
        '{"a": 1} is a dict',
        '{"name": "Bingo", "age": 30}',
        "if (x) { return {}; }",
        "Let's use braces: {",
        '{"name": "John", "age": 30, "city": "New York"} is a person.',
        "Use {name} and {parameters}.",
        '{"',
        '{"name',
        '{"name":',
        '{"name": "f',
        '{"name": "f",',
        '{"name": "f", "parameters"',
        '{"name": "f", "parameters":',
        '{"name": "f", "parameters": ',
        '{"result": {"name": "f", "parameters": {}}}',
        '{"result": [{"name": "f", "parameters": {}}], "b": 1}',
        '{"name": "f", "description": "Does it.", "parameters": {"type": "object", "properties": {}}}',
        '{"name": "f", "strict": true, "parameters": {}}',
        'A schema: {"type": "object", "properties": {"name": {"type": "string"}}}',
        "#include <stdio.h>\n\nint main() {\n    return 0;\n}\n",
        "\\frac{a}{b} and {{ mustache }}",
        "fn main() -> Result<(), ()> { Ok(()) }",
        "<|py",
        "<|python_tag",
        "a <| b |> c",
        "<|python_tagg|>",
        "Name: f, parameters: a",
    ],
)
def test_prose_stays_prose(text: str) -> None:
    parses(text, text)


def test_prose_after_prose_that_looked_like_a_call() -> None:
    text = 'Example: {"name": "John", "age": 30} — now the weather: '
    parses(text + F, text.rstrip(), [CALL_F])


def test_a_brace_before_a_call_is_text() -> None:
    parses(f"Let's use braces: {{ {F}", "Let's use braces: {", [CALL_F])


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


# ----------------------------------------------------------------------------------------------------------- spellings


@pytest.mark.parametrize("key", ["parameters", "arguments"])
@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_keys_in_any_order(key: str, order: Sequence[int]) -> None:
    members = ['"name": "f"', f'"{key}": {{"name": "inner", "a": [1]}}', '"type": "function"', '"id": "call_1"']
    message = parses("{" + ", ".join(members[i] for i in order) + "}", None, [("f", {"name": "inner", "a": [1]})])
    if order.index(3) < order.index(1):
        assert message.tool_calls[0].id == "call_1"


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"f","parameters":{"a":1}}',
        '{ "name" : "f" , "parameters" : { "a" : 1 } }',
        '{\n  "name": "f",\n  "parameters": {\n    "a": 1\n  }\n}',
        '\n\n{"name": "f", "parameters": {"a": 1}}\n',
        '{"name": "\\u0066", "parameters": {"\\u0061": 1}}',
        '{"type": "function", "name": "f", "parameters": {"a": 1}}',
        '{"name": "f", "parameters": "{\\"a\\": 1}"}',
        '{"name": "f", "arguments": "{\\n  \\"a\\": 1\\n}"}',
        '{"name": "f", "parameters": "{\\u0022a\\u0022: 1}"}',
        '<|python_tag|>{"name": "f", "parameters": {"a": 1}}',
        '<|python_tag|> \n{"name": "f", "parameters": {"a": 1}}',
        '{"name": "f", "parameters": {"a": 1}}<|eom_id|>',
        '{"name": "f", "parameters": {"a": 1}}<|eot_id|>',
        '<|python_tag|>{"name": "f", "parameters": {"a": 1}} <|eom_id|>\n',
    ],
)
def test_spellings_of_one_call(text: str) -> None:
    parses(text, None, [CALL_F])


@pytest.mark.parametrize("marker", ["<|eom_id|>", "<|eot_id|>"])
def test_trailing_markers_are_dropped(marker: str) -> None:
    parses(f"Hello.{marker}", "Hello.")
    parses(f"Hello. \n{marker}\n", "Hello.")
    parses(f"{F}{marker}", None, [CALL_F])
    parses(f"{F} bye {marker}", "bye", [CALL_F])


def test_python_tag_after_text() -> None:
    parses(f"Let me see. <|python_tag|>{F}", "Let me see.", [CALL_F])
    parses(f"<|python_tag|>{F};{G}", None, [CALL_F, CALL_G])
    parses(f"<|python_tag|>{F}; <|python_tag|>{G}", None, [CALL_F, CALL_G])


@pytest.mark.parametrize(
    "text",
    ["Use <|python_tag|> to run code.", '<|python_tag|>print("hello")', "<|python_tag|>", "x <|python_tag|>  y "],
)
def test_a_python_tag_without_a_call_shows_in_content(text: str) -> None:
    parses(text, text)


@pytest.mark.parametrize("rest", ["<]Well. ", "+]x", "<}x", "+1), f(b=2)]"])
def test_a_call_after_the_tag_that_goes_on_is_malformed(rest: str) -> None:
    text = f"<|python_tag|>f(a=7){rest}"
    message = assert_same_however_split(fmt(), text, finish_reason="stop")
    assert [call.name for call in message.malformed] == ["f"]
    assert (message.content or "").split() == text.split()


def test_a_call_in_a_code_fence() -> None:
    parses(f"```json\n{F}\n```", None, [CALL_F], finish_reason="stop")
    parses(f"Look:\n```json\n{F}\n```\n", "Look:", [CALL_F], finish_reason="stop")
    parses(f"Look:\n```json\n{F}\n```\nDone.", f"Look:\n```json\n{F}\n```\nDone.", finish_reason="stop")
    parses(f"{F}\n```python\nx = 1\n```", "```python\nx = 1\n```", [CALL_F])


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"a": 1}\n```',
        '```json\n{"name": "Bingo", "age": 30}\n```\nok',
        "```json\n",
        "```json",
        "```",
        "``` ```json ``",
        "```python\nd = {}\n```\n",
    ],
)
def test_a_code_fence_without_a_call_is_text(text: str) -> None:
    parses(text, text)


def test_a_call_in_function_tags() -> None:
    parses('<function=f>{"a": 1}</function>', None, [CALL_F])
    parses('Hi <function=f>{"a": 1}</function> bye', "Hi bye", [CALL_F])
    for text in ("use <function=name> tags", "a </function> b", "<function"):
        parses(text, text)
    for text in ("<function=f>", "<function=f>{"):  # a name, and then the end
        assert statuses(assert_same_however_split(fmt(), text)) == [("f", "truncated")]


def test_inner_objects_of_a_failed_call_are_never_promoted() -> None:
    for text in (
        '{"name": "outer", "parameters": {bad: {"name": "inner", "parameters": {}}}}',
        '{"name": "outer", "x": {"name": "inner", "parameters": {}}}',
        '{"name": "outer" "parameters": {"name": "inner", "parameters": {}}}',
        '{"name": "outer", "parameters": 1 {"name": "inner", "parameters": {}}}',
        '{"name": "outer", "parameters": "{bad} {\\"name\\": \\"inner\\", \\"parameters\\": {}}"}',
        '{"name": "outer", "parameters": [{"name": "inner", "parameters": {}}]}',
        '[{"a": {"name": "inner", "parameters": {}}}]',
    ):
        message = assert_same_however_split(fmt(), text)
        assert message.tool_calls == [], text
        assert message.content == text
    message = assert_same_however_split(fmt(), '<|python_tag|>foo.call(payload={"name":"bar","parameters":{}}')
    assert statuses(message) == [("foo.call", "truncated")]


# ----------------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    "arguments",
    [
        "{}",
        "{ }",
        '{"a": {}}',
        '{"a": []}',
        '{"a": 3, "b": -4, "c": 0.5, "d": 1e-9, "e": 12345678901234567890, "f": 1.0}',
        '{"a": true, "b": false, "c": null}',
        '{"a": "}A{", "b": "]", "c": "\\"}", "d": "\\\\"}',
        '{"a": "[TOOL_CALLS] <|python_tag|> <|eom_id|>"}',
        '{"a": "{\\"name\\": \\"x\\", \\"parameters\\": {}}"}',
        '{"name": "inner", "parameters": {"name": "deeper", "parameters": {}}}',
        '{"a": "caf\\u00e9 \\ud83d\\ude00 é 👍"}',
        '{"a":   1.0,\n\t"b"  : [ 1 , 2 ] }',
        '{"a": {"b": {"c": {"d": [[[{"e": 1}]]]}}}}',
        '{"": ""}',
        '{"a": "\\b\\f\\n\\r\\t\\/"}',
    ],
)
def test_arguments_are_the_models_own_bytes(arguments: str) -> None:
    message = parses(f'{{"name": "f", "parameters": {arguments}}}', None, [("f", json.loads(arguments))])
    assert message.tool_calls[0].arguments == arguments


@pytest.mark.parametrize(
    ("raw", "escaped"), [("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r"), ("\x00", "\\u0000"), ("\x1f", "\\u001f")]
)
def test_raw_control_characters_in_strings_are_escaped(raw: str, escaped: str) -> None:
    text = f'{{"name": "f", "parameters": {{"code": "a{raw}b"}}}}'
    parses(text, None, [("f", {"code": f"a{raw}b"})])


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


def test_nested_name_does_not_hijack() -> None:
    parses('{"parameters": {"name": "inner"}, "name": "outer"}', None, [("outer", {"name": "inner"})])
    parses('{"name": "outer", "parameters": {"name": "inner"}}', None, [("outer", {"name": "inner"})])


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


@pytest.mark.parametrize(
    "broken", ['{"a": 1 2}', '{"a": 1,}', '{"a" 1}', '{"a": "x" "y"}', '{"a": 01}', '{"a": [1}', '{"a": .5}']
)
def test_malformed_arguments_end_the_call_and_promote_nothing(broken: str) -> None:
    for text in (
        f'{{"name": "f", "parameters": {broken}}} {G}',
        f'{{"name": "f", "parameters": {{"z": {{"name": "inner", "parameters": {{}}}}, "b": {broken}}}}} {G}',
    ):
        message = assert_same_however_split(fmt(), text)
        assert statuses(message) == [("f", "malformed"), ("g", "complete")], text


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


def test_truncated_second_call_leaves_the_first_complete() -> None:
    message = assert_same_however_split(fmt(), F + '; {"name": "g", "parameters": {"b": "x')
    assert statuses(message) == [("f", "complete"), ("g", "truncated")]
    assert message.content is None


# ---------------------------------------------------------------------------------------------------- ids, tools, bugs


def test_ids_are_call_and_24_characters() -> None:
    message = fmt().parse(f"{F}; {G}")
    ids = [call.id for call in message.tool_calls]
    assert all(re.fullmatch(r"call_[A-Za-z0-9]{24}", id) for id in ids)
    assert len(set(ids)) == 2


def test_an_id_before_the_arguments_is_used_and_one_after_is_dropped() -> None:
    given = parses('{"id": "call_x", "name": "f", "parameters": {"a": 1}}', None, [CALL_F])
    assert given.tool_calls[0].id == "call_x"
    late = parses('{"name": "f", "parameters": {"a": 1}, "id": "call_x"}', None, [CALL_F])
    assert late.tool_calls[0].id != "call_x"


def test_an_undeclared_function_is_text() -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    parses(f"{F}; {G}", f"; {G}", [CALL_F], tools=tools)
    assert parses(F, None, [CALL_F], tools=tools).anomalies == []


def test_clean_output_has_no_anomalies() -> None:
    assert parses(f"Sure. {F}; {G} Done.", "Sure. Done.", [CALL_F, CALL_G]).anomalies == []


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


def test_sglang_35562_a_leading_json_object_is_not_deleted() -> None:
    parses('{"a": 1} is a dict', '{"a": 1} is a dict')


def test_llama_cpp_16710_prose_json_is_no_call() -> None:
    parses('{"name":"Bingo","age":30}', '{"name":"Bingo","age":30}')
