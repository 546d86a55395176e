"""What each patch of `vllm/` changes, in a vLLM that has them all: `make test-vllm-upstream`."""

from __future__ import annotations

from typing import Any

import pytest
from vllm.entrypoints.generate.base.protocol import DeltaFunctionCall, DeltaMessage, DeltaToolCall
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest, ChatCompletionResponse
from vllm.entrypoints.openai.chat_completion.stream_processor import ChatStreamProcessor
from vllm.entrypoints.openai.responses.streaming_events import split_delta
from vllm.parser import ParserManager
from vllm.parser.abstract_parser import DelegatingParser
from vllm.tool_parsers import ToolParser, ToolParserManager

pytestmark = pytest.mark.filterwarnings("default")


class Unified(DelegatingParser):  # type: ignore[misc]
    """A class that drives both parsers of its family."""

    said: list[str | None]

    def set_finish_reason(self, finish_reason: str | None) -> None:
        self.said = [*getattr(self, "said", ()), finish_reason]


class OfAFamily(ToolParser):  # type: ignore[misc]
    """A tool parser that names it."""

    @classmethod
    def unified_parser_cls(cls) -> type[Unified]:
        return Unified


def composed(name: str) -> Any:
    ToolParserManager.register_module("of_a_family", module=OfAFamily)
    return ParserManager.get_parser(tool_parser_name=name, enable_auto_tools=True, model_name="model")


def test_0001_a_pair_is_composed_on_its_own_class() -> None:
    assert issubclass(composed("of_a_family"), Unified)
    assert not issubclass(composed("hermes"), Unified)


def test_0002_the_finish_reason_reaches_a_parser() -> None:
    parser = composed("of_a_family")(None, None)
    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Hi"}])
    steps = ChatStreamProcessor(request, parser, enable_auto_tools=True, parser_cls=type(parser))
    steps.step("a", [1], None, [0])
    steps.step("b", [2], "length", [0])
    assert parser.said == [None, "length"]


def test_0003_arguments_of_an_open_call_come_before_the_content_that_ends_it() -> None:
    going_on = DeltaToolCall(index=0, function=DeltaFunctionCall(arguments="}"))
    begun = DeltaToolCall(index=1, id="b", type="function", function=DeltaFunctionCall(name="g", arguments=""))
    parts = split_delta(DeltaMessage(content="and", tool_calls=[going_on, begun]))
    assert [(part.content, [call.index for call in part.tool_calls]) for part in parts] == [
        (None, [0]),
        ("and", []),
        (None, [1]),
    ]


@pytest.mark.parametrize(("arguments", "kind"), [('{"a": 1}', "tool_use"), ('{"a": "on', "text")])
def test_0004_a_call_that_was_cut_off_is_text_in_a_message(arguments: str, kind: str) -> None:
    from vllm.entrypoints.anthropic.serving import AnthropicServingMessages  # warns of torch

    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    reason = "tool_calls" if kind == "tool_use" else "length"
    choice = {"index": 0, "message": message, "finish_reason": reason, "stop_reason": None}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    made = ChatCompletionResponse(model="m", choices=[choice], usage=usage)
    result = AnthropicServingMessages.messages_full_converter(None, made)
    assert [block.type for block in result.content] == [kind]
    assert result.stop_reason == ("tool_use" if kind == "tool_use" else "max_tokens")
    assert kind == "tool_use" or "on" in result.content[0].text
