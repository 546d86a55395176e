"""Derivation in a separate process, whose cost is limited for any template.

Strategy: a child process derives one template after another; starting one takes some tenths of a second, so it is kept
for the next. The system limits its memory and, for each template, its processor time; if the system cannot, the parent
ends the child when it does not answer. A child that was ended is replaced. The two exchange only JSON, and a format
from the child is checked like any other. The child has the same rights as its parent: this limits the cost; the sandbox
limits what templates may access.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from threading import Lock, Timer
from typing import Any

try:
    import resource
except ImportError:  # a system without limits
    resource = None  # type: ignore[assignment]

from toolgram.derive.errors import CostlyTemplate, TemplateError
from toolgram.limits import CHILD_MEGABYTES

_GRACE = 2.0  # seconds of processor time that a child has beyond its budget
_PATIENCE = 20.0  # times the budget that an answer may take on a busy machine
_COMMAND = "from toolgram.derive import deriving, isolated; isolated.serve(deriving.derive_now)"


class _Child:
    """A process that derives."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        paths = os.pathsep.join(each for each in sys.path if each)
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-B", "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
            text=True,
            encoding="utf-8",
        )

    def ask(self, question: Mapping[str, Any], patience: float) -> dict[str, Any] | None:
        """Return the answer; None if the process ended before it gave one."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        timer = Timer(patience, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
            return dict(json.loads(answer)) if answer.endswith("\n") else None
        except (OSError, ValueError):
            return None
        finally:
            timer.cancel()

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        with suppress(OSError, ValueError):  # the process has already ended
            self.process.communicate()


_child: _Child | None = None
_lock = Lock()


def derive_apart(question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return a derived format as data (`keeping`), made by a child process.

    Raises TemplateError as `derive_format` does, and CostlyTemplate if the process had to be ended.
    """
    global _child
    with _lock:
        if _child is not None and (_child.owner != os.getpid() or _child.process.poll() is not None):
            _child = None
        if _child is None:
            _child = _Child()
            atexit.register(_child.end)
        answer = _child.ask({**question, "seconds": seconds}, (seconds + _GRACE) * _PATIENCE)
        if answer is None:
            atexit.unregister(_child.end)
            _child.end()
            _child = None
    if answer is None:
        raise CostlyTemplate(
            f"the process that derived was ended: it needed more than {seconds + _GRACE:g} s of the processor, or "
            f"{CHILD_MEGABYTES} MB"
        )
    if "problem" in answer:
        kind = CostlyTemplate if answer["costly"] else TemplateError
        raise kind(str(answer["problem"]), int(answer["line"]))
    return dict(answer["format"])


def serve(derive: Callable[..., Any]) -> None:
    """Answer questions, one per line, until the input ends: each answer is the result of `derive`."""
    _limit_memory()
    for line in sys.stdin:
        question = json.loads(line)
        _limit_time(question["seconds"] + _GRACE)
        try:
            answer: dict[str, Any] = {"format": derive(**question)}
        except TemplateError as error:
            costly = isinstance(error, CostlyTemplate)
            answer = {"problem": error.problem, "line": error.line, "costly": costly}
        print(json.dumps(answer), flush=True)


def _limit_memory() -> None:
    if resource is not None:
        _limit(resource.RLIMIT_AS, CHILD_MEGABYTES << 20)
        _limit(resource.RLIMIT_CORE, 0)
        _limit(resource.RLIMIT_FSIZE, 0)


def _limit_time(seconds: float) -> None:
    """End this process after it has used this much more processor time."""
    if resource is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        most = int(used.ru_utime + used.ru_stime + seconds) + 1
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        _limit(resource.RLIMIT_CPU, most, hard)


def _limit(kind: int, most: int, hard: int | None = None) -> None:
    """Set a limit, if the system has it. The hard limit comes down with it, or stays as given."""
    _, known = resource.getrlimit(kind)
    within = most if known == resource.RLIM_INFINITY else min(most, known)
    with suppress(OSError, ValueError):
        resource.setrlimit(kind, (within, within if hard is None else hard))
