"""A run: batches out, answers back in order, by this process or by several.

Strategy: the main process reads the files, which is cheap; workers parse.  A worker writes the answers into their part
itself, because to send them to the main process costs both more than the file does; where there are no parts, they are
sent.  Only a few batches are under way at a time, so memory does not grow with the files.  Where a worker dies, the
pool is made anew and the batches that it had are read again.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass

from toolgram.bulk.errors import BadFile
from toolgram.bulk.inputs import ARROW, TOO_LONG, Batch, from_stream
from toolgram.bulk.options import RowOptions
from toolgram.bulk.outputs import BadRowAt, BatchAnswer, Row, encode
from toolgram.bulk.parts import Parts
from toolgram.bulk.rows import Answer, RowReader
from toolgram.bulk.summary import Summary
from toolgram.limits import LONGEST_ROW

_AHEAD = 2  # batches per worker that wait or are under way
_MOST_DEATHS = 3  # of workers, without any batch finished between them


@dataclass(frozen=True)
class Job:
    """What a worker has to know: how to read rows, and the kind of file and the parts that the answers become."""

    options: RowOptions
    kind: str
    name_files: bool = False
    parts: Parts | None = None


class BatchReader:
    """Answers batches. Made once per process."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._rows = RowReader(job.options)

    def kept(self, batch: Batch) -> BatchAnswer:
        """The answers to a batch, kept in its part where there are parts; the output is empty then."""
        answer = self.answer(batch)
        if self._job.parts is None:
            return answer
        self._job.parts.add(batch.part, answer)
        return answer._replace(output=b"")

    def answer(self, batch: Batch) -> BatchAnswer:
        """The answers to a batch, in order."""
        summary, bad = Summary(), []

        def counted() -> Iterator[Row]:
            for row in self._answers(batch):
                file, line, answer = row
                summary.saw(answer.message, file, line)
                if answer.message is None:
                    bad.append(BadRowAt(file, line, answer.error))
                yield row

        output = encode(counted(), self._job.kind, self._job.name_files)
        return BatchAnswer(output, bad, summary.to_dict(), batch.size)

    def nothing(self) -> BatchAnswer:
        """The answers to no rows."""
        return BatchAnswer(encode([], self._job.kind, self._job.name_files), [], Summary().to_dict(), 0)

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
    """The answers to the batches, by this process."""
    reader = BatchReader(job)
    return map(reader.kept, batches)


_reader: BatchReader | None = None  # of a worker


def _begin_worker(job: Job) -> None:
    global _reader
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process decides what ends
    _reader = BatchReader(job)


def _answer(batch: Batch) -> BatchAnswer:
    assert _reader is not None
    return _reader.kept(batch)


def answer_in_processes(job: Job, batches: Iterable[Batch], workers: int) -> Iterator[BatchAnswer]:
    """The answers to the batches, in order, by `workers` processes. Raises BadFile where they die again and again."""
    waiting: deque[tuple[Batch, Future[BatchAnswer]]] = deque()
    source, deaths = iter(batches), 0
    pool = _pool(job, workers)
    try:
        while True:
            while len(waiting) < workers * _AHEAD and (batch := next(source, None)) is not None:
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


def _submitted(pool: ProcessPoolExecutor, batch: Batch) -> Future[BatchAnswer]:
    try:
        return pool.submit(_answer, batch)
    except BrokenProcessPool as error:
        failed: Future[BatchAnswer] = Future()
        failed.set_exception(error)
        return failed


def _pool(job: Job, workers: int) -> ProcessPoolExecutor:
    # A new interpreter per worker: a fork would copy locks and threads of whatever the main process has loaded.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, _begin_worker, (job,))
