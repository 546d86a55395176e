"""The same run on a Ray cluster: Ray Data hands out slices of files, and this process writes the answers in order.

Strategy: a slice is a place in a file and no data: a range of lines, a row group of Parquet, or a compressed file as a
whole.  Each is read where it is parsed, so the files must be where the workers can open them.  Ray Data brings what a
cluster needs (order, progress, spilling, retries where a worker dies), and nothing of that is repeated here.  A slice
gives its answers batch by batch, and a mark at its end: a slice with a mark is not read again by a resumed run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from toolgram.bulk.errors import BadFile, missing
from toolgram.bulk.inputs import (
    PARQUET,
    PLAIN,
    Batch,
    kind_of,
    line_batches,
    open_parquet,
    parquet_batches,
    read_batches,
)
from toolgram.bulk.outputs import BadRowAt, BatchAnswer
from toolgram.bulk.running import BatchReader, Job
from toolgram.limits import SLICE_BYTES

END = "end"  # the number of the mark behind the batches of a slice


class Slice(NamedTuple):
    """A part of a file. `file` is its name in answers and `path` where it is; `first` is the number of its first row,
    `group` that of its row group."""

    file: str
    path: str
    start: int = 0
    size: int = -1
    first: int = 1
    group: int = -1


class SliceAnswer(NamedTuple):
    """What came of a batch of a slice: its name among the parts, and the answers or the reason why there are none."""

    name: str
    answer: BatchAnswer
    problem: str


def slices_of(files: Sequence[str], columns: Sequence[str]) -> Iterator[Slice]:
    """The files, cut. Plain ones are read once for that, to know the numbers of the lines. Raises BadFile."""
    for path in files:
        if path == "-":
            raise BadFile("--ray reads files: workers cannot open standard input")
        if kind_of(path) == PARQUET:
            file, _ = open_parquet(path, columns)
            for group in range(file.metadata.num_row_groups):
                yield Slice(path, os.path.abspath(path), group=group)
        elif kind_of(path) == PLAIN:
            yield from _ranges(path)
        else:
            yield Slice(path, os.path.abspath(path))


def _ranges(path: str) -> Iterator[Slice]:
    start = 0
    try:
        with open(path, "rb") as stream:
            for batch in line_batches(stream, path, batch=SLICE_BYTES):
                yield Slice(path, os.path.abspath(path), start, batch.size, batch.first)
                start += batch.size
    except OSError as error:
        raise BadFile(f"{path}: cannot be read: {error.strerror or error}") from error


def read_slice(part: Slice, columns: Sequence[str]) -> Iterator[Batch]:
    """The rows of a slice. Raises BadFile where they cannot be read."""
    for batch in _read_slice(part, columns):
        yield batch._replace(file=part.file)


def _read_slice(part: Slice, columns: Sequence[str]) -> Iterator[Batch]:
    if part.group >= 0:
        yield from parquet_batches(part.path, columns, [part.group])
    elif part.size < 0:
        yield from read_batches(part.path, columns)
    else:
        try:
            with open(part.path, "rb") as stream:
                stream.seek(part.start)
                yield from line_batches(stream, part.file, part.first, part.size)
        except OSError as error:
            raise BadFile(f"{part.file}: cannot be read: {error.strerror or error}") from error


def start_ray(address: str | None, progress: bool) -> None:
    """Connect to the cluster at `address`, or to one of this machine's processors where there is none.

    Raises BadFile where that fails, and MissingPackage without Ray.
    """
    try:
        import ray
    except ImportError:
        raise missing("ray", "--ray") from None
    try:
        ray.init(address, ignore_reinit_error=True, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError) as error:
        said = str(error).strip().split("\n", 1)[0]
        raise BadFile(f"Ray cannot be reached at {address or 'this machine'}: {said}") from error
    context = ray.data.DataContext.get_current()
    context.execution_options.preserve_order = True
    context.enable_progress_bars = progress


def answer_on_ray(job: Job, numbered: Sequence[tuple[int, Slice]]) -> Iterator[SliceAnswer]:
    """The answers to slices, in order. Ray has been started."""
    if not numbered:
        return
    import ray

    rows = [{"number": number, **part._asdict()} for number, part in numbered]
    dataset = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
        _answer_slices, batch_size=1, batch_format="pyarrow", fn_kwargs={"job": job}
    )
    for table in dataset.iter_batches(batch_size=None, batch_format="pyarrow"):
        for row in table.to_pylist():
            bad = [BadRowAt(*each) for each in json.loads(row["bad"])]
            answer = BatchAnswer(row["output"], bad, json.loads(row["summary"]), row["size"])
            yield SliceAnswer(row["name"], answer, row["problem"])


def _answer_slices(table: Any, job: Job) -> Iterator[Any]:
    """What a worker does with slices: a table for each batch."""
    reader = _reader(job)
    for row in table.to_pylist():
        number = row.pop("number")
        problem = ""
        try:
            for at, batch in enumerate(read_slice(Slice(**row), job.options.paths())):
                yield _as_table(part_name(number, at), reader.answer(batch))
        except BadFile as error:
            problem = str(error)
        yield _as_table(f"{number:06d}-{END}", reader.nothing(), problem)


def part_name(number: int, at: int) -> str:
    """The name of a part: sorted, they are in order."""
    return f"{number:06d}-{at:08d}"


def _as_table(name: str, answer: BatchAnswer, problem: str = "") -> Any:
    import pyarrow

    return pyarrow.table(
        {
            "name": [name],
            "output": pyarrow.array([answer.output], pyarrow.large_binary()),
            "bad": [json.dumps(answer.bad)],
            "summary": [json.dumps(answer.summary)],
            "size": [answer.size],
            "problem": [problem],
        }
    )


_readers: dict[str, BatchReader] = {}


def _reader(job: Job) -> BatchReader:
    """The reader of a job, made once per worker."""
    key = json.dumps([job.options.fingerprint(), job.kind, job.name_files, job.options.chunk], sort_keys=True)
    if key not in _readers:
        _readers.clear()
        _readers[key] = BatchReader(job)
    return _readers[key]
