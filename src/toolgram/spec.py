"""What a specification is: a format's two files, read.

A *terminal* of the grammar that a machine names is one of two simple shapes (a fixed text, or a bounded run of one
character class), because only for such shapes is "could the next character still belong to it?" answered without
backtracking.  A *machine* is a `transitions` declaration in its markup form, with the meaning of each state in its
tags.  `spec_files` reads and checks the files, `compile` turns a specification into what parsers run.

Vocabulary of a machine file:

* a trigger is a terminal of the grammar (upper case), a JSON event with its prefix (`map_key item.name`,
  `start_map item`; `*` stands for a key that is a name), an island's event (`object_start`, `object_end`,
  `object_empty`, `value_end`), the end of the output (`end`), or a recovery (`malformed`, `recovered`);
* a tag says what text inside a state means: `content`, `reasoning`, `name`, `call_id`, `arguments`, `argument_key`,
  `value` (of one argument), `ignored` (a JSON value that belongs to no call), `malformed`, or nothing of these for
  structure; `held` marks a state whose text is not committed yet; `python` that its arguments are Python keyword
  arguments; `text`, `json` and `notated` (JSON with the quotes of `format: notation:`) that a value is always that,
  where else the parameter's type decides; `echo` that the marker after a value repeats the argument's key;
* an action (`after`) says what a transition does with the text of its trigger: `name`, `call_id`, `start_call`,
  `no_arguments`, `open_arguments`, `argument_key`, `unclosed_value`, `close_arguments`, `end_call`, `fail_call`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

MEANINGS = ("content", "reasoning", "name", "call_id", "arguments", "argument_key", "value", "ignored", "malformed")
VALUE_TYPES = ("text", "json", "notated")
TRAITS = ("held", "python", *VALUE_TYPES, "echo")
TAGS = (*MEANINGS, *TRAITS)
ACTIONS = (
    "name", "call_id", "start_call", "no_arguments", "open_arguments", "argument_key", "unclosed_value",
    "close_arguments", "end_call", "fail_call",
)  # fmt: skip
ISLAND_TRIGGERS = ("object_start", "object_end", "object_empty", "value_end")
RECOVERY_TRIGGERS = ("malformed", "recovered")
TEXT = "TEXT"
END = "end"
MAX_RUN = 1024
MAX_MARKER = 256

_JSON_TRIGGER = re.compile(
    r"(?:start_map|end_map|start_array|end_array|string|null|boolean|number) item(?:\.(?:\w+|\*))*(?: \S+)?"
    r"|start_array|end_array|map_key item(?:\.\w+)*(?:\.(?:\w+|\*))|map_key"
)


@dataclass(frozen=True, slots=True)
class Literal:
    """A terminal that is one fixed text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Run:
    """A terminal that is a bounded run of one character class, its first character perhaps of another one.

    `pattern` is the whole as a regular expression, `first` the class of its first character, `most` its longest length.
    """

    name: str
    pattern: str
    first: str
    most: int


@dataclass(frozen=True, slots=True)
class State:
    """A state as declared: its `meaning` (None for structure), and its traits.

    `held`: its text is not committed; `python`: arguments are Python's; `typed`: values are always "text", "json" or
    "notated", "" where the parameter decides; `echo`: the marker after a value repeats the key.
    """

    name: str
    meaning: str | None
    held: bool
    python: bool
    line: int
    typed: str = ""
    echo: bool = False


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition as declared, its sources one by one."""

    trigger: str
    source: str
    dest: str
    actions: tuple[str, ...]
    line: int


@dataclass(slots=True)
class Spec:
    """The two files, read and checked."""

    name: str
    title: str
    models: list[str]
    example: str
    notes: list[str]
    parser: str
    call_ids: str
    special_tokens: tuple[str, ...]
    python_json: bool
    same_path: dict[str, str]
    grammar_path: str
    grammar_text: str
    machine_path: str
    machine_dict: dict[str, Any]
    initial: str
    states: dict[str, State]
    transitions: list[Transition]
    terminals: dict[str, Literal | Run]
    final: str
    turn_end: str = ""
    notation: tuple[str, ...] = ()  # the quotes of notated values, opening and closing
    import_paths: tuple[str, ...] = field(default=())


def rows_of(spec: Spec) -> dict[str, dict[str, Transition]]:
    """The transitions by source and trigger."""
    rows: dict[str, dict[str, Transition]] = {name: {} for name in spec.states}
    for transition in spec.transitions:
        rows[transition.source][transition.trigger] = transition
    return rows


_CALL_ACTIONS = frozenset({"name", "call_id", "start_call", "no_arguments", "open_arguments", "argument_key"})


def text_only(spec: Spec) -> Spec:
    """The same specification without its calls: a row stays where text can follow and no call has begun.

    Its parsers read content and reasoning, drop the markers of both, and leave the text of a call as content. It is for
    requests that declare no tools. The grammar is the whole one.
    """
    rows = [row for row in spec.transitions if not _CALL_ACTIONS & set(row.actions)]
    useful = {name for name, state in spec.states.items() if state.meaning in ("content", "reasoning")} | {spec.final}
    grown = True
    while grown:
        before = {row.source for row in rows if row.dest in useful and row.trigger != END} - useful
        grown = bool(before)
        useful |= before
    return replace(spec, transitions=[row for row in rows if {row.source, row.dest} <= useful])


def is_json_trigger(trigger: str) -> bool:
    """Whether `trigger` is an event of the JSON envelope reader, such as `string item.name`."""
    return _JSON_TRIGGER.fullmatch(trigger) is not None
