"""The machine's position in one stream: transitions, their actions, and what happens to text that does not fit.

Theory of operation
===================

A stream is in one *state* of its machine and has one *reader*, the function that takes the next characters there.  A
reader *fires* triggers; a fired transition performs its actions and chooses the next reader.  Every character leaves in
exactly one event: a reader passes its characters on with the event it makes, and nothing else makes events.

A state may be *held*: a call is not certain yet, and its events queue up in the sink.  Reaching a state that is not
held commits them.  Text that does not fit *refutes* them: what the queue was made from becomes text of the state in
which holding began (its origin), and reading resumes at the character that did not fit.  Nothing is read twice, so the
work stays linear.  Where what was refuted is valid JSON all the same, the value is *quoted*: it stays text to its
closing bracket, so that no object inside it is taken for a call; where it breaks with a name known, or inside the
value of a member, what is left is *debris*, and text until its brackets balance, for the same reason.

Text that does not fit where nothing is held fires `malformed`, and the machine says where that leads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from toolgram.call_ids import CallIds
from toolgram.compile import Move, Program, StateProgram, Symbol
from toolgram.events import Dropped, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_strings import JsonStringScanner
from toolgram.islands.json_values import JsonScanner
from toolgram.islands.wreckage import Wreckage
from toolgram.runtime.sink import MARKER, SYNTAX, Sink
from toolgram.spec import TEXT

if TYPE_CHECKING:
    from toolgram.islands.notated_values import NotatedScanner
    from toolgram.islands.python_literals import PythonScanner
    from toolgram.islands.tagged_values import TaggedValue
    from toolgram.parameters import Parameters, Types

Trace: TypeAlias = Callable[[str, str, str], None]

_MOST_KEYS = 1024  # of undeclared arguments that are remembered, to see whether one comes twice
WAIT = -1  # what a reader returns when it has put the rest of the text into the buffer


class Stream:
    """Everything that one stream remembers, and the moves it can make. Readers and the parser work on it."""

    __slots__ = (
        "borrowed",
        "buffer",
        "call",
        "call_ids",
        "calls",
        "closing",
        "credits",
        "doubt",
        "early",
        "env",
        "given_id",
        "key",
        "keys",
        "name",
        "notated",
        "notes",
        "open_call",
        "opening",
        "origin",
        "parameters",
        "pending",
        "program",
        "python",
        "quoted",
        "reader",
        "ready",
        "reread",
        "scanner",
        "sink",
        "source",
        "state",
        "strings",
        "tools",
        "trace",
        "value",
        "wreckage",
    )

    def __init__(
        self, program: Program, call_ids: CallIds, trace: Trace | None, tools: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        self.program = program
        self.call_ids = call_ids
        self.trace = trace
        self.tools = tools
        self.parameters: dict[str, Parameters] | None = None  # of the tools, once a tagged argument asks for them
        self.sink = Sink()
        self.state = program.initial
        self.origin = program.initial  # where holding began
        self.reader = reader_of(program.initial)
        self.buffer = ""  # the prefix of a token that may still grow
        self.borrowed = 0  # how much of the buffer a prefix has written, and no event accounts for
        self.calls = 0  # how many calls are certain
        self.call: int | None = None  # the index of the open one ...
        self.open_call: ToolCallStart | None = None  # ... and how it began
        self.name: ToolCallStart | None = None  # of the held call
        self.given_id: str | None = None  # the id that the model wrote for it
        self.keys: dict[str, None] | None = None  # of its tagged arguments so far, None where they are of another kind
        self.key = ""  # of the argument that is being read
        self.closing: str | None = None  # while closing: the finish reason, "" for none
        self.credits: dict[str, int] | None = None  # special tokens emitted by id, and not yet seen as text
        # islands
        self.env: Envelope | None = None  # the JSON around a call
        self.scanner: JsonScanner | None = None  # JSON arguments without one, or quoted JSON
        self.strings: JsonStringScanner | None = None  # arguments written as a JSON string
        self.python: PythonScanner | None = None  # Python keyword arguments
        self.value: TaggedValue | None = None  # the value of a tagged argument
        self.notated: NotatedScanner | None = None  # the same, in a notation of its own
        self.wreckage: Wreckage | None = None
        self.doubt = False  # an opening bracket is not believed yet
        self.opening = ""  # its characters, and blanks
        self.pending: list[str] = []  # source that has produced nothing so far
        self.early: list[str] | None = None  # arguments transcoded before they were certain ...
        self.ready: list[str] | None = None  # ... and their source
        self.source: str | None = None  # while transcoding: the source of what is being read
        self.reread = False  # the transcoded character that did not fit is to be read again
        self.quoted = ("", "", False)  # what quoted text means, why it is no call, and whether it was a named one
        self.notes: list[tuple[str, str]] | None = None  # deviations that were tolerated: kind, text

    # --- transitions ----------------------------------------------------------------------------------------------

    def fire(self, trigger: str, text: str, why: str = SYNTAX, value: str | None = None) -> None:
        """Follow the transition of `trigger`, whose characters are `text`. Its actions use `value` (or the text)."""
        state = self.state
        move = state.row[trigger]
        sink = self.sink
        if self.borrowed and text:
            value = text if value is None else value
            text = text[self.skip_borrowed(0, len(text)) :]
        dest = move.dest
        if dest.held and sink.queue is None:
            if "end_call" in move.actions:  # it is over, whatever becomes of what its end begins
                self.act(move, "", why, "")
                move = Move(move.trigger, dest, ())
            sink.hold()
            self.origin = state
        if self.trace:
            self.trace(trigger, state.name, dest.name)
        if move.actions:
            self.act(move, text, why, text if value is None else value)
        elif text:
            sink.drop(text, why)
        self.state = dest
        if sink.queue is not None and not dest.held:
            sink.commit()
        self.reader = reader_of(dest) if self.env is None else "envelope"
        if dest.meaning in ("arguments", "ignored", "malformed"):
            self.reader = dest.meaning
        elif dest.meaning == "value":
            self.begin_value()

    def act(self, move: Move, text: str, why: str, value: str) -> None:
        """Perform a transition's actions in order; what no action accounts for is dropped."""
        for action in move.actions:
            if action == "name":
                self.name = ToolCallStart(self.calls, "", value, text)
                self.sink.put(self.name)
                text = ""
            elif action == "call_id":
                self.given_id = value or None
            elif action == "no_arguments":
                self.delta("{}", text)
                text = ""
            elif action == "argument_key":
                self.begin_argument(value, text)
                text = ""
            elif action == "unclosed_value":
                self.note("unclosed_value", self.key)
            else:
                if text:
                    self.sink.drop(text, why)
                    text = ""
                if action == "start_call":
                    self.start_call()
                elif action == "open_arguments":
                    self.keys = {}
                    self.delta("{", "")
                elif action == "close_arguments":
                    self.close_arguments()
                else:
                    self.end_call(action)
        if text:
            self.sink.drop(text, "call id" if "call_id" in move.actions else why)

    def start_call(self) -> None:
        """The call is certain. Where its arguments came before its name, the start still comes before them."""
        start = self.name
        queue = self.sink.queue
        assert start is not None
        start.id = self.given_id or self.call_ids()
        if queue is not None:
            first = next((at for at, event in enumerate(queue) if isinstance(event, ToolCallDelta)), None)
            place = next((at for at, event in enumerate(queue) if event is start), None)
            if first is not None and place is not None and first < place:
                queue[place] = Dropped(start.source, "name", start.source)
                start.source = ""
                queue.insert(first, start)
        self.call = self.calls
        self.open_call = start
        self.calls += 1
        self.name = self.given_id = None

    @property
    def ended(self) -> bool:
        """Nothing says that the output was cut off: it goes on, or the model has stopped by itself."""
        return self.closing is None or self.closing in ("stop", "tool_calls")

    def end_call(self, action: str) -> None:
        """`end_call` or `fail_call`. A call that only the end of the output ended is complete only if that says so."""
        if self.call is None:
            return
        status = "malformed" if action == "fail_call" else "complete" if self.ended else "truncated"
        self.sink.put(ToolCallEnd(self.call, status))  # type: ignore[arg-type]
        self.call = self.keys = None

    def delta(self, arguments: str, source: str) -> None:
        """Arguments of the open or held call."""
        index = self.calls if self.call is None else self.call
        self.sink.put(ToolCallDelta(index, arguments, source))

    # --- tagged arguments -----------------------------------------------------------------------------------------

    def declared(self) -> Parameters | None:
        """The parameters of the function that is called; None where it is not declared."""
        if self.parameters is None:
            from toolgram.parameters import parameters_of

            self.parameters = parameters_of(self.tools or ())
        start = self.open_call if self.name is None else self.name
        return self.parameters.get(start.name) if start is not None else None

    def begin_argument(self, key: str, source: str) -> None:
        """The key of a tagged argument, whole."""
        keys = self.keys
        self.key = key
        comma = ", " if keys else ""
        self.delta(f"{comma}{json.dumps(key, ensure_ascii=False)}: ", source)
        if keys is None:
            return
        declared = self.declared()
        if declared is not None and key not in declared.types and not declared.open:
            self.note("undeclared_argument", key)
        if key in keys:
            self.note("repeated_argument", key)
        if len(keys) < _MOST_KEYS or (declared is not None and key in declared.types):
            keys[key] = None

    def begin_value(self) -> None:
        """What comes next is the value of that argument."""
        from toolgram.islands.tagged_values import TaggedValue

        self.reader = "value"
        self.value = TaggedValue(self._types())

    def _types(self) -> Types:
        """The types that the value may have: what the markers say, else what is declared; an undeclared one is text."""
        if self.state.typed:
            return frozenset({"string"} if self.state.typed == "text" else ())
        declared = self.declared()
        return None if declared is None else declared.types_for(self.key)

    def close_arguments(self) -> None:
        """The tagged arguments are over, unless the output was cut off."""
        if self.keys is None or self.call is None or not self.ended:
            return
        declared = self.declared()
        for name in declared.required if declared is not None else ():
            if name not in self.keys:
                self.note("missing_argument", name)
        self.delta("}", "")
        self.keys = None

    # --- text -----------------------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Free text of the current state."""
        assert self.state.meaning is not None
        self.sink.say(self.state.meaning, text)

    def leave_for_text(self) -> None:
        """Text has come in a state that text leaves."""
        move = self.state.row[TEXT]
        if move.dest is not self.state:
            if self.trace:
                self.trace(TEXT, self.state.name, move.dest.name)
            if move.actions:
                self.act(move, "", SYNTAX, "")
            self.state = move.dest
        self.reader = reader_of(self.state)

    # --- what does not fit ----------------------------------------------------------------------------------------

    def misfit(self, quote: JsonScanner | None = None) -> None:
        """The next character does not fit.

        With `quote`, the scanner of an envelope that is valid JSON and no call, the rest of that value is text.
        """
        if self.sink.queue is not None:
            self.refute(quote)
        elif TEXT in self.state.row:
            self.leave_for_text()
        else:
            self.fail()

    def refute(self, quote: JsonScanner | None = None) -> None:
        """Release the held region as text of its origin, and go on there."""
        held, origin = self.state, self.origin
        text, marked = self.sink.release()
        named = self.name is not None
        self.name = self.given_id = None
        self.state = origin
        coded = TEXT in held.row and held.row[TEXT].dest.meaning == origin.meaning
        if self.trace:
            self.trace("refuted", held.name, held.row[TEXT].dest.name if coded else origin.name)
        if origin.meaning == "malformed":
            self.reader = "malformed"
            self.deepen()
            self.sink.say("malformed", text + self.leftover(), held.why)
            self.leave_islands()
            return
        if not origin.is_text:
            self.fail(text, held.why)
            return
        if coded:
            self.state = held.row[TEXT].dest
            self.reader = reader_of(self.state)
        else:
            self.leave_for_text()
        self.release_as_text(held, text, marked, named, quote)

    def release_as_text(
        self, held: StateProgram, text: str, marked: bool, named: bool, quote: JsonScanner | None
    ) -> None:
        """Say what was held as text of the origin. What is left of its value is quoted, or debris."""
        origin = self.origin
        depth = len(self.env.scanner.stack) - self.env.in_list if self.env else 0
        debris = self.survey() if quote is None and self.env and (named or depth > 1) else None
        text += self.leftover()
        self.leave_islands()
        meaning = "malformed" if marked and origin.meaning == "content" else origin.meaning or "content"
        if text:
            self.sink.say(meaning, text, held.why)
        if debris is not None:
            debris.in_list, debris.quote, debris.blind = False, "", True
            self.wreckage, self.quoted, self.reader = debris, (meaning, held.why, named), "debris"
        elif quote is not None and not quote.done:
            self.scanner, self.quoted, self.reader = quote, (meaning, held.why, named), "quoted"

    def fail(self, text: str = "", why: str = "") -> None:
        """What was certain turns out broken: `text`, and as much more as the machine says, is malformed."""
        why = why or self.state.why
        wreckage = self.survey()
        text += self.leftover()
        self.leave_islands()
        self.fire("malformed", "")
        self.wreckage = wreckage if self.state.meaning == "malformed" else None
        if text:
            self.sink.say("malformed", text, why)

    def leftover(self) -> str:
        """What was taken since the last event, in order, and is nobody's yet."""
        source = self.source[:-1] if self.source else ""
        self.reread = bool(self.source)
        text = (
            (self.env.source if self.env else "") + self.opening + "".join((self.ready or []) + self.pending) + source
        )
        if self.env:
            self.env.source = ""
        self.opening = ""
        self.doubt = False
        self.pending.clear()
        self.early = self.ready = None
        self.source = None
        return text

    def leave_islands(self) -> None:
        """No embedded value is open any more."""
        self.env = self.scanner = self.strings = self.python = self.value = self.notated = None

    def deepen(self) -> None:
        """A candidate inside wreckage was none: its brackets and strings are part of the wreckage."""
        if self.wreckage is not None and (self.env or self.scanner or self.python):
            inner = self.survey()
            self.wreckage.stack += inner.stack
            self.wreckage.quote = inner.quote

    def survey(self) -> Wreckage:
        """The brackets and the string in which the broken value stands."""
        if self.env is not None:
            scanner = self.env.scanner
            quote = '"' if self.strings is not None or scanner.in_string else ""
            return Wreckage("".join(scanner.stack), quote, self.env.in_list, self.env.python is not None)
        if self.python is not None:
            return Wreckage(self.python.brackets, self.python.quote, python=True)
        if self.scanner is not None:
            return Wreckage("".join(self.scanner.stack), '"' if self.scanner.in_string else "")
        if self.keys is not None:
            return Wreckage("<", blind=True)  # which no bracket closes: a marker ends what is left of tagged arguments
        return Wreckage("{")

    def note(self, kind: str, text: str) -> None:
        """A deviation that is tolerated."""
        if self.notes is None:
            self.notes = []
        self.notes.append((kind, text))

    def same(self, path: str) -> str:
        """The path under which the machine knows a JSON path."""
        return self.program.same_path.get(path, path)

    def take(self, text: str, begin: int, end: int) -> str:
        """The source of the characters that a reader takes: themselves, or what they were transcoded from."""
        if self.borrowed:
            begin = self.skip_borrowed(begin, end)
        if self.source is None:
            return text[begin:end]
        source, self.source = self.source, ""
        return source

    def skip_borrowed(self, begin: int, end: int) -> int:
        """Where the output's own characters begin in a token that a prefix has begun."""
        skipped = min(self.borrowed, end - begin)
        self.borrowed -= skipped
        return begin + skipped

    # --- special tokens by id -------------------------------------------------------------------------------------

    def was_emitted(self, symbol: Symbol) -> bool:
        """Whether the text of a special token is the token: always where no id is known, else once per emitted id."""
        left = None if self.credits is None else self.credits.get(symbol.trigger)
        if left is None or self.credits is None:
            return True
        if left:
            self.credits[symbol.trigger] = left - 1
        return left > 0

    def credit(self, token_ids: Sequence[int], triggers: Mapping[int, str]) -> None:
        """Note the special tokens among the ids of a delta."""
        if self.credits is None:
            self.credits = dict.fromkeys(triggers.values(), 0)
        for token_id in token_ids:
            trigger = triggers.get(token_id)
            if trigger is not None:
                self.credits[trigger] = self.credits.get(trigger, 0) + 1


def reader_of(state: StateProgram) -> str:
    """The reader of a state outside any island."""
    if state.meaning in ("arguments", "ignored", "malformed"):
        return state.meaning
    return "text" if state.loops else "token"


def symbol_why(symbol: Symbol) -> str:
    """What a dropped symbol was: a marker, if its text is a special token."""
    return MARKER if symbol.special else SYNTAX
