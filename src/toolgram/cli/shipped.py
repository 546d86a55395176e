"""`toolgram formats`: a table on a terminal, tab-separated lines in a pipe, or JSON."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

import toolgram
from toolgram.cli.terminal import indent_for_terminal, write_json


def print_formats(as_json: bool) -> None:
    """List the shipped formats."""
    shipped = [toolgram.get_format(name) for name in toolgram.format_names()]
    if as_json:
        rows = [
            {"name": fmt.name, "title": fmt.title, "models": [*fmt.models], "example": fmt.example} for fmt in shipped
        ]
        write_json(rows, indent=indent_for_terminal())
    elif sys.stdout.isatty():
        _print_table(shipped)
    else:
        for fmt in shipped:
            print(fmt.name, ", ".join(fmt.models), fmt.example.strip().replace("\n", "\\n"), sep="\t")


def _print_table(shipped: list[toolgram.Format]) -> None:
    table = Table("format", "models", Column("example", overflow="fold"), show_lines=True)
    for fmt in shipped:
        name = Text.assemble((fmt.name, "bold cyan"), "\n", (fmt.title, "dim"))
        table.add_row(name, Text(", ".join(fmt.models)), Text(fmt.example.strip()))
    Console(highlight=False).print(table)
