"""A closing marker that is missing between two calls: they stay two calls, in every format, shipped and derived.

Strategy: the first call of an example is written twice, then each closing marker of the output is left out in turn, by
itself, with the blanks before it, and with those after it. The calls of the whole output must come out, with an
anomaly, but for a call whose value is open where its next argument begins: that has two readings, so it is malformed.
Calls without arguments are left alone: without its marker nothing says where such a name ends.
"""

import html
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pytest

import toolgram
from tests.examples import examples_of
from tests.properties.selection import quarter, some
from tests.properties.test_derived import NAMES as TEMPLATES
from tests.properties.test_derived import derived
from tests.streams import assert_same_however_split, calls_of
from toolgram.events import Content, Dropped, Event, Malformed, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart
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
    "arguments_container", "null_omitted", "quoted_in_tags", "self_closing_call", "string_attribute",
    "typed_attribute", "wrapped_always",
)  # fmt: skip


def placed(fmt: Format, prefix: str, text: str, tools: Any = None) -> Iterator[tuple[int, Event]]:
    """The events of a text, and where each begins."""
    parser, at = fmt.parser(tools, prefix=prefix), 0
    for event in parser.feed(text) + parser.close():
        yield at, event
        at += len(event.source)


def starts_of(fmt: Format, prefix: str, text: str) -> list[int]:
    """Where calls start."""
    return [at for at, event in placed(fmt, prefix, text) if isinstance(event, ToolCallStart)]


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
    inside = False
    for at, event in placed(fmt, prefix, text, tools):
        inside &= not isinstance(event, ToolCallStart | Content | Reasoning)
        inside |= isinstance(event, ToolCallDelta) and event.source != ""
        marker = event.source.strip()
        closes = inside and isinstance(event, Dropped) and marker in fmt.program.closers
        if closes and len(marker) > 1 and not marker.isalpha():
            begin = at + event.source.index(marker)
            end = begin + len(marker)
            before, after = len(text[:begin].rstrip()), len(text) - len(text[end:].lstrip())
            yield from {(begin, end), (before, end), (begin, after)}


def is_tagged(fmt: Format) -> bool:
    """Whether its arguments are in markers, one by one."""
    return any(state.meaning == "value" for state in fmt.program.states.values())


def brackets(fmt: Format, prefix: str, text: str) -> Iterator[tuple[int, int]]:
    """Where the last bracket of arguments is, and brackets after them that are no part of a marker."""
    if is_tagged(fmt):
        return
    markers = [marker for marker in fmt.program.literals.values() if len(marker) > 1]
    inside, last = False, -1
    for begin, event in placed(fmt, prefix, text):
        source, at = event.source, begin + len(event.source)
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
    rows = [row for row in fmt.spec.transitions if "unclosed_argument" in row.actions]
    next_arguments = tuple(fmt.program.literals[row.trigger] for row in rows)
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
    assert bool(check(toolgram.get_format(name))) == (name not in ONLY_BRACKETS)


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


# --- a marker that is missing, doubled, or changed places with the next one: no call is wrong and says nothing ------
# Strategy: in the examples of every format, shipped and derived, each marker is left out in turn (with and without the
# blanks beside it), doubled, and swapped with the next one. What comes out is right, or an anomaly tells, or the call
# is text. Without tools, nobody can tell a name that ran into its neighbour from another name, so there only the
# values of arguments with their own names are looked at.

SURE = 4  # characters: what is shorter is in text and in code as well
Calls = list[tuple[str, dict[str, Any]]]


def twice(fmt: Format) -> Iterator[tuple[str, str]]:
    """The examples whose calls are complete, once more with their first call twice: their prefixes and texts."""
    for prefix, text in dict.fromkeys([*examples_of(fmt), *doubled(fmt)]):
        if all(call.status == "complete" for call in fmt.parse(text, prefix=prefix).tool_calls):
            yield prefix, text


def markers(fmt: Format, text: str) -> list[tuple[int, int]]:
    """Where the markers of the format are."""
    texts = {text.strip() for text in fmt.program.literals.values()} | {*fmt.program.literals.values()}
    sure = sorted((text for text in texts if len(text.strip()) >= SURE and not text.isalpha()), key=len, reverse=True)
    return [found.span() for found in re.finditer("|".join(map(re.escape, sure)), text)] if sure else []


