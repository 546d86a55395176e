"""The edges of an output: the prompt before it, which may contain its beginning, and its end.

Strategy: the readers read the prompt as if the model had written it, and what they make of it is not emitted. Events
that begin with characters of the prompt are emitted without these. At the end of the output, held text is decided, and
what is open is closed.
"""

from __future__ import annotations

from toolgram.events import (
    BufferedEvent,
    Content,
    Dropped,
    Malformed,
    Reasoning,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from toolgram.islands.held_text import add_piece, take_pieces
from toolgram.islands.json_envelope import Envelope
from toolgram.program.state import Program
from toolgram.runtime.argument_readers import end_closed
from toolgram.runtime.damaged_values import is_damaged
from toolgram.runtime.event_buffer import REASONING
from toolgram.runtime.mentions import give_up
from toolgram.runtime.position import ASSUMED
from toolgram.runtime.python_readers import end_python
from toolgram.runtime.readers import read
from toolgram.runtime.stream import PROMPT, Stream, TraceStep
from toolgram.runtime.value_readers import end_value
from toolgram.runtime.withheld import NotACall
from toolgram.spec.data import END, TEXT, UNCLOSED


def own_part(program: Program, prefix: str) -> str:
    """Return what the prefix has of the model's own message: all after the last header of one, which the prefix may
    have cut in two, or else after the last token that ends a turn. A header that is a marker is part of the message."""
    markers = tuple(program.literals.values())
    sizes = {header: 0 if header.startswith(markers) else len(header) for header in program.spec.own_role}
    ends = [prefix.rfind(header) + size for header, size in sizes.items() if header in prefix]
    if not ends:
        ends = [size for header in sizes for size in range(2, len(header)) if prefix.startswith(header[-size:])]
        stops = (program.literals[trigger] for trigger in program.stop)
        ends += [prefix.rfind(stop) + len(stop) for stop in stops if stop in prefix]
    return prefix[max(ends, default=0) :]


def read_prompt(stream: Stream, prefix: str) -> int:
    """Read the prompt. The events of a call that it has begun, with an empty source, are those of the first delta.
    Return how many of its characters are in no event yet."""
    initial, out = stream.program.initial, stream.events.out
    read(stream, prefix, 0, False)
    in_text = stream.reader == "text" and TEXT in initial.row and stream.state is initial.row[TEXT].dest
    is_own = bool(stream.program.spec.own_role)  # else it may be a header, or a message of another role
    if stream.reader == "after_turn" or (in_text and not is_own and stream.events.withheld is None):
        if stream.trace and stream.state is not initial:
            stream.trace(TraceStep(PROMPT, stream.state.name, initial.name))
        stream.state = initial  # a call may begin here as at the beginning of the turn
        stream.reader = initial.reader
    events = stream.events
    events.meaning = stream.state.meaning or events.meaning
    if events.withheld is None:
        events.drop_blanks()  # the text of the output begins after them
    unread = len(prefix) - sum(len(event.source) for event in out)
    _begin_output(stream, out)
    return unread


def _begin_output(stream: Stream, events: list[BufferedEvent]) -> None:
    """Give the first call of the output the index 0, and let its text begin. Of the events of the prompt, keep those of
    that call."""
    calls, held, withheld = stream.calls, stream.events.held, stream.events.withheld
    index = calls.index if calls.index is not None or held is None else held.call
    begun: list[BufferedEvent] = [
        each for each in events if isinstance(each, ToolCallStart | ToolCallDelta) and each.index == index
    ]
    told = sum(isinstance(each, ToolCallStart) for each in events) - bool(begun)
    for at in (stream,) if withheld is None else (stream, withheld.saved):
        at.calls.count -= told
        at.events.has = at.events.gap = 0
        at.events.begin_segment()
    if calls.index is not None:
        calls.index -= told
    waiting = [*begun, *(withheld.events if withheld is not None else ())]
    if held is not None:
        held.call = None if held.call is None else held.call - told
        waiting += held.events
    for event in waiting:
        if isinstance(event, ToolCallStart | ToolCallDelta | ToolCallEnd):
            event.index -= told
    for event in begun:
        event.source = ""
    events[:] = begun


def without_prefix(events: list[BufferedEvent], count: int) -> int:
    """Remove the next `count` characters from the sources of events, which a prefix has written. Return how many of
    these are still to come."""
    kept: list[BufferedEvent] = []
    for event in events:
        skipped = min(count, len(event.source))
        count -= skipped
        event.source = event.source[skipped:]
        if skipped and isinstance(event, Content | Reasoning | Malformed | Dropped):
            if not event.source:
                continue
            event.text = event.source if event.text.endswith(event.source) else event.text
        kept.append(event)
    events[:] = kept
    return count


def end_output(stream: Stream) -> None:
    """Decide what is held at the end of the output, and close what is open."""
    source = stream.source
    if stream.reader == "closed":
        end_closed(stream)
    end_python(stream)
    if source.transcoding is not None:
        add_piece(source.pieces, take_pieces(source.transcoding.pieces))
        source.transcoding = None
    if stream.ended and is_damaged(stream):
        stream.unexpected_input()
    if stream.events.held is not None:
        _end_held(stream)
    _end_open(stream)
    if stream.prompt == ASSUMED and stream.events.has & REASONING:
        stream.events.note("assumed_reasoning", "")


def finish(stream: Stream, text: str, pos: int) -> None:
    """Read the end of the output, then decide what is held and close what is open."""
    read(stream, text, pos, True)
    while True:
        try:
            end_output(stream)
            if stream.events.withheld is not None and stream.events.withheld.is_text:
                raise NotACall
            break
        except NotACall as found:
            read(stream, *give_up(stream, "", found), True)
    withheld = stream.events.withheld
    if withheld is not None and not (stream.ended or withheld.is_certain):
        withheld.cut_off()  # also after a token that only spells the end of the turn: text after it would undo the call
    stream.events.send_withheld()


def _end_held(stream: Stream) -> None:
    """Decide what is held: a call that the end makes certain, a call of which only the name is known, or text."""
    calls, events = stream.calls, stream.events
    if END in stream.state.row and not stream.source.object_is_held and not isinstance(stream.island, Envelope):
        events.drop(stream.leftover(), "cut off")
        stream.fire(END, "")
        events.drop_blanks()
    elif stream.has_announced_name:
        events.drop(stream.leftover(), "cut off")
        stream.island = None
        calls.begin()
        calls.end("truncated")
        events.commit()
    else:
        stream.reject_held()


def _end_open(stream: Stream) -> None:
    """Close the call or the text that is open."""
    events, calls = stream.events, stream.calls
    meaning = stream.state.meaning
    ending = stream.state.row.get(END)
    ends_call = ending is not None and "end_call" in ending.actions
    if meaning == "value" and ends_call and not end_value(stream):
        events.drop(stream.leftover(), "cut off")
        calls.end("truncated")
    events.drop(stream.leftover(), "cut off")
    if calls.index is not None and ends_call:
        stream.fire(END, "")
        return
    is_whole = UNCLOSED in stream.state.row  # only the envelope around the arguments is open
    if is_whole:
        stream.note_unclosed()
    calls.end("complete" if is_whole else "truncated")
    events.end_text(meaning if meaning in ("content", "reasoning") else "content", stream.program.spec.turn_end)
    if ending is not None:
        stream.fire(END, "")
