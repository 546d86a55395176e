"""From a checked specification to an immutable program: per state, one regular expression and one transition row.

Strategy: everything that can be decided before the first character is decided here, once, and shared by all streams.
A state where free text may stand gets one expression that finds the next marker *or the longest suffix of the text
that may become one*; a state where a token must stand gets one expression that matches it.  The expressions are
alternations of fixed texts and bounded character runs, so their work per character is constant.
"""

from __future__ import annotations

import copyreg
import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from toolgram.events import Content, Reasoning
from toolgram.limits import MOST_BLANKS
from toolgram.program.expected import what_follows
from toolgram.program.expressions import (
    Beginnings,
    End,
    Expression,
    firsts_of,
    may_begin,
    over_text,
    over_value,
)
from toolgram.program.look_ahead import (
    Way,
    again_pattern,
    look_ahead,
    look_ahead_for_argument,
    look_ahead_for_value,
    name_ahead,
    openers_ahead,
    partial_pattern,
)
from toolgram.program.missed_markers import (
    BRACKETS,
    FENCE,
    find_closed_states,
    find_closing,
    find_closing_marks,
    find_element_ends,
    find_open_markers,
)
from toolgram.program.state import (
    ENVELOPE,
    INNER,
    OBJECT,
    PASSED,
    STRAY,
    TERMINAL,
    Move,
    Program,
    StateProgram,
    Symbol,
    search_later,
)
from toolgram.spec.as_json import dump_spec, load_spec
from toolgram.spec.data import TEXT, Literal, Run, Spec, is_json_trigger, without_repairs

_BLANK = r"[ \t\r\n]"
_SURE_MARKER = 4  # characters: what is shorter, and no special token, is found in prose and code as well


@lru_cache(maxsize=64)
def _recompiled(data: str, strict: bool) -> Program:
    """A program that was pickled, compiled once for all parsers that were pickled with it."""
    return compile_spec(load_spec(json.loads(data)), strict)


def _reduce(program: Program) -> tuple[Any, ...]:
    assert program.spec is not None
    return _recompiled, (json.dumps(dump_spec(program.spec)), program.strict)


copyreg.pickle(Program, _reduce)


def compile_spec(spec: Spec, strict: bool = False) -> Program:
    """Compile a specification, for strict parsers without its repairs, to what never changes. Takes milliseconds."""
    if strict:
        spec = without_repairs(spec)
    states = {
        name: StateProgram(name, state.meaning, state.held, state.python, state.typed, state.echo, state.encoded)
        for name, state in spec.states.items()
    }
    for transition in spec.transitions:
        actions = tuple(action for action in transition.actions if action != DECLARED_NAME)
        only_declared = len(actions) < len(transition.actions)
        move = Move(transition.trigger, states[transition.dest], actions, transition.repair, only_declared)
        states[transition.source].row[transition.trigger] = move
    for transition in spec.transitions:
        shape, state = spec.terminals.get(transition.trigger), states[transition.dest]
        if isinstance(shape, Literal) and state.meaning in ("name", "argument_key", "value"):
            state.before = (*state.before, *shape.texts)
    keys = [state.before for state in states.values() if state.meaning == "argument_key" and state.before]
    for state in states.values():
        if state.echo:
            state.around_key = (keys[0][0], state.before[0])
        state.before = tuple(text for text in state.before if len(text) > 1 and not text.isalnum())
        _compile_state(spec, state, states[spec.initial])
    _find_bare(spec, states.values())
    if not strict:
        _find_entering_markers(spec, states)
    literals = {name: terminal.text for name, terminal in spec.terminals.items() if isinstance(terminal, Literal)}
    special = {name: literals[name] for name in spec.special_tokens}
    closers = _closers(spec, states)
    for state in states.values():
        if state.is_text and "start_map item" not in state.row:
            announcing = (trigger for trigger, move in state.row.items() if "start_map item" in move.dest.row)
            state.announces = next((trigger for trigger in announcing if trigger in literals), "")
    find_open_markers(spec, states)
    find_closed_states(spec, states)
    marks = find_closing_marks(spec, states, literals, strict)
    inner = {literals[name].strip(): Symbol(name, INNER, name in spec.special_tokens) for name in marks.inner}
    surplus = inner | closers
    endings = tuple({*surplus, *marks.ends})
    return Program(
        states[spec.initial],
        states[spec.final],
        states,
        spec.same_path,
        spec.python_json,
        spec.loose_python,
        literals,
        special,
        {} if strict else closers,
        spec.notation,
        spec.turn_start,
        spec.turn_end,
        spec.generation_prompt,
        frozenset(spec.stop or ()),
        spec,
        strict,
        find_closing(spec, states.values()),
        frozenset(spec.unproven_types),
        frozenset(() if strict else spec.wrapped),
        markers := tuple(text for name, text in literals.items() if _is_marker(spec, name, text)),
        in_no_name := tuple(marker.strip() for marker in markers if not _is_word(marker.strip())),
        frozenset(marker[0] for marker in in_no_name),
        spec.line_calls != "",
        spec.namespaced_names and not strict,
        {} if strict else surplus,
        max(map(len, endings), default=0),
        () if strict else endings,
        marks.sections,
        marks.fences,
        marks.thought_ends,
        find_element_ends(spec, states.values()),
    )


