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
from toolgram.runtime.event_buffer import may_open
from toolgram.runtime.parser import Parser
from toolgram.runtime.path_examples import is_clean
from toolgram.runtime.straight_paths import Key, Path, entry_key
from toolgram.runtime.whole_recording import JSON, PYTHON, TEXT, Piece, recorded_pieces
from toolgram.tools.parameters import DeclaredParameters, Parameters, Types, declared_parameters
from toolgram.tools.reading import Tools, read_tools

_LONG = 4_096  # characters: to read so many in vain costs more than counting their brackets
_MADE_UP_ID = "id"

Signature = tuple[object, ...]


def _refuse_constant(word: str) -> Any:
    raise ValueError(word)  # NaN and the infinities are no JSON


_decoder: Any = json.JSONDecoder(object_pairs_hook=list, parse_constant=_refuse_constant)
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


class WholeOutputs:
    """Reads whole outputs of one program, whose parsers begin with the prompt that the format says."""

    def __init__(self, program: Program, entries: dict[Key, list[Path]]) -> None:
        self.program = program
        self.pieces = recorded_pieces(program, entries)
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
        parser.trace_to(lambda step: None)  # then the readers read
        parser.feed(text)
        parser.close(finish_reason)
        return parser.message == reading.message(lambda: _MADE_UP_ID, finish_reason)


