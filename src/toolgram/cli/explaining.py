"""`toolgram explain`: print a summary of how an output was parsed, then the details.

Strategy: the library explains, this module prints. A repeated transition to its own state is one line with a count.
Control characters are escaped before anything is printed, because names, markers and quoted text come from a model.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.text import Text

from toolgram.cli.paint import paint
from toolgram.cli.parsing import Verdict
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, indent_for_terminal, spelled_out, write_json
from toolgram.cli.trying import awaited, recognised, tied
from toolgram.explain import Candidate, Explanation, Held, Step
from toolgram.formats import Format, get_format
from toolgram.runtime.stream import READ_AGAIN, REJECTED

LONGEST_QUOTE = 60
OUTCOME_STYLES = {"committed": "green", REJECTED: "red", "ended": "yellow"}


def print_explanation(
    fmt: Format | None, tools: Any, prefix: str | None, finish_reason: str | None, path: str, as_json: bool
) -> int:
    """Explain one output. If no format is given, use the one that is recognised.

    The exit status shows whether the output has anything usable.
    """
    text = awaited(path)
    if fmt is None:
        found = recognised(text, tools, prefix, finish_reason)
        if found is None:
            return NOTHING_USABLE
        complain(f"format {found.name}: {tied(found)}")
        fmt = get_format(found.name)
    told = fmt.explain(text, tools, prefix, finish_reason)
    if as_json:
        write_json(told.to_dict(), indent=indent_for_terminal())
    else:
        _print(told)
    verdict = Verdict()
    for piece in told.pieces:
        verdict.watch(piece.event)
    return USABLE if verdict.usable else NOTHING_USABLE


def _print(told: Explanation) -> None:
    console = Console(highlight=False, markup=False, emoji=False)
    _line(console, Text(told.verdict, "bold"))
    if told.pieces:
        _heading(console, "the event that each character belongs to")
        paint(told)
    _heading(console, "the path through the machine, by offset")
    for line in _path(told.path):
        _line(console, line)
    if told.held:
        _heading(console, "held back until it was certain whether it is a call")
        for region in told.held:
            _line(console, _held(region))
    if told.anomalies:
        _heading(console, "anomalies")
        for oddity in told.anomalies:
            _line(console, Text(f"{'' if oddity.offset is None else oddity.offset:>8}  {oddity.words}"))
    if better := [alternative for alternative in told.alternatives if alternative.better]:
        _heading(console, "other formats that read more of this text")
        width = max(len(alternative.name) for alternative in better)
        for alternative in better:
            _line(console, _alternative(alternative, width))


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
    text = region.text if len(region.text) <= LONGEST_QUOTE else region.text[: LONGEST_QUOTE - 1] + "…"
    shown = repr(text) if text else "(begun by the prompt)"
    return Text.assemble(
        f"{region.start:>8}  {shown}\n{'':>10}",
        (region.outcome, OUTCOME_STYLES[region.outcome]),
        f" at {region.decided_at} in {region.state}: {region.why}",
    )


def _alternative(alternative: Candidate, width: int) -> Text:
    return Text(f"{'':>10}{alternative.name:<{width}}  {alternative.why}", "green")


def _heading(console: Console, title: str) -> None:
    console.print()
    _line(console, Text(title, "bold underline"))


def _line(console: Console, line: Text) -> None:
    """Print a line with its control characters escaped. `repr` has already escaped the model's line breaks."""
    safe = Text(spelled_out(line.plain), line.style)
    if len(safe.plain) == len(line.plain):
        safe.spans = line.spans
    console.print(safe, soft_wrap=True)
