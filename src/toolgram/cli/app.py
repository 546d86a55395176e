"""The application: the table of all commands. Each is in a module beside this one.

Strategy: help is plain text, because markup would remove the brackets that models write (`[TOOL_CALLS]`). A mistake in
the command is one line on standard error, with exit status 2; the contents of an output are never such a mistake.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import toolgram
from toolgram.cli.terminal import guarded

# The module and the function of each command, in the order of the help.
COMMANDS = {
    "parse": "parsing", "explain": "explaining", "try": "trying:try_output", "audit": "auditing", "demo": "demo",
    "formats": "shipped", "vllm": "vllm_help", "check": "checking", "derive": "deriving", "doctor": "doctor",
    "diagram": "parts", "grammar": "parts", "machine": "parts", "export": "exporting", "docs": "pages",
    "serve": "serving",
}  # fmt: skip


class Commands(TyperGroup):
    """The commands. Each is imported when it is asked for, because they need different packages."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command; None if there is none of this name."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            module, _, function = COMMANDS[cmd_name].partition(":")
            alone = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
            called = getattr(import_module(f"toolgram.cli.{module}"), function or cmd_name)
            alone.command(name=cmd_name)(guarded(called))
            self.commands[cmd_name] = typer.main.get_command(alone)
        for each in () if cmd_name in COMMANDS else COMMANDS:  # the message suggests a name
            self.get_command(ctx, each)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=Commands,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
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
