"""Tables of a run: the main ones and the targets in the terminal, all of them with explanations in `RESULTS.md`."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.contenders import CONTENDERS
from benchmarks.further import Further
from benchmarks.results import Cell, Results
from benchmarks.targets import Target, targets
from benchmarks.workloads import FORMATS, KINDS, SIZES, WHOLE, WORKLOADS, Workload

RESULTS = Path(__file__).with_name("RESULTS.md")
PEER_LENGTH = 4_000  # at which contenders other than toolgram are measured in other delta sizes
GAPS = {"budget": "-", "late": "--", "error": "!"}
VERDICTS = {True: "met", False: "not met", None: "not measured"}
LEGEND = """\
Ratios are to the floor: a method call that makes one event, `toolgram.Content(delta, delta)`, and returns it in a list,
for every delta of the same text. It is measured in each contender's process, in turns with the contender, a thousand
deltas at a time, and is toolgram's own class in all of them. A stream's cost is the processor time of all its deltas
and of its end, without opening it. Texts differ from round to round, short ones from stream to stream. Every figure is
the median of up to {rounds} rounds, in which the contenders take turns, cell by cell.

- `length` is the size of the answer in characters, without markers and envelopes; a marker is never split
- `-` left out: a stream was predicted, from the shorter ones, to take more than a few seconds
- `--` no answer within the time limit, or the process died; it was started anew (longer texts are then `-`)
- `!` the contender raised an exception; see the notes
- `†` the contender read a text of 1 000 characters wrongly: a cost without a result
- an empty field: the contender does not read this format or this kind of text"""


@dataclass(frozen=True)
class Section:
    """A table, wherever it is shown. The first `texts` columns are text, the others figures."""

    title: str
    columns: list[str]
    rows: list[list[str]]
    texts: int = 1

    def markdown(self) -> str:
        """Under a heading."""
        rules = ["---" if index < self.texts else "---:" for index in range(len(self.columns))]
        lines = ["| " + " | ".join(row) + " |" for row in (self.columns, rules, *self.rows)]
        return f"## {self.title}\n\n" + "\n".join(lines)

    def terminal(self) -> Table:
        """For rich."""
        table = Table(title=self.title, title_justify="left")
        for index, column in enumerate(self.columns):
            table.add_column(column, justify="left" if index < self.texts else "right", no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        return table


# --- Fields ----------------------------------------------------------------------------------------------------------


def number(value: float) -> str:
    """A figure with as many digits as are significant."""
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def field(results: Results, cell: Cell) -> str:
    """A ratio to the floor; for a text in one piece nanoseconds per character, because the floor is per delta."""
    figure = results.figure(cell)
    if figure is None:
        return GAPS[results.gaps[cell]] if cell in results.gaps else ""
    value = figure.nanoseconds if cell.size == WHOLE else figure.ratio
    return number(value) + ("" if figure.right else " †")


MISSED = """What the time goes into where a target is missed, and the next step for each:
[0014](../docs/decisions/0014-speed-targets-missed.md). `python -m benchmarks.where` prints the profile, delta by delta.
Real outputs are in [REAL.md](REAL.md), whole logs and a Ray cluster in [docs/bulk.md](../docs/bulk.md),
the plug-in inside vLLM in [its tables](../docs/reference/vllm-tables.md)."""


def machine() -> str:
    """Cores, processor, system, Python."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = lines[0].partition(":")[2].strip() if lines else cpu
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{os.cpu_count()} cores ({cpu}), {platform.system()} {platform.machine()}, {python}"


# --- Tables ----------------------------------------------------------------------------------------------------------


def _names(results: Results) -> list[str]:
    return [name for name in CONTENDERS if name not in results.skipped]


def _lengths(results: Results) -> list[int]:
    return sorted({cell.length for cell in results.samples})


def main_section(results: Results) -> Section:
    """4-character deltas, all contenders, all lengths."""
    names = _names(results)
    rows = []
    for workload in WORKLOADS.values():
        for length in _lengths(results):
            cells = [Cell(name, workload.name, length, 4) for name in names]
            ours = results.figure(cells[0])
            costs = [number(ours.floor), number(ours.microseconds)] if ours else ["", ""]
            fields = [field(results, cell) for cell in cells]
            rows.append([workload.title, workload.format, f"{length:,}", *costs, *fields])
    titles = [CONTENDERS[name].title for name in names]
    columns = ["text", "format", "length", "floor, us", "toolgram, us", *titles]
    return Section("Deltas of 4 characters: us per delta, then ratios to the floor", columns, rows, texts=2)


def _by_size(results: Results, sizes: list[int], row: Callable[[Workload, int], list[Cell]]) -> list[list[str]]:
    """One row per workload and delta size, of the cells that `row` names."""
    rows = []
    for workload in WORKLOADS.values():
        for size in sizes:
            unit = "whole: ns per character" if size == WHOLE else str(size)
            fields = [field(results, cell) for cell in row(workload, size)]
            rows.append([workload.title, workload.format, unit, *fields])
    return rows


