"""The measurements: cells, their samples, and the medians for tables and targets."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from benchmarks.further import Further
from benchmarks.measure import Sample
from benchmarks.workloads import LENGTHS

Gap: TypeAlias = Literal["budget", "late", "error"]


class Cell(NamedTuple):
    """One figure of the tables."""

    contender: str
    workload: str
    length: int
    size: int


class Figure(NamedTuple):
    """Medians over the rounds."""

    ratio: float  # to the floor
    microseconds: float  # per delta of the floor
    floor: float  # microseconds per delta
    nanoseconds: float  # per character
    right: bool  # the result is right


@dataclass
class Results:
    """All measurements of one run."""

    samples: dict[Cell, list[Sample]] = field(default_factory=dict)
    gaps: dict[Cell, Gap] = field(default_factory=dict)
    errors: dict[Cell, str] = field(default_factory=dict)
    wrong: set[tuple[str, str, int]] = field(default_factory=set)  # contender, workload, delta size
    skipped: dict[str, str] = field(default_factory=dict)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    further: Further | None = None

    def figure(self, cell: Cell) -> Figure | None:
        """Medians of a cell; None where it has no sample."""
        samples = self.samples.get(cell)
        if not samples:
            return None
        return Figure(
            statistics.median(sample.ratio for sample in samples),
            statistics.median(sample.seconds / sample.pieces * 1e6 for sample in samples),
            statistics.median(sample.floor / sample.pieces * 1e6 for sample in samples),
            statistics.median(sample.seconds / sample.characters * 1e9 for sample in samples),
            (cell.contender, cell.workload, cell.size) not in self.wrong,
        )

    def figures(self, contender: str, size: int) -> Iterator[tuple[Cell, Figure]]:
        """Of one contender at one delta size."""
        for cell in self.samples:
            figure = self.figure(cell) if (cell.contender, cell.size) == (contender, size) else None
            if figure is not None:
                yield cell, figure

    def predicted(self, cell: Cell) -> float:
        """Seconds that a stream of this cell will take: from shorter ones and how their cost grew.

        Without a shorter one, from the same length in 4-character deltas, whose number is what counts. Where either was
        not measured, for ever.
        """
        shorter = [cell._replace(length=length) for length in LENGTHS if length < cell.length]
        if any(other in self.gaps or other._replace(size=4) in self.gaps for other in [*shorter, cell]):
            return math.inf
        known = [(other.length, self.seconds(other)) for other in shorter if other in self.samples]
        if not known:
            sibling = cell._replace(size=4)
            return self.seconds(sibling) * 4 / max(cell.size, 1) if sibling in self.samples else 0.0
        first_length, first_seconds = known[-2:][0]
        length, seconds = known[-1]
        growth = 1.0
        if length > first_length:
            growth = max(1.0, math.log(seconds / first_seconds) / math.log(length / first_length))
        return float(seconds * (cell.length / length) ** growth)

    def seconds(self, cell: Cell) -> float:
        """The median stream of a cell that has samples."""
        return statistics.median(sample.seconds for sample in self.samples[cell])
