"""Checks of a machine and its terminals, decided by looking at every state and symbol.

What keeps a machine from running (ambiguous triggers, unreachable states, lost text, prefixes that nothing decides) is
not among them: no format with such a fault can be loaded (`spec.faults`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants, _parser
from typing import Any

from lark.lexer import TerminalDef

from toolgram.limits import MAX_LOOK_AROUND
from toolgram.program.free_text import whole_grammar
from toolgram.spec.data import Spec
from toolgram.spec.grammar_file import read_grammar, terminal_line

_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)


def _leading_to(spec: Spec, goals: set[str]) -> set[str]:
    """Return the states from which some transitions lead to one of `goals`, the goals among them."""
    sources: dict[str, set[str]] = {name: set() for name in spec.states}
    for transition in spec.transitions:
        sources[transition.dest].add(transition.source)
    reached, pending = set(goals), list(goals)
    while pending:
        for source in sources[pending.pop()] - reached:
            reached.add(source)
            pending.append(source)
    return reached


def released(spec: Spec) -> Iterator[str]:
    """Yield the held states from which nothing is ever committed."""
    can = _leading_to(spec, {name for name, state in spec.states.items() if not state.held})
    for name, state in spec.states.items():
        if name not in can:
            yield (
                f"{spec.machine_path}:{state.line}: held state {name} has no release: no transition leads from it to "
                "a state that is not held; text held in it could only be rejected"
            )


def terminals_not_empty(spec: Spec) -> Iterator[str]:
    """Yield the terminals of the grammar that match the empty string."""
    for name, terminal in _terminals(spec).items():
        if re.compile(terminal.pattern.to_regexp()).match("") and _may_be_empty(terminal):
            yield f"{place_of(spec, name)}: terminal {name} matches the empty string; make it optional in the rule"


def keys_in_grammar(spec: Spec) -> Iterator[str]:
    """Yield the keys of the JSON around a call that the machine reads and no terminal of the grammar has."""
    written = {terminal.pattern.value for terminal in _terminals(spec).values()}
    rows = [row for row in spec.transitions if row.trigger.startswith("map_key ") and not row.repair]
    places = dict.fromkeys(spec.same_path, rows[0].line) if rows else {}
    places |= {row.trigger.removeprefix("map_key "): row.line for row in rows}
    for path, line in places.items():
        key = path.rpartition(".")[2]
        if key != "*" and f'"{key}"' not in written:
            yield (
                f"{spec.machine_path}:{line}: the machine reads the key {key!r}, and no terminal of the grammar has "
                'it; write it there, as in name_field: ("\\"tool\\"" | "\\"name\\"") _colon STRING'
            )


def terminals_linear(spec: Spec) -> Iterator[str]:
    """Yield the expressions of the grammar that could backtrack: a repetition inside a repetition, a backreference."""
    for name, terminal in _terminals(spec).items():
        fault = _fault(_parser.parse(terminal.pattern.to_regexp()))
        if fault:
            yield (
                f"{place_of(spec, name)}: terminal {name} has {fault}, which can cost more than linear time; write it "
                "as alternatives of single characters under one repetition"
            )


def _terminals(spec: Spec) -> dict[str, TerminalDef]:
    grammar = read_grammar(whole_grammar(spec), spec.grammar_path, spec.import_paths)
    return {str(terminal.name): terminal for terminal in grammar.terminals}


def place_of(spec: Spec, name: str) -> str:
    """Return the file and the line of a terminal."""
    line = terminal_line(spec.grammar_text, name)
    return f"{spec.grammar_path}:{line}" if line else spec.grammar_path


def _may_be_empty(terminal: TerminalDef) -> bool:
    return int(_parser.parse(terminal.pattern.to_regexp()).getwidth()[0]) == 0


def _fault(parsed: Any) -> str:
    """Return a description of the first construct that may backtrack; "" if all is linear.

    A look-around is tried once per place: a bounded repetition inside it costs at most its bound.
    """
    pending: list[tuple[Any, bool, bool]] = [(parsed, False, False)]
    while pending:
        items, repeated, around = pending.pop()
        for op, argument in items:
            if op in _REPEATS:
                least, most, inner = argument
                variable = least != most
                if (repeated or (around and most > MAX_LOOK_AROUND)) and variable:
                    return "a repetition inside a repetition"
                pending.append((inner, repeated or (variable and most > 1), around))
            elif op is _constants.BRANCH:
                pending += [(branch, repeated, around) for branch in argument[1]]
            elif op is _constants.SUBPATTERN:
                pending.append((argument[-1], repeated, around))
            elif op in (_constants.ASSERT, _constants.ASSERT_NOT):
                pending.append((argument[1], False, around or repeated))
            elif op in (_constants.GROUPREF, _constants.GROUPREF_EXISTS):
                return "a backreference"
            elif op is _constants.ATOMIC_GROUP:
                pending.append((argument, repeated, around))
    return ""
