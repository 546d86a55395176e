"""`toolgram parse --jsonl`: JSON lines in, JSON lines out, in the same order.

Strategy: each row is answered before the next one is read, so the command works as a filter and in constant memory.
The answer to a row that cannot be read is its error, so that line numbers stay aligned with the input.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from toolgram.cli.parsing import Reading
from toolgram.cli.source import Unreadable, cut, lines
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, write_json

Advance: TypeAlias = Callable[[int], None]


class BadRow(Exception):
    """This row holds no output text; the message says why."""


def print_rows(reading: Reading, files: list[str], chunk: int | None, field: str) -> int:
    """Answer every row of every file. The exit status is 1 where a file, or no row at all, could be read."""
    status, read, bad = USABLE, 0, 0
    with _progress(files) as advance:
        for path in files:
            try:
                for number, line in _lines(path, advance):
                    answer: dict[str, Any] = {"line": number}
                    if len(files) > 1:
                        answer = {"file": path, **answer}
                    try:
                        answer["message"] = _message(reading, output_text(line, field), chunk)
                        read += 1
                    except BadRow as error:
                        answer["error"] = str(error)
                        bad += 1
                    write_json(answer)
            except Unreadable as error:
                complain(str(error))
                status = NOTHING_USABLE
    if bad:
        complain(f"{bad} of {read + bad} rows could not be read")
    elif not read and status == USABLE:
        complain("no rows")
    return status if read else NOTHING_USABLE


def output_text(line: bytes, field: str) -> str:
    """The output text in one row. Raises BadRow with the reason if there is none."""
    try:
        row = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadRow(f"not UTF-8: byte {error.start + 1}") from None
    except json.JSONDecodeError as error:
        raise BadRow(f"not JSON: {error.msg} at character {error.pos + 1}") from None
    except (ValueError, RecursionError):
        raise BadRow("not JSON that can be read: too deep, or a number too long") from None
    if not isinstance(row, dict):
        raise BadRow(f"a row must be an object, not {_kind(row)}")
    value = _at(row, field)
    if not isinstance(value, str):
        raise BadRow(f"field {field!r} is {_kind(value)}, not text")
    return value


def _at(row: dict[str, Any], field: str) -> Any:
    """The value at a dotted path; digits index lists, and a key that has the dots in it is found as well."""
    if field in row:
        return row[field]
    value: Any = row
    for step in field.split("."):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            raise BadRow(f"no field {field!r}")
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")


def _message(reading: Reading, text: str, chunk: int | None) -> dict[str, Any]:
    texts = [text] if chunk is None else cut([text], chunk)
    return reading.shown(reading.run(texts, lambda event: None))[0]


def _lines(path: str, advance: Advance) -> Iterator[tuple[int, bytes]]:
    """The rows with their line numbers; blank lines count and are skipped."""
    for number, line in enumerate(lines(path), start=1):
        if line.strip():
            yield number, line
        advance(len(line))


@contextmanager
def _progress(files: list[str]) -> Iterator[Advance]:
    """A progress bar on standard error, unless that is no terminal or rows are printed on the same one."""
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield lambda size: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("bytes"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("rows", total=_total_size(files))
        yield lambda size: progress.advance(task, size)


def _total_size(files: list[str]) -> int | None:
    """In bytes; unknown as soon as one input is a pipe or cannot be measured."""
    if "-" in files:
        return None
    try:
        return sum(os.path.getsize(path) for path in files)
    except OSError:
        return None
