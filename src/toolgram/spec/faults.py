"""What must hold of a machine before it can run. Loading refuses the first fault."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from toolgram.errors import FormatError
from toolgram.spec.call_flow import call_faults
from toolgram.spec.data import END, TEXT, UNCLOSED, Literal, Run, Spec, State, Transition, loops, rows_of
from toolgram.spec.vocabulary import value_type


def faults(spec: Spec) -> Iterator[FormatError]:
    """Yield everything that keeps the machine from running, in the order of the file."""
    yield from _unreachable(spec)
    rows = rows_of(spec)
    yield from _initial_faults(spec)
    for name, state in spec.states.items():
        if name != spec.final:
            yield from _state_faults(spec, state, rows[name])
            yield from _value_faults(spec, state, rows)
            yield from _prefix_faults(spec, state, rows[name])
    for transition in spec.transitions:
        yield from _transition_faults(spec, transition, rows)
    yield from call_faults(spec)


def _unreachable(spec: Spec) -> Iterator[FormatError]:
    """Yield the states that no transition leads to."""
    rows = rows_of(spec)
    entries = [spec.initial, *([spec.line_calls] if spec.line_calls else ()), *spec.bare_calls[:1]]
    reached, pending = {*entries}, entries
    while pending:
        for transition in rows[pending.pop()].values():
            if transition.dest not in reached:
                reached.add(transition.dest)
                pending.append(transition.dest)
    for name, state in spec.states.items():
        if name not in reached:
            yield spec.fault(
                state,
                f"state {name} is unreachable from {spec.initial}",
                "add a transition that leads to it, or remove it",
            )


def _state_faults(spec: Spec, state: State, row: dict[str, Transition]) -> Iterator[FormatError]:
    """Yield what a state must declare and does not."""
    name = state.name
    if state.is_text and state.held:
        yield spec.fault(state, f"text state {name} is held", "free text is never held; use a structure state")
    if state.is_text and TEXT not in row:
        yield spec.fault(
            state,
            f"text state {name} does not say where TEXT leads",
            f'add `- {{trigger: TEXT, source: {name}, dest: "="}}`',
        )
    if state.meaning == "name" and not state.held:
        yield spec.fault(
            state, f"state {name} reads a name but is not held", "a name is sent whole: add the tag `held`"
        )
    if not state.held and END not in row:
        yield spec.fault(
            state,
            f"{name} has no way to {spec.final} when the output ends",
            f"add `- {{trigger: end, source: {name}, dest: {spec.final}}}`",
        )
    if not state.held and not state.is_text and state.meaning != "malformed" and "malformed" not in row:
        yield spec.fault(
            state,
            f"{name} does not say what follows when the text does not fit",
            f"add `- {{trigger: malformed, source: {name}, dest: ..., after: fail_call}}`",
        )
    if state.meaning == "malformed" and "recovered" not in row:
        yield spec.fault(
            state,
            f"{name} does not say what follows when the broken call is over",
            f"add `- {{trigger: recovered, source: {name}, dest: {spec.initial}}}`",
        )
    if state.held and state.meaning in ("value", "ignored", "malformed"):
        yield spec.fault(
            state,
            f"{name} is tagged `{state.meaning}` and `held`",
            f"write `- {{name: {name}, tags: [{state.meaning}]}}`",
        )
    for trigger in row:
        if not _can_come(spec, state, trigger, row):
            yield spec.fault(
                row[trigger],
                f"`{trigger}` never comes in {name}, which is tagged `{state.meaning}`",
                f"remove {name} from the sources, or remove the tag `{state.meaning}`",
            )


def _can_come(spec: Spec, state: State, trigger: str, row: Mapping[str, Transition]) -> bool:
    """Return whether what reads in a state can fire a trigger."""
    if trigger == END or (trigger == "malformed" and not state.is_text):
        return True
    literal, event = isinstance(spec.terminals.get(trigger), Literal), trigger.partition(" ")[0]
    if state.meaning == "arguments":
        return event in ("object_end", "end_map") or literal
    if state.meaning == "ignored":
        return trigger in ("value_end", UNCLOSED)
    if state.meaning == "value":
        return literal or trigger == "value_end"
    if state.meaning == "malformed":
        return literal or trigger == "recovered"
    if state.is_text:
        is_run = trigger in spec.terminals and not literal
        events = ("start_map item", "start_array", "object_start", "object_empty", TEXT)
        return not loops(row) if is_run else literal or trigger in events
    if trigger in (TEXT, UNCLOSED):
        return state.held == (trigger == TEXT)
    return trigger not in ("object_end", "value_end", "recovered")


def _initial_faults(spec: Spec) -> Iterator[FormatError]:
    """Yield where an output cannot begin."""
    state = spec.states[spec.initial]
    if state.name == spec.final or state.held or state.meaning in ("arguments", "value", "ignored", "malformed"):
        yield spec.fault(
            state,
            f"no output can begin in {state.name}",
            f"write `- {{name: {state.name}, tags: [content]}}`, or another `initial:`",
        )


def _value_faults(spec: Spec, state: State, rows: Mapping[str, Mapping[str, Transition]]) -> Iterator[FormatError]:
    """Yield how the values and arguments that a state reads can end."""
    name, row = state.name, rows[state.name]
    closers = [trigger for trigger in row if isinstance(spec.terminals.get(trigger), Literal)]
    yield from _notation_faults(spec, state)
    yield from _end_faults(spec, state, closers, "value_end" in row)
    if state.echo and not _echoes(spec, closers, rows, name):
        yield spec.fault(
            state,
            f"{name} is tagged `echo`, and no key and marker follow its one marker",
            f"write `- {{name: {name}, tags: [value]}}`",
        )
    if state.meaning == "arguments":
        yield from _arguments_faults(spec, state, row)


def _notation_faults(spec: Spec, state: State) -> Iterator[FormatError]:
    """Yield the values in a notation that the format does not describe."""
    name = state.name
    if state.typed == "notated" and len(spec.notation) != 2:
        yield spec.fault(
            state,
            f"{name} reads notated values, and the format does not say how they are quoted",
            "write `notation: ['<q>', '</q>']` under `format:`, the opening and the closing quote",
        )
    if state.typed == "elements" and not (len(spec.notation) > 2 and spec.notation[1].startswith(spec.notation[0])):
        yield spec.fault(
            state,
            f"{name} reads nested elements, and the format does not say how their tags begin",
            "write `notation: ['<', '</', item]` under `format:`: what opening and closing tags begin with, and the "
            "name of a list's items",
        )


def _end_faults(spec: Spec, state: State, closers: Sequence[str], alone: bool) -> Iterator[FormatError]:
    """Yield a value that nothing ends, and one that cannot end by itself."""
    name = state.name
    if state.meaning in ("value", "ignored") and not (alone or (closers and value_type(state.typed).to_marker)):
        needed = f"{state.meaning} {state.typed}".strip()
        yield spec.fault(
            state,
            f"{name} is tagged `{needed}` and has no transition for the end of the value",
            f"add `- {{trigger: value_end, source: {name}, dest: {spec.initial}}}`, or one on a marker",
        )
    if state.meaning == "value" and alone and not value_type(state.typed).alone:
        yield spec.fault(
            state,
            f"{name} reads a value of any type, which does not end by itself",
            f"write `- {{name: {name}, tags: [value, json]}}`",
        )


def _arguments_faults(spec: Spec, state: State, row: Mapping[str, Transition]) -> Iterator[FormatError]:
    """Yield the arguments without a transition for the end that their opener needs."""
    name = state.name
    for opener in spec.transitions:
        closer = _closer(opener) if opener.dest == name and opener.source != name else ""
        if closer and closer not in row:
            yield spec.fault(
                state,
                f"{name} reads arguments and has no transition for their end, which is `{closer}`",
                f"add `- {{trigger: {closer}, source: {name}, dest: {spec.initial}, after: end_call}}`",
            )


def _closer(opener: Transition) -> str:
    """Return the trigger that ends the arguments which a transition begins."""
    event, _, path = opener.trigger.partition(" ")
    return {"object_start": "object_end", "start_map": f"end_map {path}", "string": f"end_map {path}"}.get(event, "")


def _echoes(spec: Spec, closers: list[str], rows: Mapping[str, Mapping[str, Transition]], name: str) -> bool:
    """Return whether after the one marker of a value its key comes again, and a marker after that."""
    if len(closers) != 1:
        return False
    again = rows[rows[name][closers[0]].dest]
    keys = [trigger for trigger in again if isinstance(spec.terminals.get(trigger), Run)]
    others = [trigger for trigger in again if isinstance(spec.terminals.get(trigger), Literal)]
    behind = rows[again[keys[0]].dest] if keys and not others else {}
    return any(isinstance(spec.terminals.get(trigger), Literal) for trigger in behind)


def _transition_faults(
    spec: Spec, transition: Transition, rows: Mapping[str, Mapping[str, Transition]]
) -> Iterator[FormatError]:
    """Yield where a transition leads, and cannot."""
    trigger, name, dest = transition.trigger, transition.source, spec.states[transition.dest]
    fault: tuple[str, str] | None = None
    if name == spec.final:
        fault = f"the output is over in {name}", f"remove {name} from the sources"
    elif (trigger == END) != (dest.name == spec.final):
        fault = (
            f"only `{END}` leads to the final state {spec.final}, and nowhere else",
            f"write `- {{trigger: {END}, source: {name}, dest: {spec.final}}}`",
        )
    elif trigger == TEXT and not (dest.is_text and loops(rows[dest.name])):
        fault = (
            f"TEXT leads to {dest.name}, in which text does not go on",
            f'write `- {{trigger: TEXT, source: {dest.name}, dest: "="}}`',
        )
    elif trigger == "malformed" and (dest.held or not (dest.is_text or dest.meaning == "malformed")):
        fault = (
            f"`malformed` leads to {dest.name}, which reads no text",
            f"write `- {{name: {dest.name}, tags: [malformed]}}`, or another dest",
        )
    elif trigger == "recovered" and (dest.held or dest.meaning in ("arguments", "value", "ignored", "malformed")):
        fault = (
            f"`recovered` leads to {dest.name}, in which no text can go on",
            f"write `- {{trigger: recovered, source: {name}, dest: {spec.initial}}}`",
        )
    elif trigger == "object_start" and dest.meaning != "arguments":
        fault = (
            f"`object_start` leads to {dest.name}, which reads no arguments",
            f"write `- {{name: {dest.name}, tags: [arguments]}}`, or another dest",
        )
    elif trigger == "object_empty" and not _reads_python(spec, rows[name]):
        fault = (
            "`object_empty` comes only in a state in which Python arguments may begin",
            f"add `- {{trigger: object_start, source: {name}, dest: ...}}` to a state with `tags: [arguments, python]`",
        )
    if fault:
        yield spec.fault(transition, fault[0], fault[1])


def _reads_python(spec: Spec, row: Mapping[str, Transition]) -> bool:
    return "object_start" in row and spec.states[row["object_start"].dest].python


def _prefix_faults(spec: Spec, state: State, row: dict[str, Transition]) -> Iterator[FormatError]:
    """Yield the symbols of one state of which one begins with another, without a rule for it."""
    shapes = [spec.terminals[trigger] for trigger in row if trigger in spec.terminals]
    openers = _openers(spec, row)
    yield from _opener_faults(spec, state, row, openers)
    for shape in shapes:
        if isinstance(shape, Run):
            yield from _run_faults(spec, state, shape, shapes)
        else:
            others = [other for other in shapes if other is not shape and isinstance(other, Literal)]
            yield from _literal_faults(spec, state, shape, others)
            for opener in [opener for opener, bracket in openers if bracket == shape.text]:
                yield spec.fault(
                    state,
                    f"in {state.name}, {shape.name} and `{opener}` both begin with {shape.text!r}",
                    "keep one of them",
                )


def _opener_faults(
    spec: Spec, state: State, row: Mapping[str, Transition], openers: Iterable[tuple[str, str]]
) -> Iterator[FormatError]:
    """Yield two events that begin with the same bracket."""
    for (opener, begins), (late, other_begins) in combinations(openers, 2):
        if begins == other_begins:
            yield spec.fault(
                row[late],
                f"in {state.name}, `{opener}` and `{late}` both begin with {other_begins!r}",
                f"remove {state.name} from the sources of one of the two",
            )


def _run_faults(spec: Spec, state: State, run: Run, shapes: Iterable[Literal | Run]) -> Iterator[FormatError]:
    """Yield the runs and markers whose first character may be the first one of a run."""
    begins = re.compile(run.first).match
    for other in shapes:
        if isinstance(other, Literal):
            clash = begins(other.text[0]) is not None and not spec.longest_match
        else:
            clash = other is not run and _overlap(run, other)
        if clash:
            yield spec.fault(
                state,
                f"in {state.name}, {run.name} and {other.name} can begin with the same character",
                "exclude that character from the class, split the state, or (for a fixed text) write "
                "`longest_match: true` under `format:`, by which it comes before the class",
            )


def _literal_faults(spec: Spec, state: State, marker: Literal, others: Iterable[Literal]) -> Iterator[FormatError]:
    """Yield the markers with the same text, and those that begin with this one."""
    for other in others:
        if other.text == marker.text:
            yield spec.fault(
                state, f"in {state.name}, {marker.name} and {other.name} are the same text", "remove one of them"
            )
        if other.text.startswith(marker.text) and not spec.longest_match:
            yield spec.fault(
                state,
                f"in {state.name}, {marker.name} ({marker.text!r}) is a prefix of {other.name} ({other.text!r})",
                "write `longest_match: true` under `format:` if the longer one is to win, or make the markers differ",
            )


def _openers(spec: Spec, row: Mapping[str, Transition]) -> list[tuple[str, str]]:
    """Return the triggers of a state that a bracket or a quote begins, each with that."""
    found = [("start_map item", "{"), ("start_array", "["), ("object_start", "(" if _reads_python(spec, row) else "{")]
    if "object_start" in row and spec.states[row["object_start"].dest].encoded:
        found.append(("object_start", '"'))
    return [(trigger, bracket) for trigger, bracket in found if trigger in row]


def _overlap(one: Run, other: Run) -> bool:
    first, second = re.compile(one.first), re.compile(other.first)
    return any(first.match(chr(code)) and second.match(chr(code)) for code in range(0x250))
