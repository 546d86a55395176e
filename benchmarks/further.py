"""The costs of toolgram besides deltas: making parsers, whole texts, start-up, many streams at once.

`python -m benchmarks.further` prints the figures as JSON.  The runner starts it in a process of its own and adds the
figures to its tables.  With `--start` it prints the start-up of every shipped format.  Every figure is the median over
rounds in which the things to compare take turns.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path

import toolgram
from benchmarks.contenders.ours import prepare
from benchmarks.measure import seconds_per_stream
from benchmarks.workloads import FORMATS, WHOLE, WORKLOADS, Workload

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = 0.05  # seconds, at least
PARSERS = 10_000
WHOLE_LENGTH = 16_000
MANY_LENGTH = 250  # characters that each of the many parsers is fed
TEXTS = 100  # different streams among them

NOTHING = "pass"
LARK = "import lark"


@dataclass(frozen=True)
class Further:
    """Figures by name of format or workload."""

    parser_microseconds: dict[str, float]
    parser_bytes: dict[str, float]
    whole_nanoseconds: dict[str, float]  # per character
    many_ratio: dict[str, float]
    nothing_seconds: float
    lark_seconds: float
    start_seconds: dict[str, float]
    start_ratio: dict[str, float]  # to `import lark`


def in_turns(rounds: int, measures: dict[str, Callable[[], float]]) -> dict[str, list[float]]:
    """Every measure once per round."""
    figures: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name, measure in measures.items():
            figures[name].append(measure())
    return figures


def medians(rounds: int, measures: dict[str, Callable[[], float]]) -> dict[str, float]:
    """The median of each measure."""
    return {name: statistics.median(values) for name, values in in_turns(rounds, measures).items()}


def seconds_per_call(function: Callable[[], object]) -> float:
    """The mean over calls. Each call is timed as the end of a stream without deltas; `timeit` would turn off the GC."""
    [seconds] = seconds_per_stream([(lambda: (str, function), [()])], SAMPLE)
    return seconds


def parser_microseconds(format_name: str) -> float:
    """`fmt.parser()`, the parser dropped at once."""
    fmt = toolgram.get_format(format_name)
    return seconds_per_call(fmt.parser) * 1e6


def parser_bytes(format_name: str) -> float:
    """The memory of one parser, with everything that only it owns."""
    fmt = toolgram.get_format(format_name)
    fmt.parser()
    parsers: list[toolgram.Parser | None] = [None] * PARSERS
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for index in range(PARSERS):
        parsers[index] = fmt.parser()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (after - before) / PARSERS


def whole_nanoseconds(workload: Workload) -> float:
    """`fmt.parse(text)`, per character."""
    fmt, tools = toolgram.get_format(workload.format), workload.tools
    [text] = workload.deltas(WHOLE_LENGTH, WHOLE)
    return seconds_per_call(lambda: fmt.parse(text, tools=tools)) / len(text) * 1e9


def many_ratio(workload: Workload) -> float:
    """The cost of streams that take turns, delta by delta, relative to streams one after the other."""
    open_stream = prepare(workload, workload.format).open
    texts = [workload.deltas(MANY_LENGTH, 4, seed) for seed in range(TEXTS)]
    [one] = seconds_per_stream([(open_stream, texts)], SAMPLE)
    opened = [(*open_stream(), texts[at % TEXTS]) for at in range(PARSERS)]
    begin = time.thread_time()
    for at in range(max(map(len, texts))):
        for feed, _, deltas in opened:
            if at < len(deltas):
                feed(deltas[at])
    for _, close, _ in opened:
        close()
    return (time.thread_time() - begin) / PARSERS / one


def program(format_name: str) -> str:
    """What a fresh process runs: import, get a format, parse one output: its workload's, or its first example."""
    work = WORKLOADS.get(f"string/{format_name}")
    text = "".join(work.deltas(MANY_LENGTH, WHOLE)) if work else toolgram.get_format(format_name).spec.example
    return f"import toolgram; toolgram.get_format({format_name!r}).parse({text!r})"


def process_seconds(code: str, environment: dict[str, str]) -> float:
    """A fresh interpreter, from start to exit."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return time.perf_counter() - begin


def start_up(rounds: int, names: Iterable[str] = FORMATS) -> dict[str, list[float]]:
    """Seconds of processes: an empty one, lark alone, and toolgram with each format.

    As behind an installation: every module has bytecode, and the specifications that the build keeps are those of the
    files. A checkout may have neither, so both are made in a directory that is thrown away.
    """
    codes = {NOTHING: NOTHING, LARK: LARK} | {name: program(name) for name in names}
    with tempfile.TemporaryDirectory() as scratch:
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPATH"] = str(installed(Path(scratch)))
        in_turns(1, {name: partial(process_seconds, code, environment) for name, code in codes.items()})
        return in_turns(rounds, {name: partial(process_seconds, code, environment) for name, code in codes.items()})


def installed(scratch: Path) -> Path:
    """The wheel of this checkout, unpacked; an installation puts the same files into `site-packages`."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(scratch)]
    subprocess.run(build, check=True, cwd=ROOT, capture_output=True)
    [wheel] = scratch.glob("*.whl")
    package = scratch / "package"
    zipfile.ZipFile(wheel).extractall(package)
    return package


def measure(rounds: int) -> Further:
    """All of it."""
    calls = [WORKLOADS[f"string/{name}"] for name in FORMATS]
    start = start_up(2 * rounds + 1)
    return Further(
        parser_microseconds=medians(rounds, {name: partial(parser_microseconds, name) for name in FORMATS}),
        parser_bytes={name: parser_bytes(name) for name in FORMATS},
        whole_nanoseconds=medians(rounds, {name: partial(whole_nanoseconds, work) for name, work in WORKLOADS.items()}),
        many_ratio=medians(rounds, {work.name: partial(many_ratio, work) for work in calls}),
        nothing_seconds=statistics.median(start[NOTHING]),
        lark_seconds=statistics.median(start[LARK]),
        start_seconds={name: statistics.median(start[name]) for name in FORMATS},
        start_ratio=start_ratios(start, FORMATS),
    )


def start_ratios(start: Mapping[str, list[float]], names: Iterable[str]) -> dict[str, float]:
    """The start-up of each format, as a ratio to that of lark."""
    return {
        name: statistics.median(ours / lark for ours, lark in zip(start[name], start[LARK], strict=True))
        for name in names
    }


def main() -> None:
    """Print one JSON object, or the start-up of every shipped format."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--start", action="store_true", help="measure start-up only, of every shipped format")
    options = arguments.parse_args()
    if not options.start:
        print(json.dumps(asdict(measure(options.rounds))))
        return
    names = toolgram.format_names()
    ratios = sorted(start_ratios(start_up(options.rounds, names), names).items(), key=itemgetter(1))
    for name, ratio in ratios:
        print(f"{ratio:5.2f} {name}")
    over = sum(ratio > 1.3 for _, ratio in ratios)
    print(f"{statistics.median(map(itemgetter(1), ratios)):5.2f} times import lark at the median; {over} over 1.3")


if __name__ == "__main__":
    main()
