"""What an operator sees of toolgram in a vLLM server: one line at the start, counters, and the outputs that failed.

* The line says which format is read, how it was found, its markers, how it reasons, and which command tells more.
* The counter `toolgram_answers_total` has a label `outcome`: complete, truncated, malformed, repaired, passed_through.
  It is in the registry of prometheus_client, from which vLLM serves /metrics; where that package is missing, the counts
  are one line in the log at the end.
* TOOLGRAM_RECORD_FAILED=DIRECTORY writes outputs with a call that could not be read there: `failed.jsonl` for `toolgram
  parse --jsonl text`, each as a text file for `toolgram explain`, and the format beside them. At most RECORDED outputs
  of at most LONGEST characters; off by default, because outputs are what users asked and were told.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
from collections import Counter
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolgram.integrations.served import Served

logger = logging.getLogger("vllm.toolgram")  # below "vllm", so that the server's handlers print it

RECORD_VARIABLE = "TOOLGRAM_RECORD_FAILED"
RECORDED = 100  # outputs in one directory
LONGEST = 1_000_000  # characters of one output
OUTCOMES = ("complete", "truncated", "malformed", "repaired", "passed_through")
_SHOWN = 6  # markers in the line

counts: Counter[str] = Counter()


def count(outcome: str) -> None:
    """One more answer that came out so."""
    counts[outcome] += 1
    counter = _counter()
    if counter is not None:
        counter[outcome].inc()


@lru_cache(maxsize=1)
def _counter() -> Any:
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


def _say_counts() -> None:
    if counts:
        logger.info("toolgram: answers read: %s", ", ".join(f"{counts[each]} {each}" for each in OUTCOMES))


# --- the line at the start ------------------------------------------------------------------------------------------

UNTOLD_END = "which no marker of its own ends: a grammar holds calls from the first token on, or not at all"
_told: set[int] = set()


def say_start(served: Served) -> None:
    """One line about a format, once in a process that serves."""
    if id(served) in _told or served.fmt is None:
        return
    _told.add(id(served))
    try:
        logger.info("toolgram: %s", start_line(served))
        _counter()  # so that /metrics has it from the start
    except Exception as error:  # a line in a log must not stop a server
        logger.debug("toolgram: nothing to say of %s: %r", served.name, error)


def start_line(served: Served) -> str:
    """Which format, how it was found, its markers, how it reasons, whether all is well, and where to ask."""
    fmt = served.fmt
    assert fmt is not None
    report = fmt.report
    analysis = report.analysis if report else None
    if report is None:
        found = "named by the flag" if served.name != "auto" else "told by the tokenizer's version"
    else:
        shipped = f" as {report.shipped}" if report.shipped else ""
        found = f"derived from the chat template{shipped}"
    markers = list(dict.fromkeys(fmt.program.special.values()))
    shown = " ".join(markers[:_SHOWN]) + (f" and {len(markers) - _SHOWN} more" if len(markers) > _SHOWN else "")
    tokens = sum(marker in served.tokens for marker in markers)
    mode = str(getattr(analysis.reasoning_mode, "value", analysis.reasoning_mode)) if analysis else ""
    reasoning = f"reasoning {mode or 'yes'}" if served.reasons else "no reasoning"
    if served.reasons and not served.tells_its_end:
        reasoning += f", {UNTOLD_END}"
    if report is None:
        verdict, ask = "shipped", f"toolgram explain --format {fmt.name} ANSWER.txt"
    else:
        verdict = (
            "ok"
            if report.ok and not report.warnings
            else f"{len(report.failed)} failed, {len(report.warnings)} warnings"
        )
        ask = "toolgram derive CHAT_TEMPLATE.jinja --report"
    return (
        f"reads {fmt.name} ({found}); markers {shown or 'none'} ({tokens} of {len(markers)} are tokens); {reasoning}; "
        f"report {verdict}; ask: {ask}"
    )


# --- outputs that failed --------------------------------------------------------------------------------------------


class Recorder:
    """A directory of outputs that could not be read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written = 0
        folder.mkdir(parents=True, exist_ok=True)
        self.written = len(list(folder.glob("failed-*.txt")))

    @property
    def full(self) -> bool:
        """Whether no more is written."""
        return self.written >= RECORDED

    def write(self, served: Served, text: str, prefix: str | None, tools: Any, finish_reason: str | None) -> None:
        """One output, as a row and as a file of its own."""
        if self.full or served.fmt is None:
            return
        self.written += 1
        name = f"failed-{self.written:03}.txt"
        text = text[:LONGEST]
        (self.folder / name).write_text(text, encoding="utf-8", newline="")
        for ending, content in ((".lark", served.fmt.grammar_text), (".yaml", served.fmt.machine_text)):
            path = self.folder / f"{served.fmt.name}{ending}"
            if not path.exists():
                path.write_text(content, encoding="utf-8")
        row = {
            "text": text,
            "file": name,
            "format": served.fmt.name,
            "prefix": prefix,
            "tools": list(tools),
            "finish_reason": finish_reason,
        }
        with (self.folder / "failed.jsonl").open("a", encoding="utf-8") as rows:
            rows.write(json.dumps(row, ensure_ascii=False) + "\n")


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
