"""The edges of an output: the prompt before it, which may contain its beginning, and its end.

Strategy: the readers read the prompt as well, and then its sources are removed. At the end of the output, held text is
decided, and what is open is closed.
"""

from __future__ import annotations

from toolgram.events import Dropped, ToolCallDelta, ToolCallEnd, ToolCallStart
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


def read_prompt(stream: Stream, prefix: str) -> None:
    """Read the prompt. The events of a call that it has begun, with an empty source, are those of the first delta."""
    initial = stream.program.initial
    stream.events.quoted_to = -1
    read(stream, prefix, 0, False)
    if stream.reader == "text" and TEXT in initial.row and stream.state is initial.row[TEXT].dest:
        if stream.trace and stream.state is not initial:
            stream.trace(TraceStep(PROMPT, stream.state.name, initial.name))
        stream.state = initial  # text in the prompt does not belong to this turn
        stream.reader = initial.reader
    stream.source.prefix_characters = len(stream.buffer)
    _forget_sources(stream)


def _forget_sources(stream: Stream) -> None:
    """Remove the source of everything that was read from the prompt. The calls of the output are numbered from 0."""
    calls, out, held = stream.calls, stream.events.out, stream.events.held
    out[:] = [event for event in out if calls.index is not None and getattr(event, "index", None) == calls.index]
    calls.index, calls.count = (0, 1) if out else (None, 0)
    for index, events in (0, out), (calls.count, held.events if held is not None else []):
        for event in events:
            event.source = ""
            if isinstance(event, Dropped):
                event.text = ""
            elif isinstance(event, ToolCallStart | ToolCallDelta | ToolCallEnd):
                event.index = index
    stream.events.forget_text()
    stream.events.meaning = stream.state.meaning or stream.events.meaning
    stream.source.forget()
    if isinstance(stream.island, Envelope):
        stream.island.source = ""


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
