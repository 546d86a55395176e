"""Values between markers: every short text, whole and character by character."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product

import pytest

from toolgram.islands import MarkedValue
from toolgram.islands.escaped_values import EscapedValue
from toolgram.islands.tagged_values import TaggedValue
from toolgram.tools.parameters import Types

ALPHABET = "[]{}\"'\\,:1 tn-"
DECLARED: list[Types] = [
    None,
    *(
        frozenset(types)
        for types in (
            {"string"}, {"array"}, {"object"}, {"integer"}, {"number"}, {"boolean"}, {"string", "null"},
            {"string", "integer"}, {"array", "string"}, {"object", "array"},
        )
    ),
]  # fmt: skip


MADE: dict[str, Callable[[Types], MarkedValue]] = {
    "bare": TaggedValue,
    "quoted": partial(TaggedValue, quoted=True),
    "trimmed": partial(TaggedValue, trimmed=True),
    "xml": partial(EscapedValue, kind="xml"),
    "html": partial(EscapedValue, kind="html"),
    "url": partial(EscapedValue, kind="url"),
}
ALPHABETS = {
    "xml": ("<![CDATA[", "]]>", "&lt;", "&", "[", "]", '"', "\\", ",", "1", " ", "x", "<"),
    "html": ("&#34;", "&lt;", "&#3", "&", "[", "]", '"', "\\", ",", "1", " ", "x", ";"),
    "url": ("%22", "%5B", "%5D", "%C3%A9", "%C3", "%E2%80", "%F0%9F%8E%89", "%", "1", "%31", "%2C", "x"),
}


def read(pieces: Iterable[str], value: MarkedValue) -> tuple[str, int, int, str]:
    """What is written, how much is taken, how much of that has written something, and what the end adds."""
    written, taken, mark = "", 0, 0
    for piece in pieces:
        end = value.read(piece, 0, False)
        written += value.out
        if value.out:
            mark = taken + end - value.tail
        taken += end
        if value.broken:
            return written, taken, mark, "broken"
    rest = value.finish()
    return written, taken, mark, "broken" if value.broken else rest


@pytest.mark.parametrize("types", DECLARED, ids=lambda types: "any" if types is None else "-".join(sorted(types)))
@pytest.mark.parametrize("spelling", MADE)
def test_every_short_text(types: Types, spelling: str) -> None:
    for length in (1, 2, 3):
        for symbols in product(ALPHABETS.get(spelling, ALPHABET), repeat=length):
            text = "".join(symbols)
            whole = read([text], MADE[spelling](types))
            streamed = read(text, MADE[spelling](types))
            assert streamed == whole, text
            if whole[3] != "broken":
                json.loads(whole[0] + whole[3], strict=False)


def test_an_escaped_literal_that_breaks_or_is_cut_off_says_how_far_it_was_written() -> None:
    value = TaggedValue(frozenset({"array"}))
    assert read(["[\\", '"a', '\\"'], value)[:3] == ('["a', 6, 4)
    value = TaggedValue(frozenset({"array"}))
    assert read(["[\\x"], value) == ("[", 2, 1, "broken")