def changed(text: str, spans: list[tuple[int, int]]) -> Iterator[str]:
    """The text with each marker left out, doubled, and swapped with the next one."""
    for at, (begin, end) in enumerate(spans):
        before, after = len(text[:begin].rstrip()), len(text) - len(text[end:].lstrip())
        yield from {text[:begin] + text[end:], text[:before] + text[end:], text[:begin] + text[after:]}
        yield from {text[:end] + text[begin:], text[:after] + text[begin:]}
        for other, last in spans[at + 1 : at + 2]:
            if text[begin:end] != text[other:last]:
                yield text[:begin] + text[other:last] + text[end:other] + text[begin:end] + text[last:]


def is_right(found: Calls, wanted: Calls, declared: bool) -> bool:
    """Whether the calls are some of those of the output. Undeclared, names may be others."""
    if declared:
        return is_part(found, wanted)
    odd = [call for call in found if call not in wanted]
    return not any((name, [*arguments]) == (each[0], [*each[1]]) for name, arguments in odd for each in wanted)


def is_text(call: tuple[str, dict[str, Any]], text: str) -> bool:
    """Whether the text holds all of a call."""
    name, arguments = call
    values = [value for value in arguments.values() if isinstance(value, str | int) and not isinstance(value, bool)]
    return all(without_blanks(str(piece)) in text for piece in (name, *values))


def without_blanks(text: str | None) -> str:
    return "".join((text or "").split())


def check_changed(fmt: Format) -> int:
    """Try all of them; how many there were."""
    count = 0
    for prefix, text in twice(fmt):
        whole = fmt.parse(text, prefix=prefix)
        wanted = called(whole)
        tools = tools_of(whole)
        for tool in tools:
            keys = [{*arguments} for name, arguments in wanted if name == tool["name"]]
            tool["parameters"]["required"] = sorted(set.intersection(*keys))  # what all their calls have
        for broken in some([*changed(text, markers(fmt, text))], f"out of place {fmt.name}"):
            for declared in (tools, None):
                message = fmt.parse(broken, declared, prefix=prefix)
                count += 1
                if message.anomalies:
                    continue
                found = called(message)
                assert is_right(found, wanted, declared is not None), broken
                said = without_blanks(message.content) + without_blanks(message.reasoning)
                said += html.unescape(said) + without_blanks(unquote(said))  # values may be escaped
                lost = [call for call in wanted if call not in found]
                assert not declared or all(is_text(call, said) for call in lost), broken
    return count


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "shipped"))
def test_a_marker_out_of_place(name: str) -> None:
    fmt = toolgram.get_format(name)
    assert check_changed(fmt) or not any(markers(fmt, text) for _, text in twice(fmt))


@pytest.mark.parametrize("name", quarter(TEMPLATES, "markers out of place"))
def test_a_marker_out_of_place_in_derived_formats(name: str) -> None:
    check_changed(derived(name)[0])


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "markers in values, split"))
def test_a_marker_in_a_value_is_told_however_it_is_split(name: str) -> None:
    fmt = toolgram.get_format(name)
    for prefix, text in twice(fmt):
        for broken in changed(text, markers(fmt, text)):
            if any(each.kind == "stray_marker" for each in fmt.parse(broken, prefix=prefix).anomalies):
                assert_same_however_split(fmt, broken, prefix=prefix)


# --- closing markers after a call, wherever they come from: none is content, and none is lost without an anomaly ----
# Strategy: in the examples of every format, each marker that is written as one that closes something (`</a>`, `[/A]`,
# `<|end_a|>`, `<a|>`) is put at each place after a call, whole and cut off at the end of the output.

CLOSING = re.compile(r"[<\[◁]\|?/|(?<![a-z])(?:end|close)(?![a-z])|<[a-z_]+\|>", re.IGNORECASE)
# Markers that may close a message or a list, and need not.
OPTIONAL = {
    "beam": {"<|end|>"}, "gpt_oss": {"<|end|>"}, "mistral_v3": {"[/TOOL_CALLS]"}, "mistral_v11": {"[/TOOL_CALLS]"},
    "solar_open": {"<|end|>"},
}  # fmt: skip
TOLD = ("surplus_closer", "unfinished_marker")


def closing_markers(fmt: Format) -> list[str]:
    """The markers that close something and do not end the turn; also of elements that arguments are named by. One that
    begins with a word, as Gemma's `thought<channel|>`, counts only where a thought has opened: elsewhere it is text."""
    texts = [text.strip() for name, text in fmt.program.literals.items() if name not in fmt.program.stop]
    texts = [text for text in texts if len(text) > 3 and not text[0].isalnum()]
    elements = [f"{end}city>" for end in fmt.program.element_ends]
    return sorted({text for text in texts if CLOSING.search(text)} | {*elements})


