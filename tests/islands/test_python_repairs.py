"""Digits in Python arguments, of which Python itself reads no more than a limit."""

from __future__ import annotations

import pytest

import toolgram
from tests.clauses import check_widely
from tests.properties.selection import quarter
from toolgram.limits import MAX_DIGITS

LISTED = "<|tool_call_start|>[f(%s), g(b=2)]<|tool_call_end|>"
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]


@pytest.mark.parametrize("size", [MAX_DIGITS, MAX_DIGITS + 1])
@pytest.mark.parametrize(
    "written",
    quarter(["a=%s", "a=-%s", "a=[1, %s], b=2", "a=%s.5", "a={%s: 1}", "a={%s, 1}", "%s=1"], "digits"),
)
def test_the_limit_of_digits_does_not_depend_on_the_deltas(written: str, size: int) -> None:
    for digits in ("1" * size, "9_" * (size - 1) + "9"):
        failure = check_widely(toolgram.get_format("lfm2"), LISTED % (written % digits), TOOLS)
        assert failure is None, failure.kind
