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

`closed_by:` of the file and of its fragments are one mapping, and the file's entry for an opening marker goes first.
`same_path:` of both are one mapping as well, without a fragment's other spelling if the machine reads that path for
something else.  What is in `other_roles:` of the file and of its fragments is one list, and so it is with `own_role:`.

A row of the file itself goes before a row of a fragment, and that before a row that follows from a state.  Each entry
of the result keeps the file and the line from which it came.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import attrgetter
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
    depth: int = 0  # of imports through which it came


@dataclass(slots=True)
class _Row:
    trigger: str
    sources: list[str]
    dest: str
    after: Any  # an action, several, or None
    place: Place
    repair: bool = False
    of_calls: bool = False
    depth: int = 0


@dataclass(slots=True)
class _Entry:
    """An entry of a mapping: an opening marker and its closing markers, or another spelling of a path and that path."""

    key: str
    means: list[str]
    place: Place


_MAPPINGS = ("closed_by", "same_path")


@dataclass(slots=True)
class _Parts:
    """What a file declares, or a fragment with all that is inside it."""

    states: list[_State] = field(default_factory=list)
    rows: list[_Row] = field(default_factory=list)
    mappings: dict[str, list[_Entry]] = field(default_factory=lambda: {name: [] for name in _MAPPINGS})
    exits: list[tuple[str, Place]] = field(default_factory=list)
    markers: list[str] = field(default_factory=list)
    recovered: str = ""
    notes: list[str] = field(default_factory=list)
    roles: dict[str, list[str]] = field(default_factory=lambda: {"other_roles": [], "own_role": []})

    def add(self, other: _Parts) -> None:
        """Take the parts of a fragment."""
        for name in ("states", "rows", "exits", "markers", "notes"):
            getattr(self, name).extend(getattr(other, name))
        for name, entries in self.mappings.items():
            entries += other.mappings[name]
        for name, texts in self.roles.items():
            texts += other.roles[name]
        self.recovered = self.recovered or other.recovered

    def nearest_first(self) -> _Parts:
        """Order states and rows: those of a fragment go before those of the fragments that it imports."""
        self.states.sort(key=attrgetter("depth"))
        self.rows.sort(key=attrgetter("depth"))
        return self

    def names(self) -> set[str]:
        """Return the states, exits, markers and JSON paths."""
        declared = {*self.markers, *(state.name for state in self.states), *(name for name, _ in self.exits)}
        return declared | {row.trigger.split(" ")[1] for row in self.rows if " " in row.trigger}

    def rename(self, names: Mapping[str, str], place: Place) -> None:
        """Give new names to these parts, which are imported at a place."""

        def new(name: str) -> str:  # of a trigger, each word
            return " ".join([names.get(word, word) for word in name.split(" ")])

        for state in self.states:
            state.name, state.text = new(state.name), new(state.text)
            state.depth += 1
        for row in self.rows:
            row.depth += 1
            row.trigger, row.sources, row.dest = new(row.trigger), [*map(new, row.sources)], new(row.dest)
        for entry in (each for entries in self.mappings.values() for each in entries):
            entry.key, entry.means = new(entry.key), [*map(new, entry.means)]
        self.exits = [(new(name), place) for name, _ in self.exits]
        self.markers = [*map(new, self.markers)]
        self.recovered = new(self.recovered)


def compose(machine: MachineFile, load: Load) -> MachineFile:
    """Return the machine without imports and with all its rows. Raises FormatError for an import that is impossible."""
    declared = machine.data["machine"]
    own = _parts(machine, ("machine",), ("format",))
    parts = _Parts()
    budget = [MAX_FRAGMENTS]
    for index, entry in enumerate(declared.get("import", ())):
        parts.add(_imported(machine, ("machine", "import", index), entry, load, budget).nearest_first())
    stop = machine.data["format"].get("stop", ())
    own.rows, parts.rows = _for_each(own.rows, stop), _for_each(parts.rows, stop)
    states = _merged(own.states, parts.states)
    recovered = declared.get("recovered", parts.recovered)
    _add_states(declared, states, parts.exits, recovered, machine.place("machine"))
    rows = _Rows(states)
    rows.add_own(own.rows)
    rows.add(parts.rows)
    rows.add(_following(_home(declared), recovered, states, stop, machine.place("machine")))
    parts.mappings["same_path"] = _not_read(parts.mappings["same_path"], rows.kept)
    own.add(parts)
    return _written(machine, declared, states, rows.kept, own)


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


def _parts(machine: MachineFile, where: Keys, about: Keys) -> _Parts:
    """Read what a file declares itself: states and rows in one section, and what it says of them in another."""
    parts = _Parts()
    declared, said = (machine.data[str(keys[0])] if keys else machine.data for keys in (where, about))
    for index, entry in enumerate(declared.get("states", ())):
        for name in names_of(entry):
            given = {} if isinstance(entry, str) else entry
            parts.states.append(
                _State(
                    name,
                    list(given.get("tags", ())),
                    machine.place(*where, "states", index),
                    bool(given.get("final")),
                    given.get("text", "="),
                    given.get("stop"),
                )
            )
    for index, entry in enumerate(declared.get("transitions", ())):
        place = machine.place(*where, "transitions", index)
        for trigger in _listed(entry["trigger"]):
            marks = entry.get("repair", False), entry.get("of_calls", False)
            parts.rows.append(_Row(trigger, _listed(entry["source"]), entry["dest"], entry.get("after"), place, *marks))
    for name, entries in parts.mappings.items():
        for key, means in said.get(name, {}).items():
            entries.append(_Entry(key, _listed(means), machine.place(*about, name, key)))
    for name, texts in parts.roles.items():
        texts += said.get(name, ())
    return parts


