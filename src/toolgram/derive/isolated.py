"""Derivation in a separate process, whose cost is limited for any template.

Strategy: a child process derives one format and ends. The system limits its memory and its processor time; if the
system cannot, the parent ends the child when it does not answer. The two exchange only JSON, and a format from the
child is checked like any other. The child has the same rights as its parent: this limits the cost; the sandbox limits
what templates may access.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

try:
    import resource
except ImportError:  # a system without limits
    resource = None  # type: ignore[assignment]

from toolgram.derive.errors import CostlyTemplate, TemplateError
from toolgram.limits import CHILD_MEGABYTES

_GRACE = 2.0  # seconds of processor time that a child has beyond its budget
_PATIENCE = 20.0  # times the budget that an answer may take on a busy machine
_COMMAND = "from toolgram.derive import deriving, isolated; isolated.answer(deriving.derive_now)"


def derive_apart(question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return a derived format as data (`keeping`), made by a child process.

    Raises TemplateError as `derive_format` does, and CostlyTemplate if the process had to be ended.
    """
    most = seconds + _GRACE
    try:
        child = subprocess.run(
            [sys.executable, "-P", "-B", "-c", _COMMAND],
            input=json.dumps({**question, "seconds": seconds}),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
            encoding="utf-8",
            timeout=most * _PATIENCE,
            check=True,
        )
        given = dict(json.loads(child.stdout))
    except (subprocess.SubprocessError, OSError, ValueError):  # it has ended, or was ended, without an answer
        raise CostlyTemplate(
            f"the process that derived was ended: it needed more than {most:g} s of the processor, or "
            f"{CHILD_MEGABYTES} MB"
        ) from None
    if "problem" in given:
        kind = CostlyTemplate if given["costly"] else TemplateError
        raise kind(str(given["problem"]), int(given["line"]))
    return dict(given["format"])


def answer(derive: Callable[..., Any]) -> None:
    """Answer the question on the input with the result of `derive`."""
    question = json.loads(sys.stdin.read())
    _limit(question["seconds"] + _GRACE)
    try:
        given: dict[str, Any] = {"format": derive(**question)}
    except TemplateError as error:
        given = {"problem": error.problem, "line": error.line, "costly": isinstance(error, CostlyTemplate)}
    print(json.dumps(given))


def _limit(seconds: float) -> None:
    """Limit the memory of this process, and how much more processor time it may use, as far as the system can."""
    if resource is not None:
        most = {
            resource.RLIMIT_AS: CHILD_MEGABYTES << 20,
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: 0,
            resource.RLIMIT_CPU: int(time.process_time() + seconds) + 1,
        }
        for kind, limit in most.items():
            _, known = resource.getrlimit(kind)
            bound = limit if known == resource.RLIM_INFINITY else min(limit, known)
            with suppress(OSError, ValueError):
                resource.setrlimit(kind, (bound, bound))
