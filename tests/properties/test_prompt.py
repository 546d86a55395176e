"""Clause 5, by brute force: what is held back is what some continuation could still change, and nothing more.

Strategy: after a beginning `t`, every continuation of a few tokens is tried, the end of the output among them. What
*all* of them say is certain, and a prompt parser has told it. The events are compared as rows of small items (one
per character of payload), so that half an event that is certain counts as well. Two things may wait although
their meaning is known: the blanks of a seam, which are told together, and the comma, colon and quote before a key or
a late value of the JSON around a call, which are told with it.
What is left of a call or a marker that the beginning may have begun is one token, so that three reach every outcome.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product

import pytest

import toolgram
from tests.strategies import grammar_literals
from tests.streams import run
from toolgram.events import Content, Dropped, Event, Malformed, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart

Item = tuple[str, ...]

DEPTH = 3

TOKENS: dict[str, tuple[str, ...]] = {
    "llama3_json": ("x", " ", "\n", ";", "{", "}", '"', '": ', "<|python_tag|>"),
    "llama4_pythonic": ("x", " ", ",", "[", "]", "(", ")", "=", "1", "'"),
    "mistral_v3": ("x", " ", "{", "}", "[", "]", ",", '"', "[TOOL_CALLS]"),
    "mistral_v11": ("x", " ", "{", "}", '"', "[TOOL_CALLS]", "[ARGS]"),
    "functionary_v3_2": ("x", " ", "\n", "{", "}", '"', ">", ">>>"),
    "gpt_oss": ("x", " ", "{", "}", '"', "<|channel|>", "<|message|>", "<|end|>"),
    "granite_3": ("x", " ", "{", "}", "[", "]", '"', "<|tool_call|>"),
    "hermes": ("x", " ", "{", "}", "[", '"', "<tool_call>", "</tool_call>"),
    "lfm2": ("x", " ", ",", "[", "]", "(", ")", "=", "1"),
}

# Texts that a beginning may be on the way to: what is left of one, wherever it was broken off, is a token as well.
GOALS: dict[str, tuple[str, ...]] = {
    "llama3_json": (
        '<|python_tag|>{"name": "f", "parameters": {}}',
        '{"name": "f", "parameters": {"a": 1}}',
        '{"parameters": {"a": 1}, "name": "f"}',
        '{"arguments": {"a": 1}, "name": "f"}',
        '{"id": "i", "name": "f", "arguments": {}}',
        '{"type": "function", "name": "f", "parameters": {}}',
        '{"function": {"name": "f", "parameters": {}}}',
        '"function": {"name": "f", "parameters": {}}}',
        '"name": "f", "parameters": {}}',
        '"parameters": {}, "name": "f"}',
        '"parameters": {}}',
        '"arguments": {}}',
        '"arguments": {}, "name": "f"}',
        '"id": "i", "name": "f", "parameters": {}}',
        '"function", "name": "f", "parameters": {}}',
        '"{\\"a\\": 1}"}',
        '": "f", "parameters": {}}',
        '", "parameters": {}}',
        '", "name": "f", "parameters": {}}',
        'a": {}}, "name": "f"}',
        '": {}}, "name": "f"}',
        ': {}}, "name": "f"}',
        '{}}, "name": "f"}',
        '}}, "name": "f"}',
        '}, "name": "f"}',
        "<|eot_id|>",
        "<|eom_id|>",
        "<|eot|>",
        "<|eom|>",
        "<function=f>{}</function>",
        '```json\n{"name": "f", "parameters": {}}\n```',
    ),
    "llama4_pythonic": (
        "[f(a=1)]",
        "[f()]",
        "[f({'a': 1})]",
        "f(a=1)]",
        ".g(a=1)]",
        "(a=1)]",
        "=1)]",
        "g(a=1)",
        "True)]",
        "'x')]",
        "<|python_start|>[f(a=1)]<|python_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|eot|>",
        "<|eom|>",
    ),
    "mistral_v3": (
        '[TOOL_CALLS] [{"name": "f", "arguments": {"a": 1}}]',
        '[TOOL_CALLS] {"name": "f", "arguments": {"a": 1}}',
        '[{"name": "f", "arguments": {"a": 1}}]',
        "[{'name': 'f', 'arguments': {'a': 1}}]",
        '{"name": "f", "arguments": {"a": 1}}',
        '{"arguments": {"a": 1}, "name": "f"}',
        '{"id": "i", "name": "f", "arguments": {"a": 1}}',
        '{"type": "function", "name": "f", "arguments": {}}',
        '"name": "f", "arguments": {}}',
        '"arguments": {}, "name": "f"}',
        '"arguments": {}}',
        '"id": "i", "name": "f", "arguments": {}}',
        '"function", "name": "f", "arguments": {}}',
        '"{\\"a\\": 1}"}',
        "null}",
        '": "f", "arguments": {}}',
        '", "arguments": {}}',
        '", "name": "f", "arguments": {}}',
        '}, "name": "f"}',
        "[/TOOL_CALLS]",
        "</s>",
    ),
    "mistral_v11": (
        "[TOOL_CALLS]f[ARGS]{}",
        "f[CALL_ID]i[ARGS]{}",
        "[CALL_ID]i[ARGS]{}",
        "f[ARGS]{}",
        "i[ARGS]{}",
        "[ARGS]{}",
        "{}",
        '"a": 1}',
        "[THINK]",
        "[/THINK]",
        "</s>",
    ),
    "functionary_v3_2": (
        ">>>all\nx",
        '>>>f\n{"a": 1}',
        'f\n{"a": 1}',
        '\n{"a": 1}',
        '{"a": 1}',
        '"a": 1}',
        "{}",
        "<|eot_id|>",
    ),
    "gpt_oss": (
        "to=functions.f<|channel|>final<|message|>{}",
        "to=f<|message|>{}",
        "f<|channel|>analysis<|message|>{}",
        "<|channel|>commentary to=f json<|message|>{}",
        "<|channel|>final<|message|>x",
        "<|channel|>analysis code<|message|>x",
        "commentary<|constrain|>json<|message|>x",
        "<|start|>assistant<|channel|>",
        "functions.f<|message|>{}",
        "<|message|>{}",
        '{"a": 1}<|call|>',
        '"a": 1}',
        "<|call|>",
        "<|return|>",
        "<|end|>",
    ),
    "granite_3": (
        '<|tool_call|>[{"name": "f", "arguments": {"a": 1}}]',
        '<tool_call>{"name": "f", "arguments": {"a": 1}}',
        '[{"name": "f", "arguments": {"a": 1}}]',
        "[{'name': 'f', 'arguments': {'a': 1}}]",
        '{"name": "f", "arguments": {"a": 1}}',
        '{"arguments": {"a": 1}, "name": "f"}',
        '{"arguments": "{\\"a\\": 1}", "name": "f"}',
        '"name": "f", "arguments": {}}',
        '"arguments": {}, "name": "f"}',
        '"arguments": {}}',
        '"{\\"a\\": 1}"}',
        "null}",
        '": "f", "arguments": {}}',
        '", "arguments": {}}',
        '", "name": "f", "arguments": {}}',
        '}, "name": "f"}',
        "<think>",
        "</think><response>",
        "</response>",
        "<|end_of_text|>",
    ),
    "hermes": (
        '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>',
        '<tool_call>[{"name": "f", "parameters": {"a": 1}}]',
        '[{"name": "f", "arguments": {"a": 1}}]',
        "{'name': 'f', 'arguments': {'a': 1}}",
        '{"name": "f", "arguments": {"a": 1}}',
        '{"arguments": {"a": 1}, "name": "f"}',
        '{"parameters": {"a": 1}, "name": "f"}',
        '{"parameters": "{\\"a\\": 1}", "name": "f"}',
        '{"id": "i", "name": "f", "arguments": {"a": 1}}',
        '{"type": "function", "name": "f", "arguments": {}}',
        '"name": "f", "arguments": {}}',
        '"arguments": {}, "name": "f"}',
        '"arguments": {}}',
        '"parameters": {}}',
        '"{\\"a\\": 1}"}',
        "null}",
        '": "f", "arguments": {}}',
        '", "arguments": {}}',
        '", "name": "f", "arguments": {}}',
        '}, "name": "f"}',
        "</tool_call>",
        "<think>",
        "</think>",
        "<|im_end|>",
    ),
    "lfm2": (
        "<|tool_call_start|>[f(a=1)]<|tool_call_end|>",
        "[f(a=1)]",
        "[f()]",
        "f(a=1)]",
        "(a=1)]",
        "({'a': 1})]",
        "=1)]",
        "g(a=1)",
        "True)]",
        "'x')]",
        "<think>",
        "</think>",
        "<|im_end|>",
    ),
}

SCENES: dict[str, tuple[str, ...]] = {
    "llama3_json": (
        'I used {searchTool} for {"a": 1}. ',
        'Hi {"name": "f", "parameters": {"a": [1, "x"]}}; {"id": "1", "name": "g", "arguments": {}} bye',
        '<|python_tag|>{"type": "function", "parameters": {"a": {}}, "name": "f"}<|eom_id|>',
        '{"name": "Bingo", "age": 30}',
        '{"name": "f", "parameters": "{\\"x\\": \\"a\\\\n\\"}"} ; x',
        '{"result": {"name": "f", "parameters": {}}} y',
        '{"name": "f", "parameters": {"a": tru}} z',
        "a < b <| c <|python_tag|>print(1)",
    ),
    "llama4_pythonic": (
        "see items[0] and [1, 2] or [x](y) ",
        "Hi [f(a=1, b='x\\n\\x41', c=[1, {'k': None}]), g.h()] bye",
        "<|python_start|>[f(a=-1.5, b=(1, 2), c=\"p\" 'q', d=true)]<|python_end|>x",
        "[f(a=b)] [g(1)] [h(a=1, 2)]",
        "a < b <| c [f",
    ),
    "mistral_v3": (
        'Hi [TOOL_CALLS] [{"name": "f", "arguments": {"a": "x\\n"}, "id": "abc"}, {"arguments": {}, "name": "g"}] bye',
        '[TOOL_CALLS]{"name": "f", "arguments": "{\\"a\\": 1}"}[/TOOL_CALLS] x',
        "the [TOOL and [TOOL_CALLS] docs",
        '[TOOL_CALLS] [{"name": "f", "arguments": null}] [TOOL_CALLS]x',
        '[TOOL_CALLS] [{"x": 1}] [TOOL_CALLS] [{"name": "f", "arguments": {"a": b}}] x',
    ),
    "mistral_v11": (
        'Hi [TOOL_CALLS]f[ARGS]{"a": "x\\n", "b": [1]} and [TOOL_CALLS]g{"a": 1}x',
        "[THINK] hm [TOOL [/THINK] so [TOOL_CALLS]f [ARGS] {} ",
        '[TOOL_CALLS]f[CALL_ID]abc123def[ARGS]{"a": tru}} x',
        "the [TOOL_CALLS] docs [ARGS] {} ",
        '[THINK]a[TOOL_CALLS]f[ARGS]{"a": 1}',
    ),
    "functionary_v3_2": (
        'Hi >> x>>>all\nyes >>>f\n{"a": "x\\n", "b": [1]}>>>g {}<|eot_id|>',
        ">>>python\nprint(1) >>>> a",
        '>>>f\n{"a": tru}} x>>>al >>>all y',
    ),
    "gpt_oss": (
        "<|channel|>analysis<|message|> a <|end|><|start|>assistant<|channel|>",
        '<|channel|>commentary to=f json<|message|>{"a": [1]}',
        ' to=functions.f<|channel|>commentary <|constrain|>json<|message|>{"a": "x"}<|call|> to=x',
        "a to=f <|channel|>finale <|channel|>final<|message|>b <|message|> c<|return|>",
        'to=python<|channel|>analysis code<|message|>print(1)<|call|><|start|>user<|message|>{"a": tru}',
        '<|start|>assistant to=f<|message|>{"a": tru}} x<|end|> to=functions.',
    ),
    "granite_3": (
        '<think>a</think> <response>b </response><|tool_call|>[{"name": "f", "arguments": {"a": "x\\n"}}] c',
        '<|tool_call|> {"arguments": "{\\"a\\": 1}", "name": "f"}x<response>',
        '<tool_call>[{"x": 1}] the </response> and <think>b<|tool_call|>[{"name": "f", "arguments": {"a": b}}] x',
        "</think><response> a <|tool",
    ),
    "hermes": (
        'Hi <tool_call>\n{"name": "f", "arguments": {"a": "x\\n"}}\n</tool_call>\n</tool_call> bye',
        "<think> a <b> </think> the <tool_call> tag {x}",
        '<tool_call>{"parameters": "{\\"a\\": 1}", "name": "f"} {"name": "g", "arguments": {}} {x',
        '<think>a<tool_call>{"name": "f", "arguments": {"a": b}}</tool_call> x<|im_end|>',
    ),
    "lfm2": (
        "Hi [f(a=1)] <|tool_call_start|>[f(a=1, b='x\\n', c=[1, {'k': None}]), g.h()]<|tool_call_end|> bye",
        "<think> a [ </think> the <|tool_call_start|> [x] <|im_end|>",
        "<|tool_call_start|>[f(a=b), g(1)] x",
        "<think>a<|tool_call_start|> [ f(), g(a=1), ] x",
    ),
}


def items_of(events: Sequence[Event]) -> Iterator[Item]:
    """The events as one item per character told, so that events cut in two compare as one."""
    for event in events:
        match event:
            case Content() | Reasoning() | Malformed():
                yield from ((event.type, character) for character in event.text)
            case Dropped():
                yield from (("dropped", character) for character in event.text)
            case ToolCallStart():
                yield ("start", str(event.index), event.name)
            case ToolCallDelta():
                yield from (("delta", str(event.index), character) for character in event.arguments)
            case ToolCallEnd():
                yield ("end", str(event.index), event.status)


@lru_cache(maxsize=200_000)
def _outcome(name: str, text: str) -> tuple[Item, ...]:
    return tuple(items_of(run(toolgram.get_format(name), [text])[0]))


def _told(name: str, text: str) -> tuple[Item, ...]:
    return tuple(items_of(toolgram.get_format(name).parser().feed(text)))


def _common(first: tuple[Item, ...], second: tuple[Item, ...]) -> tuple[Item, ...]:
    for at, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return first[:at]
    return min(first, second, key=len)


def remainders(name: str, beginning: str) -> list[str]:
    """What is left of every goal that `beginning` may have begun, the whole goal included."""
    return [
        goal[at:]
        for goal in (*GOALS[name], *grammar_literals(name))
        for at in range(len(goal))
        if beginning.endswith(goal[:at])
    ]


def certain_but_held(name: str, beginning: str) -> tuple[Item, ...]:
    """Items that every continuation agrees on and that `beginning` has not told; empty where holding is justified."""
    told = _told(name, beginning)
    certain = _outcome(name, beginning)
    for depth in range(1, DEPTH + 1):
        assert certain[: len(told)] == told, f"{beginning!r}: told {told}, and a continuation means {certain}"
        if len(certain) == len(told) or _may_wait(certain[len(told)]):
            return ()
        first = (*remainders(name, beginning), *TOKENS[name])
        for continuation in product(first, *[TOKENS[name]] * (depth - 1)):
            certain = _common(certain, _outcome(name, beginning + "".join(continuation)))
            if len(certain) <= len(told):
                break
    return () if _may_wait(certain[len(told)]) else certain[len(told) :]


def _may_wait(item: Item) -> bool:
    return item[0] == "dropped" and item[1] in ' \t\r\n,:"'


def _show(items: tuple[Item, ...]) -> str:
    return ", ".join(f"{kind} {text!r}" for kind, text in _runs(items))


def _runs(items: tuple[Item, ...]) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for *kind, text in items:
        row = " ".join(kind)
        rows[-1:] = [(row, rows[-1][1] + text)] if rows and rows[-1][0] == row else [*rows[-1:], (row, text)]
    return rows


def _explain(name: str, beginning: str, held: tuple[Item, ...]) -> str:
    return (
        f"after {beginning!r} all continuations of {DEPTH} tokens, and the end, agree on {_show(held)}, "
        "yet it was not told"
    )


@pytest.mark.parametrize(("name", "scene"), [(n, s) for n, scenes in SCENES.items() for s in scenes])
def test_nothing_certain_is_held_back(name: str, scene: str) -> None:
    failures = []
    for end in range(1, len(scene) + 1):
        if held := certain_but_held(name, scene[:end]):
            failures.append(_explain(name, scene[:end], held))
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("name", SCENES)
def test_nothing_certain_is_held_back_after_any_two_tokens(name: str) -> None:
    failures = []
    for tokens in [*((t,) for t in TOKENS[name]), *product(TOKENS[name], repeat=2)]:
        if held := certain_but_held(name, "".join(tokens)):
            failures.append(_explain(name, "".join(tokens), held))
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("name", SCENES)
def test_nothing_told_is_ever_changed(name: str) -> None:
    """The other half: what was told is a beginning of what every continuation means."""
    for tokens in product((*TOKENS[name], *GOALS[name]), TOKENS[name], (*TOKENS[name], *GOALS[name][:3])):
        text = "".join(tokens)
        for end in range(1, len(text)):
            told = _told(name, text[:end])
            assert _outcome(name, text)[: len(told)] == told, f"{text[:end]!r} then {text[end:]!r}"


@pytest.mark.parametrize(
    ("name", "text", "held"),
    [
        ("llama3_json", "Hello", ""),
        ("llama3_json", "Hello ", " "),
        ("llama3_json", "I used {", " {"),
        ("llama3_json", "I used {s", ""),
        ("llama3_json", '{"a": 1} is a dict', ""),
        ("llama3_json", '{"name": "Bingo", "a', '{"name": "Bingo", "a'),
        ("llama3_json", '{"name": "Bingo", "ag', ""),
        ("llama3_json", "1 <", " <"),
        ("llama3_json", "1 < 2", ""),
        ("llama3_json", '{"name": "f", "parameters": {', '{"name": "f", "parameters": {'),
        ("llama3_json", '{"name": "f", "parameters": {"', ""),
        ("llama3_json", '{"name": "f", "parameters": {"a": "some te', ""),
        ("llama4_pythonic", "see [1", ""),
        ("llama4_pythonic", "see [f", " [f"),
        ("llama4_pythonic", "see [f]", ""),
        ("llama4_pythonic", "[f(a=", "[f(a="),
        ("llama4_pythonic", "[f(a='some te", ""),
        ("mistral_v3", "Hi [TOOL", " [TOOL"),
        ("mistral_v3", "Hi [TOOLS", ""),
        ("mistral_v3", '[TOOL_CALLS] [{"name": "f", "arguments": {"a": "x', ""),
        ("mistral_v11", "Hi [TOOL", " [TOOL"),
        ("mistral_v11", "[TOOL_CALLS]get_wea", "[TOOL_CALLS]get_wea"),
        ("mistral_v11", '[TOOL_CALLS]f[ARGS]{"a": "x', ""),
        ("mistral_v11", "[THINK]because", ""),
        ("functionary_v3_2", "a >>", " >>"),
        ("functionary_v3_2", ">>>al", ">>>al"),
        ("functionary_v3_2", ">>>all\nx", ""),
        ("functionary_v3_2", ">>>f\n", ">>>f\n"),
        ("functionary_v3_2", ">>>python\nprint", ""),
        ("functionary_v3_2", '>>>f\n{"', ""),
        ("gpt_oss", " to=functions.f", " to=functions.f"),
        ("gpt_oss", " to be", ""),
        ("gpt_oss", "x to=f", ""),
        ("gpt_oss", "<|channel|>final", "<|channel|>final"),
        ("gpt_oss", "<|channel|>final<|message|>", ""),
        ("gpt_oss", "to=f<|message|>", "to=f<|message|>"),
        ("gpt_oss", 'to=f<|message|>{"', ""),
        ("granite_3", "</think> <resp", ""),
        ("granite_3", "<think></think> <resp", " <resp"),
        ("granite_3", '<|tool_call|>[{"name": "f", "arguments": {"a": "x', ""),
        ("hermes", "the <tool", " <tool"),
        ("hermes", "the <tools", ""),
        ("hermes", "<tool_call>\n{", "<tool_call>\n{"),
        ("hermes", "<tool_call> tags", ""),
        ("hermes", '<tool_call>\n{"name": "f", "arguments": {"', ""),
        ("lfm2", "see [f(a=", ""),
        ("lfm2", "<|tool_call_start|>[f", "<|tool_call_start|>[f"),
        ("lfm2", "<|tool_call_start|>[f()", ""),
    ],
)
def test_what_is_held(name: str, text: str, held: str) -> None:
    parser = toolgram.get_format(name).parser()
    told = "".join(event.source for character in text for event in parser.feed(character))
    assert text[len(told) :] == held
