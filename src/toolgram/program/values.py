"""What ends the value of a tagged argument: expressions over its text, up to the marker that closes it.

Strategy: text may contain any marker.  A marker closes a value only if what must follow it does follow, or still may
(`look_ahead`).  A marker that fails this is text of the value, and is reported as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from toolgram.limits import MOST_BLANKS
from toolgram.program.expressions import End, Expression, firsts_of, may_begin, over_value
from toolgram.program.look_ahead import (
    NOTHING,
    Ways,
    again_pattern,
    look_ahead,
    look_ahead_for_argument,
    openers_ahead,
    partial_pattern,
)
from toolgram.program.state import PASSED, STRAY, Move, Program, StateProgram, Symbol, search_later
from toolgram.spec.data import Spec

_BLANK = r"[ \t\r\n]"
SURE_MARKER = 4  # characters: prose and code have shorter texts as well
_NO_WORD = "(?![A-Za-z0-9_-])"
_LINE_END = "(?:\r?\n)?"
_BRACKETS = "})]"
_CLOSING_BRACKETS = rf"(?:[}}\])]{_BLANK}{{0,{MOST_BLANKS}}}+){{0,16}}+"

Symbols = list[tuple[str, Symbol]]  # the markers of a state, with what each means there


class Ends(NamedTuple):
    """Expressions of the markers that end a value.

    `begun`: as far as one has come. `whole`: with what must follow it; `last`: the same at the end of the output, in
    which what follows the value's own marker may be cut off.
    `passed`: markers that end the value only if something else follows; `stray`: of these the value's own.
    """

    begun: list[str]
    whole: list[End]
    last: list[End]
    passed: list[tuple[End, Symbol]]
    stray: list[tuple[End, Symbol]]


def compile_value(spec: Spec, state: StateProgram, symbols: Symbols, home: StateProgram) -> None:
    """Write the searches of a state that reads a value: to the marker that ends it, or what may become one."""
    brackets = _CLOSING_BRACKETS if state.typed == "notated" else ""
    ends = _ends_of_value(spec, state, symbols, _LINE_END, brackets)
    if not symbols:
        return
    texts = [text for text, _ in symbols]
    if any(end.whole.startswith(_LINE_END) for end in ends.whole):
        texts += [line_end + text for line_end in ("\n", "\r\n") for text, _ in symbols]
    again = closers_of_value(state, symbols)
    openers = sorted(_openers_of_value(again) if again or state.echo else _sure_openers(spec, state, home))
    texts += openers
    if ends.passed:
        known = {*(text[0] for text in texts), *(_BRACKETS if brackets else "")}
        texts += _next_calls(spec, home, known, ends)
    pattern = again_pattern(again)
    state.again = Expression(lambda: pattern) if pattern else None
    if brackets:
        following = {*_BRACKETS, *" \t\r\n", *(text[0] for text in texts)}
        texts += [bracket + follows for bracket in _BRACKETS for follows in following]
    state.firsts = firsts_of(texts)
    search_later(state, "start", lambda: re.compile(may_begin(state.firsts)).search)
    _pass_openers(state, openers, again, ends)
    state.opens = frozenset(["", *_argument_openers(state, symbols, openers)])
    ends.passed.extend(ends.stray)
    state.symbols += [symbol for _, symbol in ends.passed]
    _search(state, ends)


def _next_calls(spec: Spec, home: StateProgram, known: set[str], ends: Ends) -> list[str]:
    """Return the openers of calls. After one of them with a name, no argument of the open call can begin."""
    found = []
    for trigger, text, (way, _, begun_way, _) in openers_ahead(spec, home):
        if text[0] in known:
            found.append(text)
            marker = re.escape(text)
            ends.begun.append(partial_pattern([text]))
            special = trigger in spec.special_tokens
            ends.passed.append((End(marker, marker + begun_way, marker + way), Symbol(trigger, PASSED, special)))
    return found


def _pass_openers(state: StateProgram, openers: list[str], again: list[str], ends: Ends) -> None:
    """Let a value hold markers that open what its own marker closes, or what begins a value."""
    sure = [text for text in state.before if again and text.startswith(tuple(openers))] if openers else []
    for opener in (*sure, *openers):
        marker = re.escape(opener)
        ends.begun.append(partial_pattern([opener]))
        if opener in sure or not again:
            ends.passed.append((End(marker, "", marker), Symbol("", STRAY)))
        else:
            ends.passed.append((End(marker, marker, marker + _NO_WORD), Symbol("", PASSED)))


def _argument_openers(state: StateProgram, symbols: Symbols, openers: list[str]) -> list[str]:
    """Return the triggers in a value that open what its closing marker closes."""
    arguments = {trigger for trigger, move in state.row.items() if move.dest.meaning == "argument_key"}
    opening = {text: symbol.trigger for text, symbol in symbols if symbol.trigger in arguments}
    return [trigger for text, trigger in opening.items() if not openers or text.startswith(tuple(openers))]


def _search(state: StateProgram, ends: Ends) -> None:
    firsts, passed = state.firsts, [end for end, _ in ends.passed]
    begun = [text for text in ends.begun if text]
    finals = [
        End(marker, "", f"(?:{whole}|{marker}(?={cut_off}\\Z))" if cut_off else whole)
        for marker, cut_off, whole in ends.last
    ]
    finals += [end._replace(partial="") for end in passed]
    plain = [end._replace(partial="") for end in (*ends.whole, *passed)]
    search_later(state, "find", lambda: over_value(firsts, begun, [*ends.whole, *passed]))
    search_later(state, "find_plain", lambda: over_value(firsts, (), plain))
    search_later(state, "find_final", lambda: over_value(firsts, (), finals))


def _ends_of_value(spec: Spec, state: StateProgram, symbols: Symbols, line_end: str = "", brackets: str = "") -> Ends:
    """Return what ends a value.

    A `line_end` before a marker that is not the value's own belongs to the marker; `brackets` may come before one that
    closes a call.
    """
    literals = {text for text, _ in symbols}
    again = closers_of_value(state, symbols)
    ends = Ends([], [], [], [], [])
    for text, symbol in symbols:
        move = state.row[symbol.trigger]
        lines = line_end if _takes_line_end(move, text, literals) else ""
        marker = (brackets or lines) + re.escape(text)
        begun = partial_pattern([text, *([f"\n{text}", f"\r\n{text}"] if lines else [])])
        ends.begun.append(f"{brackets}(?:{begun})?" if brackets else begun)
        _add_end(spec, state, (marker, text), symbol, literals, again, ends)
    return ends


def _takes_line_end(move: Move, text: str, literals: set[str]) -> bool:
    """Return whether a line end before a marker belongs to it: one that is not the value's own."""
    return "unclosed_value" in move.actions and not {"\n", f"\n{text}"} & literals and text[0] not in "\r\n"


