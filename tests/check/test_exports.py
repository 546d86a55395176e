"""The proof of exports finds what an export must not allow."""

from __future__ import annotations

import pytest

import toolgram
from toolgram.check.exports import violations
from toolgram.export.building import Builder


def test_a_call_in_code_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rule that keeps it out, the proof shows outputs whose call is text: a thought quotes its end."""
    fmt = toolgram.get_format("hermes")
    assert not list(violations(fmt))
    monkeypatch.setattr(Builder, "_without_code", lambda builder, node, forbidden: forbidden)
    found = list(violations(fmt))
    assert [each.partition(":")[0] for each in found] == ["required", "required after text", "named"]
    assert "'<think>Hm `</think>" in found[0]
    assert all("no call is read in it" in each for each in found)
