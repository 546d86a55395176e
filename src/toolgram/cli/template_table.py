"""`toolgram derive --table`: print one row for each template in a folder, with what was found in it.

Strategy: rows are made one by one. A pipe gets each row at once, a terminal gets the table at the end. A template that
gives no format has a row with the reason, and the command continues.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

import toolgram
from toolgram.cli.deriving import DeriveOptions
from toolgram.cli.findings import warnings_of
from toolgram.cli.source import Unreadable
from toolgram.cli.templates import NoTemplate, Source, read_template
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, on_one_line

if TYPE_CHECKING:
    from toolgram.derive.result import MarkerRegistry

COLUMNS = ("template", "reasoning", "content", "tools", "call id", "markers", "format", "probes", "warnings", "ms")
PLAINEST = "{{ messages[-1].content }}"
LONGEST_MARKERS = 120
WIDTH_OF_MARKERS = 30


@dataclass(frozen=True, slots=True)
class Entry:
    """A row of the table. If derivation failed, only `template` and `error` are filled in."""

    template: str
    reasoning: str = ""
    content: str = ""
    tools: str = ""
    call_id: str = ""
    markers: str = ""
    shipped: str | None = None
    exact: int = 0
    probes: int = 0
    warnings: int = 0
    milliseconds: float = 0.0
    error: str = ""

    def cells(self) -> list[str]:
        """Return the text of each column."""
        if self.error:
            return [self.template, f"cannot be derived from: {self.error}", *[""] * (len(COLUMNS) - 2)]
        return [
            self.template,
            self.reasoning,
            self.content,
            self.tools,
            self.call_id,
            self.markers,
            self.shipped or "derived",
            f"{self.exact}/{self.probes}",
            str(self.warnings),
            f"{self.milliseconds:.0f}",
        ]


def print_template_table(folder: str, options: DeriveOptions) -> int:
    """Print one row per template below the folder. Return exit status 1 if one gives no format, or there is no
    template."""
    paths = sorted(Path(folder).rglob("*.jinja")) if Path(folder).is_dir() else []
    if not paths:
        complain(f"{folder}: no *.jinja in it" if Path(folder).is_dir() else f"{folder}: not a folder")
        return NOTHING_USABLE
    entries = _entries(paths, Path(folder), options)
    failed = _print_table(entries) if sys.stdout.isatty() else _print_lines(entries)
    if failed:
        complain(f"{failed} of {len(paths)} templates give no format")
    return NOTHING_USABLE if failed else USABLE


def _entries(paths: list[Path], folder: Path, options: DeriveOptions) -> Iterator[Entry]:
    with suppress(toolgram.ToolgramError):
        options.report(Source(PLAINEST))  # warm-up: otherwise the first derivation would also measure the imports
    for path in paths:
        label = on_one_line(path.relative_to(folder).with_suffix("").as_posix())
        try:
            yield entry(label, path, options)
        except (Unreadable, NoTemplate, toolgram.ToolgramError) as error:
            yield Entry(label, error=on_one_line(str(error)))


def entry(label: str, path: Path, options: DeriveOptions) -> Entry:
    """Return the row of one template."""
    source = read_template(str(path))
    began = time.perf_counter()
    report = options.report(source)
    took = time.perf_counter() - began
    found = report.found
    return Entry(
        label,
        found.reasoning,
        found.content,
        found.calls,
        found.call_id,
        short_markers(found.markers),
        report.shipped,
        len(report.probes) - len(report.failed),
        len(report.probes),
        len(warnings_of(report)),
        1000 * took,
    )


def short_markers(markers: MarkerRegistry) -> str:
    """Return the markers that open and close things, on one line."""
    bare = markers.stripped()
    pairs = (
        (bare.reasoning_start, bare.reasoning_end),
        (bare.content_start, bare.content_end),
        (bare.tool_section_start, bare.tool_section_end),
        (bare.per_call_start, bare.per_call_end),
        (bare.argument_start, bare.argument_end),
    )
    text = " ".join(f"{start}…{end}" for start, end in pairs if start or end)
    short = on_one_line(text)
    return short if len(short) <= LONGEST_MARKERS else short[: LONGEST_MARKERS - 1] + "…"


def _print_lines(entries: Iterator[Entry]) -> int:
    """Print tab-separated lines for a pipe, the names of the columns first."""
    failed = 0
    print(*COLUMNS, sep="\t")
    for each in entries:
        failed += bool(each.error)
        print(*(cell.replace("\t", " ") for cell in each.cells()), sep="\t", flush=True)
    return failed


def _print_table(entries: Iterator[Entry]) -> int:
    failed = 0
    numbers = {"probes", "warnings", "ms"}
    table = Table(
        *(
            Column(
                name,
                overflow="fold",
                justify="right" if name in numbers else "left",
                min_width=WIDTH_OF_MARKERS if name == "markers" else None,
            )
            for name in COLUMNS
        ),
        show_lines=True,
    )
    for each in entries:
        failed += bool(each.error)
        table.add_row(*(Text(cell, _style(each, name)) for name, cell in zip(COLUMNS, each.cells(), strict=True)))
    Console(highlight=False, markup=False, emoji=False).print(table)
    return failed


def _style(each: Entry, column: str) -> str:
    if each.error:
        return "red"
    if column == "probes":
        return "green" if each.exact == each.probes else "red"
    if column == "warnings":
        return "yellow" if each.warnings else "dim"
    return {"template": "bold cyan", "format": "magenta" if each.shipped else ""}.get(column, "")
