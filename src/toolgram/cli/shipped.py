"""`toolgram formats`: print a table on a terminal, tab-separated lines in a pipe, or JSON."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.table import Column, Table
from rich.text import Text

import toolgram
from toolgram.cli.options import Json
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, console, read_file, write_json
from toolgram.names import Entry, chosen, known_names, template_hint


def formats(
    as_json: Json = False,
    model: Annotated[
        str | None,
        typer.Option("--for", metavar="MODEL", help="Only the format of this model or server's parser, and why."),
    ] = None,
    template: Annotated[
        str | None, typer.Option(metavar="FILE", help="Only the format that the text of a chat template hints at.")
    ] = None,
) -> int:
    """List the formats that ship.

    Each with its name, the models that write it, an example, and the other names that are understood.

    \b
    toolgram formats                        a table on a terminal
    toolgram formats | cut -f1              the names: in a pipe, one line each, separated by tabs
    toolgram formats --for Qwen/Qwen3-32B   the format of a model, and why it is that one
    toolgram formats --template chat.jinja  a hint only: `toolgram derive` reads what the template writes
    """
    if model is not None:
        choice = chosen(model, toolgram.format_names())
        print(choice.format, choice.why or f"{model} is a name of it", sep="\t")
        return USABLE
    if template is not None:
        hint = template_hint(read_file(template, errors="replace"))
        if hint is None:
            complain(f"{template}: no marker of a known format; `toolgram derive {template}` finds out what it writes")
            return NOTHING_USABLE
        print(hint, "by its markers; a hint only", sep="\t")
        return USABLE
    shipped = [toolgram.get_format(name) for name in toolgram.format_names()]
    aliases = {fmt.name: known_names().entries.get(fmt.name, Entry()).aliases for fmt in shipped}
    if as_json:
        keys = ("name", "title", "models", "example")
        rows = [{**{key: getattr(fmt, key) for key in keys}, "aliases": aliases[fmt.name]} for fmt in shipped]
        write_json(rows)
    elif sys.stdout.isatty():
        _print_table(shipped, aliases)
    else:
        for fmt in shipped:
            shown = fmt.example.strip().replace("\n", "\\n")
            print(fmt.name, ", ".join(fmt.models), shown, ", ".join(aliases[fmt.name]), sep="\t")
    return USABLE


def _print_table(shipped: list[toolgram.Format], aliases: Mapping[str, Sequence[str]]) -> None:
    table = Table("format", "models", "other names", Column("example", overflow="fold"), show_lines=True)
    for fmt in shipped:
        name = Text.assemble((fmt.name, "bold cyan"), "\n", (fmt.title, "dim"))
        others = Text(", ".join(aliases[fmt.name]))
        table.add_row(name, Text(", ".join(fmt.models)), others, Text(fmt.example.strip()))
    out = console(wrap=True)
    out.print(table)
    for server, title in (("vllm", "vLLM"), ("sglang", "SGLang")):
        out.print(f"{title}: {_covered(server, 'tool')} tool parsers, {_covered(server, 'reasoning')} of reasoning")


def _covered(server: str, kind: str) -> str:
    """Return how many of a server's parsers are names of formats that ship: `57 of 58`."""
    shipped = toolgram.format_names()
    registered = [(name, entry.parsers[server, kind]) for name, entry in known_names().entries.items()]
    covered = sum(len(each) for name, each in registered if name in shipped)
    return f"{covered} of {sum(len(each) for _, each in registered)}"
