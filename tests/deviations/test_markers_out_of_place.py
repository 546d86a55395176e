"""A marker that is missing, doubled, or changed places with the next one: no call is wrong and says nothing.

Strategy: in the examples of every format, shipped and derived, each marker is left out in turn (with and without the
blanks beside it), doubled, and swapped with the next one.  What comes out is right, or an anomaly tells, or the call is
text.  Without tools, nobody can tell a name that ran into its neighbour from another name, so there only the values of
arguments with their own names are looked at.
"""

import html
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

import pytest

import toolgram
from tests.deviations.test_dropped_closers import called, doubled, is_part, tools_of
from tests.examples import examples_of
from tests.properties.selection import quarter, some
from tests.properties.test_derived import NAMES as DERIVED
from tests.properties.test_derived import derived
from tests.streams import assert_same_however_split
from toolgram.formats import Format

SURE = 4  # characters: what is shorter is in text and in code as well
Calls = list[tuple[str, dict[str, Any]]]


def outputs(fmt: Format) -> Iterator[tuple[str, str]]:
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


def with_required(tools: list[Any], wanted: Calls) -> list[Any]:
    """The tools, which require what all their calls have."""
    for tool in tools:
        keys = [{*arguments} for name, arguments in wanted if name == tool["name"]]
        tool["parameters"]["required"] = sorted(set.intersection(*keys))
    return tools


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


def check(fmt: Format) -> int:
    """Try all of them; how many there were."""
    count = 0
    for prefix, text in outputs(fmt):
        whole = fmt.parse(text, prefix=prefix)
        wanted = called(whole)
        tools = with_required(tools_of(whole), wanted)
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
def test_shipped(name: str) -> None:
    fmt = toolgram.get_format(name)
    count = check(fmt)
    assert count or not any(markers(fmt, text) for _, text in outputs(fmt))


@pytest.mark.parametrize("name", quarter(DERIVED, "markers out of place"))
def test_derived(name: str) -> None:
    check(derived(name)[0])


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "markers in values, split"))
def test_a_marker_in_a_value_is_told_however_it_is_split(name: str) -> None:
    fmt = toolgram.get_format(name)
    for prefix, text in outputs(fmt):
        for broken in changed(text, markers(fmt, text)):
            if any(each.kind == "stray_marker" for each in fmt.parse(broken, prefix=prefix).anomalies):
                assert_same_however_split(fmt, broken, prefix=prefix)
