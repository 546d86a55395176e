"""From a checked specification to an immutable program: per state, one regular expression and one transition row.

Strategy: everything that can be decided before the first character is decided here, once, and shared by all streams.
A state with free text gets one expression that finds the next marker *or the longest suffix of the text
that may become one*; a state that needs a token gets one expression that matches it.  The expressions are
alternations of fixed texts and bounded character runs, so their work per character is constant.
"""

from __future__ import annotations

import copyreg
import json
import re
from collections.abc import Container, Iterable, Mapping
from functools import lru_cache
from typing import Any

from toolgram.events import Content, Reasoning
from toolgram.limits import MOST_BLANKS
from toolgram.program.closing_markers import (
    BRACKETS,
    FENCE,
    find_closed_states,
    find_closing,
    find_closing_marks,
    find_element_ends,
    find_open_markers,
)
from toolgram.program.expected import what_follows
from toolgram.program.expressions import Beginnings, firsts_of, may_begin, over_text
from toolgram.program.look_ahead import Way, name_ahead, partial_pattern
from toolgram.program.openers import find_announced_names, find_openers
from toolgram.program.state import (
    ENVELOPE,
    INNER,
    OBJECT,
    TERMINAL,
    Move,
    Program,
    StateProgram,
    Symbol,
    search_later,
)
from toolgram.program.values import SURE_MARKER, closers_of_value, compile_value
from toolgram.spec.as_json import dump, load
from toolgram.spec.data import TEXT, Literal, Run, Spec, is_json_trigger, without_repairs

_BLANK = r"[ \t\r\n]"
_READ_ALONE = frozenset({"arguments", "ignored", "malformed"})  # meanings that have a reader of their own


@lru_cache(maxsize=64)
def _recompiled(data: str, strict: bool) -> Program:
    """Load a program that was pickled; it is compiled once for all parsers that were pickled with it."""
    return compile_spec(load(Spec, json.loads(data)), strict)


def _reduce(program: Program) -> tuple[Any, ...]:
    return _recompiled, (json.dumps(dump(program.spec)), program.strict)


copyreg.pickle(Program, _reduce)


def compile_spec(spec: Spec, strict: bool = False) -> Program:
    """Compile a specification, for strict parsers without its repairs, to what never changes. Takes milliseconds."""
    if strict:
        spec = without_repairs(spec)
    states = _states(spec)
    for state in states.values():
        _compile_state(spec, state, states[spec.initial])
    literals = {name: terminal.text for name, terminal in spec.terminals.items() if isinstance(terminal, Literal)}
    _find_bare(spec, states.values())
    if not strict:
        _find_entering_markers(spec, states)
    _find_announcing_markers(states, literals)
    find_openers(spec, states)
    find_open_markers(spec, states)
    find_closed_states(spec, states)
    closers = {} if strict else _surplus_closers(spec, states)
    marks = find_closing_marks(spec, states, literals, strict)
    inner = {literals[name].strip(): Symbol(name, INNER, name in spec.special_tokens) for name in marks.inner}
    surplus = {} if strict else inner | closers
    endings = () if strict else tuple({*surplus, *marks.ends})
    markers = tuple(text for name, text in literals.items() if _is_marker(spec, name, text))
    find_announced_names(states, {name for name, text in literals.items() if text in markers})
    in_no_name = tuple(marker.strip() for marker in markers if not _is_word(marker.strip()))
    return Program(
        spec=spec,
        initial=states[spec.initial],
        states=states,
        literals=literals,
        special={name: literals[name] for name in spec.special_tokens},
        closers=closers,
        stop=frozenset(spec.stop or ()),
        strict=strict,
        closing=find_closing(spec, states.values()),
        unproven_types=frozenset(spec.unproven_types),
        wrapped=frozenset(() if strict else spec.wrapped),
        markers=markers,
        in_no_name=in_no_name,
        begins_no_name=frozenset(marker[0] for marker in in_no_name),
        line_calls=spec.line_calls != "",
        namespaced_names=spec.namespaced_names and not strict,
        surplus=surplus,
        longest_closer=max(map(len, {*surplus, *endings, *marks.ends}), default=0),
        endings=endings,
        sections=marks.sections,
        fences=marks.fences,
        thought_ends=marks.thought_ends,
        element_ends=find_element_ends(spec, states.values()),
    )


