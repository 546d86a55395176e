"""What a specification is: a format's two files, read.

A *terminal* of the grammar that a machine names is one of two simple shapes (a fixed text, or a bounded run of one
character class), because only for such shapes is "could the next character still belong to it?" answered without
backtracking.  A *machine* is a `transitions` declaration in its markup form, with the meaning of each state in its
tags.  `files` reads and checks the files, `program.compiling` turns a specification into what parsers
run.

The words of a machine file (keys, tags, triggers, actions) are in `vocabulary`.  A specification cannot be changed: all
parsers of a format share it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from toolgram.errors import FormatError
from toolgram.spec.vocabulary import END as END
from toolgram.spec.vocabulary import TEXT as TEXT
from toolgram.spec.vocabulary import UNCLOSED as UNCLOSED

_LINE_NAME = re.compile(r"[^\W\d][\w.\-]{0,255}").fullmatch
_JSON_TRIGGER = re.compile(
    r"(?:start_map|end_map|start_array|end_array|string|null|boolean|number) item(?:\.(?:\w+|\*))*(?: \S+)?"
    r"|start_array|end_array|map_key item(?:\.\w+)*(?:\.(?:\w+|\*))|map_key"
)


class Literal(NamedTuple):
    """A terminal that is one fixed text. With `either_end`, a line end in it may be `\\r\\n` as well as `\\n`."""

    name: str
    text: str
    either_end: bool = False

    @property
    def texts(self) -> tuple[str, ...]:
        """Return the texts that it may be, first the one that a model should write."""
        return (self.text, self.text.replace("\n", "\r\n")) if self.either_end else (self.text,)

    @property
    def pattern(self) -> str:
        """Return the same as a regular expression."""
        pattern = re.escape(self.text)
        return pattern.replace("\\\n", "\r?\n") if self.either_end else pattern


class Run(NamedTuple):
    """A terminal that is a bounded run of one character class, its first character perhaps of another one.

    `pattern` is the whole as a regular expression, `first` the class of its first character, `most` its longest length.
    """

    name: str
    pattern: str
    first: str
    most: int


class State(NamedTuple):
    """A state as declared: its `meaning` (None for structure), and its traits.

    `held`: its text is not committed; `python`: arguments are Python's; `encoded`: they may be a JSON string; `typed`:
    the tag that says how values are read or text is escaped, "" for none; `echo`: the marker after a value repeats the
    key; `to_user`: a call in the message counts only if it is all of it.
    """

    name: str
    meaning: str | None
    held: bool
    python: bool
    line: int
    typed: str = ""
    echo: bool = False
    file: str = ""  # that `line` is of, if it is another than the machine file
    fragment: str = ""  # that the state came with
    encoded: bool = False
    to_user: bool = False

    @property
    def is_text(self) -> bool:
        """Return whether it reads content or reasoning."""
        return self.meaning in ("content", "reasoning")


class Transition(NamedTuple):
    """A transition as declared, its sources one by one."""

    trigger: str
    source: str
    dest: str
    actions: tuple[str, ...]
    line: int
    file: str = ""  # that `line` is of, if it is another than the machine file
    repair: bool = False  # what a model got wrong is repaired; strict parsers do without the row
    of_calls: bool = False  # its marker is around calls; if none are wanted it is text


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Spec:
    """The two files, read and checked. Cannot be changed."""

    name: str
    title: str
    models: tuple[str, ...] = ()
    example: str = ""
    notes: tuple[str, ...] = ()
    parser: str = "lalr"
    call_ids: str = "call_24"
    special_tokens: tuple[str, ...] = ()
    stop: tuple[str, ...] | None = None  # terminals that end a turn; None if the file does not say
    python_json: bool = False
    longest_match: bool = False
    line_calls: str = ""  # the state after a declared name at the beginning of a line; "" if that is text
    bare_calls: tuple[str, ...] = ()  # the state of a call without a marker, and texts before it; none if that is text
    unproven_types: tuple[str, ...] = ()  # of which it is not known how values are written
    wrapped: tuple[str, ...] = ()  # keys under which all arguments may be one object
    not_called: tuple[str, ...] = ()  # recipients of messages that are not functions
    namespaced_names: bool = False  # a declared function may have a namespace before its name
    suffix: str = ""  # at the end of markers, another one for each checkpoint; "" for none
    closed_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # opening marker -> closers that a call owes
    same_path: Mapping[str, str] = field(default_factory=dict)
    notation: tuple[str, ...] = ()  # of notated values: the quotes; of nested elements: how their tags begin, and items
    turn_start: str = ""  # blanks with which the text of a turn begins
    turn_end: str = ""  # blanks between the text and the token that ends the turn
    other_roles: tuple[str, ...] = ()  # what begins messages of other roles,
    own_role: tuple[str, ...] = ()  # and the model's, after whose header an output begins
    generation_prompt: str = ""  # what `prefix=None` means
    grammar_path: str
    grammar_text: str
    machine_path: str
    machine_json: str  # the machine file, as JSON
    initial: str
    final: str
    states: Mapping[str, State]
    transitions: tuple[Transition, ...]
    terminals: Mapping[str, Literal | Run]
    declared: tuple[str, ...]  # terminals of the grammar that follow from the machine, by Lark's names for them
    import_paths: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in ("closed_by", "same_path", "states", "terminals"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

    @property
    def machine_dict(self) -> dict[str, Any]:
        """Return the machine file, as data of your own: `format` says what it is, `machine` is transitions markup."""
        data: dict[str, Any] = json.loads(self.machine_json)
        return data

    def fault(self, entry: State | Transition, problem: str, remedy: str) -> FormatError:
        """Return the error that an entry of the machine file is wrong."""
        file = os.path.join(os.path.dirname(self.machine_path), entry.file) if entry.file else self.machine_path
        return FormatError(file, problem, remedy, entry.line)


def rows_of(spec: Spec) -> dict[str, dict[str, Transition]]:
    """Return the transitions by source and trigger."""
    rows: dict[str, dict[str, Transition]] = {name: {} for name in spec.states}
    for transition in spec.transitions:
        rows[transition.source][transition.trigger] = transition
    return rows


def loops(row: Mapping[str, Transition]) -> bool:
    """Return whether text stays in the state that has these transitions."""
    return TEXT in row and row[TEXT].dest == row[TEXT].source


def without_repairs(spec: Spec) -> Spec:
    """Return the same specification without the rows that repair what a model got wrong: what strict parsers run."""
    return replace(spec, transitions=tuple(row for row in spec.transitions if not row.repair))


def with_line_calls(spec: Spec, names: frozenset[str]) -> Spec:
    """Return the same specification for a request that declares these functions: a line that begins with one of their
    names calls it. The line end before it is part of the marker."""
    rows, terminals = [*spec.transitions], dict(spec.terminals)
    texts = [state.name for state in spec.states.values() if state.meaning == "content"]
    for name in sorted(filter(_LINE_NAME, names)):
        trigger = f"LINE {name}"
        terminals[trigger] = Literal(trigger, f"\n{name}")
        rows += [
            Transition(trigger, source, spec.line_calls, ("unusual_form", "name"), 0, repair=True) for source in texts
        ]
    return replace(spec, transitions=tuple(rows), terminals=terminals)


def with_bare_calls(spec: Spec) -> Spec:
    """Return the same specification for a request that declares functions: an object in text may be a call of one,
    alone, or after one of the texts that the format names. A fence, and a tag, are closed after it."""
    begins, *texts = spec.bare_calls
    rows = rows_of(spec)
    (opened,) = (row.dest for trigger, row in rows[begins].items() if trigger == "start_map item")
    steps = {(row.source, row.dest) for row in spec.transitions if spec.states[row.dest].meaning != "content"}
    reached = _reached({opened}, steps)
    over = {row.dest for name in reached for row in rows[name].values() if row.trigger == "end_map item"}
    added, terminals = [], dict(spec.terminals)
    content = [name for name, row in rows.items() if spec.states[name].meaning == "content"]
    content = [name for name in content if "start_map item" not in rows[name]]
    for name in content:
        added.append(Transition("start_map item", name, opened, ("unusual_form",), 0, repair=True))
        added += [Transition(f"BARE {text}", name, begins, ("unusual_form",), 0, repair=True) for text in texts]
    after = spec.initial if spec.initial in content else content[0]
    for text in texts:
        closer = "```" if text.startswith("```") else text.replace("<", "</")
        terminals |= {name: Literal(name, each) for name, each in ((f"BARE {text}", text), (f"END {closer}", closer))}
        added += [Transition(f"END {closer}", name, after, (), 0, repair=True) for name in sorted(over)]
    return replace(spec, transitions=(*spec.transitions, *dict.fromkeys(added)), terminals=terminals)


def with_other_roles(spec: Spec, tokens: Collection[str]) -> Spec:
    """Return the same specification for an output with ids: where a message of another role begins with one of these
    tokens, the turn ends as with the first token of `stop`. It is the same object if no such message does."""
    known = {each.text for each in spec.terminals.values() if isinstance(each, Literal)}
    found = [role for role in spec.other_roles if spec.stop and role.startswith(tuple(tokens)) and role not in known]
    if not found or spec.stop is None:
        return spec
    roles = {f"ROLE {role}": Literal(f"ROLE {role}", role) for role in found}
    rows = [row._replace(trigger=name) for name in roles for row in spec.transitions if row.trigger == spec.stop[0]]
    made = replace(spec, transitions=(*spec.transitions, *rows), terminals={**spec.terminals, **roles})
    return replace(made, special_tokens=(*spec.special_tokens, *roles), stop=(*spec.stop, *roles))


_CALL_ACTIONS = frozenset(
    {"name", "call_id", "call_id_part", "start_call", "no_arguments", "open_arguments", "argument_key"}
)


def text_only(spec: Spec) -> Spec:
    """Return the same specification without its calls: a row stays if text can follow it and no call has begun.

    Its parsers read content and reasoning, drop the markers of both, and leave the text of a call as content. It is for
    requests that declare no tools. The grammar is the whole one.
    """
    header = _headers_of_calls(spec)
    rows = [
        row._replace(actions=()) if row.source in header and row.actions == ("name",) else row
        for row in spec.transitions
        if not row.of_calls
        and "no_call" not in row.actions  # the markers of what is not a call are part of the text
        and (row.source in header or not _CALL_ACTIONS & set(row.actions))
    ]
    useful = header | {name for name, state in spec.states.items() if state.is_text} | {spec.final}
    useful = _reached(useful, {(row.dest, row.source) for row in rows if row.trigger != END})
    rows = [row for row in rows if {row.source, row.dest} <= useful]
    return replace(spec, transitions=tuple(rows), line_calls="", bare_calls=())


def _headers_of_calls(spec: Spec) -> set[str]:
    """Return the held states of a call's header, if a marker in it also begins a header of content or reasoning.

    They stay: what follows a recipient would be read as if it had none. At the end of such a header the candidate is
    rejected, and its text is content.
    """
    states = spec.states
    texts = {name for name, state in states.items() if state.is_text}
    inside = [row for row in spec.transitions if states[row.source].held and states[row.dest].held]
    begins = {row.trigger for row in spec.transitions if row.source in texts and states[row.dest].held}
    found = {row.dest for row in inside if row.actions == ("name",)}
    if not any(row.source in found and row.trigger in begins for row in inside):
        return set()
    on_the_way = {row.source for row in inside if row.dest != row.source}  # not after the header
    found = _reached(found, {(row.source, row.dest) for row in inside if row.dest in on_the_way})
    return found | {row.source for row in inside if row.actions == ("name",)}


def _reached(states: set[str], steps: set[tuple[str, str]]) -> set[str]:
    """Return the states that steps lead to from these, and these themselves."""
    found, fresh = set(states), states
    while fresh:
        fresh = {dest for source, dest in steps if source in fresh} - found
        found |= fresh
    return found


def is_json_trigger(trigger: str) -> bool:
    """Return whether `trigger` is an event of the JSON envelope reader, such as `string item.name`."""
    return _JSON_TRIGGER.fullmatch(trigger) is not None
