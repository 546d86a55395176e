"""Runs derivation from hostile templates, each in a process of its own that cannot cost more than its limits.

`python hostile.py` reads templates as JSON, one a line, and answers each with a line: what came of it, the CPU seconds
that it took, and the most memory that the process had.
"""

import json
import os
import resource
import sys
from typing import Any

import toolgram

CPU_SECONDS = 10  # after which the system ends the process; the test allows less


def main() -> None:
    toolgram.derive_format("{% for m in messages %}{{ m.content }}{% endfor %}")  # what is imported once
    for line in sys.stdin:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
            os.write(writer, json.dumps(_outcome(json.loads(line))).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, "rb") as stream:
            answer = stream.read()
        _, status = os.waitpid(child, 0)
        print(answer.decode() or json.dumps({"error": f"ended with the status {status}", "cpu": CPU_SECONDS, "mb": 0}))
        sys.stdout.flush()


def _outcome(template: str) -> dict[str, Any]:
    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        toolgram.derive_format(template)
        error = ""
    except toolgram.ToolgramError as problem:
        error = f"{type(problem).__name__}: {problem}"
    except BaseException as problem:
        error = f"not a ToolgramError: {problem!r}"[:1000]
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"error": error, "cpu": cpu, "mb": after.ru_maxrss / (1 << (20 if sys.platform == "darwin" else 10))}


if __name__ == "__main__":
    main()
