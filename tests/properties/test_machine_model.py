"""The compiled runtime against the real `transitions` machine, through everything that a caller may do to a stream.

Strategy: a Hypothesis state machine feeds a parser with pieces of outputs, whole and broken, and replays every
transition that the runtime reports into the machine that `transitions` built from the same YAML. A transition that the
declaration does not have raises there (`MachineError`), and a wrong source or destination is seen at once. Beside it
runs a second parser with the same tools, prefix and special tokens, which gets the same text in other deltas and whose
state is taken and restored on the way: both must have told the same at the end.
"""

import json
import pickle
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import toolgram
from tests.fuzz import tools
from tests.generators.broken_outputs import fragments
from tests.properties.selection import every_format, fewer
from tests.properties.test_special_tokens import outputs_in_pieces
from tests.strategies import chunkings, mentions, mutated, well_formed
from tests.streams import calls_of, check_events, check_message, merged, sources
from toolgram.events import Event
from toolgram.runtime.stream import PROMPT, READ_AGAIN, REJECTED, TraceStep
from toolgram.spec.data import with_bare_calls

# A held region that is prose goes back to where it began, and so do calls that are only mentioned; no declared
# transition is that. If a prefix ends in text of its own, the turn begins in the first state again. A call without a
# marker (`of_bare_calls`) is in the machine only if functions are declared.
MOVES_BACK = (READ_AGAIN, REJECTED, PROMPT)
NO_TOKEN = st.sampled_from((None, 1))  # the id of a piece: unknown, or of no special token
REASONS = (None, "stop", "length", "tool_calls", "content_filter", "")


