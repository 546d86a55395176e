"""Numbers about the gateway, for Prometheus, and a line for each answer. Nothing of what is said is in them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from toolgram.adapters.usage import Usage
from toolgram.message import Message

_LOG = logging.getLogger("toolgram.gateway")
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Numbers:
    """The counters of one gateway. `lost` says how many raw outputs could not be recorded."""

    def __init__(self, lost: Callable[[], int]) -> None:
        self.registry = own = CollectorRegistry()
        records = Gauge("toolgram_records_lost", "Raw outputs that could not be recorded", registry=own)
        records.set_function(lost)
        what = "Requests by their API and the status of the answer"
        self._requests = Counter("toolgram_requests", what, ["api", "status"], registry=own)
        self.in_flight = Gauge("toolgram_answers_in_flight", "Answers that are being written", registry=own)
        what = "How long answers took"
        self._seconds = Histogram("toolgram_answer_seconds", what, ["api"], buckets=_SECONDS, registry=own)
        self._tokens = Counter("toolgram_tokens", "Tokens, as the server counts them", ["kind"], registry=own)
        self._calls = Counter("toolgram_calls", "Tool calls by how they ended", ["status"], registry=own)
        what = "What models wrote and a clean output would not have"
        self._anomalies = Counter("toolgram_anomalies", what, ["kind"], registry=own)

    def request(self, api: str, status: int) -> None:
        """Count a request that was answered or refused."""
        self._requests.labels(api, str(status)).inc()

    def answer(self, api: str, seconds: float, usage: Usage, message: Message) -> None:
        """Count an answer that is over."""
        self._seconds.labels(api).observe(seconds)
        self._tokens.labels("prompt").inc(usage.prompt)
        self._tokens.labels("output").inc(usage.output)
        for call in message.tool_calls:
            self._calls.labels(call.status).inc()
        if message.malformed:
            self._calls.labels("malformed").inc(len(message.malformed))
        for anomaly in message.anomalies:
            self._anomalies.labels(anomaly.kind).inc()

    def text(self) -> bytes:
        """Return all metrics, as Prometheus reads them."""
        return generate_latest(self.registry)


def log_answer(**fields: Any) -> None:
    """Log an answer that is over."""
    _LOG.info("answer", extra={"fields": fields})


def log_to_stderr(as_json: bool) -> None:
    """Show what the gateway logs: a line of `name=value` each, or a JSON object."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Lines(as_json))
    _LOG.handlers, _LOG.propagate = [handler], False
    _LOG.setLevel(logging.INFO)


class _Lines(logging.Formatter):
    def __init__(self, as_json: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Return a record on one line."""
        fields = getattr(record, "fields", {})
        if not self._as_json:
            return " ".join([super().format(record), *(f"{name}={value}" for name, value in fields.items())])
        said = {"time": self.formatTime(record), "level": record.levelname, "message": record.getMessage(), **fields}
        if record.exc_info:
            said["error"] = self.formatException(record.exc_info)
        return json.dumps(said)
