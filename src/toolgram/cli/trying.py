"""`toolgram try`: show the format that reads a pasted output, the message, and the explanation.

Strategy: the recogniser ranks the shipped formats. The first is shown, and formats that read the text alike are named
beside it.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

import toolgram
from toolgram.bulk.inputs import named
from toolgram.cli.options import FinishReason, OutputFile, Prefix, Tools, read_tools
from toolgram.cli.paint import paint
from toolgram.cli.playground_link import playground_link
from toolgram.cli.source import pieces
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, console, spelled_out, write_json
from toolgram.explain import Candidate, Explanation, recognise
from toolgram.explain.recognising import is_found

MOST_SHOWN = 6


def try_output(
    file: OutputFile = "-",
    tools: Tools = None,
    prefix: Prefix = None,
    finish_reason: FinishReason = None,
    link: Annotated[
        bool,
        typer.Option(
            "--link",
            help="Print a link to the playground, for a bug report: that of `make site`, or TOOLGRAM_PLAYGROUND.",
        ),
    ] = False,
) -> int:
    """Paste an output: see its format, its message, and why.

    Which command when: `try` for one output whose format is not known; `explain` for why one output was read as it was;
    `doctor` for a format and a chat template; `audit` for the logs of a server.

    \b
    toolgram try              paste, then Ctrl-D
    toolgram try output.txt
    toolgram try --link output.txt   a link for a bug report

    Exit status: 0 some format finds a call or reasoning in it; 1 none does, or the file cannot be read; 2 a mistake in
    the command.
    """
    declared, text = read_tools(tools), "".join(pieces(file))
    best = recognised(file, text, declared, prefix, finish_reason)
    if best is None:
        return NOTHING_USABLE
    fmt = toolgram.get_format(best.name)
    if link:
        message = fmt.parse(text, tools=declared, prefix=prefix, finish_reason=finish_reason)
        print(playground_link(text, fmt.name, declared, prefix, message.to_dict()))
    else:
        _show(fmt, best, fmt.explain(text, declared, prefix, finish_reason), file)
    return USABLE


def recognised(file: str, text: str, tools: Any, prefix: str | None, finish_reason: str | None) -> Candidate | None:
    """Return the format that reads the most of an output; None, with a complaint, if none finds anything in it."""
    best = recognise([text], tools, prefix, finish_reason)[0]
    if is_found(best):
        return best
    advice = "Derive one with `toolgram derive TEMPLATE`, or look a model up with `toolgram formats --for MODEL`"
    complain(f"{named(file)}: no shipped format finds a call in it. {advice}.")
    return None


def tied(found: Candidate) -> str:
    """Return why a format comes first, and which formats read the text alike."""
    more = f" and {len(found.alike) - MOST_SHOWN} more" if len(found.alike) > MOST_SHOWN else ""
    alike = f"; read alike by {', '.join(found.alike[:MOST_SHOWN])}{more}" if found.alike else ""
    return found.why + alike


def _show(fmt: toolgram.Format, best: Candidate, told: Explanation, file: str) -> None:
    out = console()
    out.print(Text.assemble(("format  ", "dim"), (fmt.name, "bold cyan"), f"  {fmt.title}"))
    out.print(Text.assemble(("        ", "dim"), tied(best)))
    out.print()
    paint(told)
    out.print()
    write_json(told.message.to_dict(), indent=2)
    out.print()
    out.print(Text(spelled_out(told.verdict), "bold"))
    for anomaly in told.anomalies:
        out.print(Text(spelled_out(str(anomaly))))
    path = "output.txt" if file == "-" else file
    out.print(Text(spelled_out(f"more: toolgram explain --format {fmt.name} {path}"), "dim"))
