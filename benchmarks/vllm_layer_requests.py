"""The cost of a request inside vLLM's real serving layer, with vLLM's own parser beside toolgram's.

    make vllm-cost-table

The time is that of `adjust_request` for a request with `tool_choice: "required"`, in which the grammar is written or
found, that of the server's check of a new grammar, that of compiling it, and that of making the parsers of the request.
The fastest of some runs counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import toolgram
from benchmarks.vocabularies import vocabulary
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.vllm_driver import Server
from tests.page_parts import write_part

BEGIN, END = "<!-- cost of a request: written by `make vllm-cost-table` -->", "<!-- end of cost of a request -->"
# A tool parser, a reasoning parser, and whether the functions are `strict`: vLLM's own grammars hold no other arguments
# to their schema.
ROWS = (
    ("toolgram_hermes", "toolgram_hermes", False),
    ("toolgram_qwen3_coder", "toolgram_qwen3_coder", False),
    ("hermes", None, False),
    ("hermes", None, True),
    ("qwen3_coder", None, False),
    ("qwen3_coder", None, True),
)
SIZES = (3, 100)
RUNS = 20
COLUMNS = ("tools", "new functions", "known functions", "again", "checked", "parsers", "compiled, ms")


def tools(count: int, kind: str, strict: bool = False) -> list[dict[str, Any]]:
    """Functions with three parameters each. Those of another `kind` have other names and other parameters."""
    found: list[dict[str, Any]] = []
    for at in range(count):
        properties: dict[str, Any] = {
            f"city_{kind}_{at}": {"type": "string"},
            f"days_{kind}_{at}": {"type": "integer"},
            f"mode_{kind}_{at}": {"type": "string", "enum": ["a", "b"]},
        }
        schema = {"type": "object", "properties": properties, "required": [f"city_{kind}_{at}"]}
        function = {"name": f"{kind}_{at}", "description": "Does it.", "parameters": schema}
        if strict:
            function |= {"strict": True, "parameters": {**schema, "additionalProperties": False}}
        found.append({"type": "function", "function": function})
    return found


def fastest(runs: Iterable[Callable[[], Any]]) -> float:
    """Microseconds of the fastest run."""
    times = []
    for run in runs:
        begun = time.perf_counter()
        run()
        times.append(time.perf_counter() - begun)
    return min(times) * 1e6


def compiled(markers: Sequence[str], tag: str) -> Callable[[], Any]:
    """Return a run that compiles a tag as vLLM's engine does, for the vocabulary tekken with these markers."""
    import xgrammar

    words = vocabulary("tekken", tuple(markers))
    info = xgrammar.TokenizerInfo(
        list(words.tokens), vocab_type=xgrammar.VocabType.RAW, stop_token_ids=[words.eos_token_id]
    )
    compiler = xgrammar.GrammarCompiler(info, max_threads=8, cache_enabled=True)  # which has compiled nothing yet
    return lambda: compiler.compile_structural_tag(tag)


def checked(tag: Any) -> Callable[[], Any]:
    """Return a run of the check that vLLM's server makes of a grammar that it has not seen."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.structured_output.backend_xgrammar import validate_xgrammar_grammar

    asked = SamplingParams(structured_outputs=tag)
    return lambda: validate_xgrammar_grammar(asked)


def row(tool_parser: str, reasoning_parser: str | None, strict: bool, size: int) -> str:
    """The row of a pair of parsers and a number of functions."""
    markers = list(toolgram.get_format(tool_parser.removeprefix("toolgram_")).program.special.values())
    server = Server(Pieces([], markers), tool_parser, reasoning_parser)

    def asking(given: list[dict[str, Any]]) -> Any:
        return server.request(given, tool_choice="required")

    def adjusted(given: list[dict[str, Any]]) -> Callable[[], Any]:
        request = asking(given)
        return lambda: server.adjusted(request, [0])

    adjusted(tools(1, "warm"))()
    known = tools(size + RUNS, "known", strict)
    adjusted(known)()
    new = [tools(size, f"new{at}", strict) for at in range(5)]
    first = fastest(map(adjusted, new))
    others = fastest(adjusted([*known[at + 1 : at + size], known[at]]) for at in range(RUNS))
    again = fastest(adjusted(new[0]) for _ in range(RUNS))
    request = asking(known[:size])
    made = fastest([lambda: server.made(request)] * RUNS)
    tags = [adjusted(each)().structured_outputs for each in new]
    check = fastest(map(checked, tags))
    engine = fastest(compiled(markers, tags[0].structural_tag) for _ in range(3))
    cells = [f"{size}", *(f"{each:,.0f}" for each in (first, others, again, check, made)), f"{engine / 1000:.0f}"]
    return f"| `{tool_parser}`{', strict' * strict} | " + " | ".join(cells) + " |"


def main() -> None:
    """Print the table, or put it into a page."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("--write", metavar="PAGE", type=Path)
    given = options.parse_args()
    lines = [f"| parsers, microseconds | {' | '.join(COLUMNS)} |", "|---" * (1 + len(COLUMNS)) + "|"]
    lines += [row(*each, size) for each in ROWS for size in SIZES]
    text = "\n".join(lines) + "\n"
    if given.write is None:
        print(text)
    else:
        write_part(given.write, BEGIN, END, text)


if __name__ == "__main__":
    main()
