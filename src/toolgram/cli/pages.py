"""`toolgram docs`: write the documentation pages of formats, or check that they are up to date.

The code that writes them is imported when it is needed, so that no other command waits for `transitions`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import toolgram
from toolgram.cli.options import FormatArgument, Grammar, Machine, load_chosen_format
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, read_file, spelled_out, write_file


def docs(
    name: FormatArgument = None,
    grammar: Grammar = None,
    machine: Machine = None,
    folder: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="The folder that the pages belong into.")
    ] = "docs/specs",
    embed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A Markdown file with tables between `<!-- toolgram formats -->` and `<!-- /toolgram formats -->`, "
            "which are written as well. May be repeated.",
        ),
    ] = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Write nothing; list the pages that are out of date.")
    ] = False,
) -> int:
    """Write the documentation page of each format.

    Example, grammar, diagram, transitions, and what was proved.

    \b
    toolgram docs                                          every shipped format, into docs/specs
    toolgram docs --check                                  are they up to date?
    toolgram docs --grammar my.lark --machine my.yaml -o . a format of your own

    Exit status: 0 written, or all up to date; 1 a page is out of date or cannot be written; 2 a mistake in the
    command.
    """
    from toolgram.pages.formats import stale_pages, write_pages
    from toolgram.pages.tables import refreshed

    chosen = load_chosen_format(name, grammar, machine)
    formats = [chosen] if chosen else [toolgram.get_format(name) for name in toolgram.format_names()]
    if check_only:
        stale = stale_pages(formats, Path(folder))
        stale += [Path(file) for file in embed or () if refreshed(text := read_file(file)) != text]
        for place in stale:
            complain(f"{place}: out of date; run toolgram docs")
        return NOTHING_USABLE if stale else USABLE
    written = write_pages(formats, Path(folder))
    for file in embed or ():
        write_file(file, refreshed(read_file(file)))
        written.append(Path(file))
    for place in written:
        print(spelled_out(str(place)))
    return USABLE
