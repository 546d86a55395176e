"""One contender in a process of its own: `python -m benchmarks.worker NAME`. The runner drives it over pipes.

The first line that it writes has its versions, or the reason why it cannot be imported.  For every line that it reads
(a job), it writes one line with a sample or an error.  Standard output belongs to this protocol.  Whatever a peer
prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from importlib import import_module
from importlib.metadata import version
from typing import Any

from benchmarks.contenders import CONTENDERS, Contender
from benchmarks.measure import Job, is_right, sample
from benchmarks.workloads import WORKLOADS


def ready(name: str) -> tuple[Contender | None, dict[str, Any]]:
    """The contender and its first line. Whatever an import raises is a reason to be skipped."""
    entry = CONTENDERS[name]
    try:
        contender: Contender = import_module(entry.module).load(name)
        return contender, {"versions": {name: version(name) for name in entry.distributions}}
    except Exception as error:
        return None, {"skipped": f"{type(error).__name__}: {error}"}


class Worker:
    """Answers jobs, warming up at the first of each workload and delta size."""

    def __init__(self, contender: Contender) -> None:
        self.contender = contender
        self.right: dict[tuple[str, int], bool] = {}

    def answer(self, job: Job) -> dict[str, Any]:
        """A sample and whether results are right, or an error: peers raise on what they do not expect."""
        key = (job.workload, job.size)
        try:
            if key not in self.right:
                self.right[key] = is_right(self.contender, WORKLOADS[job.workload], job.size, job.reads)
            return asdict(sample(self.contender, job)) | {"right": self.right[key]}
        except Exception as error:
            return {"error": f"{type(error).__name__}: {error}"[:200]}


def main() -> None:
    """Until standard input ends."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1) as protocol:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        contender, line = ready(sys.argv[1])
        print(json.dumps(line), file=protocol)
        if contender is None:
            return
        worker = Worker(contender)
        for request in sys.stdin:
            print(json.dumps(worker.answer(Job(**json.loads(request)))), file=protocol)


if __name__ == "__main__":
    main()
