"""By what other names formats are known: parsers of servers, ids of models, and what a chat template tells.

Strategy: one data file, `names.toml`, read for a name that is not a format's own.  A name is looked up as an
alias, without case and `-`, `_`, `.`; then as the id of a model, in which the longest known text decides.  A name that
stands for two formats gives one of them, and says which and why.  A template's text is a hint: what derivation finds
out from the template goes before it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any

from toolgram.errors import UnknownFormat
from toolgram.limits import LONGEST_FORMAT_NAME

DATA = Path(__file__).with_name("names.toml")
_MOST_NEAR = 3  # names that are suggested for an unknown one
_DASHES = str.maketrans("_ ", "--")  # of an id, or of a name as people write it
SERVERS, KINDS = ("vllm", "sglang"), ("tool", "reasoning")


@dataclass(frozen=True, slots=True)
class Choice:
    """The format of a name, and why it is this one: "" for its own name or an alias, which need no reason."""

    format: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one format: names of servers' parsers by server and kind, other names, texts in models' ids."""

    parsers: Mapping[tuple[str, str], Sequence[str]] = field(default_factory=dict)
    also: Sequence[str] = ()
    models: Sequence[str] = ()

    @property
    def aliases(self) -> list[str]:
        """All other names, each once, in the order of the file."""
        return list(dict.fromkeys([*(name for names in self.parsers.values() for name in names), *self.also]))


@dataclass(frozen=True, slots=True)
class Names:
    """The data file, read."""

    entries: Mapping[str, Entry]
    ambiguous: Mapping[str, Choice]
    unread: Mapping[str, str]
    shared: Mapping[str, Sequence[str]]  # by server: names of its parsers that say nothing of the format
    templates: Sequence[tuple[str, Sequence[str]]]


@lru_cache(maxsize=1)
def known_names() -> Names:
    """Read the names in the data file."""
    data = tomllib.loads(DATA.read_text(encoding="utf-8"))
    ambiguous = {_plain(name): Choice(each["takes"], each["why"]) for name, each in data["ambiguous"].items()}
    return Names(
        {name: _entry(about) for name, about in data["formats"].items()},
        ambiguous,
        {_plain(name): why for name, why in data["unread"].items()},
        data["shared"],
        [(each["format"], each["texts"]) for each in data["templates"]],
    )


def _entry(about: Mapping[str, Any]) -> Entry:
    parsers = {(server, kind): about.get(server, {}).get(kind, ()) for server in SERVERS for kind in KINDS}
    return Entry(parsers, about.get("also", ()), about.get("models", ()))


def chosen(name: str, shipped: Sequence[str]) -> Choice:
    """Return the shipped format that a name stands for: its own, an alias, or the id of a model.

    Raises UnknownFormat, with the nearest names, or with the reason if it is the name of no format.
    """
    if not isinstance(name, str):
        raise TypeError(f"a format's name is text, not {type(name).__name__}")
    names, plain = known_names(), _plain(name[:LONGEST_FORMAT_NAME])
    if plain in names.unread:
        raise UnknownFormat(name, shipped, names.unread[plain])
    if plain in names.ambiguous:
        return _shipped(name, names.ambiguous[plain], shipped)
    aliases = _aliases(names, shipped)
    if plain in aliases:
        return _shipped(name, Choice(aliases[plain]), shipped)
    found = for_model(name, shipped)
    if found is not None:
        return _shipped(name, found, shipped)
    near = get_close_matches(name[:LONGEST_FORMAT_NAME].lower(), shipped, _MOST_NEAR) or dict.fromkeys(
        aliases[each] for each in get_close_matches(plain, aliases, _MOST_NEAR, 0.75) if aliases[each] in shipped
    )
    raise UnknownFormat(name, shipped, f"did you mean {' or '.join(near)}?" if near else "")


def for_model(model: str, shipped: Sequence[str]) -> Choice | None:
    """Return the format of the model of this id, by the longest text that begins a word of it, or None.

    Ids have a dash, a dot or a slash in them. Of a path, or an id with an owner, the last name with such a text counts:
    what is before it is a folder, an owner, or another model.
    """
    if model.replace("_", "").isalnum():
        return None  # the name of a format, or meant as one
    patterns = _patterns(known_names(), shipped)
    for name in reversed(re.split(r"[/\\]", model[-LONGEST_FORMAT_NAME:].lower().translate(_DASHES))):
        fitting = (text for text in patterns if re.search(rf"(?:^|[^a-z0-9]){re.escape(text)}", name))
        found = max(fitting, key=len, default="")
        if found:
            return Choice(patterns[found], f"{found!r} in the id of the model")
    return None


def of_server(server: str, name: str, shipped: Sequence[str]) -> str | None:
    """Return the shipped format that a server's own name for a parser stands for; None if that does not ship, or
    models of several formats share the name."""
    names = known_names()
    if name in names.shared[server]:
        return None
    owners = (owner for owner, entry in names.entries.items() for kind in KINDS if name in entry.parsers[server, kind])
    found = next(owners, name)
    return found if found in shipped else None


def template_hint(template: str) -> str | None:
    """Return the format that the text of a chat template hints at, or None."""
    for name, texts in known_names().templates:
        if all(text in template for text in texts):
            return name
    return None


def _shipped(name: str, choice: Choice, shipped: Sequence[str]) -> Choice:
    if choice.format not in shipped:
        raise UnknownFormat(name, shipped, f"{name} is {choice.format}, which does not ship")
    return choice


def _aliases(names: Names, shipped: Iterable[str]) -> dict[str, str]:
    own = {_plain(name): name for name in (*names.entries, *shipped)}
    return {_plain(alias): name for name, entry in names.entries.items() for alias in entry.aliases} | own


def _patterns(names: Names, shipped: Iterable[str]) -> dict[str, str]:
    """Return texts in models' ids. A format's own name is one, unless the file gives it to another format."""
    own = {name.replace("_", joint): name for name in (*names.entries, *shipped) for joint in ("-", "")}
    return own | {text: name for name, entry in names.entries.items() for text in entry.models}


def _plain(name: str) -> str:
    return name.lower().translate({ord(char): None for char in "-_."})
