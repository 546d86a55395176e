"""Comparing: prefixes and suffixes end at the edges of markers and words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolgram.derive.comparing import (
    between,
    common_prefix,
    common_suffix,
    compare,
    find_slots,
    markers_of,
    mirrors,
    split_junction,
)


@pytest.mark.parametrize(
    ("a", "b", "prefix", "suffix"),
    [
        ("<|a|>x<|e|>", "<|a|>y<|e|>", "<|a|>", "<|e|>"),
        ("<|start|>x", "<|stop|>x", "", "x"),
        ("[BEGIN A]x", "[BEGIN B]x", "", "x"),
        ("【call】x", "【case】x", "", "x"),
        ("word other", "word others", "word ", ""),
        ("x</tool_call>", "x</tool_calls>", "x", ""),
        ("a < b", "a < c", "a < ", ""),
        ("same", "same", "same", ""),
        ("", "x", "", ""),
    ],
)
def test_what_two_texts_share(a: str, b: str, prefix: str, suffix: str) -> None:
    comparison = compare(a, b)
    assert (comparison.prefix, comparison.suffix) == (prefix, suffix)


_texts = st.lists(
    st.sampled_from(["<a>", "</a>", "<", ">", "[", "]", "{", "}", "word", " ", "\n", "x", '"']), max_size=9
)


@given(_texts.map("".join), _texts.map("".join))
def test_a_comparison_loses_nothing(a: str, b: str) -> None:
    split = compare(a, b)
    assert split.prefix + split.left + split.suffix == a
    assert split.prefix + split.right + split.suffix == b


@given(st.lists(_texts.map("".join), min_size=1, max_size=3))
def test_shared_ends_are_ends(texts: list[str]) -> None:
    assert all(text.startswith(common_prefix(texts)) for text in texts)
    assert all(text.endswith(common_suffix(texts)) for text in texts)


@given(_texts.map("".join), _texts.map("".join), _texts.map("".join))
def test_a_junction_is_an_end_a_separator_and_a_start(junction: str, before: str, after: str) -> None:
    end, separator, start = split_junction(junction, before, after)
    assert end + separator + start == junction
    assert after.startswith(end)
    assert before.endswith(start)


def test_slots_and_what_stands_between() -> None:
    text = "<f=name>12</f>"
    slots = find_slots(text, [("n", "name"), ("v", "12"), ("w", "1")])
    assert [slot.label for slot in slots] == ["n", "v"]
    assert between(text, slots) == ["<f=", ">", "</f>"]


def test_markers_whatever_their_brackets() -> None:
    assert markers_of("<a> text [B] 【c】 ```json\n>>>") == ["<a>", "text", "[B]", "【c】", "```json", ">>>"]


@pytest.mark.parametrize(
    ("opening", "closing", "are"),
    [
        ("<think>", "</think>", True),
        ("[THINK]", "[/THINK]", True),
        ("<|START_X|>", "<|END_X|>", True),
        ("<｜calls▁begin｜>", "<｜calls▁end｜>", True),
        ('<tool name="', "</tool>", True),
        ("<a>", "</b>", False),
        ("<a>", "<a>", False),
        ("", "</a>", False),
    ],
)
def test_counterparts(opening: str, closing: str, are: bool) -> None:
    assert mirrors(opening, closing) is are
