"""Logs of outputs for the tests of bulk, runs of them, and what must come of them."""

import gzip
import json
from io import BytesIO
from pathlib import Path
from typing import Any

import toolgram
from toolgram.bulk.rows import RowOptions
from toolgram.bulk.run import Outcome, Run, run_to_file, run_to_stream

HERMES = toolgram.get_format("hermes")
OPTIONS = RowOptions("out.text", HERMES, keep=("id",))
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": %d, "b": [1, "é"]}}\n</tool_call>'
CUT = '<tool_call>\n{"name": "add", "arguments": {"a": %d'
BROKEN = '<tool_call>\n{"name": "add", "arguments": {"a": %d,}}\n</tool_call>'


def text_of(number: int) -> str:
    """The output of a row: calls, prose, a call that is cut off, one that is repaired."""
    return (CALL, "Only prose, number %d.", CUT, BROKEN)[number % 4] % number


def rows(count: int) -> list[dict[str, Any]]:
    """Rows with an output and other columns."""
    return [{"id": number, "model": f"m{number % 3}", "out": {"text": text_of(number)}} for number in range(count)]


def ignore(rows: int, size: int) -> None:
    """No progress is shown."""


def run(*sources: Any, output: Any = None, options: Any = OPTIONS, progress: Any = ignore, **more: Any) -> Outcome:
    """A run from these files to one, or to a stream that nobody reads."""
    named: Any = {name: str(value) if isinstance(value, Path) else value for name, value in more.items()}
    made = Run([*map(str, sources)], options, output and str(output), **named)
    return run_to_stream(made, BytesIO(), progress) if output is None else run_to_file(made, progress)


def packed(path: Path, data: bytes) -> bytes:
    """Data as a file of this name has it: plain or compressed."""
    if path.suffix == ".gz":
        return gzip.compress(data)
    if path.suffix == ".zst":
        import pyarrow

        return bytes(pyarrow.Codec("zstd").compress(data, asbytes=True))
    return data


def write_log(path: Path, count: int, bad: tuple[int, ...] = ()) -> Path:
    """A log as Parquet or JSON lines, by the ending of the name; `bad` are the lines (from 1) that are no JSON."""
    if path.suffix == ".parquet":
        import pyarrow
        import pyarrow.parquet as parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows(count)), path, row_group_size=150)
        return path
    lines = [json.dumps(row).encode() for row in rows(count)]
    for number in bad:
        lines[number - 1] = b'{"out": '
    path.write_bytes(packed(path, b"\n".join(lines) + b"\n"))
    return path


def read_answers(path: Path) -> list[dict[str, Any]]:
    """The answers in a file of any kind, in one shape."""
    import pyarrow

    if path.suffix == ".parquet":
        import pyarrow.parquet as parquet

        return [without_ids(row) for row in parquet.read_table(path).to_pylist()]
    return [without_ids(json.loads(line)) for line in pyarrow.input_stream(str(path)).read().splitlines()]


def without_ids(row: dict[str, Any]) -> dict[str, Any]:
    """An answer as fields, without what is empty and without the ids that were made up."""
    message = row.pop("message", None) or {}
    flat = {name: value for name, value in {**row, **message}.items() if value not in (None, [])}
    for name in flat.keys() & {"tool_calls", "malformed", "anomalies"}:
        flat[name] = [
            {key: value for key, value in item.items() if key not in ("id", "model_id") and value is not None}
            for item in flat[name]
        ]
    return flat
