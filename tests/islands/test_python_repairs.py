"""Python arguments that are wrong in one place: repaired if one reading is possible, and else malformed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.clauses import check_widely
from tests.json_prefix import is_json_prefix
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split
from toolgram.events import ToolCallDelta
from toolgram.limits import MAX_DIGITS

LISTED = "<|tool_call_start|>[f(%s), g(b=2)]<|tool_call_end|>"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


def arguments_so_far(text: str) -> list[str]:
    """The deltas of the first call, read by character."""
    parser = toolgram.get_format("lfm2").parser()
    events = [event for character in text for event in parser.feed(character)] + parser.close()
    return [event.arguments for event in events if isinstance(event, ToolCallDelta) and event.index == 0]


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_what_is_cut_off_is_truncated(reason: str) -> None:
    fmt = toolgram.get_format("lfm2")
    text = (LISTED % "c=\"print('a', \"b\")\", y='z'").removesuffix("<|tool_call_end|>")
    meant = fmt.parse(text + "<|tool_call_end|>").tool_calls[0].arguments
    for at in range(text.index("(") + 5, text.index("), g")):
        for call in fmt.parse(text[:at], finish_reason=reason).tool_calls[:1]:
            assert call.status == "truncated"
            assert meant.startswith(call.arguments)


@pytest.mark.parametrize("size", [MAX_DIGITS, MAX_DIGITS + 1])
@pytest.mark.parametrize(
    "written",
    quarter(["a=%s", "a=-%s", "a=[1, %s], b=2", "a=%s.5", "a={%s: 1}", "a={%s, 1}", "%s=1"], "digits"),
)
def test_the_limit_of_digits_does_not_depend_on_the_deltas(written: str, size: int) -> None:
    for digits in ("1" * size, "9_" * (size - 1) + "9"):
        failure = check_widely(toolgram.get_format("lfm2"), LISTED % (written % digits), TOOLS)
        assert failure is None, failure.kind


@given(st.lists(st.sampled_from(["a", "it's", "x=", '"', "'", ", ", "b='c'", ")", "]", "\\d", "\\n", "1", "(", "g("])))
def test_quotes_and_brackets_in_any_order(pieces: list[str]) -> None:
    message = assert_same_however_split(toolgram.get_format("lfm2"), LISTED % ("x='" + "".join(pieces) + "'"))
    for call in message.tool_calls:
        if call.status == "complete":
            assert isinstance(json.loads(call.arguments), dict)


@given(st.text("a1.0'\"{}[](),:= \\\\\nx_TrueNone+-", max_size=24))
def test_nothing_is_retracted_whatever_is_written(written: str) -> None:
    message = assert_same_however_split(toolgram.get_format("lfm2"), LISTED % written)
    for call in message.tool_calls:
        if call.status == "complete":
            assert isinstance(json.loads(call.arguments), dict)
    assert is_json_prefix("".join(arguments_so_far(LISTED % written)))
