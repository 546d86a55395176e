"""Reader of the JSON around a call: its tokens become ijson's events, and those the machine's triggers.

What cannot be the next token of a call is refused at its first character: a key that begins no known one, a value of a
kind that no transition takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TypeAlias

from toolgram.islands.json_envelope import MAX_TOKEN, Envelope, NoEvent
from toolgram.islands.json_strings import JsonStringScanner
from toolgram.islands.json_values import (
    AFTER_ITEM,
    AFTER_MEMBER,
    CLOSE,
    COLON,
    CONTROL,
    FIRST_ITEM,
    FIRST_KEY,
    ITEM,
    KEY,
    MEMBER_STRING,
    MEMBER_VALUE,
    OPEN,
    PUNCTUATION,
    SCALAR_END,
    STRING_END,
    STRING_PART,
    escape_controls,
    leaves_string,
)
from toolgram.islands.wreckage import Wreckage
from toolgram.runtime.argument_readers import (
    JSON_BLANKS,
    may_transcode,
    read_arguments,
    read_encoded,
    skip_blanks_after_opening,
    transcode,
)
from toolgram.runtime.sink import SYNTAX
from toolgram.runtime.stream import Stream, reader_of

_QUOTED = (KEY, FIRST_KEY, MEMBER_VALUE)  # where a string may begin in an envelope
Reader: TypeAlias = Callable[[Stream, str, int, bool], int]

_WHOLE_ESCAPES = re.compile(r'"(?:[^\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+').match
_KINDS = {
    '"': "string",
    "{": "start_map",
    "[": "start_array",
    "n": "null",
    "t": "boolean",
    "f": "boolean",
    **dict.fromkeys("-0123456789", "number"),
}


def read_envelope(stream: Stream, text: str, pos: int, final: bool) -> int:
    """One token of the envelope, or as much of it as there is."""
    env = stream.env
    assert env is not None
    scanner = env.scanner
    if stream.doubt:
        return _believe(stream, env, text, pos)
    if scanner.between:
        if text[pos] in " \t\r\n":
            blank = JSON_BLANKS(text, pos)
            assert blank is not None
            env.source += stream.take(text, pos, blank.end())
            pos = blank.end()
            if pos == len(text):
                return pos
        if scanner.state in _QUOTED and text[pos] == "'" and may_transcode(stream, env, "'"):
            transcode(stream, env, scanner.state, text[pos])
            return pos
        if scanner.state == AFTER_ITEM and scanner.stack == ["["] and text[pos] == "{":
            env.push(",")
            scanner.state = ITEM
            stream.note("missing_comma", text[pos])
        if scanner.state <= MEMBER_VALUE and not _may_stand(stream, env, text[pos]):
            return pos
        if stream.reader == "encoded":
            return pos + 1
    refuting = _refuting(stream, env, text, pos)
    if refuting >= 0:
        if refuting > pos:
            scanner.step(text[pos:refuting], 0)
            env.source += stream.take(text, pos, refuting)
        stream.misfit(quote=scanner)
        return refuting
    end = scanner.step(text, pos)
    if scanner.broken or len(env.source) > MAX_TOKEN:
        env.source += stream.take(text, pos, end)
        stream.misfit()
        return end
    piece = text[pos:end]
    source = stream.take(text, pos, end)
    try:
        _take_token(stream, env, piece, source)
    except NoEvent:
        stream.misfit(quote=scanner)
    return end


def _may_stand(stream: Stream, env: Envelope, character: str) -> bool:
    """Whether a value that begins with `character` may stand here; refuses it if not."""
    kind = _KINDS.get(character)
    if kind is None:
        if character != "]" or env.scanner.state != FIRST_ITEM:
            stream.misfit()
            return False
        return True
    if stream.state.meaning == "ignored":
        return True
    row = stream.state.row
    path = stream.same(env.path)
    if kind == "start_array":
        fits = not env.path and "start_array" in row
    else:
        fits = f"{kind} {path}" in row or (kind == "string" and path in stream.state.values)
    if not fits:
        stream.misfit(quote=env.scanner)
        return False
    if kind == "string" and f"string {path}" in row and row[f"string {path}"].dest.meaning == "arguments":
        stream.strings = JsonStringScanner()
        env.scanner.state = MEMBER_STRING
        stream.doubt = True
        stream.opening = stream.take(character, 0, 1)
        stream.reader = "encoded"
    return True


def _refuting(stream: Stream, env: Envelope, text: str, pos: int) -> int:
    """The position of the first character of a key (or of a prescribed string) that no known one has there, or -1."""
    scanner, state = env.scanner, stream.state
    inside = scanner.in_plain_string
    if not inside and text[pos] != '"':
        return -1
    if scanner.in_key if inside else scanner.state in (FIRST_KEY, KEY):
        if state.any_key:
            return -1
        known, beginnings = f"{env.parents[-1]}.", state.key_prefixes
    elif not inside and scanner.state > MEMBER_VALUE:
        return -1
    else:
        path = stream.same(env.path)
        if path not in state.values or f"string {path}" in state.row:
            return -1
        known, beginnings = "", state.values[path]
    if inside:
        known += _decoded(env.token)
    start = pos if inside else pos + 1
    special = leaves_string(text, start)
    end = special.start() if special else len(text)
    if known + text[start:end] in beginnings:
        return -1
    for at in range(start, end):
        known += text[at]
        if known not in beginnings:
            return at
    return -1


def _believe(stream: Stream, env: Envelope, text: str, pos: int) -> int:
    """After an opening brace: a key or the closing brace must follow before it is an object."""
    pos = skip_blanks_after_opening(stream, text, pos)
    if pos == len(text):
        return pos
    if text[pos] == "'" and may_transcode(stream, env, text[pos]):
        transcode(stream, env, FIRST_KEY, text[pos])
        return pos
    if text[pos] not in '"}' or len(stream.opening) > MAX_TOKEN:
        stream.misfit()
        return pos
    opening, stream.opening, stream.doubt = stream.opening, "", False
    trigger = f"start_map {stream.same(env.path)}"
    env.push("{")
    env.parents.append(env.path)
    if stream.state.row[trigger].dest.meaning == "arguments":
        env.parents.pop()
        source, env.source = env.source, ""
        stream.fire(trigger, source)
        transcoded = stream.source is not None
        stream.delta("{" if transcoded else "{" + opening.removeprefix("{"), opening)
    else:
        source, env.source = env.source + opening, ""
        stream.fire(trigger, source)
    return pos


def _take_token(stream: Stream, env: Envelope, piece: str, source: str) -> None:
    """What `scanner.step` has just read."""
    scanner = env.scanner
    kind = scanner.kind
    if kind == OPEN:
        if piece == "{":
            stream.doubt = True
            stream.opening = source
        else:
            env.source += source
            env.push(piece)
            env.path = "item"
            text, env.source = env.source, ""
            stream.fire("start_array", text)
    elif kind == PUNCTUATION:
        env.source += source
        env.push(piece)
        if piece == "," and not env.parents:
            env.path = "item"
    elif kind == CLOSE:
        _close(stream, env, piece, source)
    elif kind in (STRING_PART, CONTROL, STRING_END):
        if not env.token:
            env.token_at = len(env.source)
        env.token += escape_controls(piece) if kind == CONTROL else piece
        _take_string(stream, env, source, kind == STRING_END)
    else:
        env.source += source
        env.token += piece
        if kind == SCALAR_END:
            _take_scalar(stream, env)


def _close(stream: Stream, env: Envelope, piece: str, source: str) -> None:
    """A closing bracket of the envelope: of the list, of the call's object, or of an object in it."""
    env.source += source
    trigger = "end_array" if piece == "]" else f"end_map {stream.same(env.parents[-1])}"
    if trigger not in stream.state.row:
        stream.misfit(quote=env.scanner)
        return
    env.push(piece)
    if piece == "}":
        env.path = env.parents.pop()
    over = env.scanner.done
    if not over:
        env.settle()
    text, env.source = env.source, ""
    if over:
        stream.env = None
    stream.fire(trigger, text)
    if over and piece == "}" and "end_array" in stream.state.row:
        stream.fire("end_array", "")


