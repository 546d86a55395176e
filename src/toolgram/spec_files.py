"""Reading a format's two files: the grammar's terminals, the machine's states and transitions, and whether they fit.

Strategy: the libraries read, this module checks.  Lark loads the grammar; what the runtime needs of it are the
terminals that the machine names, and whether those are of a shape that it can stream (see `spec`).  Every check raises
`FormatError` with the line and what to write instead; nothing here runs at parse time.
"""

from __future__ import annotations

import re
from pathlib import Path
from re import _constants, _parser
from typing import Any

import yaml
from lark.exceptions import LarkError, UnexpectedInput
from lark.grammar import Rule
from lark.lexer import PatternStr, TerminalDef
from lark.load_grammar import load_grammar

from toolgram.errors import FormatError
from toolgram.spec import (
    ACTIONS,
    END,
    ISLAND_TRIGGERS,
    MAX_MARKER,
    MAX_RUN,
    MEANINGS,
    RECOVERY_TRIGGERS,
    TAGS,
    TEXT,
    VALUE_TYPES,
    Literal,
    Run,
    Spec,
    State,
    Transition,
    is_json_trigger,
)


def read_spec(grammar_path: Path, machine_path: Path, import_paths: tuple[str, ...]) -> Spec:
    """Read and check both files. Raises FormatError (also for a file that cannot be read)."""
    texts = _read(grammar_path), _read(machine_path)
    return spec_from_texts(texts[0], str(grammar_path), texts[1], str(machine_path), import_paths)


def spec_from_texts(
    grammar_text: str, grammar_path: str, machine_text: str, machine_file: str, import_paths: tuple[str, ...]
) -> Spec:
    """Read and check the texts of both files, which errors call by the given paths. Raises FormatError."""
    data, lines = _load_yaml(machine_text, machine_file)
    terminals = read_terminals(grammar_text, grammar_path, import_paths)
    about = _section(data, "format", machine_file)
    machine = _section(data, "machine", machine_file)
    states = _states(machine, lines, machine_file)
    final = [name for name in states if _is_final(machine, name)]
    if len(final) != 1:
        raise FormatError(
            machine_file,
            f"{len(final)} states are marked final, one is needed",
            "mark ALL_TOOLS_COMPLETE, and only it, with `final: true`",
            lines.get(("machine", "states"), 0),
        )
    transitions = _transitions(machine, states, lines, machine_file)
    name = str(machine.get("name") or Path(machine_file).stem)
    spec = Spec(
        name=name,
        title=str(about.get("title", name)),
        models=[str(model) for model in about.get("models", [])],
        example=str(about.get("example", "")),
        notes=[str(note) for note in about.get("notes", [])],
        parser=str(about.get("parser", "lalr")),
        call_ids=str(about.get("call_ids", "call_24")),
        special_tokens=tuple(about.get("special_tokens", ())),
        python_json=bool(about.get("python_json", False)),
        notation=tuple(map(str, about.get("notation", ()))),
        turn_end=str(about.get("turn_end", "")),
        same_path={str(path): str(same) for path, same in dict(about.get("same_path", {})).items()},
        grammar_path=grammar_path,
        grammar_text=grammar_text,
        machine_path=machine_file,
        machine_dict=data,
        initial=str(machine.get("initial", "")),
        states=states,
        transitions=transitions,
        terminals={},
        final=final[0],
        import_paths=import_paths,
    )
    _check_header(spec, lines)
    _bind_terminals(spec, terminals, grammar_path, lines)
    from toolgram.faults import faults

    for fault in faults(spec):
        raise fault
    return spec


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise FormatError(
            str(path), f"cannot be read: {reason}", "give the paths of a .lark grammar and a .yaml machine"
        ) from None


def _section(data: dict[str, Any], key: str, path: str) -> dict[str, Any]:
    section = data.get(key)
    if not isinstance(section, dict):
        raise FormatError(
            path,
            f"the section `{key}:` is missing",
            "a machine file has two sections, `format:` (what it is) and `machine:` (the transitions markup)",
        )
    return section


# --- YAML with line numbers ---------------------------------------------------------------------------------------

Lines = dict[tuple[Any, ...], int]


