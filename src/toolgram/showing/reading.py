"""What a pane shows of one text: how a format read it, delta by delta, and why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toolgram.adapters import to_anthropic_message, to_chat_message
from toolgram.call_ids import call_ids_of
from toolgram.events import Event
from toolgram.formats import Format
from toolgram.runtime.stream import TraceStep


def reading(
    fmt: Format,
    text: str,
    tools: Sequence[Any] | None = None,
    prefix: str | None = None,
    *,
    size: int | None = None,
    strict: bool = False,
    finish_reason: str | None = None,
) -> dict[str, Any]:
    """Return how a text is read in deltas of `size` characters, or in one: the events of each, the state after it, the
    message in three shapes, and the anomalies."""
    states: list[str] = [fmt.spec.initial]

    def saw(step: TraceStep) -> None:
        states.append(step.dest)

    ids = call_ids_of(text, fmt.spec.call_ids)
    parser = fmt.parser(tools, prefix, ids, trace=saw, strict=strict)
    prompted = states[-1]
    steps = []
    size = size or max(1, len(text))
    for at in range(0, len(text), size):
        delta = text[at : at + size]
        steps.append({"delta": delta, "events": [_said(event) for event in parser.feed(delta)], "state": states[-1]})
    closing = [_said(event) for event in parser.close(finish_reason)]
    steps.append({"delta": "", "events": closing, "state": states[-1]})
    message = parser.message
    return {
        "start": prompted,
        "steps": steps,
        "message": message.to_dict(),
        "openai": to_chat_message(message),
        "anthropic": to_anthropic_message(message, id="msg_shown"),
        "anomalies": [
            {"kind": each.kind, "start": each.start, "text": each.text, "said": each.said, "page": each.page}
            for each in message.anomalies
        ],
    }


def explained(fmt: Format, text: str, tools: Sequence[Any] | None = None, prefix: str | None = None) -> dict[str, Any]:
    """Return why a text was read as it was, and which other format reads more."""
    told = fmt.explain(text, tools, prefix).to_dict()
    return {name: told[name] for name in ("verdict", "held", "path", "alternatives")}


def _said(event: Event) -> dict[str, Any]:
    return {name: getattr(event, name) for name in ("type", *event.__match_args__) if hasattr(event, name)}
