"""A `tool_calls` that a server wrote is no evidence that its model had ended: whoever reads a server's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest

import toolgram
from tests.adapters.test_wrapping import Raw
from tests.gateway.servers import Script, gateway_to, running
from toolgram.adapters import CompletionTexts, evidence_in, sse
from toolgram.audit.comparing import compare
from toolgram.audit.served import served
from toolgram.bulk.rows import Columns, RowOptions, RowReader
from toolgram.gateway.loading import TemplateFiles
from toolgram.integrations.langchain import output_parser

FORMAT = toolgram.get_format("qwen3_coder")
CUT = "<tool_call>\n<function=f>\n<parameter=x>\nhalf of th"
TOOL: Any = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
HI: Any = [{"role": "user", "content": "hi"}]


def by_bulk(reason: str) -> str:
    reader = RowReader(RowOptions("text", FORMAT, columns=Columns(finish_reason="reason")))
    message = reader.answer({"text": CUT, "reason": reason}).message
    assert message is not None
    return message.tool_calls[0].status


def by_audit(reason: str) -> str:
    call = {"function": {"name": "f", "arguments": '{"x": "half of th"}'}}
    choice = {"message": {"content": None, "tool_calls": [call]}, "finish_reason": reason}
    (answer,) = served({"raw": CUT, "choices": [choice]})
    return "truncated" if [each.kind for each in compare(answer, FORMAT).findings] == ["cut off"] else "complete"


def by_langchain(reason: str) -> str:
    from langchain_core.messages import AIMessageChunk

    pieces = [AIMessageChunk(content=CUT, response_metadata={"finish_reason": reason})]
    message = output_parser(FORMAT).invoke(pieces[0])
    return "complete" if message.tool_calls else "truncated"


def by_the_gateway(reason: str) -> str:
    template = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{{ tools }}"
    settings: Any = {"files": TemplateFiles(template + "<|im_start|>assistant\n"), "fmt": FORMAT}
    with (
        gateway_to(Script([CUT], reason, kind="openai"), **settings) as (address, _),
        openai.OpenAI(base_url=f"{address}/v1", api_key="x", max_retries=0) as client,
    ):
        choice = client.chat.completions.create(model="any", messages=HI, tools=[TOOL]).choices[0]
    return "complete" if choice.finish_reason == "tool_calls" else "truncated"


def by_wrap(reason: str) -> str:
    app = Raw(text=CUT, reason=reason).app()
    with running(app) as address, openai.OpenAI(base_url=f"{address}/v1", api_key="x", max_retries=0) as client:
        wrapped = toolgram.wrap(client, FORMAT)
        found = wrapped.chat.completions.create(model="any", messages=HI, tools=[TOOL]).choices[0]
    return "complete" if found.finish_reason == "tool_calls" else "truncated"


def by_completions(reason: str) -> str:
    texts = CompletionTexts([sse([{"choices": [{"index": 0, "text": CUT, "finish_reason": reason}]}])])
    parser = FORMAT.parser()
    for text in texts:
        parser.feed(text)
    parser.close(evidence_in(texts.finish_reason))
    return parser.message.tool_calls[0].status


WAYS = (by_bulk, by_audit, by_langchain, by_the_gateway, by_wrap, by_completions)


@pytest.mark.parametrize("way", WAYS)
def test_what_a_server_writes_over_an_end(way: Callable[[str], str]) -> None:
    assert way("tool_calls") == "truncated"
    assert way("length") == "truncated"
    assert way("stop") == "complete"


def test_the_words_of_servers() -> None:
    assert [evidence_in(word) for word in ("stop", "end_turn", None, "")] == ["stop", "stop", None, None]
    assert [evidence_in(word) for word in ("length", "max_tokens", "incomplete")] == ["length"] * 3
    assert [evidence_in(word) for word in ("tool_calls", "tool_use", "completed", "stop_sequence")] == [None] * 4
    assert evidence_in("abort") == "abort"
