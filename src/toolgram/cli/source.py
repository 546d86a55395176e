"""Decode bytes to text, as they arrive.

Strategy: `read1` returns the available bytes and does not wait for a full buffer, so the output of a model in a pipe is
parsed token by token. An incremental decoder holds back half a character. Bytes that are not UTF-8 become U+FFFD,
because no output of a model may stop the command.
"""

from __future__ import annotations

import codecs
import gzip
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from io import BufferedReader
from typing import cast

from toolgram.bulk.errors import BadFile
from toolgram.bulk.inputs import named
from toolgram.cli.terminal import complain

READ_SIZE = 1 << 16


def pieces(path: str, chunk: int | None = None) -> Iterator[str]:
    """Return the text of a file: as it is read, or in pieces of `chunk` characters."""
    return _decoded(path) if chunk is None else cut(_decoded(path), chunk)


def cut(texts: Iterable[str], size: int) -> Iterator[str]:
    """Yield the same text in pieces of `size` characters."""
    rest = ""
    for text in texts:
        rest += text
        whole = len(rest) - len(rest) % size
        for start in range(0, whole, size):
            yield rest[start : start + size]
        rest = rest[whole:]
    if rest:
        yield rest


def _decoded(path: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")  # skips an editor's byte order mark
    for data in _reads(path):
        if text := decoder.decode(data):
            yield text
    if text := decoder.decode(b"", final=True):
        yield text


def _reads(path: str) -> Iterator[bytes]:
    """Yield the bytes of a file as they arrive. `-` is standard input."""
    try:
        with _standard_input() if path == "-" else _opened(path) as stream:
            while data := stream.read1(READ_SIZE):
                yield data
    except (EOFError, zlib.error):
        raise BadFile(f"{named(path)}: cannot be read: the compressed data is damaged or cut off") from None
    except OSError as error:
        # `str(error)` would repeat the path and add a number.
        raise BadFile(f"{named(path)}: cannot be read: {error.strerror or error}") from error


def _opened(path: str) -> BufferedReader:
    return cast(BufferedReader, gzip.open(path)) if path.endswith(".gz") else open(path, "rb")


def say_that_input_is_awaited() -> None:
    """Say on a terminal that a person has to write or paste."""
    if sys.stdin is not None and sys.stdin.isatty():
        complain("reading standard input: write or paste, and end it with Ctrl-D")


def _standard_input() -> nullcontext[BufferedReader]:
    if sys.stdin is None:
        raise OSError("it is closed")
    say_that_input_is_awaited()
    return nullcontext(cast(BufferedReader, sys.stdin.buffer))
