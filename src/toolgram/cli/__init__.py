"""The `toolgram` command, the only part of the package that needs typer and rich.

Strategy: importing the library must not import the command line. Everything that needs typer or rich is in the modules
beside this one, which are imported when the command runs.

    app             the commands and their options
    options         options that several commands share, and loading what they name
    source          input: bytes from files and standard input to text, as they arrive
    terminal        output: JSON, messages on standard error, and text without control characters
    parsing         `parse`: the message of an output, its events as they happen, or its text in colour
    rows            `parse --jsonl`: JSON lines in, JSON lines out
    paint           each character of an output in the colour of its event, or with a label
    explaining      `explain`
    shipped         `formats`
    checking        `check`
    drawing         `diagram`
    machines        `machine`
    exporting       `export`
    pages           `docs`
    deriving        `derive`: the two files of a derived format
    findings        `derive --report`
    template_table  `derive --table`
    templates       reading a chat template from a file of any kind
    vllm_help       `vllm`
"""

from __future__ import annotations

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line on `sys.argv` and exit: 0 parsed, 1 nothing usable, 2 a mistake in the command."""
    try:
        from toolgram.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"typer", "rich"}:
            raise
        from toolgram.late_imports import install_line

        print(f"toolgram: the command line needs typer and rich: {install_line('typer')}", file=sys.stderr)
        sys.exit(2)
    app(prog_name="toolgram")
    sys.exit(0)
