"""The compiled table: what parsers run, and nothing of how it is made.

Strategy: a `StateProgram` per state, with its searches and its row of `Move`s; a `Program` per format, with the rest.
It is data that all streams share.  `compiling` fills it in; after that only caches change: `begins`, `by_id`, searches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from toolgram.events import Content, Reasoning
from toolgram.program.expressions import NOWHERE, Expression, FindMatch, Firsts
from toolgram.spec.data import Spec

# What a symbol found in text is: a terminal of the grammar, the first character of a JSON envelope, or of arguments.
TERMINAL, ENVELOPE, OBJECT = "terminal", "envelope", "object"
# What a symbol of text begins: a call, reasoning, the header of a message, or the end of the turn.
CALL, THOUGHT, HEADER, STOP = "call", "thought", "header", "stop"
INNER = "inner"  # a closing marker of something inside a call
PASSED = "passed"  # a marker in a value that would close it if something else followed
STRAY = "stray"  # the same, of the value's own closing marker


@dataclass(slots=True, eq=False, repr=False)
class Symbol:
    """Something that a state looks for: its trigger, its kind, and how long it can grow."""

    trigger: str
    kind: str
    special: bool = False
    most: int = 0  # of a run; 0 for a fixed text
    opens: str = ""  # CALL, THOUGHT, HEADER or STOP; "" for what closes something


@dataclass(slots=True, eq=False, repr=False)
class Move:
    """A transition, its destination resolved."""

    trigger: str
    dest: StateProgram
    actions: tuple[str, ...]
    repair: bool = False
    only_declared: bool = False  # by `declared_name`: it is followed only if the call's function is declared
    only_called: bool = False  # by `called_name`: the same, and never if no function is declared
    opens: str = ""  # its own trigger, if a call owes a closing marker after it
    within: frozenset[str] = frozenset()  # and the opening markers inside of which alone it does; none if everywhere
    closes: frozenset[str] = frozenset()  # triggers of the markers that it closes after a call
    begins: frozenset[str] = frozenset()  # triggers of those that close what this one opens in text


@dataclass(slots=True, eq=False, repr=False)
class StateProgram:
    """Everything that the runtime needs to know while it is in one state."""

    name: str
    meaning: str | None
    held: bool
    python: bool
    typed: str = ""
    echo: bool = False
    encoded: bool = False
    to_user: bool = False
    row: dict[str, Move] = field(default_factory=dict)
    is_text: bool = False
    loops: bool = False  # text keeps the machine here
    reader: str = "token"  # that reads here outside any island
    symbols: list[Symbol] = field(default_factory=list)
    literals: list[str] = field(default_factory=list)
    longest: int = 0  # of the literals
    beginnings: Container[str] = ()  # of the literals
    firsts: Firsts = field(default_factory=dict)  # free text: the characters that a symbol may begin with
    start: FindMatch = NOWHERE  # and a search for where one may
    event: type[Content] | type[Reasoning] = Content  # what free text is
    find: FindMatch = NOWHERE  # free text up to the next symbol (group 2 on), or what may become one (group 1)
    find_final: FindMatch = NOWHERE  # the same at the end of the output, when nothing can become anything
    find_plain: FindMatch = NOWHERE  # a value's end in a text that is whole, if nothing is cut off there
    match: FindMatch = NOWHERE  # a symbol at this place
    brackets: FindMatch = NOWHERE  # error recovery: a search for the next bracket, quote or marker
    key_paths: list[str] = field(default_factory=list)  # JSON paths of the keys that may come ...
    key_prefixes: frozenset[str] = frozenset()  # ... and all beginnings of them
    bare: bool = False  # no marker has announced what begins here
    announced: bool = False  # after a name: a marker has to come before the call is one
    any_key: bool = False
    named_key: bool = False  # a key that is a name
    values: dict[str, frozenset[str]] = field(default_factory=dict)  # JSON path -> beginnings of the strings it takes
    looks: dict[str, Expression] = field(default_factory=dict)  # trigger -> what follows if it closes a value
    again: Expression | None = None  # closing markers of a value that is closed already
    before: tuple[str, ...] = ()  # markers after which a value, a name or a key begins
    entered_by: dict[str, Symbol] = field(default_factory=dict)  # the markers that alone lead here, by text
    announces: str = ""  # trigger of the marker that announces calls as objects in text
    around_key: tuple[str, str] = ("", "")  # markers before and after the key whose element is the value
    opens: frozenset[str] = frozenset()  # triggers of markers in a value that open what its closing marker closes
    closed: bool = False  # after a call, and only its closing markers lead here
    leaves_owed: dict[str, frozenset[str]] = field(default_factory=dict)  # trigger -> opening markers left open
    why: str = ""

    def may_become(self, text: str, pos: int) -> bool:
        """Return whether some fixed text of this state begins with all that `text` has from `pos` on, and is longer."""
        return len(text) - pos < self.longest and text[pos:] in self.beginnings


@dataclass(slots=True, eq=False, repr=False)
class Program:
    """A compiled format, shared by all its streams."""

    spec: Spec  # what it was compiled from
    initial: StateProgram
    states: dict[str, StateProgram]
    literals: dict[str, str]  # trigger -> text
    special: dict[str, str]  # the same, of the special tokens
    closers: dict[str, Symbol] = field(default_factory=dict)  # what may close a call, or what is around it, by text
    stop: frozenset[str] = frozenset()  # triggers that end a turn
    mentions: bool = True  # what the model only mentions is text
    strict: bool = False  # nothing is repaired
    closing: frozenset[str] = frozenset()  # texts of the markers that close a call
    unproven_types: frozenset[str] = frozenset()  # of which it is not known how values are written
    wrapped: frozenset[str] = frozenset()  # keys under which all arguments may be one object
    markers: tuple[str, ...] = ()  # the literals that are found in neither prose nor code
    in_no_name: tuple[str, ...] = ()  # of these, those that no name has,
    begins_no_name: frozenset[str] = frozenset()  # and the characters with which they begin
    line_calls: bool = False  # a declared name at the beginning of a line begins a call
    namespaced_names: bool = False  # a declared function may have a namespace before its name
    surplus: dict[str, Symbol] = field(default_factory=dict)  # the closers, and those of what is inside a call
    longest_closer: int = 0  # the length of the longest of them, and of what ends a turn
    endings: tuple[str, ...] = ()  # all these, and markers that close something in text
    sections: Mapping[str, frozenset[str]] = field(default_factory=dict)  # those markers, with others for the same
    fences: frozenset[str] = frozenset()  # triggers of closing fences
    thought_ends: tuple[str, ...] = ()  # markers that close reasoning
    element_ends: tuple[str, ...] = ()  # how the closing tags of elements begin that are named as arguments are
    by_id: Any = None  # the tokens that a parser was last given, the program for them, and the special ones by id
    begins: Any = None  # where a plain whole output begins (see `runtime.whole_outputs`)

    def holds_marker(self, name: str) -> bool:
        """Return whether what should be a name or a key holds a marker."""
        return not self.begins_no_name.isdisjoint(name) and any(marker in name for marker in self.in_no_name)


def search_later(state: StateProgram, field: str, search: Callable[[], FindMatch]) -> None:
    """Let the first search of a state make its expressions."""

    find: FindMatch | None = None

    def first_search(text: str, *place: int) -> re.Match[str] | None:
        nonlocal find
        if find is None:  # else somebody has kept this function, from before
            find = search()
            setattr(state, field, find)
        return find(text, *place)

    setattr(state, field, first_search)


def next_symbol(
    state: StateProgram, find: FindMatch, text: str, pos: int, *last: int
) -> tuple[int, int, Symbol | None]:
    """Return where a symbol, or what may become one, begins and ends, and the symbol if it is whole. Return the end of
    the text for nothing."""
    match = cast("re.Match[str]", find(text, pos, *last))
    group, end = match.lastindex or 0, match.end()
    return match.start(group) if group else end, end, state.symbols[group - 2] if group > 1 else None