def places(fmt: Format, prefix: str, text: str) -> list[int]:
    """Where calls end, and the markers and blanks after them, before what begins something."""
    stops = {text for name, text in fmt.program.literals.items() if name in fmt.program.stop}
    found, after = [], False
    for at, event in placed(fmt, prefix, text):
        if isinstance(event, Dropped):
            marker = event.source.strip()
            after &= not marker or marker in stops or bool(CLOSING.search(marker)) or not marker.strip('}])`"/>\n')
        elif isinstance(event, ToolCallStart | Content | Reasoning | Malformed):
            after = False
        after |= isinstance(event, ToolCallEnd)
        if after:
            found.append(at + len(event.source))
    return sorted({*found})


def places_in(fmt: Format) -> Iterator[tuple[str, str, int]]:
    """The examples of a format, and with their first call twice: the prefix, the text, and a place after a call."""
    for prefix, text in dict.fromkeys([*examples_of(fmt), *doubled(fmt)]):
        for place in places(fmt, prefix, text):
            yield prefix, text, place


def check_places(message: toolgram.Message, text: str) -> None:
    """A marker that is dropped is reported with its place."""
    for each in message.anomalies:
        if each.kind in TOLD:
            assert text.startswith(each.text, each.start), each


def check_after(fmt: Format, optional: set[str]) -> int:
    """Put each closing marker at each place; how many there were."""
    count = 0
    for prefix, text, place in some([*places_in(fmt)], f"after calls {fmt.name}"):
        whole = fmt.parse(text, prefix=prefix)
        for marker in closing_markers(fmt):
            for blanks in ("", "\n"):
                count += 1
                broken = text[:place] + blanks + marker + text[place:]
                message = assert_same_however_split(fmt, broken, prefix=prefix)
                check_places(message, broken)
                if calls_of(message) == calls_of(whole):
                    assert message.content == whole.content, broken
                    told = len(message.anomalies) > len(whole.anomalies)
                    assert told or marker in optional, broken
                else:
                    assert {"malformed", "unclosed_envelope"} & {each.kind for each in message.anomalies}, broken
    return count


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "a closing marker after a"))
def test_a_closing_marker_after_a_call(name: str) -> None:
    fmt = toolgram.get_format(name)
    assert check_after(fmt, OPTIONAL.get(name, set())) or not closing_markers(fmt)


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "closing markers cut off"))
def test_a_closing_marker_cut_off_after_a_call(name: str) -> None:
    """Also one that ends the turn. What was read before it stays as it is."""
    fmt = toolgram.get_format(name)
    texts = fmt.program.literals
    markers = [*closing_markers(fmt), *(texts[name] for name in fmt.program.stop if name in texts)]
    cuts = {marker[:size] for marker in markers for size in range(2, len(marker))} - {*texts.values()}
    for prefix, text, place in some([*places_in(fmt)], name):
        before = fmt.parse(text[:place], prefix=prefix, finish_reason="stop")
        if not (fmt.parse(text, prefix=prefix).content or "").startswith(before.content or ""):
            continue  # it begins what comes next
        for cut in sorted(cut for cut in cuts if cut.strip("}])`") and not cut.isalpha()):  # a word may be text
            message = fmt.parse(text[:place] + cut, prefix=prefix, finish_reason="stop")
            check_places(message, text[:place] + cut)
            assert (message.content, calls_of(message)) == (before.content, calls_of(before)), cut
            assert "unfinished_marker" in [each.kind for each in message.anomalies], cut
        assert_same_however_split(fmt, text[:place] + max(cuts, key=len, default=""), prefix=prefix)


@pytest.mark.parametrize("name", quarter(TEMPLATES, "closing markers after calls"))
def test_a_closing_marker_after_the_last_call(name: str) -> None:
    """In derived formats, each after the last call, where it has come already."""
    fmt = derived(name)[0]
    for prefix, text, place in some([*places_in(fmt)], name):
        last = place == len(text)
        for marker in closing_markers(fmt):
            broken = text[:place] + marker + text[place:]
            message = assert_same_however_split(fmt, broken, prefix=prefix)
            check_places(message, broken)
            if last and text.endswith(marker):
                assert message.anomalies, broken
