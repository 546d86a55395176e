"""Why was my tool call not parsed? The whole story of one output, as data.

Strategy: the output is read by the very parser that serves it, one character at a time. What it says does not depend
on the deltas, so whatever happens during a character was decided by that character: this is how every transition and
every decision gets its offset, without a second reading of the text that could disagree with the first. A trace
tells of the transitions; what they mean is put in words when the output is over. Every other shipped format then reads
the same text, for the case that the wrong one was asked. All of it is linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from toolgram.anomalies import Anomaly
from toolgram.events import Content, Dropped, Event, Malformed, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.formats import Format, format_names, get_format
from toolgram.message import Message, ToolCall
from toolgram.program.state import Move
from toolgram.runtime.stream import PROMPT, REJECTED, TraceStep
from toolgram.spec.data import END

Outcome: TypeAlias = Literal["committed", "rejected", "ended"]

OWNER_OF = {
    "content": "content",
    "reasoning": "reasoning",
    "tool_call_start": "name",
    "tool_call_delta": "arguments",
    "tool_call_end": "dropped",
    "dropped": "dropped",
    "malformed": "malformed",
}
LONGEST_QUOTE = 40


@dataclass(slots=True)
class Piece:
    """A stretch of the output that one event accounts for: whose it is, where it starts, what it means.

    The end of a call is a piece without characters. `event` is the event itself, adjacent deltas merged.
    """

    owner: str
    text: str
    start: int
    meaning: str
    event: Event


@dataclass(slots=True)
class Step:
    """One transition. `offset` is the character that it was taken on: the length of the text for those that only the
    end of the output decided, None for those that the prompt's prefix had already taken."""

    offset: int | None
    trigger: str
    source: str
    dest: str


@dataclass(slots=True)
class Held:
    """Text that might have been a call and was held back until that was known.

    `text` (from `start` to `end`) is what was held when the character at `decided_at` came, in `state`. The outcome is
    `committed` (it is what the machine took it for), `rejected` (it is text after all), or `ended` (text, because the
    output was over). `named` says that it had got as far as the name of a function.
    """

    start: int
    end: int
    text: str
    state: str
    outcome: Outcome
    decided_at: int
    why: str
    named: bool


@dataclass(slots=True)
class PlacedAnomaly:
    """An anomaly of the message, in a sentence, with the offset where it was noticed."""

    kind: str
    text: str
    offset: int | None
    words: str


@dataclass(slots=True)
class Alternative:
    """What another shipped format makes of the same output.

    `calls` are complete, `unfinished` were cut off; `text_left` counts the characters, blanks aside, that it leaves as
    text; `better` says that it finds more calls than the format asked for, or as many and leaves less.
    """

    name: str
    calls: int
    unfinished: int
    text_left: int
    better: bool


@dataclass(slots=True)
class Explanation:
    """How one output was read, and why so. `verdict` is the answer; the rest is the evidence for it."""

    format: str
    verdict: str
    pieces: list[Piece]
    path: list[Step]
    held: list[Held]
    anomalies: list[PlacedAnomaly]
    alternatives: list[Alternative]
    message: Message

    def to_dict(self) -> dict[str, Any]:
        """The explanation as JSON-able data."""
        return {
            "format": self.format,
            "verdict": self.verdict,
            "pieces": [_fields(piece, "event") for piece in self.pieces],
            "path": [_fields(step) for step in self.path],
            "held": [_fields(region) for region in self.held],
            "anomalies": [_fields(anomaly) for anomaly in self.anomalies],
            "alternatives": [_fields(alternative) for alternative in self.alternatives],
            "message": self.message.to_dict(),
        }


def explain(
    fmt: Format,
    text: str,
    tools: Sequence[Any] | None = None,
    prefix: str | None = None,
    finish_reason: str | None = None,
) -> Explanation:
    """How `fmt` reads a whole output, and why. Takes what `Format.parse` takes, and never raises on any text."""
    reading = _Reading(fmt, tools, prefix)
    message = reading.read(text, finish_reason)
    pieces = list(_pieces(_merged(reading.events)))
    own = _standing(fmt.name, reading.events, None)
    alternatives = _alternatives(own, text, prefix, finish_reason)
    held = _settled(reading.held, text)
    anomalies = _placed(message)
    explanation = Explanation(fmt.name, "", pieces, reading.path, held, anomalies, alternatives, message)
    explanation.verdict = " ".join(_verdict(fmt, text, explanation))
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
        """The whole output, one character at a time."""
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
        if step.trigger == REJECTED:
            rest = _REST.get(step.rest, "")
            if self.character:
                at = f"{self.character!r} at offset {self.offset} does not fit"
                self._decided(step, REJECTED, f"{at}: {step.why}{rest}")
            else:
                self._decided(step, "ended", f"the output ended: {step.why}")
        elif step.held and step.trigger != PROMPT:
            move = self.states[step.source].row[step.trigger]
            self.named = self.named or "name" in move.actions
            if not move.dest.held:
                self._decided(step, "committed", _why_committed(move, step.trigger))

    def _decided(self, step: TraceStep, outcome: Outcome, why: str) -> None:
        """The held region, which begins after all that was said and the blanks that wait, is decided."""
        named, self.named = self.named, False
        if self.offset is not None:
            start = self.told + step.before
            self.held.append(Held(start, self.offset, "", step.source, outcome, self.offset, why, named))


