"""LFM2: a Python list of calls between markers, thinking in tags.

Strategy: as in `test_llama4_pythonic`, whose list this is; what is new are the markers, without which a list is text.
"""

from __future__ import annotations

import toolgram
from tests.streams import assert_same_however_split, held_after, statuses


def fmt() -> toolgram.Format:
    return toolgram.get_format("lfm2")


def test_a_call_without_arguments_is_one_if_no_expression_goes_on() -> None:
    parser = fmt().parser()
    parser.feed("<|tool_call_start|>[g()")
    assert not parser.message.tool_calls
    parser.feed(",")
    assert [(c.name, c.arguments, c.status) for c in parser.message.tool_calls] == [("g", "{}", "complete")]


def test_truncated() -> None:
    text = "<|tool_call_start|>[f(a='some text', b=[1, 2])]"
    for at in range(text.index("'") + 1, text.rindex(")")):
        message = assert_same_however_split(fmt(), text[:at])
        assert statuses(message) == [("f", "truncated")]
        assert message.content is None


def test_what_is_held() -> None:
    assert held_after("lfm2", "see [f(a=") == ""
    assert held_after("lfm2", "see <|tool") == " <|tool"
    assert held_after("lfm2", "<|tool_call_start|>[get_w") == "<|tool_call_start|>[get_w"
    assert held_after("lfm2", "<|tool_call_start|>[f(a='") == ""
