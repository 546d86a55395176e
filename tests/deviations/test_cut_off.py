"""Outputs cut off at every character: a call that has begun is cut off, and nothing of a marker is a bracket too many.

Strategy: each format's own examples, cut after each character.  A closing marker may begin with a shorter marker, or
with a bracket: what is left of it says nothing yet.
"""

from collections.abc import Iterator
from itertools import product

import pytest

import toolgram
from tests.generators.calls_in_halves import IN_VALUE, around_value, simple_call
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split
from toolgram.limits import LONGEST_TAIL
from toolgram.observing.paths import canonical_outputs
from toolgram.program.state import STOP, THOUGHT


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "a cut off output holds"))
def test_a_cut_off_output_holds_no_mistakes(name: str) -> None:
    fmt = toolgram.get_format(name)
    for prefix, output, _ in canonical_outputs(fmt):
        for end in range(1, len(output)):
            message = fmt.parse(output[:end], prefix=prefix, finish_reason="length")
            assert not message.malformed, output[:end]
            surplus = [each for each in message.anomalies if each.kind == "surplus_closer"]
            # the last of it, and whole
            assert all(each.start + len(each.text) == end for each in surplus), output[:end]


def markers(fmt: toolgram.Format, opens: str) -> list[str]:
    """Return the markers that open something, or end the turn, in content."""
    symbols = (each for each in fmt.program.initial.symbols if each.opens == opens)
    return [fmt.program.literals[each.trigger] for each in symbols if each.trigger in fmt.program.literals]


def closers_of_thoughts(fmt: toolgram.Format) -> list[str]:
    """Return the markers that lead from reasoning to content, and open no call."""
    found = set()
    for state in fmt.program.states.values():
        if state.meaning == "reasoning":
            for text, symbol in zip(state.literals, state.symbols, strict=False):
                found |= {text} if not symbol.opens and state.row[symbol.trigger].dest.meaning == "content" else set()
    return sorted(found)


def spelled_ends(name: str) -> Iterator[tuple[str, str]]:
    """A thought that is not over after a whole call, and the spelling of a token that ends the turn."""
    program = toolgram.get_format(name).program
    ends = [program.literals[each] for each in program.stop if each in program.literals]
    for thought, end in product(markers(toolgram.get_format(name), THOUGHT)[:1], ends):
        yield f"{thought}Hm. {simple_call(name)[0].removeprefix(thought)}", end


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "the end of a turn"))
def test_the_end_of_a_turn_that_is_only_spelled_is_none_if_the_output_was_cut_off(name: str) -> None:
    """Text after it would make the call a part of the thought."""
    fmt = toolgram.get_format(name)
    for text, end in spelled_ends(name):
        reading = {reason: fmt.parse(text + end, prefix="", finish_reason=reason) for reason in ("stop", "length")}
        statuses = {reason: [call.status for call in each.tool_calls] for reason, each in reading.items()}
        if statuses["stop"] == ["complete"]:
            assert statuses["length"] == ["truncated"], text + end
            assert not fmt.parse(f"{text}{end}, no", prefix="", finish_reason="stop").tool_calls


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "ends of turns in thoughts"))
def test_an_end_of_turn_that_a_thought_spells_does_not_hide_the_one_after_it(name: str) -> None:
    """Text is read again from the first one on, and only up to it: the second is one, however the text is split."""
    fmt = toolgram.get_format(name)
    before, after = around_value(name)
    for thought, closer, end in product(markers(fmt, THOUGHT), closers_of_thoughts(fmt), markers(fmt, STOP)):
        for size in {0, len(after) // 2, len(after)}:
            call = f"{before.removeprefix(thought)}{IN_VALUE}{after[:size]}"
            assert_same_however_split(fmt, f"{thought}Hm. {end}{call}{closer}{end}")


# --- strings whose quotes are not escaped ---------------------------------------------------------------------------
# What is held until the end of one is known, and what a cut leaves.

CALL = '<tool_call>{"name": "f", "arguments": %s}</tool_call>'
# By format: the text, where its damaged value begins, and a quote that ends the string if nothing follows it.
DAMAGED = {
    "hermes": (CALL % '{"c": "f("a", "b")", "d": 1}', '"a"', 'f("'),
    "lfm2": ("<|tool_call_start|>[f(c=\"print('a', \"b\")\", y='z'), g(b=2)]<|tool_call_end|>", "print", None),
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_cut_gives_a_beginning(name: str, reason: str) -> None:
    fmt, (text, begin, quote) = toolgram.get_format(name), DAMAGED[name]
    meant = fmt.parse(text).tool_calls[0].arguments
    for at in range(text.index(begin), text.rindex(", g" if name == "lfm2" else "}")):
        if quote and text[:at].endswith(quote):
            continue  # as in JSON, that quote has ended the string
        for call in fmt.parse(text[:at], finish_reason=reason).tool_calls[:1]:
            assert meant.startswith(call.arguments), text[:at]
            assert call.status == "truncated" or call.arguments == meant, text[:at]


@pytest.mark.parametrize("size", [7, 100_000])
def test_what_is_held_is_bounded(size: int) -> None:
    for rest in (
        ', "d": "' + "x" * 3 * LONGEST_TAIL,
        ' , "", ' * LONGEST_TAIL,
        '"},' * LONGEST_TAIL,
        " " * 3 * LONGEST_TAIL,
    ):
        parser = toolgram.get_format("hermes").parser()
        text = CALL[: CALL.index("%")] + '{"c": "f("a"' + rest
        for at in range(0, len(text), size):
            parser.feed(text[at : at + size])
            assert len(parser.snapshot()["buffer"]) <= LONGEST_TAIL + size
        parser.close()
        assert not [call for call in parser.message.tool_calls if call.status == "complete"]
