"""Print each character of an output in the colour of its event, or with a label if there are no colours.

Strategy: every event carries the characters that belong to it (conservation). So this module writes the `source` of
each event in the style of its kind, as it arrives. Dropped blanks are shown as symbols, because a coloured blank is
still invisible. Control characters are escaped first, so that the terminal does not obey a model's escape sequences.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from toolgram import Message
from toolgram.cli.terminal import console, shortened, spelled_out
from toolgram.events import Event
from toolgram.explain import OWNER_OF, Explanation

# kind of event: (style, meaning)
OWNERS = {
    "content": ("", "text for the user"),
    "reasoning": ("italic magenta", "the model's thinking"),
    "name": ("bold cyan", "the function a call names"),
    "arguments": ("yellow", "what it is called with"),
    "dropped": ("dim reverse", "markers, separators and blanks at a seam"),
    "malformed": ("bold white on red", "meant as structure, not readable as such"),
}
LONGEST_QUOTE = 40
DRAWN_BREAKS = str.maketrans({"\t": "␉", "\n": "␤"})
DRAWN_BLANKS = DRAWN_BREAKS | {ord(" "): "␠"}


def painter() -> Labels:
    """Return a painter with colours if the terminal has them and NO_COLOR is not set; with labels otherwise."""
    out = console()
    return Labels(out) if out.color_system is None or out.no_color else Colours(out)


class Labels:
    """Print one line per run of events of one kind: `[name] add`. For pipes, dumb terminals and NO_COLOR."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._owner = ""
        self._stretch: list[str] = []

    def legend(self) -> None:
        """Print what the labels mean."""
        for owner, (_, meaning) in OWNERS.items():
            self._line(Text(f"{f'[{owner}]':<12} {meaning}"))
        self._line(Text())

    def heading(self, title: str) -> None:
        """Print a heading for the next output."""
        self._line(Text(f"== {spelled_out(title)}", "bold"))

    def paint(self, event: Event) -> None:
        """Show the characters of one event."""
        owner = OWNER_OF[event.type]
        if event.source and owner != self._owner:
            self.lift()
            self._owner = owner
        self._stretch.append(event.source)

    def lift(self) -> None:
        """End the output."""
        if text := spelled_out("".join(self._stretch)):
            drawn = DRAWN_BLANKS if self._owner == "dropped" or text.isspace() else DRAWN_BREAKS
            self._line(Text(f"{f'[{self._owner}]':<12} {text.translate(drawn)}"))
        self._owner = ""
        self._stretch.clear()

    def notes(self, message: Message) -> None:
        """Print the anomalies of the whole output. Long text is cut, because it was just printed in full."""
        for odd in message.anomalies:
            self._line(Text(spelled_out(f"{odd.kind} {shortened(odd.text, LONGEST_QUOTE)!r}: {odd.said}"), "red"))

    def _line(self, text: Text) -> None:
        self._console.print(text)
        self._console.file.flush()


class Colours(Labels):
    """Print each character in the colour of its event, in its place."""

    _at_line_start = True

    def legend(self) -> None:
        """Print what the colours mean."""
        for owner, (style, meaning) in OWNERS.items():
            self._line(Text.assemble((f"{owner:<9}", style), "  ", (meaning, "dim")))
        self._line(Text())

    def paint(self, event: Event) -> None:
        """Show the characters of one event."""
        if event.source:
            owner = OWNER_OF[event.type]
            text = spelled_out(event.source)
            if owner == "dropped":
                text = text.translate(DRAWN_BLANKS | {ord("\n"): "␤\n"})  # which still breaks the line
            self._console.print(Text(text, OWNERS[owner][0]), end="")
            self._console.file.flush()
            self._at_line_start = text.endswith("\n")

    def lift(self) -> None:
        """End the output, and its line."""
        if not self._at_line_start:
            self._line(Text())
        self._at_line_start = True


def paint(told: Explanation) -> None:
    """Print an output, each character in the colour of its event."""
    brush = painter()
    if isinstance(brush, Colours):
        brush.legend()
    for piece in told.pieces:
        brush.paint(piece.event)
    brush.lift()
