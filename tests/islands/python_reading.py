"""Python arguments read by a scanner, in whatever pieces they come: for tests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from toolgram.islands.python_literals import PythonScanner


@dataclass
class Reading:
    """What a scanner said about a text, whatever pieces it came in."""

    out: str
    pos: int
    started: bool
    empty: bool
    done: bool
    broken: bool


def read(text: str, cuts: list[int] | None = None) -> Reading:
    """Read `text`, cut before each position in `cuts`."""
    scanner = PythonScanner()
    edges = [0, *sorted(cuts or []), len(text)]
    out = ""
    pos = 0
    for start, end in pairwise(edges):
        pos = start + scanner.read(text[start:end], 0)
        out += scanner.out
        assert start <= pos <= end
        assert (pos < end) <= (scanner.done or scanner.broken)
        if scanner.done or scanner.broken:
            break
    return Reading(out, pos, scanner.started, scanner.empty, scanner.done, scanner.broken)


def read_by_character(text: str) -> Reading:
    return read(text, list(range(1, len(text))))


def load(text: str) -> Any:
    """The value of a text that is read to its end."""
    reading = read(text)
    assert (reading.done, reading.broken, reading.pos) == (True, False, len(text))
    return json.loads(reading.out)
