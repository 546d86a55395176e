"""`toolgram machine`: print the composed machine of a format, as a machine file that loads again; or its source file.

Strategy: `machine_text` writes one entry per line, so a comment after an entry can name the fragment and line that it
came from. Entries of the machine file itself, and rows that follow from its states, have no comment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from toolgram import Format
from toolgram.cli.options import FormatArgument, Grammar, Machine, load_required_format
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, quiet_endings, spelled_out
from toolgram.spec.machine_text import machine_text


def print_machine(
    name: FormatArgument = None,
    grammar: Grammar = None,
    machine: Machine = None,
    source: Annotated[
        bool, typer.Option("--source", help="The machine file as it stands, with its imports. Default: composed.")
    ] = False,
) -> None:
    """Print the machine of a format as YAML.

    Composed, which is what runs, is proved and drawn, or its source. A comment behind an entry names the file and the
    line of the fragment from which it came. What is printed loads again as a machine file.

    \b
    toolgram machine hermes                             all states and all rows
    toolgram machine hermes --source                    the file as it was written
    toolgram machine --grammar my.lark --machine my.yaml

    Exit status: 0 printed; 1 the source file is gone; 2 a mistake in the command.
    """
    with quiet_endings():
        chosen = load_required_format(name, grammar, machine, "say whose machine to print: FORMAT")
        raise typer.Exit(print_source(chosen) if source else print_composed(chosen))


def print_source(fmt: Format) -> int:
    """Print the machine file. Return exit status 1 if it is gone."""
    try:
        print(spelled_out(fmt.machine_text), end="")
    except OSError as error:
        complain(f"{error.filename}: cannot be read: {error.strerror or error}")
        return NOTHING_USABLE
    return USABLE


def print_composed(fmt: Format) -> int:
    """Print the machine without imports and with all its rows."""
    comment = f"The composed machine of {fmt.name}. `toolgram machine --source` prints the file that was written."
    data = fmt.machine_dict
    for section in ("states", "transitions"):  # in this order, after the short entries
        data["machine"][section] = data["machine"].pop(section)
    print(spelled_out("\n".join(_commented(fmt, machine_text(data, comment)))))
    return USABLE


def _commented(fmt: Format, text: str) -> Iterator[str]:
    """Yield the lines, each with the place that its entry came from."""
    origins = {"states": iter(_states(fmt)), "transitions": iter(_transitions(fmt))}
    section = ""
    for line in text.splitlines():
        if line.startswith("    - ") and section in origins:
            origin = next(origins[section])
            yield f"{line}  # {origin}" if origin else line
        else:
            section = line.strip().removesuffix(":")
            yield line


def _states(fmt: Format) -> list[str]:
    names = [entry["name"] for entry in fmt.machine_dict["machine"]["states"]]
    states = [fmt.spec.states[name] for name in names]
    return [f"{state.file}:{state.line}" if state.file else state.fragment for state in states]


def _transitions(fmt: Format) -> list[str]:
    rows = {(row.source, row.trigger): row for row in fmt.spec.transitions}
    found = []
    for entry in fmt.machine_dict["machine"]["transitions"]:
        source = entry["source"]
        row = rows[source if isinstance(source, str) else source[0], entry["trigger"]]
        found.append(f"{row.file}:{row.line}" if row.file else "")
    return found
