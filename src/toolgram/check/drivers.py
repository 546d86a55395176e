"""Two drivers, one behaviour: the compiled table against the real `transitions` machine and Lark's own parser.

Strategy: walk all sequences of symbols that the machine takes, up to a length, feeding each symbol's text to a parser
and its triggers to the `transitions` machine, and compare every transition, with source and destination.  If the
grammar is LALR, Lark's interactive parser must take the same tokens and be able to end at the same places.  If the
output may end there, the message is compared with Lark's reading of the text, and every character accounted for.
The triggers of an embedded JSON object are those that ijson itself gives for its text.

The shortest sequences come first, so a place that was reached before, with the same states on both sides, had at
least as many symbols to go.  It has the same future and is not walked again: that makes the bounded walk exhaustive in
seconds.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ijson

from toolgram.check.languages import ARGUMENTS, LIST, OBJECT, VALUE, WS, may_end, samples
from toolgram.check.reference import ReferenceMachine, gist, may_end_here
from toolgram.check.symbols import parser_of_symbols
from toolgram.errors import ToolgramError
from toolgram.formats import Format
from toolgram.runtime.following import goes_on
from toolgram.spec.data import END, TEXT, Literal, Run, Transition

Step = tuple[str, str, str]


@dataclass(slots=True)
class Replay:
    """What a walk has done: sequences followed, places compared, and the first disagreement."""

    length: int
    sequences: int = 0
    messages: int = 0
    problem: str = ""


@dataclass(slots=True)
class _Place:
    state: str  # of the transitions machine
    due: tuple[Step, ...]  # transitions it made and the parser has not yet
    snapshot: dict[str, Any]
    text: str
    symbols: tuple[str, ...]


def replay(fmt: Format, length: int = 6) -> Replay:
    """Walk all symbol sequences up to `length` through both drivers; stops at the first disagreement."""
    fmt, spec = fmt.with_all_markers(), fmt.spec
    result = Replay(length)
    machine = fmt.reference_machine()
    texts = {name: [shape.text] for name, shape in spec.terminals.items() if isinstance(shape, Literal)}
    texts.update({name: values for name, values in samples(spec).items() if name not in texts})
    seen: set[str] = set()
    to_walk = deque([_Place(spec.initial, (), parser_of_symbols(fmt).snapshot(), "", ())])
    while to_walk and not result.problem:
        place = to_walk.popleft()
        key = json.dumps([place.state, place.due, _future(place.snapshot)])
        if key in seen:
            continue
        seen.add(key)
        if may_end(spec, machine.rows, place.state):
            _compare_end(fmt, place, result)
        if len(place.symbols) == length:
            continue
        for symbol, values in texts.items():
            for text in values:
                if not result.problem:
                    to_walk += _follow(fmt, machine, texts, place, symbol, text, result)
    return result


def _future(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return what of a snapshot decides the future, and whether there was a call, or more than one.

    Ids and places do not, nor, as every marker counts, does the code that is open. Of what is held, the kinds of its
    events do.
    """
    counters = ("count", "index", "has", "gap", "open_call", "id", "unclosed_call", "offset", "code", "digest")
    decides = {name: value for name, value in snapshot.items() if name not in counters}
    held = [f"{event['type']} {event.get('why')}" for event in snapshot["held"] or ()]
    return {**decides, "count": min(snapshot["count"], 2), "held": snapshot["held"] and list(dict.fromkeys(held))}


