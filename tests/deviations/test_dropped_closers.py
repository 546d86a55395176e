"""A closing marker that is missing between two calls: they stay two calls, in every format, shipped and derived.

Strategy: the first call of an example is written twice, then each closing marker of the output is left out in turn, by
itself, with the blanks before it, and with those behind it. The calls of the whole output must come out, with an
anomaly. Calls without arguments are left alone: without its marker nothing says where such a name ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import toolgram
from tests.deviations.test_every_format import examples_of
from tests.properties.test_derived import derived
from tests.streams import assert_same_however_split
from toolgram.events import Dropped, ToolCallDelta, ToolCallStart
from toolgram.formats import Format

# Calls of these have no closing marker, or their examples have one call, or one pair of markers for all.
WITHOUT = (
    "functionary_v3_2", "gigachat3", "glm4", "gpt_oss", "granite_20b_fc", "granite_3", "llama3_json", "minicpm3",
    "mistral_v11", "mistral_v3", "olmo3", "phi4_mini", "xlam",
)  # fmt: skip
# Templates whose calls have arguments in tags, each with a closing marker.
DERIVED = (
    "arguments_container", "null_omitted", "quoted_in_tags", "self_closing_call",
    "string_attribute", "told_attributes", "told_pairs", "told_tags", "told_typed_attributes",
    "typed_attribute", "wrapped_always",
)  # fmt: skip


def doubled(fmt: Format) -> Iterator[tuple[str, str]]:
    """The examples that hold two calls and more, the first of them twice: their prefixes and their texts."""
    for prefix, text in examples_of(fmt):
        parser = fmt.parser(prefix=prefix)
        starts, at = [], 0
        for event in parser.feed(text) + parser.close():
            if isinstance(event, ToolCallStart):
                starts.append(at)
            at += len(event.source)
        if len(starts) < 2:
            continue
        twice = text[: starts[1]] + text[starts[0] :]
        message = fmt.parse(twice, prefix=prefix)
        if len(message.tool_calls) == len(starts) + 1 and not message.anomalies:
            yield prefix, twice


def closers(fmt: Format, prefix: str, text: str, tools: Any) -> Iterator[tuple[int, int]]:
    """Where closing markers stand behind arguments, with and without the blanks beside them."""
    parser = fmt.parser(tools, prefix=prefix)
    at, inside = 0, False
    for event in parser.feed(text) + parser.close():
        inside &= not isinstance(event, ToolCallStart)
        inside |= isinstance(event, ToolCallDelta) and event.source != ""
        marker = event.source.strip()
        closes = inside and isinstance(event, Dropped) and marker in fmt.program.closers
        if closes and len(marker) > 1 and not marker.isalpha():
            begin = at + event.source.index(marker)
            end = begin + len(marker)
            before, behind = len(text[:begin].rstrip()), len(text) - len(text[end:].lstrip())
            yield from {(begin, end), (before, end), (begin, behind)}
        at += len(event.source)


def tools_of(message: toolgram.Message) -> list[Any]:
    """Tools that declare what was called."""
    declared: dict[str, dict[str, Any]] = {}
    for call in message.tool_calls:
        types = declared.setdefault(call.name, {})
        for key, value in json.loads(call.arguments).items():
            types[key] = {"type": "string"} if isinstance(value, str) else {}
    return [
        {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": types}}}
        for name, types in declared.items()
    ]


def called(message: toolgram.Message) -> list[tuple[str, dict[str, Any]]]:
    """The calls, without the blanks around text: beside a marker that is missing nobody can tell whose they are."""
    found = []
    for call in message.tool_calls:
        arguments = json.loads(call.arguments) if call.status == "complete" else {"status": call.status}
        stripped = {key: value.strip() if isinstance(value, str) else value for key, value in arguments.items()}
        found.append((call.name, stripped))
    return found


def check(fmt: Format, strong: bool = True) -> int:
    """Try all of them; how many there were."""
    count = 0
    for prefix, text in doubled(fmt):
        whole = fmt.parse(text, prefix=prefix)
        wanted, tools = called(whole), tools_of(whole)
        for begin, end in closers(fmt, prefix, text, tools):
            broken = text[:begin] + text[end:]
            for declared in (tools, None):
                message = fmt.parse(broken, declared, prefix=prefix)
                found = called(message)
                assert found == wanted or (not strong and is_part(found, wanted)), broken
                assert found == wanted or message.anomalies, broken
                count += 1
    return count


def is_part(found: list[Any], wanted: list[Any]) -> bool:
    """Whether each call that is complete is one of the output, in order."""
    left = iter(wanted)
    return all("status" in arguments or (name, arguments) in left for name, arguments in found)


@pytest.mark.parametrize("name", toolgram.format_names())
def test_shipped(name: str) -> None:
    count = check(toolgram.get_format(name))
    assert count or name in WITHOUT


@pytest.mark.parametrize("name", DERIVED)
def test_derived(name: str) -> None:
    assert check(derived(name)[0], strong=False)


@pytest.mark.parametrize("name", DERIVED)
def test_derived_however_it_is_split(name: str) -> None:
    fmt, _ = derived(name)
    for prefix, text in doubled(fmt):
        wanted = called(fmt.parse(text, prefix=prefix))
        for begin, end in closers(fmt, prefix, text, None):
            message = assert_same_however_split(fmt, text[:begin] + text[end:], prefix=prefix)
            assert is_part(called(message), wanted)


def test_however_it_is_split() -> None:
    """The message of a format in which the next message closes the call, with all that is missing before it."""
    fmt = toolgram.get_format("beam")
    for prefix, text in doubled(fmt):
        for missing in ("<|end|>", "</rfl:parameter><|end|>", "\n</rfl:parameter><|end|>"):
            message = assert_same_however_split(fmt, text.replace(missing + "<|start|>", "<|start|>"), prefix=prefix)
            assert called(message) == called(fmt.parse(text, prefix=prefix))
            assert {each.kind for each in message.anomalies} <= {"unclosed_envelope", "unclosed_value"}
            assert message.anomalies
