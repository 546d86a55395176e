"""A closer that nothing opened is dropped after a call, as far away from it as blanks between two parts may be."""

from __future__ import annotations

import pytest

import toolgram
from tests.streams import cut, run
from toolgram.limits import MOST_BLANKS

CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("closer", ["}", "</tool_call>"])
@pytest.mark.parametrize(("blanks", "is_dropped"), [(0, True), (MOST_BLANKS, True), (MOST_BLANKS + 1, False)])
def test_a_surplus_closer_after_blanks(closer: str, blanks: int, is_dropped: bool, size: int) -> None:
    text = CALL + " " * blanks + closer
    _, message = run(toolgram.get_format("hermes"), cut(text, size))
    assert [call.status for call in message.tool_calls] == ["complete"]
    assert (message.content or "").strip() == ("" if is_dropped else closer)
    assert [each.kind for each in message.anomalies] == ["surplus_closer"] * is_dropped
