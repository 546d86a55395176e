"""Why was my tool call not parsed? The whole story of one output, as data.

Strategy: the output is read by the very parser that serves it, one character at a time. What it says does not depend
on the deltas, so whatever happens during a character was decided by that character: this is how every transition and
every decision gets its offset, without a second reading of the text that could disagree with the first. A trace
tells of the transitions; what they mean is put in words when the output is over. The recogniser then says what the
other shipped formats make of it, for the case that the wrong one was asked. All of it is linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from toolgram.anomalies import Anomaly
from toolgram.events import Content, Dropped, Event, Malformed, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.explain.expectations import expected
from toolgram.explain.explanation import OWNER_OF, Candidate, Explanation, Held, Outcome, Piece, PlacedAnomaly, Step
from toolgram.explain.recognising import candidate, recognise
from toolgram.explain.verdict import name_in_words, quote, verdict
from toolgram.formats import Format
from toolgram.message import Message
from toolgram.program.state import Move
from toolgram.runtime.stream import PROMPT, READ_AGAIN, REJECTED, TraceStep
from toolgram.spec.data import END


def explain(
    fmt: Format,
    text: str,
    tools: Sequence[Any] | None = None,
    prefix: str | None = None,
    finish_reason: str | None = None,
) -> Explanation:
    """Explain how `fmt` reads a whole output. Takes what `Format.parse` takes, and never raises on any text."""
    reading = _Reading(fmt, tools, prefix)
    message = reading.read(text, finish_reason)
    pieces = list(_pieces(_merged(reading.events)))
    own = candidate(fmt.name, [text], [message])
    alternatives = recognise([text], tools, prefix, finish_reason, fmt.name)
    for each in alternatives:  # a deviation that was repaired does not point to another format
        each.better = each.calls + each.unfinished > 0 and each.rank[:-1] > own.rank[:-1]
    held = _settled(reading.held, text)
    anomalies = _placed(message)
    explanation = Explanation(fmt.name, "", pieces, reading.path, held, anomalies, alternatives, message)
    explanation.verdict = " ".join(verdict(fmt, text, explanation))
    return explanation


# --- watching -----------------------------------------------------------------------------------------------------


class _Reading:
    """One output, read by a parser: at which character it did what."""

    def __init__(self, fmt: Format, tools: Sequence[Any] | None, prefix: str | None) -> None:
        self.offset: int | None = None  # of the character being read; None inside the prefix
        self.character = ""
        self.events: list[Event] = []
        self.path: list[Step] = []
        self.held: list[Held] = []
        self.told = 0  # how many characters the events account for
        self.named = False  # the region that is held has a name in it
        self.states = fmt.program.states
        self.parser = fmt.parser(tools, prefix, trace=self._saw)

    def read(self, text: str, finish_reason: str | None) -> Message:
        """Read the whole output, one character at a time."""
        for self.offset, self.character in enumerate(text):
            self._tell(self.parser.feed(self.character))
        self.offset, self.character = len(text), ""
        self._tell(self.parser.close(finish_reason))
        return self.parser.message

    def _tell(self, events: list[Event]) -> None:
        self.events += events
        self.told += sum(len(event.source) for event in events)

    def _saw(self, step: TraceStep) -> None:
        self.path.append(Step(self.offset, *step[:3]))
        if step.trigger == READ_AGAIN:
            self.named = False
        elif step.trigger == REJECTED:
            rest, why = _REST.get(step.rest, ""), step.why or expected(step.at)
            if self.character:
                at = f"{self.character!r} at offset {self.offset} does not fit"
                self._decided(step, REJECTED, f"{at}: {why}{rest}")
            else:
                self._decided(step, "ended", f"the output ended: {why}")
        elif step.held and step.trigger != PROMPT:
            move = self.states[step.source].row[step.trigger]
            self.named = self.named or "name" in move.actions
            if not move.dest.held:
                self._decided(step, "committed", _why_committed(move, step.trigger))

    def _decided(self, step: TraceStep, outcome: Outcome, why: str) -> None:
        """Decide the held region, which begins after all that was said and the blanks that wait."""
        named, self.named = self.named, False
        if self.offset is not None:
            start = self.told + step.before
            self.held.append(Held(start, self.offset, "", step.source, outcome, self.offset, why, named))


_REST = {
    "rejected_json": ". It is JSON all the same, so the value is text to its end, and nothing inside it is taken for a "
    "call",
    "rejected_rest": ". It was a broken call, so the rest is text until its brackets balance, and nothing inside it is "
    "taken for a call",
    "malformed": ". It is inside a broken call",
}


def _why_committed(move: Move, trigger: str) -> str:
    if "start_call" not in move.actions:
        return "it is what the format writes here, and no call is in it"
    if trigger == END:
        return "the output ended after the name of a function: a call without arguments"
    if "no_arguments" in move.actions or "end_call" in move.actions:
        return "a call without arguments is certain"
    if "name" in move.actions:
        return "a call is certain: its arguments were there, and now its name is known"
    return "a call is certain: its name is known and its arguments have begun"


def _settled(regions: list[Held], text: str) -> list[Held]:
    """Return the regions with their texts. If reading resumed before the deciding character, the next one may begin
    there."""
    for region, following in pairwise(regions):
        region.end = min(region.end, following.start)
    for region in regions:
        region.text = text[region.start : region.end]
    return regions


# --- pieces -------------------------------------------------------------------------------------------------------


def _merged(events: Iterable[Event]) -> Iterator[Event]:
    """Yield the events with adjacent deltas of one kind made one."""
    run: list[Event] = []
    for event in events:
        if run and _kind(run[-1]) != _kind(event):
            yield _joined(run)
            run = []
        run.append(event)
    if run:
        yield _joined(run)


def _kind(event: Event) -> tuple[Any, ...]:
    match event:
        case Dropped() | Malformed():
            return event.type, event.why
        case ToolCallDelta():
            return event.type, event.index
        case ToolCallStart() | ToolCallEnd():
            return event.type, event.index, id(event)
    return (event.type,)


def _joined(run: list[Event]) -> Event:
    first, source = run[0], "".join(event.source for event in run)
    match first:
        case Content() | Reasoning():
            return type(first)("".join(event.text for event in run if isinstance(event, type(first))), source)
        case Dropped() | Malformed():
            text = "".join(event.text for event in run if isinstance(event, type(first)))
            return type(first)(text, first.why, source)
        case ToolCallDelta():
            arguments = "".join(event.arguments for event in run if isinstance(event, ToolCallDelta))
            return ToolCallDelta(first.index, arguments, source)
    return first


def _pieces(events: Iterable[Event]) -> Iterator[Piece]:
    start = 0
    for event in events:
        yield Piece(OWNER_OF[event.type], event.source, start, _meaning(event), event)
        start += len(event.source)


def _meaning(event: Event) -> str:
    match event:
        case Content():
            return "text for the user"
        case Reasoning():
            return "the model's thinking"
        case ToolCallStart():
            return f"call {event.index + 1}: the function is {name_in_words(event.name)}"
        case ToolCallDelta():
            return f"call {event.index + 1}: its arguments"
        case ToolCallEnd():
            return f"call {event.index + 1} ends: {event.status}"
    return event.why


# --- anomalies ----------------------------------------------------------------------------------------------------


def _placed(message: Message) -> list[PlacedAnomaly]:
    """Return the anomalies of the message, each in a sentence."""
    return [PlacedAnomaly(each.kind, each.text, each.start, _in_words(each), each.page) for each in message.anomalies]


def _in_words(anomaly: Anomaly) -> str:
    text, why = anomaly.text, anomaly.why
    match anomaly.kind:
        case "malformed" if anomaly.call is None:
            return f"{quote(text.strip())} was left as text: {why}"
        case "malformed":
            return f"the call of {name_in_words(text)} could not be read to its end"
        case "truncated":
            return f"the output ended before the call of {name_in_words(text)} did"
        case "unknown_tool":
            return f"the function {name_in_words(text)} is called, and no tool of this name was declared"
    return f"{quote(text)}: {why}" if text else why


__all__ = [
    "OWNER_OF",
    "Candidate",
    "Explanation",
    "Held",
    "Outcome",
    "Piece",
    "PlacedAnomaly",
    "Step",
    "explain",
    "recognise",
]
