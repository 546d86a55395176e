"""Reader of the JSON around a call: its tokens become events as ijson writes them, which are the machine's triggers.

Input that cannot belong to a call is rejected at once: a key at the first character that no known key has there, a
value of a kind that no transition takes at its first character.
"""

from __future__ import annotations

import json
import re
from typing import cast

from toolgram.islands.held_text import take_pieces
from toolgram.islands.json_envelope import Envelope
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
    START,
    STRING_END,
    STRING_PART,
    escape_controls,
    leaves_string,
)
from toolgram.limits import BLANKS, LONGEST_ENVELOPE_TEXT, MOST_BLANKS
from toolgram.runtime.argument_readers import (
    REPAIRABLE,
    begin_repair,
    is_python_only,
    read_after_arguments,
    read_arguments,
    read_closed,
    read_string,
    say_brace,
    skip_blanks_after_opening,
)
from toolgram.runtime.event_buffer import SYNTAX
from toolgram.runtime.following import end_of_json_blanks
from toolgram.runtime.stream import Stream

_EXPECTED = {
    **dict.fromkeys((ITEM, FIRST_ITEM), '{[]"'),
    MEMBER_VALUE: '{["tfn-0123456789',
    **dict.fromkeys((FIRST_KEY, KEY), '"}'),
    COLON: ":",
    AFTER_ITEM: ",]{",
    AFTER_MEMBER: ",}",
    START: "{[",
}
_QUOTES = "\"'"
_COMMENTS = ("//", "/*")
_QUOTED = (KEY, FIRST_KEY, MEMBER_VALUE)  # a string may begin here in an envelope
_half_a_pair = re.compile("[\ud800-\udfff]").search
_WHOLE_ESCAPES = re.compile(r'"(?:[^\\]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+').match
_object_goes_on = re.compile(rf"{BLANKS}(?:\}}|,{BLANKS}\")").match
_object_may_go_on = re.compile(rf"{BLANKS}(?:,{BLANKS})?\Z").match
_MEMBER_WHY = "a member in place of the next call: the object is already closed"
_KINDS = {
    '"': "string",
    "{": "start_map",
    "[": "start_array",
    "n": "null",
    **dict.fromkeys("tf", "boolean"),
    **dict.fromkeys("-0123456789", "number"),
}


