"""An opening brace that stands there twice, with its closing brace once or twice: an object cannot begin so otherwise.

Strategy: in each example of each format, every opening brace is doubled in turn, also nested ones, and the closing one
with it or not. The calls must come out as they were, with an anomaly, and nothing of the braces is content. Formats
whose calls begin without a marker, and those whose values are no JSON, are left alone: there it stays text.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import toolgram
from tests.deviations.examples import examples_of
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split, calls_of

# Bare calls are not repaired; the braces of Gemma are a notation of its own.
WITHOUT = ("functionary_v3_2", "functiongemma", "gemma4", "glm4", "llama3_json", "minimax_m1", "xlam")
NAMES = [name for name in toolgram.format_names() if name not in WITHOUT]


def doubled(text: str) -> Iterator[str]:
    """The text with each opening brace twice, and with its closing brace once and twice."""
    for begin, sign in enumerate(text):
        if sign != "{":
            continue
        yield text[:begin] + "{" + text[begin:]
        depth = 0
        for end in range(begin, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                yield text[:begin] + "{" + text[begin:end] + "}" + text[end:]
                break


@pytest.mark.parametrize("name", quarter(NAMES, "the calls are the same"))
def test_the_calls_are_the_same(name: str) -> None:
    fmt = toolgram.get_format(name)
    for prefix, text in examples_of(fmt):
        whole = fmt.parse(text, prefix=prefix)
        for broken in doubled(text) if whole.tool_calls else ():
            message = assert_same_however_split(fmt, broken, prefix=prefix)
            assert calls_of(message) == calls_of(whole), broken
            assert message.content == whole.content, broken
            assert {anomaly.kind for anomaly in message.anomalies} & {"repaired_json", "surplus_closer"}, broken
            if "{{" in broken:
                strict = fmt.parse(broken, prefix=prefix, strict=True)
                assert all(call in calls_of(whole) for call in calls_of(strict)), broken
