"""Has a change made toolgram slower? A few workloads are measured as ratios to the floor and compared with committed
ratios.

`make bench-check` measures and compares with `baseline.json`; `make bench-baseline` writes the figures of this machine
into that file.  Ratios depend on the maker of the processor (making an event is cheaper on some, reading is not), so
each maker has its own; on any other processor, the largest figure of a row counts.  They also depend on the machine's
other load, so a workload that seems too slow is measured again, and the smallest of its figures counts.  A few exported
grammars are measured beside the engines' own.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from benchmarks.contenders.ours import prepare
from benchmarks.exports import Case, cells, quick
from benchmarks.measure import Job, is_right, sample
from benchmarks.real import costs, sets
from benchmarks.rows import KINDS, bulk_ratios
from benchmarks.workloads import WORKLOADS

BASELINE = Path(__file__).with_name("baseline.json")
LENGTHS = (1_000, 16_000)
NAMES = (
    "content/mistral_v11",
    "reasoning/mistral_v11",
    "brackets/llama3_json",
    "string/mistral_v11",
    "code/mistral_v11",
    "members/llama3_json",
    "nested/mistral_v3",
    "two_calls/mistral_v3",
    "string/llama4_pythonic",
    "members/llama4_pythonic",
    "string/qwen3_coder",
    "members/qwen3_coder",
)
DELTA = 4
ROUNDS = 5
SECONDS = 0.02
LIMIT = 1.5  # times the committed figure
ATTEMPTS = 3


def maker() -> str:
    """Who made the processor, in its own words; the name of the architecture where it does not say."""
    told = Path("/proc/cpuinfo")
    found = (
        re.search(r"^vendor_id\s*: (\S+)", told.read_text(encoding="utf-8"), re.MULTILINE) if told.exists() else None
    )
    return found[1] if found else platform.machine()


def committed(figures: dict[str, dict[str, float]]) -> dict[str, float]:
    """The figures to compare with: those of this maker, or of each cell the largest."""
    known = figures.get(maker())
    if known is not None:
        return known
    largest: dict[str, float] = {}
    for each in figures.values():
        largest |= {cell: max(figure, largest.get(cell, 0.0)) for cell, figure in each.items()}
    return largest


def job(cell: str, seed: int) -> Job:
    """What a key of the baseline stands for: `workload at length`."""
    name, length = cell.split(" at ")
    return Job(name, int(length), DELTA, SECONDS, WORKLOADS[name].format, seed)


SETS = {f"{label}, whole": each for label, each in sets().items()}  # to reading by hand; real outputs where they are
BULK_CELLS = {f"bulk/{kind}, a row": kind for kind in KINDS}
CELLS = (*(f"{name} at {length}" for name in NAMES for length in LENGTHS), *SETS, *BULK_CELLS)


def measured(cells: Sequence[str]) -> dict[str, float]:
    """The median ratio of each cell, over rounds in which they take turns."""
    whole = {cell: costs(*SETS[cell], ROUNDS)[1] for cell in cells if cell in SETS}
    bulk = [cell for cell in cells if cell in BULK_CELLS]
    rows = bulk_ratios(BULK_CELLS[cell] for cell in bulk) if bulk else {}
    cells = [cell for cell in cells if cell not in SETS and cell not in BULK_CELLS]
    for name in {cell.split(" at ")[0] for cell in cells}:
        if not is_right(prepare, WORKLOADS[name], DELTA, WORKLOADS[name].format):
            sys.exit(f"bench-check: {name} is not parsed into what was said; see make test")
    figures: dict[str, list[float]] = defaultdict(list)
    for seed in range(ROUNDS):
        for cell in cells:
            figures[cell].append(sample(prepare, job(cell, seed)).ratio)
    found = {cell: statistics.median(values) for cell, values in figures.items()}
    return found | whole | {cell: rows[BULK_CELLS[cell]] for cell in bulk}


def least(cell: str) -> str:
    """What a figure is a ratio to."""
    return "reading by hand" if cell in SETS else "the floor"


def too_slow(figures: dict[str, float], baseline: dict[str, float]) -> list[str]:
    """The cells over the limit."""
    return [cell for cell, figure in figures.items() if figure > LIMIT * baseline[cell]]


def check(baseline: dict[str, float]) -> int:
    """Prints every cell; 1 where one is too slow at every attempt."""
    figures = measured(CELLS)
    for _ in range(ATTEMPTS - 1):
        again = measured(too_slow(figures, baseline))
        figures |= {cell: min(figure, figures[cell]) for cell, figure in again.items()}
    for cell, figure in figures.items():
        print(f"{cell:36}{figure:7.2f} x {least(cell)}, committed {baseline[cell]:.2f}")
    slow = too_slow(figures, baseline)
    for cell in slow:
        times = figures[cell] / baseline[cell]
        print(
            f"bench-check: {cell} costs {figures[cell]:.2f} x {least(cell)}, {times:.2f} times the committed "
            f"{baseline[cell]:.2f}; {LIMIT} times are allowed ({ATTEMPTS} attempts were made). If that is meant, run "
            "`make bench-baseline`.",
            file=sys.stderr,
        )
    return 1 if slow else 0


def check_exports() -> int:
    """Prints what a few exported grammars cost beside the engines' own; 1 where a target is missed at every attempt."""
    missed: dict[Case, set[str]] = {}
    for attempt in range(ATTEMPTS):
        rows = [row for row in quick() if not attempt or missed.get(row.case)]
        print(*map(cells, rows), sep="\n")
        for row in rows:
            missed[row.case] = missed.get(row.case, set(row.missed())) & set(row.missed())
        if not any(missed.values()):
            return 0
    for case, targets in missed.items():
        for target in sorted(targets):
            print(f"bench-check: the export of {case.format} misses its target for {target}", file=sys.stderr)
    return 1


def main() -> int:
    """Compare, or write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true", help="write the baseline instead of comparing with it")
    by_maker = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else {}
    if arguments.parse_args().write:
        by_maker[maker()] = {cell: round(figure, 2) for cell, figure in measured(CELLS).items()}
        BASELINE.write_text(json.dumps(by_maker, indent=2) + "\n", encoding="utf-8")
        return 0
    baseline = committed(by_maker)
    if missing := [cell for cell in CELLS if cell not in baseline]:
        print(f"bench-check: {BASELINE.name} lacks {', '.join(missing)}; run `make bench-baseline`", file=sys.stderr)
        return 1
    return check(baseline) | check_exports()


if __name__ == "__main__":
    sys.exit(main())
