"""Add messages to a batch of rows: for Ray Data, Hugging Face datasets, Spark, pandas and Arrow.

Strategy: a batch is a mapping of columns, a pandas frame or an Arrow table. Each is read as columns of plain Python
values and returned in the same shape, with a column per field of the message.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from toolgram.bulk.inputs import import_arrow
from toolgram.bulk.outputs import message_arrays, message_lists, message_types
from toolgram.bulk.rows import ADDED, Answer, Columns, RowOptions, RowReader
from toolgram.errors import ToolgramError
from toolgram.formats import Format, get_format


def parse_batch(
    batch: Any,
    field: str = "text",
    format: str | Format | None = None,
    tools: Sequence[Any] | None = None,
    prefix: str | None = None,
    finish_reason: str | None = None,
    strict: bool = False,
    keep: Sequence[str] | None = None,
    tools_column: str | None = None,
    prefix_column: str | None = None,
    format_column: str | None = None,
    finish_reason_column: str | None = None,
) -> Any:
    """Return the batch with the messages of its outputs, in the same shape: a mapping of columns, a pandas frame, an
    Arrow table or record batch.

    `field` is the column of the output text; a dotted path goes deeper. `format` is a shipped format by name, or a
    `Format`; `tools`, `prefix`, `finish_reason` and `strict` are those of `Format.parse`, and the `..._column`
    arguments name columns that have them per row. `keep` are the columns to pass on, by default all. Columns are added:
    `content`, `reasoning`, `tool_calls` (a list of id, name, arguments, status), `malformed`, `anomalies`,
    `finish_reason` and `error`, which is the reason why a row could not be read.

    Raises ToolgramError for an unknown format, tools of no known shape, a missing column, columns of unequal length, a
    column to keep that has the name of an added one, and a batch of another shape. The contents of a row never raise.
    """
    columns = Columns(tools_column, prefix_column, format_column, finish_reason_column)
    if format is None and format_column is None:
        raise ToolgramError("say how to read the outputs: format=NAME, or format_column=COLUMN")
    fmt = get_format(format) if isinstance(format, str) else format
    options = RowOptions(field, fmt, tools, prefix, finish_reason, strict, columns=columns)
    given = _columns_of(batch)
    wanted = [_top(path, given) for path in options.paths()]
    kept = list(given) if keep is None else [_top(path, given) for path in keep]
    if twice := [name for name in kept if name in ADDED]:
        raise ToolgramError(f"column {twice[0]!r} would be there twice; rename it, or name the others: keep=[...]")
    values = {name: _plain(name, given[name]) for name in dict.fromkeys(wanted)}
    if len({len(column) for column in values.values()}) > 1:
        sizes = ", ".join(f"{name!r} has {len(column)}" for name, column in values.items())
        raise ToolgramError(f"the columns of a batch are of one length, but {sizes}")
    reader = RowReader(options)
    rows = zip(*values.values(), strict=True)
    answers = [reader.answer(dict(zip(values, row, strict=True))) for row in rows]
    return _shaped(batch, kept, answers)


def parse_batches(batches: Iterable[Any], **options: Any) -> Iterator[Any]:
    """Apply `parse_batch` to an iterator, as Spark's `mapInPandas` and `mapInArrow` call it."""
    for batch in batches:
        yield parse_batch(batch, **options)


def arrow_schema() -> Any:
    """Return the Arrow schema of the columns that `parse_batch` adds."""
    return import_arrow("Arrow tables").schema(message_types())


def _columns_of(batch: Any) -> Mapping[str, Any]:
    """Return the columns of a batch by name."""
    if isinstance(batch, Mapping):
        return batch
    if hasattr(batch, "schema"):  # Arrow
        return {name: batch.column(name) for name in batch.schema.names}
    if hasattr(batch, "columns") and hasattr(batch, "assign"):  # pandas
        return {str(name): batch[name] for name in batch.columns}
    shapes = "a mapping of columns, a pandas frame or an Arrow table"
    raise ToolgramError(f"a batch is {shapes}, not a {type(batch).__name__}")


def _top(path: str, given: Mapping[str, Any]) -> str:
    top = path if path in given else path.split(".", 1)[0]
    if top not in given:
        raise ToolgramError(f"no column {path!r}; the batch has {', '.join(map(repr, list(given)[:20]))}")
    return top


def _plain(name: str, column: Any) -> list[Any]:
    """Return the values of a column as plain Python values. Raises ToolgramError if it is no column."""
    made = next((getattr(column, method) for method in ("to_pylist", "tolist") if hasattr(column, method)), None)
    values = made() if made else column
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ToolgramError(f"column {name!r} is a list of values, not {type(values).__name__}")
    return [_without_arrays(value) for value in values] if made else list(values)


def _without_arrays(value: Any) -> Any:
    """Return numpy's arrays and scalars as lists and plain values, and a missing number of pandas as None."""
    if isinstance(value, str | int | None | list | dict):
        return value
    if isinstance(value, float):
        return None if value != value else value
    return value.tolist() if hasattr(value, "tolist") else value


def _shaped(batch: Any, kept: list[str], answers: list[Answer]) -> Any:
    """Return the answers beside the columns that are kept, in the shape of the batch."""
    if isinstance(batch, Mapping):
        added = message_lists(answers)
        if any(type(column).__module__ == "numpy" for column in batch.values()):
            added = {name: _object_array(values) for name, values in added.items()}
        return {**{name: batch[name] for name in kept}, **added}
    if hasattr(batch, "assign"):
        return batch[kept].assign(**message_lists(answers))
    arrays = {**{name: batch.column(name) for name in kept}, **message_arrays(answers)}
    arrow = import_arrow("Arrow tables")
    make = arrow.RecordBatch if isinstance(batch, arrow.RecordBatch) else arrow.Table
    return make.from_arrays(list(arrays.values()), names=list(arrays))


def _object_array(values: list[Any]) -> Any:
    import numpy

    array = numpy.empty(len(values), dtype=object)
    array[:] = values
    return array
