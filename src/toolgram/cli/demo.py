"""`toolgram demo`: stream an output of every shipped format through its parser, one screen each.

Strategy: each line is one delta, as a server would receive it. The text of the model is on the left, the events of the
parser are on the right, with dropped text in grey. An empty right side means that the text is held, because its meaning
is not certain yet. The size of a delta is chosen so that all of them fit on a screen.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

import toolgram
from toolgram.cli.options import FormatList
from toolgram.cli.paint import OWNERS
from toolgram.cli.source import cut
from toolgram.cli.terminal import console, refuse, spelled_out
from toolgram.events import Event
from toolgram.explain import OWNER_OF

MOST_LINES = 14  # of deltas: with the heading and the message below them, a screen of 24 lines
STYLES = {kind: OWNERS[owner][0] for kind, owner in OWNER_OF.items()}


def demo(
    names: FormatList = None,
    pause: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="How long to wait after each delta, on a terminal.")
    ] = 0.02,
) -> None:
    """Watch an output of every format being read, delta by delta.

    \b
    toolgram demo                  all formats; Ctrl-C ends it
    toolgram demo hermes gpt_oss   these two
    """
    try:
        shown = [toolgram.get_format(name) for name in names or toolgram.format_names()]
    except toolgram.UnknownFormat as error:
        refuse(error)
    out = console(wrap=True)
    for fmt in shown:
        out.rule(Text(f"{fmt.name}: {fmt.title}"), style="dim")
        for line in screen(fmt):
            out.print(line, no_wrap=True, overflow="ellipsis")
            if out.is_terminal:
                time.sleep(pause)
        out.print()


def screen(fmt: toolgram.Format) -> Iterator[Text]:
    """Yield the lines of one format: its example in deltas with their events, and the final message."""
    parser = fmt.parser()
    size = max(4, -(-len(fmt.example) // MOST_LINES))
    for delta in cut([fmt.example], size):
        yield _line(delta, parser.feed(delta), size)
    yield _line("", parser.close("stop"), size)
    message = parser.message
    calls = [f"{call.name}({call.arguments}) {call.status}" for call in message.tool_calls]
    said = [("reasoning", message.reasoning), ("content", message.content), *(("call", each) for each in calls)]
    for label, text in said:
        if text:
            style = STYLES.get(label, STYLES["tool_call_start"])
            yield Text.assemble((f"⇒ {label:<10}", "bold"), (_on_one_line(text), style))


def _line(delta: str, events: list[Event], size: int) -> Text:
    line = Text(f"{_on_one_line(delta):<{size}}", "dim").append(" │ ", "dim")
    return line.append(Text("  ").join(_said(event) for event in events))


def _said(event: Event) -> Text:
    """Return the event in a few characters: its kind and its contents."""
    match event.type:
        case "content" | "reasoning" | "malformed":
            said = f"{event.type} {json.dumps(event.text, ensure_ascii=False)}"
        case "dropped":
            said = event.text
        case "tool_call_start":
            said = f"call {event.index} {event.name}("
        case "tool_call_delta":
            said = event.arguments
        case "tool_call_end":
            said = f") {event.status}"
    return Text(_on_one_line(said), STYLES[event.type])


def _on_one_line(text: str) -> str:
    return spelled_out(text.replace("\n", "␤"))