_REST = {
    "rejected_json": ". It is JSON all the same, so the value is text to its end, and nothing inside it is taken for a "
    "call",
    "rejected_rest": ". It was a broken call, so the rest is text until its brackets balance, and nothing inside it is "
    "taken for a call",
    "malformed": ". It stood inside a broken call",
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
    """The regions with their texts. Where reading resumed before the deciding character, the next one may begin
    there."""
    for region, following in pairwise(regions):
        region.end = min(region.end, following.start)
    for region in regions:
        region.text = text[region.start : region.end]
    return regions


# --- pieces -------------------------------------------------------------------------------------------------------


def _merged(events: Iterable[Event]) -> Iterator[Event]:
    """The events with adjacent deltas of one kind made one."""
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
            return f"call {event.index + 1}: the function is {_name(event.name)}"
        case ToolCallDelta():
            return f"call {event.index + 1}: its arguments"
        case ToolCallEnd():
            return f"call {event.index + 1} ends: {event.status}"
    return event.why


# --- anomalies ----------------------------------------------------------------------------------------------------


def _placed(message: Message) -> list[PlacedAnomaly]:
    """The anomalies of the message, each in a sentence."""
    return [PlacedAnomaly(each.kind, each.text, each.start, _in_words(each)) for each in message.anomalies]


def _in_words(anomaly: Anomaly) -> str:
    text, why = anomaly.text, anomaly.why
    match anomaly.kind:
        case "malformed" if anomaly.call is None:
            return f"{_quote(text.strip())} was left as text: {why}"
        case "malformed":
            return f"the call of {_name(text)} could not be read to its end"
        case "truncated":
            return f"the output ended before the call of {_name(text)} did"
        case "unknown_tool":
            return f"the function {_name(text)} is called, and no tool of this name was declared"
    return f"{_quote(text)}: {why}" if text else why


# --- other formats ------------------------------------------------------------------------------------------------


def _alternatives(own: Alternative, text: str, prefix: str | None, finish_reason: str | None) -> list[Alternative]:
    """What the other shipped formats make of the text: the most calls first, then the least text left."""
    others = []
    for name in format_names():
        if name != own.name:
            parser = get_format(name).parser(prefix=prefix)
            events = parser.feed(text)
            events += parser.close(finish_reason)
            others.append(_standing(name, events, own))
    return sorted(others, key=_rank, reverse=True)


def _standing(name: str, events: Iterable[Event], own: Alternative | None) -> Alternative:
    calls = unfinished = text_left = 0
    for event in events:
        match event:
            case Content() | Malformed() | Reasoning():  # a prompt may make reasoning of any text
                text_left += len("".join(event.source.split()))
            case ToolCallEnd():
                calls += event.status == "complete"
                unfinished += event.status == "truncated"
    standing = Alternative(name, calls, unfinished, text_left, False)
    standing.better = own is not None and calls + unfinished > 0 and _rank(standing) > _rank(own)
    return standing


def _rank(alternative: Alternative) -> tuple[int, int, int]:
    return alternative.calls, alternative.unfinished, -alternative.text_left


# --- the verdict --------------------------------------------------------------------------------------------------


def _verdict(fmt: Format, text: str, told: Explanation) -> list[str]:
    calls = told.message.tool_calls
    better = told.alternatives[0] if told.alternatives and told.alternatives[0].better else None
    if not calls and not told.message.malformed:
        if not text.strip():
            return ["The output is empty." if not text else "The output is nothing but blanks."]
        return ["No call was found.", _elsewhere(fmt, better, told) if better else _no_call(fmt, told)]
    sentences = [*_broken_calls(fmt, text, told), *_unknown_tools(told)]
    if not sentences or better:
        sentences += _lost_candidates(told)
    if better:
        sentences.append(_elsewhere(fmt, better, told))
    if not sentences:
        found = f"Everything was parsed: {_count(len(calls), 'call')} ({_names(calls)})"
        oddities = len(told.anomalies)
        return [
            f"{found}, {'one deviation' if oddities == 1 else f'{oddities} deviations'} repaired."
            if oddities
            else f"{found}; nothing to explain."
        ]
    complete = sum(call.status == "complete" for call in calls)
    count = len(calls) + len(told.message.malformed)
    if complete == count:
        sentences.insert(
            0, f"{_count(complete, 'call')} {'was' if complete == 1 else 'were'} parsed ({_names(calls)})."
        )
    elif count > 1:
        sentences.insert(0, f"{complete} of {count} calls {'is' if complete == 1 else 'are'} complete.")
    return sentences


def _elsewhere(fmt: Format, better: Alternative, told: Explanation) -> str:
    """Where to look instead, and by which marker one could have seen it."""
    found = (
        f"finds {_count(better.calls, 'call')} in it"
        if better.calls
        else f"finds the beginning of {_count(better.unfinished, 'call')} in it"
    )
    command = f"`toolgram parse --format {better.name}` {found}"
    mine = set(fmt.program.literals.values())
    foreign = [marker for marker in get_format(better.name).program.special.values() if marker not in mine]
    for piece in told.pieces:
        if piece.owner in ("content", "malformed", "reasoning"):
            for marker in foreign:
                if marker in piece.text:
                    return f"The text holds a marker of {better.name} ({marker}), and {command}."
    if better.calls and any(call.status == "complete" for call in told.message.tool_calls):
        return f"It may be another format: {command} and leaves {_count(better.text_left, 'character')} as text."
    return f"It reads like another format: {command}."


def _no_call(fmt: Format, told: Explanation) -> str:
    """What came nearest to being a call, and what spoke against it."""
    candidates = [region for region in told.held if region.outcome != "committed"]
    if candidates:
        near = max(candidates, key=lambda region: (region.named, region.end - region.start))
        return f"{_what(near)} could have been one, but {near.why}."
    for anomaly in told.anomalies:
        return f"At offset {anomaly.offset}, {anomaly.words}."
    for region in told.held:
        return f"{_what(region)} is of the right form and holds none."
    for marker in fmt.program.special.values():
        for piece in told.pieces:
            if piece.owner == "content" and marker in piece.text:
                at = piece.start + piece.text.index(marker)
                return (
                    f"{marker} at offset {at} has no meaning there; "
                    "if the prompt had written what goes before it, pass that as the prefix."
                )
    tail = next((piece.text for piece in reversed(told.pieces) if piece.text), "")
    for marker in fmt.program.special.values():
        if any(tail.endswith(marker[:length]) for length in range(2, len(marker))):
            return f"The output ended inside a marker ({marker})."
    if told.message.content is None and told.message.reasoning is not None:
        return "All of the text is reasoning, and nothing in it begins like a call."
    return f"Nothing in the text begins like a call of {fmt.name}."


def _broken_calls(fmt: Format, text: str, told: Explanation) -> Iterator[str]:
    truncated = [call for call in told.message.tool_calls if call.status == "truncated"]
    if truncated:
        last = next((step.source for step in reversed(told.path) if step.trigger == END), "")
        state = fmt.program.states.get(last)
        if state is not None and state.meaning in ("arguments", "argument_key", "value"):
            where = "inside its arguments"
        elif state is not None and state.held:
            where = "right after its name"
        else:
            where = "before the call was closed"
        yield f"1 call ({_names(truncated)}) is truncated: the output ended {where}."
    breaks = [step for step in told.path if step.trigger == "malformed" and step.offset is not None]
    breaks = [step for step in breaks if "fail_call" in fmt.program.states[step.source].row["malformed"].actions]
    broken = told.message.malformed
    for call, step in zip(broken, breaks, strict=False):
        yield f"1 call ({_name(call.name)}) is malformed: {_unexpected(fmt, text, step)}."


def _unexpected(fmt: Format, text: str, step: Step) -> str:
    """What did not fit at a step where something certain broke."""
    state, at = fmt.program.states[step.source], step.offset or 0
    if at >= len(text):
        return f"the output ended, {state.why}"
    if state.meaning == "value":
        return f"the value of an argument stops being what it began as at offset {at} ({text[at]!r})"
    if state.meaning == "arguments":
        language = "Python literals" if state.python else "JSON"
        return f"its arguments stop being {language} at offset {at} ({text[at]!r})"
    return f"{text[at]!r} at offset {at} does not fit: {state.why}"


def _unknown_tools(told: Explanation) -> Iterator[str]:
    names = [anomaly.text for anomaly in told.anomalies if anomaly.kind == "unknown_tool"]
    if names:
        yield f"No tool was declared by the name of {', '.join(map(_name, dict.fromkeys(names)))}."


def _lost_candidates(told: Explanation) -> Iterator[str]:
    """Beside calls that were found: one that got as far as its name, and structure that could not be read."""
    for region in told.held:
        if region.outcome != "committed" and region.named:
            yield f"{_what(region)} was taken for text: {region.why}."
            return
    for anomaly in told.anomalies:
        if anomaly.kind == "malformed":
            yield f"At offset {anomaly.offset}, {anomaly.words}."
            return


# --- words --------------------------------------------------------------------------------------------------------


def _quote(text: str) -> str:
    return repr(text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…")


def _what(region: Held) -> str:
    if not region.text:
        return "What the prompt had begun"
    return f"What begins at offset {region.start} ({_quote(region.text)})"


def _name(name: str) -> str:
    """A name as it can stand in a sentence: a model may put anything into it."""
    return name if name.isprintable() and len(name) <= LONGEST_QUOTE else _quote(name)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _names(calls: Sequence[ToolCall]) -> str:
    names = [_name(call.name) for call in calls]
    return ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:4])} and {len(names) - 4} more"


def _fields(value: Any, *left_out: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__match_args__ if name not in left_out}
