"""`toolgram.wrap`: the official clients get calls of a server that returns raw text, however they ask.

A `tool_calls` that a server wrote is no evidence that its model had ended: whoever reads a server's words."""

import asyncio
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx
import openai
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

import toolgram
from tests.gateway.servers import TEMPLATE, Script, gateway_to, running
from toolgram.adapters import CHAT_DONE, CompletionTexts, evidence_in, sse
from toolgram.audit import served as audited
from toolgram.audit.comparing import compare
from toolgram.bulk.rows import Columns, RowOptions, RowReader
from toolgram.gateway.loading import TemplateFiles
from toolgram.integrations.langchain import output_parser

TEXT = '<think>\nso\n</think>\n\nI look.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
TOOL: Any = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
HI: Any = [{"role": "user", "content": "hi"}]
USAGE = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}


@dataclass
class Raw:
    """A server that returns what its model wrote as content."""

    text: str = TEXT
    size: int = 5  # of its deltas
    more: dict[str, Any] = field(default_factory=dict)  # fields of a message
    blocks: list[dict[str, Any]] = field(default_factory=list)  # of Anthropic's, that the server has read itself
    reason: str = "stop"
    status: int = 200

    def app(self) -> Starlette:
        answers = {"/v1/chat/completions": self.chat, "/v1/messages": self.messages}
        return Starlette(routes=[Route(path, answer, methods=["POST"]) for path, answer in answers.items()])

    def deltas(self) -> list[str]:
        return [self.text[at : at + self.size] for at in range(0, len(self.text), self.size)]

    async def chat(self, request: Request) -> Response:
        if self.status != 200:
            return JSONResponse({"error": {"message": "no"}}, self.status)
        head = {"id": "c1", "created": 1, "model": "m", "object": "chat.completion"}
        if not (await request.json()).get("stream"):
            message = {"role": "assistant", "content": self.text, **self.more}
            choices = [{"index": 0, "message": message, "finish_reason": self.reason}]
            return JSONResponse({**head, "choices": choices, "usage": USAGE})
        head["object"] = "chat.completion.chunk"
        deltas: list[Any] = [{"role": "assistant", "content": ""}, *({"content": text} for text in self.deltas())]
        deltas += [self.more] if self.more else []
        chunks = [{**head, "choices": [{"index": 0, "delta": each, "finish_reason": None}]} for each in deltas]
        chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": self.reason}]})
        chunks.append({**head, "choices": [], "usage": USAGE})
        return Response(sse(chunks) + CHAT_DONE, media_type="text/event-stream")

    async def messages(self, request: Request) -> Response:
        usage = {"input_tokens": 3, "output_tokens": 5}
        head: dict[str, Any] = {"id": "m1", "type": "message", "role": "assistant", "model": "m", "usage": usage}
        head |= {"stop_reason": None, "stop_sequence": None}
        if not (await request.json()).get("stream"):
            return JSONResponse({**head, "content": [{"type": "text", "text": self.text}], "stop_reason": "end_turn"})
        events: list[Any] = [{"type": "message_start", "message": {**head, "content": []}}, {"type": "ping"}]
        texts = [{"type": "text_delta", "text": text} for text in self.deltas()]
        blocks: list[Any] = [({"type": "text", "text": ""}, texts)]
        for block in self.blocks:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            blocks.append(({**block, "input": {}}, [delta] if block["input"] else []))
        for index, (block, deltas) in enumerate(blocks):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": index})
        reason = "tool_use" if self.blocks else "end_turn"
        events.append({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}})
        events.append({"type": "message_stop"})
        return Response(sse(events), media_type="text/event-stream")


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Raw, str]]:
    raw = Raw()
    with running(raw.app()) as address:
        yield raw, address


@pytest.fixture
def server(served: tuple[Raw, str]) -> Raw:
    vars(served[0]).update(vars(Raw()))
    return served[0]


@pytest.fixture
def chat(served: tuple[Raw, str]) -> Iterator[openai.OpenAI]:
    http = httpx.Client(verify=False)
    with openai.OpenAI(base_url=f"{served[1]}/v1", api_key="x", max_retries=0, http_client=http) as client:
        yield client


@pytest.fixture
def claude(served: tuple[Raw, str]) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=served[1], api_key="x", max_retries=0) as client:
        yield client


FORMATS: list[dict[str, Any]] = [{"format": "hermes"}, {"template": TEMPLATE}, {}]


def check(message: Any, reason: str | None) -> None:
    assert message.content == "I look."
    (call,) = message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("f", {"a": 1})
    assert reason == "tool_calls"


ASK: Any = {"model": "any", "messages": HI}


@pytest.mark.parametrize("given", FORMATS, ids=["name", "template", "recognised"])
def test_openai(server: Raw, chat: openai.OpenAI, given: dict[str, Any]) -> None:
    client = toolgram.wrap(chat, **given)
    whole = client.chat.completions.create(**ASK, tools=[TOOL])
    check(whole.choices[0].message, whole.choices[0].finish_reason)
    assert whole.choices[0].message.reasoning_content == "so"
    assert whole.usage is not None
    assert whole.usage.total_tokens == 8
    with client.chat.completions.stream(**ASK, tools=[TOOL]) as stream:
        final = stream.get_final_completion()
    check(final.choices[0].message, final.choices[0].finish_reason)
    plain = chat.chat.completions.create(**ASK)
    assert plain.choices[0].message.content == TEXT, "the client itself remains as it was"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_stream_comes_as_it_is_written(server: Raw, chat: openai.OpenAI, size: int) -> None:
    server.size = size
    client = toolgram.wrap(chat, "hermes")
    chunks = list(client.chat.completions.create(model="any", messages=HI, stream=True))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text.strip() == "I look."
    calls = [call for chunk in chunks if chunk.choices for call in chunk.choices[0].delta.tool_calls or ()]
    assert json.loads("".join(call.function.arguments or "" for call in calls if call.function)) == {"a": 1}
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "tool_calls"
    assert {chunk.id for chunk in chunks} == {"c1"}
    assert chunks[-1].usage is not None


