"""The edges of an output: the prompt before it, which may contain its beginning, and its end.

Strategy: the readers read the prompt as well, and then its sources are removed. At the end of the output, held text is
decided, and what is open is closed.
"""

from __future__ import annotations

from toolgram.events import BufferedEvent, Dropped, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.islands.held_text import add_piece, take_pieces
from toolgram.islands.json_envelope import Envelope
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


def read_prompt(stream: Stream, prefix: str) -> list[BufferedEvent]:
    """Read the prompt. Return the events of a call that it has begun, with an empty source; they are emitted first."""
    calls, initial = stream.calls, stream.program.initial
    events: list[BufferedEvent] = []
    out, stream.events.out = stream.events.out, events
    stream.events.mention.quoted_to = -1
    read(stream, prefix, 0, False)
    if stream.reader == "text" and TEXT in initial.row and stream.state is initial.row[TEXT].dest:
        if stream.trace and stream.state is not initial:
            stream.trace(TraceStep(PROMPT, stream.state.name, initial.name))
        stream.state = initial  # text in the prompt does not belong to this turn
        stream.reader = initial.reader
    stream.source.prefix_characters = len(stream.buffer)
    _forget_sources(stream)
    begun: list[BufferedEvent] = []
    if calls.index is not None:
        begun = _begun(events, calls.index)
        calls.index = 0
    calls.count = len(begun[:1])
    _renumber(stream)
    stream.events.out = out
    return begun


def _renumber(stream: Stream) -> None:
    """Give the held call the index of the first call of the output."""
    held = stream.events.held
    for event in held.events if held is not None else ():
        if isinstance(event, ToolCallStart | ToolCallDelta | ToolCallEnd):
            event.index = stream.calls.count


def _forget_sources(stream: Stream) -> None:
    """Remove the source of everything that was read from the prompt."""
    held = stream.events.held
    for event in held.events if held is not None else ():
        event.source = ""
        if isinstance(event, Dropped):
            event.text = ""
    stream.events.forget_text()
    stream.events.mention.meaning = stream.state.meaning or stream.events.mention.meaning
    stream.source.forget()
    if isinstance(stream.island, Envelope):
        stream.island.source = ""


def _begun(events: list[BufferedEvent], index: int) -> list[BufferedEvent]:
    """Return the start and the arguments of a call, with an empty source."""
    begun: list[BufferedEvent] = []
    for event in events:
        if isinstance(event, ToolCallStart) and event.index == index:
            begun.append(ToolCallStart(0, event.id, event.name, ""))
        elif isinstance(event, ToolCallDelta) and event.index == index:
            begun.append(ToolCallDelta(0, event.arguments, ""))
    return begun


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
            if stream.events.mention.withheld is not None and stream.events.mention.withheld.is_text:
                raise NotACall
            break
        except NotACall as found:
            read(stream, *give_up(stream, "", found), True)
    withheld = stream.events.mention.withheld
    if withheld is not None and not (stream.ended or withheld.is_certain):
        withheld.cut_off()  # also after a token that only spells the end of the turn: text after it would undo the call
    stream.events.send_withheld()


def _end_held(stream: Stream) -> None:
    """Decide what is held: a call that the end makes certain, a call of which only the name is known, or text."""
    calls, events = stream.calls, stream.events
    if _ends_certain(stream):
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


def _ends_certain(stream: Stream) -> bool:
    """Return whether the machine has a transition for the end of the output that ends what is held."""
    return not stream.source.object_is_held and not isinstance(stream.island, Envelope) and END in stream.state.row


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
    calls.end("complete" if _closes_envelope(stream) else "truncated")
    events.end_text(meaning if meaning in ("content", "reasoning") else "content", stream.program.spec.turn_end)
    if ending is not None:
        stream.fire(END, "")


def _closes_envelope(stream: Stream) -> bool:
    """Return whether the arguments are whole, and only the envelope around them is open."""
    if UNCLOSED not in stream.state.row:
        return False
    stream.note_unclosed()
    return True
