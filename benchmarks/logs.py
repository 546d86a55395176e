"""Whole logs through the command line: one process, two, and a Ray cluster on this machine.

    make bench-logs

A log of short Hermes calls in JSON lines is read and its answers are written, by `toolgram parse --jsonl` in a process
of its own. The ways take turns; a figure is the median of the rounds. Memory is that of the largest process, processor
time that of all of them; of Ray, whose workers are no children of the command, only that of the command. `--write`
puts the table into docs/bulk.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.report import machine
from benchmarks.rows import rows

PAGE = Path(__file__).parents[1] / "docs" / "bulk.md"
BEGIN, END = "<!-- begin: python -m benchmarks.logs -->\n", "<!-- end -->\n"
ROUNDS = 3
MEGABYTES = 450
TARGET = 1.8  # two workers against one
WAYS = {"one process": (), "two workers": ("--workers", "2"), "Ray, a cluster started on the spot": ("--ray",)}
_IDS = re.compile(rb'"id":"[^"]*"')  # of calls: made up


@dataclass
class Figures:
    """Of one way: seconds on the clock, seconds of processors, mebibytes, a round each."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


def write_log(path: Path, megabytes: int) -> int:
    """A log of about so many megabytes; how many rows it has."""
    block = rows("short calls")
    times = max(1, round(megabytes * 1e6 / len(block)))
    with path.open("wb") as out:
        for _ in range(times):
            out.write(block)
    return times * block.count(b"\n")


def run(log: Path, options: tuple[str, ...], figures: Figures) -> bytes:
    """Read the log once. Returns the beginning of the answers, without call ids; stops where the command fails."""
    out = log.with_name("out.jsonl")
    out.unlink(missing_ok=True)
    command = [sys.executable, "-m", "toolgram", "parse", "--format", "hermes", "--jsonl", "text", str(log)]
    begun = time.perf_counter()
    process = subprocess.Popen([*command, "-o", str(out), *options], stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(options) or 'one process'}: the command ended with {os.waitstatus_to_exitcode(status)}")
    figures.wall.append(time.perf_counter() - begun)
    figures.processor.append(used.ru_utime + used.ru_stime)
    figures.memory.append(used.ru_maxrss / 1024)
    with out.open("rb") as stream:
        return _IDS.sub(b"", stream.read(1 << 20))


def measure(megabytes: int, rounds: int) -> tuple[int, int, dict[str, Figures]]:
    """The rows and bytes of a log, and the figures of each way that can be taken here."""
    ways = {way: options for way, options in WAYS.items() if "--ray" not in options or importlib.util.find_spec("ray")}
    figures = {way: Figures() for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.jsonl")
        count = write_log(log, megabytes)
        for _ in range(rounds):
            answers = {run(log, options, figures[way]) for way, options in ways.items()}
            if len(answers) > 1:
                sys.exit("the ways do not give the same answers")
        return count, log.stat().st_size, figures


def table(count: int, size: int, rounds: int, figures: dict[str, Figures]) -> Iterator[str]:
    """The lines of the page."""
    yield f"{count:,} rows of short calls ({size / 1e6:.0f} MB), JSON lines in and out; {machine()}."
    yield f"Medians of {rounds} rounds, in which the ways take turns."
    yield ""
    yield "| how | seconds | rows per second | to one process | processor time | most memory of a process |"
    yield "|---|---:|---:|---:|---:|---:|"
    one = statistics.median(figures["one process"].wall)
    for way, found in figures.items():
        wall, used, memory = map(statistics.median, (found.wall, found.processor, found.memory))
        cells = [f"{wall:.1f}", f"{count / wall:,.0f}", f"{one / wall:.2f}", f"{used:.1f} s", f"{memory:.0f} MB"]
        yield f"| {way} | {' | '.join(cells)} |"
    yield ""
    two = one / statistics.median(figures["two workers"].wall)
    yield f"Two workers are meant to be {TARGET} times as fast as one: {'met' if two >= TARGET else f'{two:.2f} here'}."


def main() -> None:
    """Measure and print, or write into the page."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--megabytes", type=int, default=MEGABYTES)
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    given = options.parse_args()
    count, size, figures = measure(given.megabytes, given.rounds)
    said = "\n".join(table(count, size, given.rounds, figures)) + "\n"
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before, _, rest = text.partition(BEGIN)
        PAGE.write_text(before + BEGIN + said + END + rest.partition(END)[2], encoding="utf-8")
    print(said)


if __name__ == "__main__":
    main()
