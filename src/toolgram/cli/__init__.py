"""The `toolgram` command: a thin face over the library, and the only part that needs typer and rich.

Strategy: the library must never pay for its command line, so everything that imports typer or rich stands in the
modules beside this one and is imported when the command runs, not before.

    app       the commands and their options; nothing but wiring
    source    bytes from files and standard input to text, as they arrive
    terminal  the way out: JSON, one-line complaints, and text that cannot command the terminal
    parsing   one output: its message, its events as they happen, or its text coloured
    rows      many outputs: JSON lines in, JSON lines out
    chosen    the format a command is about
    drawing   the state diagram of a format
    pages     the documentation pages of formats
    explaining  one output: the verdict on it and the evidence
    paint     who owns each character, in colour or in labels
    templates  the chat template that a format is derived from, wherever it stands
    deriving  a format from a template: its two files, written or shown
    findings  the template debugger: what was found and the renderings that show it
    survey    the template analysis: one row for each of many templates
    vllm_help  the command line of a vLLM server that reads with toolgram
"""

from __future__ import annotations

import sys
from typing import NoReturn

MISSING_EXTRA = 'toolgram: the command line needs typer and rich: pip install "toolgram[cli]"'


def main() -> NoReturn:
    """Run the command line on `sys.argv` and exit: 0 parsed, 1 nothing usable, 2 a mistake in the command."""
    try:
        from toolgram.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"typer", "rich"}:
            raise
        print(MISSING_EXTRA, file=sys.stderr)
        sys.exit(2)
    app(prog_name="toolgram")
    sys.exit(0)
