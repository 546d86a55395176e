"""The last answers on a page: each character in the colour of its event, and what was odd about them.

Strategy: the raw text is kept, in memory and only of a few answers, and is read again when somebody looks. The page
needs no script and no network.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from toolgram.explain import OWNER_OF
from toolgram.formats import Format

MOST_RECENT = 20  # answers of a model
LONGEST_RECENT = 20_000  # characters of one


class Answered(NamedTuple):
    """An answer as it came from the server, and how it was read. `cut` says that more text came than is kept."""

    at: float
    model: str
    fmt: Format
    text: str
    tools: list[dict[str, Any]]
    prefix: str
    reason: str | None
    cut: bool


def recent_page(answers: Iterable[Answered]) -> str:
    """Return the page, the last answers first."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(Path(__file__).with_name("recent.html.jinja").read_text(encoding="utf-8"))
    shown = template.render(answers=[_shown(each) for each in sorted(answers, key=lambda each: -each.at)])
    return shown.encode("utf-8", "replace").decode()


def _shown(answer: Answered) -> dict[str, Any]:
    parser = answer.fmt.parser(answer.tools or None, answer.prefix)
    events = [*parser.feed(answer.text), *parser.close(None if answer.cut else answer.reason)]
    return {
        "when": time.strftime("%H:%M:%S", time.localtime(answer.at)),
        "model": answer.model,
        "format": answer.fmt.name,
        "pieces": [(OWNER_OF[event.type], event.source) for event in events if event.source],
        "anomalies": parser.message.anomalies,
        "calls": len(parser.message.tool_calls),
        "reason": answer.reason,
        "cut": answer.cut,
    }
