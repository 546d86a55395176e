"""Running a format over text, however it is split into deltas, and the checks that hold for each run.

Strategy: `assert_same_however_split` reads the whole text and pieces of several sizes, with the conservation and the
order of the events checked on the way. Call ids come from a seeded factory, so that two runs can be compared event by
event.
"""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import toolgram
from tests.json_prefix import is_json_prefix
from toolgram.call_ids import random_call_ids
from toolgram.events import Content, Dropped, Event, Malformed, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart

WHOLE = 0
CUT_SIZES = (WHOLE, 1, 2, 3, 5)

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"


def cut(text: str, size: int) -> list[str]:
    """`text` in pieces of `size` characters; WHOLE is one piece."""
    if size == WHOLE:
        return [text]
    return [text[i : i + size] for i in range(0, len(text), size)]


def run(
    fmt: toolgram.Format, chunks: Iterable[str], *, tools: Sequence[dict[str, Any]] | None = None,
    prefix: str | None = "", finish_reason: str | None = None, strict: bool = False,
) -> tuple[list[Event], toolgram.Message]:  # fmt: skip
    """All events of one stream, and its message."""
    parser = fmt.parser(tools=tools, prefix=prefix, call_ids=random_call_ids(seed=7), strict=strict)
    events: list[Event] = []
    for chunk in chunks:
        events += parser.feed(chunk)
    events += parser.close(finish_reason)
    return events, parser.message


def merged(events: Iterable[Event]) -> list[Event]:
    """The events with adjacent deltas of one kind made one."""
    result: list[Event] = []
    for event in events:
        both = _joined(result[-1], event) if result else None
        if both is None:
            result.append(event)
        else:
            result[-1] = both
    return result


def _joined(one: Event, next: Event) -> Event | None:
    """The two as one event; None where they are of different kinds, reasons or calls."""
    if isinstance(one, Content) and isinstance(next, Content):
        return Content(one.text + next.text, one.source + next.source)
    if isinstance(one, Reasoning) and isinstance(next, Reasoning):
        return Reasoning(one.text + next.text, one.source + next.source)
    if isinstance(one, Dropped) and isinstance(next, Dropped) and one.why == next.why:
        return Dropped(one.text + next.text, one.why, one.source + next.source)
    if isinstance(one, Malformed) and isinstance(next, Malformed) and one.why == next.why:
        return Malformed(one.text + next.text, one.why, one.source + next.source)
    if isinstance(one, ToolCallDelta) and isinstance(next, ToolCallDelta) and one.index == next.index:
        return ToolCallDelta(one.index, one.arguments + next.arguments, one.source + next.source)
    return None


def without_ids(events: Iterable[Event]) -> list[Event]:
    """The events with every call id blanked, for runs whose ids come from different factories."""
    return [dataclasses.replace(e, id="") if isinstance(e, ToolCallStart) else e for e in events]


def sources(events: Iterable[Event]) -> str:
    return "".join(event.source for event in events)


def calls_of(message: toolgram.Message) -> list[tuple[str, str, str]]:
    """Name, arguments and status of each call: all of a call but its id."""
    return [(call.name, call.arguments, call.status) for call in message.tool_calls]


def said_in(events: Iterable[Event], *kinds: type[Content | Malformed | Reasoning]) -> str | None:
    """What the content or the reasoning of a message has to be, from the events alone."""
    text = "".join(event.text for event in events if isinstance(event, kinds))
    return text if text.strip() else None


