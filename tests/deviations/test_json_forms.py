"""What models write of JSON around calls and in them, in every format that writes JSON: one table for all of them.

Strategy: the examples of a format that hold the call `get_weather` with `{"city": "Paris"}`. In each, the arguments, or
the object around them, are replaced by what a row says. The result must be the calls and the content of the example,
other arguments where the row has some, and an anomaly; whole, and however the text is split into deltas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import toolgram
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split, calls_of

ARGUMENTS = '{"city": "Paris"}'
PARIS: dict[str, Any] = {"city": "Paris"}
AROUND = re.compile(r'\{"(?:tool_call_id|name|tool_name)": ?"[^{]*\{"city": "Paris"\}[^{}]*\}')
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("get_weather", "get_time")
]
# Bare JSON is as it stands, or it is text: nothing of it is repaired.
BARE = ("llama3_json", "xlam")
# Calls of these are closed by nothing but the next one, or by the end of the turn.
UNCLOSED = ("functionary_v3_2", "glm4")
# In these a code fence is around the object anyway.
FENCED = ("deepseek_v3", "deepseek_v31")
UNCLOSED_KINDS = ("unclosed_arguments", "unclosed_envelope", "repaired_json")

REPAIRS: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "a trailing comma": ('{"city": "Paris",}', PARIS, {"repaired_json"}),
    "no comma": ('{"city": "Paris" "days": 2}', {"city": "Paris", "days": 2}, {"repaired_json"}),
    "no comma at a line end": ('{"city": "Paris"\n "days": 2}', {"city": "Paris", "days": 2}, {"repaired_json"}),
    "a comment behind a comma": ('{"city": "Paris", // or Oslo\n "days": 2}', {**PARIS, "days": 2}, {"repaired_json"}),
    "a comment behind a string": ('{"city": "Paris" // or Oslo\n}', PARIS, {"repaired_json"}),
    "a block comment": ('{/* where */"city": "Paris" /* or Oslo */}', PARIS, {"repaired_json"}),
    "a comment of Python": ('{"city": "Paris", # or Oslo\n "days": 2}', {**PARIS, "days": 2}, {"repaired_json"}),
    "a comment of Python behind a string": ('{"city": "Paris" # or Oslo\n}', PARIS, {"repaired_json"}),
    "single quotes": ("{'city': 'Paris'}", PARIS, {"repaired_json"}),
    "a key without quotes": ('{city: "Paris"}', PARIS, {"repaired_json"}),
    "words of Python": ('{"city": None, "a": True}', {"city": None, "a": True}, {"repaired_json"}),
    "a colon twice": ('{"city":: "Paris"}', PARIS, {"repaired_json"}),
    "an illegal escape": ('{"city": "\\d+"}', {"city": "\\d+"}, {"repaired_json"}),
    "a raw control character": ('{"city": "a\nb"}', {"city": "a\nb"}, {"repaired_json"}),
    "no finite number": ('{"a": NaN, "b": -Infinity}', {"a": "NaN", "b": "-Infinity"}, {"repaired_json"}),
    "a quote inside a string": ('{"city": "a "b" c"}', {"city": 'a "b" c'}, {"repaired_json"}),
    "a key twice": ('{"city": "Oslo", "city": "Paris"}', PARIS, {"repeated_argument"}),
    "braces too many": ('{"city": "Paris"}}}', PARIS, {"surplus_closer"}),
    "no inner brace": ('{"city": {"a": 1}', {"city": {"a": 1}}, {*UNCLOSED_KINDS}),
}  # fmt: skip


def examples(name: str) -> Iterator[tuple[str, str]]:
    """The first example of a format that has the arguments: its prefix and its text."""
    for example in toolgram.get_format(name).machine_dict["format"]["canonical"]:
        prefix, text = (example.get("prefix", ""), example["output"]) if isinstance(example, dict) else ("", example)
        if ARGUMENTS in text:
            yield prefix, text
            return


JSON_FORMATS = [name for name in toolgram.format_names() if any(examples(name))]
ENVELOPES = [name for name in JSON_FORMATS if any(AROUND.search(text) for _, text in examples(name))]


def read(name: str, prefix: str, text: str, reason: str | None = None) -> toolgram.Message:
    fmt = toolgram.get_format(name)
    return assert_same_however_split(fmt, text, prefix=prefix, tools=TOOLS, finish_reason=reason)


def check(
    name: str,
    prefix: str,
    example: str,
    text: str,
    arguments: dict[str, Any],
    kinds: set[str],
    reason: str | None = None,
) -> None:
    wanted = read(name, prefix, example)
    message = read(name, prefix, text, reason)
    assert [(call, status) for call, _, status in calls_of(message)] == [
        (call, "complete") for call, _, _ in calls_of(wanted)
    ]
    assert json.loads(message.tool_calls[0].arguments) == arguments
    assert message.content == wanted.content
    found = {anomaly.kind for anomaly in message.anomalies}
    assert found <= kinds
    assert found or not kinds


@pytest.mark.parametrize("row", REPAIRS)
@pytest.mark.parametrize("name", quarter(JSON_FORMATS, "arguments"))
def test_arguments(name: str, row: str) -> None:
    written, arguments, kinds = REPAIRS[row]
    for prefix, example in examples(name):
        text = example.replace(ARGUMENTS, written, 1)
        if kinds == {"repaired_json"} and name in BARE and row != "a raw control character":
            message = read(name, prefix, text)
            assert not any(call.arguments.startswith("{") and "city" in call.arguments for call in message.tool_calls)
            assert "repaired_json" not in [anomaly.kind for anomaly in message.anomalies]
        elif not (row == "no inner brace" and name in UNCLOSED):
            # where no marker closes a call, only the end of the turn says where such a string ends
            reason = "stop" if row == "a quote inside a string" and name in UNCLOSED else None
            check(name, prefix, example, text, arguments, kinds, reason)


@pytest.mark.parametrize("name", [name for name in JSON_FORMATS if name not in ENVELOPES])
def test_a_fence_around_arguments(name: str) -> None:
    for prefix, example in examples(name):
        kinds = {"repaired_json", "surplus_closer"}
        if name in FENCED:  # a second fence is closed a second time
            kinds = {"surplus_closer"} if "```" in example else set()
        if name != "apertus":  # where arguments are a member, a fence stands around the whole
            check(name, prefix, example, example.replace(ARGUMENTS, f"```json\n{ARGUMENTS}\n```", 1), PARIS, kinds)


@pytest.mark.parametrize("name", quarter(ENVELOPES, "objects"))
def test_objects(name: str) -> None:
    for prefix, example in examples(name):
        around = AROUND.search(example)
        assert around is not None
        plain = around.group()
        keys = list(json.loads(plain))
        of_name = next(key for key in keys if key.endswith("name"))
        of_arguments = next(key for key in keys if key in ("arguments", "parameters", "args"))
        openai = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
        own = f'{{"{of_name}": "get_weather", "{of_arguments}": {ARGUMENTS}}}'
        unusual: dict[str, str] = {
            "in `function`": f'{{"type": "function", "function": {openai}}}',
            "in `function`, with an id": f'{{"id": "x", "type": "function", "function": {openai}}}',
            "in `function`, with its own keys": f'{{"type": "function", "function": {own}}}',
            "in `tool_calls`": f'{{"tool_calls": [{own}]}}',
            "in `tool_calls`, on lines": f'{{\n  "tool_calls": [\n    {own}\n  ]\n}}',
            "in `tool_calls` and `function`": f'{{"tool_calls": [{{"type": "function", "function": {openai}}}]}}',
            "in `tool_calls`, with another member": f'{{"tool_calls": [{own}], "content": null}}',
        }
        if name == "xlam":  # its own forms
            unusual.pop("in `tool_calls`, with another member")
        for text in unusual.values():
            check(name, prefix, example, example.replace(plain, text, 1), PARIS, {"unusual_form"})
        closers = {"no brace": plain[:-1], "a brace too many": plain + "}", "two": plain + "}}"}
        for text in closers.values():
            check(name, prefix, example, example.replace(plain, text, 1), PARIS, {*UNCLOSED_KINDS, "surplus_closer"})
        if name in BARE:
            continue
        loose = {
            "a trailing comma": plain[:-1] + ",}",
            "keys without quotes": plain.replace(f'"{of_name}"', of_name).replace(f'"{of_arguments}"', of_arguments),
            "no comma": f'{{"{of_name}": "get_weather" "{of_arguments}": {ARGUMENTS}}}',
            "single quotes": f"{{'{of_name}': 'get_weather', '{of_arguments}': {{'city': 'Paris'}}}}",
            "a comment": plain[:-1] + " // now\n}",
        }
        for text in loose.values():
            check(name, prefix, example, example.replace(plain, text, 1), PARIS, {"repaired_json"})
            kinds = {"repaired_json", *UNCLOSED_KINDS, "surplus_closer"}
            if "//" not in text:
                check(name, prefix, example, example.replace(plain, text.removesuffix("}"), 1), PARIS, kinds)
        if "[" not in example:
            text = example.replace(plain, f"```json\n{plain}\n```", 1)
            check(name, prefix, example, text, PARIS, {"repaired_json", "surplus_closer"})


FENCED_ARGUMENTS = [
    "```json\n{}\n```",
    "```{}```",
    "```python\n{} \n``` ",
    "``` json {}```\n",
]
WRITTEN = [ARGUMENTS, "{'city': 'Paris'}", '{city: "Paris",}', json.dumps(ARGUMENTS)]


@pytest.mark.parametrize("fence", FENCED_ARGUMENTS)
@pytest.mark.parametrize("name", quarter([name for name in ENVELOPES if name not in BARE], "a fence in an object"))
def test_a_fence_around_arguments_in_an_object(name: str, fence: str) -> None:
    for prefix, example in examples(name):
        for written in WRITTEN:
            text = example.replace(ARGUMENTS, fence.replace("{}", written), 1)
            check(name, prefix, example, text, PARIS, {"repaired_json"})
        text = example.replace(ARGUMENTS, fence.replace("{}", "Paris"), 1)
        assert not any("city" in call.arguments for call in read(name, prefix, text).tool_calls)
        message = toolgram.get_format(name).parse(
            example.replace(ARGUMENTS, fence.replace("{}", ARGUMENTS)), strict=True
        )
        assert not any("city" in call.arguments for call in message.tool_calls)


@pytest.mark.parametrize("fence", FENCED_ARGUMENTS)
@pytest.mark.parametrize(
    "name", quarter([name for name in JSON_FORMATS if name not in BARE], "a fence around a member")
)
def test_a_fence_around_a_member(name: str, fence: str) -> None:
    for prefix, example in examples(name):
        fenced = fence.replace("{}", ARGUMENTS)
        text = example.replace(ARGUMENTS, f'{{"a": {fenced}, "b": [{fenced}, 1]}}', 1)
        check(name, prefix, example, text, {"a": PARIS, "b": [PARIS, 1]}, {"repaired_json"})


@pytest.mark.parametrize("name", ENVELOPES)
def test_a_wrapper_holds_several_calls(name: str) -> None:
    """All calls of an example in one object, for formats that write one object after the marker."""
    other = '{"name": "get_time", "arguments": {}}'
    for prefix, example in examples(name):
        around = AROUND.search(example)
        assert around is not None
        own = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
        text = example[: around.start()] + f'{{"tool_calls": [{own}, {other}]}}' + example[around.end() :]
        message = read(name, prefix, text)
        assert [call for call, _, _ in calls_of(message)][:2] == ["get_weather", "get_time"]
        assert {status for _, _, status in calls_of(message)} == {"complete"}


def test_a_prompt_may_end_in_what_may_be_a_marker() -> None:
    """Behind a string that is repaired: what the prompt wrote is no event's source, and comes but once."""
    for text in ("", "x", '"}\n</tool_call>'):
        parser = toolgram.get_format("glm47").parser(prefix='<tool_call>f{"a":""<')
        events = [*parser.feed(text), *parser.close()]
        assert "".join(event.source for event in events) == text
        assert [call.name for call in parser.message.tool_calls] == ["f"]
