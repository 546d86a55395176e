"""The machine's position in one stream: transitions, their actions, and the handling of text that does not fit.

Theory of operation: a stream is in one *state* of its machine and has one *reader*, the function that takes the next
characters there. A reader *fires* triggers; a fired transition performs its actions and chooses the next reader. Every
character is emitted in exactly one event: what makes an event passes its characters on with it. Readers make events; so
do the actions of transitions, the edges of an output and the fast path.

A state may be *held*: a call is not certain yet, and its events wait in a held region. A state that is not held commits
them. Text that does not fit *rejects what is held*: the text of the region becomes text of the state before the region
(its origin), and reading resumes at the character that did not fit. What was held is not read again, so the work stays
linear; only text with a withheld call is read twice (`mentions`). If a rejected value is nevertheless valid JSON, it
remains text up to its closing bracket, so that no object inside it is taken for a call. For the same reason, if it
breaks after a name is known, or inside the value of a member, its rest is text until its brackets balance.

Text that does not fit while nothing is held fires `malformed`, and the machine defines where that leads.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final, NamedTuple, TypeAlias, cast

from toolgram.call_ids import CallIds
from toolgram.islands import Island, value_island, value_kind
from toolgram.islands.error_recovery import ErrorRecovery
from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import JsonScanner
from toolgram.program.state import Move, Program, StateProgram, Symbol
from toolgram.runtime.actions import function_called, perform
from toolgram.runtime.calls import NO_MARKERS, NONE, Argument
from toolgram.runtime.event_buffer import MARKER, SYNTAX, UNCLOSED_ENVELOPE, HeldRegion
from toolgram.runtime.position import ASSUMED, WAIT, Position, RejectedValue
from toolgram.runtime.withheld import SPELLED, NotACall
from toolgram.spec.data import TEXT, UNCLOSED
from toolgram.spec.vocabulary import AS_DECLARED
from toolgram.tools.reading import NO_TOOLS, Tools

PROMPT: Final = "prompt"  # in a trace: the prompt ends, and its text does not belong to the turn
READ_AGAIN: Final = "read again"  # in a trace: calls turn out to be only mentioned
REJECTED: Final = "rejected"  # in a trace: a held region turns out to be text
LATE_CALL: Final = "a call after the end of its list"  # why a late call is malformed


class TraceStep(NamedTuple):
    """One transition, as it is reported to a trace.

    `held`: a call was not certain before it. `before` counts the characters since the last delta before what is held.
    If held text is rejected, `why` says why (if not, what is `at` the place shows it), and `rest` how its rest is read.
    """

    trigger: str
    source: str
    dest: str
    held: bool = False
    before: int = 0
    why: str = ""
    rest: str = ""
    at: Position | None = None


Trace: TypeAlias = Callable[[TraceStep], None]


class Stream(Position):
    """The machine's position, and the transitions that it can make."""

    __slots__ = ("trace",)

    def __init__(self, program: Program, call_ids: CallIds, trace: Trace | None, tools: Tools = NO_TOOLS) -> None:
        super().__init__(program, call_ids, tools)
        self.reader = program.initial.reader
        self.events.meaning = program.initial.meaning or ""
        self.trace = trace

    # --- transitions ----------------------------------------------------------------------------------------------

    def fire(self, trigger: str, text: str, why: str = SYNTAX, value: str | None = None) -> None:
        """Follow the transition of `trigger`, whose characters are `text`. Its actions use `value` (or the text)."""
        move, events = self.state.row.get(trigger), self.events
        guarded = move is not None and (move.only_called or move.only_declared)
        if move is None or (guarded and not self._may_follow(move, text if value is None else value)):
            self.source.pieces.append(text)
            self.unexpected_input(why=self.calls.undeclared() if move is not None else "")
            return
        if events.held is None and self.calls.index is None and self._misses(trigger):
            self.note_unclosed()
        if move.dest.held and events.held is None:
            move = self._begin_holding(trigger, move, why)
        if self.trace:
            self.tell(trigger, move.dest)
        try:
            if move.actions:
                perform(self, move, text, why, text if value is None else value)
            elif text:
                events.drop(text, why)
        except NotACall:
            self.state = move.dest  # the trace has reported it
            raise
        self._follow(trigger, move)

    def refuses(self, move: Move, name: str) -> bool:
        """Return whether a name begins no call: no marker comes before or after it, and the function is not declared or
        a marker that is only spelled is directly before it. Nor does a call start whose name is no function's, nor
        does a word mean nothing that names another function."""
        called = self.calls.name
        if called is not None and "start_call" in move.actions:
            return called.name in self.program.spec.not_called and called.name not in self.calls.names
        if called is not None and "unusual_form" in move.actions and move.trigger not in self.program.literals:
            return self.program.holds_marker(name) and not name.endswith(called.name)
        if "name" not in move.actions or move.dest.announced:
            return False
        region, names = self.events.held, self.calls.names
        if not (self.state.is_text if region is None else not region.announced):
            return False
        if self.events.before == SPELLED:
            return True
        return bool(names) and function_called(self.program, names, name.strip()) not in names

    def _may_follow(self, move: Move, value: str) -> bool:
        """Return whether the declarations of functions allow a transition."""
        names = self.calls.names
        if (move.only_called or move.only_declared) and "name" in move.actions:
            return value in names or not (names or move.only_called)
        if move.only_called:
            return self.calls.name is not None and self.calls.name.name in names
        return not move.only_declared or self.calls.find_declared()

    def _begin_holding(self, trigger: str, move: Move, why: str) -> Move:
        """Begin to hold events, since what follows is not certain. Return the rest of the transition."""
        calls = self.calls
        if self.state.loops:
            calls.markers = calls.markers._replace(owed=NONE)
        if trigger == UNCLOSED:
            self.hold(calls.index)
            return move
        if "end_call" in move.actions:  # the call has ended, whatever its end begins
            perform(self, move, "", why, "")
            move = Move(move.trigger, move.dest, ())
        self.hold()
        marks = "name" not in move.actions  # a name at the beginning of a line is not a marker
        if marks and self.program.literals.get(trigger) in self.program.markers:
            cast(HeldRegion, self.events.held).announced = True
        return move

    def _follow(self, trigger: str, move: Move) -> None:
        """Go to the destination of a transition whose actions are done, and choose its reader."""
        calls, events, dest = self.calls, self.events, move.dest
        in_call = not self.state.is_text and (move.repair or self.state.meaning == "malformed")
        if calls.markers is not NO_MARKERS or move.opens or move.begins:
            calls.markers = calls.markers.followed(trigger, move, self.program.sections)
        if self.prompt == ASSUMED and dest.meaning == "content":
            closed = trigger not in self.program.stop and not calls.count  # not by the end of the turn, or by a call
            self.prompt = "" if closed else ASSUMED
        self.state = dest
        if events.held is not None and not dest.held:
            if events.held.call is not None:
                calls.markers = calls.markers._replace(overdue=NONE)  # that it is unclosed is reported now
            events.commit()
        if dest.is_text:
            events.enter(dest.meaning or "", dest.to_user and trigger != TEXT)
        if trigger in self.program.stop and in_call and dest.is_text:
            events.before = self.program.literals.get(trigger, "")
        self._choose_reader(trigger, dest)

    def _choose_reader(self, trigger: str, dest: StateProgram) -> None:
        if dest.meaning == "value":
            self._begin_value(trigger)
        elif isinstance(self.island, Envelope) and dest.reader in ("text", "token"):
            self.reader = "envelope"
        else:
            self.reader = dest.reader

    def tell(self, trigger: str, dest: StateProgram, why: str = "", rest: str = "") -> None:
        """Report a transition to the trace, which must be set."""
        events = self.events
        before = sum(len(event.source) for event in events.out) + sum(map(len, events.blanks))
        cast(Trace, self.trace)(
            TraceStep(trigger, self.state.name, dest.name, events.held is not None, before, why, rest, self)
        )

    def hold(self, unclosed: int | None = None) -> None:
        """Hold events from here on: nothing is certain."""
        outer = self.island if isinstance(self.island, ErrorRecovery) else None
        if outer is not None:
            self.island = None
        self.events.held = HeldRegion(self.state, outer, announced=not self.state.is_text)
        self.events.held.call = unclosed

    def _begin_value(self, trigger: str) -> None:
        """Begin the value of a tagged argument, of the type given by its markers or its declaration."""
        marker, calls = self.program.literals.get(trigger, ""), self.calls
        calls.argument = calls.argument or Argument("")
        calls.argument.again = marker if marker in self.state.before else ""
        typed = self.state.typed
        types = self.calls.types(told=typed not in AS_DECLARED)
        kind = value_kind(typed, "value_end" in self.state.row)
        unproven = self.program.unproven_types
        if unproven and (types is None or not unproven.isdisjoint(types)):
            self.events.note("unproven_types", self.calls.key)
        self.reader = "value"
        place = self.calls.place() if kind == "elements" else None
        self.island = value_island(kind, typed, types, self.program.spec.notation, self.calls.key, place)

    # --- text -----------------------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Emit free text of the current state."""
        if self.calls.markers.overdue and not text.isspace() and self._misses(TEXT):
            self.note_unclosed()
        self.events.say(self.state.meaning or "content", text, escaped=self.state.typed)

    def _leave_for_text(self) -> None:
        """Leave a state that text leaves, because text has come."""
        move = self.state.row[TEXT]
        if self._misses(TEXT):
            self.note_unclosed()
        if move.dest is not self.state:
            if self.trace:
                self.tell(TEXT, move.dest)
            if move.actions:
                perform(self, move, "", SYNTAX, "")
            self.state = move.dest
        self.reader = self.state.reader

    def _misses(self, trigger: str) -> bool:
        """Return whether a closing marker of the last call is missing before this transition."""
        overdue, owed, _ = self.calls.markers
        if not overdue and not owed:
            return False
        left_open = self.state.leaves_owed.get(trigger, NONE)
        if owed:
            self.calls.markers = self.calls.markers._replace(owed=owed - left_open)  # with a call or without
        return not overdue.isdisjoint(left_open)

    # --- what does not fit ----------------------------------------------------------------------------------------

    def unexpected_input(self, json: JsonScanner | None = None, why: str = "") -> None:
        """Handle a next character that does not fit. With `json`, the scanner of a valid value, its rest is text."""
        if self.events.held is not None:
            move = self.state.row.get(TEXT)
            if move is not None and "no_call" in move.actions:
                self._drop_held(move)
            else:
                self.reject_held(json, why)
        elif TEXT in self.state.row:
            text, self.island = self.leftover(), None
            self._leave_for_text()
            if text:
                self.say(text)
        elif UNCLOSED in self.state.row:
            self._close_envelope()
        else:
            self.fail(why=why)

    def _close_envelope(self) -> None:
        """Close the envelope around arguments that are whole. In a list, the next call may follow."""
        text, envelope = self.leftover(), self.island
        if text.strip(" \t\r\n,"):
            self.fail(text)
            return
        in_list = isinstance(envelope, Envelope) and envelope.in_list and bool(envelope.parents)
        self.island = Envelope.after_item(envelope.repairs) if isinstance(envelope, Envelope) and in_list else None
        if not self.state.row[UNCLOSED].dest.held:
            if in_list:
                self.events.note(UNCLOSED_ENVELOPE, "")
            else:
                self.note_unclosed()
        self.fire(UNCLOSED, text)
        if not in_list and "end_array" in self.state.row:
            self.fire("end_array", "")

    def _drop_held(self, move: Move) -> None:
        """Drop what is held, which is not a call although its markers are real ones: text follows them."""
        if self.trace:
            self.tell(TEXT, move.dest)
        self.events.drop_held()
        self.calls.forget_held()
        text = self.leftover()
        self.island, self.state, self.reader = None, move.dest, move.dest.reader
        if text:
            self.say(text)

    def reject_held(self, json: JsonScanner | None = None, why: str = "") -> None:
        """Release the held region as text of its origin, and continue there."""
        held, region = self.state, cast(HeldRegion, self.events.held)
        origin = region.origin
        dest = self._goes_on_in(origin)
        announced = region.announced or self.has_announced_name
        rest, rest_reader = self._rest_of_held(json, announced)
        if self.trace:
            self.tell(REJECTED, dest, why, "malformed" if origin.meaning == "malformed" else rest_reader)
        text, marked = self.events.release()
        rejected = RejectedValue(origin.meaning or "content", why or held.why, self.calls.forget_held(), announced)
        if marked and origin.meaning == "content":
            rejected = rejected._replace(meaning="malformed")
        self.state = origin
        if region.call is not None:
            self.calls.index = region.call
        if origin.meaning == "malformed":
            self._recover_again(region, text, rejected.why)
            return
        if origin.is_text:
            self._release(text, dest, rejected, rest)
        else:
            self.fail(text, held.why)
        if rest is not None and (origin.is_text or (region.call is not None and self.state.is_text)):
            self.island, self.rejected, self.reader = rest, rejected, rest_reader

    def _goes_on_in(self, origin: StateProgram) -> StateProgram:
        """Return the state in which rejected text is text."""
        move = self.state.row.get(TEXT)
        return move.dest if move is not None and move.dest.meaning == origin.meaning else origin

    def _release(self, text: str, dest: StateProgram, rejected: RejectedValue, rest: Island | None) -> None:
        """Emit held text that is rejected, in the state to which it leads."""
        if dest is not self.state:
            self.state = dest
            self.reader = dest.reader
        else:
            self._leave_for_text()
        text += self.leftover()
        self.island = rest
        if text:
            self.events.say(rejected.meaning, text, rejected.why, rejected=True)

    def _recover_again(self, region: HeldRegion, text: str, why: str) -> None:
        """Continue a recovery: what began in the rest of a broken call belongs to that call."""
        opened = self.island.open_brackets() if self.island is not None else None
        if region.outer is not None and opened is not None:
            region.outer.add(opened)
        self.events.say("malformed", text + self.leftover(), why)
        self.island, self.reader = region.outer, "malformed"

    def _rest_of_held(self, json: JsonScanner | None, announced: bool) -> tuple[Island | None, str]:
        """Return the island and the name of the reader for the rest of a rejected value, if there is one. If a marker
        `announced` a call, its quotes count: what is in them is no call."""
        if json is not None:
            json.exact()
            return (None, "") if json.done else (json, "rejected_json")
        island, named = self.island, self.calls.name is not None
        in_envelope = isinstance(island, Envelope)
        in_member = isinstance(island, Envelope) and len(island.scanner.stack) - island.in_list > 1
        begun = self.has_announced_name and (island is not None or self.source.object_is_held)  # its arguments
        if not (in_member or begun or (in_envelope and named)):
            return None, ""
        opened = self.open_brackets()._replace(in_list=False)
        opened = opened if announced else opened._replace(quote="")
        return ErrorRecovery(opened, quotes_count=announced), "rejected_rest"

    def fail(self, text: str = "", why: str = "") -> None:
        """Fail what was certain: `text`, and as much after it as the machine defines, is malformed."""
        why = why or self.state.why
        opened = self.open_brackets()
        recovery = ErrorRecovery(opened, quotes_count=opened.stack != "<")
        if UNCLOSED in self.state.row and not self.state.row[UNCLOSED].dest.held and self.calls.index is not None:
            self.events.note(UNCLOSED_ENVELOPE, "")
            self.calls.end("complete")
        self.calls.forget_markers()
        text += self.leftover()
        self.island = None
        self.fire("malformed", "")
        self.island = recovery if self.state.meaning == "malformed" else None
        if text:
            self.events.say("malformed", text, why)

    def fail_after_arguments(self, after: str, text: str = "") -> None:
        """Fail the envelope because of a quote, with `text`. `after` is what follows the arguments: on their line, the
        quote shows that they ended too early."""
        if "\n" not in after:
            self.calls.end("malformed")
        self.fail(text)

    def markers_in_values(self) -> set[str]:
        """Return the markers that end a damaged value: those of calls and of the turn, but no function's name."""
        markers = {marker.strip() for marker in (*self.program.closing, *self.program.markers)}
        return {marker for marker in markers if len(marker) > 1 and marker not in self.calls.names}

    def any_at(self, markers: Collection[str], text: str, pos: int, final: bool) -> int:
        """Return 1 if any of these markers is at `pos`, 0 if not, and WAIT if one may have begun."""
        if any(text.startswith(marker, pos) and self.is_token(marker, text, pos) for marker in markers):
            return 1
        rest = text[pos : pos + max(map(len, markers), default=0)]
        is_all = not final and pos + len(rest) == len(text)
        return WAIT if is_all and any(marker.startswith(rest) and marker != rest for marker in markers) else 0

    def symbol_at(self, text: str, pos: int) -> tuple[Symbol, int] | None:
        """Return the symbol of the state at `pos`, if it counts, and where it ends."""
        match = self.state.match(text, pos)
        if match is None:
            return None
        symbol, end = self.state.symbols[cast(int, match.lastindex) - 1], match.end()
        return (symbol, end) if self.is_marker(symbol, text, pos, end) else None


def symbol_why(symbol: Symbol) -> str:
    """Return why a symbol is dropped: as a marker, if its text is a special token, else as syntax."""
    return MARKER if symbol.special else SYNTAX
