"""The way out: JSON, one-line complaints, and text that cannot command the terminal.

Strategy: everything printed here may come from a model. JSON is written as UTF-8 bytes whatever the locale, with
every character escaped that a terminal could obey or that UTF-8 cannot carry; text for eyes has the same characters
spelled out. Nothing else in the command line writes model text.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer

USABLE, NOTHING_USABLE, USAGE = 0, 1, 2
INTERRUPTED, BROKEN_PIPE = 130, 141

# Control characters (C0 but tab and newline, DEL, C1), characters that are invisible or reorder what is seen
# (soft hyphen, bidirectional marks, line separators, tags) and surrogates. The joiners that hold emoji together stay.
COMMANDING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)


def spelled_out(text: str) -> str:
    r"""Text that is safe to show: ESC becomes the four characters `\x1b`, and so on. Tabs and newlines stay."""
    return COMMANDING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def on_one_line(text: str) -> str:
    """The same on one line, for complaints."""
    return spelled_out("; ".join(line.strip() for line in text.splitlines()))


def write_json(value: Any, indent: int | None = None) -> None:
    """One JSON document on its own line, out at once."""
    document = json.dumps(value, ensure_ascii=False, indent=indent)
    # Such a character can only stand inside a string, where its escape means the same.
    document = COMMANDING.sub(lambda found: json.dumps(found[0])[1:-1], document)
    sys.stdout.buffer.write(document.encode() + b"\n")
    sys.stdout.buffer.flush()


def indent_for_terminal() -> int | None:
    """People get two blanks of indent; programs get one document per line."""
    return 2 if sys.stdout.isatty() else None


def complain(problem: str) -> None:
    """One line on standard error."""
    print(f"toolgram: {on_one_line(problem)}", file=sys.stderr, flush=True)


def refuse(problem: str) -> NoReturn:
    """A mistake in the command: one line on standard error, exit status 2."""
    complain(problem)
    raise typer.Exit(USAGE)


@contextmanager
def quiet_endings() -> Iterator[None]:
    """A reader that went away (`| head`) and Ctrl-C are ordinary ends, not errors to report."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes standard output once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(BROKEN_PIPE) from None
    except OSError as error:
        complain(f"cannot write: {error.strerror or error}")
        raise typer.Exit(NOTHING_USABLE) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
