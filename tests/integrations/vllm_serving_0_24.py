"""What vLLM 0.24 does around a parser in its serving layer, where it cannot be called: the same steps, written out.

The parser is vLLM's own. What comes before and after it is what `chat_completion/serving.py` of 0.24 does to a
delta, to a message and to the finish reason.
"""

from types import SimpleNamespace
from typing import Any


class ChatStreamProcessor:
    """The deltas of one choice."""

    def __init__(self, request: Any, parser: Any, *, enable_auto_tools: bool, parser_cls: Any) -> None:
        self.request, self.parser = request, parser
        self.streamed = False

    def step(self, text: str, ids: list[int], finish_reason: str | None, prompt: list[int] | None) -> Any:
        finished = finish_reason is not None
        delta = self.parser.parse_delta(
            delta_text=text, delta_token_ids=ids, request=self.request, prompt_token_ids=prompt, finished=finished
        )
        if delta is not None and delta.tool_calls:
            self.streamed = True
            if self.request.parallel_tool_calls is False:
                delta.tool_calls = [call for call in delta.tool_calls if call.index == 0]
        if finish_reason is not None:
            finish_reason = resolve_finish_reason(finish_reason, self.request, self.streamed)
        return SimpleNamespace(delta=delta, finish_reason=finish_reason)


def resolve_finish_reason(finish_reason: str, request: Any, called: bool) -> str:
    """The finish reason that a client gets."""
    named = not isinstance(request.tool_choice, str) and request.tool_choice is not None
    return "tool_calls" if called and finish_reason == "stop" and not named else finish_reason


def assemble_chat_message_fields(
    request: Any, reasoning: Any, content: Any, calls: Any, *, enable_auto_tools: bool, parser_cls: Any
) -> Any:
    kept = list(calls or ()) if request.tools and request.tool_choice != "none" else []
    if request.parallel_tool_calls is False:
        kept = kept[:1]
    made = [SimpleNamespace(id=call.id, function=call) for call in kept]
    return SimpleNamespace(
        reasoning=reasoning if getattr(request, "include_reasoning", True) else None, content=content, tool_calls=made
    )
