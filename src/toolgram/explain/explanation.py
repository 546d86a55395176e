"""The explanation of one output, as data: what each stretch is, the path, what was held, and what else would read it.

Strategy: these types know no format, so that `Format` can name them and `explain` can import `Format`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from toolgram.events import Event
from toolgram.message import Message

Outcome: TypeAlias = Literal["committed", "rejected", "ended"]

OWNER_OF = {
    "content": "content",
    "reasoning": "reasoning",
    "tool_call_start": "name",
    "tool_call_delta": "arguments",
    "tool_call_end": "dropped",
    "dropped": "dropped",
    "malformed": "malformed",
}


@dataclass(slots=True)
class Piece:
    """A stretch of the output that one event accounts for: whose it is, where it starts, what it means.

    The end of a call is a piece without characters. `event` is the event itself, adjacent deltas merged.
    """

    owner: str
    text: str
    start: int
    meaning: str
    event: Event


@dataclass(slots=True)
class Step:
    """One transition. `offset` is the character that it was taken on: the length of the text for those that only the
    end of the output decided, None for those that the prompt's prefix had already taken."""

    offset: int | None
    trigger: str
    source: str
    dest: str


@dataclass(slots=True)
class Held:
    """Text that might have been a call and was held back until that was known.

    `text` (from `start` to `end`) is what was held when the character at `decided_at` came, in `state`. The outcome is
    `committed` (it is what the machine took it for), `rejected` (it is text after all), or `ended` (text, because the
    output was over). `named` says that it had got as far as the name of a function.
    """

    start: int
    end: int
    text: str
    state: str
    outcome: Outcome
    decided_at: int
    why: str
    named: bool


@dataclass(slots=True)
class PlacedAnomaly:
    """An anomaly of the message, in a sentence, with the offset where it was noticed and the address of its page."""

    kind: str
    text: str
    offset: int | None
    words: str
    page: str

    def __str__(self) -> str:
        return f"{'' if self.offset is None else self.offset:>8}  {self.words} (see {self.page})"


@dataclass(slots=True)
class Candidate:
    """What a format makes of some outputs.

    `calls` are complete, `unfinished` were cut off, `malformed` could not be read; `text_left` counts the characters,
    blanks aside, that it leaves as text. `markers` says that it took any of the text for markers. `alike` are the
    formats that read as much. `better` says that it reads more than the format asked for.
    """

    name: str
    calls: int
    unfinished: int
    malformed: int
    text_left: int
    anomalies: int
    markers: bool
    alike: list[str] = field(default_factory=list)
    better: bool = False

    @property
    def rank(self) -> tuple[int, int, int, int, int]:
        """Return a key to compare readings with: a greater one has found more."""
        return self.calls, self.unfinished, -self.malformed, -self.text_left, -self.anomalies

    @property
    def why(self) -> str:
        """Return what speaks for it, in words."""
        found = [
            counted(self.calls, "complete call"),
            f"{counted(self.text_left, 'character')} left as text",
            f"{self.unfinished} cut off" if self.unfinished else "",
            f"{self.malformed} malformed" if self.malformed else "",
            counted(self.anomalies, "anomaly", "anomalies") if self.anomalies else "",
        ]
        return ", ".join(filter(None, found))


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number with its noun."""
    return f"{number:,} {one if number == 1 else several or f'{one}s'}"


@dataclass(slots=True)
class Explanation:
    """How one output was read, and why so. `verdict` is the answer; the rest is the evidence for it."""

    format: str
    verdict: str
    pieces: list[Piece]
    path: list[Step]
    held: list[Held]
    anomalies: list[PlacedAnomaly]
    alternatives: list[Candidate]
    message: Message

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON-able data."""
        return {
            "format": self.format,
            "verdict": self.verdict,
            "pieces": [_fields(piece, "event") for piece in self.pieces],
            "path": [_fields(step) for step in self.path],
            "held": [_fields(region) for region in self.held],
            "anomalies": [_fields(anomaly) for anomaly in self.anomalies],
            "alternatives": [_fields(alternative) for alternative in self.alternatives],
            "message": self.message.to_dict(),
        }


def _fields(value: Any, *left_out: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__match_args__ if name not in left_out}