DECLARED_NAME = "declared_name"


def _closers(spec: Spec, states: Mapping[str, StateProgram]) -> dict[str, Symbol]:
    """What is a surplus closer directly behind a call: brackets, a fence, and the markers that lead out of a call.

    A marker that stands in text everywhere leads out of a call only where it is a special token.
    """
    moves = [(name, move) for name, state in states.items() for move in state.row.values()]
    calls = [move for _, move in moves if "end_call" in move.actions]
    markers = [
        (name, move)
        for name, move in moves
        if isinstance(spec.terminals.get(move.trigger), Literal)
        and move.dest.meaning == "content"
        and move.trigger not in (spec.stop or ())
        and (move.trigger in spec.special_tokens or move.trigger not in states[spec.initial].row)
    ]
    behind: set[str] = set()
    grown = {move.dest.name for move in calls}
    while grown - behind:
        behind |= grown
        grown = {move.dest.name for name, move in moves if name in behind and move.trigger == "end_array"}
        inner = [(name, move) for name, move in markers if move.trigger not in states[spec.initial].row]
        grown |= {move.dest.name for name, move in inner if name in behind}
    closers = {text: Symbol("", TERMINAL) for text in (*BRACKETS, FENCE)}
    for state in states.values():
        if state.meaning == "value":
            symbols = list(zip(state.literals, state.symbols, strict=False))
            closers |= dict.fromkeys(_closers_of_value(state, symbols), Symbol("", TERMINAL))
    for name, move in markers:
        shape = spec.terminals[move.trigger]
        if isinstance(shape, Literal) and shape.text not in BRACKETS and (name in behind or move in calls):
            symbol = Symbol(move.trigger, TERMINAL, move.trigger in spec.special_tokens)
            closers |= dict.fromkeys(shape.texts, symbol)
    return closers


_is_word = re.compile(r"[\w.:-]*").fullmatch


def _is_marker(spec: Spec, name: str, text: str) -> bool:
    return name in spec.special_tokens or len(text) >= _SURE_MARKER


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
    markers = (
        f"(?P<partial>(?:{partial})\\Z)|(?P<marker>{'|'.join(map(re.escape, state.literals))})|" if partial else ""
    )
    if state.is_text or state.meaning == "malformed":
        state.brackets = re.compile(markers + r"""(?P<bracket>["'{}\[\](),])""")
    if state.loops:
        _compile_text(spec, state, alternatives)
    elif state.meaning == "value":
        _compile_value(spec, state, alternatives, home)
    elif state.meaning != "malformed":
        groups = [f"({re.escape(text)})" for text, _ in alternatives]
        for shape in shapes:
            if isinstance(shape, Run):
                groups.append(f"((?>{shape.pattern}))")
                state.symbols.append(Symbol(shape.name, TERMINAL, most=shape.most))
        state.match = re.compile("|".join(groups) or r"(?!)").match
    strict_first = sorted(state.row, key=lambda trigger: state.row[trigger].repair)
    state.why = what_follows(spec, strict_first)


