"""Events before they are emitted: the whitespace next to markers, and held regions.

Two things are decided late. A *blank run* is dropped next to a marker or a call and kept inside text, so it waits for
what follows. A *held region* is a call that is not certain yet: its events are either committed in order, or released
as the text they were made from. All other events are emitted at once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

from toolgram.events import (
    BufferedEvent,
    Content,
    Dropped,
    Malformed,
    Note,
    Reasoning,
    ToolCallDelta,
    ToolCallStart,
)
from toolgram.islands.escapes import ESCAPES
from toolgram.islands.held_text import add_piece, take_pieces
from toolgram.limits import MOST_TAIL
from toolgram.runtime.code_marks import CodeMarks
from toolgram.runtime.withheld import NotACall, Withheld

if TYPE_CHECKING:
    from toolgram.islands.error_recovery import ErrorRecovery
    from toolgram.program.state import StateProgram

SEAM = "whitespace at a seam"
MARKER = "marker"
SYNTAX = "syntax"
UNCLOSED_ENVELOPE = "unclosed_envelope"
CONTENT, REASONING = 1, 2
# The place of the next text: inside a segment, at its beginning, or after a marker or a call (blanks dropped).
INSIDE, SEGMENT, AFTER_MARKUP = range(3)
may_open = re.compile(r"[({\[`][({\[`\w\s]*+\Z").search
_BETWEEN_CALLS = "[({`,; \t\r\n"


class HeldRegion:
    """The events of a call that is not certain yet, and where to return if it is not a call.

    `origin` is the state before the region, `outer` the error recovery that it interrupts. `call` is the index of a
    call that is unclosed if the region becomes certain, and still open if it does not. `announced`: a marker shows that
    a call begins; else the region may be prose. Adjacent arguments become one event, and so do adjacent separators: a
    held character costs no more than its text.
    """

    __slots__ = ("_events", "_payload", "_source", "announced", "call", "origin", "outer")

    def __init__(self, origin: StateProgram, outer: ErrorRecovery | None = None, announced: bool = False) -> None:
        self.origin = origin
        self.outer = outer
        self.announced = announced
        self.call: int | None = None
        self._events: list[BufferedEvent] = []
        self._payload: list[str] = []  # still to be added to the payload of the last event,
        self._source: list[str] = []  # and to its source

    def put(self, event: BufferedEvent) -> None:
        """Add an event, or merge it into the last one."""
        last = self._events[-1] if self._events else None
        if isinstance(event, ToolCallDelta) and isinstance(last, ToolCallDelta):
            add_piece(self._payload, event.arguments)
        elif isinstance(event, Dropped) and isinstance(last, Dropped) and event.why == last.why == SYNTAX:
            add_piece(self._payload, event.text)
        else:
            self._settle()
            self._events.append(event)
            return
        add_piece(self._source, event.source)

    def put_first(self, start: ToolCallStart) -> None:
        """Move the start of a call before its arguments."""
        events = self.events
        first = next((at for at, event in enumerate(events) if isinstance(event, ToolCallDelta)), len(events))
        place = next((at for at, event in enumerate(events) if event is start), 0)
        if first < place:
            events[place] = Dropped(start.source, "name", start.source)
            start.source = ""
            events.insert(first, start)

    @property
    def marked(self) -> bool:
        """True if a complete marker is part of the region."""
        return any(isinstance(event, Dropped) and event.why == MARKER for event in self._events)

    @property
    def events(self) -> list[BufferedEvent]:
        """The events so far. The cost grows with the length of the last one."""
        self._settle()
        return self._events

    def _settle(self) -> None:
        if not self._payload and not self._source:
            return
        last = self._events[-1]
        last.source += take_pieces(self._source)
        if isinstance(last, ToolCallDelta):
            last.arguments += take_pieces(self._payload)
        elif isinstance(last, Dropped):
            last.text += take_pieces(self._payload)


class EventBuffer:
    """The events of the current delta (`out`, which includes notes), the open blank run, and the held region.

    The parser empties `out` after each delta. While events are withheld, they come into a list of their own.
    """

    __slots__ = (
        "after_call", "before", "blanks", "gap", "has", "held", "lead", "marks", "meaning", "out", "place",
        "quoted_to", "tail", "withheld",
    )  # fmt: skip

    def __init__(self) -> None:
        self.out: list[BufferedEvent] = []
        self.held: HeldRegion | None = None
        self.blanks: list[str] = []
        self.place = SEGMENT  # the place of the next text
        self.has = 0  # the channels in which text was emitted: CONTENT, REASONING, or both
        self.gap = 0  # those in which a marker has followed it: a blank is put before the next text there
        self.lead = ""  # blanks that are dropped if the text of the turn begins with them
        # The triggers of the closers since the last call, if it is complete and only closers and blanks have followed;
        # else None.
        self.after_call: frozenset[str] | None = None
        # What decides whether a call is only mentioned:
        self.meaning = ""  # the meaning of the text,
        self.marks = CodeMarks()  # the code that is open in it,
        self.tail = ""  # its end, if that may open what a call is in,
        self.before = ""  # a token directly before it that has ended the turn inside a call, or SPELLED
        self.withheld: Withheld | None = None
        self.quoted_to = 0  # up to where openers are text in text that is read again

    def put_blanks(self, text: str) -> None:
        """Add blanks to the open run."""
        self.marks.read(text)
        add_piece(self.blanks, text)

    def enter(self, meaning: str, begins: bool) -> None:
        """Enter text of this meaning. Code ends if the meaning changes or another message `begins`."""
        if self.withheld is not None and self.withheld.is_header and not self.withheld.has_call:
            self.send_withheld()
        if meaning != self.meaning or begins:
            self.meaning = meaning
            self.marks = CodeMarks()

    def send_withheld(self) -> None:
        """Emit what is withheld: it counts."""
        withheld, self.withheld = self.withheld, None
        if withheld is not None:
            self.out = withheld.saved.events.out
            self.out += withheld.events

    def say(self, meaning: str, text: str, why: str = "", escaped: str = "", rejected: bool = False) -> None:
        """Emit text that means content, reasoning or malformed. Trailing blanks wait; leading ones are dropped after
        markup. Malformed text is the rest of a call: a bracket or a fence in it opens nothing in the text around the
        call. `rejected` text was held, so that its length depends on no deltas."""
        withheld = self.withheld
        if withheld is not None and withheld.is_fence and not withheld.has_call:
            self.send_withheld()
        elif withheld is not None and (follows := withheld.find_text(text)):
            raise NotACall(follows=len(text) if rejected else follows)
        marks = self.marks
        if meaning != "malformed" and (marks.is_blank or marks.is_live or "`" in text):
            marks.read(text)
        if text.isspace():
            add_piece(self.blanks, text)
        elif text:
            self._say(meaning, text, why, escaped)
        if marks.quote and not marks.quoted:
            self.note_quote()

    def _say(self, meaning: str, text: str, why: str, escaped: str) -> None:
        body = text.rstrip()
        trailing = text[len(body) :]
        if self.place == AFTER_MARKUP:
            bare = body.lstrip()
            self.blanks.append(body[: len(body) - len(bare)])
            self.drop_blanks()
            body = bare
        elif self.blanks or self.lead:
            body = self._led("".join(self.blanks) + body)
            self.blanks.clear()
        self.lead = ""
        channel = REASONING if meaning == "reasoning" else CONTENT
        shown = ESCAPES[escaped].decoded(body) if escaped else body
        shown = " " + shown if self.gap & channel else shown
        self.gap &= ~channel
        self.has |= channel
        self.after_call = None
        self.remember("" if meaning == "malformed" else body, why)
        self.place = INSIDE
        self._put_text(meaning, shown, why, body)
        if trailing:
            self.blanks.append(trailing)

    def _put_text(self, meaning: str, shown: str, why: str, source: str) -> None:
        if meaning == "content":
            self.out.append(Content(shown, source))
        else:
            self.out.append(Malformed(shown, why, source) if meaning == "malformed" else Reasoning(shown, source))

    def note_quote(self) -> None:
        """Note the call in a code span that has ended."""
        blanks, length = sum(map(len, self.blanks)), self.marks.length
        self.note("quoted_call", self.marks.take_quote(), blanks - length)

    def _led(self, text: str) -> str:
        """Return the first text of a turn without the blanks with which a turn begins."""
        other = self.lead.replace("\n", "\r\n")
        for lead in (self.lead, other, other.removeprefix("\r")) if self.lead else ():  # a prompt may end in a line end
            if text.startswith(lead):
                self.out.append(Dropped(lead, SEAM, lead))
                return text[len(lead) :]
        return text

    def remember(self, text: str, why: str = "") -> bool:
        """Keep the tail of emitted text while it may end in opening brackets or a fence; with a reason, the text is not
        a call. Return whether the tail, or a marker before it, affects what follows."""
        tail = (self.tail + text)[-MOST_TAIL:]
        self.tail = tail if may_open(tail) else ""
        if why == "" and text.strip(_BETWEEN_CALLS):
            self.before = ""
        return self.tail != "" or self.before != ""

    def drop_blanks(self) -> None:
        """Drop the open blank run: it is next to a marker or a call, or has no text before it."""
        blanks = take_pieces(self.blanks)
        if blanks:
            self.out.append(Dropped(blanks, SEAM, blanks))

    def put(self, event: BufferedEvent) -> None:
        """Add an event that is not text to the held region, or emit it, with a seam before it."""
        if self.held is not None:
            self.held.put(event)
            return
        if self.blanks or self.place != AFTER_MARKUP:
            self.make_seam()
        self.out.append(event)

    def drop(self, text: str, why: str) -> None:
        """Drop characters that have no meaning of their own."""
        if text:
            self.put(Dropped(text, why, text))

    def drop_and_tell(self, text: str, why: str, kind: str) -> None:
        """Drop characters that a clean output would not have, and note an anomaly of this kind."""
        self.drop(text, why)
        self.note(kind, text, -len(text))

    def note(self, kind: str, text: str, ahead: int = 0) -> None:
        """Note an anomaly of this kind at this place, or `ahead` characters after it, also in a held region."""
        note = Note(kind, text, ahead=ahead)
        if self.held is not None:
            self.held.put(note)
        else:
            self.out.append(note)

    def begin_segment(self) -> None:
        """Make the next text begin a segment."""
        self.place = max(self.place, SEGMENT)

    def make_seam(self) -> None:
        """Drop the blanks before something that is not text, and make text after it a new segment."""
        if self.blanks:
            self.drop_blanks()
        self.place = AFTER_MARKUP
        self.lead = ""
        self.gap = self.has
        self.before = ""

    def commit(self) -> None:
        """Emit the events of the held region, which is now certain."""
        held = self._take_held()
        if held.call is not None:
            self.note(UNCLOSED_ENVELOPE, "")
        if held.events:
            self.make_seam()
            self.out.append(
                Note("opens", "" if held.origin.is_text or held.origin.meaning == "malformed" else "inside")
            )
            self.out += held.events

    def _take_held(self) -> HeldRegion:
        held, self.held = self.held, None
        return cast(HeldRegion, held)

    def drop_held(self) -> None:
        """Drop the held region, which is neither a call nor text."""
        held = self._take_held().events
        source = "".join(event.source for event in held)
        self.drop(source, MARKER)
        self.note("unusual_form", source, -len(source))
        self.out += [event for event in held if isinstance(event, Note)]

    def release(self) -> tuple[str, bool]:
        """Return the held region as the text it was made from, and whether a complete marker was part of it."""
        held = self._take_held()
        return "".join(event.source for event in held.events), held.marked

    def keep_blanks(self, meaning: str, why: str = "") -> None:
        """Emit the open blank run as part of the text before it, if any: no marker can follow it."""
        channel = REASONING if meaning == "reasoning" else CONTENT
        if not self.blanks or self.place == AFTER_MARKUP or not self.has & channel:
            return
        blanks = take_pieces(self.blanks)
        self._put_text(meaning, blanks, why, blanks)

    def end_text(self, meaning: str, turn_end: str) -> None:
        """End the output's text, which includes blanks after it that are not next to a marker. `turn_end` are the
        format's blanks before the token that ends the turn, which the server may have removed."""
        blanks = "".join(self.blanks)
        if "\n" in turn_end and blanks.endswith(turn_end.replace("\n", "\r\n")):
            turn_end = turn_end.replace("\n", "\r\n")
        if turn_end and blanks.endswith(turn_end):
            rest = blanks.removesuffix(turn_end)
            self.blanks = [rest] if rest else []
            self.keep_blanks(meaning)
            self.blanks.append(turn_end)
        else:
            self.keep_blanks(meaning)
        if self.marks.quote:
            self.note_quote()
        self.drop_blanks()
