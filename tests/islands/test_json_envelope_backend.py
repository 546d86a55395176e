"""ijson has backends in C and in Python. Where only Python runs (a browser, PyPy), nothing is printed either."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys, toolgram
fmt = toolgram.get_format("hermes")
for output in sys.argv[1:]:
    parser = fmt.parser()
    parser.feed(output)
    del parser
    print([call.name for call in fmt.parse(output).tool_calls])
"""
OUTPUTS = {
    '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>': ["f"],
    '<tool_call>\n{"name": "f", "argum': ["f"],
    '<tool_call>\n{"x": [1, {"b": 2}], "name": "f"}\n</tool_call>': [],
}


@pytest.mark.parametrize("backend", ["python", "yajl2_c"])
def test_a_stream_that_is_dropped_prints_nothing(backend: str) -> None:
    environment = {**os.environ, "IJSON_BACKEND": backend}
    command = [sys.executable, "-W", "error", "-c", PROGRAM, *OUTPUTS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [str(names) for names in OUTPUTS.values()]
