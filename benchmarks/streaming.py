"""What one delta costs, at growing lengths: `python benchmarks/streaming.py` (or `make bench`).

Every workload runs in 4-character deltas, in rounds that take the workloads in turn, so that a noisy machine hits all
of them alike; the median of the rounds is printed, as microseconds per delta and as a ratio to two floors measured in
the same rounds: an empty method call, and a method that makes one event and returns it in a list.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import toolgram

PROSE = "The quick brown fox jumps over the lazy dog, and then it rests. "
CODE = 'def area(r):\\n    return \\"pi\\" * r  # a comment\\n'
DELTA = 4


class Empty:
    """An empty method call."""

    def feed(self, delta: str) -> list[toolgram.Event]:
        """Nothing."""
        return []


class Floor:
    """One event per delta, in a list."""

    def feed(self, delta: str) -> list[toolgram.Event]:
        """The least that any parser must do."""
        return [toolgram.Content(delta, delta)]


def fill(text: str, length: int) -> str:
    """`text` repeated to `length` characters."""
    return (text * (length // len(text) + 1))[:length]


def members(length: int) -> str:
    """A JSON object of many small values, about `length` characters long."""
    values = {f"key{index}": [index, True, None, str(index)] for index in range(max(1, length // 32))}
    return json.dumps(values)


def workloads(length: int) -> Iterator[tuple[str, Callable[[], Any], list[str]]]:
    """Name, parser factory and deltas of each workload at one length."""
    llama, pythonic = toolgram.get_format("llama3_json"), toolgram.get_format("llama4_pythonic")
    list_form, marker_form = toolgram.get_format("mistral_v3"), toolgram.get_format("mistral_v11")
    prose = fill(PROSE, length)
    string = '{"text": "' + prose + '"}'
    texts = [
        ("empty method call", Empty, prose),
        ("one event in a list", Floor, prose),
        ("content, mistral_v11", marker_form.parser, prose),
        ("content, llama3_json", llama.parser, prose),
        ("reasoning, mistral_v11", marker_form.parser, "[THINK]" + prose + "[/THINK]Done."),
        ("JSON, one long string, mistral_v11", marker_form.parser, "[TOOL_CALLS]f[ARGS]" + string),
        ("JSON, one long string, llama3_json", llama.parser, '{"name": "f", "parameters": ' + string + "}"),
        ("JSON, one long string, mistral_v3", list_form.parser,
         '[TOOL_CALLS] [{"name": "f", "arguments": ' + string + "}]"),
        ("JSON, code with escapes, mistral_v11", marker_form.parser,
         '[TOOL_CALLS]f[ARGS]{"code": "' + CODE * (length // len(CODE)) + '"}'),
        ("JSON, many small values, mistral_v11", marker_form.parser, "[TOOL_CALLS]f[ARGS]" + members(length)),
        ("Python, one long string, llama4_pythonic", pythonic.parser, '[f(text="' + prose + '")]'),
        ("prose full of brackets, llama3_json", llama.parser, fill("if (x) { return [1]; } ", length)),
    ]  # fmt: skip
    for name, factory, text in texts:
        yield name, factory, [text[at : at + DELTA] for at in range(0, len(text), DELTA)]


def seconds(factory: Callable[[], Any], deltas: list[str]) -> float:
    """One stream, fed delta by delta."""
    feed = factory().feed
    begin = time.perf_counter()
    for delta in deltas:
        feed(delta)
    return time.perf_counter() - begin


def measure(length: int, rounds: int) -> dict[str, float]:
    """Median microseconds per delta of each workload."""
    jobs = list(workloads(length))
    times: dict[str, list[float]] = {name: [] for name, _, _ in jobs}
    for _ in range(rounds):
        for name, factory, deltas in jobs:
            times[name].append(seconds(factory, deltas) / len(deltas) * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    """Print one table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--lengths", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    arguments.add_argument("--rounds", type=int, default=7)
    options = arguments.parse_args()
    where = f"Python {platform.python_version()}, {platform.machine()}"
    print(f"{where}, {DELTA}-character deltas, median of {options.rounds} rounds")
    results = {length: measure(length, options.rounds) for length in options.lengths}
    names = list(results[options.lengths[0]])
    print(
        f"{'microseconds per delta':42}"
        + "".join(f"{length:>12,}" for length in options.lengths)
        + "   x call  x event"
    )
    for name in names:
        last = results[options.lengths[-1]]
        ratios = f"{last[name] / last[names[0]]:8.1f} {last[name] / last[names[1]]:8.1f}"
        print(f"{name:42}" + "".join(f"{results[length][name]:12.2f}" for length in options.lengths) + ratios)


if __name__ == "__main__":
    main()
