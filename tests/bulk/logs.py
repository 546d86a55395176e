"""Logs of outputs for the tests of bulk, and what must come of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": %d, "b": [1, "é"]}}\n</tool_call>'
CUT = '<tool_call>\n{"name": "add", "arguments": {"a": %d'
BROKEN = '<tool_call>\n{"name": "add", "arguments": {"a": %d,}}\n</tool_call>'


def text_of(number: int) -> str:
    """The output of a row: calls, prose, a call that is cut off, one that is repaired."""
    return (CALL, "Only prose, number %d.", CUT, BROKEN)[number % 4] % number


def rows(count: int) -> list[dict[str, Any]]:
    """Rows with an output and other columns."""
    return [{"id": number, "model": f"m{number % 3}", "out": {"text": text_of(number)}} for number in range(count)]


def write_log(path: Path, count: int, bad: tuple[int, ...] = ()) -> Path:
    """A log as JSON lines, plain or by the ending of the name; `bad` are the lines (from 1) that are no JSON."""
    lines = [json.dumps(row).encode() for row in rows(count)]
    for number in bad:
        lines[number - 1] = b'{"out": '
    data = b"\n".join(lines) + b"\n"
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        import pyarrow

        data = pyarrow.Codec("zstd").compress(data, asbytes=True)
    path.write_bytes(data)
    return path


def read_answers(path: Path) -> list[dict[str, Any]]:
    """The answers in a file of any kind, in one shape, without the ids that were made up."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as parquet

        return [_without_ids(row) for row in parquet.read_table(path).to_pylist()]
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    elif path.suffix == ".zst":
        import pyarrow

        data = pyarrow.input_stream(str(path), compression="zstd").read()
    return [_without_ids(json.loads(line)) for line in data.splitlines()]


def _without_ids(row: dict[str, Any]) -> dict[str, Any]:
    message = row.pop("message", None)
    flat = {**row, **(message or {})}
    flat = {name: value for name, value in flat.items() if value not in (None, [])}
    for name in ("tool_calls", "malformed", "anomalies"):
        if name in flat:
            flat[name] = [_known(item) for item in flat[name]]
    return flat


def _known(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name not in ("id", "model_id") and value is not None}
