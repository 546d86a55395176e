"""How long streams take, relative to a floor.

The floor is the least that any parser must do: a method call that makes one event and returns it in a list.  It is
measured in the same process and on the same deltas.  Floor and parser take turns, a slice of the stream at a time, so a
slow or busy machine changes both.  All figures are ratios to the floor.  The clock is the processor time of the thread,
so time that the machine gave to others does not count.

The cost of a stream is that of all its deltas and of its end, without making the parser.  Results are dropped, as a
server drops what it has sent.  Garbage is collected as Python does by default.  A short stream is repeated until a
sample is long enough; otherwise the resolution of the timer and a cold interpreter would dominate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from benchmarks.contenders import Contender, Stream
from benchmarks.workloads import WORKLOADS, Workload
from toolgram import Content, Event

WARM_UP = 1_000  # characters: the length of the stream that warms up, and that is checked
SLICE = 1_000  # deltas
SLOW = 4  # times the floor: above this, the streams of one sample are too few to measure the floor
VARIED = 32_000  # characters of different texts per sample, in as many streams as that takes
MOST_TEXTS = 64

# One side: a function that opens a stream, and the deltas of different streams.
Side: TypeAlias = tuple[Callable[[], Stream], Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class Job:
    """A cell to measure: workload, length, delta size; for how long at least; the format to write, which text."""

    workload: str
    length: int
    size: int
    seconds: float
    reads: str
    seed: int


@dataclass(frozen=True)
class Sample:
    """Means over the streams of one sample. `pieces` is the number of deltas that the floor took."""

    seconds: float
    floor: float
    pieces: float
    characters: float

    @property
    def ratio(self) -> float:
        """The figure of the tables."""
        return self.seconds / self.floor


class Floor:
    """A parser that returns every delta as content."""

    def feed(self, delta: str) -> list[Event]:
        """One event, in a list."""
        return [Content(delta, delta)]

    def close(self) -> list[Event]:
        """The end of a stream is one more call."""
        return []


def open_floor() -> Stream:
    """A stream of the floor."""
    floor = Floor()
    return floor.feed, floor.close


def feed_all(streams: list[tuple[Stream, Sequence[Any]]]) -> float:
    """The seconds to feed each stream its deltas, one stream after the other."""
    begin = time.thread_time()
    for (feed, _), deltas in streams:
        for delta in deltas:
            feed(delta)
    return time.thread_time() - begin


def close_all(streams: list[tuple[Stream, Sequence[Any]]]) -> float:
    """Seconds that their ends take."""
    begin = time.thread_time()
    for (_, close), _ in streams:
        close()
    return time.thread_time() - begin


def timed(sides: Sequence[Side], number: int) -> list[float]:
    """The seconds of some streams of each side, which are opened before.

    The sides take turns, slice by slice. They also take turns at being first, because the first one has a cold cache.
    """
    opened = [[(open_stream(), texts[at % len(texts)]) for at in range(number)] for open_stream, texts in sides]
    seconds = [0.0 for _ in sides]
    order = list(range(len(sides)))
    for at in range(0, max(len(deltas) for streams in opened for _, deltas in streams), SLICE):
        for index in order:
            seconds[index] += feed_all([(stream, deltas[at : at + SLICE]) for stream, deltas in opened[index]])
        order.reverse()
    return [total + close_all(streams) for total, streams in zip(seconds, opened, strict=True)]


def seconds_per_stream(sides: Sequence[Side], at_least: float) -> list[float]:
    """The mean of each side, over as many streams as fill `at_least` together.

    Batches of streams double, so that the timer is read rarely.
    """
    streams, batch, totals = 0, 1, [0.0 for _ in sides]
    while sum(totals) < at_least:
        totals = [total + seconds for total, seconds in zip(totals, timed(sides, batch), strict=True)]
        streams += batch
        batch *= 2
    return [total / streams for total in totals]


def is_right(contender: Contender, workload: Workload, size: int, reads: str) -> bool:
    """Warm up with one short stream, and tell whether its result is right."""
    prepared = contender(workload, reads)
    feed, close = prepared.open()
    results = [feed(delta) for delta in prepared.encode(workload.deltas(WARM_UP, size, 0, reads))]
    results.append(close())
    return prepared.hear(results).is_what_was_said(workload.answer(WARM_UP, 0))


def sample(contender: Contender, job: Job) -> Sample:
    """One sample of one cell."""
    workload = WORKLOADS[job.workload]
    number = min(max(VARIED // job.length, 1), MOST_TEXTS)
    seeds = range(job.seed * MOST_TEXTS, job.seed * MOST_TEXTS + number)
    texts = [workload.deltas(job.length, job.size, seed, job.reads) for seed in seeds]
    prepared = contender(workload, job.reads)
    floor_side, side = (open_floor, texts), (prepared.open, [prepared.encode(text) for text in texts])
    floor, seconds = seconds_per_stream([floor_side, side], job.seconds)
    if seconds > SLOW * floor:
        [floor] = seconds_per_stream([floor_side], job.seconds / 4)
    characters = sum(len(delta) for text in texts for delta in text)
    return Sample(seconds, floor, sum(map(len, texts)) / number, characters / number)
