"""The `toolgram` command, the only part of the package that needs typer and rich.

Strategy: importing the library must not import the command line. Everything that needs typer or rich is in the modules
beside this one, which are imported when the command runs; `app` has the table of the commands.
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