DECLARED_NAME, CALLED_NAME = "declared_name", "called_name"


def _states(spec: Spec) -> dict[str, StateProgram]:
    """Make the states with their rows, and with the markers that come before them."""
    traits = ("name", "meaning", "held", "python", "typed", "echo", "encoded", "to_user")
    states = {name: StateProgram(*(getattr(state, trait) for trait in traits)) for name, state in spec.states.items()}
    for transition in spec.transitions:
        actions = tuple(action for action in transition.actions if action not in (DECLARED_NAME, CALLED_NAME))
        only_declared = DECLARED_NAME in transition.actions
        move = Move(transition.trigger, states[transition.dest], actions, transition.repair, only_declared)
        move.only_called = CALLED_NAME in transition.actions
        states[transition.source].row[transition.trigger] = move
    for transition in spec.transitions:
        shape, state = spec.terminals.get(transition.trigger), states[transition.dest]
        if isinstance(shape, Literal) and state.meaning in ("name", "argument_key", "value"):
            state.before = (*state.before, *shape.texts)
    keys = [state.before for state in states.values() if state.meaning == "argument_key" and state.before]
    for state in states.values():
        if state.echo:
            state.around_key = (keys[0][0], state.before[0])
    for state in states.values():
        state.before = tuple(text for text in state.before if len(text) > 1 and not text.isalnum())
    return states


def _find_announcing_markers(states: Mapping[str, StateProgram], literals: Mapping[str, str]) -> None:
    """Find, per state of text, the marker that announces calls as objects."""
    for state in states.values():
        if state.is_text and "start_map item" not in state.row:
            announcing = (trigger for trigger, move in state.row.items() if "start_map item" in move.dest.row)
            state.announces = next((trigger for trigger in announcing if trigger in literals), "")


def _surplus_closers(spec: Spec, states: Mapping[str, StateProgram]) -> dict[str, Symbol]:
    """Return what is a surplus closer directly after a call: brackets, a fence, and markers that lead out of a call."""
    found = {text: Symbol("", TERMINAL) for text in (*BRACKETS, FENCE)}
    for state in states.values():
        if state.meaning == "value":
            symbols = list(zip(state.literals, state.symbols, strict=False))
            found |= dict.fromkeys(closers_of_value(state, symbols), Symbol("", TERMINAL))
    leading_out = _markers_that_lead_out(spec, states)
    after_calls = _states_after_calls(states, leading_out, states[spec.initial].row)
    for name, move in leading_out:
        shape = spec.terminals[move.trigger]
        assert isinstance(shape, Literal)
        if shape.text not in BRACKETS and (name in after_calls or "end_call" in move.actions):
            symbol = Symbol(move.trigger, TERMINAL, move.trigger in spec.special_tokens)
            found |= dict.fromkeys(shape.texts, symbol)
    return found


def _markers_that_lead_out(spec: Spec, states: Mapping[str, StateProgram]) -> list[tuple[str, Move]]:
    """Return the moves to content by a marker, each with its source.

    A marker that text has everywhere leads out of a call only if it is a special token.
    """
    in_text = states[spec.initial].row
    return [
        (name, move)
        for name, state in states.items()
        for move in state.row.values()
        if isinstance(spec.terminals.get(move.trigger), Literal)
        and move.dest.meaning == "content"
        and move.trigger not in (spec.stop or ())
        and (move.trigger in spec.special_tokens or move.trigger not in in_text)
    ]


def _states_after_calls(
    states: Mapping[str, StateProgram], leading_out: Iterable[tuple[str, Move]], in_text: Container[str]
) -> set[str]:
    """Return the names of the states after a call: where it ends, and where its closing markers lead."""
    moves = [(name, move) for name, state in states.items() for move in state.row.values()]
    onward = [(name, move) for name, move in moves if move.trigger == "end_array"]
    onward += [(name, move) for name, move in leading_out if move.trigger not in in_text]
    found: set[str] = set()
    grown = {move.dest.name for _, move in moves if "end_call" in move.actions}
    while grown - found:
        found |= grown
        grown = {move.dest.name for name, move in onward if name in found}
    return found


