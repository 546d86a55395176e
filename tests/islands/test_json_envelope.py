"""An envelope is rejected at one place, however its text is split into deltas."""

from __future__ import annotations

import pytest

import toolgram
from tests.streams import assert_same_however_split


@pytest.mark.parametrize(
    ("name", "opening"),
    [
        ("mistral_v3", "[TOOL_CALLS] [{"),
        ("granite_3", "<|tool_call|>[{"),
        ("hermes", "<tool_call>{"),
        ("llama3_json", "{"),
    ],
)
@pytest.mark.parametrize(
    "key",
    [
        '"\\" ',
        '"\\\\" ',
        '"\\\\/ ',
        '"n\\n: ',
        '"n\\u0061me": "f"',
        '"n\\u0062"',
        '"\\ud83d\\ude00"',
        '"n\x01"',
        '"na\\x',
    ],
)
def test_an_escape_in_a_key_is_rejected_where_it_is_whole(name: str, opening: str, key: str) -> None:
    for before in ("", '"name": "f", '):
        assert_same_however_split(toolgram.get_format(name), f"Well. {opening}{before}{key}, and more.")
