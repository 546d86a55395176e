"""Readers of the rest of a broken or rejected value, up to where its brackets balance or a marker is found.

The rest of a broken call is malformed text. The rest of rejected held text is text of the state in which it began.
"""

from __future__ import annotations

from typing import cast

from toolgram.islands import OpenBrackets
from toolgram.islands.error_recovery import MORE, OVER, ErrorRecovery
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import JsonScanner
from toolgram.program.state import Symbol
from toolgram.runtime.calls import NONE
from toolgram.runtime.event_buffer import MARKER as MARKER_WHY
from toolgram.runtime.position import RejectedValue
from toolgram.runtime.stream import LATE_CALL, Stream
from toolgram.spec.data import UNCLOSED

WHY = "the rest of a call that could not be read"


def read_malformed(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read malformed text, which contains no calls."""
    recovery = cast(ErrorRecovery, stream.island)
    end = _read(stream, recovery, text, pos, final, "malformed", WHY)
    if recovery.reason == OVER:
        _resume(stream, recovery)
        return end
    if recovery.match is not None:
        marker = recovery.match.group()
        stream.fire(_symbol_of(stream, marker).trigger, marker, MARKER_WHY)
        if stream.island is recovery and stream.reader != "malformed":
            stream.island = None
        return recovery.match.end()
    return stream.wait(text[end:]) if end < len(text) else end  # the rest of a marker may come


def read_rejected_rest(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read the rest of a rejected value that is not JSON, as text up to where its brackets balance."""
    recovery, rejected = cast(ErrorRecovery, stream.island), cast(RejectedValue, stream.rejected)
    end = _read(stream, recovery, text, pos, final, rejected.meaning, rejected.why)
    if recovery.reason != MORE:
        stream.island, stream.reader = None, stream.state.reader
        if recovery.reason == OVER and rejected.why == LATE_CALL:
            stream.events.after_call = NONE
            stream.events.begin_segment()
        return end
    return stream.wait(text[end:]) if end < len(text) else end  # the rest of a marker may come


def read_rejected_json(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read a rejected value that is valid JSON, as text up to its end, or up to where it is not JSON any more."""
    scanner, rejected = cast(JsonScanner, stream.island), cast(RejectedValue, stream.rejected)
    end = scanner.read(text, pos, final)
    if end > pos:
        stream.events.say(rejected.meaning, text[pos:end], rejected.why)
        if scanner.in_string:
            stream.events.keep_blanks(rejected.meaning, rejected.why)
    if scanner.broken and (rejected.named or len(scanner.stack) > 1):
        quote = '"' if scanner.in_string and rejected.announced else ""
        opened = OpenBrackets("".join(scanner.stack), quote)
        stream.island = ErrorRecovery(opened, quotes_count=rejected.announced)
        stream.reader = "rejected_rest"
    elif scanner.broken or scanner.done:
        stream.island, stream.reader = None, stream.state.reader
    return end


def _read(stream: Stream, recovery: ErrorRecovery, text: str, pos: int, final: bool, meaning: str, why: str) -> int:
    recovery.search = stream.state.brackets
    end = recovery.read(text, pos, final)
    while recovery.match is not None:
        if stream.is_marker(_symbol_of(stream, recovery.match.group()), text, *recovery.match.span()):
            break
        end = recovery.read(text, recovery.match.end(), final)
    if end > pos:
        stream.events.say(meaning, text[pos:end], why)
    return end


def _symbol_of(stream: Stream, marker: str) -> Symbol:
    return stream.state.symbols[stream.state.literals.index(marker)]


def _resume(stream: Stream, recovery: ErrorRecovery) -> None:
    """Resume after a broken value that has ended. In a list of calls, the next one may follow."""
    stream.island = None
    in_json = recovery.in_list and not recovery.python  # the state reads what is around a call in Python
    if in_json and not {"start_map item", "end_array"}.isdisjoint(stream.state.row["recovered"].dest.row):
        stream.island = Envelope.after_item(repairs=not stream.program.strict)
    stream.fire("recovered", "")
    if not recovery.in_list and (closed := _closes_list(stream)):
        stream.fire(closed, "")


def _closes_list(stream: Stream) -> str:
    """Return the trigger that leaves a list without its bracket; "" if the next call may follow without a list."""
    row = stream.state.row
    if "end_array" in row:
        return "end_array"
    return UNCLOSED if UNCLOSED in row and not any("name" in move.actions for move in row.values()) else ""
