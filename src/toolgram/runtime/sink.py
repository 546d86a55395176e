"""Where events go: the seam rule, and held regions.

Two things are decided late.  A *blank run* is dropped next to a marker or a call and kept inside text, so it waits for
what follows it.  A *held region* is a call that is not certain yet: its events queue up, and are either committed in
order or released as the text they were made from.  All else goes out at once.
"""

from __future__ import annotations

from toolgram.events import Content, Dropped, Event, Malformed, Reasoning

SEAM = "whitespace at a seam"
MARKER = "marker"
SYNTAX = "syntax"
CONTENT, REASONING = 1, 2
_NOWHERE: list[Event] = []  # until the first delta has a list of its own


class Sink:
    """The events of the current delta (`out`), the open blank run, and the held region (`queue`, or None)."""

    __slots__ = ("blanks", "fresh", "gap", "has", "out", "queue", "seam")

    def __init__(self) -> None:
        self.out: list[Event] = _NOWHERE
        self.queue: list[Event] | None = None
        self.blanks: list[str] = []
        self.fresh = True  # the next text begins a segment
        self.seam = False  # a marker or a call was last, so blanks that follow are dropped
        self.has = 0  # some was sent, of CONTENT, of REASONING, or of both
        self.gap = 0  # some was sent, then a marker: a blank joins what follows

    def say(self, meaning: str, text: str, why: str = "") -> None:
        """Text that means content, reasoning or malformed. Trailing blanks wait; leading ones follow the seam rule."""
        body = text.rstrip()
        if not body:
            self.blanks.append(text)
            return
        trailing = text[len(body) :]
        if self.seam:
            bare = body.lstrip()
            self.blanks.append(body[: len(body) - len(bare)])
            self.drop_blanks()
            body = bare
            self.seam = False
        elif self.blanks:
            body = "".join(self.blanks) + body
            self.blanks.clear()
        channel = REASONING if meaning == "reasoning" else CONTENT
        shown = " " + body if self.gap & channel else body
        self.gap &= ~channel
        self.has |= channel
        self.fresh = False
        if meaning == "content":
            self.out.append(Content(shown, body))
        elif meaning == "reasoning":
            self.out.append(Reasoning(shown, body))
        else:
            self.out.append(Malformed(shown, why, body))
        if trailing:
            self.blanks.append(trailing)

    def drop_blanks(self) -> None:
        """The open blank run touches a marker or a call, or nothing at all."""
        blanks = "".join(self.blanks)
        self.blanks.clear()
        if blanks:
            self.out.append(Dropped(blanks, SEAM, blanks))

    def put(self, event: Event) -> None:
        """An event that is not text: into the held region, or out, which makes a seam."""
        queue = self.queue
        if queue is None:
            if self.blanks or not self.seam:
                self.make_seam()
            self.out.append(event)
        else:
            queue.append(event)

    def drop(self, text: str, why: str) -> None:
        """Characters without meaning of their own. Neighbours in a held region become one event, however they came."""
        if not text:
            return
        if self.queue:
            last = self.queue[-1]
            if isinstance(last, Dropped) and last.why == why == SYNTAX:
                last.text += text
                last.source += text
                return
        self.put(Dropped(text, why, text))

    def make_seam(self) -> None:
        """What follows is not text: the blanks before it are dropped, and text after it is a new segment."""
        if self.blanks:
            self.drop_blanks()
        self.seam = self.fresh = True
        self.gap = self.has

    def hold(self) -> None:
        """From here on, nothing is certain."""
        if self.queue is None:
            self.queue = []

    def commit(self) -> None:
        """The held region is certain."""
        queue = self.queue
        self.queue = None
        if queue:
            self.make_seam()
            # what a prefix has written is in the queue for the record, with no characters, and is nobody's event
            self.out.extend(event for event in queue if event.source or not isinstance(event, Dropped))

    def release(self) -> tuple[str, bool]:
        """The held region is refuted: the text it was made from, and whether a complete marker was part of it."""
        queue = self.queue or []
        self.queue = None
        marked = any(isinstance(event, Dropped) and event.why == MARKER for event in queue)
        return "".join(event.source for event in queue), marked

    def keep_blanks(self, meaning: str, why: str = "") -> None:
        """No marker can follow the open blank run: where text came before it, it belongs to that text."""
        channel = REASONING if meaning == "reasoning" else CONTENT
        if not self.blanks or self.seam or not self.has & channel:
            return
        blanks = "".join(self.blanks)
        self.blanks.clear()
        if meaning == "malformed":
            self.out.append(Malformed(blanks, why, blanks))
        else:
            self.out.append(Reasoning(blanks, blanks) if meaning == "reasoning" else Content(blanks, blanks))

    def end_text(self, meaning: str, turn_end: str) -> None:
        """The output is over: blanks that touch no marker and follow text belong to it.

        `turn_end` are the blanks that the format has before the token that ends the turn, where the server cut that.
        """
        blanks = "".join(self.blanks)
        if turn_end and blanks.endswith(turn_end):
            rest = blanks.removesuffix(turn_end)
            self.blanks = [rest] if rest else []
            self.keep_blanks(meaning)
            self.blanks.append(turn_end)
        else:
            self.keep_blanks(meaning)
        self.drop_blanks()
