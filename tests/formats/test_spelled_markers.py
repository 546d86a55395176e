"""Calls whose markers are tokens, beside calls whose markers are only spelled."""

from __future__ import annotations

import pickle
from itertools import product

import pytest

import toolgram
from tests.properties.selection import quarter
from tests.properties.test_special_tokens import NO_TOKEN, meant, quotation, quoted, read, special
from tests.streams import CUT_SIZES, calls_of, cut, merged, sources, without_ids
from toolgram.events import Event

CALLED = [name for name in toolgram.format_names() if toolgram.get_format(name).program.special]


@pytest.mark.parametrize("name", CALLED)
def test_exactly_what_is_meant_is_called(name: str) -> None:
    fmt = toolgram.get_format(name)
    text = f"I write so.\n\n{fmt.example}"
    wanted = calls_of(read(name, [meant(name, text)])[1])
    assert wanted == calls_of(fmt.parse(text, prefix="", finish_reason="stop"))
    output = [*quoted(f"I write {quotation(name)} so.\n\n"), *meant(name, fmt.example)]
    events, message = read(name, [output])
    assert calls_of(message) == wanted
    assert sources(events) == "".join(text for text, _ in output)
    characters = [[(part, number)] for text, number in output for part in cut(text, 1 if number == NO_TOKEN else 99)]
    torn = [[(part, number)] for text, number in output for part in cut(text, 3)]
    for deltas in ([[piece] for piece in output], characters, torn):
        assert read(name, deltas)[0] == events


def test_a_quoted_call_is_no_call() -> None:
    """In these formats no call is without a special token, so that the whole example may be quoted."""
    assert len([name for name in CALLED if quotation(name) == toolgram.get_format(name).example]) >= 30


BARE = '{"name": "f", "arguments": {}}'


LISTS = (BARE, f"[{BARE}]", f"[{BARE}, {BARE}]", f"{BARE}\n{BARE}", f"({BARE})")


@pytest.mark.parametrize(("between", "calls"), quarter([*product(("", "\n ", " shows "), LISTS)], "spelled markers"))
def test_a_call_without_a_marker_is_text_directly_after_a_marker_that_is_only_spelled(between: str, calls: str) -> None:
    fmt = toolgram.get_format("hermes")
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
    text = f"<tool_call>{between}{calls}\n</tool_call> so {BARE}"
    count = 1 if not between.strip() else text.count(BARE)
    first: list[Event] = []
    for size in CUT_SIZES:
        parser = fmt.parser(tools, prefix="", special_tokens=special("hermes"))
        events: list[Event] = []
        for at, piece in enumerate(cut(text, size)):
            events += parser.feed([(piece, NO_TOKEN)])
            if at % 3 == 0:
                parser = pickle.loads(pickle.dumps(parser))
        events = without_ids(merged(events + parser.close("stop")))
        first = first or events
        assert events == first
        assert [each.name for each in parser.message.tool_calls] == ["f"] * count
        assert count > 1 or parser.message.content == text.removesuffix(BARE).rstrip()
