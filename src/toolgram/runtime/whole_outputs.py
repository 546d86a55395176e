"""The message of a plain whole output, made without events.

Strategy: for a short call, a parser costs more than the reading: it makes a dozen events, looks for anomalies in them
and folds them. If the whole text is known, nobody needs the events. So the same rows of the same machine are followed
here from symbol to symbol: the compiled expressions of a state find its markers, the json module and a few expressions
read the values between them (`runtime.whole_values`), and the actions of the rows write the message.

Only plain outputs are read. Whatever is repaired, odd, undeclared, missing, repeated or only mentioned is `Unusual`:
then a parser reads the output from its beginning. `tests/properties/test_whole_outputs.py` compares both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolgram.anomalies import KINDS, Anomaly
from toolgram.call_ids import CallIds
from toolgram.limits import LONGEST_WHOLE_OUTPUT, LONGEST_WORD, MOST_BLANKS_BESIDE, MOST_TAIL
from toolgram.message import ENDED, Message, Part, ToolCall
from toolgram.program.expressions import FindMatch
from toolgram.program.state import CALL, ENVELOPE, OBJECT, STOP, TERMINAL, Program, StateProgram, Symbol, next_symbol
from toolgram.runtime.event_buffer import AFTER_MARKUP, may_open
from toolgram.runtime.following import ZERO_WIDTH, end_of_blanks, end_of_json_blanks, ends_string
from toolgram.runtime.whole_places import Action, Member, Place, Step, Unusual, first_place
from toolgram.runtime.whole_values import (
    begins_python,
    end_of_object,
    envelope_key,
    envelope_string,
    loose_object,
    may_go_on,
    python_arguments,
    tagged_value,
)
from toolgram.runtime.without_plain_calls import CallEnd, message_without
from toolgram.spec.data import END, TEXT, UNCLOSED
from toolgram.tools.reading import Tools, read_tools

if TYPE_CHECKING:
    from toolgram.runtime.without_plain_calls import ReadText
    from toolgram.tools.parameters import Parameters

_MAY_BELONG = ",:;{}[]()\"'\\`" + ZERO_WIDTH  # with which text after a call is no prose


def whole_message(
    program: Program, text: str, tools: Any, ids: CallIds, finish_reason: str | None, read: ReadText | None = None
) -> Message | None:
    """Return the message that a parser makes of a whole output; None if a parser has to read it. `read` reads a text
    with one, and may get a shorter text."""
    if program.begins is None:
        program.begins = _begins(program)
    if not program.begins or len(text) > LONGEST_WHOLE_OUTPUT:
        return None
    reading = _Reading(program, text, read_tools(tools), finish_reason in ENDED, *program.begins)
    try:
        reading.read()
    except Unusual:
        return None if read is None else reading.message_without_calls(text, ids, read)
    return reading.message(ids, finish_reason)


def _begins(program: Program) -> tuple[Place, bool] | tuple[()]:
    """Return the place in which an output begins, and whether a marker is before it; () if the prompt leaves more."""
    prompt, start = program.spec.generation_prompt, program.initial
    if not prompt:
        return first_place(program, start, _ACTIONS), False
    opened = [move.dest for trigger, move in start.row.items() if program.literals.get(trigger) == prompt.strip()]
    if opened and opened[0].meaning == "reasoning" and not program.line_calls:
        return first_place(program, opened[0], _ACTIONS), True
    from toolgram.runtime.parser import Parser

    stream = Parser(program)._stream
    source, events, calls = stream.source, stream.events, stream.calls
    if events.held is not None or stream.island is not None or calls.index is not None:
        return ()
    line = "\n" if program.line_calls else ""  # a parser begins with it
    if source.take_all() or calls.id or stream.buffer not in ("", line) or any(calls.markers):
        return ()
    return first_place(program, stream.state, _ACTIONS), events.place == AFTER_MARKUP


class _Reading:
    """One output that is read up to `pos`: the parts of its message, and what is known of the next call."""

    _reasoning = _content = ""
    _name: str | None = None  # of the call that is open, or that may begin,
    _id = ""  # its id,
    _late_id: str | None = None  # and the id that came after its arguments
    _arguments: str | None = None  # all of them,
    _members: dict[str, str] | None = None  # or one by one
    _key = ""  # of the argument that is read
    _parameters: Parameters | None = None  # declared for the call
    _python: bool  # the envelope is in Python's spelling
    _repairs: bool  # it may be repaired
    _ends_in_text = False  # the content comes after the calls

    def __init__(self, program: Program, text: str, tools: Tools, ended: bool, place: Place, marked: bool) -> None:
        self._program, self._tools = program, tools
        self._ends_in_marker = text.endswith(program.markers)  # so nothing is only begun there
        self._ended = ended
        self._place = place
        self._marked = marked  # a marker is before the output
        self._first = self._pos = 1 if program.line_calls else 0  # an output begins a line
        self._text = "\n" + text if self._first else text
        self._quoted = "'" in text
        self._calls: list[ToolCall] = []
        self._anomalies: list[Anomaly] = []
        self._ends: list[CallEnd] = []  # after calls

    def message_without_calls(self, text: str, ids: CallIds, read: ReadText) -> Message | None:
        """Return the message of a text with an unusual part, if the plain calls before it can be left out."""
        return message_without(text, self._ends, self._calls, self._anomalies, ids, read)

    def message(self, ids: CallIds, finish_reason: str | None) -> Message:
        """Return what was found."""
        calls = self._calls
        for call in calls:
            call.id = call.id or ids()
        parts: list[Part] = [*calls]
        if self._content:
            parts.insert(len(calls) if self._ends_in_text else 0, self._content)
        if finish_reason is None:
            finish_reason = "tool_calls" if calls else "stop"
        content, reasoning = self._content or None, self._reasoning or None
        return Message(content, reasoning, calls, [], self._anomalies, finish_reason, parts)

    # --- symbols ------------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Read all of the text. Raise Unusual if a parser has to."""
        size, state, calls, known = len(self._text), self._place.state, self._calls, 0
        if self._first and self._begins_marker(state):
            raise Unusual
        while self._pos < size:
            state = self._place.state
            if len(calls) > known:
                known = len(calls)
                self._ends.append((self._pos - self._first, self._place, known, len(self._anomalies)))
            if state.meaning == "value":
                self._read_value(state)
            elif state.loops:
                self._read_text(state)
            else:
                self._read_token(state)
        state = self._place.state
        if self._name or self._id or state.held or UNCLOSED in state.row or state.meaning == "reasoning":
            raise Unusual
        if END in state.row:
            self._follow(END)

    def _begins_marker(self, state: StateProgram) -> bool:
        """Return whether the line end with which a parser begins may be part of a marker."""
        if state.loops:
            return next_symbol(state, self._find(state), self._text, 0)[0] == 0
        return self._text.startswith(tuple(state.literals))

    def _find(self, state: StateProgram) -> FindMatch:
        return state.find_final if self._ends_in_marker else state.find

    def _read_text(self, state: StateProgram) -> None:
        text, begin = self._text, self._pos
        at, end, symbol = next_symbol(state, self._find(state), text, begin)
        if at > begin:
            self._say(text[begin:at], symbol)
        self._pos = at
        if symbol is not None:
            self._take(state, symbol, at, end)
        elif at < len(text):
            raise Unusual

    def _read_token(self, state: StateProgram) -> None:
        """Read a symbol. In a state that text leaves, read the blanks before it as well."""
        text, at = self._text, self._pos
        if state.is_text and text[at].isspace():
            at = self._after_blanks(state, at)
            if at == len(text):
                self._pos = at
                return
        found = None if text[at] in ZERO_WIDTH else state.match(text, at)
        if found is None or found.lastindex is None:
            self._leave_for_text(state)
            return
        symbol, end = state.symbols[found.lastindex - 1], found.end()
        if len(text) - at < state.longest and state.may_become(text, at):
            raise Unusual
        if symbol.most and state.is_text and self._is_word(state.row[symbol.trigger].dest, end):
            self._leave_for_text(state)
            return
        if symbol.most and end == len(text):
            raise Unusual
        if symbol.opens or symbol.kind != TERMINAL:
            self._take(state, symbol, at, end)
            return
        self._pos = end
        place, actions = self._place.step(symbol.trigger)
        for perform in actions:
            perform(self, text[at:end])
        self._place = place

    def _after_blanks(self, state: StateProgram, begin: int) -> int:
        """Return where blanks before a symbol end."""
        text = self._text
        at = end_of_blanks(text, begin)
        is_line = self._program.line_calls and text[at - 1] == "\n"
        if at - begin > MOST_BLANKS_BESIDE or (is_line and text.startswith(tuple(state.literals), at - 1)):
            raise Unusual
        return at

    def _is_word(self, after: StateProgram, end: int) -> bool:
        """Return whether a possible name, up to `end`, is a word of text: nothing that makes it a name follows."""
        text = self._text
        if not after.held or after.may_become(text, end):
            return False
        return end < len(text) and after.match(text, end) is None

    def _leave_for_text(self, state: StateProgram) -> None:
        """Leave the state because of text."""
        move = state.row.get(TEXT)
        if move is None or move.actions or not state.is_text or not move.dest.loops or state.held:
            raise Unusual
        self._follow(TEXT)

    def _take(self, state: StateProgram, symbol: Symbol, begin: int, end: int) -> None:
        text, opens = self._text, symbol.opens
        if opens == STOP and (state.meaning == "reasoning" or end_of_blanks(text, end) < len(text)):
            raise Unusual
        if opens == CALL and (state.meaning == "reasoning" or state.to_user or text.startswith("```", begin)):
            raise Unusual  # it may be a mention
        self._pos = end
        if symbol.kind == ENVELOPE:
            self._read_envelope(begin)
        elif symbol.kind == OBJECT:
            self._read_object(begin, end)
        else:
            self._follow(symbol.trigger, text[begin:end])

    def _follow(self, trigger: str, value: str = "") -> None:
        self._take_step(self._place.step(trigger), value)

    def _take_step(self, step: Step | None, value: str = "") -> None:
        if step is None:
            raise Unusual
        for perform in step.actions:
            perform(self, value)
        self._place = step.place

    def _say(self, said: str, symbol: Symbol | None) -> None:
        """Take text before a symbol, or at the end."""
        body, last = said.strip(), symbol is None
        if self._place.state.typed:
            raise Unusual  # it is escaped
        if not body:
            if len(said) > MOST_BLANKS_BESIDE and not self._calls:
                raise Unusual
            return
        leading, trailing = said[: len(said) - len(said.lstrip())], said[len(said.rstrip()) :]
        if len(leading) > MOST_BLANKS_BESIDE or len(trailing) > MOST_BLANKS_BESIDE:
            raise Unusual
        if self._calls:
            self._end_with(body, last)
        if not last and ("`" in body or may_open(body[-MOST_TAIL:])):
            raise Unusual
        if self._pos == self._first and not self._marked:
            body = leading + body
            if leading and self._program.spec.turn_start:
                raise Unusual
        self._add_text(body, trailing, last)

    def _end_with(self, body: str, last: bool) -> None:
        """Take the text after the calls, if it is all of the content and nothing in it may belong to a call."""
        program, begun = self._program, self._content or self._place.state.to_user
        ends = (*program.endings, *program.element_ends)
        belongs = body[0] in _MAY_BELONG or body.startswith(ends) or any(each.startswith(body) for each in ends)
        if not last or begun or program.line_calls or belongs or ends_string(body):
            raise Unusual
        self._follow(TEXT)
        self._ends_in_text = True

    def _add_text(self, body: str, trailing: str, last: bool) -> None:
        """Make text the reasoning or the content, of which the message has one each."""
        if self._place.state.meaning == "reasoning":
            if self._reasoning or self._content or last:
                raise Unusual
            self._reasoning = body
        elif self._content or (last and trailing and self._program.spec.turn_end):
            raise Unusual
        else:
            self._content = body + trailing if last else body

    # --- calls --------------------------------------------------------------------------------------------------------

    def _set_name(self, value: str) -> None:
        program = self._program
        marked = value.startswith(self._place.state.before) if self._place.state.before else False
        strange = not value or value[0] == "\n" or (program.namespaced_names and "." in value)
        undeclared = bool(self._tools.names) and value not in self._tools.names
        if strange or marked or undeclared or program.holds_marker(value):
            raise Unusual
        if len(value) > LONGEST_WORD or self._name is not None or value in program.spec.not_called:
            raise Unusual
        self._name = value

    def _end_call(self, value: str) -> None:
        if self._name is None or self._arguments is None:
            raise Unusual
        self._calls.append(ToolCall(self._id.strip(), self._name, self._arguments, "complete", self._late_id))
        self._name = self._arguments = self._late_id = self._members = self._parameters = None
        self._id = ""

    def _set_id(self, value: str) -> None:
        self._id = value

    def _add_to_id(self, value: str) -> None:
        self._id += value

    def _set_late_id(self, value: str) -> None:
        self._late_id = value

    def _set_arguments(self, arguments: str) -> None:
        if self._arguments is not None:
            raise Unusual
        self._arguments = arguments

    def _open_arguments(self, value: str) -> None:
        self._members = {}
        if self._tools:
            from toolgram.tools.parameters import declared_parameters

            self._parameters = declared_parameters(self._tools).get(self._name or "")

    def _begin_argument(self, value: str) -> None:
        program, declared, key = self._program, self._parameters, value.rstrip()
        if self._members is None or key in self._members or key in program.wrapped or not key or '"' in key:
            raise Unusual
        if program.holds_marker(value) or "\\" in key or not key.isprintable():
            raise Unusual
        if declared is not None and not declared.open and key not in declared.types:
            raise Unusual
        self._key = key

    def _close_arguments(self, value: str) -> None:
        members, declared = self._members, self._parameters
        if members is None or (declared is not None and not members.keys() >= set(declared.required)):
            raise Unusual
        self._set_arguments("{" + ", ".join([f'"{key}": {value}' for key, value in members.items()]) + "}")

    # --- values -------------------------------------------------------------------------------------------------------

    def _read_value(self, state: StateProgram) -> None:
        if self._members is None:
            raise Unusual
        written, end, symbol, after = tagged_value(
            self._program, state, self._text, self._pos, self._key, self._parameters, self._tools
        )
        if symbol is not None and not self._ended and may_go_on(state, self._text, self._pos, symbol, after):
            raise Unusual
        self._members[self._key] = written
        self._pos = after
        self._follow("value_end" if symbol is None else symbol.trigger, self._text[end:after])

    def _read_object(self, begin: int, end: int) -> None:
        """Read arguments without an envelope: a JSON object, or Python keyword arguments after their parenthesis."""
        step, text, row = self._place.step("object_start"), self._text, self._place.state.row
        arguments = step.place.state
        if arguments.python:
            listed = "object_end" in arguments.row and not {",", "]"}.isdisjoint(
                arguments.row["object_end"].dest.literals
            )
            written, self._pos = python_arguments(text, end, listed)
            if written == "{}" and "object_empty" in row:
                self._follow("object_empty")
                return
        else:
            self._pos = end_of_object(text, begin)
            written = text[begin : self._pos]
        self._follow("object_start")
        self._set_arguments(written)
        self._follow("object_end")

    def _read_envelope(self, pos: int) -> None:
        """Read the JSON around a call, or around several."""
        text, self._python = self._text, False
        self._repairs = not (self._program.strict or self._place.state.bare)
        if text[pos] == "{":
            self._read_item(pos, pos)
            if "end_array" in self._place.state.row:
                self._follow("end_array")
            return
        self._follow("start_array")
        written = pos + 1
        pos = end_of_json_blanks(text, written)
        while text.startswith("{", pos):
            self._read_item(pos, written)
            written = self._pos
            pos = end_of_json_blanks(text, written)
            if text.startswith("]", pos):
                self._pos = pos + 1
                self._follow("end_array")
                return
            if not text.startswith(",", pos):
                break
            pos = end_of_json_blanks(text, pos + 1)
        raise Unusual

    def _read_item(self, pos: int, written: int) -> None:
        """Read one call as an object, whose brace is at `pos`; its characters count from `written` on."""
        text, parents = self._text, ["item"]
        if self._quoted and not self._python and begins_python(text, pos):
            self._begin_python(written)
        self._follow("start_map item")
        self._pos = pos + 1
        while parents:
            key, end, pos, in_python = envelope_key(text, self._pos)
            if in_python and not self._python:
                raise Unusual
            member = self._place.member(parents[-1], key)
            for perform in member.step.actions:
                perform(self, key)
            if not text.startswith("{", pos):
                self._read_string(member, end, pos)
            elif member.closing is not None:
                self._read_arguments(member, end, pos)
            else:
                self._take_step(member.opening)
                parents.append(member.path)
                self._pos = pos + 1
                continue
            self._close_objects(parents)

    def _close_objects(self, parents: list[str]) -> None:
        """Read the ends of objects, or a comma, after a value in an envelope."""
        text, pos = self._text, self._pos
        if text[pos : pos + 1] not in ",}":
            pos = end_of_json_blanks(text, pos)
        while parents and text.startswith("}", pos):
            self._follow(f"end_map {parents.pop()}")
            self._pos = pos + 1
            pos = end_of_json_blanks(text, self._pos)
        if parents:
            if not text.startswith(",", pos):
                raise Unusual
            self._pos = pos + 1

    def _read_string(self, member: Member, written: int, pos: int) -> None:
        if self._quoted and not self._python and self._text.startswith("'", pos):
            self._begin_python(written)
        value, self._pos = envelope_string(self._text, pos)
        string = member.string or member.step.place.step(f"string {member.path} {value}")
        self._take_step(string, value)

    def _read_arguments(self, member: Member, written: int, pos: int) -> None:
        if self._quoted and not self._python and begins_python(self._text, pos):
            self._begin_python(written)
        self._take_step(member.opening)
        self._set_arguments(self._object(pos))
        self._take_step(member.closing)

    def _object(self, pos: int) -> str:
        """Return the JSON of the arguments whose brace is at `pos`."""
        text = self._text
        if not self._python:
            try:
                self._pos = end_of_object(text, pos)
                return text[pos : self._pos]
            except Unusual:
                if not self._repairs:
                    raise
        arguments, self._pos, begin, said = loose_object(text, pos)
        if said and not self._python:
            self._begin_python(begin, said, True)
        return arguments

    def _begin_python(self, written: int, said: str = "'", in_call: bool = False) -> None:
        """Read the envelope in Python's spelling from here on. Events account for what comes before `written`."""
        if self._program.strict or not (self._repairs or self._program.spec.python_json):
            raise Unusual
        self._python = True
        begun = in_call or self._name is not None or self._arguments is not None
        self._note(written, said, len(self._calls) if begun else None)

    def _note(self, start: int, text: str, call: int | None) -> None:
        kind = "repaired_json"
        self._anomalies.append(Anomaly(kind, start - self._first, text, call, KINDS[kind]))


_ACTIONS: dict[str, Action] = {
    "name": _Reading._set_name,
    "start_call": lambda reading, value: None,
    "end_call": _Reading._end_call,
    "call_id": _Reading._set_id,
    "call_id_part": _Reading._add_to_id,
    "late_call_id": _Reading._set_late_id,
    "no_arguments": lambda reading, value: reading._set_arguments("{}"),
    "open_arguments": _Reading._open_arguments,
    "argument_key": _Reading._begin_argument,
    "close_arguments": _Reading._close_arguments,
}