def sizes_section(results: Results) -> Section:
    """toolgram in deltas of all sizes."""
    lengths = _lengths(results)

    def row(workload: Workload, size: int) -> list[Cell]:
        return [Cell("toolgram", workload.name, length, size) for length in lengths]

    columns = ["text", "format", "delta", *(f"{length:,}" for length in lengths)]
    return Section("toolgram in deltas of every size, by length", columns, _by_size(results, list(SIZES), row), texts=3)


def peer_sizes_section(results: Results) -> Section:
    """All contenders in deltas of other sizes, at one length."""
    names = [name for name in _names(results) if CONTENDERS[name].takes_text]

    def row(workload: Workload, size: int) -> list[Cell]:
        return [Cell(name, workload.name, PEER_LENGTH, size) for name in names]

    columns = ["text", "format", "delta", *(CONTENDERS[name].title for name in names)]
    rows = _by_size(results, [size for size in SIZES if size != 4], row)
    return Section(f"Deltas of other sizes, at {PEER_LENGTH:,} characters", columns, rows, texts=3)


def parsers_section(further: Further) -> Section:
    """Parsers and start-up."""
    rows = [
        [
            name,
            number(further.parser_microseconds[name]),
            number(further.parser_bytes[name]),
            number(further.many_ratio[f"string/{name}"]),
            number(further.start_seconds[name] * 1000),
            number(further.start_ratio[name]),
        ]
        for name in FORMATS
    ]
    columns = ["format", "`fmt.parser()`, us", "its size, bytes", "10,000 in turn, against one", "start, ms", "to lark"]
    return Section("Parsers and start-up", columns, rows)


def whole_section(further: Further) -> Section:
    """`fmt.parse` by kind and format."""
    costs = further.whole_nanoseconds
    rows = [
        [KINDS[kind].title, *(number(costs[f"{kind}/{fmt}"]) if f"{kind}/{fmt}" in costs else "" for fmt in FORMATS)]
        for kind in KINDS
    ]
    return Section("`fmt.parse(text)` at 16,000 characters: ns per character", ["text", *FORMATS], rows)


def targets_section(results: Results) -> Section:
    """The targets, with computed verdicts."""

    def row(target: Target) -> list[str]:
        figure = "" if target.figure is None else f"{number(target.figure)} {target.unit}"
        limit = f"{'>=' if target.at_least else '<='} {number(target.limit)} {target.unit}"
        return [target.what, target.where, limit, figure, VERDICTS[target.met]]

    columns = ["target", "worst at", "limit", "measured", "verdict"]
    return Section("Targets", columns, [row(target) for target in targets(results)], texts=2)


# --- Pages -----------------------------------------------------------------------------------------------------------


def notes(results: Results) -> Iterator[str]:
    """Versions, skipped contenders and the reason, notes on contenders, and exceptions."""
    for name, entry in CONTENDERS.items():
        if name in results.skipped:
            yield f"- {entry.title}: skipped. {results.skipped[name]}"
        else:
            versions = ", ".join(f"{package} {version}" for package, version in results.versions[name].items())
            yield f"- {entry.title}: {versions}"
    for entry in CONTENDERS.values():
        if entry.note:
            yield f"- {entry.note}"
    for cell, gap in results.gaps.items():
        if gap != "budget":
            why = results.errors.get(cell, "no answer")
            yield f"- {CONTENDERS[cell.contender].title}, {cell.workload}, {cell.length:,}, delta {cell.size}: {why}"


def further_text(further: Further) -> str:
    """An explanation of the start-up figures."""
    return (
        "A parser's size is what one adds to the memory in use, over 10 000 of them. `10,000 in turn` is the cost of a "
        "delta when as many streams of 250 characters take turns, against streams one after the other. Start: a fresh "
        "process that imports toolgram (the unpacked wheel, with bytecode, as after an installation), gets the format "
        "and parses one output, against one that does `import lark` "
        f"({number(further.lark_seconds * 1000)} ms) and nothing else; an empty one takes "
        f"{number(further.nothing_seconds * 1000)} ms. Medians of rounds in which they take turns."
    )


def show(results: Results, minutes: float) -> None:
    """In the terminal."""
    console = Console(markup=False, width=None if Console().is_terminal else 220)
    console.print(main_section(results).terminal())
    if results.further is not None:
        console.print(parsers_section(results.further).terminal())
        console.print(whole_section(results.further).terminal())
    console.print(targets_section(results).terminal())
    console.print("\n".join(notes(results)))
    console.print(f"{machine()}; {minutes:.1f} minutes")


def write(results: Results, rounds: int, minutes: float) -> None:
    """The page in the repository."""
    parts = [
        "# Benchmarks",
        f"`make bench`, {datetime.date.today().isoformat()}, {minutes:.1f} minutes on {machine()}.",
        LEGEND.format(rounds=rounds),
        main_section(results).markdown(),
        sizes_section(results).markdown(),
        peer_sizes_section(results).markdown(),
    ]
    if results.further is not None:
        parts += [parsers_section(results.further).markdown(), further_text(results.further)]
        parts += [whole_section(results.further).markdown()]
    parts += ["## Contenders and notes", "\n".join(notes(results)), targets_section(results).markdown(), MISSED]
    RESULTS.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
