"""The runner's side of the workers: it starts one process per contender, asks for samples and handles failures.

A peer may die or never answer (a regular expression that backtracks for hours is a real case).  So a job has a time
limit.  A process that exceeds it is killed and started again for the next job.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.contenders import CONTENDERS
from benchmarks.measure import Job

ROOT = Path(__file__).resolve().parents[1]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
IMPORT_LIMIT = 180.0  # seconds


class Worker:
    """A contender's process. `skipped` says why there is none."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.versions: dict[str, str] = {}
        self.skipped: str | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Begins to import; `wait_until_ready` waits for it, so that all can import at the same time."""
        python = str(PEERS) if CONTENDERS[self.name].peer else sys.executable
        if not Path(python).exists():
            self.skipped = "the optional environment is not there; `make bench-peers` builds it"
            return
        self.process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", self.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": str(ROOT / "src")},  # the floor makes toolgram's own event everywhere
            bufsize=0,
        )

    def wait_until_ready(self) -> None:
        """Reads the first line."""
        if self.process is None:
            return
        line = self._line(IMPORT_LIMIT)
        if line is None or "skipped" in line:
            self.skipped = line["skipped"] if line else "it does not start"
            self.stop()
        else:
            self.versions = line["versions"]

    def ask(self, job: Job, limit: float) -> dict[str, Any]:
        """The worker's answer; `{"late": True}` where there is none in time, and the worker is started anew."""
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asdict(job)).encode() + b"\n")
        line = self._line(limit)
        if line is not None:
            return line
        self.stop()
        self.start()
        self.wait_until_ready()
        return {"late": True}

    def _line(self, limit: float) -> dict[str, Any] | None:
        """One line, or None after the time limit. The pipe is unbuffered and never holds more than one line."""
        assert self.process is not None
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], limit)
        line = self.process.stdout.readline() if readable else b""
        return json.loads(line) if line else None

    def stop(self) -> None:
        """Kills the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def start_all(names: list[str]) -> dict[str, Worker]:
    """Workers, all ready or skipped."""
    workers = {name: Worker(name) for name in names}
    for worker in workers.values():
        worker.wait_until_ready()
    return workers
