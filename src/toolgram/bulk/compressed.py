"""Compressed files that may be damaged or cut off: all that can be decompressed, then the error.

Strategy: a decompressor that meets damage gives nothing of the block in which it is.  So such a block is decompressed
once more, a byte of the file at a time: zlib goes back to a copy of its state, and Arrow reads the file again from its
beginning.  That costs nothing as long as files are whole.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import IO, Any

_FILE_BYTES = 1 << 14  # are read of the file at once
_BLOCK_BYTES = 1 << 16  # are decompressed at once
_GZIP_HEADER = 31  # tells zlib to read gzip's header and check sum

DAMAGE = (OSError, EOFError, ValueError, zlib.error)


class Decompressed:
    """Blocks as a stream of bytes. It ends where they do or where they break, and `error` says which."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._held = b""
        self.error: Exception | None = None

    def read(self, size: int) -> bytes:
        """The next `size` bytes, fewer at the end."""
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
    """What is in a gzip file of one or more members. Raises OSError, EOFError or zlib.error at damage."""
    member, before = None, False
    with open(path, "rb") as file:
        while data := file.read(_FILE_BYTES):
            while data:
                if member is None:
                    data = data.lstrip(b"\0") if before else data  # some writers fill up blocks after a member
                    member = zlib.decompressobj(_GZIP_HEADER) if data else None
                else:
                    yield from _of_member(member, data)
                    before, data, member = True, member.unused_data, None if member.eof else member
    if member is not None:
        raise EOFError("the file ends inside of a member")


def _of_member(member: Any, data: bytes) -> Iterator[bytes]:
    """What the data holds of a member; the rest is `member.unused_data`."""
    block = b""
    while not member.eof and (data or len(block) == _BLOCK_BYTES):
        before = member.copy()
        try:
            block = member.decompress(data, _BLOCK_BYTES)
        except zlib.error:
            for at in range(len(data)):
                yield before.decompress(data[at : at + 1])
            raise
        yield block
        data = member.unconsumed_tail


def zstd_blocks(path: str, arrow: Any) -> Iterator[bytes]:
    """What is in a zstd file. Raises OSError at damage."""
    given = 0
    with open(path, "rb") as file:
        source = _Source(file)
        try:
            stream = arrow.input_stream(source, compression="zstd")
            while block := stream.read(_BLOCK_BYTES):
                given += len(block)
                yield block
            return
        except OSError:
            slow_from = source.last
        file.seek(0)
        stream = arrow.input_stream(_Source(file, slow_from), compression="zstd")
        while given and (block := stream.read(min(given, _BLOCK_BYTES))):
            given -= len(block)
        while block := stream.read(1):
            yield block


class _Source(io.RawIOBase):
    """A file that is read a little at a time, and byte by byte from an offset on.

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
