"""`toolgram derive --table`: print one row for each template in a folder, with what was found in it.

Strategy: rows are made one by one. A pipe gets each row at once, a terminal gets the table at the end. A template that
gives no format has a row with the reason, and the command continues.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from rich.table import Table
from rich.text import Text

import toolgram
from toolgram.bulk.errors import BadFile
from toolgram.cli.findings import warnings_of
from toolgram.cli.templates import Source, read_template
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, console, on_one_line, shortened

if TYPE_CHECKING:
    from toolgram.derive.report import DeriveReport
    from toolgram.derive.result import MarkerRegistry

Derive: TypeAlias = "Callable[[Source], DeriveReport]"
COLUMNS = ("template", "reasoning", "content", "tools", "call id", "markers", "format", "probes", "warnings", "ms")
PLAINEST = "{{ messages[-1].content }}"
LONGEST_MARKERS = 120
WIDTH_OF_MARKERS = 30


class Entry(NamedTuple):
    """A row of the table: the text of each column, and whether there is a format and all came back exactly."""

    cells: tuple[str, ...]
    derived: bool = False
    exact: bool = False


def print_template_table(folder: str, derived: Derive) -> int:
    """Print one row per template below the folder. Return exit status 1 if one gives no format. Raises BadFile."""
    paths = sorted(Path(folder).rglob("*.jinja")) if Path(folder).is_dir() else []
    if not paths:
        raise BadFile(f"{folder}: no *.jinja in it" if Path(folder).is_dir() else f"{folder}: not a folder")
    failed = (_print_table if sys.stdout.isatty() else _print_lines)(_entries(paths, Path(folder), derived))
    if failed:
        complain(f"{failed} of {len(paths)} templates give no format")
    return NOTHING_USABLE if failed else USABLE


def _entries(paths: list[Path], folder: Path, derived: Derive) -> Iterator[Entry]:
    with suppress(toolgram.ToolgramError):
        derived(Source(PLAINEST))  # warm-up: otherwise the first derivation would also measure the imports
    for path in paths:
        label = on_one_line(path.relative_to(folder).with_suffix("").as_posix())
        try:
            yield entry(label, path, derived)
        except toolgram.ToolgramError as error:
            yield Entry((label, f"cannot be derived from: {on_one_line(error.said)}", *[""] * (len(COLUMNS) - 2)))


def entry(label: str, path: Path, derived: Derive) -> Entry:
    """Return the row of one template. Raises ToolgramError."""
    source = read_template(str(path))
    began = time.perf_counter()
    report = derived(source)
    took = time.perf_counter() - began
    found, probes = report.found, len(report.probes)
    markers, form = short_markers(found.markers), report.shipped or "derived"
    exact, warnings = f"{probes - len(report.failed)}/{probes}", str(len(warnings_of(report)))
    said = (found.reasoning, found.content, found.calls, found.call_id, markers, form, exact, warnings)
    return Entry((label, *said, f"{1000 * took:.0f}"), True, not report.failed)


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
    return shortened(on_one_line(text), LONGEST_MARKERS)


def _print_lines(entries: Iterator[Entry]) -> int:
    """Print tab-separated lines for a pipe, the names of the columns first. Return how many have no format."""
    failed = 0
    print(*COLUMNS, sep="\t")
    for each in entries:
        failed += not each.derived
        print(*(cell.replace("\t", " ") for cell in each.cells), sep="\t", flush=True)
    return failed


def _print_table(entries: Iterator[Entry]) -> int:
    failed = 0
    table = Table(show_lines=True)
    for name in COLUMNS:
        width = WIDTH_OF_MARKERS if name == "markers" else None
        right = name in ("probes", "warnings", "ms")
        table.add_column(name, overflow="fold", justify="right" if right else "left", min_width=width)
    for each in entries:
        failed += not each.derived
        table.add_row(*map(Text, each.cells), style="" if each.exact else "yellow" if each.derived else "red")
    console(wrap=True).print(table)
    return failed
