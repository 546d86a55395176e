"""A record as JSON-able data and back, by the names of its fields: for storing and sending a specification.

Strategy: a record is a dataclass or a named tuple, and its fields say it all. Writing goes from field to field; reading
asks of each value that it is of the field's type, so that data of another shape is refused.
"""

from __future__ import annotations

import json
import types
import zlib
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

Made = TypeVar("Made")


def sealed(content: Mapping[str, Any]) -> str:
    """Return JSON with a checksum in front, for a file that may get damaged."""
    text = json.dumps(content, ensure_ascii=True)
    return f"{_checksum(text)}\n{text}"


def unsealed(text: str) -> dict[str, Any]:
    """Return the content of such a file. Raises ValueError if it is not what was written."""
    checksum, _, content = text.partition("\n")
    if checksum != _checksum(content):
        raise ValueError("the checksum does not fit")
    data = json.loads(content)
    if not isinstance(data, dict):
        raise ValueError("not a mapping")
    return data


def _checksum(text: str) -> str:
    return checksum([text.encode("utf-8", "replace")])


def checksum(pieces: Iterable[bytes]) -> str:
    """Return the checksum of bytes in pieces, lengths included. It finds damage and edits that do not hide themselves.

    It is not a cryptographic hash: to load the code for one takes as long as a tenth of a fresh process.
    """
    sizes, found = [], 0
    for piece in pieces:
        sizes.append(len(piece))
        found = zlib.crc32(piece, found)
    return f"{zlib.crc32(repr(sizes).encode()):08x}{found:08x}"


def dump(value: Any) -> Any:
    """Return a record as data; `json.dumps` takes it."""
    if hasattr(value, "__match_args__"):
        kind: Any = type(value)
        return {name: dump(getattr(value, name)) for name in _types(kind)}
    if isinstance(value, Mapping):
        return {key: dump(each) for key, each in value.items()}
    return [dump(each) for each in value] if isinstance(value, tuple) else value


@lru_cache(maxsize=16)
def _types(kind: type) -> dict[str, Any]:
    """Return the types of a record's fields."""
    return get_type_hints(kind)


def load(kind: type[Made], data: object) -> Made:
    """Return the value of this type that `dump` made the data from. Raises ValueError for data of another shape."""
    made: Made = _load(kind, data)
    return made


def _load(kind: Any, data: Any) -> Any:
    if hasattr(kind, "__match_args__"):
        hints = _types(kind)
        if not isinstance(data, dict) or data.keys() != hints.keys():
            raise ValueError(f"not the fields of {kind.__name__}")
        return kind(**{name: _load(hint, data[name]) for name, hint in hints.items()})
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _load_union(inner, data)
    if origin is tuple:
        if not isinstance(data, list):
            raise ValueError("not a list")
        return tuple([_load(inner[0], each) for each in data])
    if origin is not None:
        if not isinstance(data, dict):
            raise ValueError("not a mapping")
        return {key: _load(inner[1], each) for key, each in data.items()}
    if type(data) is not kind:
        raise ValueError(f"not {kind}")
    return data


def _load_union(kinds: tuple[Any, ...], data: Any) -> Any:
    for kind in kinds:
        try:
            return _load(kind, data)
        except ValueError:
            continue
    raise ValueError("of no type that it may have")
