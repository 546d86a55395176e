"""A closing marker that is missing between two calls: they stay two calls, in every format, shipped and derived.

Strategy: the first call of an example is written twice, then each closing marker of the output is left out in turn, by
itself, with the blanks before it, and with those after it. The calls of the whole output must come out, with an
anomaly, but for a call whose value is open where its next argument begins: that has two readings, so it is malformed.
Calls without arguments are left alone: without its marker nothing says where such a name ends.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import toolgram
from tests.examples import examples_of
from tests.properties.selection import quarter
from tests.properties.test_derived import derived
from toolgram.events import Content, Dropped, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.formats import Format

# An output has one call, at its beginning, which only its object ends.
WITHOUT = ("glm4",)
# After the calls of these there is nothing but brackets, fences and tokens that end a turn.
ONLY_BRACKETS = (
    "functionary_v3_2", "glm4", "gpt_oss", "granite_20b_fc", "granite_3", "llama3_json", "mistral_v11",
    "mistral_v3", "xlam",
)  # fmt: skip
# Markers that are not missed, as they close no call:
UNTOLD = {
    "gigachat3": ["<|message_sep|>"],  # the end of a message; the bracket has closed the call
    "muse": ["<|eom|>"],
    "muse_glimmer": ["<|eom|>", "<|message|>"],  # the end of the next message's header, which is text without it
}
# Templates whose calls have arguments in tags, each with a closing marker.
DERIVED = (
    "arguments_container", "null_omitted", "quoted_in_tags", "self_closing_call",
    "string_attribute",
    "typed_attribute", "wrapped_always",
)  # fmt: skip


def starts_of(fmt: Format, prefix: str, text: str) -> list[int]:
    """Where calls start."""
    parser = fmt.parser(prefix=prefix)
    starts, at = [], 0
    for event in parser.feed(text) + parser.close():
        if isinstance(event, ToolCallStart):
            starts.append(at)
        at += len(event.source)
    return starts


def doubled(fmt: Format) -> Iterator[tuple[str, str]]:
    """The examples that hold two calls and more, the first of them twice: their prefixes and their texts. Where
    arguments are in no markers, the examples twice as well."""
    found = [(prefix, text, starts_of(fmt, prefix, text)) for prefix, text in examples_of(fmt)]
    for prefix, text, starts in found:
        candidates = [text[: starts[1]] + text[starts[0] :]] if len(starts) > 1 else []
        candidates += [] if is_tagged(fmt) else [text + text, text + "\n" + text]
        for more in candidates:
            message = fmt.parse(more, prefix=prefix)
            whole = all(call.status == "complete" for call in message.tool_calls)
            if len(message.tool_calls) > len(starts) and whole and not message.anomalies:
                yield prefix, more


def closers(fmt: Format, prefix: str, text: str, tools: Any) -> Iterator[tuple[int, int]]:
    """Where closing markers are after arguments, with and without the blanks beside them."""
    parser = fmt.parser(tools, prefix=prefix)
    at, inside = 0, False
    for event in parser.feed(text) + parser.close():
        inside &= not isinstance(event, ToolCallStart | Content | Reasoning)
        inside |= isinstance(event, ToolCallDelta) and event.source != ""
        marker = event.source.strip()
        closes = inside and isinstance(event, Dropped) and marker in fmt.program.closers
        if closes and len(marker) > 1 and not marker.isalpha():
            begin = at + event.source.index(marker)
            end = begin + len(marker)
            before, after = len(text[:begin].rstrip()), len(text) - len(text[end:].lstrip())
            yield from {(begin, end), (before, end), (begin, after)}
        at += len(event.source)


def is_tagged(fmt: Format) -> bool:
    """Whether its arguments are in markers, one by one."""
    return any(state.meaning == "value" for state in fmt.program.states.values())


def brackets(fmt: Format, prefix: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the last bracket of arguments is, and brackets after them that are no part of a marker."""
    parser = fmt.parser(prefix=prefix)
    if is_tagged(fmt):
        return
    markers = [marker for marker in fmt.program.literals.values() if len(marker) > 1]
    at, inside, last = 0, False, -1
    for event in parser.feed(text) + parser.close():
        source, begin = event.source, at
        at += len(source)
        inside |= isinstance(event, ToolCallStart)
        if isinstance(event, ToolCallDelta) and source[-1:] in ("}", "]", ")"):
            last = at - 1
        if isinstance(event, ToolCallEnd) and last >= 0:
            yield last, last + 1
            last = -1
        if isinstance(event, Dropped) and inside and not any(marker in source for marker in markers):
            yield from ((place, place + 1) for place in range(begin, at) if text[place] in "}])")


def tools_of(message: toolgram.Message) -> list[Any]:
    """Tools that declare what was called."""
    declared: dict[str, dict[str, Any]] = {}
    for call in message.tool_calls:
        types = declared.setdefault(call.name, {})
        for key, value in json.loads(call.arguments).items():
            types[key] = {"type": "string"} if isinstance(value, str) else {}
    return [{"name": name, "parameters": {"type": "object", "properties": each}} for name, each in declared.items()]


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
    next_arguments = tuple(
        fmt.program.literals[row.trigger] for row in fmt.spec.transitions if "unclosed_argument" in row.actions
    )
    for prefix, text in doubled(fmt):
        whole = fmt.parse(text, prefix=prefix)
        wanted, tools = called(whole), tools_of(whole)
        for begin, end in closers(fmt, prefix, text, tools):
            broken = text[:begin] + text[end:]
            for declared in (tools, None):
                message = fmt.parse(broken, declared, prefix=prefix, finish_reason="stop")
                found = called(message)
                if broken[begin:].lstrip().startswith(next_arguments):
                    assert message.malformed, broken
                    assert is_part(found, wanted), broken
                    continue
                assert found == wanted or (not strong and is_part(found, wanted)), broken
                untold = strong and text[begin:end].strip() in UNTOLD.get(fmt.name, ())
                assert message.anomalies or (found == wanted and (untold or not strong)), broken
                count += 1
    return count


def is_part(found: list[Any], wanted: list[Any]) -> bool:
    """Whether each call that is complete is one of the output, in order."""
    left = iter(wanted)
    return all("status" in arguments or (name, arguments) in left for name, arguments in found)


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "shipped"))
def test_shipped(name: str) -> None:
    count = check(toolgram.get_format(name))
    assert bool(count) == (name not in ONLY_BRACKETS)


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "brackets"))
def test_brackets(name: str) -> None:
    """One is missing after the arguments of a call, or at their end: calls are read, or an anomaly says so."""
    fmt = toolgram.get_format(name)
    count = 0
    for prefix, text in doubled(fmt):
        whole = fmt.parse(text, prefix=prefix)
        wanted, tools = called(whole), tools_of(whole)
        for begin, end in brackets(fmt, prefix, text):
            for declared in (tools, None):
                broken = text[:begin] + text[end:]
                message = fmt.parse(broken, declared, prefix=prefix)
                found = called(message)
                missing = [call for call in wanted if call not in found]
                as_text = is_part(found, wanted) and all(name in (message.content or "") for name, _ in missing)
                assert found == wanted or message.anomalies or as_text, broken
                count += 1
    assert count or is_tagged(fmt) or name in WITHOUT


@pytest.mark.parametrize("name", DERIVED)
def test_derived(name: str) -> None:
    assert check(derived(name)[0], strong=False)