_is_word = re.compile(r"[\w.:-]*").fullmatch


def _is_marker(spec: Spec, name: str, text: str) -> bool:
    return name in spec.special_tokens or len(text) >= SURE_MARKER


def _find_bare(spec: Spec, states: Iterable[StateProgram]) -> None:
    """Mark the states that can be reached from free text without a marker: by blanks, separators, and values."""
    found = [state for state in states if state.is_text]
    while found:
        state = found.pop()
        if state.bare:
            continue
        state.bare = True
        for trigger, move in state.row.items():
            shape = spec.terminals.get(trigger)
            if not (isinstance(shape, Literal) and _is_marker(spec, trigger, shape.text)):
                found.append(move.dest)


def _find_entering_markers(spec: Spec, states: Mapping[str, StateProgram]) -> None:
    """Mark the states between markers that only markers lead to: there, such a marker can only be one written twice."""
    entering: dict[str, dict[str, str]] = {name: {} for name in states}
    other = {spec.initial}
    for transition in spec.transitions:
        shape = spec.terminals.get(transition.trigger)
        if isinstance(shape, Literal):
            entering[transition.dest] |= dict.fromkeys(shape.texts, transition.trigger)
        elif transition.source != transition.dest:
            other.add(transition.dest)
    for name in states.keys() - other:
        state, markers = states[name], entering[name]
        if not state.is_text and state.meaning not in ("value", "malformed"):
            state.entered_by = {
                text: Symbol(trigger, TERMINAL, trigger in spec.special_tokens)
                for text, trigger in markers.items()
                if trigger not in state.row and len(text) > 1 and not _is_word(text)
            }


def _compile_state(spec: Spec, state: StateProgram, home: StateProgram) -> None:
    state.is_text = state.meaning in ("content", "reasoning")
    state.loops = state.is_text and state.row[TEXT].dest is state
    state.reader = str(state.meaning) if state.meaning in _READ_ALONE else "text" if state.loops else "token"
    _compile_json(spec, state)
    alternatives: list[tuple[str, Symbol]] = []
    shapes = [spec.terminals[trigger] for trigger in state.row if trigger in spec.terminals]
    texts = sorted((shape for shape in shapes if isinstance(shape, Literal)), key=lambda shape: -len(shape.text))
    for literal in texts:
        symbol = Symbol(literal.name, TERMINAL, literal.name in spec.special_tokens)
        for text in literal.texts[: 1 if state.echo else None]:
            alternatives.append((text, symbol))
            state.literals.append(text)
    alternatives += _openers(state)
    state.longest = max(map(len, state.literals), default=0)
    state.beginnings = Beginnings(state.literals)
    state.symbols = [symbol for _, symbol in alternatives]
    partial = partial_pattern(state.literals)
    known = "|".join(map(re.escape, state.literals))
    markers = f"(?P<partial>(?:{partial})\\Z)|(?P<marker>{known})|" if partial else ""
    if state.is_text or state.meaning == "malformed":
        brackets = markers + r"""(?P<bracket>["'{}\[\](),])"""
        search_later(state, "brackets", lambda: re.compile(brackets).search)
    if state.loops:
        _compile_text(spec, state, alternatives)
    elif state.meaning == "value":
        compile_value(spec, state, alternatives, home)
    elif state.meaning != "malformed":
        groups = [f"({re.escape(text)})" for text, _ in alternatives]
        for shape in shapes:
            if isinstance(shape, Run):
                groups.append(f"((?>{shape.pattern}))")
                state.symbols.append(Symbol(shape.name, TERMINAL, most=shape.most))
        search_later(state, "match", lambda: re.compile("|".join(groups) or r"(?!)").match)
    strict_first = sorted(state.row, key=lambda trigger: state.row[trigger].repair)
    state.why = what_follows(spec, strict_first)


