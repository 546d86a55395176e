"""The application: all commands, in the order of the help. The modules beside this one have a command each.

Strategy: help is plain text, because markup would remove the brackets that models write (`[TOOL_CALLS]`). A mistake in
the command is reported in one line on standard error, with exit status 2. The contents of an output are never a mistake
in the command.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated

import typer

import toolgram
from toolgram.cli.auditing import audit
from toolgram.cli.checking import check
from toolgram.cli.demo import demo
from toolgram.cli.deriving import derive
from toolgram.cli.doctor import doctor
from toolgram.cli.explaining import explain
from toolgram.cli.exporting import export
from toolgram.cli.pages import docs
from toolgram.cli.parsing import parse
from toolgram.cli.parts import diagram, grammar, machine
from toolgram.cli.serving import serve
from toolgram.cli.shipped import formats
from toolgram.cli.terminal import guarded
from toolgram.cli.trying import try_output
from toolgram.cli.vllm_help import vllm

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"toolgram {toolgram.__version__}")
        raise typer.Exit


@app.callback()
def toolgram_command(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Read what language models write: reasoning, content and tool calls.

    \b
    toolgram formats                                what can be read
    toolgram parse --format mistral_v11 output.txt  one output as JSON
    """
    # Escape a character that the locale lacks, so that it does not end the program.
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")


COMMANDS: tuple[Callable[..., int | None], ...] = (
    parse, explain, try_output, audit, demo, formats, vllm, check, derive, doctor, diagram, grammar, machine, export,
    docs, serve,
)  # fmt: skip
for _command in COMMANDS:
    app.command(name=_command.__name__.removesuffix("_output"))(guarded(_command))
