"""What servers without a streaming parser of JSON do: they parse the growing buffer again at every delta."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from benchmarks.contenders import Contender, Heard, Prepared, Stream, as_they_are
from benchmarks.workloads import Workload


class Buffer:
    """The text so far, and its value so far."""

    def __init__(self, parse: Callable[[str], Any]) -> None:
        self.parse = parse
        self.text = ""
        self.value: Any = None

    def feed(self, delta: str) -> Any:
        """The value of everything so far; the last one that there was, where the text has none."""
        self.text += delta
        with suppress(ValueError):
            self.value = self.parse(self.text)
        return self.value

    def close(self) -> Any:
        """Nothing is held back."""
        return self.value


def hear(results: list[Any]) -> Heard:
    """The last value; the name of the function was never part of the text."""
    return Heard(calls=[("f", json.dumps(results[-1]))])


def reader(name: str) -> Callable[[str], Any]:
    """The named library's function from a piece of JSON to its value."""
    if name == "jiter":
        from_json = partial(import_module("jiter").from_json, partial_mode="trailing-strings")
        return lambda text: from_json(text.encode())
    loads: Callable[[str], Any] = import_module("partial_json_parser").loads
    return loads


def load(name: str) -> Contender:
    """Imports the library."""
    parse = reader(name)

    def prepare(workload: Workload, written_as: str) -> Prepared:
        def open_stream() -> Stream:
            buffer = Buffer(parse)
            return buffer.feed, buffer.close

        return Prepared(open_stream, as_they_are, hear)

    return prepare
