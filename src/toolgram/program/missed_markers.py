"""Closing markers behind a call that may be missed: in which states one is still to come, and what comes instead of it.

Strategy: what a format's own examples always have behind their calls, it misses where it does not come.  A marker that
leads on from a state is missed before whatever else leads on from there; one that stays in the state (each call in a
section has it) is owed by each call.  A marker that may be missing, or that stands in text as well, is owed only where
its opening marker has come: a fence, the tag behind a list.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Set
from typing import TYPE_CHECKING, NamedTuple

from toolgram.spec.data import END, TEXT, UNCLOSED, Literal, Spec

if TYPE_CHECKING:
    from toolgram.program.state import StateProgram

BRACKETS, FENCE = "}])", "```"
_LONG = 4  # characters: what is shorter stands in prose and in code as well
_CLOSING_WORDS = (("end", "begin"), ("end", "start"), ("close", "open"))
_CALLS = frozenset({"start_call", "end_call"})


def find_unclosed(spec: Spec, states: Mapping[str, StateProgram], closers: Collection[str]) -> frozenset[str]:
    """See in which states behind a call a closing marker is still to come, and which triggers come instead of it. The
    triggers that begin a call between such markers, and without them.

    Only a marker that the format's own examples have is missed, and none that may stand in text, or end the turn.
    """
    initial = states[spec.initial]
    said = spec.machine_dict.get("format", {}).get("canonical") or ()
    texts = [spec.example, *(each.get("output", "") if isinstance(each, dict) else each for each in said)]
    begins = {
        trigger: move.dest
        for trigger, move in initial.row.items()
        if not move.repair
        and not move.dest.loops
        and not any(each.dest.meaning == "reasoning" for each in move.dest.row.values())
    }
    texts_of = {name: shape.text for name, shape in spec.terminals.items() if isinstance(shape, Literal)}
    moves = [move for state in states.values() for move in state.row.values()]
    names = {move.trigger for move in moves if move.dest.meaning == "name" and not move.repair}
    markers = [text for name, text in texts_of.items() if name in (names & {*texts_of} or begins)]
    examples = [text for text in texts if isinstance(text, str) and any(marker in text for marker in markers)]
    triggers = {
        name
        for name, text in texts_of.items()
        if text in closers and text not in (*BRACKETS, FENCE) and name not in {*(spec.stop or ()), *initial.row}
        and examples and all(text in example for example in examples)
    }  # fmt: skip
    closed: list[StateProgram] = []
    sure = [(opened, move) for opened in begins.values() for move in opened.row.values() if not move.repair]
    ways = {(move.trigger, move.dest.name) for opened, move in sure if move.dest is not opened}
    for state in _behind_calls(states, triggers):
        begin = [text for name, text in texts_of.items() if name in state.row and state.row[name].dest.held]
        state.owed = frozenset(
            trigger
            for trigger in triggers & state.row.keys()
            if state.row[trigger].dest is state
            and all(example.count(texts_of[trigger]) >= example.count(text) for example in examples for text in begin)
        )
        owed = {trigger for trigger in triggers & state.row.keys() if state.row[trigger].dest is not state}
        if not owed or state.loops or UNCLOSED in state.row:
            continue
        inner = {trigger for trigger, move in state.row.items() if (trigger, move.dest.name) in ways}
        inner |= {  # what the examples have more often than what closes all of it
            name
            for name in texts_of.keys() & state.row.keys()
            if any(text.count(texts_of[name]) > max(text.count(texts_of[each]) for each in owed) for text in examples)
        }
        inner |= {  # what separates calls: behind it the next one begins as the first one does behind the marker
            trigger
            for trigger, move in state.row.items()
            if not move.repair and trigger not in initial.row and _ways(move.dest) and _ways(move.dest) <= ways
        }
        others = {trigger for trigger, move in state.row.items() if move.dest is not state}
        others -= {name for name, text in texts_of.items() if text in closers}
        state.unclosed = frozenset(others - (inner - {TEXT, END, *(spec.stop or ())}))
        closed += (state.row[trigger].dest for trigger in owed)
    entered = {move.dest.name for move in moves if "end_call" in move.actions and move.trigger not in texts_of}
    for state in closed:
        state.closed = not state.unclosed and state.name not in entered
    for state in states.values():
        if state.owed:
            state.instead = {trigger: state.owed for trigger, move in state.row.items() if move.dest is not state}
    may_close = {name for name, text in texts_of.items() if text in closers and text not in BRACKETS}
    may_close -= triggers | {*(spec.stop or ())}
    may_be_cut = spec.stop is None  # what ends text as well may end the turn, and servers cut that off
    _find_pairs(states, texts_of, examples, may_close, initial.row.keys(), may_be_cut)
    inside = {trigger for opened in begins.values() for trigger, move in opened.row.items() if move.dest is not opened}
    return frozenset(inside & initial.row.keys() - {TEXT, END, *(spec.stop or ())})


def _find_pairs(
    states: Mapping[str, StateProgram],
    texts_of: Mapping[str, str],
    examples: list[str],
    closers: Set[str],
    in_text: Set[str],
    may_be_cut: bool,
) -> None:
    """See which opening markers the examples always close behind the call, by which of these closers, and what comes
    instead of one. Those that stand `in_text` as well `may_be_cut` off at the end of the output."""
    rows = [(state, move) for state in states.values() for move in state.row.values()]
    said = _markers(texts_of, examples)
    met = {name for each in said for name in each}
    leads = {(move.trigger, _leads_to_calls(move.dest)) for _, move in rows if move.trigger in met and not move.repair}
    openers = {trigger for trigger, alone in leads if alone and (trigger, False) not in leads}
    ahead = {move.trigger for state, move in rows if state.held or move.dest.held}
    ending = {move.trigger for _, move in rows if "end_call" in move.actions and not move.repair}
    either = {  # of two markers that close alike, neither is missed
        one
        for state in states.values()
        for one in met.intersection(closers) & state.row.keys()
        for other in state.row.keys() & closers - in_text
        if other != one and state.row[one].dest is state.row[other].dest is not state and not state.held
    }
    found, inner = _pairs(said, openers, met.intersection(closers) - ahead - ending - either)
    for state in states.values():
        if state.held or state.meaning not in (None, "content"):
            continue
        instead: dict[str, frozenset[str]] = {**state.instead}
        for closer, inside in inner.items():
            for trigger, move in state.row.items() if closer in state.row else ():
                leads_on = move.dest is not state or trigger == TEXT
                marker = len(texts_of.get(trigger, "")) > 1 or trigger in (TEXT, END)
                own = trigger == closer or trigger in inside or (may_be_cut and trigger == END and closer in in_text)
                if leads_on and marker and not own:
                    instead[trigger] = instead.get(trigger, frozenset()) | {closer}
        state.instead = instead
    for _, move in rows:
        if move.trigger in found:
            move.opens = frozenset({found[move.trigger]})


def _markers(texts_of: Mapping[str, str], examples: list[str]) -> list[list[str]]:
    """The names of the markers in each example, in order."""
    names = {text: name for name, text in texts_of.items() if len(text) > 1}
    marker = re.compile("|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"(?!)")
    return [[names[found.group()] for found in marker.finditer(example)] for example in examples]


def _leads_to_calls(state: StateProgram) -> bool:
    """Whether nothing but a call follows, or what is none after all."""
    if not state.held:
        return False
    seen: set[str] = set()
    pending = [state]
    while pending:
        state = pending.pop()
        if state.loops or state.meaning == "reasoning":
            return False
        if state.held and state.name not in seen:
            seen.add(state.name)
            pending += [
                move.dest
                for move in state.row.values()
                if move.trigger != TEXT and not move.repair and not _CALLS.intersection(move.actions)
            ]
    return True


def _pairs(
    said: list[list[str]], openers: Collection[str], closers: Collection[str]
) -> tuple[dict[str, str], dict[str, set[str]]]:
    """The openers that the same closer always follows before they come again, each with that; and what stands between
    them, by the closer. Where one such opener always follows another, only the last counts."""
    stretches: dict[tuple[str, str], list[set[str]]] = {}
    for opener in sorted(openers):
        for closer in sorted(closers):
            found = [_between(each, opener, closer) for each in said]
            if opener != closer and None not in found:
                stretches[opener, closer] = [each for some in found for each in some or ()]
    pairs: dict[str, str] = {}
    inner: dict[str, set[str]] = {}
    for (opener, closer), between in stretches.items():
        always = set.intersection(*between)
        if opener not in pairs and not any((other, closer) in stretches for other in always):
            pairs[opener] = closer
            inner.setdefault(closer, set()).update(*between)
    return pairs, inner


def _between(said: list[str], opener: str, closer: str) -> list[set[str]] | None:
    """What stands between each opener and its closer; None where one is not closed before the next one."""
    found: list[set[str]] = []
    is_open = False
    for name in said:
        if is_open and name == opener:
            return None
        if is_open and name != closer:
            found[-1].add(name)
        if name == opener:
            found.append(set())
        is_open = name != closer and (is_open or name == opener)
    return None if is_open else found


def find_closing(spec: Spec, states: Iterable[StateProgram]) -> frozenset[str]:
    """The markers that close a call: from behind one, or from what is left of one, they lead to text and begin nothing.
    A token that ends the turn is none."""
    rows = [(state, trigger, move.dest) for state in states for trigger, move in state.row.items()]
    texts = {trigger: shape.text for trigger, shape in spec.terminals.items() if isinstance(shape, Literal)}
    behind = [row for row in rows if row[0].meaning == "malformed" or (row[0].is_text and not row[0].loops)]
    behind += [row for row in rows if row[0].meaning is None and not row[0].held]
    begins = {trigger for _, trigger, dest in rows if dest.held or dest.meaning == "reasoning"}
    openers = tuple(texts[trigger] for trigger in begins if trigger in texts)
    found = {texts[trigger] for _, trigger, dest in behind if trigger in texts and trigger not in (spec.stop or ())}
    return frozenset(text for text in found if not text.startswith(openers))


def opened_by(closer: str, markers: Iterable[str]) -> list[str]:
    """Those of the markers that open what `closer` closes, as they are written: `<a` and `</a>`, `<|begin_a|>` and
    `<|end_a|>`, `<|open|>a` and `<|close|>a`, `<|a>` and `<a|>`."""
    forms = {closer.replace("/", "", 1)}
    for word, other in _CLOSING_WORDS:
        for each in (str.lower, str.upper):
            before, found, behind = re.split(rf"(?<![A-Za-z])({each(word)})(?![A-Za-z])|\Z", closer, maxsplit=1)
            if found and re.search("[A-Za-z]", before + behind):  # else it does not say what it closes
                forms.add(before + each(other) + behind)
    if closer.startswith("<") and closer.endswith("|>"):
        forms.add(f"<|{closer[1:-2]}>")
    stems = tuple(form.rstrip(">") for form in forms - {closer})
    return [
        marker
        for marker in markers
        if marker != closer and any(marker.startswith(stem) and not _goes_on(marker, stem) for stem in stems)
    ]


def _goes_on(marker: str, stem: str) -> bool:
    return stem == "" or (stem[-1].isalnum() and marker[len(stem) : len(stem) + 1].isalnum())


def _opens(closer: str, marker: str) -> bool:
    """Whether a marker is a fence with a language, or begins with the bracket that it leaves open."""
    if closer == FENCE:
        return marker.startswith(FENCE) and marker != FENCE
    opener = "{[("[BRACKETS.index(closer)]
    return marker.startswith(opener) and len(marker) >= _LONG and marker.count(opener) > marker.count(closer)


def _find_closing_markers(spec: Spec, states: Mapping[str, StateProgram]) -> dict[str, frozenset[str]]:
    """The triggers of long markers that close something, whatever it is, each with those that open the same. Neither
    what closes reasoning nor what ends the turn."""
    texts = {name: shape.text for name, shape in spec.terminals.items() if isinstance(shape, Literal)}
    rows = [(state, trigger, move) for state in states.values() for trigger, move in state.row.items()]
    thoughts = {trigger for _, trigger, move in rows if move.dest.meaning == "reasoning"}
    names: dict[str, list[str]] = {}
    for name, text in texts.items():
        names.setdefault(text.strip(), []).append(name)
    found: dict[str, frozenset[str]] = {}
    for name, text in texts.items():
        if text in BRACKETS or text == FENCE:
            openers = frozenset(each for each, other in texts.items() if _opens(text, other))
        elif len(text.strip()) < _LONG or name in (spec.stop or ()):
            continue
        else:
            openers = frozenset(each for marker in opened_by(text.strip(), names) for each in names[marker])
        if openers and not openers & thoughts:
            found[name] = openers
    return found


class ClosingMarks(NamedTuple):
    """Triggers of markers that close something: what was opened in text, each with those that close the same; fences;
    what stands inside a call. Texts of those that may be cut off behind a call, and of those that close reasoning."""

    sections: dict[str, frozenset[str]]
    fences: frozenset[str]
    inner: list[str]
    ends: list[str]
    thought_ends: tuple[str, ...]


def find_closing_marks(
    spec: Spec, states: Mapping[str, StateProgram], literals: Mapping[str, str], strict: bool
) -> ClosingMarks:
    """See what the markers of a format close. The moves that open something in text are told. A strict parser, which
    drops nothing, does not ask.
    """
    closing = {} if strict else _find_closing_markers(spec, states)
    fences = frozenset(name for name, text in literals.items() if text == FENCE)
    sections = _find_sections(states, closing, fences)
    row = states[spec.initial].row
    inner = [name for name in closing if name not in row and literals[name] not in (*BRACKETS, FENCE)]
    thoughts = {each.trigger for each in spec.transitions if "unopened_reasoning" in each.actions}
    ending = literals.keys() & {*sections, *thoughts, *(spec.stop or ())}
    return ClosingMarks(
        sections,
        fences,
        inner,
        [literals[name] for name in sorted(ending)],
        tuple(literals[name] for name in sorted(thoughts & literals.keys())),
    )


def _find_sections(
    states: Mapping[str, StateProgram], closing: Mapping[str, frozenset[str]], fences: frozenset[str]
) -> dict[str, frozenset[str]]:
    """The triggers of markers that close what was opened in text, and of closing fences, each with those that close
    the same; the moves that open it are told."""
    in_text = {move.trigger for state in states.values() if state.loops for move in state.row.values()} | fences
    found = {closer: openers for closer, openers in closing.items() if closer in in_text or openers <= in_text}
    for state in states.values():
        for move in state.row.values():
            move.begins = frozenset(closer for closer, openers in found.items() if move.trigger in openers)
    return {
        closer: frozenset(other for other, same in found.items() if openers & same) for closer, openers in found.items()
    }


def find_element_ends(spec: Spec, states: Iterable[StateProgram]) -> tuple[str, ...]:
    """How the closing tags of elements begin: of those inside values, and of those that are named as arguments are."""
    ends = {state.around_key[0].replace("<", "</", 1) for state in states if state.echo and "<" in state.around_key[0]}
    if any(state.typed == "elements" for state in states):
        ends.add(spec.notation[1])
    return tuple(sorted(ends))


def _ways(state: StateProgram) -> set[tuple[str, str]]:
    """The triggers that leave a state, and where to."""
    return {(trigger, move.dest.name) for trigger, move in state.row.items() if move.dest is not state}


def _behind_calls(states: Mapping[str, StateProgram], closing: Collection[str]) -> list[StateProgram]:
    """The states behind a complete call, and behind markers that close it."""
    moves = [(name, move) for name, state in states.items() for move in state.row.values()]
    behind: set[str] = set()
    grown = {move.dest.name for _, move in moves if "end_call" in move.actions}
    while grown - behind:
        behind |= grown
        grown = {move.dest.name for name, move in moves if name in behind and move.trigger in ("end_array", *closing)}
    return [states[name] for name in sorted(behind)]
