"""Compose a machine file: put its fragments in and write out the rows that follow from its states.

Strategy: a file says what is particular to its format.  The rest is added here, in three steps, and the result is a
plain machine, which is what runs and is proved, drawn and exported.

1. *Fragments.*  `import:` names fragments of `machines/common/`, each a small machine.  An entry gives the fragment's
   markers (`OPEN: THINK`; several that mean the same, with blanks between them, as in `OPEN: THINK THINK_TWICE`; by
   default the terminal of the same name) and may rename any state of it (`TOOL_COMPLETE: IN_LIST`) and any path of its
   JSON (`item.function: item.tool`).  `prefix: LISTED_` renames all states at once that the fragment and the fragments
   inside it declare, except those that the entry names itself; markers, paths and exits keep their names.  A name of
   the entry joins the fragment to the importer's state of that name.  A fragment may import others.  A state to which
   it leads and that no file declares is one of content, which text leaves for the initial state, or for `home:`.
2. *Tags as sources.*  A tag in `source:` means all states that have it, those of fragments included. The trigger
   `stop` means every token of `format: stop:`.
3. *Rows that follow from a state.*
   - The initial state is WAITING_FOR_TOOL_START, a state of content, unless `initial:` names another. A machine has a
     state for what is left of a broken call if it says `recovered:`, and a final state.
   - Text stays in a state of content or reasoning, or leads to the state's `text:`.
   - A token of `format: stop:` leads from a state of content, reasoning or malformed text to `home:` (the initial
     state, if that is not given). `stop: false` at a state says that it does not, `stop: true` that it does.
   - If text does not fit, a state that is neither text nor held leads to the malformed state, and the call fails.
   - After what is left of a broken call, the malformed state leads to `recovered:`, which fragments say as well.
   - At the end of the output, every state that is not held leads to the final state.

`closed_by:` of the file and of its fragments are one mapping; the file's entry for an opening marker goes first.  So
are `same_path:`; a fragment's other spelling is left out if the machine reads that path for something else.  The
messages in `other_roles:` of the file and of its fragments are one list.

A row of the file itself goes before a row of a fragment, and that before a row that follows from a state.  Each entry
of the result keeps the file and the line from which it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from toolgram.limits import MAX_FRAGMENTS
from toolgram.spec.machine_checks import check_fragment, instead, names_of
from toolgram.spec.machine_file import Keys, MachineFile, Place, load_machine, read_text
from toolgram.spec.vocabulary import END, STOP, TAGS, TEXT

START = "WAITING_FOR_TOOL_START"
FINAL = "ALL_TOOLS_COMPLETE"
MALFORMED = "RECOVERING"
FRAGMENTS = "common"  # the folder of fragments, beside the machines

_TEXT_TAGS = ("content", "reasoning")
Load = Callable[[str], MachineFile]  # a fragment by its name; KeyError, with the known names, if there is none


@dataclass(slots=True)
class _State:
    name: str
    tags: list[str]
    place: Place
    final: bool = False
    text: str = "="
    stop: bool | None = None  # None: as its tags say
    fragment: str = ""  # the fragment that it came with


@dataclass(slots=True)
class _Row:
    trigger: str
    sources: list[str]
    dest: str
    after: Any  # an action, several, or None
    place: Place
    repair: bool = False
    of_calls: bool = False


@dataclass(slots=True)
class _Pair:
    """An opening marker and what closes it."""

    opener: str
    closers: list[str]
    place: Place


@dataclass(slots=True)
class _Spelling:
    """Another spelling of a JSON path."""

    other: str
    path: str
    place: Place


@dataclass(slots=True)
class _Parts:
    """What a file declares, or all fragments together."""

    states: list[_State] = field(default_factory=list)
    rows: list[_Row] = field(default_factory=list)
    pairs: list[_Pair] = field(default_factory=list)
    spellings: list[_Spelling] = field(default_factory=list)
    exits: list[tuple[str, Place]] = field(default_factory=list)
    recovered: str = ""
    notes: list[str] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)


def compose(machine: MachineFile, load: Load) -> MachineFile:
    """Return the machine without imports and with all its rows. Raises FormatError for an import that is impossible."""
    declared = machine.data["machine"]
    own = _parts(machine, declared, ("machine",))
    own.pairs = _pairs(machine, machine.data["format"], ("format",))
    own.spellings = _spellings(machine, machine.data["format"], ("format",))
    parts = _Parts()
    budget = [MAX_FRAGMENTS]
    for index, entry in enumerate(declared.get("import", ())):
        _import(machine, ("machine", "import", index), entry, load, parts, budget)
    stop = machine.data["format"].get("stop", ())
    own.rows, parts.rows = _for_each(own.rows, stop), _for_each(parts.rows, stop)
    states = _merged(own.states, parts.states)
    recovered = declared.get("recovered", parts.recovered)
    _add_states(declared, states, parts.exits, recovered, machine.place("machine"))
    rows = _Rows(states)
    rows.add_own(own.rows)
    rows.add(parts.rows)
    rows.add(_following(_home(declared), recovered, states, stop, machine.place("machine")))
    parts.spellings = _not_read(parts.spellings, rows.kept)
    return _written(machine, declared, states, rows.kept, own, parts)


def fragment_loader(folders: Iterable[Path]) -> Load:
    """Return a function that loads a fragment from the first of `folders` that has it.

    It raises FormatError for a bad fragment, and KeyError with the names of all fragments if there is none.
    """
    places = tuple(folders)

    def load(name: str) -> MachineFile:
        for folder in places:
            path = folder / FRAGMENTS / f"{name}.yaml"
            if name.isidentifier() and path.is_file():
                return _load(path, path.stat().st_mtime_ns)
        raise KeyError(*fragment_names(places))

    return load


def fragment_names(folders: Iterable[Path]) -> list[str]:
    """Return the names of all fragments in `folders`, sorted."""
    return sorted({path.stem for folder in folders for path in (folder / FRAGMENTS).glob("*.yaml")})


@lru_cache(maxsize=64)
def _load(path: Path, changed: int) -> MachineFile:
    machine = load_machine(read_text(path), str(path))
    check_fragment(machine)
    return machine


# --- fragments ------------------------------------------------------------------------------------------------------


def _parts(machine: MachineFile, declared: Mapping[str, Any], where: Keys) -> _Parts:
    """Read the states and rows that a file declares itself."""
    parts = _Parts()
    for index, entry in enumerate(declared.get("states", ())):
        for name in names_of(entry):
            about = {} if isinstance(entry, str) else entry
            parts.states.append(
                _State(
                    name,
                    list(about.get("tags", ())),
                    machine.place(*where, "states", index),
                    bool(about.get("final")),
                    about.get("text", "="),
                    about.get("stop"),
                )
            )
    for index, entry in enumerate(declared.get("transitions", ())):
        source = entry["source"]
        sources = [source] if isinstance(source, str) else list(source)
        place = machine.place(*where, "transitions", index)
        trigger = entry["trigger"]
        for each in [trigger] if isinstance(trigger, str) else trigger:
            marks = entry.get("repair", False), entry.get("of_calls", False)
            parts.rows.append(_Row(each, list(sources), entry["dest"], entry.get("after"), place, *marks))
    return parts


def _pairs(machine: MachineFile, declared: Mapping[str, Any], where: Keys) -> list[_Pair]:
    """Read the pairs of opening and closing markers that a file declares."""
    return [
        _Pair(
            opener, [closers] if isinstance(closers, str) else list(closers), machine.place(*where, "closed_by", opener)
        )
        for opener, closers in declared.get("closed_by", {}).items()
    ]


def _spellings(machine: MachineFile, declared: Mapping[str, Any], where: Keys) -> list[_Spelling]:
    """Read the other spellings of JSON paths that a file declares."""
    same = declared.get("same_path", {})
    return [_Spelling(other, path, machine.place(*where, "same_path", other)) for other, path in same.items()]


def _import(
    machine: MachineFile, where: Keys, entry: Mapping[str, str], load: Load, parts: _Parts, budget: list[int]
) -> None:
    """Put a fragment, and what it imports itself, into `parts`, under the names that `entry` gives."""
    waiting: list[tuple[MachineFile, Keys, Mapping[str, str], list[Mapping[str, str]]]] = [(machine, where, entry, [])]
    known: dict[str, set[str]] = {}  # the names of each fragment
    while waiting:
        importer, place, given, outer = waiting.pop(0)
        budget[0] -= 1
        if budget[0] < 0:
            raise machine.error(where, f"more than {MAX_FRAGMENTS} fragments are imported", "import each once")
        name = given["fragment"]
        try:
            fragment = load(name)
        except KeyError as error:
            remedy = instead(name, error.args, "the fragments are")
            raise importer.error(place, f"there is no fragment {name}", remedy) from None
        if name not in known:
            known[name] = names_in(fragment, load)
        _check_names(importer, place, name, known[name], _given(given))
        renames = [_new_names(given, fragment, load, [MAX_FRAGMENTS]), *outer]
        found = _parts(fragment, fragment.data, ())
        for state in found.states:
            state.name, state.text = _renamed(state.name, renames), _renamed(state.text, renames)
            state.fragment = name
        for row in found.rows:
            row.trigger, row.dest = _renamed_trigger(row.trigger, renames), _renamed(row.dest, renames)
            row.sources = [_renamed(source, renames) for source in row.sources]
        for pair in _pairs(fragment, fragment.data, ()):
            closers = [_renamed(closer, renames) for closer in pair.closers]
            parts.pairs.append(_Pair(_renamed(pair.opener, renames), closers, pair.place))
        for same in _spellings(fragment, fragment.data, ()):
            other, path = _renamed(same.other, renames), _renamed(same.path, renames)
            parts.spellings.append(_Spelling(other, path, same.place))
        parts.states += found.states
        parts.rows += found.rows
        about = fragment.data["fragment"]
        parts.exits += [(_renamed(exit_, renames), machine.place(*where)) for exit_ in about.get("exits", ())]
        parts.notes += about.get("notes", ())
        parts.roles += fragment.data.get("other_roles", ())
        if not parts.recovered and "recovered" in about:
            parts.recovered = _renamed(about["recovered"], renames)
        inner = fragment.data.get("import", ())
        waiting += [(fragment, ("import", index), each, renames) for index, each in enumerate(inner)]


def _for_each(rows: list[_Row], stop: Iterable[str]) -> list[_Row]:
    """Return the rows, one for each terminal if the trigger means several: `stop`, or a marker that is several."""
    tokens = list(stop)
    return [
        replace(row, trigger=terminal, sources=list(row.sources))
        for row in rows
        for terminal in (tokens if row.trigger == STOP else _terminals(row.trigger))
    ]


def _terminals(trigger: str) -> list[str]:
    """Return the terminals of a trigger: an event of JSON has words as well, which are not in capitals."""
    words = trigger.split(" ")
    return words if all(map(str.isupper, words)) else [trigger]


def _check_names(importer: MachineFile, place: Keys, name: str, known: Iterable[str], given: Mapping[str, str]) -> None:
    """Check that each key of an import is a name of the fragment."""
    names = sorted(known)
    for key in given:
        if key not in names:
            raise importer.error(
                (*place, key), f"the fragment {name} has no {key}", instead(key, names, "its names are")
            )


def names_in(fragment: MachineFile, load: Load) -> set[str]:
    """Return the markers, states, exits and JSON paths of a fragment and of the fragments that it imports."""
    names: set[str] = set()
    waiting, left = [fragment], MAX_FRAGMENTS
    while waiting and left:
        here, left = waiting.pop(), left - 1
        about = here.data["fragment"]
        names |= {*about.get("markers", ()), *about.get("exits", ())}
        names |= {state for entry in here.data.get("states", ()) for state in names_of(entry)}
        for entry in here.data.get("transitions", ()):
            triggers = [entry["trigger"]] if isinstance(entry["trigger"], str) else entry["trigger"]
            names |= {trigger.split(" ")[1] for trigger in triggers if " " in trigger}
        for entry in here.data.get("import", ()):
            names |= {*_given(entry).values()}
            with suppress(KeyError):
                inner = load(entry["fragment"])
                names |= {*_new_names(entry, inner, load, [MAX_FRAGMENTS]).values()}
                waiting.append(inner)
    return names


def _given(entry: Mapping[str, str]) -> dict[str, str]:
    """Return the names that an import gives itself, without its prefix."""
    return {key: value for key, value in entry.items() if key not in ("fragment", "prefix")}


def _new_names(entry: Mapping[str, str], fragment: MachineFile, load: Load, budget: list[int]) -> dict[str, str]:
    """Return what an import renames: each state gets the prefix of the entry, unless the entry names it."""
    prefix = entry.get("prefix", "")
    prefixed = {state: prefix + state for state in _declared(fragment, load, budget)} if prefix else {}
    return {**prefixed, **_given(entry)}


def _declared(fragment: MachineFile, load: Load, budget: list[int]) -> list[str]:
    """Return the states that a fragment and the fragments inside it declare, under the names that they have in it.

    `budget` is the number of fragments that may be loaded: fragments may import one another by mistake.
    """
    found = [state for entry in fragment.data.get("states", ()) for state in names_of(entry)]
    for entry in fragment.data.get("import", ()):
        budget[0] -= 1
        if budget[0] < 0:
            break
        with suppress(KeyError):
            inner = load(entry["fragment"])
            names = _new_names(entry, inner, load, budget)
            found += [names.get(state, state) for state in _declared(inner, load, budget)]
    return found


def _renamed(name: str, renames: Iterable[Mapping[str, str]]) -> str:
    for names in renames:
        name = names.get(name, name)
    return name


def _renamed_trigger(trigger: str, renames: Iterable[Mapping[str, str]]) -> str:
    """Return a terminal or an event of JSON under its new name: `string item.name` with another path."""
    kind, _, rest = trigger.partition(" ")
    if not rest:
        return _renamed(trigger, renames)
    path, _, value = rest.partition(" ")
    return f"{kind} {_renamed(path, renames)} {value}".rstrip()


def _merged(own: list[_State], imported: list[_State]) -> dict[str, _State]:
    """Return all states by name. A declaration of the file replaces the fragment's; the state still belongs to it."""
    states = {state.name: state for state in own}
    for state in imported:
        known = states.setdefault(state.name, state)
        known.fragment = known.fragment or state.fragment
    return states


