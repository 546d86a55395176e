"""Free text that a grammar defines by hand, compared with what the parser reads.

Strategy: what is declared follows from the machine and cannot differ.  A definition written by hand may read less than
the parser (`TEXT: /[^@]+/`), and no symbol of the language shows it: to the automata, TEXT is one symbol.  So each
state that reads such text is entered by the shortest output that leads there, and texts are put in: every character at
the edge of a class in the definition or in what the machine implies, line ends, and every beginning of a marker.  If
the parser passes over the text, Lark must read the same message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from re import _constants, _parser
from typing import Any, NamedTuple

from lark.lexer import TerminalDef

from toolgram.check.languages import READ, edges_of, may_end, sample
from toolgram.check.reference import gist
from toolgram.check.sanity import place_of
from toolgram.check.symbols import parser_of_symbols
from toolgram.errors import ToolgramError
from toolgram.formats import Format
from toolgram.program.free_text import free_text
from toolgram.spec.data import TEXT, Literal, Spec, State, rows_of
from toolgram.spec.declarations import FREE_TEXT, short_name
from toolgram.spec.grammar_file import load_lark

_LETTERS = "xyzqjkvw"
_ALWAYS = ("\n", "\r\n", "\t", " ", "a", "Z", "_", "0", "é", "\U0001f388", '"', "'", "\\", "<", "{", "[")


def written_by_hand(spec: Spec) -> dict[str, list[TerminalDef]]:
    """Return the terminals of free text that the grammar or its imports define, by their short names."""
    found: dict[str, list[TerminalDef]] = {}
    for terminal in load_lark(spec.grammar_text, spec.grammar_path, spec.import_paths).terminals:
        if short_name(terminal.name) in FREE_TEXT:
            found.setdefault(short_name(terminal.name), []).append(terminal)
    return found


class _Place(NamedTuple):
    """The text of an output before and after some free text."""

    before: str
    after: str


def differences(fmt: Format, written: Mapping[str, Sequence[TerminalDef]]) -> Iterator[str]:
    """Yield the first text on which each definition that is `written` by hand and the parser differ, with its line."""
    spec = fmt.spec
    implied = free_text(spec) if written else {}
    for name, terminals in written.items():
        edges = [*_edges([*(each.pattern.to_regexp() for each in terminals), implied[name]])]
        states = [state for state in spec.states.values() if FREE_TEXT[name] in (state.meaning, state.typed)]
        problems = (problem for state in states for problem in _problems(fmt, state, terminals, edges))
        problem = next(problems, "")
        if problem:
            terminal = terminals[0].name if len(terminals) == 1 else name
            yield f"{place_of(spec, terminal)}: {terminal} {problem}; declare it: %declare {name}"


def _problems(fmt: Format, state: State, terminals: Sequence[TerminalDef], edges: Iterable[str]) -> Iterator[str]:
    """Yield what the definitions of one name read otherwise than the parser reads text in a state."""
    plain, place = _plain(fmt.spec), _place(fmt.spec, state)
    if place is None:
        return
    matches = [re.compile(each.pattern.to_regexp()).fullmatch for each in terminals]
    for each in dict.fromkeys([*_ALWAYS, *edges, *_beginnings(fmt.spec, state)]):
        text = f"{plain}{each}{plain}"
        if _differs(fmt, place, text, plain):
            if any(match(text) for match in matches):
                yield f"and the parser read different parts of {place.before + text + place.after!r}"
            else:
                yield f"does not read {text!r}, which the parser reads as text"
    text_row = rows_of(fmt.spec)[state.name].get(TEXT)
    for marker in _markers(fmt.spec, state) if text_row and text_row.dest == state.name else ():
        if all(match(plain + marker) for match in matches):
            yield f"reads {plain + marker!r}, in which the parser finds a marker"


def _plain(spec: Spec) -> str:
    """Return a letter with which no marker goes on."""
    markers = "".join(shape.text for shape in spec.terminals.values() if isinstance(shape, Literal))
    return next((letter for letter in _LETTERS if letter not in markers), _LETTERS[0])


def _differs(fmt: Format, place: _Place, text: str, plain: str) -> bool:
    """Return whether the parser passes over a text, and Lark reads another message than the parser."""
    output = place.before + text + place.after
    steps, message = _read(fmt, output)
    if steps != _read(fmt, place.before + plain + place.after)[0]:
        return False  # a marker for the parser
    try:
        return gist(fmt.reference_parse(output, prefix="")) != gist(message)
    except ToolgramError:
        return True


def _read(fmt: Format, output: str) -> tuple[list[tuple[str, str, str]], Any]:
    """Return the transitions that a parser makes, and its message."""
    steps: list[tuple[str, str, str]] = []
    parser = parser_of_symbols(fmt, trace=lambda step: steps.append(step[:3]))
    parser.feed(output)
    parser.close("stop")
    return steps, parser.message


def _place(spec: Spec, state: State) -> _Place | None:
    """Return the shortest output around free text in a state; None if no complete output has any there."""
    opening, closing = spec.notation if state.typed == "notated" else ("", "")
    start = state.name + READ if state.meaning == "value" else state.name
    rows = rows_of(spec)
    before = _words(spec, spec.initial).get(state.name)
    ways = _words(spec, start)
    after = next((word for name, word in ways.items() if name in rows and may_end(spec, rows, name)), None)
    if before is None or after is None:
        return None
    return _Place(_text(spec, before) + opening, closing + _text(spec, after))


def _text(spec: Spec, word: tuple[str, ...]) -> str:
    return "".join(sample(spec, symbol) for symbol in word)


def _words(spec: Spec, start: str) -> dict[str, tuple[str, ...]]:
    """Return the shortest word of symbols from a state to each other one, the nearest first."""
    rows = rows_of(spec)
    found: dict[str, tuple[str, ...]] = {start: ()}
    pending = [start]
    for name in pending:
        for symbol, dest in edges_of(spec, rows, name):
            if dest not in found:
                found[dest] = (*found[name], *([symbol] if symbol else []))
                pending.append(dest)
    return found


def _markers(spec: Spec, state: State) -> list[str]:
    shapes = [spec.terminals.get(trigger) for trigger in rows_of(spec)[state.name]]
    return [text for shape in shapes if isinstance(shape, Literal) for text in shape.texts]


def _beginnings(spec: Spec, state: State) -> Iterator[str]:
    """Yield the beginnings of the markers of a state, with no whole marker in them."""
    markers = _markers(spec, state)
    begun = (marker[:length] for marker in markers for length in range(1, len(marker)))
    return (text for text in begun if not any(marker in text for marker in markers))


def _edges(patterns: Iterable[str]) -> Iterator[str]:
    """Yield the characters that some expression treats in a way of their own, and their neighbours."""
    codes = {code + near for pattern in patterns for code in _codes(_parser.parse(pattern)) for near in (-1, 0, 1)}
    return (chr(code) for code in sorted(codes) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000)


def _codes(parsed: Any) -> Iterator[int]:
    """Yield the codes of the characters in a parsed expression, and those at the ends of its ranges."""
    pending: list[Any] = [parsed]
    while pending:
        part = pending.pop()
        if isinstance(part, tuple) and part[0] in (_constants.LITERAL, _constants.NOT_LITERAL):
            yield part[1]
        elif isinstance(part, tuple) and part[0] is _constants.RANGE:
            yield from part[1]
        elif isinstance(part, (tuple, list, _parser.SubPattern)):
            pending.extend(part)
