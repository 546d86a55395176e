"""Dump a stream as JSON-able data, and load it.

A snapshot has the position of the machine and what is held back, but nothing already emitted. A start that two places
share (the start of a held call is also in the held region) is written once, and found by its place. A digest of the
snapshot and of the format's two files shows that it is as it was written, and for this format. Beside that, only the
version is checked. The digest has no key: of a snapshot that somebody forged nothing is evaluated, and what it breaks
is a ToolgramError.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Any, cast

from toolgram.events import ToolCallStart, event_from_dict, event_to_dict
from toolgram.islands import dump_island, load_island
from toolgram.islands.error_recovery import ErrorRecovery
from toolgram.program.state import StateProgram
from toolgram.runtime.calls import Argument, Calls, OpenMarkers
from toolgram.runtime.event_buffer import EventBuffer, HeldRegion
from toolgram.runtime.position import RejectedValue
from toolgram.runtime.source import Converted, Source, Transcoding
from toolgram.runtime.special_tokens import EmittedIds
from toolgram.runtime.stream import Stream
from toolgram.spec.data import Spec

VERSION = 27
_ARGUMENT = ("key", "read_on", "seen", "depth", "again")
_OF_EVENTS = ("place", "lead", "has", "gap")


def sealed(spec: Spec, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a snapshot with its digest, which is another one if anything in it, or in the format, is."""
    of_format = _digest_of_format(spec.grammar_text, spec.machine_json, spec.suffix)
    return {**data, "digest": _digest(_in_order({**data, "digest": of_format}))}


_in_order = json.JSONEncoder(sort_keys=True).encode


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=256)
def _digest_of_format(*texts: str) -> str:
    return _digest(_in_order(texts))


def dump_stream(stream: Stream, unread: int) -> dict[str, Any]:
    """Return all that a continuation of the stream depends on. `unread` characters are to be read, or read again."""
    rejected = stream.rejected if stream.reader.startswith("rejected") else None
    suffix, literals = stream.program.spec.suffix, stream.program.literals.values()
    return {
        "version": VERSION,
        "strict": stream.program.strict,
        "suffixed": next((text for text in literals if suffix in text), "") if suffix else "",  # a prompt may say it
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
        "recent": "" if argument is None else argument.ending,
        "wrapper": None if calls.wrapper is None else "".join(calls.wrapper),
        **{name: sorted(opened) for name, opened in markers._asdict().items()},
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
        **{name: getattr(events, name) for name in _OF_EVENTS},
        "after_call": None if events.after_call is None else sorted(events.after_call),
        "tail": events.mention.tail,
        "before": events.mention.before,
        "quoted_to": events.mention.quoted_to,
    }


def _open_call(calls: Calls, held: HeldRegion | None) -> int | None:
    """Return the index of the call that is open, or that is open if the held region turns out to be text."""
    return held.call if calls.index is None and held is not None else calls.index


def load_stream(stream: Stream, data: Mapping[str, Any]) -> None:
    """Load what `dump_stream` returned into a fresh stream. Raise ValueError if it was changed."""
    if sealed(stream.program.spec, data)["digest"] != data["digest"]:
        raise ValueError("its digest is another one: it was changed, or is of another format")
    stream.buffer, stream.prompt, stream.reader = data["buffer"], data["prompt"], data["reader"]
    stream.state = stream.program.states[data["state"]]
    _load_ids(stream, data["ids"])
    stream.island = load_island(data["island"])
    if data["rejected"] is not None:
        stream.rejected = RejectedValue(*data["rejected"])
    _load_source(stream.source, data)
    _load_events(stream.events, stream.program.states, data)
    _load_calls(stream.calls, stream.events.held, data)
    declare = getattr(stream.island, "declare", None)
    if declare is not None:  # declarations are not part of a snapshot
        declare(stream.calls.place())


def _load_ids(stream: Stream, data: Any) -> None:
    if data is not None:
        ids = stream.ids = stream.ids or EmittedIds({})
        ids.end, places, owed, ids.begun = data
        ids.places = [(at, token) for at, token in places]
        ids.known = bool(places) and places[-1][1] is not None
        ids.owed = {**owed}


def _load_source(source: Source, data: Mapping[str, Any]) -> None:
    source.prefix_characters, source.opening = data["prefix_characters"], data["opening"]
    source.pieces = _pieces(data["pieces"])
    if data["json"] or data["json_source"]:
        source.converted = Converted()
        source.converted.json, source.converted.source = _pieces(data["json"]), _pieces(data["json_source"])
    if data["transcoding"] is not None:
        source.transcoding = Transcoding()
        source.transcoding.pieces = _pieces(data["transcoding"])


def _pieces(text: str) -> list[str]:
    return [text] if text else []


def _load_events(events: EventBuffer, states: Mapping[str, StateProgram], data: Mapping[str, Any]) -> None:
    for name in _OF_EVENTS:
        setattr(events, name, data[name])
    mention = events.mention
    mention.tail, mention.meaning = data["tail"], data["meaning"]
    mention.before, mention.quoted_to = data["before"], data["quoted_to"]
    mention.marks.load(data["code"])
    events.after_call = None if data["after_call"] is None else frozenset(data["after_call"])
    events.blanks = _pieces(data["blanks"])
    if data["held"] is not None:
        outer = cast("ErrorRecovery | None", load_island(data["outer"]))
        events.held = HeldRegion(states[data["origin"]], outer, data["announced"])
        events.held.events.extend(map(event_from_dict, data["held"]))
        events.held.call = data["unclosed_call"]


def _load_calls(calls: Calls, held: HeldRegion | None, data: Mapping[str, Any]) -> None:
    calls.count, calls.index, calls.id = data["calls"], data["call"], data["call_id"]
    calls.markers = OpenMarkers(*(frozenset(data[name]) for name in OpenMarkers._fields))
    calls.argument = _loaded_argument(data["argument"], data["wrapper"], data["recent"])
    calls.keys = None if data["keys"] is None else dict.fromkeys(data["keys"])
    if held is not None and data["name"] is not None:
        calls.name = cast(ToolCallStart, held.events[data["name"]])
    if data["open_call"] is not None:
        calls.start = cast(ToolCallStart, event_from_dict({**data["open_call"], "source": ""}))


def _loaded_argument(data: list[Any] | None, wrapper: str | None, recent: str) -> Argument | None:
    if data is None:
        return None
    argument = Argument("")
    for name, value in zip(_ARGUMENT, data, strict=True):
        setattr(argument, name, value)
    argument.wrapper = None if wrapper is None else _pieces(wrapper)
    argument.keep(recent)
    return argument