# --- what follows from the states -----------------------------------------------------------------------------------


def _home(declared: Mapping[str, Any]) -> str:
    """Return the state to which text after a call leads, and a token that ends a turn."""
    home: str = declared.get("home", declared.get("initial", START))
    return home


def _add_states(
    declared: Mapping[str, Any],
    states: dict[str, _State],
    exits: Iterable[tuple[str, Place]],
    recovered: str,
    place: Place,
) -> None:
    """Add the states that no file declares: the initial and the final one, those after fragments, the malformed one."""
    if "initial" not in declared:
        states.setdefault(START, _State(START, ["content"], place))
    for name, where in exits:
        states.setdefault(name, _State(name, ["content"], where, text=_home(declared)))
    if recovered and not any("malformed" in state.tags for state in states.values()):
        states.setdefault(MALFORMED, _State(MALFORMED, ["malformed"], place))
    if not any(state.final for state in states.values()):
        states.setdefault(FINAL, _State(FINAL, [], place, final=True))


def _following(
    home: str, recovered: str, states: Mapping[str, _State], stop: Iterable[str], place: Place
) -> Iterable[_Row]:
    """Yield the rows that follow from the states."""
    going = [state for state in states.values() if not state.final]
    firm = [state.name for state in going if "held" not in state.tags]
    for state in filter(_is_text, going):
        yield _Row(TEXT, [state.name], state.text, None, state.place)
    ending = _ending(going)
    for token in stop:
        yield _Row(token, ending, home, None, place)
    malformed = [state.name for state in going if "malformed" in state.tags]
    if malformed:
        texts = {state.name for state in going if _is_text(state)}
        broken = [name for name in firm if name not in texts and name not in malformed]
        yield _Row("malformed", broken, malformed[0], "fail_call", place)
        if recovered:
            yield _Row("recovered", malformed, recovered, None, place)
    final = next((state.name for state in states.values() if state.final), FINAL)
    yield _Row(END, firm, final, None, place)


