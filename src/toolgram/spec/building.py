"""From a machine file that says only what can be said to a specification, and whether its names all name something.

Strategy: one function builds every specification, of files and of derived formats.  The terminals come from the caller,
since a grammar may be read (by Lark) or be known already (while it is written).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path, PurePath
from typing import Any

from toolgram.limits import LONGEST_WORD
from toolgram.spec.composition import compose, fragment_loader
from toolgram.spec.data import END, TEXT, Literal, Run, Spec, State, Transition, is_json_trigger
from toolgram.spec.declarations import check_meanings
from toolgram.spec.machine_checks import check_machine, instead
from toolgram.spec.machine_file import Keys, MachineFile
from toolgram.spec.vocabulary import ISLAND_TRIGGERS, MEANINGS, RECOVERY_TRIGGERS, VALUE_TYPES

Shapes = Mapping[str, Callable[[], Literal | Run | None]]  # terminals of a grammar by name; None for free text

_SUFFIX = re.compile(rf"[^\w\s<>\"'\\][A-Za-z0-9_-]{{1,{LONGEST_WORD}}}")


def build_spec(
    machine: MachineFile,
    shapes: Shapes,
    free_text: tuple[str, ...],
    grammar_text: str,
    grammar_path: str,
    import_paths: tuple[str, ...],
) -> Spec:
    """Check a machine against the terminals of its grammar. Raises FormatError for the first fault.

    `shapes` are the terminals that the grammar defines, `free_text` those that it declares only.
    """
    check_machine(machine)
    homes = [Path(machine.path).parent, *(Path(path).parent / "machines" for path in import_paths)]
    machine = compose(machine, fragment_loader(homes))
    about, declared = machine.data["format"], machine.data["machine"]
    states = _states(machine)
    final = _final(machine)
    if declared["initial"] not in states:
        raise machine.error(
            ("machine", "initial"),
            f"the initial state {declared['initial']} is not declared",
            instead(declared["initial"], states, "the states are"),
        )
    transitions = _transitions(machine, states)
    terminals = _terminals(machine, transitions, shapes, grammar_path)
    _check_names(machine, states, transitions, terminals)
    check_meanings(free_text, states.values(), grammar_text, grammar_path)
    name = declared["name"] or Path(machine.path).stem
    spec = Spec(
        **{"name": name, "title": name, "example": _first_output(about), **_kept(about)},
        grammar_path=grammar_path,
        grammar_text=grammar_text,
        machine_path=machine.path,
        machine_json=json.dumps(machine.data, ensure_ascii=False),
        initial=declared["initial"],
        final=final,
        states=states,
        transitions=transitions,
        terminals=terminals,
        declared=free_text,
        import_paths=import_paths,
    )
    from toolgram.spec.faults import faults

    for fault in faults(spec):
        raise fault
    return spec


def _kept(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a specification keeps of `format:`, as data that cannot be changed."""
    names = {field.name for field in fields(Spec)}
    return {key: _fixed(value) for key, value in about.items() if key in names and value != ""}


def _fixed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _fixed(each) for key, each in value.items()}
    return tuple(value) if isinstance(value, list) else value


def _first_output(about: Mapping[str, Any]) -> str:
    """Return the first canonical output after the format's own prompt, if no example is given."""
    prompt = about.get("generation_prompt", "")
    shown = [
        each if isinstance(each, Mapping) else {"prefix": "", "output": each} for each in about.get("canonical", ())
    ]
    return next((str(each.get("output", "")) for each in shown if each.get("prefix", "") == prompt), "")


def _place(machine: MachineFile, where: Keys) -> tuple[str, int]:
    """Return the file and line of an entry, as a specification keeps them: nothing for the machine file itself."""
    path, line = machine.place(*where)
    if path == machine.path:
        return "", line
    home, other = PurePath(machine.path).parent, PurePath(path)
    return (str(other.relative_to(home)) if other.is_relative_to(home) else str(Path(path).absolute())), line


def _states(machine: MachineFile) -> dict[str, State]:
    states: dict[str, State] = {}
    for index, entry in enumerate(machine.data["machine"]["states"]):
        name, tags = entry["name"], entry.get("tags", [])
        file, line = _place(machine, ("machine", "states", index))
        meaning = next((tag for tag in tags if tag in MEANINGS), None)
        typed = next((tag for tag in tags if tag in VALUE_TYPES), "")
        fragment = machine.fragments.get(name, "")
        held, python, echo, *rest = (trait in tags for trait in ("held", "python", "echo", "encoded", "to_user"))
        states[name] = State(name, meaning, held, python, line, typed, echo, file, fragment, *rest)
    return states


def _final(machine: MachineFile) -> str:
    entries = machine.data["machine"]["states"]
    final = [entry["name"] for entry in entries if entry.get("final")]
    if len(final) != 1:
        raise machine.error(
            ("machine", "states"),
            f"{len(final)} states are marked final, one is needed",
            "write `- {name: ALL_TOOLS_COMPLETE, final: true}`, and no other state with `final: true`",
        )
    return str(final[0])


