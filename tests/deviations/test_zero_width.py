"""A character of no width directly after a marker that opens a call is dropped, and the call is read.

Strategy: the simplest call of every format, with such a character after its first marker. Inside a value it is data.
"""

from __future__ import annotations

import json

import pytest

import toolgram
from tests.generators.calls_in_halves import around_string, simple_call
from tests.streams import calls_of, check_events, check_message, cut, merged, run
from toolgram.program.state import THOUGHT

# Their calls begin without a marker, or, in Llama 3 and Olmo 3, with plain text, which counts only if a name follows.
WITHOUT = {"functionary_v3_2", "glm4", "llama3_json", "llama4_pythonic", "olmo3", "xlam"}
NAMES = [name for name in toolgram.format_names() if name not in WITHOUT]


def after_first_marker(name: str) -> tuple[str, str]:
    """The simplest call, cut after its first marker that opens no thought."""
    call, program = simple_call(name)[0], toolgram.get_format(name).program
    thoughts = {program.literals[each.trigger] for each in program.initial.symbols if each.opens == THOUGHT}
    markers = [marker for marker in program.markers if marker not in thoughts]
    found = [(call.index(marker.strip()), -len(marker.strip())) for marker in markers if marker.strip() in call]
    begin, size = min(found)
    return call[: begin - size], call[begin - size :]


@pytest.mark.parametrize("character", ["\u200b", "\ufeff"])
@pytest.mark.parametrize("name", NAMES)
def test_a_call_after_a_character_of_no_width(name: str, character: str) -> None:
    fmt, (opener, rest) = toolgram.get_format(name), after_first_marker(name)
    expected = calls_of(fmt.parse(opener + rest, prefix="", finish_reason="stop"))
    text = f"{opener}{character}{rest}"
    events, message = run(fmt, [text], finish_reason="stop")
    check_events(events, text)
    check_message(message, events)
    assert calls_of(message) == expected
    assert ("unusual_form", character) in [(each.kind, each.text) for each in message.anomalies]
    for size in (1, 2, 5):
        streamed, told = run(fmt, cut(text, size), finish_reason="stop")
        assert merged(streamed) == merged(events)
        assert told == message


@pytest.mark.parametrize("name", NAMES)
def test_a_strict_parser_drops_none(name: str) -> None:
    opener, rest = after_first_marker(name)
    parser = toolgram.get_format(name).parser(prefix="", strict=True)
    events = merged(parser.feed(f"{opener}\u200b{rest}") + parser.close("stop"))
    dropped = [event for event in events if event.type == "dropped" and event.why == "syntax"]
    assert not any("\u200b" in event.text for event in dropped)


@pytest.mark.parametrize("name", NAMES)
def test_in_a_value_it_is_data(name: str) -> None:
    before, after = around_string(name)
    _, message = run(toolgram.get_format(name), [f"{before}a\u200b\ufeffb{after}"], finish_reason="stop")
    assert "a\u200b\ufeffb" in json.loads(message.tool_calls[0].arguments).values()