def _listed(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _imported(importer: MachineFile, place: Keys, entry: Mapping[str, str], load: Load, budget: list[int]) -> _Parts:
    """Return the parts of a fragment under the names that an entry gives to them."""
    budget[0] -= 1
    if budget[0] < 0:
        raise importer.error(place, f"more than {MAX_FRAGMENTS} fragments are imported", "import each once")
    name = entry["fragment"]
    try:
        fragment = load(name)
    except KeyError as error:
        remedy = instead(name, error.args, "the fragments are")
        raise importer.error(place, f"there is no fragment {name}", remedy) from None
    parts = _all_parts(fragment, load, budget)
    given = {key: value for key, value in entry.items() if key not in ("fragment", "prefix")}
    known = sorted(parts.names())
    for key in given:
        if key not in known:
            raise importer.error(
                (*place, key), f"the fragment {name} has no {key}", instead(key, known, "its names are")
            )
    prefix = entry.get("prefix", "")
    parts.rename({**{state.name: prefix + state.name for state in parts.states}, **given}, importer.place(*place))
    return parts


def _all_parts(fragment: MachineFile, load: Load, budget: list[int]) -> _Parts:
    """Return the parts of a fragment, with those of the fragments inside it, under the names that they have in it."""
    parts = _parts(fragment, (), ())
    about = fragment.data["fragment"]
    for state in parts.states:
        state.fragment = Path(fragment.path).stem
    parts.exits += [(name, fragment.place()) for name in about.get("exits", ())]
    parts.markers += about.get("markers", ())
    parts.notes += about.get("notes", ())
    parts.recovered = about.get("recovered", "")
    for index, entry in enumerate(fragment.data.get("import", ())):
        parts.add(_imported(fragment, ("import", index), entry, load, budget))
    return parts


def names_in(fragment: MachineFile, load: Load) -> set[str]:
    """Return the markers, states, exits and JSON paths of a fragment and of the fragments that it imports."""
    return _all_parts(fragment, load, [MAX_FRAGMENTS]).names()


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
    machine: MachineFile, declared: Mapping[str, Any], states: Mapping[str, _State], rows: list[_Row], parts: _Parts
) -> MachineFile:
    """Write the composed machine as a machine file, with the place of each entry."""
    places = {keys: place for keys, place in machine.places.items() if keys[:2] not in _SECTIONS}
    places |= {("machine", "states", index): state.place for index, state in enumerate(states.values())}
    places |= {("machine", "transitions", index): row.place for index, row in enumerate(rows)}
    about = dict(machine.data["format"])
    about["notes"] = list(dict.fromkeys([*about.get("notes", ()), *parts.notes]))
    merged = {name: _first_of_each(name, entries, places) for name, entries in parts.mappings.items()}
    about |= _said({**merged, **{name: list(dict.fromkeys(texts)) for name, texts in parts.roles.items()}})
    composed = {
        "name": Path(machine.path).stem,
        "initial": START,
        **{key: value for key, value in declared.items() if key not in ("import", "home", "recovered")},
        "auto_transitions": False,
        "states": [_said({"name": each.name, "tags": each.tags, "final": each.final}) for each in states.values()],
        "transitions": [_as_entry(row) for row in rows],
    }
    fragments = {state.name: state.fragment for state in states.values() if state.fragment}
    return MachineFile(machine.path, {"format": about, "machine": composed}, places, fragments)


def _as_entry(row: _Row) -> dict[str, Any]:
    source = row.sources[0] if len(row.sources) == 1 else row.sources
    marks = {"after": row.after, "repair": row.repair, "of_calls": row.of_calls}
    return {"trigger": row.trigger, "source": source, "dest": row.dest, **_said(marks)}


def _said(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry without what says nothing."""
    return {key: value for key, value in entry.items() if value}


def _first_of_each(name: str, entries: Iterable[_Entry], places: dict[Keys, Place]) -> dict[str, Any]:
    """Return what each opening marker or path means, by the first entry for it; note their places."""
    found: dict[str, Any] = {}
    for entry in entries:
        means = [each for some in entry.means for each in _terminals(some)]
        for key in _terminals(entry.key):
            found.setdefault(key, means if name == "closed_by" else means[0])
            places.setdefault(("format", name, key), entry.place)
    return found


def _not_read(spellings: Iterable[_Entry], rows: Iterable[_Row]) -> list[_Entry]:
    """Return the spellings that no row reads as a path of its own."""
    read = {row.trigger.split(" ")[1] for row in rows if " " in row.trigger}
    return [each for each in spellings if each.key not in read]


_SECTIONS = (("machine", "states"), ("machine", "transitions"), ("machine", "import"))