def _take_string(stream: Stream, env: Envelope, source: str, whole: bool) -> None:
    env.source += source
    if env.scanner.in_key or env.scanner.state == COLON:
        _take_key(stream, env, whole)
        return
    path = stream.same(env.path)
    plain = f"string {path}"
    if whole:
        token, env.token = env.token, ""
        ((_, _, value),) = env.push(token)
        trigger = f"string {path} {value}"
        if trigger not in stream.state.row:
            trigger = plain
        move = stream.state.row.get(trigger)
        if move is None or (not value and "name" in move.actions):
            stream.misfit(quote=env.scanner)
            return
        env.settle()
        before, text, env.source = env.source[: env.token_at], env.source[env.token_at :], ""
        stream.sink.drop(before, SYNTAX)
        stream.fire(trigger, text, value=value)
    elif plain not in stream.state.row and "\\" in env.token and _decoded(env.token) not in stream.state.values[path]:
        stream.misfit(quote=env.scanner)


def _take_key(stream: Stream, env: Envelope, whole: bool) -> None:
    state = stream.state
    parent = env.parents[-1]
    if not whole:
        known = state.any_key or "\\" not in env.token or f"{parent}.{_decoded(env.token)}" in state.key_prefixes
        if not known:
            stream.misfit(quote=env.scanner)
        return
    token, env.token = env.token, ""
    ((_, _, key),) = env.push(token)
    env.path = f"{parent}.{key}"
    trigger = f"map_key {stream.same(env.path)}"
    if trigger not in state.row and state.named_key and key:
        env.path = f"{parent}.*"
        trigger = f"map_key {env.path}"
    if trigger not in state.row:
        trigger = "map_key"
    if trigger not in state.row:
        stream.misfit(quote=env.scanner)
        return
    before, text, env.source = env.source[: env.token_at], env.source[env.token_at :], ""
    if "name" in state.row[trigger].actions:
        stream.sink.drop(before, SYNTAX)
        stream.fire(trigger, text, value=key)
    else:
        stream.fire(trigger, before + text)


