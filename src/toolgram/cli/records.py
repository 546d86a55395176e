"""Rows of `toolgram serve --record`, and the formats beside them that do not ship."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import toolgram
from toolgram.adapters.reading import evidence_in
from toolgram.bulk.errors import BadRow
from toolgram.bulk.inputs import expand, read_batches, rows_of
from toolgram.bulk.json_rows import read_row
from toolgram.bulk.rows import Columns
from toolgram.cli.terminal import complain, refuse
from toolgram.gateway.recording import formats_of

RECORD = Columns("tools", "prefix", "format", "finish_reason")
FIELDS = {"format", "output", "finish_reason", "prefix", "tools"}


def columns_of(inputs: Sequence[str]) -> Columns:
    """Return the columns of a record: of files whose first row has them, and of standard input. Raises BadFile."""
    for path in expand(inputs):
        for batch in read_batches(path, ["format"]) if path != "-" else ():
            row = next((row for _, row in rows_of(batch)), None)
            with suppress(BadRow):
                row = read_row(row) if isinstance(row, bytes) else row
            return RECORD if isinstance(row, dict) and "format" in row else Columns()
    return RECORD


def own_formats(inputs: Sequence[str]) -> dict[str, toolgram.Format]:
    """Return the formats beside records, by their names. Raises ToolgramError."""
    grammars = [path for record in expand(inputs) for path in sorted(formats_of(record).glob("*.lark"))]
    return {path.stem: toolgram.load_format(path, path.with_suffix(".yaml")) for path in grammars}


def recorded(text: str, file: str, number: int | None) -> dict[str, Any] | None:
    """Return a row, ready to be read: the last one, unless a number is given. Return None if the text has no rows.

    Raises ToolgramError if its format is unknown.
    """
    lines = list(filter(str.strip, text.split("\n")))
    try:
        rows = [json.loads(line) for line in (lines[0], lines[(number or 0) - 1])]
    except (ValueError, IndexError, RecursionError):
        rows = []
    if not rows or not all(isinstance(row, dict) and row.keys() >= FIELDS for row in rows):
        return (
            None if number is None else refuse(f"--row {number}: {file} has no such row of `toolgram serve --record`")
        )
    row: dict[str, Any] = rows[1]
    complain(f"row {number or len(lines)} of {len(lines)}; --row N chooses another")
    fmt = own_formats([file]).get(str(row["format"])) or toolgram.get_format(str(row["format"]))
    return {**row, "output": str(row["output"]), "format": fmt, "finish_reason": evidence_in(row["finish_reason"])}
