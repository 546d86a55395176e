"""Keys that stand twice in a JSON object: of a whole text, or of one that comes in fragments and is not kept.

Strategy: a whole text is counted first, and read again only where a key may be there twice.  Fragments are followed by
the brackets and quotes in them; only the keys of the outermost object are remembered, so the memory is that of a call's
parameters however long their values are.
"""

from __future__ import annotations

import json
import re
from typing import Any

from toolgram.limits import LONGEST_KEY, MOST_KEYS

_FEW_KEYS = 16
_keys = re.compile(r'"([^"\\]*)"[ \t\r\n]*:').findall
_ends_string = re.compile(r'["\\]').search
_structure = re.compile(r'["{}\[\],]').search


class KeyWatch:
    """The keys of the outermost object of JSON that comes in fragments; `repeated` are those that came twice."""

    __slots__ = ("_depth", "_escaped", "_expects_key", "_in_string", "_key", "_keys", "repeated")

    def __init__(self) -> None:
        self.repeated: dict[str, None] = {}  # in the order in which they came again, each once
        self._keys: set[str] = set()
        self._key: str | None = None  # as it is written, as far as it has come
        self._depth = 0
        self._expects_key = self._in_string = self._escaped = False

    def append(self, fragment: str) -> None:
        """The next fragment. Costs two looks at it, and a step for each bracket, comma and quote."""
        if self._in_string and self._key is None and '"' not in fragment and "\\" not in fragment:
            self._escaped = False if fragment else self._escaped
            return
        pos, size = 0, len(fragment)
        while pos < size:
            pos = self._string(fragment, pos) if self._in_string else self._between(fragment, pos)

    def _string(self, text: str, pos: int) -> int:
        found = None if self._escaped else _ends_string(text, pos)
        end = pos + 1 if self._escaped else found.start() if found else len(text)
        if self._key is not None and len(self._key) <= LONGEST_KEY:
            self._key += text[pos:end]
        self._escaped = found is not None and found.group() == "\\"
        if found is None:
            return end
        if self._escaped:
            self._key = self._key + "\\" if self._key is not None else None
        else:
            self._in_string = False
            self._close_key()
        return end + 1

    def _between(self, text: str, pos: int) -> int:
        found = _structure(text, pos)
        if found is None:
            return len(text)
        character = found.group()
        if character == '"':
            self._in_string = True
            self._key = "" if self._expects_key else None
        else:
            self._depth += 1 if character in "{[" else -1 if character in "}]" else 0
        self._expects_key = self._depth == 1 and character in "{,"
        return found.end()

    def _close_key(self) -> None:
        key, self._key = self._key, None
        if key is None or len(key) > LONGEST_KEY:
            return
        if "\\" in key:
            key = json.loads(f'"{key}"')
        if key in self._keys:
            self.repeated[key] = None
        elif len(self._keys) < MOST_KEYS:
            self._keys.add(key)


def repeated_keys(arguments: str) -> list[str]:
    """The keys that stand in a JSON object twice, each once. Costs as much as reading it, where it has two keys."""
    if arguments.count(":") < 2:
        return []
    outermost: list[str] = []

    def see(members: list[tuple[str, Any]]) -> None:
        outermost[:] = [key for key, _ in members]

    try:
        if _no_key_twice(arguments, json.loads(arguments)):
            return []
        json.loads(arguments, object_pairs_hook=see)
    except (ValueError, RecursionError):
        return []
    return list(dict.fromkeys(key for at, key in enumerate(outermost) if key in outermost[:at]))


def _no_key_twice(arguments: str, given: Any) -> bool:
    """Whether that is certain without a look at every member."""
    if "\\u" in arguments or not isinstance(given, dict):
        return False  # one key may be written in two ways
    if len(given) <= _FEW_KEYS:
        return all(arguments.count(f'"{key}"') == 1 for key in given)
    keys = _keys(arguments)
    return len(keys) == len({*keys})