def _transitions(machine: MachineFile, states: Mapping[str, State]) -> tuple[Transition, ...]:
    found: dict[tuple[str, str], Transition] = {}
    for index, entry in enumerate(machine.data["machine"]["transitions"]):
        where: Keys = ("machine", "transitions", index)
        file, line = _place(machine, where)
        trigger, dest, sources, after = entry["trigger"], entry["dest"], entry["source"], entry.get("after", [])
        for source in [sources] if isinstance(sources, str) else sources:
            target = source if dest == "=" else dest
            for key, state in (("source", source), ("dest", target)):
                if state not in states:
                    raise machine.error(
                        (*where, key), f"state {state} is not declared", instead(state, states, "the states are")
                    )
            other = found.get((source, trigger))
            if other is not None:
                raise machine.error(
                    where,
                    f"`{trigger}` is ambiguous in {source}: it leads to {other.dest} (line {other.line}) "
                    f"and to {target}",
                    f"remove {source} from the sources of one of the two",
                )
            actions = (after,) if isinstance(after, str) else tuple(after)
            found[source, trigger] = Transition(
                trigger, source, target, actions, line, file, entry.get("repair", False), entry.get("of_calls", False)
            )
    return tuple(found.values())


def _terminals(
    machine: MachineFile, transitions: tuple[Transition, ...], shapes: Shapes, grammar_path: str
) -> dict[str, Literal | Run]:
    """Return the terminals that the machine names."""
    terminals: dict[str, Literal | Run] = {}
    known = (END, *ISLAND_TRIGGERS, *RECOVERY_TRIGGERS)
    for index, entry in enumerate(machine.data["machine"]["transitions"]):
        trigger = entry["trigger"]
        if trigger in known or is_json_trigger(trigger) or trigger in terminals:
            continue
        if trigger not in shapes:
            raise machine.error(
                ("machine", "transitions", index, "trigger"),
                f"unknown trigger `{trigger}`",
                instead(trigger, (*shapes, *known), f"the terminals of {Path(grammar_path).name} and the events are"),
            )
        shape = None if trigger == TEXT else shapes[trigger]()
        if shape is not None:
            terminals[trigger] = shape
    return terminals


def _check_names(
    machine: MachineFile,
    states: Mapping[str, State],
    transitions: tuple[Transition, ...],
    terminals: Mapping[str, Literal | Run],
) -> None:
    """Check that each name under `format:` names something."""
    about: Mapping[str, Any] = machine.data["format"]
    literals = {name: shape.text for name, shape in terminals.items() if isinstance(shape, Literal)}
    _check_markers(machine, about, literals)
    _check_suffix(machine, about.get("suffix", ""), literals)
    held = [name for name, state in states.items() if state.held]
    for key, named in (("line_calls", about.get("line_calls", "")), ("bare_calls", *about.get("bare_calls", [""])[:1])):
        if named and named not in held:
            raise machine.error(
                ("format", key),
                f"`{key}` names {named}, which is not a held state",
                instead(named, held, "the held states are"),
            )
    _check_same_path(machine, about.get("same_path", {}), transitions)
    if "notation" in about and not any(state.typed in ("notated", "elements") for state in states.values()):
        raise machine.error(
            ("format", "notation"),
            "no state reads notated values or nested elements",
            "write `tags: [value, notated]` at the state that does, or remove `notation:`",
        )


def _check_markers(machine: MachineFile, about: Mapping[str, Any], literals: Mapping[str, str]) -> None:
    """Check that special tokens, those that end a turn, and what opens and closes something are markers."""
    named: list[tuple[str, str | int, str]] = [
        (key, index, name) for key in ("special_tokens", "stop") for index, name in enumerate(about.get(key, ()))
    ]
    for opener, closers in about.get("closed_by", {}).items():
        named += [("closed_by", opener, name) for name in (opener, *closers)]
    for key, entry, name in named:
        if name not in literals:
            raise machine.error(
                ("format", key, entry),
                f"`{key}` names {name}, which is not a fixed text that a transition has as its trigger",
                instead(name, literals, "these are"),
            )


def _check_suffix(machine: MachineFile, suffix: str, literals: Mapping[str, str]) -> None:
    """Check that a suffix is one, and that markers have it."""
    suffixed = any(suffix in text for text in literals.values())
    if suffix and not (suffixed and _SUFFIX.fullmatch(suffix)):
        raise machine.error(
            ("format", "suffix"),
            f"`suffix` is {suffix!r}, which no marker has"
            if not suffixed
            else f"`suffix` is {suffix!r}, and not a sign with up to {LONGEST_WORD} letters, digits, `_` and `-` "
            "after it",
            "write what every marker has after its name, such as `suffix: ':opensource'`, or remove the line",
        )


def _check_same_path(machine: MachineFile, same: Mapping[str, str], transitions: Iterable[Transition]) -> None:
    """Check that each other spelling is of a path that is read, and is read nowhere itself, but as a repair."""
    rows = [row for row in transitions if row.trigger.count(" ")]
    paths = {row.trigger.split(" ")[1] for row in rows}
    strict = {row.trigger.split(" ")[1] for row in rows if not row.repair}
    for other, path in same.items():
        if path not in paths or not is_json_trigger(f"map_key {other}") or other in strict:
            wrong = other if path in paths else path
            raise machine.error(
                ("format", "same_path", other),
                f"`same_path` names {wrong}, which is not another spelling of a path that a transition has",
                instead(wrong, sorted(paths), "the paths are") if wrong == path else f"remove `{other}`",
            )
