"""Rows of logs in bulk: a batch is answered by one worker's code, without reading and writing files.

A figure is the processor time of a row, as a ratio to the floor (one event in a list, as in the other benchmarks).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from random import Random

import toolgram
from benchmarks.measure import Floor
from toolgram.bulk.inputs import LINES, Batch
from toolgram.bulk.rows import RowOptions
from toolgram.bulk.running import Job

ROUNDS = 9
REPEATS = 4_000  # of one delta, between two readings of the clock
CALL = (
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris", "unit": "celsius", "days": 3}}\n</tool_call>'
)
KINDS = {"short calls": "25,000 rows/s", "800-byte rows": "20 MB/s"}  # of rows, and what one worker is to read


def seconds(work: Callable[[], object], repeats: int) -> float:
    """The processor time of one call."""
    begin = time.thread_time()
    for _ in range(repeats):
        work()
    return (time.thread_time() - begin) / repeats


def rows(kind: str) -> bytes:
    """A mebibyte of JSON lines: short calls, or calls with some six hundred characters of text before them."""
    random, lines, size = Random(1), [], 0
    words = random.choices(["sunny", "rain", "wind", "cloud", "city", "and", "the", "is", "of", "in", "with"], k=4_000)
    while size < 1 << 20:
        at = random.randrange(3_800)
        before = " ".join(words[at : at + 115]) + "\n" if kind == "800-byte rows" else ""
        city = random.choice(("Paris", "Oslo", "Rome"))
        call = CALL.replace("Paris", city).replace("3", str(at % 10))
        lines.append(json.dumps({"id": at, "text": before + call}).encode() + b"\n")
        size += len(lines[-1])
    return b"".join(lines)


def bulk(kind: str) -> tuple[float, float]:
    """Rows and megabytes per second of processor time, of one worker."""
    data = rows(kind)
    count = data.count(b"\n")
    answered = Job(RowOptions("text", toolgram.get_format("hermes")), "plain").reader()
    batch = Batch("rows", LINES, 1, data, len(data))
    answer = answered(batch)
    if answer.summary["calls"] != {"complete": count}:
        sys.exit(f"bulk reads {kind} wrongly: {answer.summary['calls']}")
    best = min(seconds(lambda: answered(batch), 1) for _ in range(5))
    return count / best, len(data) / 1e6 / best


def bulk_ratios(kinds: Iterable[str]) -> dict[str, float]:
    """What a row costs one worker, over the floor."""
    floor = Floor()
    least = min(seconds(lambda: floor.feed("abcd"), REPEATS) for _ in range(ROUNDS))
    return {kind: 1 / bulk(kind)[0] / least for kind in kinds}
