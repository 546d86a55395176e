"""The message of a whole output that is as plain as its format's examples, without the events that it is folded from.

Strategy: a short call costs a parser more than the reading of it: it makes a dozen events, looks for anomalies in them
and folds them.  Where the whole text is known, nobody asks for events.  Names, ids, keys and text are taken from the
groups of a few expressions (`runtime.whole_recording`), and the values between them are read by the same islands as in
a stream, or by the json module.

No rule is stated here that readers do not have.  What kind of output it is, the *signature*, says which pieces it had,
where text stood, and what the finish reason was.  An output of a new signature is read by a parser as well, and a
signature whose messages differ is not read here again.  Whatever is repaired, odd, undeclared, missing or repeated is
left to the parser, by the answer None.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from toolgram.call_ids import CallIds
from toolgram.islands import MarkedValue, Value, island_class, plain_value, read_whole, value_island, value_kind
from toolgram.limits import (
    LONGEST_WHOLE_OUTPUT,
    MOST_BLANKS_BESIDE,
    MOST_SIGNATURE_PIECES,
    MOST_SIGNATURES,
    MOST_TAIL,
    MOST_WHOLE_BRACKETS,
)
from toolgram.message import Message, Part, ToolCall
from toolgram.program.state import TERMINAL, Program, StateProgram, Symbol
from toolgram.runtime.argument_readers import GOES_ON
from toolgram.runtime.event_buffer import may_open
from toolgram.runtime.parser import Parser
from toolgram.runtime.stream import next_symbol
from toolgram.runtime.whole_recording import JSON, PYTHON, TEXT, Piece, entry_key, is_clean, recorded_pieces, symbol_at
from toolgram.tools.parameters import DeclaredParameters, Parameters, Types, declared_parameters, types_of_value
from toolgram.tools.reading import Tools, read_tools

_LONG = 4_096  # characters: to read so many in vain costs more than counting their brackets
_MADE_UP_ID = "id"

Signature = tuple[object, ...]


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)  # NaN and the infinities are no JSON


def _once(members: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The members of an object. Raises ValueError for a key that is there twice."""
    if len(dict(members)) < len(members):
        raise ValueError("a key twice")
    return members


_decoder: Any = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_refuse_constant)
_members: Callable[[str, int], tuple[list[Any], int]] = _decoder.scan_once


class _Call(NamedTuple):
    """A call: its name, the id that the model wrote, its arguments, and the id that came after them."""

    name: str
    id: str
    arguments: str
    model_id: str | None


class _Open:
    """A call that is being read: all of its arguments, or those that come one by one."""

    __slots__ = ("_parameters", "arguments", "id", "members", "name")

    def __init__(self, name: str, made_id: str, parameters: DeclaredParameters | None) -> None:
        self.name = name
        self.id = made_id
        self.arguments: str | None = None
        self.members: dict[str, str] = {}
        self._parameters = parameters

    @property
    def declared(self) -> Parameters | None:
        """The parameters of the function; None where no tools are declared."""
        return None if self._parameters is None else self._parameters.get(self.name)

    def may_have(self, key: str) -> bool:
        """Whether the function may have such an argument."""
        declared = self.declared
        return declared is None or declared.open or key in declared.types


