"""The machine of a format as a diagram: Mermaid, Graphviz's dot language, or SVG; at two levels.

* `path`, the *happy path*: a few boxes, which the format's own examples go through (`happy_path`).
* `whole`: every state and every transition of the composed machine (`whole`).

Strategy: both levels make a `Picture` of boxes and edges.  `languages` gives it to the diagrams of `transitions`.
"""

from __future__ import annotations

import re

from toolgram.diagrams.happy_path import WIDEST_LINE, happy_path
from toolgram.diagrams.kinds import KINDS, LEVELS, Kind, Level
from toolgram.diagrams.languages import draw_dot, draw_mermaid, draw_svg
from toolgram.diagrams.whole import whole
from toolgram.diagrams.words import trigger_in_words
from toolgram.errors import ToolgramError
from toolgram.formats import Format

WIDEST = 930  # pixels: at 400, the letters of labels have 6
LINES = (WIDEST_LINE, 18)  # characters of a line of labels


def diagram(fmt: Format, kind: Kind = "mermaid", level: Level = "path") -> str:
    """Return the state diagram of a format: its happy path, or the whole machine.

    `mermaid` needs nothing installed, `dot` the Python package `graphviz`, `svg` the Python package `mermaid-render`
    (both: extra `diagrams`). An SVG takes up to 0.1 s, the first one 0.4 s.
    Raises ToolgramError for another kind or level, and if what it needs is missing.
    """
    if level not in LEVELS:
        raise ToolgramError(f"unknown level of a diagram {level!r}; known levels: {', '.join(LEVELS)}")
    if kind not in KINDS:
        raise ToolgramError(f"unknown kind of diagram {kind!r}; known kinds: {', '.join(KINDS)}")
    if kind == "svg" and level == "path":
        return _narrow_svg(fmt)
    picture = happy_path(fmt) if level == "path" else whole(fmt.spec)
    if kind == "mermaid":
        return draw_mermaid(picture)
    return draw_dot(picture) if kind == "dot" else draw_svg(picture)


def _narrow_svg(fmt: Format) -> str:
    """Return the happy path, its labels broken if it would be too wide to be read on a phone."""
    for widest in LINES:
        drawn = draw_svg(happy_path(fmt, widest))
        width = re.search(r' width="(\d+)"', drawn)
        if width is not None and int(width[1]) <= WIDEST:
            break
    return drawn


__all__ = ["KINDS", "LEVELS", "Kind", "Level", "diagram", "trigger_in_words"]
