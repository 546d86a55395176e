"""Write all output of the command line: JSON, one-line messages, and text with its control characters escaped.

Strategy: everything printed here may come from a model. JSON is written as UTF-8 bytes in every locale. Characters that
control a terminal, or that UTF-8 cannot encode, are escaped, in JSON and in text. No other module writes model text.
Every command runs inside `guarded`, so no other module prints the message of an error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NoReturn, ParamSpec

import typer
from rich.console import Console

from toolgram.bulk.errors import BadFile, missing
from toolgram.bulk.json_rows import CONTROLS, escaped
from toolgram.bulk.writing import cannot_write
from toolgram.errors import ToolgramError

USABLE, NOTHING_USABLE, USAGE = 0, 1, 2
INTERRUPTED, BROKEN_PIPE = 130, 141
PAGE = "reference/cli/"  # of the commands, within the documentation
P = ParamSpec("P")


def spelled_out(text: str) -> str:
    r"""Return text that is safe to show: ESC becomes the four characters `\x1b`, and so on. Tabs and newlines stay."""
    return CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def on_one_line(text: str) -> str:
    """Return text that is safe to show, on one line, for messages."""
    return spelled_out("; ".join(line.strip() for line in text.splitlines()))


def shortened(text: str, size: int) -> str:
    """Return text of at most `size` characters."""
    return text if len(text) <= size else text[: size - 1] + "…"


def console(wrap: bool = False) -> Console:
    """Return a console that prints text as it is."""
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=not wrap)


def write_json(value: Any, indent: int | None = None, on_one_line: bool = False) -> None:
    """Print one JSON document, and flush. Without an indent, it has one of two on a terminal, and is one line in a
    pipe."""
    indent = indent or (2 if sys.stdout.isatty() and not on_one_line else None)
    sys.stdout.buffer.write(escaped(json.dumps(value, ensure_ascii=False, indent=indent)))
    sys.stdout.buffer.flush()


def read_file(path: str, errors: str = "strict", option: str = "") -> str:
    """Return the text of a file. Raises BadFile, which names the option if it is given."""
    try:
        with open(path, encoding="utf-8", errors=errors) as file:
            return file.read()
    except (OSError, ValueError) as error:
        why = error.strerror or error if isinstance(error, OSError) else "not UTF-8 text"
        raise BadFile(f"{option}{path}: cannot be read: {why}") from None


def write_file(path: str, text: str) -> None:
    """Write text to a file, without changes. Raises BadFile."""
    try:
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)
    except OSError as error:
        raise cannot_write(path, error) from None


def complain(problem: str | ToolgramError) -> None:
    """Print one line on standard error. That of an error ends with the address of its page."""
    said = problem.said if isinstance(problem, ToolgramError) else problem
    print(f"toolgram: {on_one_line(said)}", file=sys.stderr, flush=True)


def refuse(problem: str | ToolgramError) -> NoReturn:
    """Report a mistake in the command: one line on standard error, exit status 2."""
    complain(problem if isinstance(problem, ToolgramError) else f"{problem} (see {PAGE})")
    raise typer.Exit(USAGE)


def guarded(command: Callable[P, int | None]) -> Callable[P, None]:
    """Return the command with its result as exit status, and without a traceback.

    An error that people can correct is one line, also if an optional package is missing. The reader may go away
    (`| head`), and Ctrl-C ends it.
    """

    @wraps(command)
    def run(*given: P.args, **named: P.kwargs) -> None:
        try:
            status = command(*given, **named)
            sys.stdout.flush()
        except BrokenPipeError:
            # The interpreter flushes standard output once more when it exits.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            status = BROKEN_PIPE
        except OSError as error:
            what = f"{error.filename}: cannot be read or written" if error.filename else "cannot write"
            complain(BadFile(f"{what}: {error.strerror or error}"))
            status = NOTHING_USABLE
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("toolgram"):
                raise
            refuse(missing(error.name, "this"))
        except ToolgramError as error:
            complain(error)
            status = NOTHING_USABLE
        except KeyboardInterrupt:
            status = INTERRUPTED
        raise typer.Exit(status or USABLE)

    return run
