"""Run on a Ray cluster: this process reads the files and writes the answers, workers anywhere parse.

Strategy: hand batches out and take answers back in order, a few at a time, as with processes. Ray has what a cluster
needs (it finds workers, moves data, and repeats the batches of a worker that dies), and none of that is repeated here.
"""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from toolgram.bulk.errors import BadFile, missing
from toolgram.bulk.inputs import Batch
from toolgram.bulk.outputs import BatchAnswer
from toolgram.bulk.running import AHEAD, BatchReader, Job


def start_ray(address: str | None) -> Any:
    """Connect to the cluster at `address`, or start one on this machine if it is None.

    Raises BadFile if that fails, and MissingPackage without Ray.
    """
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
    """Yield the answers to the batches, in order."""
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
    return _reader(job).answer(batch)


@lru_cache(maxsize=1)
def _reader(job: bytes) -> BatchReader:
    """Return the reader of a job. It is made once per worker."""
    return BatchReader(pickle.loads(job))
