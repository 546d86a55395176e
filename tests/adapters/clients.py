"""The official clients' own models and accumulators: they check every dictionary, and put streams together again."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message as AnthropicMessage
from anthropic.types import RawMessageStreamEvent
from openai import omit
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

_ANTHROPIC: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
_RESPONSES: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


@dataclass
class Rebuilt:
    """A message as a client has it: texts and calls, with whatever the API says about why it ended."""

    content: str = ""
    reasoning: str = ""
    calls: list[tuple[str, str, Any]] = field(default_factory=list)  # id, name, arguments
    reason: str = ""


def chat_whole(completion: Mapping[str, Any], key: str = "reasoning_content") -> Rebuilt:
    """The first choice of a completion, checked."""
    choice = ChatCompletion.model_validate(completion).choices[0]
    extra: Mapping[str, Any] = choice.message.model_extra or {}
    made = Rebuilt(choice.message.content or "", extra.get(key) or "", reason=choice.finish_reason)
    for call in choice.message.tool_calls or ():
        assert call.type == "function"
        made.calls.append((call.id, call.function.name, call.function.arguments))
    return made


def chat_stream(chunks: Iterable[Mapping[str, Any]], key: str = "reasoning_content") -> Rebuilt:
    """The chunks, put together by the client of OpenAI."""
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    for chunk in chunks:
        state.handle_chunk(ChatCompletionChunk.model_validate(chunk, strict=True))
    whole = state.current_completion_snapshot  # the final one raises for the finish reason `length`
    return chat_whole(whole.model_dump(), key)


def responses_whole(response: Any) -> Rebuilt:
    """A response, checked."""
    response = Response.model_validate(response, from_attributes=True)
    made = Rebuilt(reason=response.status or "")
    for item in response.output:
        if item.type == "message":
            made.content += "".join(part.text for part in item.content if part.type == "output_text")
        elif item.type == "reasoning":
            made.reasoning += "".join(part.text for part in item.content or ())
        elif item.type == "function_call":
            made.calls.append((item.call_id, item.name, item.arguments))
    return made


def responses_stream(events: Iterable[Mapping[str, Any]]) -> Rebuilt:
    """The stream events, put together by the client of OpenAI; their numbers have no gaps."""
    state: ResponseStreamState[Any] = ResponseStreamState(input_tools=omit, text_format=omit)
    last = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client's own models disagree about parsed items
        for number, each in enumerate(events):
            assert each["sequence_number"] == number
            last = _RESPONSES.validate_python(each)
            state.handle_event(last)
    assert last is not None
    assert last.type in ("response.completed", "response.incomplete", "response.failed")
    return responses_whole(last.response)


def anthropic_whole(message: Any) -> Rebuilt:
    """A message, checked."""
    message = AnthropicMessage.model_validate(message, from_attributes=True)
    made = Rebuilt(reason=message.stop_reason or "")
    for block in message.content:
        if block.type == "text":
            made.content += block.text
        elif block.type == "thinking":
            made.reasoning += block.thinking
        elif block.type == "tool_use":
            made.calls.append((block.id, block.name, block.input))
    return made


def anthropic_stream(events: Iterable[Mapping[str, Any]]) -> Rebuilt:
    """The stream events, put together by the client of Anthropic."""
    message: Any = None
    buffers: dict[int, bytes] = {}
    for each in events:
        event = _ANTHROPIC.validate_python(each)
        message = accumulate_event(event=event, current_snapshot=message, json_bufs=buffers)
    return anthropic_whole(message)
