"""Closing markers after a call, wherever they come from: none is content, and none is lost without an anomaly.

Strategy: in the examples of every format, each marker that is written as one that closes something (`</a>`, `[/A]`,
`<|end_a|>`, `<a|>`) is put at each place after a call, whole and cut off at the end of the output.
"""

import re
from collections.abc import Iterator

import pytest

import toolgram
from tests.deviations.test_dropped_closers import doubled
from tests.examples import examples_of
from tests.properties.selection import quarter, some
from tests.properties.test_derived import NAMES as DERIVED
from tests.properties.test_derived import derived
from tests.streams import assert_same_however_split, calls_of
from toolgram.events import Content, Dropped, Malformed, Reasoning, ToolCallEnd, ToolCallStart
from toolgram.formats import Format

CLOSING = re.compile(r"[<\[◁]\|?/|(?<![a-z])(?:end|close)(?![a-z])|<[a-z_]+\|>", re.IGNORECASE)
# Markers that may close a message or a list, and need not.
OPTIONAL = {
    "beam": {"<|end|>"},
    "gpt_oss": {"<|end|>"},
    "mistral_v3": {"[/TOOL_CALLS]"},
    "mistral_v11": {"[/TOOL_CALLS]"},
    "solar_open": {"<|end|>"},
}
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
    parser = fmt.parser(prefix=prefix)
    stops = {text for name, text in fmt.program.literals.items() if name in fmt.program.stop}
    found, at, after = [], 0, False
    for event in parser.feed(text) + parser.close():
        at += len(event.source)
        if isinstance(event, Dropped):
            marker = event.source.strip()
            after &= not marker or marker in stops or bool(CLOSING.search(marker)) or not marker.strip('}])`"/>\n')
        elif isinstance(event, ToolCallStart | Content | Reasoning | Malformed):
            after = False
        after |= isinstance(event, ToolCallEnd)
        if after:
            found.append(at)
    return sorted({*found})


def outputs(fmt: Format) -> Iterator[tuple[str, str, int]]:
    """The examples of a format, and with their first call twice: the prefix, the text, and a place after a call."""
    for prefix, text in dict.fromkeys([*examples_of(fmt), *doubled(fmt)]):
        for place in places(fmt, prefix, text):
            yield prefix, text, place


def check_places(message: toolgram.Message, text: str) -> None:
    """A marker that is dropped is reported with its place."""
    for each in message.anomalies:
        if each.kind in TOLD:
            assert text.startswith(each.text, each.start), each


def check(fmt: Format, optional: set[str]) -> int:
    """Put each closing marker at each place; how many there were."""
    count = 0
    for prefix, text, place in some([*outputs(fmt)], f"after calls {fmt.name}"):
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
    assert check(fmt, OPTIONAL.get(name, set())) or not closing_markers(fmt)


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "closing markers cut off"))
def test_a_closing_marker_cut_off_after_a_call(name: str) -> None:
    """Also one that ends the turn. What was read before it stays as it is."""
    fmt = toolgram.get_format(name)
    texts = fmt.program.literals
    markers = [*closing_markers(fmt), *(texts[name] for name in fmt.program.stop if name in texts)]
    cuts = {marker[:size] for marker in markers for size in range(2, len(marker))} - {*texts.values()}
    for prefix, text, place in some([*outputs(fmt)], name):
        before = fmt.parse(text[:place], prefix=prefix, finish_reason="stop")
        if not (fmt.parse(text, prefix=prefix).content or "").startswith(before.content or ""):
            continue  # it begins what comes next
        for cut in sorted(cut for cut in cuts if cut.strip("}])`") and not cut.isalpha()):  # a word may be text
            message = fmt.parse(text[:place] + cut, prefix=prefix, finish_reason="stop")
            check_places(message, text[:place] + cut)
            assert (message.content, calls_of(message)) == (before.content, calls_of(before)), cut
            assert "unfinished_marker" in [each.kind for each in message.anomalies], cut
        longest = max(cuts, key=len, default="")
        assert_same_however_split(fmt, text[:place] + longest, prefix=prefix)


@pytest.mark.parametrize("name", quarter(DERIVED, "closing markers after calls"))
def test_derived(name: str) -> None:
    """In derived formats, each after the last call, where it has come already."""
    fmt = derived(name)[0]
    for prefix, text, place in some([*outputs(fmt)], name):
        last = place == len(text)
        for marker in closing_markers(fmt):
            broken = text[:place] + marker + text[place:]
            message = assert_same_however_split(fmt, broken, prefix=prefix)
            check_places(message, broken)
            if last and text.endswith(marker):
                assert message.anomalies, broken
