"""Dump a stream as JSON-able data, and load it.

A snapshot has the position of the machine and what is held back, but nothing already emitted. A start that two places
share (the start of a held call is also in the held region) is written once, and found by its place. A snapshot may come
from anywhere: loading rejects data that no stream can produce, so that a restored parser never raises on any text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from toolgram.events import BufferedEvent, ToolCallDelta, ToolCallStart, event_from_dict, event_to_dict
from toolgram.islands import checked, dump_island, island_class, load_island, value_kind
from toolgram.islands.error_recovery import ErrorRecovery
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import MEMBER_STRING, START, JsonScanner
from toolgram.program.state import StateProgram
from toolgram.runtime.calls import Argument, Calls, OpenMarkers
from toolgram.runtime.event_buffer import EventBuffer, HeldRegion
from toolgram.runtime.position import ASSUMED, THOUGHTLESS, RejectedValue
from toolgram.runtime.readers import READERS
from toolgram.runtime.source import Converted, Source, Transcoding
from toolgram.runtime.special_tokens import EmittedIds
from toolgram.runtime.stream import Stream, reader_of
from toolgram.spec.data import TEXT

VERSION = 20
_COUNT = range(2**31)
_ARGUMENT = {"key": str, "read_on": range(3), "seen": range(4), "depth": _COUNT, "again": str}
_STATUSES = ("complete", "truncated", "malformed")


def dump_stream(stream: Stream, unread: int) -> dict[str, Any]:
    """Return all that a continuation of the stream depends on. `unread` characters are to be read, or read again."""
    rejected = stream.rejected if stream.reader.startswith("rejected") else None
    return {
        "version": VERSION,
        "state": stream.state.name,
        "reader": stream.reader,
        "buffer": stream.buffer,
        "ids": _dumped_ids(stream.ids, unread),
        "prompt": stream.prompt,
        "island": dump_island(stream.island),
        "rejected": [*rejected] if rejected else None,
        **_dumped_source(stream.source),
        **_dumped_calls(stream.calls, stream.events.held),
        **_dumped_events(stream.events),
    }


def _dumped_ids(ids: EmittedIds | None, unread: int) -> list[Any] | None:
    if ids is None:
        return None
    ids.forget(unread)
    return [ids.end, [[*place] for place in ids.places], {**ids.owed}, ids.begun]


def _dumped_source(source: Source) -> dict[str, Any]:
    converted = source.converted or Converted()
    return {
        "prefix_characters": source.prefix_characters,
        "opening": source.opening,
        "pieces": "".join(source.pieces),
        "json": "".join(converted.json),
        "json_source": "".join(converted.source),
        "transcoding": None if source.transcoding is None else "".join(source.transcoding.pieces),
    }


def _dumped_calls(calls: Calls, held: HeldRegion | None) -> dict[str, Any]:
    markers, argument = calls.markers, calls.argument
    start = calls.start if _open_call(calls, held) is not None else None
    return {
        "calls": calls.count,
        "call": calls.index,
        "open_call": None if start is None else event_to_dict(start),
        "call_id": calls.id,
        "name": next((at for at, event in enumerate(held.events if held else ()) if event is calls.name), None),
        "keys": None if calls.keys is None else [*calls.keys],
        "argument": None if argument is None else [getattr(argument, name) for name in _ARGUMENT],
        "wrapper": None if calls.wrapper is None else "".join(calls.wrapper),
        "overdue": sorted(markers.overdue),
        "owed": sorted(markers.owed),
        "in_text": sorted(markers.in_text),
    }


def _dumped_events(events: EventBuffer) -> dict[str, Any]:
    held = events.held
    return {
        "held": None if held is None else [event_to_dict(event) for event in held.events],
        "origin": None if held is None else held.origin.name,
        "outer": dump_island(held.outer) if held else None,
        "unclosed_call": held.call if held else None,
        "announced": held is not None and held.announced,
        "meaning": events.mention.meaning,
        "code": events.mention.marks.dump(),
        "blanks": "".join(events.blanks),
        "place": events.place,
        "lead": events.lead,
        "has": events.has,
        "gap": events.gap,
        "after_call": None if events.after_call is None else sorted(events.after_call),
        "tail": events.mention.tail,
        "spelled": events.mention.spelled,
    }


def _open_call(calls: Calls, held: HeldRegion | None) -> int | None:
    """Return the index of the call that is open, or that is open if the held region turns out to be text."""
    return held.call if calls.index is None and held is not None else calls.index


def load_stream(stream: Stream, data: Mapping[str, Any]) -> tuple[bool, list[BufferedEvent], int, str]:
    """Load what `dump_stream` returned into a fresh stream of the same format. Return whether it is closed, what it
    emits first, its offset, and the text of withheld calls, which is to be read again. Raise ValueError or KeyError for
    data that is not a snapshot of this format."""
    begun = _fields(data, ("buffer", "prompt"), str, ("", ASSUMED, THOUGHTLESS))
    stream.buffer, stream.prompt = begun
    stream.state = stream.program.states[_fields(data, ("state",), str)[0]]
    (stream.reader,) = _fields(data, ("reader",), tuple(READERS))
    _load_ids(stream, data["ids"])
    stream.island = load_island(data["island"])
    if data["rejected"] is not None:
        stream.rejected = RejectedValue(*checked(data["rejected"], ("content", "reasoning", "malformed"), str, bool))
    _load_source(stream.source, data)
    _load_events(stream.events, stream.program.states, data)
    _load_calls(stream.calls, stream.events.held, data)
    names = ("closed", "replayed", "offset", "withheld")
    closed, replayed, offset, withheld = _fields(data, names, bool, list, _COUNT, str)
    events = [_loaded_event(event) for event in replayed]
    if not all(type(event) is (ToolCallDelta if at else ToolCallStart) for at, event in enumerate(events)):
        raise ValueError("replayed events must begin a call")
    _check_state(stream, closed)
    _check_reader(stream)
    declare = getattr(stream.island, "declare", None)
    if declare is not None:  # declarations are not part of a snapshot
        declare(stream.calls.place())
    return closed, events, offset, withheld


def _fields(data: Mapping[str, Any], names: tuple[str, ...], *kinds: Any) -> list[Any]:
    return checked([data[name] for name in names], *kinds)


def _load_ids(stream: Stream, data: Any) -> None:
    if data is not None:
        ids = stream.ids = stream.ids or EmittedIds({})
        ids.end, places, owed, ids.begun = checked(data, _COUNT, list, dict, str)
        ids.places = [tuple(checked(place, _COUNT, (str, None))) for place in places]
        ids.known = bool(ids.places) and ids.places[-1][1] is not None
        checked([*owed.values(), *owed], *[_COUNT] * len(owed), *[str] * len(owed))
        ids.owed = {**owed}


def _loaded_event(data: Any) -> BufferedEvent:
    if type(data) is not dict:
        raise ValueError("not an event")
    event = event_from_dict(data)
    for name in event.__match_args__:
        kind = _COUNT if name == "index" else _STATUSES if name == "status" else int if name == "ahead" else str
        checked([getattr(event, name)], kind)
    return event


def _load_source(source: Source, data: Mapping[str, Any]) -> None:
    names = ("prefix_characters", "opening", "pieces", "json", "json_source", "transcoding")
    values = _fields(data, names, _COUNT, (str, None), str, str, str, (str, None))
    source.prefix_characters, source.opening, pieces, json, json_source, transcoding = values
    source.pieces = _pieces(pieces)
    if json or json_source:
        source.converted = Converted()
        source.converted.json, source.converted.source = _pieces(json), _pieces(json_source)
    if transcoding is not None:
        source.transcoding = Transcoding()
        source.transcoding.pieces = _pieces(transcoding)


def _pieces(text: str) -> list[str]:
    return [text] if text else []


def _load_events(events: EventBuffer, states: Mapping[str, StateProgram], data: Mapping[str, Any]) -> None:
    names = ("blanks", "place", "lead", "has", "gap", "after_call", "tail", "meaning", "code")
    values = _fields(data, names, str, range(3), str, range(4), range(4), (list, None), str, str, list)
    blanks, events.place, events.lead, events.has, events.gap, after, *rest, marks = values
    events.mention.tail, events.mention.meaning = rest
    (events.mention.spelled,) = _fields(data, ("spelled",), bool)
    events.mention.marks.load(marks)
    events.after_call = None if after is None else frozenset(checked(after, *[str] * len(after)))
    events.blanks = _pieces(blanks)
    held, origin = _fields(data, ("held", "origin"), (list, None), (str, None))
    unclosed, announced = _fields(data, ("unclosed_call", "announced"), (_COUNT, None), bool)
    outer = load_island(data["outer"])
    if (held is None) != (origin is None) or (outer is not None and not isinstance(outer, ErrorRecovery)):
        raise ValueError("a held region and its origin go together")
    if held is not None:
        events.held = HeldRegion(states[origin], outer, announced)
        events.held.events.extend(_loaded_event(event) for event in held)
        events.held.call = unclosed


def _load_calls(calls: Calls, held: HeldRegion | None, data: Mapping[str, Any]) -> None:
    kinds = (_COUNT, (_COUNT, None), (str, None), (_COUNT, None), (list, None))
    calls.count, calls.index, calls.id, name, keys = _fields(data, ("calls", "call", "call_id", "name", "keys"), *kinds)
    triggers = _fields(data, ("overdue", "owed", "in_text"), list, list, list)
    calls.markers = OpenMarkers(*(frozenset(checked(each, *[str] * len(each))) for each in triggers))
    calls.argument = _loaded_argument(*_fields(data, ("argument", "wrapper"), (list, None), (str, None)))
    calls.keys = None if keys is None else dict.fromkeys(checked(keys, *[str] * len(keys)))
    if name is not None:
        calls.name = _start(held.events[name] if held is not None else None)
    is_open = _open_call(calls, held)
    if is_open is not None:
        calls.start = _start(_loaded_event({**data["open_call"], "source": ""}))
    if (data["open_call"] is None) != (is_open is None) or is_open not in (None, calls.count - 1):
        raise ValueError("the open call is the last one")


def _loaded_argument(data: list[Any] | None, wrapper: str | None) -> Argument | None:
    if data is None:
        return None
    argument = Argument("")
    for name, value in zip(_ARGUMENT, checked(data, *_ARGUMENT.values()), strict=True):
        setattr(argument, name, value)
    argument.wrapper = None if wrapper is None else _pieces(wrapper)
    return argument


def _start(event: BufferedEvent | None) -> ToolCallStart:
    if not isinstance(event, ToolCallStart):
        raise ValueError("not the start of a call")
    return event


def _check_state(stream: Stream, closed: bool) -> None:
    """Raise ValueError if the machine cannot continue from this state, or if the held region does not fit it."""
    state, held = stream.state, stream.events.held
    origin = state if held is None else held.origin
    leads_on = TEXT in origin.row or "malformed" in origin.row or origin.meaning == "malformed"
    fits = (leads_on or closed) and not origin.held
    fits &= held is None or state.held or state is origin
    if held is not None:
        fits &= (held.outer is not None) == (origin.meaning == "malformed")
        fits &= not (stream.reader.startswith("rejected") or stream.reader == "malformed")
    fits &= stream.source.transcoding is None or stream.reader == "repaired"
    if not fits:
        raise ValueError(f"a stream cannot be in {state.name} with what is held")


def _check_reader(stream: Stream) -> None:
    """Raise ValueError if the reader does not have the state or the island that it works on."""
    reader, island = stream.reader, stream.island
    fits = _FITS_ENVELOPE if isinstance(island, Envelope) else _FITS
    inner = reader
    if isinstance(island, Envelope) and reader == "repaired":
        repairs = island.scanner.repairer is not None and stream.source.transcoding is not None
        inner = island.inner if repairs else ""
    if inner not in fits or not fits[inner](stream):
        raise ValueError(f"the reader {reader} cannot work in {stream.state.name} on {type(island).__name__}")


def _fits_outside(stream: Stream) -> bool:
    no_value = stream.island is None and not stream.source.object_is_held
    return no_value and stream.reader == reader_of(stream.state)


def _fits_after_turn(stream: Stream) -> bool:
    no_value = stream.island is None and not stream.source.object_is_held
    return no_value and stream.calls.index is None and stream.events.held is None


def _fits_object(stream: Stream) -> bool:
    return stream.island is None and stream.source.object_is_held and "object_start" in stream.state.row


def _fits_arguments(stream: Stream) -> bool:
    return stream.state.meaning == "arguments" and isinstance(stream.island, JsonScanner) and bool(stream.island.stack)


def _fits_closed(stream: Stream) -> bool:
    return stream.state.meaning == "arguments" and isinstance(stream.island, JsonScanner) and stream.island.done


def _fits_repaired(stream: Stream) -> bool:
    island, source = stream.island, stream.source
    if not isinstance(island, JsonScanner) or island.repairer is None or source.transcoding is None:
        return False
    begins = source.object_is_held and "object_start" in stream.state.row
    return bool(island.stack) and (begins or stream.state.meaning == "arguments")


def _fits_python(stream: Stream) -> bool:
    island = stream.island
    return isinstance(island, island_class("python")) and not island.alone and _fits_object_row(stream)


def _fits_string(stream: Stream) -> bool:
    return isinstance(stream.island, island_class("json_string")) and _fits_object_row(stream)


def _fits_object_row(stream: Stream) -> bool:
    return ("object_start" if stream.source.object_is_held else "object_end") in stream.state.row


def _fits_value(stream: Stream) -> bool:
    state = stream.state
    kind = value_kind(state.typed, "value_end" in state.row)
    read = stream.calls.argument is not None and isinstance(stream.island, island_class(kind))
    return state.meaning == "value" and read


def _fits_rejected_json(stream: Stream) -> bool:
    return stream.state.is_text and isinstance(stream.island, JsonScanner) and stream.rejected is not None


def _fits_rejected_rest(stream: Stream) -> bool:
    return stream.state.is_text and isinstance(stream.island, ErrorRecovery) and stream.rejected is not None


def _fits_malformed(stream: Stream) -> bool:
    return stream.state.meaning == "malformed" and isinstance(stream.island, ErrorRecovery)


_FITS: dict[str, Callable[[Stream], bool]] = {
    "after_turn": _fits_after_turn,
    "text": _fits_outside,
    "token": _fits_outside,
    "object": _fits_object,
    "arguments": _fits_arguments,
    "closed": _fits_closed,
    "repaired": _fits_repaired,
    "python": _fits_python,
    "string": _fits_string,
    "value": _fits_value,
    "rejected_json": _fits_rejected_json,
    "rejected_rest": _fits_rejected_rest,
    "malformed": _fits_malformed,
}


def _depth(stream: Stream) -> int:
    """Return how many brackets are open inside the current value of the envelope."""
    envelope = cast(Envelope, stream.island)
    return len(envelope.scanner.stack) - envelope.depth


def _fits_envelope(stream: Stream) -> bool:
    envelope = cast(Envelope, stream.island)
    confirmed = _depth(stream) == int(stream.source.object_is_held) or envelope.scanner.state == START
    if not confirmed or (envelope.in_token and not envelope.token):
        return False
    return envelope.string is None and stream.state.meaning not in ("arguments", "ignored")


def _fits_encoded(stream: Stream) -> bool:
    envelope = cast(Envelope, stream.island)
    return envelope.string is not None and _depth(stream) == 0 and envelope.scanner.state == MEMBER_STRING


def _fits_arguments_inside(stream: Stream) -> bool:
    envelope = cast(Envelope, stream.island)
    return stream.state.meaning == "arguments" and _depth(stream) > 0 and envelope.string is None


def _fits_closed_inside(stream: Stream) -> bool:
    envelope = cast(Envelope, stream.island)
    return stream.state.meaning == "arguments" and _depth(stream) == 0 and envelope.string is None


def _fits_ignored(stream: Stream) -> bool:
    envelope = cast(Envelope, stream.island)
    return stream.state.meaning == "ignored" and _depth(stream) >= 0 and envelope.scanner.state != START


_FITS_ENVELOPE: dict[str, Callable[[Stream], bool]] = {
    "envelope": _fits_envelope,
    "encoded": _fits_encoded,
    "arguments": _fits_arguments_inside,
    "closed": _fits_closed_inside,
    "ignored": _fits_ignored,
}