def read_envelope(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read one token of the envelope, or the part of it that has come."""
    envelope = cast(Envelope, stream.island)
    if stream.source.object_is_held:
        return _confirm(stream, envelope, text, pos)
    if envelope.scanner.between:
        begin, pos = pos, end_of_json_blanks(text, pos)
        if pos > begin:
            envelope.source += stream.source.take(text, begin, pos)
        if pos == len(text):
            return pos
        after = _read_between(stream, envelope, text, pos, final)
        if after is not None:
            return after
    return _read_piece(stream, envelope, text, pos)


def _read_between(stream: Stream, envelope: Envelope, text: str, pos: int, final: bool) -> int | None:
    """Handle special cases between two tokens. Return the position after them, or WAIT; None if there are none."""
    scanner, after = envelope.scanner, None
    if scanner.state in _QUOTED and is_python_only(stream, envelope, text[pos]):
        begin_repair(stream, scanner)
        return pos
    if scanner.stack == ["["]:
        marked = stream.any_at(stream.state.literals, text, pos, final) if stream.state.held else 0
        if marked > 0:
            stream.island, stream.reader = None, stream.state.reader  # the list has no end
        if marked:
            return pos if marked > 0 else stream.wait(text[pos:])
        after = _read_in_list(stream, envelope, text, pos)
    if after is None and scanner.repairs:
        after = _repair_between(stream, envelope, text, pos, final)
    if after is not None:
        return after
    if scanner.state <= MEMBER_VALUE and not _may_begin_with(stream, envelope, text[pos]):
        return pos
    return pos + 1 if stream.reader == "encoded" else None


def _read_in_list(stream: Stream, envelope: Envelope, text: str, pos: int) -> int | None:
    """Repair a missing comma or a surplus bracket between calls; fail at a member. Return the position or None."""
    scanner, character = envelope.scanner, text[pos]
    if scanner.state == AFTER_ITEM and character == "{":
        scanner.state = ITEM
        stream.events.note("repaired_json", character)
    elif scanner.state == AFTER_ITEM and character != "]" and character in stream.program.closers:
        _drop_surplus(stream, envelope, text, pos)
        return pos + 1
    elif scanner.state == ITEM and character == '"' and not stream.state.held and "malformed" in stream.state.row:
        stream.fail(why=_MEMBER_WHY)
        return pos
    return None


def _repair_between(stream: Stream, envelope: Envelope, text: str, pos: int, final: bool) -> int | None:
    """Repair JSON between two tokens. Return the position after it, or WAIT; None if nothing needs repair."""
    scanner, character = envelope.scanner, text[pos]
    if character == "]" and scanner.state == AFTER_MEMBER and "unclosed" in stream.state.row:
        after = _read_surplus_bracket(stream, envelope, text, pos, final)
        if after != pos:
            return after
    if character == "," and scanner.state in (AFTER_ITEM, AFTER_MEMBER):
        return _repair_comma(stream, envelope, text, pos, final)
    if character in _EXPECTED[scanner.state]:
        return None
    if character == "/" and pos + 1 == len(text) and not final:
        return stream.wait(text[pos:])
    # if the envelope may be unclosed, anything else is not JSON any more
    if "unclosed" in stream.state.row and character not in _QUOTES and not text.startswith(_COMMENTS, pos):
        return read_after_arguments(stream, text, pos, final)
    begin_repair(stream, scanner)
    return pos


def _repair_comma(stream: Stream, envelope: Envelope, text: str, pos: int, final: bool) -> int | None:
    """Repair a surplus comma: one that neither a key nor an object follows."""
    after = end_of_json_blanks(text, pos + 1)
    if after - pos > MOST_BLANKS + 1:
        return None
    if after == len(text) and not final:
        return stream.wait(text[pos:])
    if text[after : after + 1] in '"{':
        return None
    begin_repair(stream, envelope.scanner)
    return pos


def _read_piece(stream: Stream, envelope: Envelope, text: str, pos: int) -> int:
    """Read a token, or a piece of one, as long as it may still be what it begins as."""
    scanner = envelope.scanner
    limit, fits = prescribed(stream, envelope, text, pos)
    if not fits:
        if limit > pos:
            scanner.step(text[pos:limit], 0)
            envelope.source += stream.source.take(text, pos, limit)
        _reject_member(stream, envelope)
        return limit
    end = scanner.step(text, pos) if limit == len(text) else pos + scanner.step(text[pos:limit], 0)
    if scanner.broken or len(envelope.source) > LONGEST_ENVELOPE_TEXT:
        if end > pos:  # otherwise the character is still to be read
            envelope.source += stream.source.take(text, pos, end)
        stream.unexpected_input()
        return end
    _take_token(stream, envelope, text[pos:end], stream.source.take(text, pos, end))
    return end


def _read_surplus_bracket(stream: Stream, envelope: Envelope, text: str, pos: int, final: bool) -> int:
    """Drop a surplus bracket after a member, if the object goes on. Return the position, or WAIT; `pos` without one."""
    if not final and _object_may_go_on(text, pos + 1):
        return stream.wait(text[pos:])
    if _object_goes_on(text, pos + 1) is None:
        return pos
    _drop_surplus(stream, envelope, text, pos)
    return pos + 1


def _drop_surplus(stream: Stream, envelope: Envelope, text: str, pos: int) -> None:
    """Drop the bracket at `pos`, which closes nothing."""
    source = envelope.take_source() + stream.source.take(text, pos, pos + 1)
    stream.events.drop(source, SYNTAX)
    stream.events.note("surplus_closer", text[pos], -1 if source else 0)


def _may_begin_with(stream: Stream, envelope: Envelope, character: str) -> bool:
    """Return whether a value that begins with `character` is allowed here, and reject it if not."""
    kind = _KINDS.get(character)
    if kind is None:
        if character != "]" or envelope.scanner.state != FIRST_ITEM:
            stream.unexpected_input()
            return False
        return True
    if not _takes(stream, envelope, kind):
        _reject_member(stream, envelope)
        return False
    move = stream.state.row.get(f"string {stream.same(envelope.path)}") if kind == "string" else None
    if move is not None and move.dest.meaning == "arguments":
        envelope.string = JsonStringScanner(envelope.repairs)
        envelope.scanner.state = MEMBER_STRING
        stream.source.opening = stream.source.take(character, 0, 1)
        stream.reader = "encoded"
    return True


def _takes(stream: Stream, envelope: Envelope, kind: str) -> bool:
    """Return whether a value of this kind is allowed here."""
    row, path = stream.state.row, stream.same(envelope.path)
    if kind == "start_array":
        return not envelope.member and (f"start_array {path}" if envelope.path else "start_array") in row
    return f"{kind} {path}" in row or (kind == "string" and path in stream.state.values)


def _ignores_member(stream: Stream, envelope: Envelope) -> bool:
    """Drop the value that has begun with its member, if any member is allowed here. Return whether it was dropped."""
    if "map_key" not in stream.state.row or not envelope.parents or envelope.scanner.in_key:
        return False
    stream.events.note("unusual_form", envelope.path.rpartition(".")[2])
    envelope.token = ""
    stream.fire("map_key", "")
    return True


def _reject_member(stream: Stream, envelope: Envelope) -> None:
    """Handle a value that is not allowed here: its member is dropped, or the envelope is no call."""
    if not _ignores_member(stream, envelope):
        stream.unexpected_input(envelope.scanner)


def prescribed(stream: Stream, envelope: Envelope, text: str, pos: int) -> tuple[int, bool]:
    """Return how far the next piece of a string may go, and whether it fits so far.

    A key or a string with known values is read up to the first character that none of them has there. An escape is read
    character by character, so that it is rejected only when it is whole, however the text is cut.
    """
    scanner, end = envelope.scanner, len(text)
    inside = scanner.in_string
    prescribed = _prescribed_strings(stream, envelope) if inside or text[pos] == '"' else None
    if prescribed is None:
        return end, True
    known, beginnings = prescribed
    if inside and (not scanner.in_plain_string or text[pos] == "\\"):
        return pos + 1, True
    if inside:
        known += _decoded(envelope.token)
    start = pos if inside else pos + 1
    special = leaves_string(text, start)
    plain_end = special.start() if special else end
    if known + text[start:plain_end] not in beginnings:
        for at in range(start, plain_end):
            known += text[at]
            if known not in beginnings:
                return at, False
    return (plain_end if special and special.group() == "\\" else end), True


def _prescribed_strings(stream: Stream, envelope: Envelope) -> tuple[str, frozenset[str]] | None:
    """Return the prefix of the string and its allowed beginnings; None if any string is allowed."""
    scanner, state = envelope.scanner, stream.state
    inside = scanner.in_string
    if scanner.in_key if inside else scanner.state in (FIRST_KEY, KEY):
        return None if state.any_key else (f"{envelope.parents[-1]}.", state.key_prefixes)
    path = stream.same(envelope.path)
    anything = path not in state.values or f"string {path}" in state.row
    return None if anything or (not inside and scanner.state > MEMBER_VALUE) else ("", state.values[path])


def _confirm(stream: Stream, envelope: Envelope, text: str, pos: int) -> int:
    """Read what follows an opening brace: only a key or the closing brace makes it an object."""
    pos = skip_blanks_after_opening(stream, text, pos)
    if pos == len(text):
        return pos
    python = text[pos] == "'" and is_python_only(stream, envelope, "'")
    if python or (envelope.scanner.repairs and text[pos] in REPAIRABLE):
        begin_repair(stream, envelope.scanner)
        return pos
    if text[pos] not in '"}' or len(stream.source.opening or "") > LONGEST_ENVELOPE_TEXT:
        stream.unexpected_input()
        return pos
    trigger = f"start_map {stream.same(envelope.path)}"
    opening = stream.source.confirm()
    if stream.state.row[trigger].dest.meaning == "arguments":
        stream.fire(trigger, envelope.take_source())
        say_brace(stream, opening)
    else:
        envelope.parents.append(envelope.path)
        stream.fire(trigger, envelope.take_source() + opening)
    return pos


def _take_token(stream: Stream, envelope: Envelope, piece: str, source: str) -> None:
    """Process the token that `scanner.step` has just read."""
    scanner = envelope.scanner
    kind = scanner.kind
    if kind == OPEN:
        if piece == "{":
            stream.source.opening = source
        else:
            trigger = f"start_array {stream.same(envelope.path)}" if envelope.path else "start_array"
            if envelope.path:
                envelope.enter_list()
            else:
                envelope.path = "item"
            stream.fire(trigger, envelope.take_source() + source)
    elif kind == PUNCTUATION:
        envelope.source += source
        if piece == "," and not envelope.parents:
            envelope.path = "item"
    elif kind == CLOSE:
        _close(stream, envelope, piece, source)
    elif kind in (STRING_PART, CONTROL, STRING_END):
        if not envelope.token:
            envelope.token_at = len(envelope.source)
        envelope.token += escape_controls(piece) if kind == CONTROL else piece
        envelope.source += source
        _take_string(stream, envelope, kind == STRING_END)
    else:
        envelope.source += source
        envelope.token += piece
        if kind == SCALAR_END:
            token, envelope.token = envelope.token, ""
            trigger = f"{_KINDS[token[0]]} {stream.same(envelope.path)}"
            stream.fire(trigger, envelope.take_source(), value=token)


def _close(stream: Stream, envelope: Envelope, piece: str, source: str) -> None:
    """Process a closing bracket of the envelope: of the list, of the call's object, or of an object in it."""
    envelope.source += source
    trigger = _closing_trigger(stream, envelope, piece)
    move = stream.state.row.get(trigger)
    if move is None or ("no_arguments" in move.actions and not stream.is_marked):  # prose has objects with a name
        stream.unexpected_input(envelope.scanner)
        return
    if envelope.member and piece == "]":
        envelope.leave_list()
    if piece == "}":
        envelope.path = envelope.parents.pop()
    over = envelope.scanner.done
    if over:
        stream.island = None
    stream.fire(trigger, envelope.take_source())
    if over and piece == "}" and "end_array" in stream.state.row:
        stream.fire("end_array", "")


def _closing_trigger(stream: Stream, envelope: Envelope, piece: str) -> str:
    if piece == "}":
        outermost = envelope.member and len(envelope.parents) == 1
        return f"end_map {envelope.member}.item" if outermost else f"end_map {stream.same(envelope.parents[-1])}"
    return f"end_array {envelope.member}" if envelope.member else "end_array"


def _take_string(stream: Stream, envelope: Envelope, whole: bool) -> None:
    """Process a string that is whole, or a part of one. An escape in it is looked up as soon as it is whole."""
    token = envelope.token
    if not whole:
        known = _prescribed_strings(stream, envelope) if "\\" in token else None
        if known is not None and known[0] + _decoded(token) not in known[1]:
            _reject_member(stream, envelope)
        return
    envelope.token = ""
    text = _text_of(token)
    if text is None:
        stream.unexpected_input(envelope.scanner)
    elif envelope.scanner.state == COLON:
        _take_key(stream, envelope, text)
    else:
        _take_value(stream, envelope, text)


def _take_value(stream: Stream, envelope: Envelope, value: str) -> None:
    """Process the string that is the value of a member."""
    row, path = stream.state.row, stream.same(envelope.path)
    trigger = f"string {path} {value}" if f"string {path} {value}" in row else f"string {path}"
    move = row.get(trigger)
    if move is None and _ignores_member(stream, envelope):
        stream.fire("value_end", envelope.take_source())
    elif move is None or (not value and "name" in move.actions) or stream.refuses(move, value):
        stream.unexpected_input(envelope.scanner)
    else:
        text = envelope.take_source()
        stream.events.drop(text[: envelope.token_at], SYNTAX)
        stream.fire(trigger, text[envelope.token_at :], value=value)


def _text_of(token: str) -> str | None:
    """Return the text of a JSON string, or None if it has half a surrogate pair."""
    if "\\" not in token and not _half_a_pair(token):
        return token[1:-1]
    text: str = json.loads(token.encode("utf-8", "replace"))
    return None if _half_a_pair(text) else text


_may_be_name = re.compile(r"\w[\w .:/@$-]*+").fullmatch  # of a member that the format does not know


def _take_key(stream: Stream, envelope: Envelope, key: str) -> None:
    """Process a key."""
    state, parent = stream.state, envelope.parents[-1]
    envelope.path = f"{parent}.{key}"
    trigger = f"map_key {stream.same(envelope.path)}"
    if trigger not in state.row and state.named_key and key:
        envelope.path = f"{parent}.*"
        trigger = f"map_key {envelope.path}"
    known = trigger in state.row
    if not known:
        trigger = "map_key"
    if trigger not in state.row or stream.refuses(state.row[trigger], key):
        stream.unexpected_input(envelope.scanner)
        return
    before, text, envelope.source = envelope.source[: envelope.token_at], envelope.source[envelope.token_at :], ""
    if not known and stream.calls.index is not None and not _may_be_name(key):
        stream.fail_after_arguments(before, before + text)
        return
    if not known:  # nothing shows whether it was meant as an argument
        stream.events.drop(before, SYNTAX)
        stream.events.note("unusual_form", key)
        stream.fire(trigger, text)
    elif "name" in state.row[trigger].actions:
        stream.events.drop(before, SYNTAX)
        stream.fire(trigger, text, value=key)
    else:
        stream.fire(trigger, before + text)


def _decoded(token: str) -> str:
    """Decode an unfinished JSON string, except an unfinished escape at its end."""
    if "\\" not in token:
        return token[1:]
    match = cast("re.Match[str]", _WHOLE_ESCAPES(token))
    return cast(str, json.loads(match.group() + '"'))


def read_ignored(stream: Stream, text: str, pos: int, final: bool) -> int:
    """Read the value of a member that belongs to no call, and drop it as one piece."""
    envelope, source = cast(Envelope, stream.island), stream.source
    scanner, start = envelope.scanner, pos
    while pos < len(text):
        pos = envelope.read(text, pos, False)
        over = scanner.state == AFTER_MEMBER and len(scanner.stack) == envelope.depth
        if scanner.broken:
            source.hold(text, start, pos)
            stream.unexpected_input()
            return pos
        if over:
            value = envelope.take_source() + take_pieces(source.pieces) + source.take(text, start, pos)
            stream.fire("value_end", value)
            return pos
    source.hold(text, start, pos)
    return pos


ENVELOPE_READERS = {
    "envelope": read_envelope,
    "arguments": read_arguments,
    "closed": read_closed,
    "encoded": read_string,
    "ignored": read_ignored,
}
