"""The cost of a request inside vLLM's real serving layer, with vLLM's own parser beside toolgram's.

    make vllm-cost-table

The time is that of `adjust_request` for a request with `tool_choice: "required"`, in which the grammar is written or
found, and that of making its parsers. The fastest of some runs counts; each first request has tools of its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import toolgram
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.vllm_driver import Server
from tests.page_parts import write_part

BEGIN, END = "<!-- cost of a request: written by `make vllm-cost-table` -->", "<!-- end of cost of a request -->"
PAIRS = (("toolgram_hermes", "toolgram_hermes"), ("toolgram_qwen3_coder", "toolgram_qwen3_coder"), ("hermes", None))
SIZES = (3, 100)
RUNS = 20


def tools(count: int, kind: str) -> list[dict[str, Any]]:
    """Tools with three parameters each; those of another `kind` have other names."""
    properties = {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "mode": {"type": "string", "enum": ["a", "b"]},
    }
    schema = {"type": "object", "properties": properties, "required": ["city"]}
    return [
        {"type": "function", "function": {"name": f"{kind}_{at}", "description": "Does it.", "parameters": schema}}
        for at in range(count)
    ]


def fastest(run: Callable[[], Any], runs: int = RUNS) -> float:
    """Microseconds of the fastest run."""
    times = []
    for _ in range(runs):
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return min(times) * 1e6


def row(pair: Sequence[str | None]) -> str:
    """The row of a pair of parsers."""
    name = str(pair[0])
    shipped = name.removeprefix("toolgram_")
    server = Server(Pieces([], list(toolgram.get_format(shipped).program.special.values())), *pair)

    def adjusted(given: list[dict[str, Any]]) -> Callable[[], Any]:
        return lambda: server.adjusted(server.request(given, tool_choice="required"), [0])

    adjusted(tools(1, "warm"))()
    cells = []
    for size in SIZES:
        asking = fastest(lambda size=size: server.request(tools(size, "x"), tool_choice="required"))  # type: ignore[misc]
        again = adjusted(tools(size, "again"))
        first = min(fastest(adjusted(tools(size, f"first{at}")), 1) for at in range(5))
        again()
        request = server.request(tools(size, "x"), tool_choice="required")
        made = fastest(lambda request=request: server.made(request))  # type: ignore[misc]
        cells += [f"{first - asking:,.0f}", f"{fastest(again) - asking:,.0f}", f"{made:.0f}"]
    return f"| `{name}` | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table, or put it into a page."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--write", metavar="PAGE", type=Path)
    given = options.parse_args()
    heads = [f"{size} tools, {what}" for size in SIZES for what in ("first", "again", "parsers")]
    lines = [f"| parsers, microseconds | {' | '.join(heads)} |", "|---" * (1 + len(heads)) + "|", *map(row, PAIRS)]
    text = "\n".join(lines) + "\n"
    if given.write is None:
        print(text)
    else:
        write_part(given.write, BEGIN, END, text)


if __name__ == "__main__":
    main()
