"""Read files of rows batch by batch: JSON lines, plain or compressed, and Parquet.

Strategy: a batch is bytes, so that it can travel to another process: whole lines, or Arrow's own stream of columns. It
has about a mebibyte for rows of any size, and only the columns that are asked for. A line of more than `LONGEST_ROW` is
never held; it is a row that cannot be read. If a compressed file is damaged, all lines before the damage are read; a
last line without its end is not a row.
"""

from __future__ import annotations

import glob
import gzip
import io
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import IO, Any, NamedTuple

from toolgram.bulk.errors import BadFile, BadRow, missing
from toolgram.bulk.json_rows import read_row
from toolgram.limits import BATCH_BYTES, LONGEST_ROW, MOST_BATCH_ROWS

LINES, ARROW, TOO_LONG = "lines", "arrow", "too long"
PLAIN, GZIP, ZSTD, PARQUET = "plain", "gzip", "zstd", "parquet"
ENDINGS = {".gz": GZIP, ".zst": ZSTD, ".parquet": PARQUET}
_FILE_BYTES = 1 << 14  # read from the file at once
_BLOCK_BYTES = 1 << 16  # decompressed at once

DAMAGE = (OSError, EOFError, ValueError, zlib.error)
ROW_FILES = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".jsonl.zst", ".ndjson.zst", ".parquet")


class Batch(NamedTuple):
    """Some rows of a file: the number of the first one, the bytes that they take there, and the name of their part."""

    file: str
    kind: str
    first: int
    data: bytes
    size: int
    part: str = ""


def kind_of(path: str) -> str:
    """Return the kind of file that a name indicates; an unknown ending is plain JSON lines."""
    return ENDINGS.get(os.path.splitext(path)[1].lower(), PLAIN)


def named(path: str) -> str:
    """Return the name of a file in messages."""
    return "standard input" if path == "-" else path


def expand(inputs: Sequence[str]) -> list[str]:
    """Return the files that names, directories and patterns match, in order. Raises BadFile for one without any."""
    found: list[str] = []
    for name in inputs:
        matches, none = [name], ""
        if os.path.isdir(name):
            below = [os.path.join(folder, each) for folder, _, files in os.walk(name) for each in files]
            matches = sorted(path for path in below if path.lower().endswith(ROW_FILES))
            none = f"no file in this directory ends in {', '.join(ROW_FILES)}"
        elif name != "-" and glob.has_magic(name) and not os.path.exists(name):
            matches = sorted(path for path in glob.glob(name, recursive=True) if os.path.isfile(path))
            none = "no file matches"
        if not matches:
            raise BadFile(f"{name}: {none}")
        found += matches
    return found


def read_batches(path: str, columns: Sequence[str], promptly: bool = False) -> Iterator[Batch]:
    """Yield the rows of a file. `columns` are the paths that will be looked up; if there are none, all are read. With
    `promptly`, rows of standard input are yielded as soon as they arrive.

    Raises BadFile if the file cannot be read. If it is damaged, the rows before the damage come first.
    """
    last = None
    try:
        for batch in _batches(path, columns, promptly):
            last = batch
            yield batch
    except BadFile:
        raise
    except DAMAGE as error:
        where = "" if last is None else f" from line {_next_line(last)} on"
        raise BadFile(f"{named(path)}: cannot be read{where}: {_reason(error, path)}") from error


def _batches(path: str, columns: Sequence[str], promptly: bool) -> Iterator[Batch]:
    if path == "-":
        if sys.stdin is None:
            raise OSError("it is closed")
        source: Any = sys.stdin.buffer
        yield from line_batches(source.read1 if promptly else source.read, path)
    elif kind_of(path) == PARQUET:
        yield from parquet_batches(path, columns)
    elif kind_of(path) == PLAIN:
        with open(path, "rb") as lines:
            yield from line_batches(lines.read, path)
    else:
        gzipped = kind_of(path) == GZIP
        stream = Decompressed(gzip_blocks(path) if gzipped else zstd_blocks(path, import_arrow(f"reading {path}")))
        for batch in line_batches(stream.read, path):
            if stream.error is None or not _is_cut(batch):
                yield batch
        if stream.error is not None:
            raise stream.error


def _is_cut(batch: Batch) -> bool:
    """Return whether the batch is a line without its end."""
    try:
        whole = batch.kind != LINES or batch.data.endswith(b"\n")
        return not whole and not isinstance(read_row(batch.data), dict)  # an object has its own end
    except BadRow:
        return True


def _next_line(batch: Batch) -> int:
    if batch.kind == ARROW:
        return batch.first + int(from_stream(batch.data).num_rows)
    return batch.first + batch.data.count(b"\n") + (not batch.data.endswith(b"\n"))


def _reason(error: Exception, path: str) -> str:
    known = error.strerror if isinstance(error, OSError) else None
    damaged = "the compressed data is damaged or cut off" if kind_of(path) in (GZIP, ZSTD) else ""
    return known or damaged or str(error).strip().split("\n", 1)[0] or type(error).__name__


def line_batches(read: Callable[[int], bytes], path: str) -> Iterator[Batch]:
    """Yield batches of whole lines, of about a mebibyte."""
    pieces: list[bytes] = []
    held, line, skipping = 0, 1, False
    while block := read(BATCH_BYTES):
        cut = (block.find(b"\n") if skipping else block.rfind(b"\n")) + 1
        if skipping:
            if not cut:
                continue
            line, skipping, block = line + 1, False, block[cut:]
            cut = block.rfind(b"\n") + 1
        if cut:
            data = b"".join([*pieces, block[:cut]])
            pieces, held = [block[cut:]], len(block) - cut
            yield Batch(path, LINES, line, data, len(data))
            line += data.count(b"\n")
        else:
            pieces.append(block)
            held += len(block)
        if held > LONGEST_ROW:
            yield Batch(path, TOO_LONG, line, b"", held)
            pieces, held, skipping = [], 0, True
    if held:
        yield Batch(path, LINES, line, b"".join(pieces), held)


