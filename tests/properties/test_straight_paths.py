"""The straight way reads what the readers read: the same events, the same continuation, the same message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.properties.selection import every_format
from tests.strategies import chunkings, outputs
from toolgram.events import event_to_dict
from toolgram.runtime.path_examples import examples

TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}]


def all_said(fmt: toolgram.Format, pieces: Sequence[str], *, straight: bool, strict: bool = False) -> list[Any]:
    """All that a parser says and would go on from, after every piece."""
    ids = iter(range(10**6))
    parser = fmt.parser(call_ids=lambda: f"id-{next(ids)}", strict=strict, tools=TOOLS)
    if not straight:
        parser.trace_to(lambda step: None)  # then the readers read
    found: list[Any] = []
    for piece in pieces:
        found.append([event_to_dict(event) for event in parser.feed(piece)])
        found.append(parser.snapshot())
    found.append([event_to_dict(event) for event in parser.close("stop")])
    return [*found, parser.message.to_dict()]


def check(name: str, pieces: Sequence[str], *, strict: bool = False) -> None:
    fmt = toolgram.get_format(name)
    assert all_said(fmt, pieces, straight=True, strict=strict) == all_said(fmt, pieces, straight=False, strict=strict)


@every_format
@given(data=st.data())
def test_any_output(name: str, data: st.DataObject) -> None:
    text = data.draw(outputs(name))
    check(name, [text])
    check(name, data.draw(chunkings(text)))


@every_format
@given(data=st.data())
def test_examples_that_are_changed_a_little(name: str, data: st.DataObject) -> None:
    """Blanks, brackets, quotes, markers and other names, at some places of the format's own examples."""
    fmt = toolgram.get_format(name)
    text = data.draw(st.sampled_from(examples(fmt.program)))
    inserted = st.sampled_from([" ", "\n\t ", " " * 17, "{", "}", "]", ",", '"', "\\", "x", "", "0", "é", "<", "}}"])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        removed = data.draw(st.sampled_from([0, 0, 1, 3]))
        text = text[:at] + data.draw(inserted) + text[at + removed :]
    check(name, [text], strict=data.draw(st.booleans()))
    at = data.draw(st.integers(0, len(text)))
    check(name, [text[:at], text[at:]])


@every_format
def test_every_cut_of_the_examples(name: str) -> None:
    fmt = toolgram.get_format(name)
    for at in range(len(fmt.example) + 1):
        check(name, [fmt.example[:at], fmt.example[at:]])


@every_format
def test_names_that_are_words_of_the_format(name: str) -> None:
    """Where a name stands, such a word may mean something else: the readers decide."""
    fmt = toolgram.get_format(name)
    words = [text for text in fmt.program.literals.values() if text[0].isalnum()]
    for call in fmt.parse(fmt.example, prefix="").tool_calls:
        for word in words:
            check(name, [fmt.example.replace(call.name, word)])
            check(name, [fmt.example.replace(call.name, word + "s")])
