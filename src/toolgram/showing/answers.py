"""The last answers of a server, as its page lists and shows them: `answers.mjs` draws them.

Strategy: the raw text of a few answers is kept in memory, and is read again if somebody looks at one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from toolgram.formats import Format
from toolgram.showing.reading import explained, reading

MOST_RECENT = 20  # answers of a model
LONGEST_RECENT = 20_000  # characters of one


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer as it came from the server, and how it was read. `reason` is what said that it had ended by itself, and
    `cut` that more text came than is kept."""

    at: float
    model: str
    fmt: Format
    text: str
    tools: list[dict[str, Any]]
    prefix: str
    reason: str | None
    cut: bool
    calls: int
    anomalies: int
    number: int = field(default_factory=count(1).__next__)

    @property
    def row(self) -> dict[str, Any]:
        """The answer in the list of the page."""
        when = time.strftime("%H:%M:%S", time.localtime(self.at))
        kept = [["kept", f"the first {len(self.text):,} characters"]] if self.cut else []
        reason = self.reason or "none"
        note = f"{self.fmt.name}; calls: {self.calls}; anomalies: {self.anomalies}; finish reason: {reason}"
        return {"id": self.number, "name": f"{when} {self.model}", "note": note, "said": kept}

    def read(self) -> dict[str, Any]:
        """Return how the answer was read."""
        reason = None if self.cut else self.reason
        return reading(self.fmt, self.text, self.tools or None, self.prefix, finish_reason=reason)

    def explain(self) -> dict[str, Any]:
        """Return why it was read so."""
        return explained(self.fmt, self.text, self.tools or None, self.prefix)
