"""Raw outputs that are kept in a file, if that is asked for.

Strategy: recording never harms an answer: a row that cannot be written (a full disk) is lost and counted, and the first
loss is logged. A row of which only the beginning was written ends before the next begins.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from toolgram.formats import Format, format_names, get_format

_LOG = logging.getLogger("toolgram.gateway")


def formats_of(record: str) -> Path:
    """Return the folder beside a record in which its formats are that do not ship."""
    return Path(f"{record}.formats")


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

    def keep(self, fmt: Format) -> None:
        """Write the two files of a format by which rows are read again, unless it ships, or the record is a pipe or a
        device. Raises OSError."""
        shipped = get_format(fmt.name) if fmt.name in format_names() else None
        if not os.path.isfile(self._path) or (shipped is not None and shipped.machine_text == fmt.machine_text):
            return
        folder = formats_of(self._path)
        folder.mkdir(exist_ok=True)
        for ending, text in ((".lark", fmt.grammar_text), (".yaml", fmt.machine_text)):
            (folder / f"{fmt.name}{ending}").write_text(text, encoding="utf-8")
