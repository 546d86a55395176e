"""Write files: completely or not at all, and never over a file that the run reads.

Strategy: output goes to `FILE.unfinished` in the same directory, which is renamed to `FILE` when it is complete. So a
run that ends early leaves an earlier file unchanged. If `FILE` is a link, the file that it names is replaced and the
link stays. Nothing can be renamed over a pipe, a device or an open descriptor (`/dev/stdout`): these are written
directly. Files are compared before any of them is opened, by what the system reports about them, so that links count.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, NamedTuple

from toolgram.bulk.errors import BadFile, BadTarget

_DESCRIPTOR = re.compile(r"/dev/(stdout|stderr)|(?:/dev|/proc/self)/fd/(\d+)")
_STREAMS = {"stdout": 1, "stderr": 2}
_Key = tuple[int, int] | str | None


class NewFile:
    """A file that replaces `path` when it is complete. Raises OSError if it cannot be written."""

    def __init__(self, path: str) -> None:
        self._target = None if is_direct(path) else os.path.realpath(path)
        self._unfinished = _unfinished(path)
        self.stream = _opened_directly(path) if self._target is None else self._begun(self._target)

    def _begun(self, target: str) -> IO[bytes]:
        with suppress(FileNotFoundError):
            os.unlink(self._unfinished)
        stream = open(self._unfinished, "xb")  # noqa: SIM115  # `finish` and `give_up` close it
        with suppress(FileNotFoundError):
            os.chmod(self._unfinished, stat.S_IMODE(os.stat(target).st_mode))
        return stream

    def finish(self) -> None:
        """Rename the file to its target."""
        self.stream.close()
        if self._target is not None:
            os.replace(self._unfinished, self._target)

    def give_up(self, keep: bool) -> None:
        """Leave the earlier file unchanged. With `keep`, what was written stays in `FILE.unfinished`."""
        with suppress(OSError):  # its buffer may not fit on the disk
            self.stream.close()
        if self._target is not None:
            with suppress(OSError):
                if not keep or not os.path.getsize(self._unfinished):
                    os.unlink(self._unfinished)


@contextmanager
def new_file(path: str) -> Iterator[IO[bytes]]:
    """Open a file to write, which appears at `path` when the block succeeds. Raises BadFile if it cannot be written."""
    try:
        made = NewFile(path)
        try:
            yield made.stream
            made.finish()
        except BaseException:
            made.give_up(keep=False)
            raise
    except OSError as error:
        raise cannot_write(path, error) from error


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


def check_targets(
    targets: Sequence[Target], inputs: Sequence[str], parts: str | None, answers: IO[bytes] | None
) -> None:
    """Refuse targets that would overwrite an input, or each other.

    `parts` is the directory of finished batches, which is deleted at the end, and `answers` is the stream that answers
    go to, if there is one. Raises BadTarget.
    """
    for target in targets:
        _check_alone(target)
    _check_pairs(targets)
    if answers is not None:
        _check_stream(targets, inputs, answers)
    written = {key: target for target in targets for key in _keys(target)}
    for name in inputs:
        if (same := written.get(_key_of_input(name))) is not None:
            raise BadTarget(
                f"{same.option} {same.path} would overwrite the input {_called(name)}"
                f"{_why_same(same, name)}; name another file to write"
            )
    if parts is not None:
        _check_parts(parts, targets, inputs)


def _check_alone(target: Target) -> None:
    if os.path.isdir(target.path):
        raise BadTarget(f"{target.option} {target.path} is a directory; name a file")
    if os.path.isfile(target.path) and not os.access(target.path, os.W_OK):
        raise BadTarget(f"{target.option} {target.path} is there and may not be written; name another file")


def _check_pairs(targets: Sequence[Target]) -> None:
    for at, one in enumerate(targets):
        for other in targets[:at]:
            if _descriptor(one.path) is not None and _descriptor(other.path) is not None:
                continue
            if _keys(one) & _keys(other):
                raise BadTarget(
                    f"{other.option} {other.path} and {one.option} {one.path} are the same file; name two files"
                )


def _check_stream(targets: Sequence[Target], inputs: Sequence[str], answers: IO[bytes]) -> None:
    key = _key_of_stream(answers)
    if key is None:
        return
    for target in targets:
        if _descriptor(target.path) is None and key == _key(target.path):
            raise BadTarget(f"{target.option} {target.path} is the file that the answers go to; name two files")
    for name in inputs:
        if key == _key_of_input(name):
            raise BadTarget(f"the answers go to the input {_called(name)}; write them to another file, with -o OUT")


def _check_parts(folder: str, targets: Sequence[Target], inputs: Sequence[str]) -> None:
    for target in targets:
        if _is_below(target.path, folder):
            raise BadTarget(
                f"{target.option} {target.path} lies in {folder}, which is deleted at the end; name another file"
            )
    for name in inputs if os.path.isdir(folder) else ():
        if name != "-" and _is_below(name, folder):
            raise BadTarget(f"the input {name} lies in {folder}, which is deleted at the end; choose another output")


def _is_below(path: str, folder: str) -> bool:
    place, root = os.path.realpath(path), os.path.realpath(folder)
    return place == root or place.startswith(os.path.join(root, ""))


def _called(name: str) -> str:
    return "on standard input" if name == "-" else name


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
        return _real(path)


def _real(path: str) -> str | None:
    try:
        return os.path.normcase(os.path.realpath(path))
    except (OSError, ValueError):
        return None


def _key_of_stream(stream: IO[bytes] | IO[str]) -> _Key:
    try:
        return _key_of(os.fstat(stream.fileno()))
    except (OSError, ValueError, AttributeError):  # closed, or in memory
        return None


def _key_of(found: os.stat_result) -> tuple[int, int] | None:
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None
