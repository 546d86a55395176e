"""Strings whose quotes are not escaped: what is held until the end of one is known, and what a cut leaves."""

from __future__ import annotations

import pytest

import toolgram
from toolgram.limits import LONGEST_TAIL

CALL = '<tool_call>{"name": "f", "arguments": %s}</tool_call>'


def test_a_cut_gives_a_beginning() -> None:
    text, fmt = CALL % '{"c": "f("a", "b")", "d": 1}', toolgram.get_format("hermes")
    for at in range(text.index("a"), len(text)):
        if text[:at].endswith('f("'):
            continue  # as in JSON, that quote has ended the string
        for call in fmt.parse(text[:at], finish_reason="length").tool_calls:
            assert '{"c": "f(\\"a\\", \\"b\\")", "d": 1}'.startswith(call.arguments)


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
