"""Whether a machine file says only what can be said: known keys with values of their kind, known tags and actions.

Strategy: walk the data beside the tables of `vocabulary`, and refuse the first difference, at its line.  A remedy is
an entry that can be pasted; for a name that is nearly a known one it is that name.  What the entries mean together
(does each state exist, can this order of actions work) is checked later, when it is known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any

from toolgram.spec.machine_file import Keys, MachineFile
from toolgram.spec.vocabulary import (
    ACTIONS,
    ESCAPED,
    FILE_KEYS,
    FORMAT_KEYS,
    FRAGMENT_FILE_KEYS,
    FRAGMENT_KEYS,
    KINDS,
    MACHINE_KEYS,
    MEANINGS,
    STATE_KEYS,
    TAGS,
    TRANSITION_KEYS,
    VALUE_TYPES,
    Key,
)


def check_machine(machine: MachineFile) -> None:
    """Check every entry of the file. Raises FormatError for the first that is wrong."""
    _check_mapping(machine, (), machine.data, FILE_KEYS)
    _check_mapping(machine, ("format",), machine.data["format"], FORMAT_KEYS)
    _check_mapping(machine, ("machine",), machine.data["machine"], MACHINE_KEYS)
    _check_format(machine)
    declared = machine.data["machine"]
    if declared.get("auto_transitions"):
        raise machine.error(
            ("machine", "auto_transitions"), "the machine has auto transitions", "write `auto_transitions: false`"
        )
    _check_entries(machine, ("machine",), declared)


def check_fragment(machine: MachineFile) -> None:
    """Check every entry of a fragment's file. Raises FormatError for the first that is wrong."""
    _check_mapping(machine, (), machine.data, FRAGMENT_FILE_KEYS)
    _check_mapping(machine, ("fragment",), machine.data["fragment"], FRAGMENT_KEYS)
    _check_entries(machine, (), machine.data)


def _check_entries(machine: MachineFile, where: Keys, declared: Mapping[str, Any]) -> None:
    """Check the imports, states and transitions of a machine or a fragment."""
    seen: set[str] = set()
    for index, entry in enumerate(declared.get("import", ())):
        _check_import(machine, (*where, "import", index), entry)
    for index, entry in enumerate(declared.get("states", ())):
        _check_state(machine, (*where, "states", index), entry, seen)
    for index, entry in enumerate(declared.get("transitions", ())):
        _check_transition(machine, (*where, "transitions", index), entry)


def instead(name: str, known: Collection[str], listed: str) -> str:
    """Return the remedy for an unknown name: the nearest known one, or all of them."""
    near = get_close_matches(name[:100], list(known), 1)
    return f"write `{near[0]}`" if near else f"{listed}: {', '.join(known)}"


def _check_mapping(machine: MachineFile, where: Keys, data: Mapping[Any, Any], table: Mapping[str, Key]) -> None:
    """Check that the keys of a mapping are those of the table, and their values of the right kind."""
    for key, value in data.items():
        if key not in table:
            raise machine.error(
                (*where, str(key)), f"unknown key `{key}`", instead(str(key), table, "the keys here are")
            )
        known = table[key]
        if not _OF_KIND[known.kind](value):
            raise machine.error(
                (*where, key),
                f"`{key}` is not {KINDS[known.kind]}",
                f"write `{known.example}`, with quotes around a text that YAML takes for something else",
            )
        if known.one_of and value not in known.one_of:
            raise machine.error(
                (*where, key), f"unknown {key} `{value}`", instead(value, known.one_of, f"`{key}` is one of")
            )
    for key, known in table.items():
        if known.required and key not in data:
            raise machine.error(where, f"the key `{key}` is missing", f"add `{known.example}`")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_outputs(value: object) -> bool:
    """Check texts, or texts after what the prompt has written."""
    keys = {"prefix", "output"}
    return isinstance(value, list) and all(
        bool(each)
        and (isinstance(each, str) or (isinstance(each, dict) and each.keys() <= keys and "output" in each))
        and (isinstance(each, str) or _is_texts(list(each.values())))
        for each in value
    )


_OF_KIND: Mapping[str, Callable[[object], bool]] = {
    "text": _is_text,
    "texts": _is_texts,
    "text or texts": lambda value: _is_text(value) or _is_texts(value),
    "names": lambda value: bool(value) and (_is_text(value) or _is_texts(value)),
    "truth": lambda value: isinstance(value, bool),
    "text by text": lambda value: (
        isinstance(value, dict) and all(_is_text(key) and _is_text(each) for key, each in value.items())
    ),
    "names by name": lambda value: (
        isinstance(value, dict)
        and all(_is_text(key) and bool(each) and (_is_text(each) or _is_texts(each)) for key, each in value.items())
    ),
    "outputs": _is_outputs,
    "mapping": lambda value: isinstance(value, dict),
    "entries": lambda value: isinstance(value, list),
}


