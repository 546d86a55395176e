"""`make bench`: every contender on every workload, as ratios to a floor, in tables and in `benchmarks/RESULTS.md`.

Each contender is a process of its own.  The contenders take turns, cell by cell and round by round, so that other load
on the machine affects all of them alike; the results are medians over the rounds.  A cell that is predicted to take
too long is left out.  A cell that has used up its time is not measured again.

With `--quick` there are fewer lengths and only deltas of 4 characters, and nothing is written.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from rich.progress import Progress

from benchmarks import report
from benchmarks.contenders import CONTENDERS
from benchmarks.further import Further
from benchmarks.measure import Job, Sample
from benchmarks.processes import ROOT, Worker, start_all
from benchmarks.results import Cell, Results
from benchmarks.workloads import LENGTHS, SIZES, WORKLOADS


@dataclass(frozen=True)
class Plan:
    """How much is measured. Times are in seconds."""

    lengths: tuple[int, ...]
    sizes: tuple[int, ...]
    rounds: int  # of toolgram in 4-character deltas, which most targets are about
    other_rounds: int  # of everything else
    further_rounds: int
    sample: float  # at least, of a contender and the floor together
    budget: float  # of one stream of a peer; longer ones are left out
    share: float  # of one cell of everything else; after that it is not measured again
    patience: float  # with a worker that does not answer


FULL = Plan(
    lengths=LENGTHS,
    sizes=SIZES,
    rounds=5,
    other_rounds=3,
    further_rounds=3,
    sample=0.02,
    budget=2.0,
    share=0.4,
    patience=10.0,
)
QUICK = Plan(
    lengths=(1_000, 4_000, 16_000),
    sizes=(4,),
    rounds=3,
    other_rounds=1,
    further_rounds=1,
    sample=0.005,
    budget=0.25,
    share=0.2,
    patience=2.0,
)


def cells(plan: Plan) -> Iterator[Cell]:
    """One round, in the order of measurement: contenders innermost, lengths ascending, 4-character deltas first."""
    by_workload: dict[str, list[str]] = defaultdict(list)
    for name, entry in CONTENDERS.items():
        for workload in entry.workloads():
            by_workload[workload.name].append(name)
    for size in sorted(plan.sizes, key=lambda size: size != 4):
        for workload_name, names in by_workload.items():
            for length in plan.lengths:
                for name in names:
                    entry = CONTENDERS[name]
                    if size == 4 or not entry.peer or (length == report.PEER_LENGTH and entry.takes_text):
                        yield Cell(name, workload_name, length, size)


class Runner:
    """Fills in the results."""

    def __init__(self, plan: Plan, workers: dict[str, Worker]) -> None:
        self.plan = plan
        self.workers = workers
        self.spent: dict[Cell, float] = defaultdict(float)
        self.results = Results()
        for name, worker in workers.items():
            self.results.versions[name] = worker.versions
            if worker.skipped is not None:
                self.results.skipped[name] = worker.skipped

    def wanted(self, cell: Cell, number: int) -> bool:
        """Not skipped, not given up, not over its share or its rounds, and not too long."""
        peer = CONTENDERS[cell.contender].peer
        if self.workers[cell.contender].skipped is not None or cell in self.results.gaps:
            return False
        if peer and cell not in self.spent and self.results.predicted(cell) > self.plan.budget:
            self.results.gaps[cell] = "budget"
            return False
        if not peer and cell.size == 4:
            return True
        return number < self.plan.other_rounds and self.spent[cell] < self.plan.share

    def measure(self, cell: Cell, seed: int) -> None:
        """One sample of one cell."""
        begin = time.perf_counter()
        reads = CONTENDERS[cell.contender].reads[WORKLOADS[cell.workload].format]
        job = Job(cell.workload, cell.length, cell.size, self.plan.sample, reads, seed)
        answer = self.workers[cell.contender].ask(job, self.plan.patience)
        self.spent[cell] += time.perf_counter() - begin
        if "late" in answer:
            self.results.gaps[cell] = "late"
        elif "error" in answer:
            self.results.gaps[cell] = "error"
            self.results.errors[cell] = answer["error"]
        else:
            if not answer.pop("right"):
                self.results.wrong.add((cell.contender, cell.workload, cell.size))
            self.results.samples.setdefault(cell, []).append(Sample(**answer))

    def run(self) -> Results:
        """All rounds."""
        jobs = list(cells(self.plan))
        with Progress(transient=True) as progress:
            task = progress.add_task("measuring", total=self.plan.rounds * len(jobs))
            for number in range(self.plan.rounds):
                for cell in jobs:
                    if self.wanted(cell, number):
                        self.measure(cell, number)
                    progress.advance(task)
        return self.results


def measure_further(rounds: int) -> Further:
    """The figures that are not about deltas, from a process of their own."""
    command = [sys.executable, "-m", "benchmarks.further", "--rounds", str(rounds)]
    return Further(**json.loads(subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout))


def main() -> None:
    """Measure, print, and write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--quick", action="store_true", help="about a minute; nothing is written")
    quick = arguments.parse_args().quick
    plan = QUICK if quick else FULL
    begin = time.perf_counter()
    workers = start_all(list(CONTENDERS))
    try:
        results = Runner(plan, workers).run()
    finally:
        for worker in workers.values():
            worker.stop()
    results.further = measure_further(plan.further_rounds)
    minutes = (time.perf_counter() - begin) / 60
    report.show(results, minutes)
    if not quick:
        report.write(results, plan.rounds, minutes)


if __name__ == "__main__":
    main()
