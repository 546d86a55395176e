"""Read an output that needs a parser without the plain calls in its middle.

Strategy: one of many calls is damaged or cut off, often the last one. A parser is in the same position after each plain
call that ends in the same state. So the calls between the first and the last but one of these are left out of the text
that the parser reads, and put into its message. The last one stays: what is odd after a call may belong to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from toolgram.anomalies import Anomaly
from toolgram.call_ids import CallIds
from toolgram.message import Message, ToolCall

ReadText: TypeAlias = Callable[[str, CallIds], Message]
# A position after a plain call: in the text, in the machine, and how many calls and anomalies came before it.
CallEnd: TypeAlias = tuple[int, object, int, int]
_LEAST = 200  # characters: with fewer, nothing is saved


def message_without(
    text: str, ends: Sequence[CallEnd], calls: Sequence[ToolCall], anomalies: Sequence[Anomaly], ids: CallIds,
    read: ReadText,
) -> Message | None:  # fmt: skip
    """Return the message of a text, of which `read` gets the rest; None if nothing can be left out. `calls` and
    `anomalies` are those up to the last of `ends`."""
    if len(ends) < 3:
        return None
    (begin, place, first, noted), (end, same_place, last, known) = ends[0], ends[-2]
    if place is not same_place or end - begin < _LEAST:
        return None
    left_out, waiting = calls[first:last], [sum(not call.id for call in calls[:first])]

    def next_id() -> str:
        """Return an id for the next call that is read. Those that are left out get theirs in their order."""
        waiting[0] -= 1
        if waiting[0] < 0:
            give_ids()
        return ids()

    def give_ids() -> None:
        for call in left_out:
            call.id = call.id or ids()

    message = read(text[:begin] + text[end:], next_id)
    give_ids()
    before = message.tool_calls[first - 1]
    at = next(at for at, part in enumerate(message.parts, 1) if part is before)
    message.parts[at:at] = message.tool_calls[first:first] = left_out
    for failed in message.malformed:
        failed.index, failed.start = failed.index + last - first, failed.start + end - begin
    found = message.anomalies
    later = next((at for at, each in enumerate(found) if each.start >= begin), len(found))
    for each in found[later:]:
        each.start += end - begin
        if each.call is not None:
            each.call += last - first
    found[later:later] = anomalies[noted:known]
    return message