def _compile_text(spec: Spec, state: StateProgram, symbols: list[tuple[str, Symbol]]) -> None:
    """The expressions of a state in which text goes on: over text, to the next symbol or what may become one."""
    state.event = Reasoning if state.meaning == "reasoning" else Content
    state.firsts = firsts = firsts_of(text for text, _ in symbols)
    if not firsts:
        state.find = state.find_final = re.compile(r"[\s\S]*+").match
        return
    state.start = re.compile(may_begin(firsts)).search
    partials = [partial_pattern(state.literals)]
    whole: list[str] = []
    for text, symbol in symbols:
        opening = re.escape(text)
        name = _name_ahead(spec, state, symbol) if len(text) < _SURE_MARKER else None
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


def _compile_value(spec: Spec, state: StateProgram, symbols: list[tuple[str, Symbol]], home: StateProgram) -> None:
    """The expressions of a tagged value: over its text, to the marker that ends it, or what may become one."""
    brackets = _CLOSINGBRACKETS if state.typed == "notated" else ""
    ends = _ends_of_value(spec, state, symbols, _LINE_END, brackets)
    if not symbols:
        return
    texts = [text for text, _ in symbols]
    if any(end.whole.startswith(_LINE_END) for end in ends.whole):
        texts += [line_end + text for line_end in ("\n", "\r\n") for text, _ in symbols]
    again = _closers_of_value(state, symbols)
    openers = sorted(_openers_of_value(again) if again or state.echo else _sure_openers(spec, state, home))
    texts += openers
    known = {*(text[0] for text in texts), *(_CLOSERS if brackets else "")}
    if ends.passed:  # the opener of another call: behind it, no argument of this one can begin
        for trigger, text, (way, _, begun_way) in openers_ahead(spec, home):
            if text[0] in known:
                texts.append(text)
                marker = re.escape(text)
                ends.begun.append(partial_pattern([text]))
                ends.passed.append((End(marker, marker + begun_way, marker + way), Symbol(trigger, PASSED)))
    pattern = again_pattern(again)
    state.again = Expression(lambda: pattern) if pattern else None
    if brackets:
        behind = {*_CLOSERS, *" \t\r\n", *(text[0] for text in texts)}
        texts += [closer + follows for closer in _CLOSERS for follows in behind]
    state.firsts = firsts = firsts_of(texts)
    state.start = re.compile(may_begin(firsts)).search
    sure = [text for text in state.before if again and text.startswith(tuple(openers))] if openers else []
    for opener in (*sure, *openers):
        marker = re.escape(opener)
        ends.begun.append(partial_pattern([opener]))
        if opener in sure or not again:
            ends.passed.append((End(marker, "", marker), Symbol("", STRAY)))
        else:
            ends.passed.append((End(marker, marker, marker + _NO_WORD), Symbol("", PASSED)))
    arguments = {trigger for trigger, move in state.row.items() if move.dest.meaning == "argument_key"}
    opening = {text: symbol.trigger for text, symbol in symbols if symbol.trigger in arguments}
    opens = [trigger for text, trigger in opening.items() if not openers or text.startswith(tuple(openers))]
    state.opens = frozenset(["", *opens])
    ends.passed.extend(ends.stray)
    state.symbols += [symbol for _, symbol in ends.passed]
    passed = [end for end, _ in ends.passed]
    begun = [text for text in ends.begun if text]
    finals = [end._replace(partial="") for end in (*ends.last, *passed)]
    search_later(state, "find", lambda: over_value(firsts, begun, [*ends.whole, *passed]))
    search_later(state, "find_final", lambda: over_value(firsts, (), finals))


class _EndsOfValue(NamedTuple):
    """Expressions of the markers that end a value: as far as one has begun, with what must follow it, the same at the
    end of the output; those that end it if something else follows, and of these the value's own."""

    begun: list[str]
    whole: list[End]
    last: list[End]
    passed: list[tuple[End, Symbol]]
    stray: list[tuple[End, Symbol]]


_NO_WORD = "(?![A-Za-z0-9_-])"
_LINE_END = "(?:\r?\n)?"
_CLOSERS = "})]"
_CLOSINGBRACKETS = rf"(?:[}}\])]{_BLANK}{{0,{MOST_BLANKS}}}+){{0,16}}+"


