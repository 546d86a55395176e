"""A stream as JSON-able data, and back.

What is written is what is held back and where the machine stands; what went by is not there.  A start that two places
share (that of a held call is also in the held region) is written once and found again by its place.  A snapshot may
come from anywhere: loading refuses what no stream can be in, so that a restored parser raises nothing on any text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolgram.events import BufferedEvent, ToolCallDelta, ToolCallStart, event_from_dict, event_to_dict
from toolgram.islands import checked, dump_island, island_class, load_island, value_kind
from toolgram.islands.error_recovery import ErrorRecovery
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import MEMBER_STRING, START, JsonScanner
from toolgram.program.state import StateProgram
from toolgram.runtime.calls import Calls
from toolgram.runtime.event_buffer import EventBuffer, HeldRegion
from toolgram.runtime.readers import READERS
from toolgram.runtime.source import Source
from toolgram.runtime.stream import RejectedValue, Stream, reader_of
from toolgram.spec.data import TEXT

VERSION = 10
_COUNT = range(2**31)
_STATUSES = ("complete", "truncated", "malformed")


def dump_stream(stream: Stream) -> dict[str, Any]:
    """Everything that a continuation of the stream depends on."""
    source, calls, events = stream.source, stream.calls, stream.events
    held = events.held
    rejected = stream.rejected if stream.reader.startswith("rejected") else None
    return {
        "version": VERSION,
        "state": stream.state.name,
        "reader": stream.reader,
        "buffer": stream.buffer,
        "assumed": stream.assumed,
        "unmatched_ids": stream.unmatched_ids and {**stream.unmatched_ids},
        "island": dump_island(stream.island),
        "rejected": [*rejected] if rejected else None,
        "prefix_characters": source.prefix_characters,
        "unconfirmed": source.unconfirmed,
        "opening": source.opening,
        "pieces": "".join(source.pieces),
        "json": "".join(source.json or ()),
        "json_source": "".join(source.json_source or ()),
        "transcoding": None if source.transcoding is None else "".join(source.transcoding),
        "calls": calls.count,
        "call": calls.index,
        "open_call": event_to_dict(calls.start) if _open_call(calls, held) is not None and calls.start else None,
        "call_id": calls.id,
        "name": next((at for at, event in enumerate(held.events if held else ()) if event is calls.name), None),
        "keys": None if calls.keys is None else [*calls.keys],
        "key": calls.key,
        "read_on": calls.read_on,
        "seen": calls.seen,
        "depth": calls.depth,
        "again": calls.again,
        "owed": sorted(calls.owed),
        "enclosed": sorted(calls.enclosed),
        "sections": sorted(calls.sections),
        "wrapper": None if calls.wrapper is None else "".join(calls.wrapper),
        "held": None if held is None else [event_to_dict(event) for event in held.events],
        "origin": None if held is None else held.origin.name,
        "outer": dump_island(held.outer) if held else None,
        "unclosed_call": held.call if held else None,
        "blanks": "".join(events.blanks),
        "fresh": events.fresh,
        "seam": events.seam,
        "lead": events.lead,
        "has": events.has,
        "gap": events.gap,
        "behind_call": None if events.behind_call is None else sorted(events.behind_call),
        "tail": events.tail,
    }


def _open_call(calls: Calls, held: HeldRegion | None) -> int | None:
    """The call that is open, or is if the held region turns out to be text."""
    return held.call if calls.index is None and held is not None else calls.index


def load_stream(stream: Stream, data: Mapping[str, Any]) -> tuple[bool, list[BufferedEvent], int]:
    """The inverse of `dump_stream`, into a fresh stream of the same format; and what the parser adds to it.

    Raises ValueError or KeyError for what is no snapshot of this format.
    """
    stream.buffer, stream.assumed = _fields(data, ("buffer", "assumed"), str, bool)
    stream.state = stream.program.states[_fields(data, ("state",), str)[0]]
    (stream.reader,) = _fields(data, ("reader",), tuple(READERS))
    stream.unmatched_ids = _loaded_ids(data["unmatched_ids"])
    stream.island = load_island(data["island"])
    if data["rejected"] is not None:
        stream.rejected = RejectedValue(*checked(data["rejected"], ("content", "reasoning", "malformed"), str, bool))
    _load_source(stream.source, data)
    _load_events(stream.events, stream.program.states, data)
    _load_calls(stream.calls, stream.events.held, data)
    if stream.program.loose_python and isinstance(stream.island, island_class("loose_python")):
        stream.island.declared = stream.calls.declared()
    closed, replayed, offset = _fields(data, ("closed", "replayed", "offset"), bool, list, _COUNT)
    events = [_loaded_event(event) for event in replayed]
    if not all(type(event) is (ToolCallDelta if at else ToolCallStart) for at, event in enumerate(events)):
        raise ValueError("what is replayed is no beginning of a call")
    _check_state(stream, closed)
    _check_reader(stream)
    declare = getattr(stream.island, "declare", None)
    if declare is not None:  # what is declared is not part of a snapshot
        declare(stream.calls.place())
    return closed, events, offset


def _fields(data: Mapping[str, Any], names: tuple[str, ...], *kinds: Any) -> list[Any]:
    return checked([data[name] for name in names], *kinds)


def _loaded_ids(data: Any) -> dict[str, int] | None:
    if data is None:
        return None
    checked([*data.values()] if type(data) is dict else None, *[_COUNT] * len(data))
    return {**data}


def _loaded_event(data: Any) -> BufferedEvent:
    if type(data) is not dict:
        raise ValueError("no event")
    event = event_from_dict(data)
    for name in event.__match_args__:
        kind = _COUNT if name == "index" else _STATUSES if name == "status" else int if name == "ahead" else str
        checked([getattr(event, name)], kind)
    return event


def _load_source(source: Source, data: Mapping[str, Any]) -> None:
    names = ("prefix_characters", "unconfirmed", "opening", "pieces", "json", "json_source", "transcoding")
    kinds = (_COUNT, bool, str, str, str, str, (str, None))
    values = _fields(data, names, *kinds)
    source.prefix_characters, source.unconfirmed, source.opening = values[:3]
    source.pieces, json, json_source, transcoding = [[text] if text else [] for text in values[3:]]
    source.json, source.json_source = json or None, json_source or None
    source.transcoding = None if data["transcoding"] is None else transcoding


def _load_events(events: EventBuffer, states: Mapping[str, StateProgram], data: Mapping[str, Any]) -> None:
    names = ("blanks", "fresh", "seam", "lead", "has", "gap", "behind_call", "tail")
    kinds = (str, bool, bool, str, range(4), range(4), (list, None), str)
    values = _fields(data, names, *kinds)
    blanks, events.fresh, events.seam, events.lead, events.has, events.gap, behind, events.tail = values
    events.behind_call = None if behind is None else frozenset(checked(behind, *[str] * len(behind)))
    events.blanks = [blanks] if blanks else []
    held, origin = _fields(data, ("held", "origin"), (list, None), (str, None))
    (unclosed,) = _fields(data, ("unclosed_call",), (_COUNT, None))
    outer = load_island(data["outer"])
    if (held is None) != (origin is None) or (outer is not None and not isinstance(outer, ErrorRecovery)):
        raise ValueError("a held region and its origin go together")
    if held is not None:
        events.held = HeldRegion(states[origin], outer)
        events.held.events.extend(_loaded_event(event) for event in held)
        events.held.call = unclosed


def _load_calls(calls: Calls, held: HeldRegion | None, data: Mapping[str, Any]) -> None:
    names = ("calls", "call", "call_id", "name", "keys", "key", "read_on", "seen", "wrapper", "depth")
    kinds = (
        _COUNT,
        (_COUNT, None),
        (str, None),
        (_COUNT, None),
        (list, None),
        str,
        range(3),
        range(4),
        (str, None),
        _COUNT,
    )
    calls.count, calls.index, calls.id, name, keys, calls.key, *rest = _fields(data, names, *kinds)
    calls.read_on, calls.seen, wrapper, calls.depth = rest
    (calls.again,) = _fields(data, ("again",), str)
    calls.owed, calls.enclosed, calls.sections = (
        frozenset(checked(each, *[str] * len(each)))
        for each in _fields(data, ("owed", "enclosed", "sections"), list, list, list)
    )
    calls.wrapper = None if wrapper is None else [wrapper] if wrapper else []
    calls.keys = None if keys is None else dict.fromkeys(checked(keys, *[str] * len(keys)))
    if name is not None:
        calls.name = _start(held.events[name] if held is not None else None)
    is_open = _open_call(calls, held)
    if is_open is not None:
        calls.start = _start(_loaded_event({**data["open_call"], "source": ""}))
    if (data["open_call"] is None) != (is_open is None) or is_open not in (None, calls.count - 1):
        raise ValueError("the open call is the last one")


def _start(event: BufferedEvent | None) -> ToolCallStart:
    if not isinstance(event, ToolCallStart):
        raise ValueError("no start of a call")
    return event


def _check_state(stream: Stream, closed: bool) -> None:
    """Raises ValueError where the machine could not go on from this state, or where holding does not fit it."""
    state, held = stream.state, stream.events.held
    origin = state if held is None else held.origin
    leads_on = TEXT in origin.row or "malformed" in origin.row or origin.meaning == "malformed"
    fits = (leads_on or closed) and not origin.held
    fits &= held is None or state.held or state is origin
    if held is not None:
        fits &= (held.outer is not None) == (origin.meaning == "malformed")
        fits &= not (stream.reader.startswith("rejected") or stream.reader == "malformed")
    fits &= stream.source.transcoding is None or stream.reader in ("transcoded", "repaired")
    if not fits:
        raise ValueError(f"a stream cannot be in {state.name} with what is held")


def _check_reader(stream: Stream) -> None:
    """Raises ValueError where the reader does not have the state or the island that it works on."""
    state, island, reader, row = stream.state, stream.island, stream.reader, stream.state.row
    unconfirmed = stream.source.unconfirmed
    if isinstance(island, Envelope):
        fits = _fits_envelope(stream, island)
    elif reader in ("text", "token"):
        fits = island is None and reader == reader_of(state) and not unconfirmed
    elif reader == "object":
        fits = island is None and unconfirmed and "object_start" in row
    elif reader in ("arguments", "unclosed_arguments"):
        fits = state.meaning == "arguments" and isinstance(island, JsonScanner) and bool(island.stack)
    elif reader == "repaired":
        fits = isinstance(island, JsonScanner) and island.repairer is not None and bool(island.stack)
        fits = fits and (state.meaning == "arguments" or (unconfirmed and "object_start" in row))
        fits = fits and stream.source.transcoding is not None
    elif reader == "python":
        loose = bool(stream.program.loose_python) and isinstance(island, island_class("loose_python"))
        fits = loose or (isinstance(island, island_class("python")) and not island.alone)
        fits = fits and ("object_start" if unconfirmed else "object_end") in row
    elif reader == "string":
        fits = isinstance(island, island_class("json_string"))
        fits = fits and ("object_start" if unconfirmed else "object_end") in row
    elif reader == "value":
        fits = state.meaning == reader and isinstance(island, island_class(value_kind(state.typed, "value_end" in row)))
    elif reader == "rejected_json":
        fits = state.is_text and isinstance(island, JsonScanner) and stream.rejected is not None
    elif reader == "rejected_rest":
        fits = state.is_text and isinstance(island, ErrorRecovery) and stream.rejected is not None
    else:
        fits = reader == state.meaning == "malformed" and isinstance(island, ErrorRecovery)
    if not fits:
        raise ValueError(f"the reader {reader} cannot work in {state.name} on {type(island).__name__}")


def _fits_envelope(stream: Stream, envelope: Envelope) -> bool:
    """Whether the reader has what it works on, and the envelope is as deep as it should be."""
    state, reader = stream.state, stream.reader
    if reader == "transcoded":
        if envelope.python is None or stream.source.transcoding is None:
            return False
        reader = envelope.inner
    elif reader == "repaired":
        if envelope.scanner.repairer is None or stream.source.transcoding is None:
            return False
        reader = envelope.inner
    deeper = len(envelope.scanner.stack) - envelope.depth
    if reader == "envelope":
        confirmed = deeper == int(stream.source.unconfirmed) or envelope.scanner.state == START
        confirmed &= bool(envelope.token) or not envelope.in_token
        return confirmed and envelope.string is None and state.meaning not in ("arguments", "ignored")
    if reader == "encoded":
        return envelope.string is not None and deeper == 0 and envelope.scanner.state == MEMBER_STRING
    if reader in ("arguments", "unclosed_arguments"):
        return state.meaning == "arguments" and deeper > 0 and envelope.string is None
    return reader == "ignored" and state.meaning == reader and deeper >= 0 and envelope.scanner.state != START
