"""`toolgram audit`: report what a server lost, from its logs, on a terminal, as JSON, or as a page."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer
from rich.text import Text

from toolgram.cli.options import FormatOption, Json
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, console, refuse, spelled_out, write_file, write_json
from toolgram.errors import UnknownFormat
from toolgram.explain.explanation import counted

MOST_SHOWN = 3  # examples of a kind on a terminal; JSON and the page have all


def audit(
    logs: Annotated[list[str], typer.Argument(metavar="LOGS", help="Files, directories or patterns.")],
    format_name: FormatOption = None,
    html: Annotated[str | None, typer.Option(metavar="FILE", help="Write a page that needs no network.")] = None,
    as_json: Json = False,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of processes. Default: one per core.")
    ] = None,
) -> int:
    """Say what a server lost, from its logs.

    Reads what servers log: OpenAI's chat and Responses, Anthropic, vLLM, llama.cpp, LiteLLM, raw completions; JSON
    lines, .gz, .zst and Parquet. The format is recognised for each model. Calls that were returned are compared with
    those in the text: lost, invented, cut off, with wrong arguments; markers and thoughts in the content. A log that
    has the raw text beside the answer shows the most: `raw`, `output` or `text`.

    \b
    toolgram audit logs/                          the table and some examples
    toolgram audit requests.jsonl --html lost.html  ten examples of each kind, coloured

    Exit status: 0 nothing was lost; 1 something was, or nothing could be read; 2 a mistake in the command.
    """
    from toolgram.audit import audit as run

    try:
        found = run(logs, format_name, workers or os.cpu_count() or 1)
    except UnknownFormat as error:
        refuse(error)
    for problem in found.problems:
        complain(problem)
    said = found.to_dict()
    if html is not None:
        from toolgram.audit.page import page

        write_file(html, page(found))
    if as_json:
        write_json(said)
    else:
        _print(said)
    clean = found.rows > found.unread and not found.problems and not any(said["found"].values())
    return USABLE if clean else NOTHING_USABLE


def _print(said: dict[str, Any]) -> None:
    out = console()
    unread = f" ({said['unread']:,} of no known shape)" if said["unread"] else ""
    calls = f"{counted(said['returned'], 'call')} returned, {said['written']:,} in the text"
    out.print(f"{counted(said['rows'], 'row')}{unread}: {calls}")
    if any(said["found"].values()):
        out.print(Text(_counted(said["found"]), "bold red"))
    elif said["rows"] > said["unread"]:
        compared = any(each["answers"] > each["unsaid"] for each in said["models"])
        out.print(Text("nothing lost", "bold green") if compared else Text("nothing can be compared", "bold yellow"))
    if unsaid := said["unsaid"]:
        out.print(f"without the calls that were returned, beside their text: {counted(unsaid, 'answer')}")
    for each in said["models"]:
        name = Text(spelled_out(f"\n{each['model'] or '(no model said)'}"), "bold")
        out.print(
            name, Text(f"format {each['format'] or 'none'}; {counted(each['answers'], 'answer')}", "cyan"), sep="  "
        )
        counts = {name: each.get(name, 0) for name in ("returned", "written", *said["found"])}
        out.print(Text(f"  {_counted(counts) or 'no calls'}"))
        out.print(Text(f"  what reads it: {each['advice']}", "dim"))
    out.print()
    for kind, examples in said["examples"].items():
        for each in examples[:MOST_SHOWN]:
            out.print(Text(spelled_out(f"{kind}: {each['why']} ({each['file']}, row {each['row']})")))


def _counted(counts: dict[str, int]) -> str:
    """Return numbers and kinds. A kind that is a noun is what answers have."""
    return ", ".join(f"{n:,} {'with ' * kind.endswith('s')}{kind}" for kind, n in counts.items() if n)
