"""`toolgram grammar`, `machine` and `diagram`: print or draw what a format consists of.

Strategy: `machine_text` writes one entry per line, so a comment after an entry can name the fragment and line that it
came from. Entries of the machine file itself, and rows that follow from its states, have no comment.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from toolgram import Format
from toolgram.cli.options import FormatArgument, Grammar, Machine, load_required_format
from toolgram.cli.terminal import refuse, spelled_out, write_file
from toolgram.spec.machine_text import machine_text

if TYPE_CHECKING:
    from toolgram.diagrams import Kind

ENDINGS: dict[str, Kind] = {".svg": "svg", ".mmd": "mermaid", ".dot": "dot"}


def grammar(
    name: FormatArgument = None,
    grammar: Grammar = None,
    machine: Machine = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="With definitions of free text and values. Default: the file as it is.")
    ] = False,
) -> None:
    """Print the grammar of a format.

    The file as it is written, in which free text and values are declared. With --whole, these have the definitions that
    follow from the machine: that grammar is what Lark parses and what is proved.

    \b
    toolgram grammar hermes                             the file
    toolgram grammar hermes --whole                     what Lark parses
    toolgram grammar --grammar my.lark --machine my.yaml --whole

    Exit status: 0 printed; 2 a mistake in the command.
    """
    chosen = load_required_format(name, grammar, machine, "say whose grammar to print: FORMAT")
    print(spelled_out(chosen.whole_grammar_text if whole else chosen.grammar_text), end="")


def machine(
    name: FormatArgument = None,
    grammar: Grammar = None,
    machine: Machine = None,
    source: Annotated[
        bool, typer.Option("--source", help="The machine file as it is, with its imports. Default: composed.")
    ] = False,
) -> None:
    """Print the machine of a format as YAML.

    The composed machine is what runs, is proved and is drawn. A comment after an entry names the file and the line of
    the fragment from which it came. What is printed loads again as a machine file. --source prints the file itself.

    \b
    toolgram machine hermes                             all states and all rows
    toolgram machine hermes --source                    the file as it was written
    toolgram machine --grammar my.lark --machine my.yaml

    Exit status: 0 printed; 1 the source file is gone; 2 a mistake in the command.
    """
    chosen = load_required_format(name, grammar, machine, "say whose machine to print: FORMAT")
    print(spelled_out(chosen.machine_text if source else "\n".join(_composed(chosen)) + "\n"), end="")


def _composed(fmt: Format) -> Iterator[str]:
    """Yield the lines of the machine without imports and with all its rows, each with the place that it came from."""
    data = fmt.machine_dict
    states = [fmt.spec.states[entry["name"]] for entry in data["machine"]["states"]]
    rows = {(row.source, row.trigger): row for row in fmt.spec.transitions}
    found = []
    for entry in data["machine"]["transitions"]:
        source = entry["source"]
        found.append(rows[source if isinstance(source, str) else source[0], entry["trigger"]])
    origins = {
        "states": iter([f"{each.file}:{each.line}" if each.file else each.fragment for each in states]),
        "transitions": iter([f"{each.file}:{each.line}" if each.file else "" for each in found]),
    }
    for section in origins:  # in this order, after the short entries
        data["machine"][section] = data["machine"].pop(section)
    comment = f"The composed machine of {fmt.name}. `toolgram machine --source` prints the file that was written."
    section = ""
    for line in machine_text(data, comment).splitlines():
        if line.startswith("    - ") and section in origins:
            origin = next(origins[section])
            yield f"{line}  # {origin}" if origin else line
        else:
            section = line.strip().removesuffix(":")
            yield line


def diagram(
    name: FormatArgument = None,
    grammar: Grammar = None,
    machine: Machine = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write it: .svg, .mmd or .dot. Default: print Mermaid."),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Every state and transition, in place of the path of the format's examples.")
    ] = False,
) -> None:
    """Draw the state machine of a format.

    The path of its own example outputs, or the whole.

    \b
    toolgram diagram mistral_v11                                   Mermaid text
    toolgram diagram mistral_v11 --whole -o mistral_v11.svg        a picture
    toolgram diagram --grammar my.lark --machine my.yaml -o my.mmd

    Exit status: 0 drawn; 1 a package is missing or the file cannot be written; 2 a mistake in the command.
    """
    fmt = load_required_format(name, grammar, machine, "say what to draw: FORMAT")
    kind = "mermaid" if output is None else ENDINGS.get(Path(output).suffix.lower())
    if kind is None:
        refuse(f"{output}: the ending chooses the kind of diagram; it is one of {', '.join(ENDINGS)}")
    drawn = fmt.diagram(kind, "whole" if whole else "path")
    if output is None:
        print(spelled_out(drawn), end="")
    else:
        write_file(output, drawn)
