"""Whole arguments behind which the next message has only begun, in formats whose messages have headers.

Strategy: each text however it is split. A message that has only begun says nothing, so the call is whole.
"""

from __future__ import annotations

import pytest

import toolgram
from tests.streams import CUT_SIZES, cut, run
from toolgram.spec.data import END

HEADERS = {
    "beam": ' to=f<|channel|>analysis <|constrain|>xml<|message|><rfl:parameter name="a">\n1\n</rfl:parameter>',
    "gpt_oss": ' to=functions.f<|channel|>commentary json<|message|>{"a": 1}',
}


@pytest.mark.parametrize("begun", ["<|start|>", "\n<|start|>", "<|start|>assistant", "<|end|><|start|>"])
@pytest.mark.parametrize("name", HEADERS)
def test_whole_arguments_before_a_message_that_has_only_begun(name: str, begun: str) -> None:
    fmt = toolgram.get_format(name)
    for size in CUT_SIZES:
        _, message = run(fmt, cut(HEADERS[name] + begun, size), finish_reason="stop")
        assert [(call.name, call.arguments, call.status) for call in message.tool_calls] == [
            ("f", '{"a": 1}', "complete")
        ]
        kinds = {anomaly.kind for anomaly in message.anomalies if anomaly.call is not None}
        assert kinds <= {"unclosed_envelope"}


@pytest.mark.parametrize("begun", ["<|end|><|start|>", "<|end|><|start|>assistant"])
def test_a_value_that_is_not_closed_before_it(begun: str) -> None:
    text = HEADERS["beam"].removesuffix("\n</rfl:parameter>")
    for size in CUT_SIZES:
        _, message = run(toolgram.get_format("beam"), cut(text + begun, size), finish_reason="stop")
        assert [(call.arguments, call.status) for call in message.tool_calls] == [('{"a": 1}', "complete")]
        assert [anomaly.kind for anomaly in message.anomalies] == ["unclosed_value"]


def test_every_format_in_which_an_output_may_end_so_is_here() -> None:
    """A marker behind the arguments of a tagged call leads to a held state that the end of the output may leave."""
    found = set()
    for name in toolgram.format_names():
        states = toolgram.get_format(name).program.states.values()
        keys = {
            move.dest.name
            for state in states
            if state.meaning == "value"
            for move in state.row.values()
            if not move.repair
        }
        begun = [move.dest for state in states if state.name in keys for move in state.row.values() if move.dest.held]
        found |= {name for dest in begun if END in dest.row and not dest.row[END].actions}
    assert found == {"beam"}
