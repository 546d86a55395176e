"""What tests of the command line share: an output, and ways to run the command."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Callable
from typing import IO

from typer.testing import CliRunner, Result

from toolgram.cli.app import app

CALL = '[TOOL_CALLS]add[ARGS]{"a": 3}'
OUTPUT = f"[THINK]easy[/THINK]Adding.{CALL}"
HOSTILE = "red \x1b[31m bell \x07 title \x1b]0;owned\x07 c1 \x9b2J bidi \u202e del \x7f"
V11 = ("parse", "--format", "mistral_v11")
WAIT = 20.0


def run(*arguments: str, text: str | bytes = "") -> Result:
    return CliRunner().invoke(app, list(arguments), input=text)


def on_terminal(start: Callable[..., subprocess.Popen[bytes]], *arguments: str, text: bytes, stream: str) -> bytes:
    """What the command writes to a terminal in place of one of its streams."""
    ours, theirs = pty.openpty()
    process = start(*arguments, **{stream: theirs})
    os.close(theirs)
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.close()
    process.stdin = None
    shown = shown_on(ours)
    process.communicate(timeout=WAIT)
    os.close(ours)
    return shown


def shown_on(terminal: int) -> bytes:
    """All that is written to a terminal, until nobody holds its other end."""
    shown = b""
    try:
        while data := os.read(terminal, 1 << 16):
            shown += data
    except OSError:  # Linux says that nobody holds the other end by an error
        pass
    return shown


def line_of(stream: IO[bytes]) -> bytes:
    """One line, or a failed test instead of a test that hangs."""
    deadline = time.monotonic() + WAIT
    line = b""
    while not line.endswith(b"\n"):
        ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        assert ready, f"nothing was written within {WAIT} s after {line!r}"
        byte = os.read(stream.fileno(), 1)
        assert byte, f"the output ended after {line!r}"
        line += byte
    return line
