"""Raw outputs that are kept: the last answers for a page, and all of them in a file if that is asked for.

Strategy: the raw text of a few answers is kept in memory, and is read again if somebody looks at the page, which has no
script and needs no network. Recording never harms an answer: a row that cannot be written (a full disk) is lost and
counted, and the first loss is logged. A row of which only the beginning was written ends before the next begins.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from toolgram.explain import OWNER_OF
from toolgram.formats import Format

_LOG = logging.getLogger("toolgram.gateway")
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
    import jinja2

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


class Recorder:
    """Appends rows to a file, one JSON object a line, which only its owner may read. `lost` counts rows.

    Raises OSError if the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._torn = False
        self.lost = 0

    def __call__(self, row: Mapping[str, Any]) -> None:
        """Append a row."""
        line = b"\n" * self._torn + json.dumps(row).encode() + b"\n"
        try:
            written = os.write(self._handle, line)
            why = "the disk is full"
        except OSError as error:
            written, why = 0, error.strerror or str(error)
        self._torn = (written > 0 or self._torn) and written < len(line)
        if written < len(line):
            self.lost += 1
            if self.lost == 1:
                _LOG.warning("--record %s: %s; answers go on, and rows are lost", self._path, why)