def check_events(events: Sequence[Event], text: str) -> None:
    """What is true of the events of any closed stream: conserved, each call opened, filled and ended in order."""
    assert sources(events) == text
    opened: list[str] = []
    ended: list[int] = []
    for event in events:
        match event:
            case ToolCallStart():
                assert event.index == len(opened), "calls are numbered from 0, and each starts once"
                assert len(ended) == len(opened), "a call starts after the one before it has ended"
                opened.append(event.name)
            case ToolCallDelta():
                assert event.index == len(opened) - 1, "arguments belong to the call that was opened last"
                assert event.index not in ended, "nothing follows the end of a call"
            case ToolCallEnd():
                assert event.index == len(opened) - 1
                assert event.index not in ended, "a call ends once"
                assert event.status in ("complete", "truncated", "malformed")
                ended.append(event.index)
                written = "".join(arguments_of(events, event.index))
                assert is_json_prefix(written), f"not a JSON prefix: {written!r}"
                if event.status == "complete":
                    assert isinstance(json.loads(written), dict), f"complete, and not an object: {written!r}"
            case Dropped():
                assert event.why, "a Dropped event says why"
                assert event.text == event.source
            case Malformed():
                assert event.why, "a Malformed event says why"
    assert ended == list(range(len(opened))), "every call ends, with a status"


def arguments_of(events: Iterable[Event], index: int) -> list[str]:
    return [e.arguments for e in events if isinstance(e, ToolCallDelta) and e.index == index]


def check_message(message: toolgram.Message, events: Sequence[Event]) -> None:
    """The message is the fold of its events: what failed is text, and in `malformed`."""
    starts = [e for e in events if isinstance(e, ToolCallStart)]
    ends = [e for e in events if isinstance(e, ToolCallEnd)]
    both = zip(starts, ends, strict=True)
    told = [(e.id, e.name, "".join(arguments_of(events, e.index)), end.status) for e, end in both]
    kept = [call for call in told if call[3] != "malformed"]
    assert [(c.id, c.name, c.arguments, c.status) for c in message.tool_calls] == kept
    failed = [(number, *call[:3]) for number, call in enumerate(told) if call[3] == "malformed"]
    assert [(c.index, c.id, c.name, c.arguments) for c in message.malformed] == failed
    assert message.reasoning == said_in(events, Reasoning)
    said = said_in(events, Content, Malformed)
    if not failed:
        assert message.content == said
        return
    text, content = sources(events), message.content or ""
    for call in message.malformed:
        assert call.source in content
        assert text.startswith(call.source, call.start)
    left = iter("".join(content.split()))
    assert all(letter in left for letter in "".join((said or "").split())), "all text is there, in order"
    assert "".join(part for part in message.parts if isinstance(part, str)).split() == content.split()


def in_order(message: toolgram.Message) -> list[toolgram.ToolCall | toolgram.MalformedCall]:
    """Every call, in the order of the output."""
    calls = iter(message.tool_calls)
    failed = {call.index: call for call in message.malformed}
    return [failed.get(number) or next(calls) for number in range(len(message.tool_calls) + len(failed))]


def statuses(message: toolgram.Message) -> list[tuple[str, str]]:
    """Name and status of every call, in the order of the output."""
    return [(call.name, getattr(call, "status", "malformed")) for call in in_order(message)]


def assert_same_however_split(
    fmt: toolgram.Format, text: str, *, tools: Sequence[dict[str, Any]] | None = None, prefix: str | None = "",
    finish_reason: str | None = None,
) -> toolgram.Message:  # fmt: skip
    """The one message that `text` has, whole and streamed."""
    whole, message = run(fmt, [text], tools=tools, prefix=prefix, finish_reason=finish_reason)
    check_events(whole, text)
    check_message(message, whole)
    for size in CUT_SIZES[1:]:
        events, streamed = run(fmt, cut(text, size), tools=tools, prefix=prefix, finish_reason=finish_reason)
        check_events(events, text)
        assert merged(events) == merged(whole), f"cut every {size}"
        assert streamed == message, f"cut every {size}"
    parsed = fmt.parse(text, tools=tools, prefix=prefix, finish_reason=finish_reason)
    assert (parsed.content, parsed.reasoning) == (message.content, message.reasoning)
    assert calls_of(parsed) == calls_of(message)
    return message


def held_after(name: str, text: str, *, size: int = 1) -> str:
    """What a parser that was fed `text` has not told yet."""
    parser = toolgram.get_format(name).parser(prefix="")
    told = sources(event for chunk in cut(text, size) for event in parser.feed(chunk))
    assert text.startswith(told)
    return text[len(told) :]
