"""Withheld events of a call that the model may only mention (see `runtime.mentions`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from toolgram.events import BufferedEvent, ToolCallEnd, ToolCallStart

# What may follow a call in a fence: its end, and blanks (all of `str.isspace`).
NO_TEXT = "` \t\n\v\f\r\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
NO_TEXT += "".join(map(chr, range(0x2000, 0x200B)))


class NotACall(Exception):
    """Raised if what is withheld is text, up to `at`, or up to `follows` characters after those that events account
    for: the first character of the text after the call, or all of a rejected opener. It depends on no deltas."""

    def __init__(self, at: int | None = None, follows: int = 0) -> None:
        super().__init__()
        self.at, self.follows = at, follows


SPELLED = " "  # no token: before the text is the marker of a call that is only spelled, and perhaps calls after it
NO_END = ("", SPELLED)  # before the text is no token that has ended the turn


class Withheld:
    """The events since the opening of a call, and what is needed to read its text again. `closers` are the markers that
    close the thought around the call; a call that is still open there is part of the thought."""

    __slots__ = (
        "begin",
        "closers",
        "events",
        "in_message",
        "is_certain",
        "is_fence",
        "is_header",
        "is_last",
        "is_over",
        "is_text",
        "length",
        "opening",
        "raw",
        "saved",
        "token",
    )

    def __init__(self, saved: Any, begin: int) -> None:
        self.events: list[BufferedEvent] = []
        self.saved = saved  # the stream before them, and its events
        self.begin = begin  # where the part of the current text begins that `raw` does not have
        self.raw: list[str] = []
        self.length = 0  # of `raw`, in characters
        self.closers: tuple[str, ...] = ()
        self.opening = 0  # characters of the opener: they are text if it is given up, so nothing is withheld twice
        self.is_header = False  # it begins with the header of a message, which may be text
        self.is_fence = False  # it begins with a fence, which may contain no call
        self.in_message = False  # it is in a message to the user,
        self.is_text = False  # which also has text
        self.token = ""  # the token that ended the turn
        self.is_over = False  # another such token has come: no message follows
        self.is_certain = False  # the id of the token makes the end certain
        self.is_last = False  # the text after that token was read, and is not a message

    def keep(self, text: str, waiting: int) -> None:
        """Note that the text was read, except `waiting` characters at its end, which come again."""
        self.raw.append(text[self.begin :])
        self.length += len(self.raw[-1])
        self.begin = waiting

    def find_closer(self, text: str, pos: int, in_call: bool) -> tuple[int, int] | None:
        """Return where a marker that closes the thought begins and ends in `text`: after `pos` or, inside a call, one
        that may have begun before. None if there is none, or if it is at `pos`: what follows is outside the thought."""
        if not self.closers:
            return None
        most = max(map(len, self.closers)) - 1
        before = "".join([*self.raw[-most:], text[self.begin : pos]])[-most:] if in_call else ""
        found = _any_of(self.closers)(before + text[pos:])
        if found is None:
            return None
        if in_call or found.start() > 0:
            return pos - len(before) + found.start(), pos - len(before) + found.end()
        self.closers = ()
        return None

    def cut_off(self) -> None:
        """Mark the calls as truncated: something might have followed them."""
        for event in self.events:
            if isinstance(event, ToolCallEnd):
                event.status = "truncated"

    def find_text(self, text: str) -> int:
        """Return where the first character of text ends, or 0: it is no blank and, while the turn goes on, no fence."""
        rest = text.lstrip() if self.token else text.lstrip(NO_TEXT)
        return len(text) - len(rest) + 1 if rest else 0

    @property
    def has_call(self) -> bool:
        """True if a call was certain, but for what follows it."""
        return any(isinstance(event, ToolCallStart) for event in self.events)


@lru_cache(maxsize=256)
def _any_of(texts: tuple[str, ...]) -> Callable[..., re.Match[str] | None]:
    return re.compile("|".join(map(re.escape, texts))).search
