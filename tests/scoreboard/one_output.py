"""One output, read by each peer in many ways: the first section of docs/scoreboard.md.

    python -m tests.scoreboard.one_output [--peers .venv-peers/bin/python] [--write docs/scoreboard.md]

Strategy: the page has the output, and the table of how it is read.  Each peer is asked as for the
scoreboard (`__main__`): by its call for whole outputs, and as a stream, in deltas of each of `SIZES`.  Readings that
are equal are one row.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.page_parts import write_part
from tests.scoreboard.__main__ import PEERS, ROOT, ask
from tests.scoreboard.cases import Case, Questions

PAGE = ROOT / "docs" / "scoreboard.md"
FORMAT = "llama3_json"
READ_BY = ("vllm", "sglang", "toolgram")
SIZES = (1, 2, 3, 4, 8, 17, 1_000_000)  # characters of a delta; the last one is the whole text in one
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]
BEGIN, END = "<!-- table: written by `make one-output` -->", "<!-- end of table -->"
HEAD = ("| read by | content | calls |", "|---|---|---|")


def output_of(page: str) -> str:
    """The output that the page shows first."""
    return page.split("```text\n", 1)[1].split("\n```", 1)[0]


def question(text: str) -> dict[str, Any]:
    """What each peer is asked."""
    case = Case("one", "", FORMAT, text, TOOLS, None, None, None, ())
    return {**Questions().of(case), "sizes": SIZES}


def rows(name: str, version: str, parser: str | None, runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The rows of one peer: the whole text, and the streams, those that gave the same together."""
    shown = [_shown(run) for run in runs]
    peer = f"{PEERS[name]} {version}" + (f", `{parser}`" if parser else "")
    if len(set(shown)) == 1:
        return [f"| {peer}, whole or streamed, however it is split | {shown[0]} |"]
    streamed = Counter(shown[1:])
    ways = [
        f"| {peer}, streamed, {count} of {len(SIZES)} ways to split it | {said} |" for said, count in streamed.items()
    ]
    return [f"| {peer}, whole | {shown[0]} |", *ways]


def _shown(run: Mapping[str, Any]) -> str:
    if "raised" in run:
        return f"raised `{run['raised']}` | "
    calls = ", ".join(f"`{name}({arguments})`" for name, arguments in run["calls"])
    content = run["content"].strip().replace("\n", " ")
    return f"{f'`{content}`' if content else 'none'} | {calls or 'none'}"


def table(text: str, interpreter: str) -> list[str]:
    """The table. Raises SystemExit where a peer cannot be run: a table of some would say too little."""
    asked, lines = question(text), [*HEAD]
    for name in READ_BY:
        peer = ask(name, sys.executable if name == "toolgram" else interpreter, [asked])
        if peer.problem or "runs" not in peer.answers["one"]:
            sys.exit(f"{PEERS[name]}: {peer.problem or peer.answers['one']}")
        lines += rows(name, peer.version, asked[name][0] if name in asked else FORMAT, peer.answers["one"]["runs"])
    return lines


def main() -> None:
    """Print the table, or write it."""
    arguments = argparse.ArgumentParser(prog="python -m tests.scoreboard.one_output")
    arguments.add_argument("--peers", default=str(ROOT / ".venv-peers/bin/python"), help="the interpreter of the peers")
    arguments.add_argument("--write", metavar="FILE", type=Path)
    options = arguments.parse_args()
    page = (options.write or PAGE).read_text(encoding="utf-8")
    text = "\n".join(table(output_of(page), options.peers))
    print(text)
    if options.write:
        write_part(options.write, BEGIN, END, text)


if __name__ == "__main__":
    main()