def steps(fmt: Format, machine: ReferenceMachine, state: str, symbol: str, text: str) -> tuple[list[Step], str] | None:
    """Return the transitions that the reference machine makes from `state` for a symbol, and where they end.

    None if the machine does not take the symbol there. `text` is the symbol's text; it decides which events of an
    embedded value there are. Transitions by which text stays where it is are not listed.
    """
    rows = machine.rows
    begins = rows[state].get("object_start")
    if symbol == ARGUMENTS and begins is not None and fmt.spec.states[begins.dest].python != text.startswith("("):
        return None
    made: list[Step] = []
    for given in _triggers(fmt, rows, state, symbol, text):
        trigger = given if given in rows[state] else _plain(given)
        if fmt.spec.states[state].meaning == "value" and trigger in rows[state] and rows[state][trigger].repair:
            return None  # such a marker counts by what follows it
        if trigger not in rows[state] or (trigger == TEXT and fmt.spec.states[state].held):
            return None
        machine.set_state(state)
        machine.trigger(trigger)
        if trigger != TEXT or machine.state != state:
            made.append((trigger, state, machine.state))
        state = machine.state
    closing = rows[state].get("end_array")
    if symbol == OBJECT and closing:  # a bare object is read as the one item of a list
        made.append(("end_array", state, closing.dest))
        state = closing.dest
    return made, state


def _follow(
    fmt: Format,
    machine: ReferenceMachine,
    texts: dict[str, list[str]],
    place: _Place,
    symbol: str,
    text: str,
    result: Replay,
) -> Iterator[_Place]:
    """Yield the place after one more symbol, if the machine takes it there."""
    if symbol in (WS, VALUE) and place.symbols[-1:] == (symbol,):
        return  # two blanks are one run, and two values one
    if VALUE not in (symbol, *place.symbols[-1:]) and fmt.spec.states[place.state].meaning == "value":
        return  # what ends a value follows one
    if symbol == TEXT and begins_a_run(fmt, machine.rows[place.state], text):
        return  # it begins like a name, which is possible there, and is text only if it turns out not to be a name
    if _goes_on(fmt, texts, place, text):
        return
    taken = steps(fmt, machine, place.state, symbol, text)
    if taken is None:
        return
    due, state = taken
    fired: list[Step] = []
    parser = fmt.restore(place.snapshot, call_ids=str)
    parser.trace_to(lambda step: fired.append(step[:3]))
    parser.feed(text)
    result.sequences += 1
    expected = [*place.due, *due]
    symbols = (*place.symbols, symbol)
    if fmt.spec.parser == "lalr":
        problem = _lark_disagreement(fmt, place.text + text, may_end(fmt.spec, machine.rows, state))
        if problem:
            result.problem = problem
            return
    if fired != expected[: len(fired)]:
        result.problem = _disagreement(symbols, place.text + text, expected, fired)
        return
    yield _Place(state, tuple(expected[len(fired) :]), parser.snapshot(), place.text + text, symbols)


def _goes_on(fmt: Format, texts: dict[str, list[str]], place: _Place, text: str) -> bool:
    """Return whether a text goes on with the symbol before it and is not a symbol of its own: with a run, a shorter
    marker, a Python call with which an expression begins, or an object in which a string goes on."""
    before = place.symbols[-1] if place.symbols else ""
    last = fmt.spec.terminals.get(before)
    if isinstance(last, Run):
        return re.match(rf"(?:{last.pattern})\Z", texts[before][0] + text[:1]) is not None
    if isinstance(last, Literal):
        return _merges(fmt, last, text)
    return before == ARGUMENTS and (text.startswith(("(", "[")) if place.text.endswith(")") else bool(goes_on(text, 0)))


def _merges(fmt: Format, last: Literal, text: str) -> bool:
    """Return whether a marker and the text after it are the beginning of a longer marker, which wins."""
    markers = [shape.text for shape in fmt.spec.terminals.values() if isinstance(shape, Literal)]
    longer = [marker for marker in markers if marker.startswith(last.text) and marker != last.text]
    return any((last.text + text).startswith(marker) for marker in longer)


def begins_a_run(fmt: Format, row: dict[str, Transition], text: str) -> bool:
    """Return whether a text begins like a run that a state looks for, blanks aside."""
    shapes = [fmt.spec.terminals[trigger] for trigger in row if trigger in fmt.spec.terminals and trigger != WS]
    return any(isinstance(shape, Run) and re.match(shape.first, text) for shape in shapes)