def _load_yaml(text: str, path: str) -> tuple[dict[str, Any], Lines]:
    try:
        data = yaml.safe_load(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        problem = getattr(error, "problem", None) or "cannot be read as YAML"
        raise FormatError(path, f"not valid YAML: {problem}", "mend the YAML at this place", line, column) from None
    if not isinstance(data, dict) or root is None:
        raise FormatError(path, "the file is not a YAML mapping", "start from a shipped file in machines/")
    lines: Lines = {}
    pending: list[tuple[tuple[Any, ...], yaml.Node]] = [((), root)]
    seen: set[int] = set()
    while pending:
        where, node = pending.pop()
        lines[where] = node.start_mark.line + 1
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            pending += [((*where, key.value), value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            pending += [((*where, index), value) for index, value in enumerate(node.value)]
    return data, lines


# --- the grammar's terminals --------------------------------------------------------------------------------------


def load_lark(text: str, path: str, import_paths: tuple[str, ...]) -> tuple[list[TerminalDef], list[Rule]]:
    """The grammar's terminals and rules, as Lark compiles them. Raises FormatError."""
    try:
        grammar, _ = load_grammar(  # type: ignore[no-untyped-call]
            text, path, list(import_paths), False
        )
        terminals, rules, _ = grammar.compile(["start"], "*")
    except UnexpectedInput as error:
        raise FormatError(
            path,
            f"not a Lark grammar: {str(error).splitlines()[0]}",
            "mend the grammar at this place (https://lark-parser.readthedocs.io/en/stable/grammar.html)",
            max(error.line, 0),
            max(error.column, 0),
        ) from None
    except (LarkError, OSError, RecursionError, re.error, AssertionError, KeyError) as error:
        problem = " ".join(str(error).split()) or type(error).__name__
        raise FormatError(
            path,
            f"Lark refuses the grammar: {problem[:300]}",
            "every rule and terminal must be defined, and the first rule be called `start`",
        ) from None
    return list(terminals), list(rules)


def read_terminals(text: str, path: str, import_paths: tuple[str, ...]) -> dict[str, TerminalDef]:
    """The grammar's own and imported terminals by name. Raises FormatError."""
    terminals, _ = load_lark(text, path, import_paths)
    return {terminal.name: terminal for terminal in terminals}


def terminal_line(grammar_text: str, name: str) -> int:
    """The line on which `name` is defined in the grammar, 0 where it is imported."""
    pattern = re.compile(rf"^[ \t]*[?!]?{re.escape(name)}(?:\.\d+)?[ \t]*(?:\{{|:)")
    for number, line in enumerate(grammar_text.splitlines(), 1):
        if pattern.match(line):
            return number
    return 0


def shape_of(terminal: TerminalDef, path: str, line: int) -> Literal | Run:
    """The terminal as a Literal or a Run. Raises FormatError when it is neither."""
    name, pattern = terminal.name, terminal.pattern
    if isinstance(pattern, PatternStr):
        if not pattern.flags and 0 < len(pattern.value) <= MAX_MARKER:
            return Literal(name, pattern.value)
    else:
        run = _as_run(name, pattern.to_regexp())
        if run is not None:
            return run
    raise FormatError(
        path,
        f"terminal {name} is too complex for a trigger: {pattern.to_regexp()}",
        f'write it as one fixed text ("...", at most {MAX_MARKER} characters) or as one bounded run of a character '
        f"class (/[...]{{1,64}}/ or /[...][...]{{0,63}}/, at most {MAX_RUN}), or build it from several such "
        "terminals",
        line,
    )


def _as_run(name: str, pattern: str) -> Literal | Run | None:
    try:
        parsed = _parser.parse(pattern)
    except re.error:
        return None
    if parsed and all(op is _constants.LITERAL for op, _ in parsed):
        return Literal(name, "".join(chr(code) for _, code in parsed))
    if not 1 <= len(parsed) <= 2:
        return None
    tail, tail_argument = parsed[-1]
    head = _class_end(pattern)
    if len(parsed) == 2 and (parsed[0][0] not in _CLASSES or tail is not _constants.MAX_REPEAT):
        return None
    if tail in _CLASSES:
        return Run(name, pattern, pattern, 1)
    if tail is not _constants.MAX_REPEAT:
        return None
    least, most, inner = tail_argument
    if len(inner) != 1 or inner[0][0] not in _CLASSES or int(most) > MAX_RUN or (least < 1 and len(parsed) == 1):
        return None
    return Run(name, pattern, pattern[:head], int(most) + len(parsed) - 1)


_CLASSES = (_constants.IN, _constants.LITERAL, _constants.NOT_LITERAL)


def _class_end(pattern: str) -> int:
    """Where the first atom of a pattern ends: a class in brackets, an escape, or one character."""
    if not pattern.startswith("["):
        return 2 if pattern.startswith("\\") else 1
    at = 2 if pattern[1:2] == "^" else 1
    at += 1  # a bracket that comes first is an ordinary character
    while at < len(pattern) and pattern[at] != "]":
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


# --- the machine --------------------------------------------------------------------------------------------------


def _states(machine: dict[str, Any], lines: Lines, path: str) -> dict[str, State]:
    declared = machine.get("states")
    if not isinstance(declared, list) or not declared:
        raise FormatError(path, "the machine has no states", "list them under `machine: states:`")
    states: dict[str, State] = {}
    for index, entry in enumerate(declared):
        line = lines.get(("machine", "states", index), 0)
        entry = {"name": entry} if isinstance(entry, str) else entry
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise FormatError(
                path, f"state {index + 1} has no name", "write `- {name: SOME_STATE, tags: [content]}`", line
            )
        name, tags = entry["name"], entry.get("tags", [])
        unknown = [tag for tag in tags if tag not in TAGS]
        if unknown:
            raise FormatError(
                path, f"state {name} has the unknown tag `{unknown[0]}`", f"known tags: {', '.join(TAGS)}", line
            )
        meanings = [tag for tag in tags if tag in MEANINGS]
        if len(meanings) > 1:
            raise FormatError(
                path,
                f"state {name} means both {meanings[0]} and {meanings[1]}",
                "text in one state means one thing; split the state",
                line,
            )
        if name in states:
            raise FormatError(path, f"state {name} is declared twice", "remove one of them", line)
        typed = next((tag for tag in tags if tag in VALUE_TYPES), "")
        meaning = meanings[0] if meanings else None
        if (typed or "echo" in tags) and meaning != "value":
            raise FormatError(
                path,
                f"state {name} is tagged `{typed or 'echo'}` and reads no value",
                "add the tag `value`, or remove it",
                line,
            )
        states[name] = State(name, meaning, "held" in tags, "python" in tags, line, typed, "echo" in tags)
    return states


def _is_final(machine: dict[str, Any], name: str) -> bool:
    return any(
        isinstance(entry, dict) and entry.get("name") == name and entry.get("final") is True
        for entry in machine["states"]
    )


def _transitions(machine: dict[str, Any], states: dict[str, State], lines: Lines, path: str) -> list[Transition]:
    declared = machine.get("transitions")
    if not isinstance(declared, list) or not declared:
        raise FormatError(path, "the machine has no transitions", "list them under `machine: transitions:`")
    found: dict[tuple[str, str], Transition] = {}
    for index, entry in enumerate(declared):
        line = lines.get(("machine", "transitions", index), 0)
        if not isinstance(entry, dict) or not {"trigger", "source", "dest"} <= set(entry):
            raise FormatError(
                path,
                f"transition {index + 1} is not complete",
                "write `- {trigger: MARKER, source: A, dest: B, after: action}`",
                line,
            )
        trigger, dest = str(entry["trigger"]), str(entry["dest"])
        sources = entry["source"]
        if sources == "*":
            sources = [name for name in states if not _is_final(machine, name)]
        after = entry.get("after", [])
        actions = tuple([after] if isinstance(after, str) else after)
        for action in actions:
            if action not in ACTIONS:
                raise FormatError(path, f"unknown action `{action}`", f"known actions: {', '.join(ACTIONS)}", line)
        for source in [sources] if isinstance(sources, str) else sources:
            target = source if dest == "=" else dest
            for state in (source, target):
                if state not in states:
                    raise FormatError(
                        path, f"state {state} is not declared", "add it to `states:`, or correct its name", line
                    )
            other = found.get((source, trigger))
            if other is not None:
                raise FormatError(
                    path,
                    f"`{trigger}` is ambiguous in {source}: it leads to {other.dest} (line {other.line}) "
                    f"and to {target}",
                    "keep one of the two transitions",
                    line,
                )
            found[source, trigger] = Transition(trigger, source, target, actions, line)
    return list(found.values())


def _check_header(spec: Spec, lines: Lines) -> None:
    path = spec.machine_path
    if spec.initial not in spec.states:
        raise FormatError(
            path,
            f"the initial state `{spec.initial}` is not declared",
            "set `machine: initial:` to one of the states",
            lines.get(("machine", "initial"), 0),
        )
    if spec.parser not in ("lalr", "earley"):
        raise FormatError(
            path,
            f"unknown parser `{spec.parser}`",
            "use `lalr`, or `earley` where the language is ambiguous",
            lines.get(("format", "parser"), 0),
        )
    from toolgram.call_ids import STYLES

    if spec.call_ids not in STYLES:
        raise FormatError(
            path,
            f"unknown call id style `{spec.call_ids}`",
            f"known styles: {', '.join(STYLES)}",
            lines.get(("format", "call_ids"), 0),
        )


def _bind_terminals(spec: Spec, terminals: dict[str, TerminalDef], grammar_path: str, lines: Lines) -> None:
    for transition in spec.transitions:
        trigger = transition.trigger
        if (
            trigger in (END, *ISLAND_TRIGGERS, *RECOVERY_TRIGGERS)
            or is_json_trigger(trigger)
            or trigger in spec.terminals
        ):
            continue
        if trigger not in terminals:
            raise FormatError(
                spec.machine_path,
                f"unknown trigger `{trigger}`",
                f"declare the terminal {trigger} in {Path(grammar_path).name}, or use a JSON event "
                "(`map_key item.name`), an island event (object_start, object_end, object_empty), "
                "`end`, `malformed` or `recovered`",
                transition.line,
            )
        if trigger != TEXT:
            line = terminal_line(spec.grammar_text, trigger)
            spec.terminals[trigger] = shape_of(terminals[trigger], grammar_path, line)
    for index, token in enumerate(spec.special_tokens):
        if not isinstance(spec.terminals.get(token), Literal):
            raise FormatError(
                spec.machine_path,
                f"special token {token} is no fixed text that the machine uses",
                "name a terminal that is a literal and a trigger, or remove it",
                lines.get(("format", "special_tokens", index), 0),
            )
