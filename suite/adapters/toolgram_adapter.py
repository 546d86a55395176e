"""Answer requests of `suite/run.py` with toolgram: `python suite/run.py 'python suite/adapters/toolgram_adapter.py'`.

A family of the suite is a format of toolgram by the same name.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import toolgram
from toolgram.events import Event

FAMILIES = frozenset(toolgram.format_names())


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """Return the message of a request, its calls in the order of the output."""
    return told(read(asked)[1]) if asked["family"] in FAMILIES else {"skip": "unknown family"}


def read(asked: dict[str, Any]) -> tuple[list[Event], toolgram.Message]:
    """Return the events of a request and its message."""
    parser = toolgram.get_format(asked["family"]).parser(
        tools=asked.get("tools"),
        prefix=asked.get("prompt"),
        special_tokens=asked.get("special_tokens"),
        call_ids=lambda: "id",
    )
    events: list[Event] = []
    for delta in asked["deltas"]:
        for text, number in delta.get("tokens", [(delta["text"], None)]):
            events += parser.feed(text, None if number is None else [number])
    return events + parser.close(asked["finish_reason"]), parser.message


def told(message: toolgram.Message) -> dict[str, Any]:
    """Return a message as an answer; calls that failed are at their index."""
    calls = [{"name": call.name, "arguments": call.arguments, "status": call.status} for call in message.tool_calls]
    for failed in message.malformed:  # in order of their indexes
        calls.insert(failed.index, {"name": failed.name, "arguments": failed.arguments, "status": "malformed"})
    return {"content": message.content, "reasoning": message.reasoning, "calls": calls}


def main() -> None:
    """Answer each line."""
    about = {"parser": f"toolgram {toolgram.__version__}"}
    for line in sys.stdin:
        print(json.dumps({**about, **answer(json.loads(line))}), flush=True)


if __name__ == "__main__":
    main()
