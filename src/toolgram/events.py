"""What a parser says: seven event types, and the character ranges they account for.

Strategy: plain slotted dataclasses with a `type` tag.  They are made once per delta on the hottest path of a
server, so they are not frozen, not validated and not ordered; a slotted dataclass costs about a tenth of a
microsecond, and a validated model costs several.

Two texts are carried apart.  `source` is the model's own characters: over all events, in order, the sources give
the input back (the conservation clause of the contract).  The payload (`text`, `name`, `arguments`) is what those
characters mean: a content event that opens a new segment starts with the joining space, which no character of the
input stands for, and Python literals arrive as JSON.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Status: TypeAlias = Literal["complete", "truncated", "malformed"]


@dataclass(slots=True)
class Content:
    """Text meant for the user. Concatenated over a stream, `text` is `Message.content`."""

    text: str
    source: str
    type: Literal["content"] = "content"


@dataclass(slots=True)
class Reasoning:
    """Text of the model's thinking. Concatenated over a stream, `text` is `Message.reasoning`."""

    text: str
    source: str
    type: Literal["reasoning"] = "reasoning"


@dataclass(slots=True)
class ToolCallStart:
    """A call is certain. Sent once per call, before its arguments; `name` is whole.

    `index` counts calls from 0. `source` is the text of the name, or empty if the name came after the arguments.
    """

    index: int
    id: str
    name: str
    source: str
    type: Literal["tool_call_start"] = "tool_call_start"


@dataclass(slots=True)
class ToolCallDelta:
    """A fragment of a call's arguments. Fragments concatenate to JSON; every prefix is a prefix of valid JSON."""

    index: int
    arguments: str
    source: str
    type: Literal["tool_call_delta"] = "tool_call_delta"


@dataclass(slots=True)
class ToolCallEnd:
    """A call has ended. Only `complete` says that every character of it was seen and was well formed."""

    index: int
    status: Status
    source: str = ""
    type: Literal["tool_call_end"] = "tool_call_end"


@dataclass(slots=True)
class Dropped:
    """Characters that carry structure and no text: markers, separators, whitespace at a seam."""

    text: str
    why: str
    source: str
    type: Literal["dropped"] = "dropped"


@dataclass(slots=True)
class Malformed:
    """Characters that were to be structure and could not be read. The text is also part of `Message.content`."""

    text: str
    why: str
    source: str
    type: Literal["malformed"] = "malformed"


@dataclass(slots=True)
class Note:
    """Something to know about the text at this place, for no characters. Parsers use it and do not emit it.

    `kind` is that of an anomaly; or `opens` if the markup of a call follows (`text` is "inside" if the call is in the
    same brackets as another), or `model_id` if the model wrote the id of a call too late. `ahead` counts the characters
    before its place that no event has accounted for yet; it is negative if events have already passed the place.
    """

    kind: str
    text: str
    source: str = ""
    ahead: int = 0
    type: Literal["note"] = "note"


Event: TypeAlias = Content | Reasoning | ToolCallStart | ToolCallDelta | ToolCallEnd | Dropped | Malformed
BufferedEvent: TypeAlias = Event | Note

EVENT_TYPES: dict[str, type[Any]] = {
    "content": Content,
    "reasoning": Reasoning,
    "tool_call_start": ToolCallStart,
    "tool_call_delta": ToolCallDelta,
    "tool_call_end": ToolCallEnd,
    "dropped": Dropped,
    "malformed": Malformed,
    "note": Note,
}


def event_to_dict(event: BufferedEvent) -> dict[str, Any]:
    """Return the event as a JSON-able dict, its `type` tag first."""
    values: dict[str, Any] = {"type": event.type}
    for name in event.__match_args__:
        if name != "type":
            values[name] = getattr(event, name)
    return values


def event_from_dict(values: dict[str, Any]) -> BufferedEvent:
    """Return the event of such a dict. Raises KeyError for an unknown `type`."""
    fields = dict(values)
    event: BufferedEvent = EVENT_TYPES[fields.pop("type")](**fields)
    return event
