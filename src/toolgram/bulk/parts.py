"""Keep finished batches on disk, so that a run that was killed continues where it was.

Strategy: the directory `OUT.parts` is beside the output `OUT`. Its `run.json` describes what is read and how. Each
finished batch is a separate file, renamed into place when it is complete. A note with its bad rows and its summary is
written before it. Several processes add parts to one output. At the end the parts are joined, the result is renamed to
`OUT`, and the directory is deleted. A resumed run must be the same run: the same input files, unchanged, and the same
options.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toolgram.bulk.errors import BadFile
from toolgram.bulk.inputs import PARQUET
from toolgram.bulk.outputs import BadRowAt, BatchAnswer, encode, join
from toolgram.bulk.summary import Summary
from toolgram.bulk.writing import NewFile, cannot_write

_RUN = "run.json"


def parts_of(output: str) -> str:
    """Return the directory of the finished batches of an output."""
    return f"{output}.parts"


class Parts:
    """The parts of one output. Made with `Parts.open`."""

    def __init__(self, output: str, kind: str) -> None:
        self._output, self._kind = output, kind
        self._folder = parts_of(output)

    @classmethod
    def open(cls, output: str, kind: str, fingerprint: dict[str, Any], resume: bool) -> Parts:
        """Return the parts of a run, or those of an earlier one with `resume`. Raises BadFile if they cannot be
        used."""
        parts = cls(output, kind)
        said = json.loads(json.dumps(fingerprint))
        try:
            if os.path.isdir(parts._folder):
                parts._take_up(said, resume)
            else:
                os.makedirs(parts._folder)
                parts._write(_RUN, json.dumps(said).encode())
        except OSError as error:
            raise BadFile(f"{parts._folder}: cannot be written: {error.strerror or error}") from error
        return parts

    def _take_up(self, fingerprint: dict[str, Any], resume: bool) -> None:
        run = os.path.join(self._folder, _RUN)
        if not resume:
            raise BadFile(
                f"{self._folder}: a run into this output was not finished; go on with --resume, or delete the directory"
            )
        try:
            with open(run, "rb") as stream:
                before = json.load(stream)
        except (OSError, ValueError):
            before = None
            if any(name.endswith(".part") for name in os.listdir(self._folder)):
                raise BadFile(f"{run}: cannot be read, so the parts cannot be trusted; delete the directory") from None
            self._write(_RUN, json.dumps(fingerprint).encode())
        if before is not None and before != fingerprint:
            changed = sorted(key for key in {*before, *fingerprint} if before.get(key) != fingerprint.get(key))
            raise BadFile(
                f"{self._folder}: the parts are of another run, which differs in {', '.join(changed)}; "
                "delete the directory, or choose another output"
            )

    def has(self, name: str) -> bool:
        """Return whether the part of this name is finished."""
        return os.path.exists(self._path(f"{name}.part"))

    def add(self, name: str, answer: BatchAnswer) -> None:
        """Keep the answers to a batch."""
        note = {"bad": answer.bad, "summary": answer.summary}
        try:
            self._write(f"{name}.json", json.dumps(note).encode())
            self._write(f"{name}.part", answer.output)
        except OSError as error:
            raise BadFile(f"{self._folder}: cannot be written: {error.strerror or error}") from error

    def finish(self, errors: str | None) -> Summary:
        """Join the parts into the output and remove them; `errors` is the file for the rows that could not be read."""
        names = sorted(name[:-5] for name in os.listdir(self._folder) if name.endswith(".part"))
        paths = [self._path(f"{name}.part") for name in names]
        if not paths and self._kind == PARQUET:
            self._write("none.part", encode([], self._kind, False))
            paths = [self._path("none.part")]
        summary = Summary()
        with ErrorFile(errors) as file:
            for note in self._notes(names):
                summary.add(Summary.from_dict(note["summary"]))
                file.write([BadRowAt(*row) for row in note["bad"]])
            join(paths, self._kind, self._output)
        shutil.rmtree(self._folder, ignore_errors=True)
        return summary

    def _notes(self, names: list[str]) -> Iterator[dict[str, Any]]:
        for name in names:
            with open(self._path(f"{name}.json"), "rb") as stream:
                yield json.load(stream)

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _write(self, name: str, data: bytes) -> None:
        unfinished = self._path(f"{name}.{os.getpid()}.writing")
        with open(unfinished, "wb") as out:
            out.write(data)
        os.replace(unfinished, self._path(name))


class ErrorFile:
    """Writes the rows that could not be read as JSON lines, if such a file is asked for.

    The file appears when the run is over. If the run ends early, the rows so far stay in `FILE.unfinished`.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._file: NewFile | None = None

    def __enter__(self) -> ErrorFile:
        if self._path is not None:
            try:
                self._file = NewFile(self._path)
            except OSError as error:
                raise cannot_write(self._path, error) from error
        return self

    def write(self, bad: list[BadRowAt]) -> None:
        """Add rows."""
        if self._file is None or not bad:
            return
        lines = b"".join([json.dumps(row._asdict(), ensure_ascii=True).encode() + b"\n" for row in bad])
        with self._said():
            self._file.stream.write(lines)
            self._file.stream.flush()

    def __exit__(self, kind: object, *failure: object) -> None:
        if self._file is None:
            return
        with self._said():
            if kind is None:
                self._file.finish()
            else:
                self._file.give_up(keep=True)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Name the file in the error if it cannot be written."""
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(str(self._path), error) from error
