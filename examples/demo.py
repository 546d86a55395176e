"""Stream bundled outputs of every shipped format through the parser and watch the events come out.

Each line is one delta, as a server would receive it: on the left the text of the model, on the right the events
of the parser. An empty right side means that the text is held, because its meaning is not certain yet.

    make demo
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

from rich.console import Console
from rich.text import Text

import toolgram
from toolgram import Message
from toolgram.events import Event

OUTPUTS = Path(__file__).parent / "outputs"
DELTA_SIZES = (9, 4, 14, 7, 11)
PAUSE = 0.02
STYLES = {
    "content": "green",
    "reasoning": "italic magenta",
    "tool_call_start": "bold cyan",
    "tool_call_delta": "yellow",
    "tool_call_end": "cyan",
    "dropped": "dim",
    "malformed": "bold red",
}


def main() -> None:
    """Stream every bundled output; the file's name says its format: `<format>.<what it shows>.txt`."""
    console = Console(highlight=False, soft_wrap=True)
    for path in sorted(OUTPUTS.glob("*.txt")):
        name, what = path.stem.split(".")
        fmt = toolgram.get_format(name)
        console.print(Text(f"\n━━ {fmt.name}: {what.replace('_', ' ')} ({', '.join(fmt.models)})", "bold"))
        console.print(_stream(console, fmt, path.read_text(encoding="utf-8")))


def _stream(console: Console, fmt: toolgram.Format, text: str) -> Text:
    parser = fmt.parser()
    for delta in _deltas(text):
        console.print(_line(delta, parser.feed(delta)))
        if console.is_terminal:
            time.sleep(PAUSE)
    console.print(_line("(end)", parser.close()))
    return _summary(parser.message)


def _deltas(text: str) -> Iterator[str]:
    """Split the text without regard to its meaning, as tokens do."""
    start = 0
    for size in cycle(DELTA_SIZES):
        if start >= len(text):
            return
        yield text[start : start + size]
        start += size


def _line(delta: str, events: list[Event]) -> Text:
    left = delta.replace("\n", "␤")
    line = Text(f"{left:<16}", "dim").append("│ ", "dim")
    return line.append(Text("  ").join(_said(event) for event in events))


def _said(event: Event) -> Text:
    """The event in a few characters: its kind and its contents."""
    match event.type:
        case "content" | "reasoning" | "malformed":
            said = f"{event.type} {json.dumps(event.text, ensure_ascii=False)}"
        case "tool_call_start":
            said = f"call {event.index} {event.name}("
        case "tool_call_delta":
            said = event.arguments.replace("\n", "␤")
        case "tool_call_end":
            said = f") {event.status}"
        case "dropped":
            said = f"dropped {json.dumps(event.text, ensure_ascii=False)}"
    return Text(said, STYLES[event.type])


def _summary(message: Message) -> Text:
    lines = [("reasoning  ", message.reasoning or "", "reasoning"), ("content    ", message.content or "", "content")]
    lines += [
        ("call       ", f"{call.name}({call.arguments}) {call.status} {call.id}", "tool_call_start")
        for call in message.tool_calls
    ]
    lines.append(("finish     ", str(message.finish_reason), "dropped"))
    return Text("\n").join(
        Text.assemble(("⇒ " + label, "bold"), (text.replace("\n", "␤"), STYLES[kind]))
        for label, text, kind in lines
        if text
    )


if __name__ == "__main__":
    main()
