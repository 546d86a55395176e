"""The message of a plain whole output, without the events that it is folded from.

Strategy: a short call costs a parser more than the reading of it: it makes a dozen events, looks for anomalies in them
and folds them.  If the whole text is known, nobody asks for events.  So the same rows of the same machine are followed
here from symbol to symbol: the compiled expressions of a state find its markers, the json module and a few expressions
read the values between them (`runtime.whole_values`), and the actions of the rows write the message.

Only what is plain is read.  Whatever a row repairs, whatever is odd, undeclared, missing, repeated or only mentioned is
`Unusual`: a parser reads the output from its beginning.  `tests/properties/test_whole_outputs.py` compares both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toolgram.anomalies import KINDS, Anomaly
from toolgram.call_ids import CallIds
from toolgram.limits import LONGEST_WHOLE_OUTPUT, LONGEST_WORD, MOST_BLANKS_BESIDE, MOST_TAIL
from toolgram.message import Message, Part, ToolCall
from toolgram.program.state import CALL, ENVELOPE, OBJECT, STOP, Move, Program, StateProgram, Symbol
from toolgram.runtime.calls import NO_MARKERS, NONE
from toolgram.runtime.event_buffer import AFTER_MARKUP, may_open
from toolgram.runtime.parser import Parser
from toolgram.runtime.stream import next_symbol
from toolgram.runtime.whole_values import (
    Unusual,
    begins_python,
    end_of_object,
    envelope_key,
    envelope_string,
    python_arguments,
    python_object,
    skip_blanks,
    tagged_value,
)
from toolgram.spec.data import END, TEXT, UNCLOSED
from toolgram.tools.reading import Tools, read_tools

if TYPE_CHECKING:
    from toolgram.tools.parameters import Parameters


def whole_message(program: Program, text: str, tools: Any, ids: CallIds, finish_reason: str | None) -> Message | None:
    """Return the message that a parser makes of a whole output; None if a parser has to read it."""
    if program.begins is None:
        program.begins = _begins(program)
    if not program.begins or len(text) > LONGEST_WHOLE_OUTPUT:
        return None
    reading = _Reading(program, text, read_tools(tools), *program.begins)
    try:
        reading.read()
    except Unusual:
        return None
    return reading.message(ids, finish_reason)


def _begins(program: Program) -> tuple[StateProgram, bool] | tuple[()]:
    """Return the state in which an output begins, and whether a marker is before it. Nothing if the prompt leaves more
    than that."""
    stream = Parser(program)._stream
    source, events, calls = stream.source, stream.events, stream.calls
    if events.held is not None or stream.island is not None or calls.index is not None:
        return ()
    line = "\n" if program.line_calls else ""  # with which a parser begins
    begun = source.take_all() or calls.id or stream.buffer != line * source.prefix_characters
    return () if begun or calls.markers != NO_MARKERS else (stream.state, events.place == AFTER_MARKUP)


class _Reading:
    """One output, being read. `state` and `pos` are where, and `call` is what is known of the call that is open."""

    __slots__ = (
        "_after", "_begun", "_first", "_late_id", "_marked", "_members", "_names", "_parameters", "_program", "_python",
        "_text", "_tools", "anomalies", "arguments", "calls", "content", "id", "key", "markers", "name", "pos",
        "reasoning", "state",
    )  # fmt: skip

    def __init__(self, program: Program, text: str, tools: Tools, state: StateProgram, marked: bool) -> None:
        self._marked = marked  # whether a marker is before the output
        self._program = program
        self._tools, self._names = tools, tools.names
        self._first = 1 if program.line_calls else 0  # an output begins a line
        self._text = "\n" + text if self._first else text
        self.state = state
        self.pos = self._first
        self.content = self.reasoning = ""
        self.calls: list[ToolCall] = []
        self.anomalies: list[Anomaly] = []
        self.markers = NO_MARKERS
        self.name: str | None = None  # of the call that is open, or that may begin,
        self.id = ""  # its id,
        self._late_id: str | None = None  # and the id that came after its arguments
        self.arguments: str | None = None  # all of them,
        self._members: dict[str, str] | None = None  # or one by one
        self.key = ""  # of the argument that is read
        self._after: set[str] = set()  # what has closed the last call
        self._begun = False  # whether the call is certain
        self._python = False  # whether the envelope is in Python's spelling
        self._parameters: Parameters | None = None

    def message(self, ids: CallIds, finish_reason: str | None) -> Message:
        """Return what was found."""
        for call in self.calls:
            call.id = call.id or ids()
        parts: list[Part] = [self.content, *self.calls] if self.content else [*self.calls]
        if finish_reason is None:
            finish_reason = "tool_calls" if self.calls else "stop"
        content, reasoning = self.content or None, self.reasoning or None
        return Message(content, reasoning, self.calls, [], self.anomalies, finish_reason, parts)

    # --- symbols ------------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read all of the text. Raises Unusual if a parser has to."""
        size = len(self._text)
        while self.pos < size:
            state = self.state
            if state.meaning == "value":
                self._read_value()
            elif state.loops:
                self._read_text()
            else:
                self._read_token()
        if self._begun or self.name or self.id or self.state.held or UNCLOSED in self.state.row:
            raise Unusual
        if END in self.state.row:
            self._follow(self.state.row[END], "")
        if self.reasoning and self.state.meaning == "reasoning":
            raise Unusual

    def _read_text(self) -> None:
        """Read text up to the next symbol, and that."""
        state, text, begin = self.state, self._text, self.pos
        at, end, symbol = next_symbol(state, state.find, text, begin)
        if at > begin:
            self._say(text[begin:at], symbol)
        elif begin > self._first and at == self._first:  # the line end that a parser begins with is part of a marker
            raise Unusual
        self.pos = at
        if symbol is not None:
            self._take(symbol, at, end)
        elif at < len(text):
            raise Unusual

    def _read_token(self) -> None:
        """Read a symbol; in a state that text leaves, after blanks."""
        state, text, begin = self.state, self._text, self.pos
        at = begin
        if state.is_text:
            at = skip_blanks(text, begin)
            if at - begin > MOST_BLANKS_BESIDE:
                raise Unusual
            if at == len(text):
                self.pos = at
                return
            if self._program.line_calls and text[at - 1] == "\n" and text.startswith(tuple(state.literals), at - 1):
                raise Unusual
        found = state.match(text, at) if state.match is not None else None
        if found is None or found.lastindex is None:
            self._leave_for_text()
            return
        symbol, end = state.symbols[found.lastindex - 1], found.end()
        if state.may_become(text, at):
            raise Unusual
        if symbol.most and state.is_text and self._is_word(state.row[symbol.trigger], end):
            self._leave_for_text()
        elif symbol.most and end == len(text):
            raise Unusual
        else:
            self._take(symbol, at, end)

    def _is_word(self, move: Move, end: int) -> bool:
        """Whether a run that may be a name, up to `end`, is a word of text: what would make it one does not follow."""
        after, text = move.dest, self._text
        if not after.held or after.match is None or after.may_become(text, end):
            return False
        return end < len(text) and after.match(text, end) is None

    def _leave_for_text(self) -> None:
        """Text leaves the state."""
        move = self.state.row.get(TEXT)
        if move is None or move.actions or not self.state.is_text or not move.dest.loops or self.state.held:
            raise Unusual
        self._check_markers(TEXT)
        self.state = move.dest

    def _take(self, symbol: Symbol, begin: int, end: int) -> None:
        """Take a symbol."""
        text, opens = self._text, symbol.opens
        if opens == STOP and (self.state.meaning == "reasoning" or skip_blanks(text, end) < len(text)):
            raise Unusual
        if opens == CALL and (self.state.meaning == "reasoning" or self.state.to_user):
            raise Unusual
        if opens == CALL and text.startswith("```", begin):
            raise Unusual
        self.pos = end
        if symbol.kind == ENVELOPE:
            self._read_envelope(begin)
        elif symbol.kind == OBJECT:
            self._read_object(begin, end)
        else:
            self._close(symbol.trigger, text[begin:end])
            self._follow(self._row(symbol.trigger), text[begin:end])

    def _close(self, trigger: str, marker: str) -> None:
        """Raise Unusual if a marker closes what is closed, or what nothing has opened."""
        program = self._program
        if trigger in program.sections and trigger not in self.markers.in_text:
            raise Unusual
        if self.calls and marker in program.closers:
            if trigger in self._after:
                raise Unusual
            self._after.add(trigger)

    def _row(self, trigger: str) -> Move:
        """Return the transition of a trigger. Raises Unusual for none, and for a repair."""
        move = self.state.row.get(trigger)
        if move is None or move.repair or move.only_declared or move.only_called:
            raise Unusual
        return move

    def _follow(self, move: Move, value: str) -> None:
        """Follow a transition, whose actions have this value."""
        state, dest, trigger = self.state, move.dest, move.trigger
        if self.markers is not NO_MARKERS:
            if not (self._begun or state.held):
                self._check_markers(trigger)
            if state.loops and dest.held and not state.held:
                self.markers = self.markers._replace(owed=NONE)
            if move.closes and not self.markers.owed and not self.markers.overdue:
                raise Unusual
        elif move.closes:
            raise Unusual  # nothing is open
        for action in move.actions:
            perform = _ACTIONS.get(action)
            if perform is None:
                raise Unusual
            perform(self, value)
        if self.markers is not NO_MARKERS or move.opens or move.begins:
            self.markers = self.markers.followed(trigger, move, self._program.sections)
        self.state = dest

    def _check_markers(self, trigger: str) -> None:
        """Raise Unusual if a marker that closes the last call is missing before a transition."""
        overdue, owed, _ = self.markers
        left_open = self.state.leaves_owed.get(trigger, NONE)
        if not overdue.isdisjoint(left_open):
            raise Unusual
        if owed:
            self.markers = self.markers._replace(owed=owed - left_open)

    def _say(self, said: str, symbol: Symbol | None) -> None:
        """Take text before a symbol, or at the end."""
        body, last = said.strip(), symbol is None
        if not body:
            if len(said) > MOST_BLANKS_BESIDE and not self.calls:
                raise Unusual
            return
        leading, trailing = said[: len(said) - len(said.lstrip())], said[len(said.rstrip()) :]
        if self.calls or len(leading) > MOST_BLANKS_BESIDE or len(trailing) > MOST_BLANKS_BESIDE:
            raise Unusual
        if not last and ("`" in body or may_open(body[-MOST_TAIL:])):
            raise Unusual
        if self.pos == self._first and not self._marked:
            body = leading + body
            if leading and self._program.turn_start:
                raise Unusual
        if self.state.meaning == "reasoning":
            if self.reasoning or self.content or last:
                raise Unusual
            self.reasoning = body
        elif self.content or (last and trailing and self._program.turn_end):
            raise Unusual
        else:
            self.content = body + trailing if last else body

    # --- calls --------------------------------------------------------------------------------------------------------

    def _set_name(self, value: str) -> None:
        """The name of a call that may begin."""
        program = self._program
        marked = value.startswith(self.state.before) if self.state.before else False
        strange = not value or value[0] == "\n" or (program.namespaced_names and "." in value)
        if strange or marked or program.holds_marker(value) or (self._names and value not in self._names):
            raise Unusual
        if len(value) > LONGEST_WORD or self.name is not None:
            raise Unusual
        self.name = value

    def _begin_call(self, value: str) -> None:
        if self.name is None or self._begun:
            raise Unusual
        self._begun = True

    def _end_call(self, value: str) -> None:
        if not self._begun or self.arguments is None:
            raise Unusual
        self.calls.append(ToolCall(self.id.strip(), self.name or "", self.arguments, "complete", self._late_id))
        overdue, owed, _ = self.markers
        if owed:
            self.markers = self.markers._replace(overdue=overdue | owed)
        self.name = self.arguments = self._late_id = self._members = self._parameters = None
        self.id, self._begun = "", False
        self._after.clear()

    def _set_id(self, value: str) -> None:
        self.id = value

    def _add_to_id(self, value: str) -> None:
        self.id += value

    def _set_late_id(self, value: str) -> None:
        """An id that comes after the arguments."""
        self._late_id = value

    def _set_no_arguments(self, value: str) -> None:
        self._set_arguments("{}")

    def _set_arguments(self, arguments: str) -> None:
        if self.arguments is not None:
            raise Unusual
        self.arguments = arguments

    def _open_arguments(self, value: str) -> None:
        self._members = {}
        if self._tools:
            from toolgram.tools.parameters import declared_parameters

            self._parameters = declared_parameters(self._tools).get(self.name or "")

    def _begin_argument(self, value: str) -> None:
        """The key of a tagged argument."""
        program, declared, key = self._program, self._parameters, value.rstrip()
        marked = value.startswith(self.state.before) if self.state.before else False
        if self._members is None or key in self._members or key in program.wrapped or not key or '"' in key:
            raise Unusual
        if marked or program.holds_marker(value) or "\\" in key or not key.isprintable():
            raise Unusual
        if declared is not None and not declared.open and key not in declared.types:
            raise Unusual
        self.key = key

    def _close_arguments(self, value: str) -> None:
        members, declared = self._members, self._parameters
        if members is None or (declared is not None and not members.keys() >= set(declared.required)):
            raise Unusual
        self._set_arguments("{" + ", ".join([f'"{key}": {value}' for key, value in members.items()]) + "}")

    # --- values -------------------------------------------------------------------------------------------------------

    def _read_value(self) -> None:
        """Read a tagged value, and what ends it."""
        if self._members is None:
            raise Unusual
        state, text = self.state, self._text
        written, end, symbol, after = tagged_value(self._program, state, text, self.pos, self.key, self._parameters,
                                                   self._tools)  # fmt: skip
        self._members[self.key] = written
        self.pos = after
        self._follow(self._row("value_end" if symbol is None else symbol.trigger), text[end:after])

    def _read_object(self, begin: int, end: int) -> None:
        """Read arguments that stand alone: a JSON object, or Python keyword arguments after their parenthesis."""
        move, text = self._row("object_start"), self._text
        if move.dest.python:
            after = self._row_of(move.dest, "object_end").dest
            written, self.pos = python_arguments(text, end, not {",", "]"}.isdisjoint(after.literals))
            if written == "{}" and "object_empty" in self.state.row:
                self._follow(self._row("object_empty"), "")
                return
        else:
            self.pos = end_of_object(text, begin)
            written = text[begin : self.pos]
        self._follow(move, "")
        self._set_arguments(written)
        self._follow(self._row("object_end"), "")

    def _row_of(self, state: StateProgram, trigger: str) -> Move:
        move = state.row.get(trigger)
        if move is None:
            raise Unusual
        return move

    def _read_envelope(self, pos: int) -> None:
        """Read the JSON around a call, or around several."""
        text, self._python = self._text, False
        if text[pos] == "{":
            self._read_item(pos, pos)
            if "end_array" in self.state.row:
                self._follow(self._row("end_array"), "")
            return
        self._follow(self._row("start_array"), "")
        written = pos + 1
        pos = skip_blanks(text, written)
        while text.startswith("{", pos):
            self._read_item(pos, written)
            written = self.pos
            pos = skip_blanks(text, written)
            if text.startswith("]", pos):
                self.pos = pos + 1
                self._follow(self._row("end_array"), "")
                return
            if not text.startswith(",", pos):
                break
            pos = skip_blanks(text, pos + 1)
        raise Unusual

    def _read_item(self, pos: int, written: int) -> None:
        """Read one call as an object, whose brace is at `pos`; its characters count from `written` on."""
        text, same, parents = self._text, self._program.same_path, ["item"]
        if not self._python and begins_python(text, pos):
            self._begin_python(written)
        self._follow(self._row("start_map item"), "")
        pos += 1
        while True:
            key, end, pos, in_python = envelope_key(text, pos)
            path = f"{parents[-1]}.{key}"
            path = same.get(path, path)
            if self.state.named_key and f"map_key {path}" not in self.state.row:
                path = f"{parents[-1]}.*"
            if in_python and not self._python:
                raise Unusual
            self._follow(self._row(f"map_key {path}"), key)
            if not text.startswith("{", pos):
                pos = self._read_member(path, end, pos)
            elif self._row(f"start_map {path}").dest.meaning == "arguments":
                pos = self._read_arguments(path, end, pos)
            else:
                self._follow(self._row(f"start_map {path}"), "")
                parents.append(path)
                pos += 1
                continue
            pos = skip_blanks(text, pos)
            while text.startswith("}", pos):
                parent = parents.pop()
                self._follow(self._row(f"end_map {same.get(parent, parent)}"), "")
                pos += 1
                if not parents:
                    self.pos = pos
                    return
                pos = skip_blanks(text, pos)
            if not text.startswith(",", pos):
                raise Unusual
            pos += 1

    def _read_member(self, path: str, written: int, pos: int) -> int:
        """Read a string in an envelope: the position after it."""
        if self._text.startswith("'", pos) and not self._python:
            self._begin_python(written)
        value, pos = envelope_string(self._text, pos)
        trigger = f"string {path} {value}"
        self._follow(self._row(trigger if trigger in self.state.row else f"string {path}"), value)
        if self.state.meaning == "arguments":
            raise Unusual  # a string of JSON
        return pos

    def _read_arguments(self, path: str, written: int, pos: int) -> int:
        """Read the object of arguments in an envelope: the position after it."""
        if not self._python and begins_python(self._text, pos):
            self._begin_python(written)
        self._follow(self._row(f"start_map {path}"), "")
        if self._python:
            arguments, end = python_object(self._text, pos)
        else:
            end = end_of_object(self._text, pos)
            arguments = self._text[pos:end]
        self._set_arguments(arguments)
        self._follow(self._row(f"end_map {path}"), "")
        return end

    def _begin_python(self, written: int) -> None:
        """From here on, an envelope is in Python's spelling. Events account for what comes before `written`."""
        if not self._program.python_json or self._program.strict:
            raise Unusual
        self._python = True
        call = None if self.name is None and self.arguments is None else len(self.calls)
        kind = "repaired_json"
        self.anomalies.append(Anomaly(kind, written - self._first, "'", call, KINDS[kind]))


_ACTIONS: dict[str, Callable[[_Reading, str], None]] = {
    "name": _Reading._set_name,
    "start_call": _Reading._begin_call,
    "end_call": _Reading._end_call,
    "call_id": _Reading._set_id,
    "call_id_part": _Reading._add_to_id,
    "late_call_id": _Reading._set_late_id,
    "no_arguments": _Reading._set_no_arguments,
    "open_arguments": _Reading._open_arguments,
    "argument_key": _Reading._begin_argument,
    "close_arguments": _Reading._close_arguments,
}
