"""Processes of the command line."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Start


@pytest.fixture
def environment(root: Path) -> dict[str, str]:
    """For subprocesses: this source tree, and nothing about colour inherited from whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR"}}
    return kept | {"PYTHONPATH": str(root / "src"), "TERM": "xterm-256color", "COLUMNS": "100"}


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Start]:
    """Start `toolgram` as a process; what still runs when the test is over is ended."""
    started = []

    def begin(*arguments: str, extra: dict[str, str] | None = None, **streams: Any) -> Any:
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE) | streams
        command = [sys.executable, "-m", "toolgram", *arguments]
        started.append(subprocess.Popen(command, env=environment | (extra or {}), **pipes))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()
