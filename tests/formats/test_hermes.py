"""A call in Python's spelling that the prompt has begun: what the prompt wrote is not emitted, wherever it ends."""

from __future__ import annotations

import pytest

import toolgram
from tests.streams import assert_same_however_split


@pytest.mark.parametrize(
    "written",
    [
        "{\"arguments\": {'amount': 5000, 'ok': True}, \"name\": 'convert'}",
        "{\"name\": 'f', 'arguments': {\"a\": [True, None, 'x'], \"b\": 'it'}}",
        '{"name": "f", "arguments": {"a": [1, True], "b": {"c": False}}}',
        """{"name": "f", "arguments": {"a": "x", 'b': 2}}""",
        '{"name": "f", "arguments": {"a": None}}',
    ],
)
def test_a_prompt_may_stop_anywhere_in_it(written: str) -> None:
    text = f"<tool_call>\n{written}\n</tool_call>"
    for at in range(len(text)):
        assert_same_however_split(toolgram.get_format("hermes"), text[at:], prefix=text[:at])
