"""Readers of arguments: a JSON object as it stands, one written as a JSON string, and Python keyword arguments."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from toolgram.islands.json_envelope import MAX_TOKEN, Envelope
from toolgram.islands.json_values import FIRST_ITEM, FIRST_KEY, ITEM, KEY, MEMBER_VALUE, JsonScanner
from toolgram.runtime.stream import Stream

if TYPE_CHECKING:
    from toolgram.islands.python_literals import PythonScanner

JSON_BLANKS = re.compile(r"[ \t\r\n]*+").match


def read_object(stream: Stream, text: str, pos: int, final: bool) -> int:
    """After the brace of arguments: it is believed when a key or the closing brace follows."""
    pos = skip_blanks_after_opening(stream, text, pos)
    if pos == len(text):
        return pos
    if text[pos] not in '"}' or len(stream.opening) > MAX_TOKEN:
        stream.misfit()
        return pos
    stream.scanner = JsonScanner()
    stream.scanner.stack.append("{")
    stream.scanner.state = FIRST_KEY
    opening, stream.opening, stream.doubt = stream.opening, "", False
    stream.fire("object_start", "")
    stream.delta("{" + opening.removeprefix("{"), opening)
    return pos


def skip_blanks_after_opening(stream: Stream, text: str, pos: int) -> int:
    """Blanks after a bracket that is not believed yet."""
    blank = JSON_BLANKS(text, pos)
    assert blank is not None
    if blank.end() > pos:
        stream.opening += stream.take(text, pos, blank.end())
    return blank.end()


def read_arguments(stream: Stream, text: str, pos: int, final: bool) -> int:
    """A JSON object: the model's own bytes, as far as they are JSON."""
    scanner, floor = arguments_scanner(stream)
    scanner.run(text, pos, floor)
    return took_arguments(stream, scanner, floor, text, pos)


def arguments_scanner(stream: Stream) -> tuple[JsonScanner, int]:
    """The scanner that reads the arguments, and the depth at which they are closed."""
    env = stream.env
    if env is not None:
        return env.scanner, env.depth
    assert stream.scanner is not None
    return stream.scanner, 0


def took_arguments(stream: Stream, scanner: JsonScanner, floor: int, text: str, pos: int) -> int:
    """What follows from a run of the scanner from `pos` on: a fragment, and perhaps the end of the arguments."""
    env = stream.env
    end = scanner.end
    if end > pos:
        stream.delta(scanner.out, stream.take(text, pos, end))
    if scanner.broken:
        if env is not None and end < len(text) and may_transcode(stream, env, text[end]):
            transcode(stream, env, scanner.was, text[end])
        else:
            stream.misfit()
    elif len(scanner.stack) == floor:
        if env is None:
            stream.scanner = None
            stream.fire("object_end", "")
        else:
            env.push("}")
            env.settle()
            stream.reader = "envelope"
            stream.fire(f"end_map {stream.same(env.path)}", "")
    return end


# By state: JSON that stands for what has been read, for a scanner of Python to go on behind it, and what that writes.
_READ_SO_FAR = {
    FIRST_KEY: ("{", "{"),
    KEY: ('{"":0,', '{"": 0, '),
    MEMBER_VALUE: ('{"":', '{"": '),
    FIRST_ITEM: ("[", "["),
    ITEM: ("[0,", "[0, "),
}


def may_transcode(stream: Stream, env: Envelope, character: str) -> bool:
    """Whether `character`, which JSON does not have there, may begin a value in Python's spelling."""
    return character in "'TFN" and stream.program.python_json and env.python is None


def transcode(stream: Stream, env: Envelope, state: int, character: str) -> None:
    """From here on the envelope is in Python's spelling. `state` is where its scanner of JSON stands."""
    from toolgram.islands.python_literals import PythonScanner

    scanner = env.scanner
    if state not in _READ_SO_FAR:
        stream.misfit()
        return
    scanner.state = state
    outer = [MEMBER_VALUE if bracket == "{" else FIRST_ITEM for bracket in scanner.stack[:-1]]
    known, written = zip(*(_READ_SO_FAR[place] for place in [*outer, state]), strict=True)
    env.python = PythonScanner(keywords=False)
    env.python.read("".join(known), 0)
    env.skip = len("".join(written)) - len(env.python.out)
    env.inner = stream.reader
    stream.note("python_quotes", character)
    stream.source = ""
    stream.reader = "transcoded"


def read_encoded(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Arguments as a JSON string: decoded, and streamed as the object that they hold."""
    env, strings = stream.env, stream.strings
    assert env is not None and strings is not None
    end = strings.read(text, pos)
    _collect(stream, strings.out, text, pos, strings.mark, end)
    if stream.doubt and strings.started:
        opening = env.source + stream.opening
        env.source, stream.opening, stream.doubt = "", "", False
        stream.fire(f"string {stream.same(env.path)}", opening)
        stream.reader = "encoded"
    if not stream.doubt:
        _flush(stream)
    if strings.broken:
        stream.misfit()
    elif strings.done:
        closing = "".join(stream.pending)
        stream.pending.clear()
        stream.strings = None
        env.scanner.state = env.scanner.after_value()
        env.push('""')
        env.settle()
        stream.fire(f"end_map {stream.same(env.path)}", closing)
    return end


def read_python(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Python keyword arguments: transcoded to JSON while they arrive."""
    python = stream.python
    assert python is not None
    return took_python(stream, python, text, pos, python.read(text, pos))


def took_python(stream: Stream, python: PythonScanner, text: str, pos: int, end: int) -> int:
    """What follows from a run of the scanner from `pos` to `end`: a fragment, and perhaps the end of the arguments."""
    _collect(stream, python.out, text, pos, python.mark, end)
    if python.done and not python.started and "object_empty" in stream.state.row:
        source = stream.opening + "".join((stream.ready or []) + stream.pending)
        stream.opening, stream.doubt, stream.python = "", False, None
        stream.pending.clear()
        stream.early = stream.ready = None
        stream.fire("object_empty", source)
        return end
    if stream.doubt and (python.started or python.done):
        stream.ready = [stream.opening, *(stream.ready or ())]
        stream.opening, stream.doubt = "", False
        stream.fire("object_start", "")
        stream.reader = "python"
    if not stream.doubt:
        _flush(stream)
    if python.broken:
        stream.misfit()
    elif python.done:
        closing = "".join(stream.pending)
        stream.pending.clear()
        stream.python = None
        stream.fire("object_end", closing)
    return end


def _collect(stream: Stream, out: str, text: str, pos: int, mark: int, end: int) -> None:
    """What was transcoded: source up to `mark` has produced `out`, the rest nothing yet, and waits for its meaning."""
    if out:
        waiting = "".join(stream.pending)
        stream.pending.clear()
        idle = max(0, pos - mark) if stream.source is None else 0
        split = len(waiting) - idle
        if stream.early is None or stream.ready is None:
            stream.early, stream.ready = [], stream.ready or []
        stream.ready.append(waiting[:split])
        if idle:
            stream.pending.append(waiting[split:])
        stream.early.append(out)
        if mark > pos:
            stream.ready.append(stream.take(text, pos, mark))
            pos = mark
    if end > pos:
        stream.pending.append(stream.take(text, pos, end))


def _flush(stream: Stream) -> None:
    if stream.early:
        stream.delta("".join(stream.early), "".join(stream.ready or ()))
        stream.early = stream.ready = None
