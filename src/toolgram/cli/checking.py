"""`toolgram check`: report what was proved of each format, and what was not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from os.path import isfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

import toolgram
from toolgram.cli.options import Json
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, console, refuse, write_json
from toolgram.errors import ToolgramError

if TYPE_CHECKING:
    from toolgram.check import Report


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FORMAT|FILE",
            help="Shipped formats by name, or your own as two files (x.lark x.yaml). None: all that ship.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """Prove that grammar and machine of a format agree.

    They accept the same language, and the machine is checked for mistakes.

    Exit status: 0 everything is proved; 1 something is not (every format is checked anyway); 2 a mistake in the
    command.

    \b
    toolgram check                   every shipped format
    toolgram check my.lark my.yaml   a format of your own
    """
    from toolgram.check import Finding, Report, check_format

    reports: list[Report] = []
    for label, load in _sources(names or []):
        try:
            report = check_format(load())
        except ToolgramError as error:
            report = Report(label, [Finding("the files load", False, error.said)])
        reports.append(report)
        if not as_json:
            _print_report(console(), report)
    if as_json:
        write_json([{**asdict(report), "ok": report.ok} for report in reports])
    return USABLE if all(report.ok for report in reports) else NOTHING_USABLE


def _sources(names: list[str]) -> Iterator[tuple[str, Callable[[], toolgram.Format]]]:
    """Yield the formats to check: shipped ones by name, pairs of files, or all shipped ones if no name is given."""
    files = [name for name in names if name.endswith((".lark", ".yaml", ".yml"))]
    grammars = [name for name in files if name.endswith(".lark")]
    machines = [name for name in files if not name.endswith(".lark")]
    if len(grammars) != len(machines):
        refuse("a format of your own is two files: give one .lark for each .yaml, in the same order")
    others = [name for name in names if name not in files and name not in toolgram.format_names() and isfile(name)]
    for name in others:  # `derive` writes a report beside the two files
        complain(f"{name}: skipped: it is no .lark and no .yaml file")
    if others and not files:
        refuse("a format of your own is two files: x.lark x.yaml")
    for name in [name for name in names if name not in files + others] or ([] if files else toolgram.format_names()):
        yield name, partial(toolgram.get_format, name)
    for grammar, machine in zip(grammars, machines, strict=True):
        yield Path(machine).stem, partial(toolgram.load_format, grammar, machine)


def _print_report(console: Console, report: Report) -> None:
    title = Text(report.format, "bold")
    title.append("  proved" if report.ok else "  not proved", "green" if report.ok else "bold red")
    console.print(title)
    for finding in report.findings:
        mark = Text("  ok   ", "green") if finding.ok else Text("  FAIL ", "bold red")
        lines = finding.detail.splitlines() or [""]
        console.print(mark + Text(f"{finding.name}: {lines[0]}"))
        for line in lines[1:]:
            console.print(Text(f"         {line}"))
    for warning in report.warnings:
        console.print(Text("  warn ", "yellow") + Text(warning))
