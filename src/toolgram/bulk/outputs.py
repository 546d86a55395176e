"""Write answers to files: JSON lines, plain or compressed, and Parquet.

Strategy: each batch of answers becomes the bytes of a whole small file, in the process that parses it. Such parts are
joined without being parsed again: lines, members of gzip and frames of zstd are concatenated, and row groups of Parquet
get one schema.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import IO, Any, NamedTuple

from toolgram.bulk.inputs import GZIP, PARQUET, ZSTD, import_arrow
from toolgram.bulk.json_rows import write_row
from toolgram.bulk.rows import ADDED, ITEMS, Answer, message_columns
from toolgram.bulk.writing import NewFile

Row = tuple[str, int, Answer]  # file, line, and the answer to the row


class BadRowAt(NamedTuple):
    """A row that could not be read."""

    file: str
    line: int
    error: str


def bad_lines(rows: Sequence[BadRowAt]) -> bytes:
    """Return rows that could not be read as JSON lines."""
    return b"".join([json.dumps(row._asdict()).encode() + b"\n" for row in rows])


class BatchAnswer(NamedTuple):
    """The answers to a batch: the bytes of an output, the rows that could not be read, the summary, its size."""

    output: bytes
    bad: list[BadRowAt]
    summary: dict[str, Any]
    size: int


PLACE = ("file", "line")
_ROW_GROUP = 32 << 20
_NUMBERS = ("index", "start", "call")  # among the fields of items


def answer_line(file: str | None, line: int, answer: Answer) -> bytes:
    """Return one answer as a JSON line; `file` is left out if there is only one."""
    said: dict[str, Any] = {"line": line} if file is None else {"file": file, "line": line}
    said.update(answer.kept)
    if answer.message is None:
        said["error"] = answer.error
    else:
        said["message"] = answer.message.to_dict()
        if answer.validation is not None:
            said["message"]["validation"] = answer.validation
    return write_row(said)


def encode(rows: Iterable[Row], kind: str, name_files: bool) -> bytes:
    """Return answers as the bytes of a file of this kind."""
    if kind == PARQUET:
        return _parquet(list(rows))
    lines = b"".join([answer_line(file if name_files else None, line, answer) for file, line, answer in rows])
    if kind == GZIP:
        return gzip.compress(lines, 6, mtime=0)
    if kind == ZSTD:
        return bytes(import_arrow("writing .zst").Codec("zstd").compress(lines, asbytes=True))
    return lines


def taken_names(kind: str) -> tuple[str, ...]:
    """Return the names that an output of this kind has in addition to the columns that are kept."""
    return (*PLACE, *(ADDED if kind == PARQUET else ("message", "error")))


# --- Parquet ----------------------------------------------------------------------------------------------------------


def message_types() -> dict[str, Any]:
    """Return the Arrow types of the columns of a message, and of `error`."""
    arrow = import_arrow("Arrow tables")
    fields = {name: arrow.int64() if name in _NUMBERS else arrow.string() for each in ITEMS.values() for name in each}
    items = {name: arrow.list_(arrow.struct({each: fields[each] for each in given})) for name, given in ITEMS.items()}
    return {name: items.get(name, arrow.string()) for name in ADDED}


def message_lists(answers: Sequence[Answer]) -> dict[str, list[Any]]:
    """Return the columns of messages, and `error`."""
    found = [{**message_columns(each.message), "error": each.error or None} for each in answers]
    return {name: [columns[name] for columns in found] for name in ADDED}


def message_arrays(answers: Sequence[Answer]) -> dict[str, Any]:
    """Return the columns of messages, and `error`, as Arrow arrays."""
    lists = message_lists(answers)
    return {name: to_array(lists[name], kind) for name, kind in message_types().items()}


def to_array(values: list[Any], kind: Any) -> Any:
    """Return an Arrow array. Text that UTF-8 cannot encode becomes U+FFFD, since Arrow has no other text."""
    arrow = import_arrow("Arrow tables")
    try:
        return arrow.array(values, kind)
    except UnicodeEncodeError:
        return arrow.array(_encodable(values), kind)


def _encodable(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    if isinstance(value, list):
        return [_encodable(each) for each in value]
    if isinstance(value, dict):
        return {name: _encodable(each) for name, each in value.items()}
    return value


def _parquet(rows: Sequence[Row]) -> bytes:
    arrow = import_arrow("writing Parquet")
    import pyarrow.parquet as parquet

    answers = [answer for _, _, answer in rows]
    columns: dict[str, Any] = {
        "file": arrow.array([file for file, _, _ in rows], arrow.string()),
        "line": arrow.array([line for _, line, _ in rows], arrow.int64()),
    }
    for name in dict.fromkeys(name for answer in answers for name in answer.kept):
        columns[name] = _kept_array([answer.kept.get(name) for answer in answers])
    columns |= message_arrays(answers)
    sink = arrow.BufferOutputStream()
    parquet.write_table(arrow.table(columns), sink, compression="zstd")
    return bytes(sink.getvalue())


def _kept_array(values: list[Any]) -> Any:
    """Return a column of the input: with its own type if all values share one, else as JSON text."""
    arrow = import_arrow("writing Parquet")
    try:
        return arrow.array(values)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, OverflowError, UnicodeEncodeError):
        return to_array([None if value is None else _as_text(value) for value in values], arrow.string())


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# --- joining ----------------------------------------------------------------------------------------------------------


def join(parts: Sequence[str], kind: str, target: str) -> None:
    """Concatenate the parts into one file at `target`, which appears there when it is complete."""
    with NewFile(target) as out:
        if kind == PARQUET:
            _join_parquet(parts, out.stream)
            return
        for part in parts:
            with open(part, "rb") as stream:
                shutil.copyfileobj(stream, out.stream, 1 << 20)


def _join_parquet(parts: Sequence[str], out: IO[bytes]) -> None:
    arrow = import_arrow("writing Parquet")
    import pyarrow.parquet as parquet

    schema = _common_schema([parquet.read_schema(part) for part in parts])
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        waiting: list[Any] = []
        for part in parts:
            waiting.append(_as_schema(parquet.ParquetFile(part).read(use_threads=False), schema))
            if part == parts[-1] or sum(table.nbytes for table in waiting) >= _ROW_GROUP:
                writer.write_table(arrow.concat_tables(waiting))
                waiting = []


def _common_schema(schemas: Iterable[Any]) -> Any:
    """Return one schema for all parts. A column with several types gets the wider one, or text if none is wider."""
    arrow = import_arrow("writing Parquet")
    said, kept = message_types(), dict[str, Any]()
    for column in chain.from_iterable(schemas):
        if column.name not in said and column.name not in PLACE:
            kept[column.name] = _wider(kept.get(column.name, column.type), column.type)
    kept = {name: arrow.string() if arrow.types.is_null(kind) else kind for name, kind in kept.items()}
    return arrow.schema({"file": arrow.string(), "line": arrow.int64(), **kept, **said})


def _wider(one: Any, other: Any) -> Any:
    arrow = import_arrow("writing Parquet")
    try:
        fields = [arrow.schema([("x", kind)]) for kind in (one, other)]
        return arrow.unify_schemas(fields, promote_options="permissive").field("x").type
    except (arrow.ArrowInvalid, arrow.ArrowTypeError):
        return arrow.string()


def _as_schema(table: Any, schema: Any) -> Any:
    arrow = import_arrow("writing Parquet")
    columns = []
    for column in schema:
        found = table.column(column.name) if column.name in table.column_names else arrow.nulls(table.num_rows)
        try:
            columns.append(found.cast(column.type))
        except (arrow.ArrowInvalid, arrow.ArrowNotImplementedError):
            texts = [None if value is None else _as_text(value) for value in found.to_pylist()]
            columns.append(arrow.array(texts, column.type))
    return arrow.table(columns, schema=schema)
