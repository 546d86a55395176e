"""A request that wants one call gets one: its answer ends where the next one begins, however the deltas are cut."""

from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import toolgram
from tests.properties.selection import every_format
from tests.strategies import chunkings, drawn, well_formed
from tests.streams import merged
from toolgram.adapters.handing_out import HandedOut
from toolgram.call_ids import random_call_ids


def handed_out(name: str, pieces: list[str], reason: str | None, parallel: bool) -> Any:
    parser, limit = toolgram.get_format(name).parser(call_ids=random_call_ids(seed=3)), HandedOut(parallel)
    parser.fold_with(limit)
    events = []
    for read in (*(partial(parser.feed, piece) for piece in pieces), partial(parser.close, reason)):
        events += [] if limit.over else limit.events(read())
    return merged(events), parser.message, limit.over


@every_format
@settings(max_examples=25)
@given(data=st.data())
def test_the_answer_ends_before_a_second_call(name: str, data: st.DataObject) -> None:
    text = drawn(data, name) + data.draw(st.just("") | well_formed(name).map(lambda output: output.text))
    pieces, reason = data.draw(chunkings(text)), data.draw(st.sampled_from(["stop", "length", None]))
    whole, one = (handed_out(name, [text], reason, parallel) for parallel in (True, False))
    assert one == handed_out(name, pieces, reason, False)
    assert one[1].tool_calls == whole[1].tool_calls[:1]
    assert one[1].finish_reason == "stop" if one[2] else one == whole
