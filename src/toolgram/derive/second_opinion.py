"""A second opinion on a derived format: the tokenizer's own `response_template`, or its predecessor.

Strategy: a tokenizer that has its own template parses the messages with which derivation proves its result. A message
that it parses differently is a warning in the report.
"""

from __future__ import annotations

import json
from typing import Any

from toolgram.formats import Format

_ASKED = ("response_template", "response_schema")
_NAMES = ("thinking", "reasoning_content", "reasoning")


def second_opinion(tokenizer: Any, fmt: Format) -> list[str]:
    """Return one line for each message that the tokenizer's own `response_template` parses differently.

    If it has none, its `response_schema` is used, which older versions of transformers have, and which parses the
    output alone. Empty if it has neither, or if both agree. An exception is a disagreement.
    """
    report = fmt.report
    asked = next((name for name in _ASKED if getattr(tokenizer, name, None)), "")
    if report is None or report.analysis is None or not asked:
        return []
    found = []
    for probe in report.probes:
        prefix = report.analysis.prompts[probe.prompt].text
        message = fmt.parse(probe.output, prefix=prefix, finish_reason="stop")
        ours = (
            message.content,
            message.reasoning,
            [(call.name, json.loads(call.arguments)) for call in message.tool_calls],
        )
        try:
            known = {"prefix": prefix} if asked == _ASKED[0] else {}
            theirs = _read(tokenizer.parse_response(probe.output, **known))
        except Exception as error:  # this is external code, on an untrusted template
            found.append(f"the tokenizer's {asked} raises on {probe.case}: {str(error)[:120]}")
            continue
        if theirs != ours:
            found.append(f"the tokenizer's {asked} reads {probe.case} otherwise")
    return found


def _read(message: Any) -> tuple[str | None, str | None, list[tuple[str, Any]]]:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    thoughts = [message[name] for name in _NAMES if message.get(name)]
    given = [(call["name"], call["arguments"]) for call in calls]  # older versions give arguments as JSON text
    read = [(name, json.loads(each) if isinstance(each, str) else each) for name, each in given]
    return _plain(message.get("content")), _plain(thoughts[0]) if thoughts else None, read


def _plain(text: Any) -> str | None:
    """Return text without blanks at its edges, which such a template keeps; None for empty text."""
    return (text.strip() or None) if isinstance(text, str) else None
