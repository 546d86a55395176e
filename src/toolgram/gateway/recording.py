"""Raw outputs that are kept in a file, if that is asked for.

Strategy: recording never harms an answer: a row that cannot be written (a full disk) is lost and counted, and the first
loss is logged. A row of which only the beginning was written ends before the next begins.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from typing import Any

_LOG = logging.getLogger("toolgram.gateway")


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
