"""A whole run, from the names of files to a summary: what the command line calls.

Strategy: for a file, finished batches are kept in `OUT.parts` until all are done; for a stream, they are written as
they come. A file that cannot be read is reported and the next one is read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

from toolgram.bulk.errors import BadFile
from toolgram.bulk.inputs import PARQUET, ROW_FILES, Batch, expand, kind_of, named, read_batches
from toolgram.bulk.outputs import BatchAnswer, bad_lines, taken_names
from toolgram.bulk.parts import Parts, parts_of
from toolgram.bulk.rows import RowOptions
from toolgram.bulk.running import Job, answer_in_processes, answer_on_ray
from toolgram.bulk.summary import Summary
from toolgram.bulk.writing import NewFile, Target, check_targets, is_direct

MOST_ALIKE = 100  # rows that may fail in the same way, before nothing else has been read
Progress = Callable[[int, int], None]  # rows and bytes of input that were answered


@dataclass(frozen=True)
class Run:
    """What is read, how, and where the answers go. If `output` is None, they go to a stream.

    `also_read` are files that were already read, such as the one with the tools: they must not be overwritten.
    """

    inputs: Sequence[str]
    options: RowOptions
    output: str | None = None
    errors: str | None = None
    workers: int = 1
    resume: bool = False
    ray: bool = False
    ray_address: str | None = None
    report: str | None = None
    also_read: Sequence[str] = ()

    @property
    def kind(self) -> str:
        """The kind of the output."""
        return "plain" if self.output is None else kind_of(self.output)


@dataclass
class Outcome:
    """The result of a run: its summary, and the problems with files."""

    summary: Summary = field(default_factory=Summary)
    problems: list[BadFile] = field(default_factory=list)


def check_run(run: Run) -> None:
    """Refuse a run whose options do not go together. Raises BadFile."""
    out, parquet = run.output or "", run.kind == PARQUET
    direct = bool(out) and is_direct(out)
    twice = [name for name in run.options.keep if name in taken_names(run.kind)]
    known = not out or direct or os.path.isdir(out) or out.lower().endswith(ROW_FILES)
    for wrong, why in (
        (not known, f"{out}: messages are written as .jsonl, .jsonl.gz, .jsonl.zst or .parquet"),
        (run.resume and not out, "--resume needs an output file: finished batches are beside it"),
        (run.resume and direct, f"--resume needs an output file, and {out} is a pipe or a device"),
        (direct and parquet, f"{out}: a pipe or a device takes JSON lines only; write Parquet to a file"),
        (run.options.validate and parquet, "--validate is for JSON lines: Parquet has no column for it"),
        (twice, f"--keep {twice and twice[0]}: the output has a column of this name already"),
    ):
        if wrong:
            raise BadFile(why)


def total_size(files: Sequence[str]) -> int | None:
    """Return the size of the files in bytes, or None if one of them is a pipe or cannot be measured."""
    try:
        return None if "-" in files else sum(os.path.getsize(path) for path in files)
    except OSError:
        return None


def input_files(run: Run, stream: IO[bytes] | None = None) -> list[str]:
    """Return the files to read. `stream` is where the answers go if there is no output file.

    Raises BadTarget if the run would overwrite one of them, or write two things to one file, and BadFile as `expand`.
    """
    files = expand(run.inputs)
    parts = None if run.output is None or is_direct(run.output) else parts_of(run.output)
    written = (("--output", run.output), ("--errors", run.errors), ("--report", run.report))
    targets = [Target(option, path) for option, path in written if path is not None]
    check_targets(targets, [*files, *run.also_read], parts, stream)
    return files


def run_to_stream(run: Run, stream: IO[bytes], progress: Progress, files: Sequence[str] | None = None) -> Outcome:
    """Read everything and write the answers to a stream, in order. Raises BadFile if nothing can be done."""
    outcome, files = Outcome(), input_files(run, stream) if files is None else files
    with NewFile(run.errors, keep=True) as errors:
        for answer in _answers(run, files, None, outcome):
            stream.write(answer.output)
            stream.flush()
            errors.write(bad_lines(answer.bad))
            _count(outcome, answer, progress)
    return outcome


def run_to_file(run: Run, progress: Progress) -> Outcome:
    """Read everything and write the answers to a file, which appears when it is complete. Raises BadFile.

    A resumed run does not repeat finished batches. A pipe or a device gets the answers as they arrive.
    """
    assert run.output is not None
    files = input_files(run)
    if is_direct(run.output):
        check_run(run)
        with NewFile(run.output) as out:
            return run_to_stream(run, out.stream, progress, files)
    outcome = Outcome()
    parts = Parts(run.output, run.kind, _fingerprint(run, files), run.resume)
    for answer in _answers(run, files, parts, outcome):
        _count(outcome, answer, progress)
    outcome.summary = parts.finish(run.errors, bool(outcome.problems))
    return outcome


def _count(outcome: Outcome, answer: BatchAnswer, progress: Progress) -> None:
    summary = Summary.from_dict(answer.summary)
    if not outcome.summary.rows and summary.rows >= MOST_ALIKE and (reason := summary.only_reason):
        raise BadFile(f"stopped: all of the first {summary.rows:,} rows fail in the same way: {reason}")
    outcome.summary.add(summary)
    progress(summary.rows, answer.size)


def _fingerprint(run: Run, files: Sequence[str]) -> dict[str, Any]:
    """Return what the parts depend on: the options, and the state of the files."""
    inputs: list[Any] = [[path, None, None] for path in files]
    for at, path in enumerate(files):
        with suppress(OSError):
            if path != "-":
                inputs[at] = [path, os.stat(path).st_size, os.stat(path).st_mtime_ns]
    return {**run.options.fingerprint(), "inputs": inputs, "kind": run.kind}


def _answers(run: Run, files: Sequence[str], parts: Parts | None, outcome: Outcome) -> Iterator[BatchAnswer]:
    """Yield the answers that are not among the parts yet. If there are parts, each answer is one when it is yielded."""
    job = Job(run.options, run.kind, len(files) > 1 or run.kind == PARQUET, parts)
    batches = _batches(run, files, parts, outcome)
    if run.ray:
        return answer_on_ray(job, batches, run.ray_address)
    return answer_in_processes(job.reader, batches, run.workers) if run.workers > 1 else map(job.reader(), batches)


def _batches(run: Run, files: Sequence[str], parts: Parts | None, outcome: Outcome) -> Iterator[Batch]:
    for number, path in enumerate(files):
        try:
            for at, batch in enumerate(read_batches(path, run.options.paths(), promptly=parts is None)):
                name = f"{number:06d}-{at:08d}"  # the names sort in order
                if parts is None or not parts.has(name):
                    yield batch._replace(file=named(path), part=name)
        except BadFile as error:
            outcome.problems.append(error)
