"""Server-sent events as text.

Strategy: everything outside ASCII is escaped. Several clients split their input at any character that Python or
JavaScript calls the end of a line, U+2028 and U+0085 among them, and a lone surrogate cannot be written as UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

CHAT_DONE = "data: [DONE]\n\n"


def sse(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return the lines of these chunks or stream events, ready to be sent. A `type` becomes the name of its event."""
    return "".join(map(_lines, messages))


def _lines(message: Mapping[str, Any]) -> str:
    data = f"data: {json.dumps(message, separators=(',', ':'))}\n\n"
    kind = message.get("type")
    return f"event: {kind}\n{data}" if isinstance(kind, str) else data
