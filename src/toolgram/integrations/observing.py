"""What an operator sees of toolgram in a vLLM server: its logger, metrics, and recorded failures.

* The counter `toolgram_answers_total` has a label `outcome`: complete, truncated, malformed, repaired, passed_through.
  It is in the registry of prometheus_client, which the servers need themselves, and serve as /metrics.
* TOOLGRAM_RECORD_FAILED=DIRECTORY records outputs with a call that could not be read: `failed.jsonl` (for `toolgram
  parse --jsonl output`) and the format. At most MOST_RECORDED outputs of at most LONGEST_RECORDED characters.
  Off by default, because outputs contain users' data.
"""

from __future__ import annotations

import logging
import os
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from toolgram.formats import Format
from toolgram.gateway.recording import Recorder as Rows
from toolgram.limits import LONGEST_RECORDED, MOST_RECORDED

logger = logging.getLogger("vllm.toolgram")  # below "vllm", so that the server's handlers print it

RECORD_VARIABLE = "TOOLGRAM_RECORD_FAILED"
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


class Recorder:
    """A directory of outputs that could not be read. Raises OSError if it cannot be written."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        rows = folder / "failed.jsonl"
        self._folder, self._add = folder, Rows(str(rows))
        self.written = rows.read_bytes().count(b"\n")

    def write(self, fmt: Format, text: str, prefix: str | None, tools: Any, finish_reason: str | None) -> None:
        """Write one output as a row, and the format unless it is there already."""
        if self.written >= MOST_RECORDED:
            return
        self.written += 1
        for ending, content in ((".lark", fmt.grammar_text), (".yaml", fmt.machine_text)):
            path = self._folder / f"{fmt.name}{ending}"
            if not path.exists():
                path.write_text(content, encoding="utf-8")
        row = {"output": text[:LONGEST_RECORDED], "format": fmt.name, "prefix": prefix, "tools": list(tools)}
        self._add({**row, "finish_reason": finish_reason})


@lru_cache(maxsize=1)
def recorder() -> Recorder | None:
    """Return the recorder that the environment asks for, or None; also None if its directory cannot be written."""
    asked = os.environ.get(RECORD_VARIABLE)
    if not asked:
        return None
    try:
        return Recorder(Path(asked))
    except OSError as error:
        logger.warning("toolgram: %s: %s cannot be written: %s", RECORD_VARIABLE, asked, error)
        return None


@lru_cache(maxsize=64)
def warn_once(text: str) -> None:
    """Log a warning once."""
    logger.warning("toolgram: %s", text)


def warn_no_constraint(why: str) -> None:
    """Log once for each reason that tool calls are not enforced."""
    warn_once(f"calls are parsed but not enforced, because there is no constraint: {why}")
