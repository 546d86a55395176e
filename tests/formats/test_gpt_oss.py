"""gpt-oss: a call has a recipient, a channel and perhaps a hint, and their order in its header varies."""

from __future__ import annotations

from functools import partial

import pytest

from tests.streams import assert_parses

parses = partial(assert_parses, "gpt_oss")
PROMPT = "<|start|>assistant"
CALL_F = ("f", {"a": 1})


@pytest.mark.parametrize("prefix", ["", PROMPT])
@pytest.mark.parametrize("recipient", [" to=functions.f", " to=f", "to=functions.f"])
@pytest.mark.parametrize("hint", ["", " json", " <|constrain|>json", "<|constrain|>json", " code", "  "])
def test_headers_of_one_call(prefix: str, recipient: str, hint: str) -> None:
    body = '<|message|>{"a": 1}'
    for channel in ("commentary", "analysis", "final"):
        parses(f"{recipient}<|channel|>{channel}{hint}{body}<|call|>", None, [CALL_F], prefix=prefix)
        parses(f"<|channel|>{channel} {recipient.strip()}{hint}{body}", None, [CALL_F], prefix=prefix)
    parses(f"{recipient}{hint}{body}<|end|>", None, [CALL_F], prefix=prefix)
