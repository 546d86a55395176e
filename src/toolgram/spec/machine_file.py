"""A machine file as data, with the file and the line of every entry of it.

Strategy: one pass over YAML's events decides whether the text is small and plain enough (no aliases, so nothing can
multiply itself); a second one builds the data and notes the place of each entry.  Nothing recurses, and nothing is
built that was not counted before.  What the entries mean is not decided here (see `vocabulary` and `building`).
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from toolgram.errors import FormatError
from toolgram.limits import MAX_MACHINE_DEPTH, MAX_MACHINE_ENTRIES, MAX_MACHINE_TEXT

Place = tuple[str, int]  # a file, and a line of it (1-based; 0 for the file as a whole)
Keys = tuple[str | int, ...]  # the way to an entry: ("machine", "states", 3, "tags")


_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class MachineFile:
    """The data of a machine file. `places` has what is known of the places of its entries, `fragments` the fragment of
    each state that came with one."""

    path: str
    data: Mapping[str, Any]
    places: Mapping[Keys, Place]
    fragments: Mapping[str, str] = field(default_factory=dict)

    def place(self, *keys: str | int) -> Place:
        """Return the file and line of an entry, or of the nearest known one around it."""
        while keys:
            if keys in self.places:
                return self.places[keys]
            keys = keys[:-1]
        return self.places.get((), (self.path, 0))

    def error(self, keys: Keys, problem: str, remedy: str) -> FormatError:
        """Return a FormatError that names the place of an entry."""
        path, line = self.place(*keys)
        return FormatError(path, problem, remedy, line)


def read_text(path: Path) -> str:
    """Read a regular file of bounded size."""
    remedy = "give the paths of a .lark grammar and a .yaml machine"
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise FormatError(str(path), "cannot be read: not a regular file", remedy)
        with path.open("rb") as file:
            data = file.read(4 * MAX_MACHINE_TEXT + 1)
        if len(data) > 4 * MAX_MACHINE_TEXT:
            raise FormatError(str(path), f"the file is longer than {4 * MAX_MACHINE_TEXT} bytes", remedy)
        return data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except (OSError, ValueError) as error:
        reason = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else getattr(error, "strerror", str(error))
        raise FormatError(str(path), f"cannot be read: {reason}", remedy) from None


def load_machine(text: str, path: str) -> MachineFile:
    """Read the text of a machine file. Raises FormatError if it is not a plain YAML mapping, or too large."""
    try:
        _check_events(text, path)
        loader = _LOADER(text)
        try:
            root = loader.get_single_node()
            places = _places(root, path)
            data = loader.construct_document(root) if root is not None else None
        finally:
            loader.dispose()
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        mark = getattr(error, "problem_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise FormatError(path, f"not valid YAML: {problem}", "correct the YAML at this place", line, column) from None
    if not isinstance(data, dict):
        raise FormatError(path, "the file is not a YAML mapping", "start from a shipped file in machines/")
    return MachineFile(path, data, places)


def _check_events(text: str, path: str) -> None:
    """Refuse what could grow while it is built, before anything is built."""
    if len(text) > MAX_MACHINE_TEXT:
        raise FormatError(path, f"the file is longer than {MAX_MACHINE_TEXT} characters", "remove what no parser needs")
    depth = entries = 0
    for event in yaml.parse(text, Loader=_LOADER):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            raise FormatError(path, f"there is an alias (`*{event.anchor}`)", "write the entry out again", line)
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise FormatError(path, f"there is a YAML tag (`{tag}`)", "write the value without it", line)
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.NodeEvent):
            entries += 1
            depth += isinstance(event, yaml.CollectionStartEvent)
        if entries > MAX_MACHINE_ENTRIES:
            raise FormatError(
                path, f"the file has more than {MAX_MACHINE_ENTRIES} entries", "remove what no parser needs", line
            )
        if depth > MAX_MACHINE_DEPTH:
            raise FormatError(path, f"entries are nested more than {MAX_MACHINE_DEPTH} deep", "write them flat", line)


def _places(root: yaml.Node | None, path: str) -> dict[Keys, Place]:
    """Return the place of each entry. Raises FormatError for a key that occurs twice in one mapping."""
    places: dict[Keys, Place] = {}
    waiting: list[tuple[Keys, yaml.Node]] = [((), root)] if root is not None else []
    while waiting:
        where, node = waiting.pop()
        places.setdefault(where, (path, node.start_mark.line + 1))
        if isinstance(node, yaml.SequenceNode):
            waiting += [((*where, index), value) for index, value in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            seen: set[object] = set()
            for key, value in node.value:
                if str(key.value) in seen:
                    line = key.start_mark.line + 1
                    raise FormatError(path, f"the key `{key.value}` is there twice", "remove one of the two", line)
                seen.add(str(key.value))
                waiting.append(((*where, str(key.value)), value))
                places[(*where, str(key.value))] = path, key.start_mark.line + 1
    return places
