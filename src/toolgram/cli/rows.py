"""`toolgram parse --jsonl`: answer rows, in the same order.

Strategy: `toolgram.bulk` does the work; this module adds what a terminal needs: a progress bar, the summary, one-line
messages. Rows from a pipe are answered as they arrive, so the command works as a filter. The answer to a row that
cannot be read is its error, so the output stays aligned with the input.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from toolgram.bulk.errors import BadFile, BadTarget
from toolgram.bulk.inputs import expand
from toolgram.bulk.report import write_report
from toolgram.bulk.run import Progress as Advance
from toolgram.bulk.run import Run, check_run, run_to_file, run_to_stream, total_size
from toolgram.cli.records import RECORD
from toolgram.cli.source import say_that_input_is_awaited
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, refuse


def print_rows(run: Run) -> int:
    """Answer every row of every file. Return exit status 1 if a file or a row could not be read. Raises
    ToolgramError."""
    if "-" in run.inputs:
        say_that_input_is_awaited()
    try:
        check_run(run)
    except BadFile as error:
        refuse(error)
    try:
        with _progress(run) as advance:
            to_file = run.output is not None
            outcome = run_to_file(run, advance) if to_file else run_to_stream(run, sys.stdout.buffer, advance)
        for problem in outcome.problems:
            complain(problem)
        summary = outcome.summary
        if run.report is not None:
            write_report(summary, run.report, f"{', '.join(run.inputs)}: {summary.rows:,} rows")
    except BadTarget as error:
        refuse(error)
    said = summary.lines() if to_file or (sys.stderr.isatty() and not sys.stdout.isatty()) else []
    if summary.bad:
        said += [f"{summary.bad} of {summary.rows} rows could not be read", *summary.reason_lines()]
    elif not summary.rows and not outcome.problems:
        said.append("no rows")
    columns = {} if run.options.columns is RECORD else vars(run.options.columns)
    named = [("keep", path) for path in run.options.keep]
    named += [(f"{kind.replace('_', '-')}-column", path) for kind, path in columns.items() if path is not None]
    for option, path in named if summary.rows else ():
        said += [f"warning: --{option} {path}: no row has a value for it"] * (not summary.found[path])
    for line in said:
        complain(line)
    return USABLE if summary.rows and not summary.bad and not outcome.problems else NOTHING_USABLE


@contextmanager
def _progress(run: Run) -> Iterator[Advance]:
    """Show a progress bar on standard error, unless that is not a terminal or rows are printed on the same one."""
    if not sys.stderr.isatty() or (run.output is None and sys.stdout.isatty()):
        yield lambda rows, size: None
        return
    counts = TextColumn("{task.fields[rows]:,} rows  {task.fields[rate]:,.0f} rows/s")
    columns = (TextColumn("{task.description}"), BarColumn(), counts, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("rows", total=total_size(expand(run.inputs)), rows=0, rate=0)
        seen, began = 0, time.monotonic()

        def advance(rows: int, size: int) -> None:
            nonlocal seen
            seen += rows
            progress.update(task, advance=size, rows=seen, rate=seen / (time.monotonic() - began or 1))

        yield advance
