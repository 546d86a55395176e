"""Run batches: hand them out and take answers back in order, by this process or by several.

Strategy: the main process reads the files, which is cheap; workers parse. A worker writes the answers into their part
itself, because sending them to the main process costs both processes more than writing the file. If there are no parts,
they are sent. Only a few batches are under way at a time, so memory does not grow with the files. If a worker dies, the
pool is made again and its batches are read again.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from toolgram.bulk.errors import BadFile
from toolgram.bulk.inputs import ARROW, TOO_LONG, Batch, from_stream
from toolgram.bulk.options import RowOptions
from toolgram.bulk.outputs import BadRowAt, BatchAnswer, Row, encode
from toolgram.bulk.parts import Parts
from toolgram.bulk.rows import Answer, RowReader
from toolgram.bulk.summary import Summary
from toolgram.limits import LONGEST_ROW

A_co = TypeVar("A_co", covariant=True)

AHEAD = 2  # batches per worker that wait or are under way
_LOOK_FOR_PARENT = 1.0  # seconds between two checks whether the main process is still alive
_MOST_DEATHS = 3  # of workers, without any batch finished between them


@dataclass(frozen=True)
class Job:
    """What a worker needs: how to read rows, and the kind of file and the parts that the answers become."""

    options: RowOptions
    kind: str
    name_files: bool = False
    parts: Parts | None = None

    def reader(self) -> BatchReader:
        """Return the object that answers batches. It is made once per process."""
        return BatchReader(self)

    def keep(self, batch: Batch, answer: BatchAnswer) -> BatchAnswer:
        """Keep an answer in its part if there are parts; its output is empty then."""
        if self.parts is None:
            return answer
        self.parts.add(batch.part, answer)
        return answer._replace(output=b"")


class Reader(Protocol[A_co]):
    """Answers a batch."""

    def kept(self, batch: Batch) -> A_co:
        """Return the answer to a batch, and keep it."""


class Work(Protocol[A_co]):
    """The job of a worker. It can be pickled, and makes a reader."""

    def reader(self) -> Reader[A_co]:
        """Return the object that answers batches. It is made once per process."""


class BatchReader:
    """Answers batches. Made once per process."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._rows = RowReader(job.options)

    def kept(self, batch: Batch) -> BatchAnswer:
        """Return the answers to a batch, and keep them."""
        return self._job.keep(batch, self.answer(batch))

    def answer(self, batch: Batch) -> BatchAnswer:
        """Return the answers to a batch, in order."""
        summary, bad = Summary(), []

        def counted() -> Iterator[Row]:
            for row in self._answers(batch):
                file, line, answer = row
                summary.saw(answer.message, file, line, answer.error)
                if answer.message is None:
                    bad.append(BadRowAt(file, line, answer.error))
                yield row

        output = encode(counted(), self._job.kind, self._job.name_files)
        return BatchAnswer(output, bad, summary.to_dict(), batch.size)

    def _answers(self, batch: Batch) -> Iterator[Row]:
        if batch.kind == TOO_LONG:
            yield batch.file, batch.first, Answer({}, None, f"a row of more than {LONGEST_ROW >> 20} MiB")
        elif batch.kind == ARROW:
            for number, row in enumerate(from_stream(batch.data).to_pylist(), start=batch.first):
                yield batch.file, number, self._rows.answer(row)
        else:
            for number, line in enumerate(batch.data.split(b"\n"), start=batch.first):
                if line.strip():
                    yield batch.file, number, self._rows.answer_line(line)


def answer_here(job: Job, batches: Iterable[Batch]) -> Iterator[BatchAnswer]:
    """Yield the answers to the batches, from this process."""
    reader = BatchReader(job)
    return map(reader.kept, batches)


_reader: Reader[Any] | None = None  # of a worker


def _begin_worker(job: Work[Any], parent: int) -> None:
    global _reader
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process decides what ends
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    _reader = job.reader()


def _end_with_parent(parent: int) -> None:
    """End this worker after its parent was killed, which it cannot notice in another way."""
    while os.getppid() == parent:
        time.sleep(_LOOK_FOR_PARENT)
    os._exit(1)


def _answer(batch: Batch) -> Any:
    assert _reader is not None
    return _reader.kept(batch)


def answer_in_processes(job: Work[A_co], batches: Iterable[Batch], workers: int) -> Iterator[A_co]:
    """Yield the answers to the batches, in order, from `workers` processes. Raises BadFile if they die repeatedly."""
    waiting: deque[tuple[Batch, Future[A_co]]] = deque()
    source, deaths = iter(batches), 0
    pool = _pool(job, workers)
    try:
        while True:
            while len(waiting) < workers * AHEAD and (batch := next(source, None)) is not None:
                waiting.append((batch, _submitted(pool, batch)))
            if not waiting:
                return
            try:
                answer = waiting[0][1].result()
            except BrokenProcessPool:
                deaths += 1
                if deaths > _MOST_DEATHS:
                    at = waiting[0][0]
                    raise BadFile(
                        f"{at.file}: workers die at the rows from {at.first} on; is there enough memory?"
                    ) from None
                pool.shutdown(wait=False, cancel_futures=True)
                pool = _pool(job, workers)
                waiting = deque((batch, _submitted(pool, batch)) for batch, _ in waiting)
                continue
            deaths = 0
            waiting.popleft()
            yield answer
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _submitted(pool: ProcessPoolExecutor, batch: Batch) -> Future[Any]:
    try:
        return pool.submit(_answer, batch)
    except BrokenProcessPool as error:
        failed: Future[Any] = Future()
        failed.set_exception(error)
        return failed


def _pool(job: Work[Any], workers: int) -> ProcessPoolExecutor:
    # A new interpreter per worker: a fork would copy locks and threads of everything that the main process has loaded.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, _begin_worker, (job, os.getpid()))