def _check_format(machine: MachineFile) -> None:
    """Check what a table of keys cannot say about the section `format:`."""
    about = machine.data["format"]
    notation = about.get("notation", ["a", "b"])
    if len(notation) not in (2, 3, 4) or not all(notation):
        raise machine.error(
            ("format", "notation"),
            "`notation` is not two quotes, or the beginnings of two tags and one or two names",
            f"write `{FORMAT_KEYS['notation'].example}`",
        )
    for key in ("turn_start", "turn_end"):
        if about.get(key, "").strip():
            raise machine.error(("format", key), f"`{key}` is not blank", f"write `{FORMAT_KEYS[key].example}`")


def _check_import(machine: MachineFile, where: Keys, entry: Any) -> None:
    names = isinstance(entry, dict) and "fragment" in entry and _OF_KIND["text by text"](entry)
    if not names:
        raise machine.error(
            where, "this is not an import", "write `- {fragment: reasoning, OPEN: THINK, CLOSE: END_THINK}`"
        )
    if not entry.get("prefix", "_").isidentifier():
        raise machine.error(
            (*where, "prefix"), f"`prefix` is {entry['prefix']!r}, with which no name begins", "write `prefix: LISTED_`"
        )


def names_of(entry: Any) -> list[str]:
    """Return the states that one entry declares: by `name`, or several alike by `names`."""
    if isinstance(entry, str):
        return [entry]
    names: list[str] = entry["names"] if "names" in entry else [entry["name"]]
    return names


def _check_state(machine: MachineFile, where: Keys, entry: Any, seen: set[str]) -> None:
    entry = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(entry, dict):
        raise machine.error(where, "this is not a state", "write `- {name: SOME_STATE, tags: [content]}`")
    _check_mapping(machine, where, entry, STATE_KEYS)
    if ("name" in entry) == ("names" in entry):
        raise machine.error(where, "a state has one of `name` and `names`", "write `name: SOME_STATE`")
    for name in names_of(entry):
        _check_one_state(machine, where, entry, name, seen)


def _check_one_state(machine: MachineFile, where: Keys, entry: Any, name: str, seen: set[str]) -> None:
    tags = entry.get("tags", [])
    _check_tags(machine, where, name, tags)
    if entry.get("final") and tags:
        raise machine.error(where, f"the final state {name} has tags", f"write `- {{name: {name}, final: true}}`")
    if name in seen:
        raise machine.error(where, f"state {name} is declared twice", "remove one of the two")
    if name in ("*", "=", ""):
        raise machine.error(where, f"`{name}` cannot be the name of a state", "write `name: SOME_STATE`")
    seen.add(name)


def _check_tags(machine: MachineFile, where: Keys, name: str, tags: list[str]) -> None:
    """Check that the tags of a state are known, and that they go together."""
    for tag in tags:
        if tag not in TAGS:
            raise machine.error(where, f"state {name} has the unknown tag `{tag}`", instead(tag, TAGS, "the tags are"))
    for several in (MEANINGS, VALUE_TYPES):
        both = [tag for tag in tags if tag in several]
        if len(both) > 1:
            raise machine.error(
                where,
                f"state {name} means both {both[0]} and {both[1]}",
                f"write `tags: [{both[0]}]`, and another state for {both[1]}",
            )
    value = [tag for tag in tags if tag in (*VALUE_TYPES, "echo")]
    text = {"content", "reasoning"} & {*tags} and value[:1] and value[0] in ESCAPED
    if value and "value" not in tags and not text:
        raise machine.error(
            where, f"state {name} is tagged `{value[0]}` and reads no value", f"write `tags: [value, {value[0]}]`"
        )
    notation = [tag for tag in tags if tag in ("python", "encoded")]
    if notation and "arguments" not in tags:
        raise machine.error(
            where,
            f"state {name} is tagged `{notation[0]}` and reads no arguments",
            f"write `tags: [arguments, {notation[0]}]`",
        )
    if len(notation) > 1:
        raise machine.error(
            where, f"state {name} is tagged both `python` and `encoded`", "write `tags: [arguments, python]`"
        )


def _check_transition(machine: MachineFile, where: Keys, entry: Any) -> None:
    if not isinstance(entry, dict):
        raise machine.error(
            where, "this is not a transition", "write `- {trigger: MARKER, source: A, dest: B, after: end_call}`"
        )
    _check_mapping(machine, where, entry, TRANSITION_KEYS)
    after = entry.get("after", [])
    for action in [after] if isinstance(after, str) else after:
        if action not in ACTIONS:
            raise machine.error(
                (*where, "after"), f"unknown action `{action}`", instead(action, ACTIONS, "the actions are")
            )
