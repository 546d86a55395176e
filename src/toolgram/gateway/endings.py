"""What ends an answer early: the stop strings of a request.

Strategy: servers differ. Some leave the string in their text, some compare tokens and continue if the model spells it
differently. So the answer is cut here: its text ends before the stop string that ends first, and text that may begin
one is held back.
"""

from __future__ import annotations

from collections.abc import Sequence


class StopTexts:
    """The text of an answer up to the first of some strings. `found` is the string that ended it."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = [text for text in texts if text]
        self._held = ""
        self.found: str | None = None

    def feed(self, text: str) -> str:
        """Return the part of the text so far that can be passed on."""
        text = self._held + text
        places = [(at + len(each), at, each) for each in self._texts if (at := text.find(each)) >= 0]
        if places:
            _, at, self.found = min(places)
            self._held = ""
            return text[:at]
        held = max((self._begun(text, each) for each in self._texts), default=0)
        self._held = text[len(text) - held :]
        return text[: len(text) - held]

    def end(self) -> str:
        """Return what was held back, at the end of the text."""
        text, self._held = self._held, ""
        return text

    @staticmethod
    def _begun(text: str, stop: str) -> int:
        """Return how much of a stop string the text ends with."""
        sizes = range(min(len(stop) - 1, len(text)), 0, -1)
        return next((size for size in sizes if text.endswith(stop[:size])), 0)
