"""Outputs cut off at every character: a call that has begun is cut off, and nothing of a marker is a bracket too many.

Strategy: each format's own examples, cut behind each character.  A closing marker may begin with a shorter marker, or
with a bracket: what is left of it says nothing yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest

import toolgram
from tests.generators.calls_in_halves import simple_call
from tests.streams import assert_same_however_split
from toolgram.program.state import THOUGHT


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


def spelled_ends(name: str) -> Iterator[tuple[str, str]]:
    """A thought that is not over after a whole call, and the spelling of a token that ends the turn."""
    program = toolgram.get_format(name).program
    thoughts = [program.literals[each.trigger] for each in program.initial.symbols if each.opens == THOUGHT]
    ends = [program.literals[each] for each in program.stop if each in program.literals]
    for thought, end in product(thoughts[:1], ends):
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
