"""`toolgram diagram`: draw the states of a format, to a file or as Mermaid text on standard output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from toolgram import Format, ToolgramError
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain, refuse, spelled_out

if TYPE_CHECKING:
    from toolgram.diagrams import Kind, Level

ENDINGS: dict[str, Kind] = {".svg": "svg", ".mmd": "mermaid", ".dot": "dot"}


def draw(fmt: Format, output: str | None, level: Level) -> int:
    """Draw the format. Return exit status 1 if a package is missing, or the file cannot be written."""
    kind = "mermaid" if output is None else ENDINGS.get(Path(output).suffix.lower())
    if kind is None:
        refuse(f"{output}: the ending chooses the kind of diagram; it is one of {', '.join(ENDINGS)}")
    try:
        drawn = fmt.diagram(kind, level)
    except ToolgramError as error:
        complain(str(error))
        return NOTHING_USABLE
    if output is None:
        print(spelled_out(drawn), end="")
        return USABLE
    try:
        Path(output).write_text(drawn, encoding="utf-8", newline="\n")
    except OSError as error:
        complain(f"{output}: cannot be written: {error.strerror or error}")
        return NOTHING_USABLE
    return USABLE
