"""Granite 3: one marker and a JSON list of calls; thinking and the response after it in tags.

Strategy: as in `test_mistral_v3`, whose list this is; what is new are the tags, and where they are text.
"""

from __future__ import annotations

from tests.streams import held_after


def test_what_is_held() -> None:
    assert held_after("granite_3", "Hi <|tool") == " <|tool"
    assert held_after("granite_3", "Hi <response>") == ""
    assert held_after("granite_3", "<think>a</think> <resp") == " <resp"
    assert held_after("granite_3", '<|tool_call|>[{"name": "f", "arguments": {"') == ""