# --- compressed files -------------------------------------------------------------------------------------------------


class Decompressed:
    """A stream of bytes from blocks. It ends where the blocks end or break; `error` is set if they broke."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._held = b""
        self.error: Exception | None = None

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the end."""
        pieces, found = [self._held], len(self._held)
        try:
            while found < size and (block := next(self._blocks, b"")):
                pieces.append(block)
                found += len(block)
        except DAMAGE as error:
            self.error = error
        data = b"".join(pieces)
        self._held = data[size:]
        return data[:size]


def gzip_blocks(path: str) -> Iterator[bytes]:
    """Yield the contents of a gzip file of one or more members. Raises OSError, EOFError or zlib.error at damage."""
    # `read1` returns what one step gives, so it loses nothing to a later step that fails.
    return _blocks(path, lambda source: gzip.GzipFile(fileobj=source), lambda stream: stream.read1(_BLOCK_BYTES))


def zstd_blocks(path: str, arrow: Any) -> Iterator[bytes]:
    """Yield the contents of a zstd file. Raises OSError at damage."""
    return _blocks(path, lambda source: arrow.input_stream(source, compression="zstd"), lambda stream: stream.read(1))


def _blocks(path: str, begin: Callable[[Any], Any], read_little: Callable[[Any], bytes]) -> Iterator[bytes]:
    given = 0
    with open(path, "rb") as file:
        source = _Source(file)
        try:
            stream = begin(source)
            while block := stream.read(_BLOCK_BYTES):
                given += len(block)
                yield block
            return
        except DAMAGE:
            slow_from = source.last
        file.seek(0)
        stream = begin(_Source(file, slow_from))
        while given and (block := stream.read(min(given, _BLOCK_BYTES))):
            given -= len(block)
        while block := bytes(read_little(stream)):
            yield block


class _Source(io.RawIOBase):
    """A file that is read a little at a time, and byte by byte after an offset. `last` is where a read began."""

    def __init__(self, file: IO[bytes], slow_from: int | None = None) -> None:
        self._file, self._slow_from = file, slow_from
        self._at = self.last = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        most = _FILE_BYTES
        if self._slow_from is not None:
            most = min(most, self._slow_from - self._at) if self._at < self._slow_from else 1
        data = self._file.read(most if size < 0 else min(size, most))
        if data:
            self.last = self._at
        self._at += len(data)
        return data


# --- Parquet ----------------------------------------------------------------------------------------------------------


def import_arrow(needed_for: str) -> Any:
    """Return the pyarrow package. Raises MissingPackage if it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise missing("pyarrow", needed_for) from None
    return pyarrow


def open_parquet(path: str, columns: Sequence[str]) -> tuple[Any, list[str]]:
    """Open a Parquet file. Return it and its columns in which paths begin. Raises BadFile for a path without one."""
    import_arrow(f"reading {path}")
    import pyarrow.parquet as parquet

    try:
        file = parquet.ParquetFile(path, buffer_size=BATCH_BYTES, pre_buffer=False)
    except (OSError, ValueError) as error:
        raise BadFile(f"{path}: not a Parquet file that can be read: {_reason(error, path)}") from error
    names = file.schema_arrow.names
    wanted: list[str] = []
    for column in columns or names:
        top = column if column in names else column.split(".", 1)[0]
        if top not in names:
            raise BadFile(f"{path}: no column {column!r}; it has {', '.join(map(repr, names[:20]))}")
        if top not in wanted:
            wanted.append(top)
    return file, wanted


def parquet_batches(path: str, columns: Sequence[str]) -> Iterator[Batch]:
    """Yield batches of rows of a Parquet file."""
    file, wanted = open_parquet(path, columns)
    with closing(file):
        meta, first = file.metadata, 1
        for group in range(meta.num_row_groups):
            rows = _rows_per_batch(meta.row_group(group), wanted)
            for found in file.iter_batches(rows, row_groups=[group], columns=wanted, use_threads=False):
                size = os.path.getsize(path) * found.num_rows // max(1, meta.num_rows)
                yield Batch(path, ARROW, first, to_stream(found), size)
                first += found.num_rows


def _rows_per_batch(group: Any, wanted: Sequence[str]) -> int:
    """Return how many rows are about one batch."""
    chunks = [group.column(at) for at in range(group.num_columns)]
    size = sum(each.total_uncompressed_size for each in chunks if each.path_in_schema.split(".", 1)[0] in wanted)
    return int(min(MOST_BATCH_ROWS, max(1, BATCH_BYTES * group.num_rows // max(1, size))))


def to_stream(found: Any) -> bytes:
    """Return a record batch as bytes."""
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, found.schema) as writer:
        writer.write_batch(found)
    return bytes(sink.getvalue())


def from_stream(data: bytes) -> Any:
    """Return the table of a batch."""
    import pyarrow

    return pyarrow.ipc.open_stream(data).read_all()


def rows_of(batch: Batch) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a batch with their numbers: the bytes of lines, and mappings of Parquet."""
    if batch.kind == ARROW:
        yield from enumerate(from_stream(batch.data).to_pylist(), start=batch.first)
    elif batch.kind == LINES:
        lines = enumerate(batch.data.split(b"\n"), start=batch.first)
        yield from ((number, line) for number, line in lines if line.strip())
