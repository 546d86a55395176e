"""The proof of exports finds what an export must not allow."""

from __future__ import annotations

import pytest

import toolgram
from toolgram.check.exports import violations
from toolgram.export.building import Builder


def test_a_call_in_code_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the rule that keeps it out, the proof shows an output with a call that is text."""
    fmt = toolgram.get_format("hermes")
    assert not list(violations(fmt))
    monkeypatch.setattr(Builder, "_without_code", lambda builder, node, forbidden: forbidden)
    found = list(violations(fmt))
    assert [each.partition(":")[0] for each in found] == ["required after text"]
    assert "no call is read in it" in found[0]