class ParserAndModel(RuleBasedStateMachine):
    """Drives `name`'s parser, its reference machine and a second parser side by side."""

    name: str

    def __init__(self) -> None:
        super().__init__()
        self.fmt = toolgram.get_format(self.name)
        self.special = {text: 1_000 + at for at, text in enumerate(self.fmt.program.special.values())}
        self.machine, spec = self.fmt.reference_machine(), self.fmt.spec
        rows = with_bare_calls(spec).transitions if spec.bare_calls else ()
        self.of_bare_calls = {(row.trigger, row.source, row.dest) for row in rows if row not in spec.transitions}
        self.reported: list[tuple[str, str, str]] = []
        self.events: list[Event] = []
        self.other_events: list[Event] = []
        self.text = ""
        self.closed = False
        self.failed = False

    @initialize(data=st.data(), declared=st.booleans(), by_id=st.booleans())
    def a_stream(self, data: st.DataObject, declared: bool, by_id: bool) -> None:
        """With tools or without, by id or by text, after any prefix."""
        self.by_id = by_id
        prefixes = st.just("") | st.sampled_from(fragments(self.name)) | mutated(self.name)
        self.arguments: dict[str, Any] = {
            "tools": tools() if declared else None,
            "call_ids": str,
            "special_tokens": self.special if by_id else None,
        }
        prefix = data.draw(prefixes)
        self.parser = self.fmt.parser(**self.arguments, prefix=prefix, trace=self.note_transition)
        self.other = self.fmt.parser(**self.arguments, prefix=prefix)
        self.restored = False
        self.replay()

    def note_transition(self, step: TraceStep) -> None:
        self.reported.append(step[:3])

    def replay(self) -> None:
        self.failed = True  # until the row is replayed: `teardown` must not fail a second time
        for trigger, source, dest in self.reported:
            assert self.machine.state == source, f"{trigger} fired in {source}; the machine is in {self.machine.state}"
            if trigger in MOVES_BACK or (trigger, source, dest) in self.of_bare_calls:
                self.machine.set_state(dest)
            elif trigger.startswith("LINE "):  # the name of a declared function, which no machine file knows
                assert dest == self.fmt.spec.line_calls
                self.machine.set_state(dest)
            else:
                self.machine.trigger(trigger)
            assert self.machine.state == dest, f"{trigger} from {source}: the machine went to {self.machine.state}"
        self.reported.clear()
        self.failed = False

    def feed(self, delta: str, token_id: int | None = None, pieces: list[str] | None = None) -> None:
        """Feed `delta` to the one parser, and its pieces to the other, by id with their id."""
        if self.closed:
            return
        self.text += delta
        self.events += self.parser.feed([(delta, token_id)] if self.by_id else delta)
        for piece in pieces or [delta]:
            self.other_events += self.other.feed([(piece, token_id)] if self.by_id else piece)
        self.replay()

    @rule(data=st.data())
    def a_fragment(self, data: st.DataObject) -> None:
        self.feed(data.draw(st.sampled_from(fragments(self.name))), data.draw(NO_TOKEN))

    @rule(data=st.data())
    def an_output(self, data: st.DataObject) -> None:
        text = data.draw(well_formed(self.name)).text
        self.feed(text, data.draw(NO_TOKEN), data.draw(chunkings(text)))

    @rule(data=st.data())
    def a_broken_output(self, data: st.DataObject) -> None:
        text = data.draw(mutated(self.name))
        self.feed(text, data.draw(NO_TOKEN), data.draw(chunkings(text)))

    @rule(data=st.data())
    def a_mention(self, data: st.DataObject) -> None:
        text = data.draw(mentions(self.name))
        self.feed(text, data.draw(NO_TOKEN), data.draw(chunkings(text)))

    @rule(data=st.data())
    def an_output_in_pieces(self, data: st.DataObject) -> None:
        token_id = data.draw(NO_TOKEN)
        for character in data.draw(well_formed(self.name)).text:
            self.feed(character, token_id)

    @rule(data=st.data())
    def a_special_token(self, data: st.DataObject) -> None:
        """The text of a special token, by its id or by that of another."""
        if self.special:
            text, token_id = data.draw(st.sampled_from(sorted(self.special.items())))
            token_id = data.draw(st.just(token_id) | st.sampled_from(sorted(self.special.values())))
            self.feed(text, token_id, data.draw(chunkings(text)))

    @rule(data=st.data())
    def pieces_at_once(self, data: st.DataObject) -> None:
        """Pieces of any kind as one delta, and one by one, each of them torn."""
        if not self.by_id or self.closed:
            return
        pieces = data.draw(outputs_in_pieces(self.name))
        self.text += "".join(text for text, _ in pieces)
        self.events += self.parser.feed(pieces)
        for text, number in pieces:
            whole = not text or any(text.count(marker) > 1 for marker in self.special)  # which of them is meant?
            for part in [text] if whole else data.draw(chunkings(text)):
                self.other_events += self.other.feed([(part, number)])
        self.replay()

    @rule()
    def a_pickle(self) -> None:
        """The second parser goes on in another process, with its message. A call that is withheld is read again."""
        if not self.closed:
            self.other = pickle.loads(pickle.dumps(self.other))

    @rule()
    def a_snapshot(self) -> None:
        """The second parser goes on from what it has written down, as another process would."""
        if not self.closed:
            self.other = self.fmt.restore(json.loads(json.dumps(self.other.snapshot())), **self.arguments)
            self.restored = True

    @rule(reason=st.sampled_from(REASONS))
    def the_end(self, reason: str | None) -> None:
        self.end(reason)

    def end(self, reason: str | None) -> None:
        if self.closed:
            return
        self.closed = True
        self.events += self.parser.close(reason)
        self.other_events += self.other.close(reason)
        self.replay()
        check_events(self.events, self.text)
        assert merged(self.other_events) == merged(self.events)
        check_message(self.parser.message, self.events)
        if reason:
            assert self.parser.message.finish_reason == reason
        if not self.restored:
            assert self.other.message.content == self.parser.message.content
            assert self.other.message.anomalies == self.parser.message.anomalies
            assert calls_of(self.other.message) == calls_of(self.parser.message)

    @invariant()
    def told_in_order(self) -> None:
        assert self.text.startswith(sources(self.events))
        assert self.text.startswith(sources(self.other_events))

    def teardown(self) -> None:
        if not self.failed and hasattr(self, "parser"):
            self.end(None)


@every_format
def test_a_stream_and_its_model(name: str) -> None:
    case: Any = type(f"ParserAndModel_{name}", (ParserAndModel,), {"name": name}).TestCase  # type: ignore[attr-defined]
    case.settings = settings(fewer(), stateful_step_count=12)
    case("runTest").runTest()


@every_format
def test_an_example_ends_in_the_final_state(name: str) -> None:
    """The example of a format walks the machine from its first state to its last one."""
    fmt = toolgram.get_format(name)
    machine = fmt.reference_machine()
    walked: list[tuple[str, str, str]] = []
    parser = fmt.parser(prefix="", trace=lambda step: walked.append(step[:3]))
    parser.feed(fmt.example)
    parser.close()
    assert (walked[0][1], walked[-1][2]) == (machine.state, "ALL_TOOLS_COMPLETE")
    assert {"PARSING_ARGUMENTS", "PARSING_ARGUMENT_VALUE", "TOOL_COMPLETE"} & {dest for _, _, dest in walked}