class WholeOutputs:
    """Reads whole outputs of one program, whose parsers begin with the prompt that the format says."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.pieces = recorded_pieces(program)
        stream = Parser(program)._stream
        clean = is_clean(stream) and stream.island is None and stream.calls.index is None
        self.start: StateProgram | None = stream.state if clean and not stream.source.prefix_characters else None
        self._known: dict[Signature, bool] = {}

    def message(self, text: str, tools: Tools, ids: CallIds, finish_reason: str | None) -> Message | None:
        """The message that a parser makes of `text`; None where a parser has to read it."""
        if self.start is None or len(text) > LONGEST_WHOLE_OUTPUT:
            return None
        reading = _Reading(self, text, tools, self.start)
        if not reading.whole():
            return None
        signature = (finish_reason, *reading.signature)
        known = self._known.get(signature)
        if known is None and len(self._known) < MOST_SIGNATURES:
            known = self._known[signature] = self._compare(text, tools, reading, finish_reason)
        return reading.message(ids, finish_reason) if known else None

    def _compare(self, text: str, tools: Tools, reading: _Reading, finish_reason: str | None) -> bool:
        """Whether a parser reads the output in the same way."""
        parser = Parser(self.program, tools, None, lambda: _MADE_UP_ID)
        parser.feed(text)
        parser.close(finish_reason)
        return parser.message == reading.message(lambda: _MADE_UP_ID, finish_reason)


def whole_message(program: Program, text: str, tools: Any, ids: CallIds, finish_reason: str | None) -> Message | None:
    """The message of a whole output that is plain; else None. The first call for a program records its examples."""
    if program.whole is None:
        program.whole = WholeOutputs(program)
    whole: WholeOutputs = program.whole
    return whole.message(text, read_tools(tools), ids, finish_reason)


class _Reading:
    """One output, being read. Its parts are what is found so far."""

    __slots__ = (
        "calls",
        "content",
        "pos",
        "reasoning",
        "signature",
        "state",
        "text",
        "tools",
        "whole_outputs",
    )

    def __init__(self, whole_outputs: WholeOutputs, text: str, tools: Tools, state: StateProgram) -> None:
        self.whole_outputs = whole_outputs
        self.text = text
        self.tools = tools
        self.state = state
        self.pos = 0
        self.content = ""
        self.reasoning = ""
        self.calls: list[_Call] = []
        self.signature: list[object] = []

    def message(self, ids: CallIds, finish_reason: str | None) -> Message:
        """What was found, as a message."""
        calls = [
            ToolCall(call.id or ids(), call.name, call.arguments, "complete", call.model_id) for call in self.calls
        ]
        parts: list[Part] = [self.content, *calls] if self.content else [*calls]
        if finish_reason is None:
            finish_reason = "tool_calls" if calls else "stop"
        return Message(self.content or None, self.reasoning or None, calls, [], [], finish_reason, parts)

    def whole(self) -> bool:
        """Whether all of the text is plain."""
        size, entries = len(self.text), self.whole_outputs.pieces
        while self.pos < size:
            symbol = self._symbol()
            if symbol is None:
                return self.pos == size
            pieces = entries.get(entry_key(self.state, symbol.trigger))
            taken = self._calls(pieces) if pieces is not None else None
            if taken is False or (taken is None and not self._marker(symbol)):
                return False
        return True

    def _marker(self, symbol: Symbol) -> bool:
        """Take a marker that does nothing but lead on; whether it is one."""
        move, literal = self.state.row.get(symbol.trigger), self.whole_outputs.program.literals.get(symbol.trigger)
        if move is None or move.actions or literal is None or len(self.signature) > MOST_SIGNATURE_PIECES:
            return False
        if not self.text.startswith(literal, self.pos):
            return False  # a marker with another line end
        self.signature.append(symbol.trigger)
        self.state = move.dest
        self.pos += len(literal)
        return True

    def _symbol(self) -> Symbol | None:
        """Take the text up to the next symbol, and find that; None at the end, or where it is not plain."""
        if not self.state.loops:
            if self.state.is_text and not self._blanks():
                return None
            _, symbol = symbol_at(self.state, self.text, self.pos)
            move = self.state.row.get("text")
            if symbol is not None or not self.state.is_text or move is None or move.actions or not move.dest.loops:
                return symbol
            self.state = move.dest
        pos, text = self.pos, self.text
        begin, symbol = symbol_at(self.state, text, pos)
        last = begin == len(text)
        if (symbol is None and not last) or (begin > pos and not self._say(text[pos:begin], last)):
            return None
        self.pos = begin
        return symbol

    def _blanks(self) -> bool:
        """Take blanks before a marker; whether they are few, and something follows."""
        begin, text = self.pos, self.text
        while self.pos < len(text) and text[self.pos].isspace() and self.pos <= begin + MOST_BLANKS_BESIDE:
            self.pos += 1
        if self.pos > begin + MOST_BLANKS_BESIDE:
            self.pos = begin
            return False
        if self.pos > begin:
            self.signature.append((self.state.name, text[begin : self.pos]))
        return self.pos < len(text)

    def _say(self, said: str, last: bool) -> bool:
        """Take text; whether it is plain."""
        state, body = self.state, said.strip()
        if not body:
            self.signature.append((state.name, said[:MOST_BLANKS_BESIDE]))
            return len(said) <= MOST_BLANKS_BESIDE or bool(self.calls)
        leading, trailing = said[: len(said) - len(said.lstrip())], said[len(said.rstrip()) :]
        if self.calls or max(len(leading), len(trailing)) > MOST_BLANKS_BESIDE or may_open(body[-MOST_TAIL:]):
            return False
        self.signature.append((state.name, leading, trailing))
        if self.pos == 0:
            body = leading + body
        if state.meaning == "reasoning":
            plain = not (self.reasoning or self.content or last)
            self.reasoning = body
        else:
            plain = not self.content
            self.content = body + trailing if last else body
        return plain

    def _calls(self, pieces: list[Piece]) -> bool | None:
        """Take calls that follow each other; whether they are plain. None where none begins here."""
        begin, pos = self.pos, self.pos
        call: _Open | None = None
        while True:
            piece, found = self._piece(pieces, pos)
            if piece is None or found is None:
                return None if pos == begin else False
            pos = found.end()
            if piece.ends and call is not None:
                if not self._end(call, found[piece.model_id] if piece.model_id else None):
                    return False
                call = None
            if piece.begins:
                call = self._begin(found[piece.name], found[piece.id] if piece.id else "")
                if call is None:
                    return False
            if piece.follows == TEXT:
                self.pos, self.state = pos, piece.state
                return call is None or (piece.ends and self._end(call, None))
            pos = self._arguments(call, piece, found, pos) if call is not None else -1
            if pos < 0:
                return False
            pieces = piece.next

    def _piece(self, pieces: list[Piece], pos: int) -> tuple[Piece | None, re.Match[str] | None]:
        """The first of these pieces that stands at `pos`, noted in the signature."""
        for piece in pieces:
            found = piece.pattern.match(self.text, pos)
            if found is not None:
                if self.signature[-1:] != [piece]:
                    self.signature.append(piece)
                return (piece, found) if len(self.signature) <= MOST_SIGNATURE_PIECES else (None, None)
        return None, None

    def _begin(self, name: str, made_id: str) -> _Open | None:
        """A call; None where its function is not declared."""
        if not self.tools.names:
            return _Open(name, made_id, None)
        return _Open(name, made_id, declared_parameters(self.tools)) if name in self.tools.names else None

    def _end(self, call: _Open, model_id: str | None) -> bool:
        """The call is over; whether nothing is missing."""
        arguments = call.arguments
        if arguments is None:
            declared = call.declared
            if declared is not None and not call.members.keys() >= set(declared.required):
                return False
            arguments = "{" + ", ".join([f'"{key}": {value}' for key, value in call.members.items()]) + "}"
        self.calls.append(_Call(call.name, call.id, arguments, model_id))
        return True

    def _arguments(self, call: _Open, piece: Piece, found: re.Match[str], pos: int) -> int:
        """Take the arguments of a call, or the value of one of them; where that ends, -1 where it is not plain."""
        if piece.follows == JSON:
            end = _end_of_object(self.text, pos)
            call.arguments = self.text[pos:end]
            return end
        if piece.follows == PYTHON:
            scanner = cast(Value, island_class("python")(keywords=True))
            end = scanner.read(self.text, pos, False)
            call.arguments = scanner.out
            plain = scanner.done and not scanner.broken and _end_of_object(scanner.out, 0) == len(scanner.out)
            return end if plain else -1
        key = found[piece.key]
        if key in call.members or key in self.whole_outputs.program.wrapped or not call.may_have(key):
            return -1
        value, end = self._value(piece.state, key, call.declared, pos)
        if value is None:
            return -1
        call.members[key] = value
        return end

    def _value(self, state: StateProgram, key: str, declared: Parameters | None, pos: int) -> tuple[str | None, int]:
        """The JSON of a tagged value, and where it ends; None where it is not plain."""
        program, typed = self.whole_outputs.program, state.typed
        alone = "value_end" in state.row
        kind = value_kind(typed, alone)
        if state.echo or program.unproven_types or kind == "elements" or self.text.startswith(state.before, pos):
            return None, pos
        types = types_of_value(declared, key, typed not in ("", "trimmed", "xml"), bool(self.tools))
        if alone:
            return self._value_alone(state, value_island(kind, typed, types, program.notation, key), pos)
        begin, end, symbol = next_symbol(state, state.find, self.text, pos)
        if symbol is None or not self._closes(state, symbol, end):
            return None, pos
        written = plain_value(kind, typed, types, self.text[pos:begin])
        if written is None:
            written = self._marked_value(kind, typed, types, key, pos, begin)
        return written, begin

    def _value_alone(self, state: StateProgram, value: Value, pos: int) -> tuple[str | None, int]:
        """The same for a value that ends by itself."""
        end, read = read_whole(value, self.text, pos)
        odd = any(getattr(value, name, ()) for name in ("odd", "repeated", "repairs"))
        plain = value.done and not value.broken and not odd
        plain = plain and not any(marker in self.text[pos:end] for marker in state.literals)
        return (read if plain else None), end

    def _marked_value(self, kind: str, typed: str, types: Types, key: str, pos: int, end: int) -> str | None:
        """The same for a value up to a marker, which is at `end`."""
        value = cast(MarkedValue, value_island(kind, typed, types, self.whole_outputs.program.notation, key))
        written = ""
        if end > pos:
            if value.read(self.text[pos:end], 0, False) < end - pos or value.broken or value.in_string:
                return None
            written = value.out
        written += value.finish()
        return None if value.broken or value.repairs or value.odd else written

    def _closes(self, state: StateProgram, symbol: Symbol, end: int) -> bool:
        """Whether a marker that ends at `end` closes the value in which it stands, by what follows it."""
        look = state.looks.get(symbol.trigger)
        again = state.again.match(self.text, end) if state.again is not None else None
        if again is not None and again.end() > end:
            return False
        if look is None:
            return symbol.kind == TERMINAL
        move, found = state.row.get(symbol.trigger), look.match(self.text, end)
        if found is None or move is None or move.dest.meaning == "argument_key":
            return False
        names = self.tools.names
        return not names or names.issuperset([name for name in found.groups() if name is not None])


def _end_of_object(text: str, start: int) -> int:
    """Where the JSON object ends that begins at `start`; -1 where none does that is read as it stands."""
    if len(text) - start > _LONG and text.count("{", start) + text.count("[", start) > MOST_WHOLE_BRACKETS:
        return -1
    try:
        _, end = _members(text, start)
    except (ValueError, StopIteration, RecursionError):
        return -1
    deep = (
        end - start > MOST_WHOLE_BRACKETS
        and text.count("{", start, end) + text.count("[", start, end) > MOST_WHOLE_BRACKETS
    )
    if text[start] != "{" or deep or text.startswith(GOES_ON, end):
        return -1
    return end
