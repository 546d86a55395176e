"""Whole arguments behind which the next message has only begun, in formats whose messages have headers.

Strategy: each text however it is split. A message that has only begun says nothing, so the call is whole.
"""

from __future__ import annotations

import toolgram
from toolgram.spec.data import END


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