def _take_scalar(stream: Stream, env: Envelope) -> None:
    token, env.token = env.token, ""
    trigger = f"{_KINDS[token[0]]} {stream.same(env.path)}"
    env.push(token)
    env.settle()
    text, env.source = env.source, ""
    stream.fire(trigger, text)


def _decoded(token: str) -> str:
    """An unfinished JSON string as far as it can be decoded: without an escape that is not whole yet."""
    if "\\" not in token:
        return token[1:]
    match = _WHOLE_ESCAPES(token)
    assert match is not None
    decoded: str = json.loads(match.group() + '"')
    return decoded


def read_ignored(stream: Stream, text: str, pos: int, final: bool) -> int:
    """The value of a member that belongs to no call: dropped as one piece."""
    env = stream.env
    assert env is not None
    scanner = env.scanner
    start = pos
    while pos < len(text):
        pos = scanner.step(text, pos)
        if scanner.broken:
            stream.pending.append(stream.take(text, start, pos))
            stream.misfit()
            return pos
        if scanner.state == AFTER_MEMBER and len(scanner.stack) == env.depth:
            env.push(":null")
            env.settle()
            value = env.source + "".join(stream.pending) + stream.take(text, start, pos)
            env.source = ""
            stream.pending.clear()
            stream.fire("value_end", value)
            return pos
    stream.pending.append(stream.take(text, start, pos))
    return pos


def read_transcoded(stream: Stream, text: str, pos: int, final: bool) -> int:
    """An envelope in Python's spelling: one character at a time through the transcoder, its JSON to the readers."""
    env = stream.env
    assert env is not None and env.python is not None
    character = text[pos]
    stream.reread = False
    stream.source = (stream.source or "") + character
    if env.python.read(character, 0) == 0:
        stream.reader = env.inner
        stream.misfit()
        return pos if stream.reread else pos + 1
    written = env.python.out
    if env.skip:
        at = min(env.skip, len(written))
        env.skip -= at
        written = written[at:]
    at = 0
    while at < len(written):
        stream.reader = env.inner
        at = READERS[env.inner](stream, written, at, False)
        if stream.env is not env or stream.reader == "malformed":
            stream.source = None
            return pos if stream.reread else pos + 1
        env.inner = stream.reader
    stream.reader = "transcoded"
    return pos + 1


def read_quoted(stream: Stream, text: str, pos: int, final: bool) -> int:
    """A value that is JSON but no call: text to its end, or to where it is not JSON any more."""
    scanner = stream.scanner
    assert scanner is not None
    scanner.run(text, pos, 0)
    end = scanner.end
    meaning, why, named = stream.quoted
    if end > pos:
        stream.sink.say(meaning, text[pos:end], why)
        if scanner.in_string:
            stream.sink.keep_blanks(meaning, why)
    if scanner.broken and (named or len(scanner.stack) > 1):
        stream.wreckage = Wreckage("".join(scanner.stack))
        stream.wreckage.blind = True
        stream.scanner, stream.reader = None, "debris"
    elif scanner.broken or scanner.done:
        stream.scanner = None
        stream.reader = reader_of(stream.state)
    return end


READERS: dict[str, Reader] = {
    "envelope": read_envelope,
    "arguments": read_arguments,
    "encoded": read_encoded,
    "ignored": read_ignored,
}