def _ends_of_value(
    spec: Spec, state: StateProgram, symbols: list[tuple[str, Symbol]], line_end: str = "", brackets: str = ""
) -> _EndsOfValue:
    """What ends a value. Text may contain the marker. So it counts only where what follows it (blanks aside) is what
    must follow it there, or may still become that. A `line_end` in front of a marker that is not the value's own
    belongs to the marker; `brackets` may stand before one that closes a call."""
    literals = [text for text, _ in symbols]
    again = _closers_of_value(state, symbols)
    ends = _EndsOfValue([], [], [], [], [])
    for text, symbol in symbols:
        move = state.row[symbol.trigger]
        after = move.dest
        foreign = "unclosed_value" in move.actions
        lines = foreign and not {"\n", f"\n{text}"} & {*literals} and text[0] not in "\r\n"
        marker = brackets or (line_end if lines else "")
        marker += re.escape(text)
        begun = partial_pattern([text, *([f"\n{text}", f"\r\n{text}"] if lines and line_end else [])])
        ends.begun.append(f"{brackets}(?:{begun})?" if brackets else begun)
        next_argument = after.meaning == "argument_key" and foreign
        if next_argument or (move.repair and "end_call" in move.actions):
            ahead = look_ahead_for_value(spec, after) if next_argument else look_ahead(spec, after)
            ends.passed.append((End(marker, "", marker), Symbol(symbol.trigger, PASSED, symbol.special)))
        elif after.meaning in ("content", "reasoning") or state.echo or not _takes_terminals(spec, after):
            ends.whole.append(End(marker, "", marker))
            ends.last.append(End(marker, "", marker))
            continue
        else:
            ahead = look_ahead_for_argument(spec, after, again)
            own = text.lstrip("\r\n")
            if (own in again or len(own) >= _SURE_MARKER) and (own == text or own not in literals):
                ends.stray.append((End(marker, "", marker), Symbol(symbol.trigger, STRAY, symbol.special)))
        ends.whole.append(End(marker, marker + ahead.partial, f"{marker}(?={ahead.whole})"))
        ends.last.append(End(marker, "", f"{marker}(?={ahead.final})"))
        if ahead.names is not None:
            state.looks[symbol.trigger] = ahead.names
    return ends


def _closers_of_value(state: StateProgram, symbols: list[tuple[str, Symbol]]) -> list[str]:
    """The value's own closing markers, as they may stand behind one of them once more."""
    if state.echo or "value_end" in state.row:
        return []
    moves = ((text, state.row[symbol.trigger]) for text, symbol in symbols)
    own = [text.lstrip("\r\n") for text, move in moves if not move.repair and move.dest.meaning is None]
    return [text for text in dict.fromkeys(own) if len(text) >= _SURE_MARKER]


def _openers_of_value(closers: Iterable[str]) -> set[str]:
    """How markers begin that open what `closers` close: where one stands in a value, the value may hold both."""
    return {opener for closer in closers if (opener := closer.replace("/", "", 1).rstrip(">")) != closer.rstrip(">")}


def _sure_openers(spec: Spec, state: StateProgram, home: StateProgram) -> set[str]:
    """Where a value has no closing marker of its own: the markers behind which one begins, and those of calls."""
    found = {*state.before, *(text for _, text, _ in openers_ahead(spec, home))}
    return {text for text in found if len(text) >= _SURE_MARKER}


def _takes_terminals(spec: Spec, state: StateProgram) -> bool:
    return any(trigger in spec.terminals and trigger != "WS" for trigger in state.row)


def value_ends(spec: Spec, program: Program, name: str) -> list[str]:
    """Expressions of what ends a value in a state, at the end of an output: what a grammar's VALUE excludes."""
    state = program.states[name]
    ends = _ends_of_value(spec, state, list(zip(state.literals, state.symbols, strict=False)))
    return [end.whole for end in ends.last]


def _follow(spec: Spec, state: StateProgram, symbol: Symbol) -> tuple[int, str]:
    """What must come after a symbol, and after how many blanks at most, for it to begin a call; "" where that is open.

    Prose is full of brackets. The expression that finds one sees at once that it begins no call, where otherwise a held
    call would begin, and the next character would reject it.
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
    """The way to the name of a call and on, where prose has such a symbol as well and no other way leads on."""
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