def _is_text(state: _State) -> bool:
    return not set(_TEXT_TAGS).isdisjoint(state.tags)


def _ending(states: Sequence[_State]) -> list[str]:
    """Return the states that a token which ends the turn leaves: those that say so, those of text, of broken calls."""
    said = [state.name for state in states if state.stop is True]
    silent = [state for state in states if state.stop is None]
    return said + [state.name for state in silent if _is_text(state) or "malformed" in state.tags]


class _Rows:
    """Rows that do not contradict one another: what is added first stays."""

    def __init__(self, states: Mapping[str, _State]) -> None:
        self._states = states
        self._taken: set[tuple[str, str]] = set()
        self.kept: list[_Row] = []

    def add_own(self, rows: Iterable[_Row]) -> None:
        """Add the rows of the file itself. A state that is named goes before a tag; the rest is kept as it is written,
        so that contradictions are found."""
        own = list(rows)
        named = {(source, row.trigger) for row in own for source in row.sources if not self._tagged(source)}
        for row in own:
            sources = [source for source in row.sources if not self._tagged(source)]
            for tag in filter(self._tagged, row.sources):
                sources += [name for name in self._of(tag) if (name, row.trigger) not in named and name not in sources]
            self._keep(row, sources)

    def add(self, rows: Iterable[_Row]) -> None:
        """Add further rows, from the states that do not have the trigger yet."""
        for row in rows:
            sources = [name for each in row.sources for name in (self._of(each) if self._tagged(each) else [each])]
            self._keep(row, [name for name in dict.fromkeys(sources) if (name, row.trigger) not in self._taken])

    def _keep(self, row: _Row, sources: list[str]) -> None:
        self._taken |= {(name, row.trigger) for name in sources}
        if sources:
            self.kept.append(replace(row, sources=sources))

    def _tagged(self, source: str) -> bool:
        return source == "*" or (source in TAGS and source not in self._states)

    def _of(self, tag: str) -> list[str]:
        """Return the states that have a tag."""
        going = [state for state in self._states.values() if not state.final]
        return [state.name for state in going if tag == "*" or tag in state.tags]


