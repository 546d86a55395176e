"""The machine's position in one stream and its memory, with the queries of readers and actions."""

from __future__ import annotations

from typing import NamedTuple

from toolgram.call_ids import CallIds
from toolgram.events import Dropped
from toolgram.islands import Island, OpenBrackets
from toolgram.islands.json_envelope import Envelope
from toolgram.message import ENDED
from toolgram.program.closing_markers import FENCE
from toolgram.program.state import Program, Symbol
from toolgram.runtime.calls import Calls
from toolgram.runtime.event_buffer import UNCLOSED_ENVELOPE, EventBuffer
from toolgram.runtime.source import Source
from toolgram.runtime.special_tokens import EmittedIds
from toolgram.tools.reading import Tools

# What the prompt shows: only the format's own prompt opened the thought, and no marker has closed it (ASSUMED); or the
# given prompt opened no thought (THOUGHTLESS).
ASSUMED, THOUGHTLESS = "assumed", "thoughtless"
WAIT = -1  # returned by a reader that has put the rest of the text into the buffer


class RejectedValue(NamedTuple):
    """A rejected value in held text, whose rest is text as well: the meaning of that text, and why there is no call."""

    meaning: str
    why: str
    named: bool = False
    announced: bool = False


class Position:
    """The state, the reader, the parts that hold the memory of the stream, and what follows from them."""

    __slots__ = (
        "buffer", "calls", "closing", "events", "ids", "island", "program", "prompt",
        "reader", "rejected", "source", "state", "unfinished",
    )  # fmt: skip

    def __init__(self, program: Program, call_ids: CallIds, tools: Tools) -> None:
        self.program = program
        self.state = program.initial
        self.reader = ""
        self.buffer = ""  # the prefix of a token that may become longer
        self.prompt = ""  # ASSUMED, THOUGHTLESS, or neither
        self.closing: str | None = None  # while closing: the finish reason, "" for none
        self.events = EventBuffer()
        self.calls = Calls(self.events, call_ids, tools)
        self.source = Source()
        self.island: Island | None = None  # the embedded value that is open
        self.rejected: RejectedValue | None = None  # how the text of the island counts, if it is text
        self.unfinished = ""  # the part of a marker in which the output has ended
        self.ids: EmittedIds | None = None  # special tokens by id, if they were given

    def wait(self, text: str) -> int:
        """Keep the rest of a text until more of it has come. Return WAIT, as a reader does then."""
        self.buffer = text
        return WAIT

    @property
    def ended(self) -> bool:
        """True if the output was not cut off: it continues, or the server reports that the model ended it."""
        return self.closing is None or self.closing in ENDED

    @property
    def in_call(self) -> bool:
        """True if a call is open, or may have begun."""
        return self.calls.index is not None or self.events.held is not None

    @property
    def has_announced_name(self) -> bool:
        """True if a call that is not certain has its name, and a marker announced it. A short marker, which also
        appears in prose and code, announces only the name of a declared function."""
        name, held = self.calls.name, self.events.held
        if name is None or held is None:
            return False
        literals, dropped = self.program.literals.values(), (each for each in held.events if isinstance(each, Dropped))
        openers = (each.text.strip() for each in dropped)
        is_opened = any(len(each) > 1 and each in literals and each != FENCE for each in openers)
        return held.announced or (is_opened and name.name in self.calls.names)

    def cut_output(self, count: int) -> None:
        """Read as if the output had `count` characters less, or more if it is negative."""
        if self.ids is not None:
            self.ids.end -= count

    def closes_thought(self, symbol: Symbol) -> bool:
        """Return whether a symbol of a thought closes it, and is neither a marker of calls nor the end of the turn."""
        return self.state.row[symbol.trigger].dest.meaning == "content" and not symbol.opens

    def note_unclosed(self) -> None:
        """Note that the closing marker of the last call is missing."""
        self.calls.forget_markers()
        self.events.note(UNCLOSED_ENVELOPE, "")

    def leftover(self) -> str:
        """Take the characters since the last event, in order."""
        text, self.unfinished = self.source.take_all() + self.unfinished, ""
        if isinstance(self.island, Envelope):
            text = self.island.take_source() + text
        return text

    def open_brackets(self) -> OpenBrackets:
        """Return the brackets and the string that are open in the broken value."""
        opened = self.island.open_brackets() if self.island is not None else None
        if opened is None:  # no bracket closes "<": a marker ends the rest of tagged arguments
            opened = OpenBrackets("{" if self.calls.keys is None else "<")
        return opened

    @property
    def may_repair(self) -> bool:
        """True if JSON that begins here may be repaired: not by a strict parser, and not if it may be prose."""
        return not self.program.strict and not self.state.bare

    @property
    def may_repair_call(self) -> bool:
        """True if a call, or arguments that begin here, may be repaired: in prose, only if the function is declared."""
        if self.may_repair:
            return True
        name, region = self.calls.name, self.events.held
        if self.program.strict or name is None or region is None:
            return not self.program.strict
        return name.name in self.calls.names or not region.origin.is_text or region.marked

    @property
    def is_marked(self) -> bool:
        """True if a marker, and not only a fence, has announced the call that is read."""
        region = self.events.held
        return not self.state.bare or region is None or region.announced

    def same(self, path: str) -> str:
        """Return the path under which the machine knows a JSON path."""
        return self.program.spec.same_path.get(path, path)

    def is_marker(self, symbol: Symbol, text: str, begin: int, end: int) -> bool:
        """Return whether the symbol found in `text` counts. Blanks, brackets or a name may be around its marker."""
        if self.ids is None or symbol.most:
            return True
        certain = symbol.trigger.startswith("ROLE ")
        return self.ids.is_certain(text, begin, end) if certain else self.ids.are_tokens(text, begin, end)

    def is_token(self, marker: str, text: str, at: int) -> bool:
        """Return whether the marker at `at` in `text` counts. What begins a message of another role must be certain."""
        if self.ids is None:
            return True
        certain = f"ROLE {marker}" in self.program.special
        return (self.ids.is_certain if certain else self.ids.are_tokens)(text, at, at + len(marker))

    def are_markers(self, text: str, begin: int, end: int) -> bool:
        """Return whether all special tokens that are spelled in a part of `text` were emitted."""
        return self.ids is None or self.ids.are_tokens(text, begin, end)
