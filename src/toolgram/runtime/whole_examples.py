"""The outputs that whole outputs are recorded from: the examples of a format, or outputs that are found by trying.

A derived format may have no example. Then the readers say how a call is written: what may come next is tried, and what
they take as text, or as malformed, is not followed.
"""

from __future__ import annotations

from collections.abc import Callable

from toolgram.events import Content, Malformed, Reasoning
from toolgram.islands.json_envelope import Envelope
from toolgram.program.compiling import compile_spec
from toolgram.program.state import Program, StateProgram
from toolgram.runtime.readers import READERS
from toolgram.runtime.stream import Stream, reader_of

MADE_UP_ID = "made-up"  # what no example has for an id
_MOST_EXAMPLES = 8
_JSON = (": ", '"get_weather"', ", ", "get_weather", "}", "]", "\n")
_MOST_TRIED = 300


def examples(program: Program) -> list[str]:
    if program.spec is None:
        return []
    said = program.spec.machine_dict.get("format", {}).get("canonical") or ()
    texts = [text.get("output", "") if isinstance(text, dict) else text for text in (program.spec.example, *said)]
    kept = dict.fromkeys(text for text in texts if isinstance(text, str) and text)
    return list(kept)[:_MOST_EXAMPLES] or found_examples(program)


def fresh_stream(program: Program, state: StateProgram) -> Stream:
    stream = Stream(program, lambda: MADE_UP_ID, None)
    stream.state, stream.reader = state, reader_of(state)
    stream.events.out = []
    return stream


def is_clean(stream: Stream) -> bool:
    """Whether nothing is held, buffered or half read."""
    source, events, calls = stream.source, stream.events, stream.calls
    waits = (events.blanks, events.held, stream.buffer, stream.unfinished, calls.id, calls.name, calls.keys)
    return source.is_empty and not any(waits)


def found_examples(program: Program) -> list[str]:
    """Outputs with two calls, found by trying what may follow; for formats without examples.

    The readers judge, and repair nothing: what they take as text, or as malformed, is not followed, and neither is a
    place that was reached before. Calls may stand alone or in a list, so both are looked for.
    """
    if program.spec is None:
        return []
    strict = program if program.strict else compile_spec(program.spec, strict=True)
    return [_found_example(strict, brackets) for brackets in (("{", "["), ("[", "{"))]


def _found_example(program: Program, brackets: tuple[str, ...]) -> str:
    text = ""
    for _ in range(2):
        into = _search(program, brackets, text, _is_inside, '"')
        out = _search(program, brackets, into + "}", _is_outside, "") if into is not None else None
        if out is None:
            break
        text = out
    return text


def _is_inside(stream: Stream) -> bool:
    return stream.reader == "arguments" and stream.events.held is None


def _is_outside(stream: Stream) -> bool:
    return is_clean(stream) and stream.island is None and stream.state.loops


def _search(
    program: Program, brackets: tuple[str, ...], begun: str, goal: Callable[[Stream], bool], tail: str
) -> str | None:
    """A text that begins with `begun` and leads to the goal, depth first; each place is entered once."""
    seen: set[tuple[object, ...]] = set()
    waiting, tried = [begun], 0
    while waiting and tried < _MOST_TRIED:
        text = waiting.pop()
        stream = _read_through(program, text)
        further = []
        for token in _tokens(stream, brackets) if stream is not None else ():
            tried += 1
            reached = _read_through(program, text + token)
            if reached is None:
                continue
            at_goal = _read_through(program, text + token, tail) if tail else reached
            if at_goal is not None and goal(at_goal):
                return text + token
            place = _place(reached)
            if place not in seen:
                seen.add(place)
                further.append(text + token)
        waiting += reversed(further)
    return None


def _place(stream: Stream) -> tuple[object, ...]:
    """Where a stream is, whatever was said on the way."""
    said: tuple[object, ...] = (stream.state.name, stream.reader, stream.source.unconfirmed, stream.calls.name is None)
    if isinstance(stream.island, Envelope):
        envelope = stream.island
        said += (str(envelope.scanner.dump()), envelope.path, *envelope.parents)
    return (*said, stream.calls.index is None, stream.buffer)


def _tokens(stream: Stream, brackets: tuple[str, ...]) -> list[str]:
    """What may come next, or may not; what is likely first."""
    states = stream.program.states.values()
    known = {path.rpartition(".")[2] for state in states for path in state.key_paths}
    keys = [f'"{key}"' for key in sorted(known, key=lambda key: (key != "name", key))]
    closing = stream.program.closing
    return [*brackets, *_JSON, *keys, *sorted(stream.state.literals, key=lambda text: text not in closing)]


def _read_through(program: Program, text: str, tail: str = "") -> Stream | None:
    """The stream behind `text`, where `tail` follows and is not read; None where something is text or malformed."""
    stream = fresh_stream(program, program.initial)
    pos, whole = 0, text + tail
    while 0 <= pos < len(text) or (tail and pos == len(text) and stream.reader != "arguments"):
        pos = READERS[stream.reader](stream, whole, pos, False)
    bad = stream.reader not in ("text", "token", "envelope", "object", "arguments")
    bad = bad or any(isinstance(event, Content | Reasoning | Malformed) for event in stream.events.out)
    return None if bad or stream.state.meaning == "reasoning" else stream
