"""Run batches: hand them out and take answers back in order, by this process, by several, or by a Ray cluster.

Strategy: the main process reads the files, which is cheap; workers parse, and write the answers into their part
themselves, which costs less than sending them. Only a few batches are under way at a time, so memory does not grow with
the files. If a worker dies, the pool is made again and its batches are read again.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from toolgram.bulk.errors import BadFile, missing
from toolgram.bulk.inputs import ARROW, TOO_LONG, Batch, rows_of
from toolgram.bulk.outputs import BadRowAt, BatchAnswer, Row, encode
from toolgram.bulk.parts import Parts
from toolgram.bulk.rows import Answer, RowOptions, RowReader
from toolgram.bulk.summary import Summary
from toolgram.limits import LONGEST_ROW

A = TypeVar("A")

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

    def reader(self) -> Callable[[Batch], BatchAnswer]:
        """Return the function that answers batches and keeps the answers. It is made once per process."""
        rows = RowReader(self.options)
        return lambda batch: self.keep(batch, self.answer(rows, batch))

    def keep(self, batch: Batch, answer: BatchAnswer) -> BatchAnswer:
        """Keep an answer in its part if there are parts; its output is empty then."""
        if self.parts is None:
            return answer
        self.parts.add(batch.part, answer)
        return answer._replace(output=b"")

    def answer(self, rows: RowReader, batch: Batch) -> BatchAnswer:
        """Return the answers to a batch, in order."""
        summary, bad = Summary(), []

        def counted() -> Iterator[Row]:
            for line, answer in _answers(rows, batch):
                summary.saw(answer.message, batch.file, line, answer.error)
                if answer.message is None:
                    bad.append(BadRowAt(batch.file, line, answer.error))
                yield batch.file, line, answer

        output = encode(counted(), self.kind, self.name_files)
        summary.found.update(rows.found)
        return BatchAnswer(output, bad, summary.to_dict(), batch.size)


def _answers(rows: RowReader, batch: Batch) -> Iterator[tuple[int, Answer]]:
    if batch.kind == TOO_LONG:
        yield batch.first, Answer({}, None, f"a row of more than {LONGEST_ROW >> 20} MiB")
    answer = rows.answer if batch.kind == ARROW else rows.answer_line
    for line, row in rows_of(batch):
        yield line, answer(row)


# --- processes --------------------------------------------------------------------------------------------------------

_reader: Callable[[Batch], Any]  # of a worker


def _begin_worker(make_reader: Callable[[], Callable[[Batch], Any]], parent: int) -> None:
    global _reader
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process decides what ends
    threading.Thread(target=_end_with_parent, args=(parent,), daemon=True).start()
    _reader = make_reader()


def _end_with_parent(parent: int) -> None:
    """End this worker after its parent was killed, which it cannot notice in another way."""
    while os.getppid() == parent:
        time.sleep(_LOOK_FOR_PARENT)
    os._exit(1)


def _answer(batch: Batch) -> Any:
    return _reader(batch)


def answer_in_processes(
    make_reader: Callable[[], Callable[[Batch], A]], batches: Iterable[Batch], workers: int
) -> Iterator[A]:
    """Yield the answers to the batches, in order, from `workers` processes, each with a reader of its own.

    Raises BadFile if they die repeatedly.
    """

    def new_pool() -> ProcessPoolExecutor:
        # A new interpreter per worker: a fork would copy locks and threads of all that the main process has loaded.
        spawn = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(workers, spawn, _begin_worker, (make_reader, os.getpid()))

    waiting: deque[tuple[Batch, Future[A]]] = deque()
    source, deaths, pool = iter(batches), 0, new_pool()
    try:
        while True:
            while len(waiting) < workers * AHEAD and (batch := next(source, None)) is not None:
                waiting.append((batch, _submitted(pool, batch)))
            if not waiting:
                return
            try:
                answer = waiting[0][1].result()
            except BrokenProcessPool:
                deaths, at = deaths + 1, waiting[0][0]
                if deaths > _MOST_DEATHS:
                    raise BadFile(
                        f"{at.file}: workers die at the rows from {at.first} on; is there enough memory?"
                    ) from None
                pool.shutdown(wait=False, cancel_futures=True)
                pool = new_pool()
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


# --- Ray --------------------------------------------------------------------------------------------------------------


def start_ray(address: str | None) -> Any:
    """Connect to a cluster, or start one on this machine. Raises BadFile if that fails, MissingPackage without Ray."""
    try:
        import ray
    except ImportError:
        raise missing("ray", "--ray") from None
    try:
        ray.init(address, ignore_reinit_error=True, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError) as error:
        said = str(error).strip().split("\n", 1)[0]
        raise BadFile(f"Ray cannot be reached at {address or 'this machine'}: {said}") from error
    return ray


def answer_on_ray(job: Job, batches: Iterable[Batch], address: str | None) -> Iterator[BatchAnswer]:
    """Yield the answers to the batches, in order. Ray finds workers, moves data, and repeats what a dead one had."""
    ray = start_ray(address)
    source, waiting = iter(batches), deque[tuple[Batch, Any]]()
    answer, given = ray.remote(answer_batch), ray.put(pickle.dumps(replace(job, parts=None)))
    ahead = AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    while True:
        while len(waiting) < ahead and (batch := next(source, None)) is not None:
            waiting.append((batch, answer.remote(given, batch)))
        if not waiting:
            return
        batch, coming = waiting.popleft()
        yield job.keep(batch, ray.get(coming))


def answer_batch(job: bytes, batch: Batch) -> BatchAnswer:
    """Answer a batch, in a worker."""
    return _unpickled(job)(batch)


@lru_cache(maxsize=1)
def _unpickled(job: bytes) -> Callable[[Batch], BatchAnswer]:
    """Return the reader of a job. It is made once per worker."""
    made: Job = pickle.loads(job)
    return made.reader()
