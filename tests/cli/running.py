"""What tests of the command line share: an output, ways to run the command, and tables of commands."""

import json
import os
import pty
import re
import select
import shlex
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

import pytest
import yaml
from typer.testing import CliRunner, Result

from toolgram.cli.app import app

CALL = '[TOOL_CALLS]add[ARGS]{"a": 3}'
OUTPUT = f"[THINK]easy[/THINK]Adding.{CALL}"
HOSTILE = "red \x1b[31m bell \x07 title \x1b]0;owned\x07 c1 \x9b2J bidi \u202e del \x7f"
V11 = ("parse", "--format", "mistral_v11")
WAIT = 20.0
Start: TypeAlias = Callable[..., Any]  # starts a command, and returns its process


def run(*arguments: str | Path, text: str | bytes = "") -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)], input=text)


def write(process: Any, text: bytes) -> None:
    """Write to a command's standard input, at once."""
    process.stdin.write(text)
    process.stdin.flush()


def on_terminal(start: Start, *arguments: str, text: bytes, stream: str = "stdout", **options: Any) -> bytes:
    """What the command writes to a terminal in place of one of its streams."""
    ours, theirs = pty.openpty()
    process = start(*arguments, **{stream: theirs}, **options)
    os.close(theirs)
    write(process, text)
    process.stdin.close()
    process.stdin = None
    shown = b""
    with suppress(OSError):  # Linux says by an error that nobody holds the other end
        while data := os.read(ours, 1 << 16):
            shown += data
    process.communicate(timeout=WAIT)
    os.close(ours)
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


def rows_beside(test: str) -> list[dict[str, Any]]:
    """The rows of `commands.yaml` beside a test."""
    found: list[dict[str, Any]] = yaml.safe_load(Path(test).with_name("commands.yaml").read_text(encoding="utf-8"))
    return found


def check_row(row: dict[str, Any], root: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the command of a row in a folder with its files, and compare what was printed where, and the exit status."""

    def parts(key: str) -> list[str]:
        told = row.get(key, [])
        each = told if isinstance(told, list) else [told]
        return [part.replace("{root}", str(root)).replace("{folder}", str(folder)) for part in each]

    monkeypatch.chdir(folder)
    written: dict[Path, bytes] = {}
    for name, given in row.get("files", {}).items():
        text, times = given if isinstance(given, list) else (given, 1)
        written[folder / name] = (text if isinstance(text, bytes) else text.encode()) * times
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(written[folder / name])
    (command,) = parts("run")
    result = run(*shlex.split(command), text=row.get("text", ""))
    assert result.exit_code == row.get("status", 0), result.output
    for stream, key in ((result.stdout, "out"), (result.stderr, "err"), (result.stderr, "refused")):
        for part in parts(key):
            assert part in stream
    for part in parts("not"):
        assert part not in result.stdout
    for part in parts("begins"):
        assert result.stdout.startswith(part)
    assert re.search(row.get("matches", ""), result.stdout)
    for place in parts("equals"):
        assert result.stdout == Path(place).read_text(encoding="utf-8")
    if "refused" in row:
        assert result.stderr.startswith("toolgram: ")
        assert result.stderr.count("\n") == 1
        assert result.stdout == ""
        assert {path: path.read_bytes() for path in written} == written
    if "json" in row:
        assert json.loads(result.stdout).items() >= row["json"].items()
