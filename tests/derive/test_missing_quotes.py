"""Text in quotes of its own kind whose closing quote is missing, in derived formats."""

from __future__ import annotations

import pytest

from tests.derive.turns import calls_of, derived
from tests.streams import assert_same_however_split

MARKERS = {"own_quotes": ("<|call>", '<|"|>', "<call|>"), "own_nesting": ("<|tool_call>call:", '<|"|>', "<tool_call|>")}


def written(name: str, arguments: str, function: str = "f") -> str:
    opening, quote, closing = MARKERS[name]
    return f"{opening}{function}{{{arguments}}}{closing}".replace("\1", quote)


@pytest.mark.parametrize("name", MARKERS)
@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("city:\1x", {"city": "x"}),
        ("n:2,city:\1x", {"n": 2, "city": "x"}),
        ("a:\1x\1,b:\1y", {"a": "x", "b": "y"}),
        # A quote that is missing before the next argument makes no other key.
        ("a:\1x,b:\1y\1", None),
        ("a:\1x,b:\1y\1,n:2", None),
        ("a:\1x\1,b:y\1,n:2", None),
    ],
)
def test_the_end_of_the_call_ends_the_text(name: str, arguments: str, meant: dict[str, object] | None) -> None:
    fmt, text, other = derived(name), written(name, arguments), written(name, "city:\1z\1", "g")
    for whole, calls in ((text, [("f", meant)]), (text + other, [("f", meant), ("g", {"city": "z"})])):
        message = assert_same_however_split(fmt, whole, finish_reason="stop")
        if meant is None:
            assert not any(call.name == "f" and call.status == "complete" for call in message.tool_calls)
            continue
        assert (calls_of(message), message.content) == (calls, None)
        assert [each.kind for each in message.anomalies] == ["unclosed_value"]
        strict = fmt.parse(text, strict=True, finish_reason="stop")
        assert "complete" not in [call.status for call in strict.tool_calls]
        assert [call.status for call in assert_same_however_split(fmt, text).tool_calls] == ["truncated"]
