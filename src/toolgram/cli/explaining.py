"""`toolgram explain`: print a summary of how an output was parsed, then the details.

Strategy: the library explains, this module prints. A repeated transition to its own state is one line with a count.
Control characters are escaped before anything is printed, because names, markers and quoted text come from a model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Annotated

import typer
from rich.text import Text

from toolgram.cli import options
from toolgram.cli.options import load_chosen_format, read_tools
from toolgram.cli.paint import paint
from toolgram.cli.parsing import Verdict
from toolgram.cli.records import recorded
from toolgram.cli.source import pieces
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, console, shortened, spelled_out, write_json
from toolgram.cli.trying import recognised, tied
from toolgram.explain import Explanation, Held, Step
from toolgram.formats import get_format
from toolgram.runtime.stream import READ_AGAIN, REJECTED

LONGEST_QUOTE = 60
OUTCOME_STYLES = {"committed": "green", REJECTED: "red", "ended": "yellow"}


def explain(
    file: options.OutputFile = "-",
    format_name: options.FormatOption = None,
    grammar: options.Grammar = None,
    machine: options.Machine = None,
    tools: options.Tools = None,
    prefix: options.Prefix = None,
    finish_reason: options.FinishReason = None,
    row: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Of a record of `serve --record`. Default: the last row.")
    ] = None,
    as_json: options.Json = False,
) -> int:
    """Explain how an output was parsed.

    Why was my tool call not parsed? A summary comes first. Then the details: the event of each character, the path
    through the machine, what text was held back and why it was released, anomalies, and what the other formats would
    have found.

    \b
    toolgram explain output.txt                         the format is recognised
    toolgram explain --format mistral_v11 output.txt    with a named format
    toolgram explain record.jsonl                       the last row of `serve --record`
    toolgram explain -f llama3_json --json output.txt   for programs

    Exit status: 0 the output has something to use; 1 it has nothing, or the file cannot be read; 2 a mistake in the
    command.
    """
    fmt, declared = load_chosen_format(format_name, grammar, machine), read_tools(tools)
    text = "".join(pieces(file))
    if (kept := recorded(text, file, row)) is not None:
        fmt, text, declared = fmt or kept["format"], kept["output"], declared or kept["tools"]
        prefix, finish_reason = kept["prefix"] if prefix is None else prefix, finish_reason or kept["finish_reason"]
    if fmt is None:
        found = recognised(file, text, declared, prefix, finish_reason)
        if found is None:
            return NOTHING_USABLE
        complain(f"format {found.name}: {tied(found)}")
        fmt = get_format(found.name)
    told = fmt.explain(text, declared, prefix, finish_reason)
    if as_json:
        write_json(told.to_dict())
    else:
        _print(told)
    verdict = Verdict()
    for piece in told.pieces:
        verdict.watch(piece.event)
    return USABLE if verdict.usable else NOTHING_USABLE


def _print(told: Explanation) -> None:
    _line(Text(told.verdict, "bold"))
    if told.pieces:
        _section("the event that each character belongs to", ())
        paint(told)
    _section("the path through the machine, by offset", _path(told.path))
    if told.held:
        _section("held back until it was certain whether it is a call", map(_held, told.held))
    if told.anomalies:
        _section("anomalies", (Text(str(oddity)) for oddity in told.anomalies))
    if better := [each for each in told.alternatives if each.better]:
        width = max(len(each.name) for each in better)
        lines = (Text(f"{'':>10}{each.name:<{width}}  {each.why}", "green") for each in better)
        _section("other formats that read more of this text", lines)


def _path(path: list[Step]) -> Iterator[Text]:
    """Yield one line per transition. Repetitions of one that leads back to its own state share a line."""
    width = max((len(step.trigger) for step in path), default=0) + 5
    if path:
        yield Text.assemble(f"{'':>8}  {'':<{width}}  ", (path[0].source, "cyan"))
    loop = groupby(enumerate(path), lambda at: (at[1].trigger, at[1].dest) if at[1].source == at[1].dest else at[0])
    for _, same in loop:
        steps = [step for _, step in same]
        first = steps[0]
        trigger = first.trigger if len(steps) == 1 else f"{first.trigger} x{len(steps)}"
        offset = "prompt" if first.offset is None else first.offset
        style = "red" if first.trigger in (READ_AGAIN, REJECTED, "malformed") else ""
        yield Text.assemble(f"{offset:>8}  ", (f"{trigger:<{width}}", style), "  ", (first.dest, "cyan"))


def _held(region: Held) -> Text:
    shown = repr(shortened(region.text, LONGEST_QUOTE)) if region.text else "(begun by the prompt)"
    return Text.assemble(
        f"{region.start:>8}  {shown}\n{'':>10}",
        (region.outcome, OUTCOME_STYLES[region.outcome]),
        f" at {region.decided_at} in {region.state}: {region.why}",
    )


def _section(title: str, lines: Iterable[Text]) -> None:
    """Print a heading and its lines."""
    for line in (Text(), Text(title, "bold underline"), *lines):
        _line(line)


def _line(line: Text) -> None:
    """Print a line with its control characters escaped. `repr` has already escaped the model's line breaks."""
    safe = Text(spelled_out(line.plain), line.style)
    if len(safe.plain) == len(line.plain):
        safe.spans = line.spans
    console().print(safe)
