"""The compiled runtime against the real `transitions` machine.

Strategy: a Hypothesis state machine feeds a parser with pieces of outputs, whole and broken, and replays every
transition that the runtime reports into the machine that `transitions` built from the same YAML. A transition that the
declaration does not have raises there (`MachineError`), and a wrong source or destination is seen at once.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import toolgram
from tests.strategies import fragments, mutated, well_formed
from tests.streams import check_events, sources
from toolgram.events import Event
from toolgram.runtime.stream import TraceStep

# A held region that turned out to be prose goes back to where it began; no declared transition stands for that.
REFUTED = "refuted"


class ParserAndModel(RuleBasedStateMachine):
    """Drives `name`'s parser and its reference machine side by side."""

    name: str

    def __init__(self) -> None:
        super().__init__()
        fmt = toolgram.get_format(self.name)
        self.machine = fmt.reference_machine()
        self.reported: list[tuple[str, str, str]] = []
        self.parser = fmt.parser(trace=self.note_transition)
        self.events: list[Event] = []
        self.text = ""
        self.closed = False
        self.failed = False

    def note_transition(self, step: TraceStep) -> None:
        self.reported.append(step[:3])

    def replay(self) -> None:
        self.failed = True  # until the row is replayed: `teardown` must not fail a second time
        for trigger, source, dest in self.reported:
            assert self.machine.state == source, f"{trigger} fired in {source}; the machine is in {self.machine.state}"
            if trigger == REFUTED:
                self.machine.set_state(dest)
            else:
                self.machine.trigger(trigger)
            assert self.machine.state == dest, f"{trigger} from {source}: the machine went to {self.machine.state}"
        self.reported.clear()
        self.failed = False

    def feed(self, delta: str) -> None:
        if self.closed:
            return
        self.text += delta
        self.events += self.parser.feed(delta)
        self.replay()

    @rule(data=st.data())
    def a_fragment(self, data: st.DataObject) -> None:
        self.feed(data.draw(st.sampled_from(fragments(self.name))))

    @rule(data=st.data())
    def an_output(self, data: st.DataObject) -> None:
        self.feed(data.draw(well_formed(self.name, small=True)).text)

    @rule(data=st.data())
    def a_broken_output(self, data: st.DataObject) -> None:
        self.feed(data.draw(mutated(self.name)))

    @rule(data=st.data())
    def an_output_in_pieces(self, data: st.DataObject) -> None:
        for character in data.draw(well_formed(self.name, small=True)).text:
            self.feed(character)

    @rule(reason=st.sampled_from([None, "stop", "length"]))
    def the_end(self, reason: str | None) -> None:
        self.end(reason)

    def end(self, reason: str | None) -> None:
        if not self.closed:
            self.closed = True
            self.events += self.parser.close(reason)
            self.replay()
            check_events(self.events, self.text)

    @invariant()
    def told_in_order(self) -> None:
        assert self.text.startswith(sources(self.events))

    def teardown(self) -> None:
        if not self.failed:
            self.end(None)


def _case(name: str) -> Any:
    case: Any = type(f"ParserAndModel_{name}", (ParserAndModel,), {"name": name}).TestCase  # type: ignore[attr-defined]
    case.settings = settings(stateful_step_count=12)
    return case


for _name in toolgram.format_names():
    globals()[f"TestModel_{_name}"] = _case(_name)


@pytest.mark.parametrize("name", toolgram.format_names())
def test_an_example_ends_in_the_final_state(name: str) -> None:
    """The example of a format walks the machine from its first state to its last one."""
    fmt = toolgram.get_format(name)
    machine = fmt.reference_machine()
    walked: list[tuple[str, str, str]] = []
    parser = fmt.parser(trace=lambda step: walked.append(step[:3]))
    parser.feed(fmt.example)
    parser.close()
    assert walked[0][1] == machine.state
    assert walked[-1][2] == "ALL_TOOLS_COMPLETE"
    assert {"PARSING_ARGUMENTS", "TOOL_COMPLETE"} & {dest for _, _, dest in walked}
