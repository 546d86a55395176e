"""A stream as JSON-able data, and back.

What is written is what is held back and where the machine stands; what went by is not there. Objects that are shared
between slots (the start of a held call is also in the queue) are written once and found again by place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgram.events import ToolCallStart, event_from_dict, event_to_dict
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_strings import JsonStringScanner
from toolgram.islands.json_values import JsonScanner
from toolgram.islands.wreckage import Wreckage
from toolgram.runtime.stream import Stream

VERSION = 3
_PLAIN = (
    "reader",
    "borrowed",
    "buffer",
    "calls",
    "call",
    "given_id",
    "key",
    "credits",
    "doubt",
    "opening",
    "source",
    "reread",
)
_LISTS = ("pending", "early", "ready")


def dump_stream(stream: Stream) -> dict[str, Any]:
    """Everything that a continuation of the stream depends on."""
    sink = stream.sink
    queue = sink.queue
    data: dict[str, Any] = {name: getattr(stream, name) for name in _PLAIN}
    data["version"] = VERSION
    data["keys"] = None if stream.keys is None else [*stream.keys]
    data["state"], data["origin"] = stream.state.name, stream.origin.name
    data["queue"] = None if queue is None else [event_to_dict(event) for event in queue]
    data["name"] = next((at for at, event in enumerate(queue or ()) if event is stream.name), None)
    data["open_call"] = event_to_dict(stream.open_call) if stream.call is not None and stream.open_call else None
    data["blanks"] = "".join(sink.blanks)
    data["fresh"] = sink.fresh
    data["seam"], data["has"], data["gap"] = sink.seam, sink.has, sink.gap
    for name in _LISTS:
        data[name] = "".join(getattr(stream, name) or ())
    data["quoted"] = stream.quoted
    data["env"] = stream.env.dump() if stream.env else None
    data["scanner"] = stream.scanner.dump() if stream.scanner else None
    data["strings"] = stream.strings.dump() if stream.strings else None
    data["python"] = stream.python.state() if stream.python else None
    data["value"] = stream.value.dump() if stream.value else None
    data["notated"] = stream.notated.dump() if stream.notated else None
    data["wreckage"] = stream.wreckage.dump() if stream.wreckage else None
    return data


def load_stream(stream: Stream, data: Mapping[str, Any]) -> None:
    """The inverse of `dump_stream`, into a fresh stream of the same format."""
    sink = stream.sink
    for name in _PLAIN:
        setattr(stream, name, data[name])
    stream.keys = None if data["keys"] is None else dict.fromkeys(data["keys"])
    stream.state = stream.program.states[data["state"]]
    stream.origin = stream.program.states[data["origin"]]
    sink.queue = None if data["queue"] is None else [event_from_dict(event) for event in data["queue"]]
    if data["name"] is not None and sink.queue is not None:
        start = sink.queue[data["name"]]
        assert isinstance(start, ToolCallStart)
        stream.name = start
    if data["open_call"] is not None:
        start = event_from_dict({**data["open_call"], "source": ""})
        assert isinstance(start, ToolCallStart)
        stream.open_call = start
    sink.blanks = [data["blanks"]] if data["blanks"] else []
    sink.fresh = data["fresh"]
    sink.seam, sink.has, sink.gap = data["seam"], data["has"], data["gap"]
    stream.quoted = (data["quoted"][0], data["quoted"][1], data["quoted"][2])
    for name in _LISTS:
        setattr(stream, name, [data[name]] if data[name] else [] if name == "pending" else None)
    stream.env = Envelope.load(data["env"]) if data["env"] else None
    stream.scanner = JsonScanner.load(data["scanner"]) if data["scanner"] else None
    stream.strings = JsonStringScanner.load(data["strings"]) if data["strings"] else None
    if data["python"]:
        from toolgram.islands.python_literals import PythonScanner

        stream.python = PythonScanner.restore(data["python"])
    if data["value"]:
        from toolgram.islands.tagged_values import TaggedValue

        stream.value = TaggedValue.load(data["value"])
    if data["notated"]:
        from toolgram.islands.notated_values import NotatedScanner

        stream.notated = NotatedScanner.load(data["notated"])
    stream.wreckage = Wreckage.load(data["wreckage"]) if data["wreckage"] else None
