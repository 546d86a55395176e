"""Answer requests with the response parser of transformers, for families whose calls a response template can say.

No checkpoint comes with a response template that says all; those of `response_templates.json` were written for this.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from protocol import Answer, Skip, answer, load, serve

TEMPLATES = load("response_templates")


@lru_cache(maxsize=128)
def template(family: str) -> Any:
    """Return the response template of a family."""
    if family not in TEMPLATES:
        raise Skip("no response template can say how calls of this family are written")
    loading: Any = import_module("transformers.utils.chat_parsing.response_templates")
    return loading.load_response_template(TEMPLATES[family])


def read(asked: dict[str, Any]) -> Answer:
    """Return the message of a request."""
    parsing: Any = import_module("transformers.utils.chat_parsing")
    parser = parsing.ResponseParser(
        template(asked["family"]), prefix=asked.get("prompt") or "", tools=asked.get("tools")
    )
    for delta in asked["deltas"]:
        parser.feed(delta["text"])
    message, _ = parser.finalize()
    functions = [call["function"] for call in message.get("tool_calls") or []]
    thought = message.get("thinking") or message.get("reasoning_content")
    return answer(message.get("content"), thought, [(each.get("name"), each.get("arguments")) for each in functions])


if __name__ == "__main__":
    serve("transformers", read)