def _compile_text(spec: Spec, state: StateProgram, symbols: list[tuple[str, Symbol]]) -> None:
    """Set the expressions of a state in which text goes on: over text, to the next symbol or what may become one."""
    state.event = Reasoning if state.meaning == "reasoning" else Content
    state.firsts = firsts = firsts_of(text for text, _ in symbols)
    if not firsts:
        state.find = state.find_final = re.compile(r"[\s\S]*+").match
        return
    search_later(state, "start", lambda: re.compile(may_begin(firsts)).search)
    partials = [partial_pattern(state.literals)]
    whole: list[str] = []
    for text, symbol in symbols:
        opening = re.escape(text)
        name = _name_ahead(spec, state, symbol) if len(text) < SURE_MARKER else None
        blanks, follow = (0, "") if name else _follow(spec, state, symbol)
        if name:
            partials.append(opening + name.partial)
            opening += f"(?={name.whole})"
        elif follow:
            space = f"{_BLANK}{{0,{blanks}}}+"
            partials.append(opening + space)
            opening += f"(?={space}(?:{follow}{'|' + _BLANK if blanks else ''}))"
        whole.append(opening)
    partial = f"(?:{'|'.join(filter(None, partials))})\\Z" if any(partials) else "(?!)"
    search_later(state, "find", lambda: re.compile(over_text(firsts, [partial, *whole])).match)
    search_later(state, "find_final", lambda: re.compile(over_text(firsts, ["(?!)", *whole])).match)


def _follow(spec: Spec, state: StateProgram, symbol: Symbol) -> tuple[int, str]:
    """Return what must follow a symbol, after how many blanks at most, for it to begin a call; "" if that is open.

    Prose is full of brackets. The expression that finds one sees at once that it begins no call. Otherwise a held call
    would begin, and the next character would reject it.
    """
    if symbol.kind == ENVELOPE:
        if symbol.trigger == "start_array":
            return MOST_BLANKS, r'[\[\]{"tfn0-9-]'
        closing = "}" if "end_map item" in state.row[symbol.trigger].dest.row else ""
        return MOST_BLANKS, f"""["'{closing}]""" if spec.python_json else f'["{closing}]'
    move = state.row[symbol.trigger]
    if symbol.special or move.actions or not move.dest.held or TEXT in move.dest.row:
        return 0, ""
    firsts: list[str] = []
    for trigger in move.dest.row:
        shape = spec.terminals.get(trigger)
        if shape is None:
            return 0, ""
        firsts += [re.escape(text[0]) for text in shape.texts] if isinstance(shape, Literal) else [shape.first]
    return 0, "|".join(firsts)


def _name_ahead(spec: Spec, state: StateProgram, symbol: Symbol) -> Way | None:
    """Return the way to the name of a call and on, if prose may have the symbol and no other way leads on."""
    if symbol.kind != TERMINAL or symbol.special:
        return None
    move = state.row[symbol.trigger]
    return name_ahead(spec, move.dest) if move.dest.held and not move.actions else None


def _openers(state: StateProgram) -> Iterable[tuple[str, Symbol]]:
    if "start_map item" in state.row:
        yield "{", Symbol("start_map item", ENVELOPE)
    if "start_array" in state.row:
        yield "[", Symbol("start_array", ENVELOPE)
    if "object_start" in state.row:
        dest = state.row["object_start"].dest
        for opener in "(" if dest.python else '{"' if dest.encoded else "{":
            yield opener, Symbol("object_start", OBJECT)


def _compile_json(spec: Spec, state: StateProgram) -> None:
    paths = [trigger.removeprefix("map_key ") for trigger in state.row if trigger.startswith("map_key ")]
    state.key_paths = paths + [alias for alias, same in spec.same_path.items() if same in paths]
    state.key_prefixes = frozenset().union(*map(_beginnings, state.key_paths))
    state.named_key = any(trigger.startswith("map_key ") and trigger.endswith(".*") for trigger in state.row)
    state.any_key = "map_key" in state.row or state.named_key
    for trigger in state.row:
        if is_json_trigger(trigger) and trigger.startswith("string ") and trigger.count(" ") == 2:
            _, path, value = trigger.split(" ")
            state.values[path] = state.values.get(path, frozenset()) | _beginnings(value)


def _beginnings(text: str) -> frozenset[str]:
    return frozenset(text[:length] for length in range(len(text) + 1))
