"""`toolgram try`: paste an output, get the format that reads it, the message, and the explanation.

Strategy: every shipped format reads the text, and the one that finds the most wins: complete calls, then calls that
were cut off, then the least text left, then the fewest anomalies. Formats that differ in markers which this text does
not hold read it alike; of those the one with the most known names is shown, and the others are named beside it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import typer
from rich.console import Console
from rich.text import Text

import toolgram
from toolgram.cli.options import FinishReason, OutputFile, Prefix, Tools, read_tools
from toolgram.cli.paint import Colours, painter
from toolgram.cli.source import Unreadable, pieces
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, quiet_endings, spelled_out, write_json
from toolgram.explain import Explanation
from toolgram.names import Entry, known_names

MOST_SHOWN = 6
Rank = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Trial:
    """What a format makes of the text; a greater `rank` has found more."""

    format: toolgram.Format
    message: toolgram.Message
    rank: Rank
    markers: bool  # whether it found any


def try_output(
    file: OutputFile = "-",
    tools: Tools = None,
    prefix: Prefix = None,
    finish_reason: FinishReason = None,
) -> None:
    """Paste an output: see its format, its message, and why.

    \b
    toolgram try              paste, then Ctrl-D
    toolgram try output.txt

    Exit status: 0 some format finds a call or reasoning in it; 1 none does, or the file cannot be read; 2 a mistake in
    the command.
    """
    with quiet_endings():
        if file == "-" and sys.stdin is not None and sys.stdin.isatty():
            complain("paste the output of a model; end it with Ctrl-D")
        try:
            text = "".join(pieces(file))
        except Unreadable as error:
            complain(str(error))
            raise typer.Exit(NOTHING_USABLE) from None
        declared = read_tools(tools)
        trials = [
            trial(toolgram.get_format(name), text, declared, prefix, finish_reason) for name in toolgram.format_names()
        ]
        best = max(trials, key=lambda each: (each.rank, _known(each.format)))
        if not best.message.tool_calls and not best.markers:
            complain("no shipped format finds a call or a marker in it: it is text for all of them")
            complain(
                "with its chat template: toolgram derive TEMPLATE; what ships for a model: toolgram formats --for MODEL"
            )
            raise typer.Exit(NOTHING_USABLE)
        alike = [each.format.name for each in trials if each.rank == best.rank and each is not best]
        _show(best, alike, best.format.explain(text, declared, prefix, finish_reason), file)
    raise typer.Exit(USABLE)


def trial(
    fmt: toolgram.Format,
    text: str,
    tools: list[dict[str, object]] | None = None,
    prefix: str | None = None,
    finish_reason: str | None = None,
) -> Trial:
    """Read the text with one format."""
    message = fmt.parse(text, tools=tools, prefix=prefix, finish_reason=finish_reason)
    complete = sum(call.status == "complete" for call in message.tool_calls)
    left = _letters(message.content or "") + _letters(message.reasoning or "")
    rank = (complete, len(message.tool_calls) - complete, -len(message.malformed), -left, -len(message.anomalies))
    return Trial(fmt, message, rank, left < _letters(text))


def _letters(text: str) -> int:
    return len("".join(text.split()))


def _known(fmt: toolgram.Format) -> int:
    """How many names of servers and models stand for this format."""
    entry = known_names().entries.get(fmt.name, Entry())
    return len(entry.aliases) + len(entry.models)


def _show(best: Trial, alike: list[str], told: Explanation, file: str) -> None:
    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
    console.print(Text.assemble(("format  ", "dim"), (best.format.name, "bold cyan"), f"  {best.format.title}"))
    if alike:
        more = f" and {len(alike) - MOST_SHOWN} more" if len(alike) > MOST_SHOWN else ""
        console.print(Text.assemble(("        ", "dim"), f"read alike by {', '.join(alike[:MOST_SHOWN])}{more}"))
    console.print()
    brush = painter()
    if isinstance(brush, Colours):
        brush.legend()
    for piece in told.pieces:
        brush.paint(piece.event)
    brush.lift()
    console.print()
    write_json(best.message.to_dict(), indent=2)
    console.print()
    console.print(Text(spelled_out(told.verdict), "bold"))
    for anomaly in told.anomalies:
        console.print(Text(spelled_out(f"{'' if anomaly.offset is None else anomaly.offset:>8}  {anomaly.words}")))
    path = "output.txt" if file == "-" else file
    console.print(Text(spelled_out(f"more: toolgram explain --format {best.format.name} {path}"), "dim"))
