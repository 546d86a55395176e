"""Outputs cut off at every character: a call that has begun is cut off, and nothing of a marker is a bracket too many.

Strategy: each format's own examples, cut behind each character.  A closing marker may begin with a shorter marker, or
with a bracket: what is left of it says nothing yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

import toolgram
from tests.generators.calls_in_halves import IN_VALUE, around_value, simple_call
from tests.streams import assert_same_however_split
from toolgram.program.state import STOP, THOUGHT


def examples(fmt: toolgram.Format) -> Iterator[tuple[str, str | None]]:
    for each in fmt.machine_dict["format"]["canonical"]:
        yield (each["output"], each.get("prefix")) if isinstance(each, dict) else (each, None)


@pytest.mark.parametrize("name", toolgram.format_names())
def test_a_cut_off_output_holds_no_mistakes(name: str) -> None:
    fmt = toolgram.get_format(name)
    for output, prefix in examples(fmt):
        for end in range(1, len(output)):
            message = fmt.parse(output[:end], prefix=prefix, finish_reason="length")
            assert not message.malformed, output[:end]
            surplus = [each for each in message.anomalies if each.kind == "surplus_closer"]
            assert all(each.start + len(each.text) == end for each in surplus), output[
                :end
            ]  # it is whole, and the last of it


@pytest.mark.parametrize(
    ("cut", "content", "kind"),
    [
        ("]<]mini", "Hi", "unfinished_marker"),
        ("]<]minimax[>[", "Hi", "unfinished_marker"),
        ("]<]minimax[>[</tool_c", "Hi", "unfinished_marker"),
        ("]<]minimax[>[<invoke na", "Hi ]<]minimax[>[<invoke na", "unclosed_envelope"),  # it begins a call
    ],
)
def test_the_rest_of_a_marker_that_begins_with_a_bracket(cut: str, content: str, kind: str) -> None:
    mark = "]<]minimax[>["
    called = f'Hi{mark}<tool_call>\n{mark}<invoke name="f">{mark}<a>1{mark}</a>{mark}</invoke>\n'
    message = toolgram.get_format("minimax_m3").parse(called + cut)
    assert (message.content, [call.status for call in message.tool_calls]) == (content, ["complete"])
    assert [each.kind for each in message.anomalies] == [kind]


@pytest.mark.parametrize(
    ("reason", "status"),
    [(None, "truncated"), ("stop", "complete"), ("tool_calls", "complete"), ("length", "truncated")],
)
@pytest.mark.parametrize("cut", ["", "]<]minimax[>[", "]<]minimax[>[</", "]<]minimax[>[</invoke"])
def test_a_call_whose_closing_marker_is_cut_off_in_a_shorter_one(cut: str, reason: str | None, status: str) -> None:
    mark = "]<]minimax[>["
    called = f'{mark}<tool_call>\n{mark}<invoke name="f">{mark}<a>1{mark}</a>'
    message = toolgram.get_format("minimax_m3").parse(called + cut, finish_reason=reason)
    assert [(call.name, call.status) for call in message.tool_calls] == [("f", status)]
    assert message.content is None


VALUE_CLOSERS = {  # up to a value's own closer, and the closing marker of the call
    "glm45": ("<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>.</arg_value>", "</tool_call>"),
    "minimax_m2": ('<minimax:tool_call><invoke name="f"><parameter name="a">.</parameter>', "</invoke>"),
    "qwen3_coder": ("<tool_call>\n<function=f>\n<parameter=a>\n.\n</parameter>\n", "</function>"),
    "seed_oss": ("<seed:tool_call>\n<function=f>\n<parameter=a>.</parameter>\n", "</function>"),
}


@pytest.mark.parametrize("finish_reason", ["stop", "length"])
@pytest.mark.parametrize("name", VALUE_CLOSERS)
def test_a_closing_marker_that_is_cut_off_does_not_undo_the_closer_of_the_value(name: str, finish_reason: str) -> None:
    begun, closer = VALUE_CLOSERS[name]
    for size in range(1, len(closer)):
        message = assert_same_however_split(
            toolgram.get_format(name), begun + closer[:size], finish_reason=finish_reason
        )
        (call,) = message.tool_calls
        assert "<" not in call.arguments
        assert message.content is None
        if finish_reason == "stop":
            assert (call.arguments, call.status) == ('{"a": "."}', "complete")


@pytest.mark.parametrize("reason", [None, "stop", "length"])
@pytest.mark.parametrize("name", toolgram.format_names())
def test_an_answer_of_one_word_is_text(name: str, reason: str | None) -> None:
    fmt = toolgram.get_format(name)
    assert fmt.parse("Paris.", prefix="", finish_reason=reason).content == "Paris."
    parser = fmt.parser(prefix="")
    for character in "Paris.":
        parser.feed(character)
    parser.close(reason)
    assert parser.message.content == "Paris."


def markers(fmt: toolgram.Format, opens: str) -> list[str]:
    """Return the markers that open something, or end the turn, in content."""
    symbols = (each for each in fmt.program.initial.symbols if each.opens == opens)
    return [fmt.program.literals[each.trigger] for each in symbols if each.trigger in fmt.program.literals]


def closers_of_thoughts(fmt: toolgram.Format) -> list[str]:
    """Return the markers that lead from reasoning to content, and open no call."""
    thoughts = (each for each in fmt.program.states.values() if each.meaning == "reasoning")
    found = (
        (text, symbol, state) for state in thoughts for text, symbol in zip(state.literals, state.symbols, strict=False)
    )
    return sorted(
        {
            text
            for text, symbol, state in found
            if not symbol.opens and state.row[symbol.trigger].dest.meaning == "content"
        }
    )


def spelled_ends(name: str) -> Iterator[tuple[str, str]]:
    """A thought that is not over after a whole call, and the spelling of a token that ends the turn."""
    program = toolgram.get_format(name).program
    ends = [program.literals[each] for each in program.stop if each in program.literals]
    for thought, end in product(markers(toolgram.get_format(name), THOUGHT)[:1], ends):
        yield f"{thought}Hm. {simple_call(name)[0].removeprefix(thought)}", end


@pytest.mark.parametrize("name", toolgram.format_names())
def test_the_end_of_a_turn_that_is_only_spelled_is_none_if_the_output_was_cut_off(name: str) -> None:
    """Text after it would make the call a part of the thought."""
    fmt = toolgram.get_format(name)
    for text, end in spelled_ends(name):
        reading = {reason: fmt.parse(text + end, prefix="", finish_reason=reason) for reason in ("stop", "length")}
        statuses = {reason: [call.status for call in each.tool_calls] for reason, each in reading.items()}
        if statuses["stop"] == ["complete"]:
            assert statuses["length"] == ["truncated"], text + end
            assert not fmt.parse(f"{text}{end}, no", prefix="", finish_reason="stop").tool_calls


@pytest.mark.parametrize("name", toolgram.format_names())
def test_an_end_of_turn_that_a_thought_spells_does_not_hide_the_one_after_it(name: str) -> None:
    """Text is read again from the first one on, and only up to it: the second is one, however the text is split."""
    fmt = toolgram.get_format(name)
    before, after = around_value(name)
    for thought, closer, end in product(markers(fmt, THOUGHT), closers_of_thoughts(fmt), markers(fmt, STOP)):
        for size in {0, len(after) // 2, len(after)}:
            call = f"{before.removeprefix(thought)}{IN_VALUE}{after[:size]}"
            assert_same_however_split(fmt, f"{thought}Hm. {end}{call}{closer}{end}")


def test_a_marker_that_is_cut_off_after_its_first_word_names_no_call() -> None:
    """`function` is the first word of a marker of DeepSeek V3; what the end cuts off may be that marker."""
    for rest in ("<", "<\uff5ctool", "<\uff5ctool\u2581sep"):
        message = toolgram.get_format("deepseek_v3").parse(f"<\uff5ctool\u2581call\u2581begin\uff5c>function{rest}")
        assert not message.tool_calls, rest
