"""`toolgram docs`: write the documentation pages of formats, or check that they are up to date.

The code that writes them is imported when it is needed, so that no other command waits for `transitions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import toolgram
from toolgram import Format, ToolgramError
from toolgram.cli.options import Grammar, Machine, load_chosen_format
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, quiet_endings, spelled_out


def docs(
    name: Annotated[
        str | None,
        typer.Argument(metavar="FORMAT", show_default=False, help="A shipped format. None: all that ship."),
    ] = None,
    grammar: Grammar = None,
    machine: Machine = None,
    folder: Annotated[
        str, typer.Option("-o", "--output", metavar="DIR", help="The folder that the pages belong into.")
    ] = "docs/specs",
    embed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="A Markdown file with places such as `<!-- toolgram formats -->` and `<!-- /toolgram formats -->`: "
            "the table between them is written as well. May be repeated.",
        ),
    ] = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Write nothing; list the pages that are out of date.")
    ] = False,
) -> None:
    """Write the documentation page of each format.

    Example, grammar, diagram, transitions, and what was proved.

    \b
    toolgram docs                                          every shipped format, into docs/specs
    toolgram docs --check                                  are they up to date?
    toolgram docs --grammar my.lark --machine my.yaml -o . a format of your own

    Exit status: 0 written, or all up to date; 1 a page is out of date or cannot be written; 2 a mistake in the
    command.
    """
    with quiet_endings():
        chosen = load_chosen_format(name, grammar, machine)
        formats = [chosen] if chosen else [toolgram.get_format(name) for name in toolgram.format_names()]
        raise typer.Exit((compare if check_only else write)(formats, folder, embed or []))


def write(formats: Sequence[Format], folder: str, embedding: Sequence[str]) -> int:
    """Write the pages and pictures, refresh the tables in other files, and print the paths."""
    from toolgram.pages.formats import write_pages

    try:
        written = write_pages(formats, Path(folder))
        for file in map(Path, embedding):
            _refresh(file)
            written.append(file)
    except (OSError, ToolgramError) as error:
        return _failed(error)
    for place in written:
        print(spelled_out(str(place)))
    return USABLE


def compare(formats: Sequence[Format], folder: str, embedding: Sequence[str]) -> int:
    """List every page that is out of date, and write nothing. Return exit status 1 if there is one."""
    from toolgram.pages.formats import stale_pages
    from toolgram.pages.tables import refreshed

    try:
        stale = stale_pages(formats, Path(folder))
        stale += [file for file in map(Path, embedding) if refreshed(text := _text(file)) != text]
    except (OSError, ToolgramError) as error:
        return _failed(error)
    for place in stale:
        complain(f"{place}: out of date; run toolgram docs")
    return NOTHING_USABLE if stale else USABLE


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ToolgramError(f"{file}: not UTF-8 text") from None


def _refresh(file: Path) -> None:
    from toolgram.pages.tables import refreshed

    file.write_text(refreshed(_text(file)), encoding="utf-8", newline="\n")


def _failed(error: OSError | ToolgramError) -> int:
    if isinstance(error, OSError):
        complain(f"{error.filename}: cannot be read or written: {error.strerror or error}")
    else:
        complain(str(error))
    return NOTHING_USABLE
