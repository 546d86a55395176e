"""What must hold of a machine before it can run. Loading refuses the first fault; `toolgram check` lists them all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolgram.errors import FormatError
from toolgram.spec import END, TEXT, Literal, Run, Spec, State, Transition, rows_of


def faults(spec: Spec) -> Iterator[FormatError]:
    """Everything that keeps the machine from running, in the order of the file."""
    yield from unreachable(spec)
    rows = rows_of(spec)
    for name, state in spec.states.items():
        if name != spec.final:
            yield from state_faults(spec, state, rows[name])
            yield from prefix_faults(spec, state, rows[name])


def unreachable(spec: Spec) -> Iterator[FormatError]:
    """States that no transition leads to."""
    rows = rows_of(spec)
    reached, pending = {spec.initial}, [spec.initial]
    while pending:
        for transition in rows[pending.pop()].values():
            if transition.dest not in reached:
                reached.add(transition.dest)
                pending.append(transition.dest)
    for name, state in spec.states.items():
        if name not in reached:
            yield FormatError(
                spec.file_of(state),
                f"state {name} is unreachable from {spec.initial}",
                "add a transition that leads to it, or remove it",
                state.line,
            )


def state_faults(spec: Spec, state: State, row: dict[str, Transition]) -> Iterator[FormatError]:
    """What a state must declare and does not."""
    path, name = spec.file_of(state), state.name
    is_text = state.meaning in ("content", "reasoning")
    if is_text and state.held:
        yield FormatError(
            path, f"text state {name} is held", "free text is never held; use a structure state", state.line
        )
    if is_text and TEXT not in row:
        yield FormatError(
            path,
            f"text state {name} does not say where TEXT leads",
            f'add `- {{trigger: TEXT, source: {name}, dest: "="}}`',
            state.line,
        )
    if state.meaning == "name" and not state.held:
        yield FormatError(
            path, f"state {name} reads a name but is not held", "a name is sent whole: add the tag `held`", state.line
        )
    if not state.held and END not in row:
        yield FormatError(
            path,
            f"{name} has no way to {spec.final} when the output ends",
            f"add `- {{trigger: end, source: {name}, dest: {spec.final}}}`",
            state.line,
        )
    if not state.held and not is_text and state.meaning != "malformed" and "malformed" not in row:
        yield FormatError(
            path,
            f"{name} does not say what follows when the text does not fit",
            f"add `- {{trigger: malformed, source: {name}, dest: ..., after: fail_call}}`",
            state.line,
        )
    if state.typed == "notated" and (len(spec.notation) != 2 or not all(spec.notation)):
        yield FormatError(
            path,
            f"{name} reads notated values, and the format does not say how they are quoted",
            'write `notation: ["...", "..."]` under `format:`, the opening and the closing quote',
            state.line,
        )
    if (
        state.meaning == "arguments"
        and not {"object_end"} & set(row)
        and not any(t.startswith("end_map ") for t in row)
    ):
        yield FormatError(
            path,
            f"{name} reads arguments and has no transition for their end",
            "add a transition on `object_end` (or, in an envelope, `end_map item.arguments`)",
            state.line,
        )


def prefix_faults(spec: Spec, state: State, row: dict[str, Transition]) -> Iterator[FormatError]:
    """Symbols of one state of which one begins with another, without a rule for it."""
    shapes = [spec.terminals[trigger] for trigger in row if trigger in spec.terminals]
    openers = {"{": "start_map item"} if "start_map item" in row else {}
    longest = spec.longest_match
    for shape in shapes:
        if isinstance(shape, Run):
            pattern = re.compile(shape.first)
            for other in shapes:
                first = other.text[0] if isinstance(other, Literal) else None
                clash = (first is not None and pattern.match(first) and not longest) or (
                    isinstance(other, Run) and other is not shape and _overlap(shape, other)
                )
                if clash:
                    yield FormatError(
                        spec.file_of(state),
                        f"in {state.name}, {shape.name} and {other.name} can begin with the same character",
                        "exclude that character from the class, split the state, or (for a fixed text) write "
                        "`longest_match: true` under `format:`, by which it comes before the class",
                        state.line,
                    )
        else:
            for other in shapes:
                if other is not shape and isinstance(other, Literal) and other.text == shape.text:
                    yield FormatError(
                        spec.file_of(state),
                        f"in {state.name}, {shape.name} and {other.name} are the same text",
                        "remove one of them",
                        state.line,
                    )
                if (
                    other is not shape
                    and isinstance(other, Literal)
                    and other.text.startswith(shape.text)
                    and not longest
                ):
                    yield FormatError(
                        spec.file_of(state),
                        f"in {state.name}, {shape.name} ({shape.text!r}) is a prefix of {other.name} ({other.text!r})",
                        "write `longest_match: true` under `format:` if the longer one is to win, or "
                        "make the markers differ",
                        state.line,
                    )
            if openers and shape.text in openers:
                yield FormatError(
                    spec.file_of(state),
                    f"in {state.name}, {shape.name} and `start_map item` both begin with {shape.text!r}",
                    "keep one of them",
                    state.line,
                )


def _overlap(one: Run, other: Run) -> bool:
    first, second = re.compile(one.first), re.compile(other.first)
    return any(first.match(chr(code)) and second.match(chr(code)) for code in range(0x250))