def _lark_disagreement(fmt: Format, text: str, ends: bool) -> str:
    try:
        lark_ends = may_end_here(fmt.spec, fmt.reference_grammar, text)
    except ToolgramError as error:
        return f"the machine takes {text!r}, and Lark does not: {error}"
    if lark_ends == ends:
        return ""
    return f"after {text!r} an output {'may' if ends else 'may not'} end for the machine, and the other way for Lark"


def _compare_end(fmt: Format, place: _Place, result: Replay) -> None:
    fired: list[Step] = []
    parser = fmt.restore(place.snapshot, call_ids=str)
    parser.trace_to(lambda step: fired.append(step[:3]))
    parser.close("stop")
    expected = [*place.due, (END, place.state, fmt.spec.final)]
    if fired != expected:
        result.problem = _disagreement((*place.symbols, END), place.text, expected, fired)
        return
    whole = parser_of_symbols(fmt)
    events = [*whole.feed(place.text), *whole.close("stop")]
    if "".join(event.source for event in events) != place.text:
        result.problem = f"the events of {place.text!r} do not give the text back"
        return
    try:
        reference = fmt.reference_parse(place.text, prefix="")
    except ToolgramError as error:
        result.problem = f"the machine takes {place.text!r}, and Lark does not: {error}"
        return
    if gist(reference) != gist(whole.message):
        result.problem = f"Lark reads {place.text!r} as {gist(reference)}, the parser as {gist(whole.message)}"
    result.messages += 1


def _disagreement(symbols: tuple[str, ...], text: str, expected: list[Step], fired: list[Step]) -> str:
    at = next((at for at, step in enumerate(fired) if [step] != expected[at : at + 1]), len(fired))
    wanted = " ".join(expected[at]) if at < len(expected) else "nothing"
    found = " ".join(fired[at]) if at < len(fired) else "nothing"
    return f"after {' '.join(symbols)} ({text!r}) transitions makes {wanted}, the parser {found}"


def _triggers(fmt: Format, rows: dict[str, dict[str, Transition]], state: str, symbol: str, text: str) -> Iterator[str]:
    """Yield the triggers that the text of a symbol stands for."""
    if symbol == ARGUMENTS:
        if text == "()" and "object_empty" in rows[state]:
            yield "object_empty"
        else:
            yield from ("object_start", "object_end")
    elif symbol == VALUE:
        if fmt.spec.states[state].meaning != "value":
            yield VALUE  # which no state takes
        elif "value_end" in rows[state]:
            yield "value_end"
    elif symbol in (OBJECT, LIST):
        yield from _json_triggers(fmt, text if symbol == LIST else f"[{text}]", symbol == LIST)
    else:
        yield symbol


def _json_triggers(fmt: Format, text: str, in_list: bool) -> Iterator[str]:
    """Yield ijson's events as triggers, arguments as one value."""
    same, states = fmt.spec.same_path, fmt.spec.states
    arguments = {t.trigger for t in fmt.spec.transitions if states[t.dest].meaning == "arguments"}
    if any(t.trigger == "map_key item.*" for t in fmt.spec.transitions):
        same = {"item.f": "item.*", **same}
    inside = ""
    for prefix, event, value in ijson.parse(text.encode()):
        path = same.get(prefix, prefix)
        if inside:
            if prefix != inside or event != "end_map":
                continue
            inside = ""
        if event in ("start_array", "end_array"):
            if in_list:
                yield event
        elif event == "map_key":
            member = f"{prefix}.{value}"
            yield f"map_key {same.get(member, member)}"
        elif event == "string":
            yield f"string {path} {value}"
        else:
            yield f"{event} {path}"
            if f"{event} {path}" in arguments and event == "start_map":
                inside = prefix


def _plain(trigger: str) -> str:
    """Return `string item.name f` without its value, and any other trigger as it is."""
    return " ".join(trigger.split(" ", 2)[:2]) if trigger.startswith("string ") else trigger
