"""A value between markers that is closed twice: every format with such values.

Strategy: the examples of a format with a value between markers, and the marker behind it doubled. The value ends at the
first, the others are dropped, with an anomaly; whole, and however the text is split into deltas. Where the value holds
what opens such a value, or goes on behind the marker, it keeps all of it.
"""

from __future__ import annotations

import json

import pytest

import toolgram
from tests.deviations.test_every_format import examples_of
from tests.deviations.test_json_in_values import FORMATS, STRING, examples, tools
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split, calls_of
from toolgram.events import Content, Dropped, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.formats import Format
from toolgram.spec.data import Literal


def closer_of(name: str) -> str:
    """The marker that closes the value of the example."""
    spec = toolgram.get_format(name).spec
    rows = [row for row in spec.transitions if spec.states[row.source].meaning == "value" and not row.repair]
    shapes = [spec.terminals.get(row.trigger) for row in rows]
    ((_, text),) = examples(name)
    behind = text.partition("\0")[2]
    texts = [shape.text for shape in shapes if isinstance(shape, Literal) and behind.startswith(shape.text)]
    return max(texts, key=len, default="")


CLOSED = [name for name in FORMATS if closer_of(name)]


def read(name: str, written: str) -> toolgram.Message:
    ((prefix, text),) = examples(name)
    whole = (
        text.replace("\0", written, 1).replace('string="false"', 'string="true"', 1).replace('"object"', '"string"', 1)
    )
    return assert_same_however_split(toolgram.get_format(name), whole, prefix=prefix, tools=tools(STRING))


def value_of(message: toolgram.Message) -> object:
    return json.loads(message.tool_calls[0].arguments)["city"]


def surplus(message: toolgram.Message) -> int:
    return [anomaly.kind for anomaly in message.anomalies].count("surplus_closer")


def turn_ends_with_a_closer(name: str) -> bool:
    """Behind what ends a section or a message, other text begins."""
    ((_, text),) = examples(name)
    sections = name in ("k2_horizon", "kimi_k3", "muse", "muse_glimmer")
    return not sections and "</" in text and text[text.rfind("</") :] in toolgram.get_format(name).grammar_text


def test_there_are_formats() -> None:
    assert {"qwen3_coder", "glm45", "minimax_m2", "deepseek_v32", "kimi_k3", "minicpm5", "mimo"} <= {*CLOSED}


@pytest.mark.parametrize("blanks", ["", "\n", " " * 60])
@pytest.mark.parametrize("name", quarter(CLOSED, "the first closes the value"))
def test_the_first_closes_the_value(name: str, blanks: str) -> None:
    closer, wanted = closer_of(name), read(name, "Oslo")
    for times in (1, 2, 3):
        message = read(name, "Oslo" + (closer + blanks) * times)
        assert (value_of(message), surplus(message)) == ("Oslo", 1)
        assert [call.status for call in message.tool_calls] == ["complete"] * len(wanted.tool_calls)
        assert message.content == wanted.content


@pytest.mark.parametrize("name", CLOSED)
def test_what_a_value_opens_it_may_close(name: str) -> None:
    closer = closer_of(name).lstrip("\n")
    opener = '<|open|>argument key="!' if name == "kimi_k3" else closer.replace("/", "", 1).rstrip(">") + " of a value>"
    for written in (f"{opener} Oslo {closer}", f"a{opener}b{closer}c{opener}"):
        message = read(name, written)
        assert (value_of(message), surplus(message)) == (written, 0)


@pytest.mark.parametrize("name", CLOSED)
def test_a_value_that_goes_on_keeps_them(name: str) -> None:
    closer = closer_of(name)
    for written in (
        f"Oslo{closer} and on",
        f"Oslo{closer}{closer} and on",
        f"Oslo{closer}\n{closer}\n and {closer} on",
    ):
        message = read(name, written)
        assert (value_of(message), surplus(message)) == (written, 0)


@pytest.mark.parametrize("name", [name for name in CLOSED if turn_ends_with_a_closer(name)])
def test_behind_a_call_all_closers_are_dropped(name: str) -> None:
    """The closers of the value and of the call, once more behind those of the call."""
    ((prefix, text),) = examples(name)
    closer = closer_of(name).lstrip("\n")
    end = text.rindex("</")
    last = text[end:]
    again = text.replace("\0", "Oslo", 1) + "\n" + closer + "\n" + last
    message = assert_same_however_split(toolgram.get_format(name), again, prefix=prefix, tools=tools(STRING))
    wanted = toolgram.get_format(name).parse(text.replace("\0", "Oslo", 1), tools(STRING), prefix=prefix)
    assert message.content == wanted.content
    assert surplus(message)
    assert calls_of(message) == calls_of(wanted)


@pytest.mark.parametrize("name", CLOSED)
def test_a_strict_parser_takes_them_for_text(name: str) -> None:
    ((prefix, text),) = examples(name)
    closer = closer_of(name)
    message = toolgram.get_format(name).parse(
        text.replace("\0", "Oslo" + closer), tools(STRING), prefix=prefix, strict=True
    )
    assert not surplus(message)


# --- markers behind a call ------------------------------------------------------------------------------------------

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
        assert surplus(fmt.parse(text[:end] + f"\n{marker}" * times, prefix=prefix)) == times
    parser = fmt.parser(prefix=prefix)
    parser.feed(text[:end])
    restored = fmt.restore(parser.snapshot())
    restored.feed(marker)
    restored.close("stop")
    assert [each.kind for each in restored.take_anomalies()] == ["surplus_closer"]
