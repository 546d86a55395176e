"""Summarize what a run found: counts, lengths, and the most frequent anomalies with an example of each.

Strategy: summaries have a fixed size and can be added, so each batch has one and their sum is that of the run, no
matter which process made them. A summary is JSON-able, since it is kept beside the finished batches.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolgram.anomalies import KINDS, REPAIRED, page_of
from toolgram.message import Message

MOST_SHOWN = 10
MOST_REASONS = 100
_LONGEST_REASON = 300
_PLACE = re.compile(r"(character|byte) \d+")
_LONGEST_EXAMPLE = 80
_COUNTS = [str(count) for count in range(65)]


@dataclass
class Summary:
    """Counts over rows. `lengths` and `arguments` count texts by the number of bits of their length."""

    rows: int = 0
    bad: int = 0
    with_calls: int = 0
    repaired: int = 0  # rows in which something was repaired
    characters: int = 0
    reasons: Counter[str] = field(default_factory=Counter)  # why rows could not be read, without the places
    found: Counter[str] = field(default_factory=Counter)  # the named columns that some row has
    calls: Counter[str] = field(default_factory=Counter)  # by status
    functions: Counter[str] = field(default_factory=Counter)  # of the first thousand names
    anomalies: Counter[str] = field(default_factory=Counter)  # by kind
    examples: dict[str, dict[str, Any]] = field(default_factory=dict)  # the first of each kind
    lengths: Counter[str] = field(default_factory=Counter)
    arguments: Counter[str] = field(default_factory=Counter)
    per_row: Counter[str] = field(default_factory=Counter)  # rows by their number of calls

    def saw(self, message: Message | None, file: str, line: int, error: str = "") -> None:
        """Count one row."""
        self.rows += 1
        if message is None:
            self.bad += 1
            reason = _PLACE.sub(r"\1 N", error)[:_LONGEST_REASON]
            self.reasons[reason if reason in self.reasons or len(self.reasons) < MOST_REASONS else "other"] += 1
            return
        calls = message.tool_calls
        self.per_row[_COUNTS[min(len(calls), 10)]] += 1
        self.with_calls += bool(calls)
        for call in calls:
            self.calls[call.status] += 1
            self.arguments[_COUNTS[len(call.arguments).bit_length()]] += 1
            if call.name in self.functions or len(self.functions) < 1000:
                self.functions[call.name] += 1
        if message.malformed:
            self.calls["malformed"] += len(message.malformed)
        self.lengths[_COUNTS[len(message.content or "").bit_length()]] += 1
        self.repaired += any(odd.kind in REPAIRED for odd in message.anomalies)
        for odd in message.anomalies:
            self.anomalies[odd.kind] += 1
            if odd.kind not in self.examples:
                text = odd.text if len(odd.text) <= _LONGEST_EXAMPLE else odd.text[: _LONGEST_EXAMPLE - 1] + "…"
                self.examples[odd.kind] = {"file": file, "line": line, "start": odd.start, "text": text}

    def add(self, other: Summary) -> None:
        """Add the summary of rows that come after these."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(value, Counter):
                mine.update(value)
            elif isinstance(value, dict):
                mine |= {**value, **mine}
            else:
                setattr(self, name, mine + value)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON-able data."""
        return {name: dict(value) if isinstance(value, dict) else value for name, value in vars(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Summary:
        """Return the summary from the result of `to_dict`."""
        made = cls()
        for name, value in values.items():
            setattr(made, name, Counter(value) if isinstance(getattr(made, name), Counter) else value)
        return made

    @property
    def only_reason(self) -> str:
        """The reason why no row could be read, if it is the same for all of them; else ""."""
        return next(iter(self.reasons)) if self.bad == self.rows and len(self.reasons) == 1 else ""

    def reason_lines(self) -> list[str]:
        """Return why rows could not be read, the most frequent reasons first, one line each."""
        return [f"{count:,} x {reason}" for reason, count in self.reasons.most_common(MOST_SHOWN)]

    def lines(self) -> list[str]:
        """Return the lines of the summary, for people."""
        calls, total = self.calls, sum(self.calls.values())
        said = [
            f"{self.rows:,} row{'s' * (self.rows != 1)}, {self.bad:,} that could not be read; "
            f"{self.with_calls:,} with calls, {self.repaired:,} with repairs",
            f"{total:,} call{'s' * (total != 1)}: {calls['complete']:,} complete, {calls['truncated']:,} truncated, "
            f"{calls['malformed']:,} malformed",
        ]
        for kind, count in self.anomalies.most_common(MOST_SHOWN):
            at = self.examples.get(kind)
            shown = f"; first in {at['file']} line {at['line']}: {at['text']!r}" if at else ""
            said.append(f"{count:,} x {kind}: {KINDS.get(kind, '')} (see {page_of(kind)}){shown}")
        return said
