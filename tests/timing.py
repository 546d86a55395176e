"""How long something takes of this process's own time, whatever other tests have left in memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cpu_seconds() -> Iterator[list[float]]:
    """A list that has the seconds afterwards. The collector, which looks through everything, waits so long."""
    took: list[float] = []
    gc.disable()
    began = time.process_time()
    try:
        yield took
    finally:
        took.append(time.process_time() - began)
        gc.enable()
