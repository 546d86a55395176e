"""Keep finished batches on disk, so that a run that was killed continues where it was.

Strategy: in the directory `OUT.parts`, `run.json` describes what is read and how. A finished batch is a file, renamed
into place when it is complete, with a note of its bad rows and its summary. Several processes add parts. At the end the
parts are joined into `OUT`. A resumed run must be the same run: the same unchanged input files, and the same options.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from toolgram.bulk.errors import BadFile
from toolgram.bulk.outputs import BadRowAt, BatchAnswer, bad_lines, join
from toolgram.bulk.summary import Summary
from toolgram.bulk.writing import NewFile, cannot_write

_RUN = "run.json"


def parts_of(output: str) -> str:
    """Return the directory of the finished batches of an output."""
    return f"{output}.parts"


class Parts:
    """The parts of one output: of a new run, or of an earlier one with `resume`. Raises BadFile if they cannot be
    used."""

    def __init__(self, output: str, kind: str, fingerprint: dict[str, Any], resume: bool) -> None:
        self._output, self._kind = output, kind
        self._folder = parts_of(output)
        try:
            if os.path.isdir(self._folder):
                self._take_up(json.loads(json.dumps(fingerprint)), resume)
            else:
                os.makedirs(self._folder)
                self._write(_RUN, json.dumps(fingerprint).encode())
        except OSError as error:
            raise cannot_write(self._folder, error) from error

    def _take_up(self, fingerprint: dict[str, Any], resume: bool) -> None:
        run = self._path(_RUN)
        if not resume:
            raise BadFile(
                f"{self._folder}: a run into this output was not finished; go on with --resume, or delete the directory"
            )
        try:
            before = json.loads(Path(run).read_bytes())
        except (OSError, ValueError):
            if any(name.endswith(".part") for name in os.listdir(self._folder)):
                raise BadFile(f"{run}: cannot be read, so the parts cannot be trusted; delete the directory") from None
            self._write(_RUN, json.dumps(fingerprint).encode())
            return
        if before != fingerprint:
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
        note = json.dumps({"bad": answer.bad, "summary": answer.summary})
        try:
            self._write(f"{name}.json", note.encode())
            self._write(f"{name}.part", answer.output)
        except OSError as error:
            raise cannot_write(self._folder, error) from error

    def finish(self, errors: str | None, unread: bool) -> Summary:
        """Join the parts into the output and remove them; `errors` is the file for the rows that could not be read. If
        files are `unread` and there are no parts, there is no output."""
        names = sorted(name[:-5] for name in os.listdir(self._folder) if name.endswith(".part"))
        paths = [self._path(f"{name}.part") for name in names]
        summary = Summary()
        with NewFile(errors, keep=True) as file:
            for name in names:
                note = json.loads(Path(self._path(f"{name}.json")).read_bytes())
                summary.add(Summary.from_dict(note["summary"]))
                file.write(bad_lines([BadRowAt(*row) for row in note["bad"]]))
            if paths or not unread:
                join(paths, self._kind, self._output)
        shutil.rmtree(self._folder, ignore_errors=True)
        return summary

    def _path(self, name: str) -> str:
        return os.path.join(self._folder, name)

    def _write(self, name: str, data: bytes) -> None:
        unfinished = self._path(f"{name}.{os.getpid()}.writing")
        with open(unfinished, "wb") as out:
            out.write(data)
        os.replace(unfinished, self._path(name))
