"""Values of a plain whole output: read at once, or refused.

Strategy: the json module finds the end of an object and checks it; an expression reads a key or a string of an
envelope; the islands read Python arguments and tagged values. Whatever they repair, note or refuse is `Unusual`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from toolgram.islands import MarkedValue, Value, island_class, plain_value, read_whole, value_island, value_kind
from toolgram.limits import LONGEST_WORD, MOST_AFTER_ARGUMENTS, MOST_WHOLE_BRACKETS
from toolgram.program.state import TERMINAL, Program, StateProgram, Symbol, next_symbol
from toolgram.runtime.following import (
    end_of_closers,
    end_of_python_blanks,
    expression_goes_on,
    goes_on,
    next_call,
)
from toolgram.runtime.whole_places import Unusual
from toolgram.spec.vocabulary import AS_DECLARED
from toolgram.tools.reading import Tools
from toolgram.tools.repeated_keys import repeated_keys

if TYPE_CHECKING:
    from toolgram.tools.parameters import Parameters

_LONG = 4_096  # characters: from here on, counting brackets costs less than reading in vain
_python_begins = re.compile(r"\{[ \t\r\n]*+'").match
_in_single_quotes = re.compile(rf"""\{{[ \t\r\n]*+'[^"\\]{{1,{_LONG}}}+""").match  # so each of them is one of a string
_key = re.compile(rf"""[ \t\r\n]*+(["'])(\w{{1,{LONGEST_WORD}}}+)\1[ \t\r\n]*+:[ \t\r\n]*+""").match
_string = re.compile(r""""([^"\\\x00-\x1f]*+)"|'([^'"\\\x00-\x1f]*+)'""").match


_STRING, _WORD, _OPENING, _CLOSING = 1, 2, 3, 4  # groups of a token; any other is as JSON has it
_python_token = re.compile(
    r"""[ \t\r\n]*+(?:'((?:[^'\\\x00-\x1f]++|\\['"\\bfnrt])*+)'|(True|False|None)\b|([\[{])|([\]}])|([,:]|"""
    r""""(?:[^"\\\x00-\x1f]++|\\["\\bfnrt])*+"|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][-+]?[0-9]++)?+"""
    r"""(?![0-9a-zA-Z_.])))"""
).match
_respelled = re.compile(r"""\\.|\"""").sub  # what JSON writes in another way in a string with single quotes
_RESPELLED = {"\\'": "'", '"': '\\"'}
_JSON_WORDS = {"True": "true", "False": "false", "None": "null"}


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)  # NaN and the infinities are not JSON


def _once(members: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the members of an object. Raise ValueError for a repeated key."""
    if len(dict(members)) < len(members):
        raise ValueError("a key twice")
    return members


_decoder: Any = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse_constant)
_members: Callable[[str, int], tuple[list[Any], int]] = _decoder.scan_once


def end_of_object(text: str, start: int) -> int:
    """Return where the JSON object at `start` ends. Raise Unusual if it is not plain."""
    if len(text) - start > _LONG and text.count("{", start) + text.count("[", start) > MOST_WHOLE_BRACKETS:
        raise Unusual
    try:
        _, end = _members(text, start)
    except (ValueError, StopIteration, RecursionError):
        raise Unusual from None
    deep = (
        end - start > MOST_WHOLE_BRACKETS
        and text.count("{", start, end) + text.count("[", start, end) > MOST_WHOLE_BRACKETS
    )
    if text[start] != "{" or deep or goes_on(text, end):
        raise Unusual
    return end


def envelope_key(text: str, pos: int) -> tuple[str, int, int, bool]:
    """Return the key of a member, where it ends and where its value begins, and whether its quotes are Python's."""
    found = _key(text, pos)
    if found is None:
        raise Unusual
    return found[2], found.end(2) + 1, found.end(), found[1] == "'"


def envelope_string(text: str, pos: int) -> tuple[str, int]:
    """Return the string that begins at `pos`, and where it ends."""
    found = _string(text, pos)
    value = None if found is None else found[found.lastindex or 0]
    if found is None or value is None or not value.isprintable():
        raise Unusual
    return value, found.end()


def python_arguments(text: str, pos: int, listed: bool) -> tuple[str, int]:
    """Return the JSON of keyword arguments, and where the call ends."""
    scanner = island_class("python")()
    scanner.listed = listed
    end = scanner.read(text, pos, False)
    written: str = scanner.out
    at = end_of_python_blanks(text, end, listed)
    if not scanner.done or scanner.broken or not (scanner.started or scanner.empty) or expression_goes_on(text, at):
        raise Unusual
    line, _, _ = text[end : end + 2 * MOST_AFTER_ARGUMENTS].partition("\n")
    if not {'"', "'"}.isdisjoint(line) and next_call(line, end_of_closers(line, 0)) is None:
        raise Unusual  # a string may go on
    if scanner.empty:
        return "{}", end
    return _checked(written, end)


def begins_python(text: str, pos: int) -> bool:
    """Return whether the object at `pos` begins with a key in single quotes."""
    return _python_begins(text, pos) is not None


def loose_object(text: str, pos: int) -> tuple[str, int, int, str]:
    """Return the JSON of an object that may be in Python's spelling, where it ends, and the first place and text of
    that spelling; -1 and "" if there is none."""
    near = _in_single_quotes(text, pos)
    if near is not None and not any(word in near[0] for word in _JSON_WORDS):
        written = near[0].replace("'", '"')
        try:
            end = end_of_object(written, 0)
            return written[:end], pos + end, text.index("'", pos), "'"
        except Unusual:
            pass  # it may be longer
    parts: list[str] = []
    depth, first, said = 0, -1, ""
    while token := _python_token(text, pos):
        kind = token.lastindex or 0
        spelled = kind in (_STRING, _WORD)
        if spelled and not said and text[pos - 1] == ",":
            raise Unusual  # a stream reports it at the comma, which it holds
        begin, pos = pos, token.end()
        if spelled:
            written = token[kind]
            place = token.start(kind) - (kind == _STRING)
            parts += text[begin:place], _json_string(written) if kind == _STRING else _JSON_WORDS[written]
            first, said = (first, said) if said else (place, "'" if kind == _STRING else written)
        else:
            parts.append(text[begin:pos])
        depth += (kind == _OPENING) - (kind == _CLOSING)
        if not depth:
            break
    return *_checked("".join(parts), pos), first, said


def _json_string(written: str) -> str:
    """Return what is written in single quotes as JSON."""
    odd = '"' in written or "\\" in written
    return f'"{_respelled(lambda each: _RESPELLED.get(each[0], each[0]), written) if odd else written}"'


def _checked(written: str, end: int) -> tuple[str, int]:
    """Return the JSON of an object and its end. Raise Unusual if it is not a whole object."""
    if end_of_object(written, 0) != len(written):
        raise Unusual
    return written, end


def tagged_value(
    program: Program, state: StateProgram, text: str, pos: int, key: str, declared: Parameters | None, tools: Tools
) -> tuple[str, int, Symbol | None, int]:
    """Return the JSON of a tagged value, where it ends, the marker that closes it (None if it ends by itself), and
    where that ends."""
    typed, alone = state.typed, "value_end" in state.row
    kind = value_kind(typed, alone)
    if (
        state.echo
        or program.unproven_types
        or kind == "elements"
        or (state.before and text.startswith(state.before, pos))
    ):
        raise Unusual
    types = None
    if tools:
        from toolgram.tools.parameters import types_of_value

        types = types_of_value(declared, key, typed not in AS_DECLARED, True)
    if alone:
        written, end = _value_alone(state, value_island(kind, typed, types, program.spec.notation, key), text, pos)
        return written, end, None, end
    begin, end, symbol = next_symbol(state, state.find_plain, text, pos)
    if symbol is None or not _closes(state, symbol, text, end, tools.names):
        raise Unusual
    plain = plain_value(kind, typed, types, text[pos:begin])
    if plain is None:
        value = cast(MarkedValue, value_island(kind, typed, types, program.spec.notation, key))
        plain = _value_to_marker(value, text[pos:begin])
    if plain[0] in "{[" and repeated_keys(plain):
        raise Unusual
    return plain, begin, symbol, end


def _value_alone(state: StateProgram, value: Value, text: str, pos: int) -> tuple[str, int]:
    """Return the JSON of a value that ends by itself, and where it ends."""
    end, read = read_whole(value, text, pos)
    odd = any(getattr(value, name, ()) for name in ("odd", "repeated", "repairs")) or repeated_keys(read)
    if not value.done or value.broken or odd or any(marker in text[pos:end] for marker in state.literals):
        raise Unusual
    return read, end


def _value_to_marker(value: MarkedValue, raw: str) -> str:
    written = ""
    if raw:
        if value.read(raw, 0, False) < len(raw) or value.broken or value.in_string:
            raise Unusual
        written = value.out
    written += value.finish()
    if value.broken or value.repairs or value.odd:
        raise Unusual
    return written


def _closes(state: StateProgram, symbol: Symbol, text: str, end: int, names: frozenset[str]) -> bool:
    """Return whether a marker that ends at `end` closes its value, by what follows it."""
    look = state.looks.get(symbol.trigger)
    if look is None:
        return symbol.kind == TERMINAL
    move = state.row.get(symbol.trigger)
    if move is None or move.dest.meaning == "argument_key":
        return False
    if not names:
        return True
    found = look.match(text, end)
    return found is not None and names.issuperset([name for name in found.groups() if name is not None])


def may_go_on(state: StateProgram, text: str, pos: int, symbol: Symbol, end: int) -> bool:
    """Return whether what shows that a marker, up to `end`, closes its value is at the end, and may be cut off there: a
    short word closes the call, say, which may be the beginning of a key."""
    look = state.looks.get(symbol.trigger)
    found = look.match(text, end) if look is not None else None
    return found is not None and found.end() == len(text) and next_symbol(state, state.find, text, pos)[2] is not symbol