def _add_end(
    spec: Spec,
    state: StateProgram,
    written: tuple[str, str],
    symbol: Symbol,
    literals: set[str],
    again: list[str],
    ends: Ends,
) -> None:
    """Add a marker (its expression, and its text) with what must follow it."""
    marker, text = written
    move = state.row[symbol.trigger]
    after = move.dest
    takes_terminals = any(trigger in spec.terminals and trigger != "WS" for trigger in after.row)
    next_argument = after.meaning == "argument_key" and bool({"unclosed_value", "unclosed_argument"} & {*move.actions})
    if next_argument or (move.repair and "end_call" in move.actions):
        ahead = look_ahead(spec, lambda ways: ways.to_value(after, ()) if next_argument else ways.closing(after, ()))
        ends.passed.append((End(marker, "", marker), Symbol(symbol.trigger, PASSED, symbol.special)))
    elif len(text.strip()) == 1 and after.meaning == "content" and Ways(spec).after_call(after, ()):
        ahead = look_ahead(spec, lambda ways: ways.after_call(after, ()) or NOTHING)
    elif after.meaning in ("content", "reasoning") or state.echo or not takes_terminals:
        ends.whole.append(End(marker, "", marker))
        ends.last.append(End(marker, "", marker))
        return
    else:
        own = text.lstrip("\r\n")
        ahead = look_ahead_for_argument(spec, after, again, len(own) < SURE_MARKER)
        if (own in again or len(own) >= SURE_MARKER) and (own == text or own not in literals):
            ends.stray.append((End(marker, "", marker), Symbol(symbol.trigger, STRAY, symbol.special)))
    ends.whole.append(End(marker, marker + ahead.partial, f"{marker}(?={ahead.whole})"))
    own_closer = not next_argument and not (move.repair and "end_call" in move.actions)
    ends.last.append(End(marker, ahead.partial if own_closer else "", f"{marker}(?={ahead.final})"))
    if ahead.names is not None:
        state.looks[symbol.trigger] = ahead.names


def closers_of_value(state: StateProgram, symbols: Symbols) -> list[str]:
    """Return the value's own closing markers, which a model may write twice."""
    if state.echo or "value_end" in state.row:
        return []
    moves = ((text, state.row[symbol.trigger]) for text, symbol in symbols)
    own = [text.lstrip("\r\n") for text, move in moves if not move.repair and move.dest.meaning is None]
    return [text for text in dict.fromkeys(own) if len(text) >= SURE_MARKER]


def _openers_of_value(closers: Iterable[str]) -> set[str]:
    """Return how markers begin that open what `closers` close: if one is in a value, the value may hold both."""
    return {opener for closer in closers if (opener := closer.replace("/", "", 1).rstrip(">")) != closer.rstrip(">")}


def _sure_openers(spec: Spec, state: StateProgram, home: StateProgram) -> set[str]:
    """Return the markers that begin a value, and those of calls, for a value without a closing marker of its own."""
    found = {*state.before, *(text for _, text, _ in openers_ahead(spec, home))}
    return {text for text in found if len(text) >= SURE_MARKER}


def value_ends(spec: Spec, program: Program, name: str) -> list[str]:
    """Return expressions of what ends a value in a state at the end of an output: what VALUE excludes."""
    state = program.states[name]
    ends = _ends_of_value(spec, state, list(zip(state.literals, state.symbols, strict=False)))
    return [end.whole for end in ends.last]
