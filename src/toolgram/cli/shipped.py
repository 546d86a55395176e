"""`toolgram formats`: print a table on a terminal, tab-separated lines in a pipe, or JSON."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

import toolgram
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, indent_for_terminal, write_json
from toolgram.names import Entry, chosen, known_names, template_hint


def print_formats(as_json: bool) -> None:
    """List the shipped formats."""
    shipped = [toolgram.get_format(name) for name in toolgram.format_names()]
    names = known_names()
    entries = {fmt.name: names.entries.get(fmt.name, Entry()) for fmt in shipped}
    if as_json:
        rows = [
            {
                "name": fmt.name,
                "title": fmt.title,
                "models": [*fmt.models],
                "example": fmt.example,
                "aliases": entries[fmt.name].aliases,
            }
            for fmt in shipped
        ]
        write_json(rows, indent=indent_for_terminal())
    elif sys.stdout.isatty():
        _print_table(shipped, entries)
    else:
        for fmt in shipped:
            shown = fmt.example.strip().replace("\n", "\\n")
            print(fmt.name, ", ".join(fmt.models), shown, ", ".join(entries[fmt.name].aliases), sep="\t")


def print_found(model: str | None, template: str | None) -> int:
    """Print the format of a model or of a server's parser, or the one that a template hints at, with the reason."""
    if model is not None:
        try:
            choice = chosen(model, toolgram.format_names())
        except toolgram.UnknownFormat as error:
            complain(str(error))
            return NOTHING_USABLE
        print(choice.format, choice.why or f"{model} is a name of it", sep="\t")
        return USABLE
    try:
        hint = template_hint(Path(template or "").read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        complain(f"{template}: cannot be read: {error.strerror or error}")
        return NOTHING_USABLE
    if hint is None:
        complain(f"{template}: no marker of a known format; `toolgram derive {template}` finds out what it writes")
        return NOTHING_USABLE
    print(hint, "by its markers; a hint only", sep="\t")
    return USABLE


def _print_table(shipped: list[toolgram.Format], entries: dict[str, Entry]) -> None:
    table = Table("format", "models", "other names", Column("example", overflow="fold"), show_lines=True)
    for fmt in shipped:
        name = Text.assemble((fmt.name, "bold cyan"), "\n", (fmt.title, "dim"))
        others = Text(", ".join(entries[fmt.name].aliases))
        table.add_row(name, Text(", ".join(fmt.models)), others, Text(fmt.example.strip()))
    console = Console(highlight=False)
    console.print(table)
    for server, title in (("vllm", "vLLM"), ("sglang", "SGLang")):
        console.print(f"{title}: {_covered(server, 'tool')} tool parsers, {_covered(server, 'reasoning')} of reasoning")


def _covered(server: str, kind: str) -> str:
    """Return how many of a server's parsers are names of formats that ship: `57 of 58`."""
    shipped = toolgram.format_names()
    registered = [(name, entry.parsers[server, kind]) for name, entry in known_names().entries.items()]
    covered = sum(len(each) for name, each in registered if name in shipped)
    return f"{covered} of {sum(len(each) for _, each in registered)}"
