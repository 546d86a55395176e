"""Write files: completely or not at all, and never over a file that the run reads.

Strategy: output goes to `FILE.unfinished` in the same directory, which is renamed to `FILE` when it is complete. If
`FILE` is a link, the file that it names is replaced. Pipes, devices and open descriptors (`/dev/stdout`) are written
directly. Files are compared before any of them is opened, by what the system reports about them, so that links count.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, combinations
from typing import IO, NamedTuple

from toolgram.bulk.errors import BadFile, BadTarget

_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|(?:/dev|/proc/self)/fd/(\d+)")
_STREAMS = {"stdout": 1, "stderr": 2}
_Key = tuple[int, int] | str | None


class NewFile:
    """A file that replaces `path` when the block succeeds; with None, no file. Raises BadFile if it cannot be written.

    If the block fails, the earlier file is left unchanged. With `keep`, what was written so far stays in
    `FILE.unfinished`.
    """

    stream: IO[bytes]

    def __init__(self, path: str | None, keep: bool = False) -> None:
        self._path, self._keep = path or "", keep
        self._target = None if path is None or is_direct(path) else os.path.realpath(path)

    def __enter__(self) -> NewFile:
        with self._named():
            if self._target is not None:
                self.stream = self._begun(self._target)
            elif self._path:
                self.stream = _opened_directly(self._path)
        return self

    def write(self, data: bytes) -> None:
        """Write what a reader may need before the end. Raises BadFile."""
        if self._path and data:
            with self._named():
                self.stream.write(data)
                self.stream.flush()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not self._path:
            return
        try:
            self.stream.close()
            if self._target is not None and error is None:
                os.replace(_unfinished(self._path), self._target)
        except OSError as failed:  # its buffer may not fit on the disk
            error = error or failed
        if error is not None and self._target is not None:
            with suppress(OSError):
                if not self._keep or not os.path.getsize(_unfinished(self._path)):
                    os.unlink(_unfinished(self._path))
        if isinstance(error, OSError) and (kind is None or not self._keep):
            raise cannot_write(self._path, error) from error

    def _begun(self, target: str) -> IO[bytes]:
        unfinished = _unfinished(self._path)
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
        stream = open(unfinished, "xb")  # noqa: SIM115  # `__exit__` closes it
        with suppress(FileNotFoundError):
            os.chmod(unfinished, stat.S_IMODE(os.stat(target).st_mode))
        return stream

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Name the file in the error if it cannot be written."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(self._path, error) from error


def cannot_write(path: str, error: OSError) -> BadFile:
    """Return the error for a file that cannot be written."""
    return BadFile(f"{path}: cannot be written: {error.strerror or error}")


def is_direct(path: str) -> bool:
    """Return whether a file is written directly, because it is a pipe, a device or an open descriptor."""
    if _descriptor(path) is not None:
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _descriptor(path: str) -> int | None:
    """Return the number of the open descriptor that a path names."""
    found = _DESCRIPTOR.fullmatch(os.path.abspath(path))
    return None if found is None else _STREAMS[found[1]] if found[1] else int(found[2])


def _opened_directly(path: str) -> IO[bytes]:
    number = _descriptor(path)
    # A copy shares the file position of the original, so nothing that was written there is lost.
    return open(path, "wb") if number is None else os.fdopen(os.dup(number), "wb")


def _unfinished(path: str) -> str:
    return f"{os.path.realpath(path)}.unfinished"


# --- files that are the same ------------------------------------------------------------------------------------------


class Target(NamedTuple):
    """A file that a run writes: the option that names it, and its path."""

    option: str
    path: str

    def __str__(self) -> str:
        return f"{self.option} {self.path}"


def check_targets(
    targets: Sequence[Target], inputs: Sequence[str], parts: str | None, answers: IO[bytes] | None
) -> None:
    """Refuse targets that would overwrite an input, or each other. Raises BadTarget.

    `parts` is the directory of finished batches, which is deleted at the end, and `answers` is the stream that answers
    go to, if there is one.
    """
    stream = None if answers is None else _key_of_stream(answers)
    problems = (_same_files(targets), _overwritten(targets, inputs, stream), _in_parts(targets, inputs, parts or ""))
    for problem in chain.from_iterable(problems):
        raise BadTarget(problem)


def _same_files(targets: Sequence[Target]) -> Iterator[str]:
    for each in targets:
        if os.path.isdir(each.path):
            yield f"{each} is a directory; name a file"
        if os.path.isfile(each.path) and not os.access(each.path, os.W_OK):
            yield f"{each} is there and may not be written; name another file"
    for other, one in combinations(targets, 2):
        both_open = _descriptor(one.path) is not None and _descriptor(other.path) is not None
        if not both_open and _keys(one) & _keys(other):
            yield f"{other} and {one} are the same file; name two files"


def _overwritten(targets: Sequence[Target], inputs: Sequence[str], answers: _Key) -> Iterator[str]:
    for each in targets if answers is not None else ():
        if _descriptor(each.path) is None and answers == _key(each.path):
            yield f"{each} is the file that the answers go to; name two files"
    written = {key: each for each in targets for key in _keys(each)}
    for name in inputs:
        key, called = _key_of_input(name), "on standard input" if name == "-" else name
        if answers is not None and answers == key:
            yield f"the answers go to the input {called}; write them to another file, with -o OUT"
        if (same := written.get(key)) is not None:
            yield f"{same} would overwrite the input {called}{_why_same(same, name)}; name another file to write"


def _in_parts(targets: Sequence[Target], inputs: Sequence[str], parts: str) -> Iterator[str]:
    for each in targets if parts else ():
        if _is_below(each.path, parts):
            yield f"{each} lies in {parts}, which is deleted at the end; name another file"
    for name in inputs if os.path.isdir(parts) else ():
        if name != "-" and _is_below(name, parts):
            yield f"the input {name} lies in {parts}, which is deleted at the end; choose another output"


def _is_below(path: str, folder: str) -> bool:
    place, root = os.path.realpath(path), os.path.realpath(folder)
    return place == root or place.startswith(os.path.join(root, ""))


def _why_same(target: Target, name: str) -> str:
    if _key_of_input(name) != _key(target.path):
        return ", because it is written under that name first"
    return "" if name == target.path else ", which is the same file"


def _keys(target: Target) -> set[_Key]:
    """Return the keys of the files that are opened to write a target."""
    paths = (target.path,) if is_direct(target.path) else (target.path, _unfinished(target.path))
    return {_key(path) for path in paths} - {None}


def _key_of_input(name: str) -> _Key:
    if name == "-":
        return None if sys.stdin is None else _key_of_stream(sys.stdin)
    return _key(name)


def _key(path: str) -> _Key:
    """Return a key that is equal for paths to the same file, or None if nothing can overwrite it, such as a pipe."""
    try:
        return _key_of(os.stat(path))
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            return os.path.normcase(os.path.realpath(path))
        return None


def _key_of_stream(stream: IO[bytes] | IO[str]) -> _Key:
    try:
        return _key_of(os.fstat(stream.fileno()))
    except (OSError, ValueError, AttributeError):  # closed, or in memory
        return None


def _key_of(found: os.stat_result) -> tuple[int, int] | None:
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
