"""From a checked specification to an immutable program: per state, one regular expression and one transition row.

Strategy: everything that can be decided before the first character is decided here, once, and shared by all streams.
A state where free text may stand gets one expression that finds the next marker *or the longest suffix of the text
that may become one*; a state where a token must stand gets one expression that matches it.  The expressions are
alternations of fixed texts and bounded character runs, so their work per character is constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from toolgram.events import Content, Reasoning
from toolgram.spec import TEXT, Literal, Run, Spec, is_json_trigger

FindMatch = Callable[..., re.Match[str] | None]

# What a symbol found in text is: a terminal of the grammar, the first character of a JSON envelope, or of arguments.
TERMINAL, ENVELOPE, OBJECT = "terminal", "envelope", "object"


@dataclass(slots=True, eq=False)
class Symbol:
    """Something that a state looks for: its trigger, its kind, and how long it can grow."""

    trigger: str
    kind: str
    special: bool = False
    most: int = 0  # of a run; 0 for a fixed text


@dataclass(slots=True, eq=False)
class Move:
    """A transition, its destination resolved."""

    trigger: str
    dest: StateProgram
    actions: tuple[str, ...]


@dataclass(slots=True, eq=False)
class StateProgram:
    """Everything that the runtime needs to know while it is in one state."""

    name: str
    meaning: str | None
    held: bool
    python: bool
    row: dict[str, Move] = field(default_factory=dict)
    is_text: bool = False
    loops: bool = False  # text keeps the machine here
    symbols: list[Symbol] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)
    longest: int = 0  # of the literals
    start: FindMatch | None = None  # free text: a character that a symbol may begin with
    event: type[Content] | type[Reasoning] = Content  # what free text is
    find: FindMatch | None = None  # free text: the next symbol, or a suffix that may become one
    find_final: FindMatch | None = None  # the same at the end of the output, when nothing can become anything
    match: FindMatch | None = None  # a symbol at this place
    wreck: re.Pattern[str] | None = None  # wreckage: the next bracket, quote or marker
    key_paths: list[str] = field(default_factory=list)  # JSON paths of the keys that may come
    any_key: bool = False
    values: dict[str, list[str]] = field(default_factory=dict)  # JSON path -> the only strings that may stand there
    why: str = ""

    def may_become(self, text: str, pos: int) -> bool:
        """Whether some fixed text of this state begins with all that `text` has from `pos` on, and is longer."""
        left = len(text) - pos
        if left >= self.longest:
            return False
        rest = text[pos:]
        return any(literal.startswith(rest) and len(literal) > left for literal in self.literals)


@dataclass(slots=True, eq=False)
class Program:
    """A compiled format, shared by all its streams."""

    initial: StateProgram
    final: StateProgram
    states: dict[str, StateProgram]
    same_path: dict[str, str]
    python_json: bool
    literals: dict[str, str]  # trigger -> text
    special: dict[str, str]  # the same, of the special tokens


def compile_spec(spec: Spec) -> Program:
    """Compile a checked specification. Costs a few milliseconds; the result is immutable."""
    states = {name: StateProgram(name, state.meaning, state.held, state.python) for name, state in spec.states.items()}
    for transition in spec.transitions:
        move = Move(transition.trigger, states[transition.dest], transition.actions)
        states[transition.source].row[transition.trigger] = move
    for state in states.values():
        _compile_state(spec, state)
    literals = {name: terminal.text for name, terminal in spec.terminals.items() if isinstance(terminal, Literal)}
    special = {name: literals[name] for name in spec.special_tokens}
    return Program(
        states[spec.initial], states[spec.final], states, spec.same_path, spec.python_json, literals, special
    )


def _compile_state(spec: Spec, state: StateProgram) -> None:
    state.is_text = state.meaning in ("content", "reasoning")
    state.loops = state.is_text and state.row[TEXT].dest is state
    _compile_json(spec, state)
    alternatives: list[tuple[str, Symbol]] = []
    shapes = [spec.terminals[trigger] for trigger in state.row if trigger in spec.terminals]
    texts = sorted((shape for shape in shapes if isinstance(shape, Literal)), key=lambda shape: -len(shape.text))
    for literal in texts:
        symbol = Symbol(literal.name, TERMINAL, literal.name in spec.special_tokens)
        alternatives.append((re.escape(literal.text), symbol))
        state.literals.append(literal.text)
    for opener, symbol in _openers(state):
        alternatives.append((re.escape(opener), symbol))
    for shape in shapes:
        if isinstance(shape, Run):
            alternatives.append((f"(?>{shape.pattern})", Symbol(shape.name, TERMINAL, most=shape.most)))
    state.longest = max(map(len, state.literals), default=0)
    state.symbols = [symbol for _, symbol in alternatives]
    groups = "|".join(f"({pattern})" for pattern, _ in alternatives)
    partial = partial_pattern(state.literals)
    markers = (
        f"(?P<partial>(?:{partial})\\Z)|(?P<marker>{'|'.join(map(re.escape, state.literals))})|" if partial else ""
    )
    if state.is_text or state.meaning == "malformed":
        state.wreck = re.compile(markers + r"""(?P<bracket>["'{}\[\](),])""")
    if state.loops:
        found = "|".join(filter(None, (f"(?:{partial})\\Z" if partial else "", groups)))
        firsts = "".join(sorted({literal[0] for literal in state.literals} | {text for text, _ in _openers(state)}))
        state.start = re.compile(f"[{re.escape(firsts)}]" if firsts else r"(?!)").search
        state.event = Reasoning if state.meaning == "reasoning" else Content
        state.find = re.compile(found or r"(?!)").search
        state.find_final = re.compile(groups or r"(?!)").search
    elif state.meaning != "malformed":
        state.match = re.compile(groups or r"(?!)").match
    state.why = _why(spec, state)


def _openers(state: StateProgram) -> Iterable[tuple[str, Symbol]]:
    if "start_map item" in state.row:
        yield "{", Symbol("start_map item", ENVELOPE)
    if "start_array" in state.row:
        yield "[", Symbol("start_array", ENVELOPE)
    if "object_start" in state.row:
        yield ("(" if state.row["object_start"].dest.python else "{"), Symbol("object_start", OBJECT)


def _compile_json(spec: Spec, state: StateProgram) -> None:
    paths = [trigger.removeprefix("map_key ") for trigger in state.row if trigger.startswith("map_key ")]
    state.key_paths = paths + [alias for alias, same in spec.same_path.items() if same in paths]
    state.any_key = "map_key" in state.row
    for trigger in state.row:
        if is_json_trigger(trigger) and trigger.startswith("string ") and trigger.count(" ") == 2:
            _, path, value = trigger.split(" ")
            state.values.setdefault(path, []).append(value)


def partial_pattern(literals: Iterable[str]) -> str:
    """A regular expression for the proper, non-empty prefixes of all `literals`: their trie, every step optional.

    Built without recursion; empty when no literal is longer than one character.
    """
    prefixes = sorted({literal[:length] for literal in literals for length in range(1, len(literal))}, reverse=True)
    return "|".join(re.escape(prefix) for prefix in prefixes)


def _why(spec: Spec, state: StateProgram) -> str:
    """What a state was waiting for, in plain words."""
    wanted: list[str] = []
    for trigger in state.row:
        words = _in_words(spec, trigger)
        if words and words not in wanted:
            wanted.append(words)
    if not wanted:
        return "nothing could follow"
    listed = wanted[0] if len(wanted) == 1 else f"{', '.join(wanted[:-1])} or {wanted[-1]}"
    return f"expected {listed}"


def _in_words(spec: Spec, trigger: str) -> str:
    shape = spec.terminals.get(trigger)
    if isinstance(shape, Literal):
        return repr(shape.text)
    if isinstance(shape, Run):
        return "a blank" if re.match(shape.first, " ") else f"a {trigger.lower().replace('_', ' ')}"
    event, _, path = trigger.partition(" ")
    key = path.rpartition(".")[2]
    if event == "map_key":
        return f'the key "{key}"' if key else "another key"
    if event == "string" and " " in path:
        key, _, value = path.rpartition(".")[2].partition(" ")
        return f'"{value}" for "{key}"'
    if event in ("start_map", "start_array", "string", "null"):
        what = {"start_map": "an object", "start_array": "a list", "string": "a string", "null": "null"}[event]
        return f'{what} for "{key}"' if "." in path else what
    return {
        "object_start": "arguments",
        "object_end": "the end of the arguments",
        "end_map": "the end of the object",
        "end_array": "the end of the list",
    }.get(event, "")
