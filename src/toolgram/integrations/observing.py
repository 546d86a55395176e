"""What an operator sees of toolgram in a vLLM server: its logger, counters, and the outputs that failed.

* The counter `toolgram_answers_total` has a label `outcome`: complete, truncated, malformed, repaired, passed_through.
  It is in the registry of prometheus_client, from which vLLM serves /metrics; where that package is missing, the counts
  are one line in the log at the end.
* The gauge `toolgram_tags` has a label `result`: found in the cache, or written anew.
* TOOLGRAM_RECORD_FAILED=DIRECTORY writes outputs with a call that could not be read there: `failed.jsonl` for `toolgram
  parse --jsonl output`, and the format beside it. At most MOST_RECORDED outputs of at most LONGEST_RECORDED characters;
  off by default, because outputs are what users asked and were told.
"""

from __future__ import annotations

import atexit
import logging
import os
from collections import Counter
from collections.abc import Callable
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

from toolgram.formats import Format
from toolgram.gateway.recording import Recorder as Rows
from toolgram.limits import LONGEST_RECORDED, MOST_RECORDED

logger = logging.getLogger("vllm.toolgram")  # below "vllm", so that the server's handlers print it

RECORD_VARIABLE = "TOOLGRAM_RECORD_FAILED"
OUTCOMES = ("complete", "truncated", "malformed", "repaired", "passed_through")

counts: Counter[str] = Counter()


def count(outcome: str) -> None:
    """One more answer that came out so."""
    counts[outcome] += 1
    by_outcome = counter()
    if by_outcome is not None:
        by_outcome[outcome].inc()


@lru_cache(maxsize=1)
def counter() -> Any:
    """Register the counter, so that /metrics has it from the start. Returns it by outcome; None if it has no place."""
    try:
        prometheus = import_module("prometheus_client")
    except ImportError:
        atexit.register(_say_counts)
        return None
    try:
        made: Any = prometheus.Counter("toolgram_answers", "Answers that toolgram has read, by outcome", ["outcome"])
    except ValueError:  # a process that loaded this module twice
        made = getattr(prometheus.REGISTRY, "_names_to_collectors", {}).get("toolgram_answers")
    return {outcome: made.labels(outcome=outcome) for outcome in OUTCOMES} if made is not None else None


def watch_cache(info: Callable[[], Any]) -> None:
    """Show how many tags of requests were found in a cache, and how many were written anew: `toolgram_tags`."""
    try:
        gauge: Any = import_module("prometheus_client").Gauge(
            "toolgram_tags", "Tags of requests, by result", ["result"]
        )
    except (ImportError, ValueError):  # a process without the package, or one that loaded this module twice
        return
    for result, name in (("found", "hits"), ("written", "misses")):
        gauge.labels(result=result).set_function(partial(lambda each: getattr(info(), each), name))


def _say_counts() -> None:
    if counts:
        logger.info("toolgram: answers read: %s", ", ".join(f"{counts[each]} {each}" for each in OUTCOMES))


# --- outputs that failed --------------------------------------------------------------------------------------------


class Recorder:
    """A directory of outputs that could not be read. Raises OSError if it cannot be written."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        rows = folder / "failed.jsonl"
        self._folder, self._add = folder, Rows(str(rows))
        self.written = rows.read_bytes().count(b"\n")

    def write(self, fmt: Format, text: str, prefix: str | None, tools: Any, finish_reason: str | None) -> None:
        """Write one output as a row, and the format if it is not there yet."""
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
    """The recorder that the environment asks for; None without one, or where its directory cannot be written."""
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
    """Log a warning, once."""
    logger.warning("toolgram: %s", text)


def warn_no_constraint(why: str) -> None:
    """Log a warning, once for each reason, that tool calls are not enforced."""
    warn_once(f"calls are parsed but not enforced, because there is no constraint: {why}")
