"""The cost of an export, without the engine's own compilation: every format and target, with one tool and with twenty.

`python -m benchmarks.exports` prints medians in milliseconds.  The first export in a process that asks xgrammar to
print the rules of a schema (`ebnf`, `gbnf`, `structural_tag`) also imports it, which is not counted.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import toolgram
from toolgram.export import TARGETS

REPEATS = 7
PARAMETERS = {
    "type": "object",
    "properties": {f"p{index}": {"type": kind} for index, kind in enumerate(("string", "integer", "boolean", "array"))},
    "required": ["p0"],
}


def tools(number: int) -> list[dict[str, Any]]:
    """OpenAI tool dicts, each with four parameters."""
    names = [f"tool_{at}" for at in range(number)]
    return [{"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in names]


def milliseconds(fmt: toolgram.Format, target: str, number: int) -> float:
    """The median time of one export."""
    declared = tools(number)
    fmt.export(target, declared)
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        fmt.export(target, declared)
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)


def main() -> None:
    """Print the table."""
    print(f"{'ms':<18}" + "".join(f"{target:>22}" for target in TARGETS))
    for name in toolgram.format_names():
        fmt = toolgram.get_format(name)
        cells = [f"{milliseconds(fmt, target, 1):.1f} / {milliseconds(fmt, target, 20):.1f}" for target in TARGETS]
        print(f"{name:<18}" + "".join(f"{cell:>22}" for cell in cells))


if __name__ == "__main__":
    main()
