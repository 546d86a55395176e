"""`toolgram grammar`: print the grammar of a format as written, or with definitions of what it declares."""

from __future__ import annotations

from typing import Annotated

import typer

from toolgram.cli.options import FormatArgument, Grammar, Machine, load_required_format
from toolgram.cli.terminal import quiet_endings, spelled_out


def print_grammar(
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
    with quiet_endings():
        chosen = load_required_format(name, grammar, machine, "say whose grammar to print: FORMAT")
        print(spelled_out(chosen.whole_grammar_text if whole else chosen.grammar_text), end="")
