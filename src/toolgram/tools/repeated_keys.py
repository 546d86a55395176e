"""Keys that occur twice in one JSON object, at any depth: of a whole text, or of one that comes in fragments.

Strategy: a whole text is looked at once for its keys, and followed only if one of them may be there twice.
Fragments are followed by the brackets and quotes in them; of the objects that are open, the keys are remembered, so
the memory is that of a call's parameters however long their values are.
"""

from __future__ import annotations

import json
import re

from toolgram.limits import LONGEST_KEY, MOST_KEYS

_strings = re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"([ \t\r\n]*+:)?').findall
_ends_string = re.compile(r'["\\]').search
_structure = re.compile(r'["{}\[\],]').search


class KeyWatch:
    """The keys of JSON that comes in fragments; `repeated` are those that came twice in one object."""

    __slots__ = ("_count", "_escaped", "_expects_key", "_in_string", "_key", "_open", "repeated")

    def __init__(self) -> None:
        self.repeated: dict[str, None] = {}  # in the order in which they came again, each once
        self._open: list[set[str] | None] = []  # the keys of each open object; None for a list
        self._count = 0  # of these keys
        self._key: str | None = None  # as it is written, as far as it has come
        self._expects_key = self._in_string = self._escaped = False

    def append(self, fragment: str) -> None:
        """Read the next fragment. Costs two looks at it, and a step for each bracket, comma and quote."""
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
        elif character in "{[":
            self._open.append(set() if character == "{" else None)
        elif character != "," and self._open:
            self._count -= len(self._open.pop() or ())
        self._expects_key = character in "{," and bool(self._open) and self._open[-1] is not None
        return found.end()

    def _close_key(self) -> None:
        key, self._key = self._key, None
        if key is None or len(key) > LONGEST_KEY:
            return
        if "\\" in key:
            key = json.loads(f'"{key}"')
        keys = self._open[-1]
        if keys is None:
            return
        if key in keys:
            self.repeated[key] = None
        elif self._count < MOST_KEYS:
            keys.add(key)
            self._count += 1


def repeated_keys(arguments: str) -> list[str]:
    """Return the keys that occur twice in one object of JSON, each once."""
    if arguments.count(":") < 2:
        return []
    keys = [key for key, colon in _strings(arguments) if colon]
    if len(keys) == len({*keys}) and not any("\\" in key for key in keys):
        return []
    watch = KeyWatch()
    watch.append(arguments)
    return [*watch.repeated]