def whole_message(program: Program, text: str, tools: Any, ids: CallIds, finish_reason: str | None) -> Message | None:
    """The message of a whole output that is plain, for a program whose straight paths are recorded; else None."""
    if program.whole is None:
        program.whole = WholeOutputs(program, program.straight.entries)
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
            state = self.state
            move = state.row.get(symbol.trigger)
            pieces = entries.get(entry_key(state, symbol.trigger))
            taken = self._calls(pieces) if pieces is not None else None
            if taken:
                continue
            if taken is False:
                return False
            literal = self.whole_outputs.program.literals.get(symbol.trigger)
            if move is None or move.actions or literal is None or len(self.signature) > MOST_SIGNATURE_PIECES:
                return False
            if not self.text.startswith(literal, self.pos):
                return False  # a marker with another line end
            self.signature.append(symbol.trigger)
            self.state = move.dest
            self.pos += len(literal)
        return True

    def _symbol(self) -> Symbol | None:
        """Take the text up to the next symbol, and that; None at the end, or where it is not plain."""
        text, pos, state = self.text, self.pos, self.state
        if not state.loops:
            if state.is_text and text[pos].isspace():
                blanks = len(text[pos:]) - len(text[pos:].lstrip())
                if blanks > MOST_BLANKS_BESIDE:
                    return None
                self.signature.append((state.name, text[pos : pos + blanks]))
                self.pos = pos = pos + blanks
                if pos == len(text):
                    return None
            match = state.match(text, pos) if state.match is not None else None
            if match is not None and match.lastindex is not None:
                return None if state.may_become(text, pos) else state.symbols[match.lastindex - 1]
            move = state.row.get("text")
            if not state.is_text or move is None or move.actions or not move.dest.loops:
                return None
            self.state = state = move.dest
        match = state.find(text, pos)
        assert match is not None
        group = match.lastindex
        if group == 1:
            return None
        begin = match.start(group) if group else len(text)
        if begin > pos and not self._say(text[pos:begin], not group):
            return None
        self.pos = begin
        return state.symbols[group - 2] if group else None

    def _say(self, said: str, last: bool) -> bool:
        """Take text; whether it is plain."""
        state, body = self.state, said.strip()
        if not body:
            if len(said) > MOST_BLANKS_BESIDE and not self.calls:
                return False
            self.signature.append((state.name, said[:MOST_BLANKS_BESIDE]))
            return True
        leading, trailing = said[: len(said) - len(said.lstrip())], said[len(said.rstrip()) :]
        if (
            self.calls
            or len(leading) > MOST_BLANKS_BESIDE
            or len(trailing) > MOST_BLANKS_BESIDE
            or may_open(body[-MOST_TAIL:])
        ):
            return False
        self.signature.append((state.name, leading, trailing))
        if self.pos == 0:
            body = leading + body
        if state.meaning == "reasoning":
            if self.reasoning or self.content or last:
                return False
            self.reasoning = body
        else:
            if self.content:
                return False
            self.content = body + trailing if last else body
        return True

    def _calls(self, pieces: list[Piece]) -> bool | None:
        """Take calls that follow each other; whether they are plain. None where none begins here."""
        text, pos, begin = self.text, self.pos, self.pos
        call: _Open | None = None
        while True:
            for piece in pieces:
                found = piece.pattern.match(text, pos)
                if found is not None:
                    break
            else:
                return None if pos == begin else False
            if self.signature[-1:] != [piece]:
                self.signature.append(piece)
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
                return call is None or (piece.begins and piece.ends and self._end(call, None))
            if call is None or len(self.signature) > MOST_SIGNATURE_PIECES:
                return False
            pos = self._arguments(call, piece, found, pos)
            if pos < 0:
                return False
            pieces = piece.next

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
            start = found.start(piece.arguments) if piece.arguments else pos
            end = _end_of_object(self.text, start)
            call.arguments = self.text[start:end]
            return end
        if piece.follows == PYTHON:
            scanner = cast(Value, island_class("python")(keywords=True))
            end = scanner.read(self.text, pos, False)
            call.arguments = scanner.out
            plain = scanner.done and not scanner.broken and _end_of_object(scanner.out, 0) == len(scanner.out)
            return end if plain else -1
        key, declared = found[piece.key], call.declared
        if key in call.members or key in self.whole_outputs.program.wrapped:
            return -1
        if declared is not None and key not in declared.types and not declared.open:
            return -1
        value, end = self._value(piece.state, key, declared, pos)
        if value is None:
            return -1
        call.members[key] = value
        return end

    def _value(self, state: StateProgram, key: str, declared: Parameters | None, pos: int) -> tuple[str | None, int]:
        """The JSON of a tagged value, and where it ends; None where it is not plain."""
        program, text, typed = self.whole_outputs.program, self.text, state.typed
        alone = "value_end" in state.row
        if state.echo or program.unproven_types or text.startswith(state.before, pos):
            return None, pos
        types: Types = None
        if declared is not None and (typed in ("", "trimmed", "xml") or key in declared.types):
            types = declared.types_for(key)
        kind = value_kind(typed, alone)
        if kind == "elements":
            return None, pos
        if alone:
            ending = value_island(kind, typed, types, program.notation, key)
            end, read = read_whole(ending, text, pos)
            plain = ending.done and not ending.broken and not getattr(ending, "odd", False)
            plain = plain and not getattr(ending, "repeated", ()) and not getattr(ending, "repairs", ())
            plain = plain and not any(marker in text[pos:end] for marker in state.literals)
            return (read if plain else None), end
        match = state.find(text, pos)
        assert match is not None
        group = match.lastindex
        if not group or group == 1 or not self._closes(state, state.symbols[group - 2], match.end()):
            return None, pos
        begin = match.start(group)
        plain_json = plain_value(kind, typed, types, text[pos:begin])
        if plain_json is not None:
            return plain_json, begin
        marked = cast(MarkedValue, value_island(kind, typed, types, program.notation, key))
        written = ""
        if begin > pos:
            if marked.read(text[pos:begin], 0, False) < begin - pos or marked.broken or marked.in_string:
                return None, pos
            written = marked.out
        written += marked.finish()
        if marked.broken or marked.repairs or marked.odd:
            return None, pos
        return written, begin

    def _closes(self, state: StateProgram, symbol: Symbol, end: int) -> bool:
        """Whether a marker that ends at `end` closes the value in which it stands, by what follows it."""
        look = state.looks.get(symbol.trigger)
        again = state.again.match(self.text, end) if state.again is not None else None
        if again is not None and again.end() > end:
            return False
        if look is None:
            return symbol.kind == TERMINAL
        move = state.row.get(symbol.trigger)
        found = look.match(self.text, end)
        if found is None or move is None or move.dest.meaning == "argument_key":
            return False
        names = self.tools.names
        return not names or names.issuperset([name for name in found.groups() if name is not None])


def _end_of_object(text: str, start: int) -> int:
    """Where the JSON object ends that begins at `start`; -1 where none does that is read as it stands."""
    if len(text) - start > _LONG and text.count("{", start) + text.count("[", start) > MOST_WHOLE_BRACKETS:
        return -1
    try:
        members, end = _members(text, start)
    except (ValueError, StopIteration, RecursionError):
        return -1
    size: int = end - start
    if text[start] != "{":
        return -1
    if size > MOST_WHOLE_BRACKETS and text.count("{", start, end) + text.count("[", start, end) > MOST_WHOLE_BRACKETS:
        return -1
    if len(members) > 1 and len({key for key, _ in members}) < len(members):
        return -1
    return start + size
