"""What an operator sees of toolgram in a vLLM server: its logger and its counter of answers.

The counter `toolgram_answers_total` has a label `outcome`: complete, truncated, malformed, repaired, passed_through. It
is in the registry of prometheus_client, which the servers need themselves, and serve as /metrics.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from importlib import import_module
from typing import Any

logger = logging.getLogger("vllm.toolgram")  # below "vllm", so that the server's handlers print it

OUTCOMES = ("complete", "truncated", "malformed", "repaired", "passed_through")


def count(outcome: str) -> None:
    """Count one more answer with this outcome."""
    by_outcome = counter()
    if by_outcome is not None:
        by_outcome[outcome].inc()


@lru_cache(maxsize=1)
def counter() -> Any:
    """Register the counter, so that /metrics has it from the start. Return it by outcome; None without its package."""
    try:
        prometheus = import_module("prometheus_client")
    except ImportError:
        return None
    try:
        made: Any = prometheus.Counter("toolgram_answers", "Answers that toolgram has read, by outcome", ["outcome"])
    except ValueError:  # a process that loaded this module twice
        made = getattr(prometheus.REGISTRY, "_names_to_collectors", {}).get("toolgram_answers")
    return {outcome: made.labels(outcome=outcome) for outcome in OUTCOMES} if made is not None else None


@lru_cache(maxsize=64)
def warn_once(text: str) -> None:
    """Log a warning once."""
    logger.warning("toolgram: %s", text)