# --- the result -----------------------------------------------------------------------------------------------------


def _written(
    machine: MachineFile,
    declared: Mapping[str, Any],
    states: Mapping[str, _State],
    rows: list[_Row],
    own: _Parts,
    parts: _Parts,
) -> MachineFile:
    """Write the composed machine as a machine file, with the place of each entry."""
    places = {keys: place for keys, place in machine.places.items() if keys[:2] not in _SECTIONS}
    entries: list[dict[str, Any]] = []
    for index, state in enumerate(states.values()):
        entry: dict[str, Any] = {"name": state.name}
        if state.tags:
            entry["tags"] = state.tags
        if state.final:
            entry["final"] = True
        entries.append(entry)
        places["machine", "states", index] = state.place
    transitions: list[dict[str, Any]] = []
    for index, row in enumerate(rows):
        source = row.sources[0] if len(row.sources) == 1 else row.sources
        entry = {"trigger": row.trigger, "source": source, "dest": row.dest}
        if row.after is not None:
            entry["after"] = row.after
        if row.repair:
            entry["repair"] = True
        if row.of_calls:
            entry["of_calls"] = True
        transitions.append(entry)
        places["machine", "transitions", index] = row.place
    closed_by = _by_opener([*own.pairs, *parts.pairs], places)
    same_path = _by_spelling([*own.spellings, *parts.spellings], places)
    kept = {key: value for key, value in declared.items() if key not in ("import", "home", "recovered")}
    name = Path(machine.path).stem
    composed = {
        "name": name,
        "initial": START,
        **kept,
        "auto_transitions": False,
        "states": entries,
        "transitions": transitions,
    }
    fragments = {state.name: state.fragment for state in states.values() if state.fragment}
    about = machine.data["format"]
    about = {**about, "notes": list(dict.fromkeys([*about.get("notes", ()), *parts.notes]))}
    roles = list(dict.fromkeys([*about.get("other_roles", ()), *parts.roles]))
    merged = {"closed_by": closed_by, "same_path": same_path, "other_roles": roles}
    about |= {key: value for key, value in merged.items() if value}
    return MachineFile(machine.path, {"format": about, "machine": composed}, places, fragments)


def _by_opener(pairs: Iterable[_Pair], places: dict[Keys, Place]) -> dict[str, list[str]]:
    """Return what closes each opening marker, the first pair of each; note their places."""
    found: dict[str, list[str]] = {}
    for pair in pairs:
        closers = [closer for each in pair.closers for closer in _terminals(each)]
        for opener in _terminals(pair.opener):
            found.setdefault(opener, closers)
            places.setdefault(("format", "closed_by", opener), pair.place)
    return found


def _not_read(spellings: Iterable[_Spelling], rows: Iterable[_Row]) -> list[_Spelling]:
    """Return the spellings that no row reads as a path of its own."""
    read = {row.trigger.split(" ")[1] for row in rows if " " in row.trigger}
    return [each for each in spellings if each.other not in read]


def _by_spelling(spellings: Iterable[_Spelling], places: dict[Keys, Place]) -> dict[str, str]:
    """Return the path that each other spelling means, the first of each; note their places."""
    found: dict[str, str] = {}
    for each in spellings:
        found.setdefault(each.other, each.path)
        places.setdefault(("format", "same_path", each.other), each.place)
    return found


_SECTIONS = (("machine", "states"), ("machine", "transitions"), ("machine", "import"))
