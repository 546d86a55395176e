"""Strings whose quotes are not escaped: what is held until the end of one is known, and what a cut leaves."""

from __future__ import annotations

import pytest

import toolgram
from toolgram.limits import LONGEST_TAIL

CALL = '<tool_call>{"name": "f", "arguments": %s}</tool_call>'


# By format: the text, where its damaged value begins, and a quote that ends the string if nothing follows it.
DAMAGED = {
    "hermes": (CALL % '{"c": "f("a", "b")", "d": 1}', '"a"', 'f("'),
    "lfm2": ("<|tool_call_start|>[f(c=\"print('a', \"b\")\", y='z'), g(b=2)]<|tool_call_end|>", "print", None),
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_cut_gives_a_beginning(name: str, reason: str) -> None:
    fmt, (text, begin, quote) = toolgram.get_format(name), DAMAGED[name]
    meant = fmt.parse(text).tool_calls[0].arguments
    for at in range(text.index(begin), text.rindex(", g" if name == "lfm2" else "}")):
        if quote and text[:at].endswith(quote):
            continue  # as in JSON, that quote has ended the string
        for call in fmt.parse(text[:at], finish_reason=reason).tool_calls[:1]:
            assert meant.startswith(call.arguments), text[:at]
            assert call.status == "truncated" or call.arguments == meant, text[:at]


@pytest.mark.parametrize("size", [7, 100_000])
def test_what_is_held_is_bounded(size: int) -> None:
    for rest in (
        ', "d": "' + "x" * 3 * LONGEST_TAIL,
        ' , "", ' * LONGEST_TAIL,
        '"},' * LONGEST_TAIL,
        " " * 3 * LONGEST_TAIL,
    ):
        parser = toolgram.get_format("hermes").parser()
        text = CALL[: CALL.index("%")] + '{"c": "f("a"' + rest
        for at in range(0, len(text), size):
            parser.feed(text[at : at + size])
            assert len(parser.snapshot()["buffer"]) <= LONGEST_TAIL + size
        parser.close()
        assert not [call for call in parser.message.tool_calls if call.status == "complete"]
