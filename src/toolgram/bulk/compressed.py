"""Read compressed files that may be damaged or cut off: all that can be decompressed, then the error.

Strategy: a decompressor that meets damage returns nothing of the current block. So a damaged file is read again from
its beginning, and after the read in which the damage was met, one byte of the file at a time. This costs nothing as
long as files are intact. The gzip module and Arrow decompress.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

_FILE_BYTES = 1 << 14  # read from the file at once
_BLOCK_BYTES = 1 << 16  # decompressed at once

DAMAGE = (OSError, EOFError, ValueError, zlib.error)


class Decompressed:
    """A stream of bytes from blocks. It ends where the blocks end or break; `error` is set if they broke."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._held = b""
        self.error: Exception | None = None

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, fewer at the end."""
        pieces, found = [self._held], len(self._held)
        while found < size:
            try:
                block = next(self._blocks, None)
            except DAMAGE as error:
                self.error = error
                break
            if block is None:
                break
            pieces.append(block)
            found += len(block)
        data = b"".join(pieces)
        self._held = data[size:]
        return data[:size]


def gzip_blocks(path: str) -> Iterator[bytes]:
    """Yield the contents of a gzip file of one or more members. Raises OSError, EOFError or zlib.error at damage."""

    def begin(source: IO[bytes]) -> gzip.GzipFile:
        return gzip.GzipFile(fileobj=source)

    # `read1` returns what one step gives, so it loses nothing to a later step that fails.
    return _blocks(path, begin, lambda stream: bytes(stream.read1(_BLOCK_BYTES)))


def zstd_blocks(path: str, arrow: Any) -> Iterator[bytes]:
    """Yield the contents of a zstd file. Raises OSError at damage."""

    def begin(source: IO[bytes]) -> Any:
        return arrow.input_stream(source, compression="zstd")

    return _blocks(path, begin, lambda stream: bytes(stream.read(1)))


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
        while block := read_little(stream):
            yield block


class _Source(io.RawIOBase):
    """A file that is read a little at a time, and byte by byte after an offset.

    `last` is where the last read began.
    """

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
