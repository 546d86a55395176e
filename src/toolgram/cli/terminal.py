"""Write all output of the command line: JSON, one-line messages, and text with its control characters escaped.

Strategy: everything printed here may come from a model. JSON is written as UTF-8 bytes in every locale. Characters that
control a terminal, or that UTF-8 cannot encode, are escaped, in JSON and in text. No other module writes model text.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

from toolgram.bulk.json_rows import CONTROLS, escaped
from toolgram.late_imports import install_line

USABLE, NOTHING_USABLE, USAGE = 0, 1, 2
INTERRUPTED, BROKEN_PIPE = 130, 141


def spelled_out(text: str) -> str:
    r"""Return text that is safe to show: ESC becomes the four characters `\x1b`, and so on. Tabs and newlines stay."""
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def on_one_line(text: str) -> str:
    """Return text that is safe to show, on one line, for messages."""
    return spelled_out("; ".join(line.strip() for line in text.splitlines()))


def write_json(value: Any, indent: int | None = None) -> None:
    """Print one JSON document on its own line, and flush."""
    sys.stdout.buffer.write(escaped(json.dumps(value, ensure_ascii=False, indent=indent)))
    sys.stdout.buffer.flush()


def indent_for_terminal() -> int | None:
    """Return an indent of two on a terminal, and none in a pipe, so that each document is one line there."""
    return 2 if sys.stdout.isatty() else None


def complain(problem: str) -> None:
    """Print one line on standard error."""
    print(f"toolgram: {on_one_line(problem)}", file=sys.stderr, flush=True)


def refuse(problem: str) -> NoReturn:
    """Report a mistake in the command: one line on standard error, exit status 2."""
    complain(problem)
    raise typer.Exit(USAGE)


@contextmanager
def quiet_endings() -> Iterator[None]:
    """End without a traceback when the reader has gone (`| head`), on Ctrl-C, or if an optional package is missing."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes standard output once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(BROKEN_PIPE) from None
    except OSError as error:
        complain(f"cannot write: {error.strerror or error}")
        raise typer.Exit(NOTHING_USABLE) from None
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("toolgram"):
            raise
        refuse(f"this needs {error.name}, which is not installed: {install_line(error.name)}")
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
