"""What a real model wrote: 500 outputs of Hermes 2 Pro, many of them with Python's quotes inside JSON.

Strategy: nobody has labelled these. Where every tag holds an object that `json` itself reads, the calls must be exactly
those; of all the others the tests ask what is true of any text.
"""

from __future__ import annotations

import json
import re

import pytest

import toolgram
from tests.streams import CUT_SIZES, SHARED, check_events, check_message, cut, merged, run

DATA = SHARED / "data" / "real-outputs" / "hermes.jsonl"
pytestmark = pytest.mark.skipif(
    not DATA.exists(), reason="needs the real outputs in ../shared/data/real-outputs/hermes.jsonl, which are absent"
)


@pytest.fixture(scope="module")
def outputs() -> list[str]:
    return [json.loads(line)["output"] for line in DATA.read_text(encoding="utf-8").splitlines() if line]


def test_every_output_is_conserved_however_split(outputs: list[str]) -> None:
    fmt = toolgram.get_format("hermes")
    assert len(outputs) == 500
    for text in outputs:
        whole, message = run(fmt, [text])
        check_events(whole, text)
        check_message(message, whole)
        for size in CUT_SIZES[1:]:
            events, streamed = run(fmt, cut(text, size))
            assert merged(events) == merged(whole), text
            assert streamed == message, text


def test_what_json_reads_is_never_missed(outputs: list[str]) -> None:
    fmt = toolgram.get_format("hermes")
    read = 0
    for text in outputs:
        try:
            expected = [json.loads(body) for body in re.findall(r"<tool_call>(.*?)</tool_call>", text, re.DOTALL)]
        except json.JSONDecodeError:
            continue
        if not expected or not all(isinstance(call.get("arguments"), dict) for call in expected):
            continue
        read += 1
        message = fmt.parse(text)
        assert [{"name": c.name, "arguments": json.loads(c.arguments)} for c in message.tool_calls] == [
            {"name": call["name"], "arguments": call["arguments"]} for call in expected
        ], text
        assert {call.status for call in message.tool_calls} == {"complete"}
    assert read > 200


def test_no_call_is_made_of_what_cannot_be_read(outputs: list[str]) -> None:
    fmt = toolgram.get_format("hermes")
    for text in outputs:
        for call in fmt.parse(text).tool_calls:
            assert call.status != "complete" or isinstance(json.loads(call.arguments), dict)


def test_nearly_every_output_gives_a_call(outputs: list[str]) -> None:
    """Half of them are in Python's spelling, from the first quote on or from some later one."""
    fmt = toolgram.get_format("hermes")
    marked = [text for text in outputs if "<tool_call>" in text]
    read = [text for text in marked if any(call.status == "complete" for call in fmt.parse(text).tool_calls)]
    assert len(read) >= 0.98 * len(marked)
