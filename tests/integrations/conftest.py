"""What the vLLM tests say at their end: how many answers they compared."""

from __future__ import annotations

import sys
from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    driver = sys.modules.get("tests.integrations.vllm_driver")
    if driver is not None and driver.RUNS[0]:
        terminalreporter.write_line(f"vLLM: {driver.RUNS[0]} answers compared with the package's own parse")
