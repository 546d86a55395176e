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
from toolgram.runtime.event_buffer import HeldRegion
from toolgram.runtime.position import RejectedValue
from toolgram.runtime.source import Transcoding
from toolgram.runtime.special_tokens import EmittedIds
from toolgram.runtime.stream import Stream
from toolgram.spec.data import Spec

VERSION = 27
_ARGUMENT = ("key", "read_on", "seen", "depth", "again", "wraps")


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


def _plain(stream: Stream) -> tuple[tuple[Any, tuple[str, ...]], ...]:
    """Return the parts of a stream, each with the names of the slots that are dumped as they are."""
    return (
        (stream, ("buffer", "prompt", "reader")),
        (stream.source, ("opening",)),
        (stream.calls, ("count", "index", "id")),
        (stream.events, ("place", "lead", "has", "gap", "meaning", "tail", "before", "quoted_to")),
    )


def dump_stream(stream: Stream, unread: int) -> dict[str, Any]:
    """Return all that a continuation of the stream depends on. `unread` characters are to be read, or read again."""
    rejected = stream.rejected if stream.reader.startswith("rejected") else None
    suffix, literals = stream.program.spec.suffix, stream.program.literals.values()
    source, after_call = stream.source, stream.events.after_call
    return {
        "version": VERSION,
        "strict": stream.program.strict,
        "suffixed": next((text for text in literals if suffix in text), "") if suffix else "",  # a prompt may say it
        "state": stream.state.name,
        "ids": _dumped_ids(stream.ids, unread),
        "island": dump_island(stream.island),
        "rejected": [*rejected] if rejected else None,
        "pieces": "".join(source.pieces),
        "converted": ["".join(pieces) for pieces in source.converted or ()],
        "transcoding": None if source.transcoding is None else "".join(source.transcoding.pieces),
        "blanks": "".join(stream.events.blanks),
        "after_call": None if after_call is None else sorted(after_call),
        "code": stream.events.marks.dump(),
        **_dumped_held(stream.events.held),
        **{name: getattr(part, name) for part, names in _plain(stream) for name in names},
        **_dumped_calls(stream.calls, stream.events.held),
    }


def _dumped_ids(ids: EmittedIds | None, unread: int) -> list[Any] | None:
    if ids is None:
        return None
    ids.forget(unread)
    return [ids.end, [[*place] for place in ids.places], {**ids.owed}, ids.begun]


def _dumped_held(held: HeldRegion | None) -> dict[str, Any]:
    return {
        "held": held and [event_to_dict(event) for event in held.events],
        "origin": held and held.origin.name,
        "outer": held and dump_island(held.outer),
        "unclosed_call": held and held.call,
        "announced": held and held.announced,
    }


def _dumped_calls(calls: Calls, held: HeldRegion | None) -> dict[str, Any]:
    argument, start, index = calls.argument, calls.start, calls.index
    if held is not None and index is None:
        index = held.call  # it is open if the held region turns out to be text
    return {
        "open_call": None if start is None or index is None else event_to_dict(start),
        "name": next((at for at, event in enumerate(held.events if held else ()) if event is calls.name), None),
        "keys": None if calls.keys is None else [*calls.keys],
        "argument": argument and [argument.ending, *(getattr(argument, name) for name in _ARGUMENT)],
        **{name: sorted(opened) for name, opened in calls.markers._asdict().items()},
    }


def load_stream(stream: Stream, data: Mapping[str, Any]) -> None:
    """Load what `dump_stream` returned into a fresh stream. Raise ValueError if it was changed."""
    if sealed(stream.program.spec, data)["digest"] != data["digest"]:
        raise ValueError("its digest is another one: it was changed, or is of another format")
    stream.state = stream.program.states[data["state"]]
    _load_ids(stream, data["ids"])
    stream.island = load_island(data["island"])
    if data["rejected"] is not None:
        stream.rejected = RejectedValue(*data["rejected"])
    for part, names in _plain(stream):
        for name in names:
            setattr(part, name, data[name])
    source, events = stream.source, stream.events
    source.pieces, events.blanks = _pieces(data["pieces"]), _pieces(data["blanks"])
    if data["converted"]:
        source.hold_json(*data["converted"])
    if data["transcoding"] is not None:
        source.transcoding = Transcoding()
        source.transcoding.pieces = _pieces(data["transcoding"])
    events.marks.load(data["code"])
    events.after_call = None if data["after_call"] is None else frozenset(data["after_call"])
    events.held = _loaded_held(stream.program.states, data)
    _load_calls(stream.calls, events.held, data)
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


def _pieces(text: str) -> list[str]:
    return [text] if text else []


def _loaded_held(states: Mapping[str, StateProgram], data: Mapping[str, Any]) -> HeldRegion | None:
    if data["held"] is None:
        return None
    outer = cast("ErrorRecovery | None", load_island(data["outer"]))
    held = HeldRegion(states[data["origin"]], outer, data["announced"])
    held.events.extend(map(event_from_dict, data["held"]))
    held.call = data["unclosed_call"]
    return held


def _load_calls(calls: Calls, held: HeldRegion | None, data: Mapping[str, Any]) -> None:
    calls.markers = OpenMarkers(*(frozenset(data[name]) for name in OpenMarkers._fields))
    calls.keys = None if data["keys"] is None else dict.fromkeys(data["keys"])
    if held is not None and data["name"] is not None:
        calls.name = cast(ToolCallStart, held.events[data["name"]])
    if data["open_call"] is not None:
        calls.start = cast(ToolCallStart, event_from_dict({**data["open_call"], "source": ""}))
    if data["argument"] is not None:
        ending, *values = data["argument"]
        calls.argument = Argument("")
        calls.argument.keep(ending)
        for name, value in zip(_ARGUMENT, values, strict=True):
            setattr(calls.argument, name, value)