@pytest.mark.parametrize("given", FORMATS, ids=["name", "template", "recognised"])
def test_anthropic(server: Raw, claude: anthropic.Anthropic, given: dict[str, Any]) -> None:
    client = toolgram.wrap(claude, **given)
    asked: Any = {"model": "any", "messages": HI, "max_tokens": 9}
    whole = client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        final = stream.get_final_message()
    for message in (whole, final):
        kinds = [block.type for block in message.content]
        assert kinds == ["thinking", "text", "tool_use"]
        assert (message.content[2].name, message.content[2].input) == ("f", {"a": 1})
        assert message.stop_reason == "tool_use"
        assert message.usage.output_tokens == 5


def test_async_clients(server: Raw, served: tuple[Raw, str]) -> None:
    async def run() -> None:
        async with openai.AsyncOpenAI(base_url=f"{served[1]}/v1", api_key="x") as chat:
            client = toolgram.wrap(chat, "hermes")
            whole = await client.chat.completions.create(model="any", messages=HI)
            check(whole.choices[0].message, whole.choices[0].finish_reason)
            async with client.chat.completions.stream(model="any", messages=HI) as stream:
                final = await stream.get_final_completion()
            check(final.choices[0].message, final.choices[0].finish_reason)
        async with anthropic.AsyncAnthropic(base_url=served[1], api_key="x") as claude:
            message = await toolgram.wrap(claude, "hermes").messages.create(model="any", messages=HI, max_tokens=9)
            assert message.stop_reason == "tool_use"

    asyncio.run(run())


def test_what_the_server_has_read_stays(server: Raw, chat: openai.OpenAI) -> None:
    call = {"id": "x", "type": "function", "function": {"name": "g", "arguments": "{}"}}
    server.text, server.reason, server.more = "", "tool_calls", {"tool_calls": [{"index": 0, **call}]}
    client = toolgram.wrap(chat, "hermes")
    whole = client.chat.completions.create(model="any", messages=HI)
    chunks = list(client.chat.completions.create(model="any", messages=HI, stream=True))
    assert whole.choices[0].message.tool_calls[0].function.name == "g"
    (sent,) = [each for chunk in chunks if chunk.choices for each in chunk.choices[0].delta.tool_calls or ()]
    assert sent.id == "x"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "tool_calls"


def test_blocks_that_the_server_has_read(server: Raw, claude: anthropic.Anthropic) -> None:
    search = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}}
    calls: list[dict[str, Any]] = [
        {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}},
        {"type": "tool_use", "id": "t2", "name": "now", "input": {}},
    ]
    server.blocks, server.text = [search, *calls], "I look. <"
    with toolgram.wrap(claude, "hermes").messages.stream(model="any", max_tokens=9, messages=HI) as stream:
        kinds = [event.type for event in stream if event.type.startswith("content_block_st")]
        message = stream.get_final_message()
    assert kinds == ["content_block_start", "content_block_stop"] * 4
    assert message.stop_reason == "tool_use"
    assert message.content[0].model_dump()["text"] == "I look. <"
    found = [block.model_dump(include={"type", "id", "name", "input"}) for block in message.content[1:]]
    assert found == server.blocks


def test_text_of_no_format_is_text(server: Raw, chat: openai.OpenAI) -> None:
    server.text = "Just text."
    completions = toolgram.wrap(chat).chat.completions
    assert completions.create(**ASK).choices[0].message.content == "Just text."
    chunks = list(completions.create(**ASK, stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Just text."


def test_the_name_of_the_model_says_the_format(server: Raw, chat: openai.OpenAI) -> None:
    """So that the first stream comes as it is written, too."""
    client = toolgram.wrap(chat)
    chunks = list(client.chat.completions.create(model="Qwen/Qwen3-8B", messages=HI, stream=True))
    assert len([chunk for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]) > 1


def test_errors_are_those_of_the_server(server: Raw, chat: openai.OpenAI) -> None:
    server.status = 400
    with pytest.raises(openai.BadRequestError, match="no"):
        toolgram.wrap(chat, "hermes").chat.completions.create(**ASK)


def test_what_cannot_be_wrapped(chat: openai.OpenAI) -> None:
    with pytest.raises(toolgram.ToolgramError, match="not str"):
        toolgram.wrap("client")
    with pytest.raises(toolgram.UnknownFormat):
        toolgram.wrap(chat, "moon")


FORMAT = toolgram.get_format("qwen3_coder")
CUT = "<tool_call>\n<function=f>\n<parameter=x>\nhalf of th"


def by_bulk(reason: str) -> str:
    reader = RowReader(RowOptions("text", FORMAT, columns=Columns(finish_reason="reason")))
    message = reader.answer({"text": CUT, "reason": reason}).message
    assert message is not None
    return message.tool_calls[0].status


def by_audit(reason: str) -> str:
    call = {"function": {"name": "f", "arguments": '{"x": "half of th"}'}}
    choice = {"message": {"content": None, "tool_calls": [call]}, "finish_reason": reason}
    (answer,) = audited.served({"raw": CUT, "choices": [choice]})
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
