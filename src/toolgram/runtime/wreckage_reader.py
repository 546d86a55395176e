"""Reader of what is left of a broken call: malformed text, up to where its brackets balance or a marker stands."""

from __future__ import annotations

from toolgram.islands.json_envelope import Envelope
from toolgram.islands.wreckage import MARKER, OVER
from toolgram.runtime.sink import MARKER as MARKER_WHY
from toolgram.runtime.stream import WAIT, Stream, reader_of

WHY = "the rest of a call that could not be read"


def read_wreckage(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Malformed text; nothing in it is taken for a call."""
    wreckage, pattern = stream.wreckage, stream.state.wreck
    assert wreckage is not None and pattern is not None
    reason, end, match = wreckage.read(text, pos, pattern, final)
    begin = stream.skip_borrowed(pos, end)
    if end > begin:
        stream.sink.say("malformed", text[begin:end], WHY)
    if reason == OVER:
        _resume(stream)
    elif reason == MARKER:
        assert match is not None
        marker = match.group()
        trigger = next(
            name for name, literal in stream.program.literals.items() if literal == marker and name in stream.state.row
        )
        stream.fire(trigger, marker, MARKER_WHY)
        return match.end()
    elif end < len(text):
        stream.buffer = text[end:]
        return WAIT
    return end


def read_debris(stream: Stream, text: str, pos: int, final: bool) -> int:
    """What is left of a value that was refuted inside a member: text of the state, up to where its brackets balance."""
    wreckage, pattern = stream.wreckage, stream.state.wreck
    assert wreckage is not None and pattern is not None
    reason, end, _ = wreckage.read(text, pos, pattern, final)
    meaning, why, _ = stream.quoted
    begin = stream.skip_borrowed(pos, end)
    if end > begin:
        stream.sink.say(meaning, text[begin:end], why)
    if reason in (OVER, MARKER):
        stream.wreckage = None
        stream.reader = reader_of(stream.state)
    elif end < len(text):
        stream.buffer = text[end:]
        return WAIT
    return end


def _resume(stream: Stream) -> None:
    wreckage = stream.wreckage
    stream.wreckage = None
    in_list = wreckage is not None and wreckage.in_list
    if in_list:
        stream.env = Envelope(in_list=True)
        stream.env.resume_list()
    stream.fire("recovered", "")
    if not in_list and "end_array" in stream.state.row:
        stream.fire("end_array", "")
