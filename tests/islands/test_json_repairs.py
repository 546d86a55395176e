"""Local deviations in JSON are repaired on the way, and never retracted."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.generators.json_breakages import broken
from tests.json_prefix import is_json_prefix
from tests.repairs_table import PAGE, counts, page
from tests.strategies import chunkings
from tests.streams import assert_same_however_split, sources
from toolgram.events import Event, ToolCallDelta

OUTPUTS = {
    "hermes": '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>',
    "mistral_v11": "[TOOL_CALLS]f[ARGS]%s",
    "mistral_v3": '[TOOL_CALLS][{"name": "f", "arguments": %s}]',
    "granite_3": '<|tool_call|>[{"name": "f", "arguments": %s}]',
    "llama3_json": '<|python_tag|>{"name": "f", "parameters": %s}',
}


def read(fmt: toolgram.Format, pieces: list[str], strict: bool = False) -> tuple[list[Event], toolgram.Message]:
    parser = fmt.parser(strict=strict)
    events = [event for piece in pieces for event in parser.feed(piece)]
    return events + parser.close(), parser.message


@given(st.integers(), st.sampled_from([*OUTPUTS]), st.data())
def test_broken_arguments_keep_the_contract(seed: int, name: str, data: st.DataObject) -> None:
    _, written, _ = broken(random.Random(seed))
    fmt, text = toolgram.get_format(name), OUTPUTS[name] % written + " More text."
    events, message = read(fmt, [text])
    assert sources(events) == text
    pieces = data.draw(chunkings(text))
    for split in (pieces, list(text)):
        others, other = read(fmt, split)
        assert sources(others) == text
        assert other.to_dict()["anomalies"] == message.to_dict()["anomalies"]
        assert [(call.arguments, call.status) for call in other.tool_calls] == [
            (call.arguments, call.status) for call in message.tool_calls
        ]
    for failed in message.malformed:
        assert is_json_prefix(failed.arguments)
    for call in message.tool_calls:
        assert is_json_prefix(call.arguments)
        if call.status == "complete":
            assert isinstance(json.loads(call.arguments), dict)


@pytest.mark.parametrize("digits", [4299, 4300, 4301, 5000])
@pytest.mark.parametrize("name", ["mistral_v11", "llama3_json"])
@pytest.mark.parametrize("size", [1, 3, 4, 16, 17, 10_000])
def test_an_integer_that_python_refuses_is_no_argument(digits: int, name: str, size: int) -> None:
    text = OUTPUTS[name] % ('{"a": [12, -%s], "b": 3}' % ("7" * digits))
    _, message = read(toolgram.get_format(name), [text[at : at + size] for at in range(0, len(text), size)])
    if digits <= 4300:
        (call,) = message.tool_calls
        assert (call.status, len(call.arguments)) == ("complete", digits + 22)
    else:
        (failed,) = message.malformed
        assert not message.tool_calls
        assert len(failed.arguments) == 4300 + 12


def test_work_on_what_waits_is_bounded() -> None:
    """A comma with a long run of blanks behind it is decided after 64 of them."""
    parser = toolgram.get_format("mistral_v11").parser()
    parser.feed('[TOOL_CALLS]f[ARGS]{"a": 1,')
    for _ in range(1000):
        parser.feed(" ")
        assert len(json.dumps(parser.snapshot())) < 1500


def test_the_page_beside_json_repair_is_not_older_than_the_code() -> None:
    assert PAGE.read_text() == page(counts())


@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_a_repair_in_a_list_ends_where_its_call_does(size: int) -> None:
    """A missing comma behind arguments, and then no colon: the call before stands, and the list is read on."""
    text = '[TOOL_CALLS][{"name": "a", "arguments": "{}"\n "f" , "arguments": "{}"}, {"name": "b", "arguments": {}}]'
    events, message = read(
        toolgram.get_format("mistral_v3"), [text[at : at + size] for at in range(0, len(text), size)]
    )
    assert sources(events) == text
    assert [(call.name, call.status) for call in message.tool_calls][:1] == [("a", "complete")]


@given(st.text("a1.\"'{}[],: \\\n`json#", max_size=24))
def test_nothing_in_a_string_is_retracted(written: str) -> None:
    fmt, text = toolgram.get_format("hermes"), OUTPUTS["hermes"] % json.dumps(written, ensure_ascii=False)
    for call in assert_same_however_split(fmt, text).tool_calls:
        if call.status == "complete":
            assert isinstance(json.loads(call.arguments), dict)
    parser = fmt.parser()
    events = [event for character in text for event in parser.feed(character)] + parser.close()
    assert is_json_prefix("".join(event.arguments for event in events if isinstance(event, ToolCallDelta)))


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("written", ['{"a": %s}', '{"a": [%s], }', "{'a': %s}", '"{\\"a\\": %s}"'])
def test_an_integer_that_python_refuses_is_malformed(name: str, written: str) -> None:
    if written[0] == '"' and name == "mistral_v11":
        return  # whose arguments are never a string
    for count, statuses in ((4300, ["complete"]), (4301, [])):
        message = toolgram.get_format(name).parse(OUTPUTS[name] % (written % ("9" * count)))
        assert [call.status for call in message.tool_calls] == statuses
