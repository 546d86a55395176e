"""A closing marker after a call that comes twice: dropped and told, in every format.

Strategy: the examples of a format, each closing marker after a call once more, directly and after blanks.
"""

from __future__ import annotations

import pytest

import toolgram
from tests.deviations.examples import examples_of
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split, calls_of
from toolgram.events import Content, Dropped, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.formats import Format

IN_HEADERS = {"beam": ["assistant", "<|message|>"], "muse": ["<|message|>"], "muse_glimmer": ["<|message|>"]}


def ends_of_closers(fmt: Format, prefix: str, text: str) -> list[tuple[str, int]]:
    """The closing markers behind calls, and where they end."""
    parser = fmt.parser(prefix=prefix)
    found, at, behind = [], 0, False
    for event in parser.feed(text) + parser.close():
        behind &= not isinstance(event, ToolCallStart | Content | Reasoning)
        behind |= isinstance(event, ToolCallEnd | ToolCallDelta)
        marker = event.source.strip()
        if behind and isinstance(event, Dropped) and len(marker) > 1 and marker in fmt.program.closers:
            found.append((marker, at + event.source.index(marker) + len(marker)))
        at += len(event.source)
    return [(marker, end) for marker, end in found if marker not in IN_HEADERS.get(fmt.name, ())]


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "a marker behind a call"))
def test_a_marker_behind_a_call_that_comes_twice(name: str) -> None:
    """It is dropped and told, whether it may stand in text or not; also behind blanks."""
    fmt = toolgram.get_format(name)
    for prefix, text in examples_of(fmt):
        whole = fmt.parse(text, prefix=prefix)
        for marker, end in ends_of_closers(fmt, prefix, text):
            for blanks in ("", "\n"):
                again = text[:end] + blanks + marker + text[end:]
                message = assert_same_however_split(fmt, again, prefix=prefix)
                assert message.content == whole.content, again
                assert calls_of(message) == calls_of(whole), again
                assert message.anomalies or marker == "```", again  # a model may have opened two fences


@pytest.mark.parametrize("name", ["deepseek_v3", "inkling", "kimi_k2", "lfm2", "llama4_pythonic", "minicpm3", "olmo3"])
def test_each_time_too_many_is_told(name: str) -> None:
    fmt = toolgram.get_format(name)
    prefix, text = next((prefix, text) for prefix, text in examples_of(fmt) if ends_of_closers(fmt, prefix, text))
    marker, end = ends_of_closers(fmt, prefix, text)[-1]
    for times in (0, 1, 3):
        found = fmt.parse(text[:end] + f"\n{marker}" * times, prefix=prefix).anomalies
        assert [each.kind for each in found] == ["surplus_closer"] * times
