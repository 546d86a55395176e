"""What a client hears, through the official clients of OpenAI and Anthropic: chat, Responses and messages, whole and
streamed.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import anthropic
import openai

from tests.integrations.vllm_heard import Heard

CHAT, RESPONSES, MESSAGES = "chat", "responses", "messages"
APIS = (CHAT, RESPONSES, MESSAGES)
MOST = 40_000  # tokens of an answer, where no limit is asked for
SERVERS_OWN = 200  # the limit of the servers, for a request that has none
UNLIMITED = -1
WORDS = ("none", "auto", "required")  # every other choice is the name of a tool


@dataclass(frozen=True)
class Ask:
    script: int = 0
    api: str = CHAT
    pace: int | None = None  # tokens in each step of a stream, 0 for all of them; None: in one message
    tools: Sequence[dict[str, Any]] | None = None
    choice: str | None = None  # none, auto, required, or the name of a tool
    parallel: bool | None = None
    template: dict[str, Any] = field(default_factory=dict)  # chat_template_kwargs
    limit: int | None = None
    stop: Sequence[str] = ()
    answers: int = 1
    logprobs: bool = False
    usage: bool = False
    form: dict[str, Any] | None = None  # the JSON schema of the answer
    extra: dict[str, Any] = field(default_factory=dict)
    allowed: str = ""  # in Responses: the mode of `allowed_tools` with that tool
    said: str = ""  # a text in the place of that which names a script

    @property
    def text(self) -> str:
        """What the user says, and a scripted engine listens to."""
        return self.said or f"Say script {self.script} by {self.pace or 0}."


class Clients:
    """The official clients of one server."""

    def __init__(self, port: int, patience: float = 60) -> None:
        address = f"http://127.0.0.1:{port}"
        options: dict[str, Any] = {"api_key": "none", "max_retries": 0, "timeout": patience}
        self.openai = openai.AsyncOpenAI(base_url=f"{address}/v1", **options)
        self.anthropic = anthropic.AsyncAnthropic(base_url=address, **options)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.openai.close()
        await self.anthropic.close()

    async def hear(self, ask: Ask) -> list[Heard]:
        """The answers to a request; an exception is what is heard, too."""
        hear = {CHAT: self._chat, RESPONSES: self._responses, MESSAGES: self._messages}[ask.api]
        try:
            return await hear(ask)
        except Exception as error:
            kind = type(error).__name__
            status = getattr(error, "status_code", "")
            return [Heard(error=f"{kind} {status}".strip(), detail=f"{error} {error.__cause__!r}"[:300])]

    # --- chat completions

    async def _chat(self, ask: Ask) -> list[Heard]:
        fields: dict[str, Any] = {"n": ask.answers} if ask.answers > 1 else {}
        if ask.tools:
            fields["tools"] = list(ask.tools)
        if ask.choice:
            named = {"type": "function", "function": {"name": ask.choice}}
            fields["tool_choice"] = ask.choice if ask.choice in WORDS else named
        if ask.parallel is not None:
            fields["parallel_tool_calls"] = ask.parallel
        if ask.stop:
            fields["stop"] = list(ask.stop)
        if ask.logprobs:
            fields["logprobs"], fields["top_logprobs"] = True, 1
        if ask.usage:
            fields["stream_options"] = {"include_usage": True}
        if ask.form:
            fields["response_format"] = {"type": "json_schema", "json_schema": {"name": "form", "schema": ask.form}}
        if ask.limit != UNLIMITED:
            fields["max_completion_tokens"] = ask.limit or MOST
        made: Any = await self.openai.chat.completions.create(**_conversation(ask), **fields)
        if ask.pace is None:
            return [_chat_answer(choice, made.usage) for choice in made.choices]
        return await _chat_stream(made, ask.answers)

    # --- Responses

    async def _responses(self, ask: Ask) -> list[Heard]:
        fields: dict[str, Any] = {}
        if ask.tools:
            fields["tools"] = [{"type": "function", **tool["function"], "strict": False} for tool in ask.tools]
        if ask.choice:
            named = {"type": "function", "name": ask.choice}
            fields["tool_choice"] = ask.choice if ask.choice in WORDS else named
            if ask.allowed:
                fields["tool_choice"] = {"type": "allowed_tools", "mode": ask.allowed, "tools": [named]}
        if ask.parallel is not None:
            fields["parallel_tool_calls"] = ask.parallel
        if ask.form:
            fields["text"] = {"format": {"type": "json_schema", "name": "form", "schema": ask.form}}
        if ask.limit != UNLIMITED:
            fields["max_output_tokens"] = ask.limit or MOST
        extra = {"chat_template_kwargs": ask.template, **({"stop": ask.stop} if ask.stop else {}), **ask.extra}
        made = await self.openai.responses.create(
            model="model", input=ask.text, stream=ask.pace is not None, extra_body=extra, **fields
        )
        return [_response(made) if ask.pace is None else await _response_stream(made)]

    # --- messages

    async def _messages(self, ask: Ask) -> list[Heard]:
        fields: dict[str, Any] = {}
        if ask.tools:
            functions = [{"description": "", **tool["function"]} for tool in ask.tools]
            fields["tools"] = [{**each, "input_schema": each.pop("parameters")} for each in functions]
        if ask.choice:
            words = {"none": {"type": "none"}, "auto": {"type": "auto"}, "required": {"type": "any"}}
            fields["tool_choice"] = dict(words.get(ask.choice) or {"type": "tool", "name": ask.choice})
            if ask.parallel is False and ask.choice != "none":
                fields["tool_choice"]["disable_parallel_tool_use"] = True
        if ask.stop:
            fields["stop_sequences"] = list(ask.stop)
        if ask.form:
            fields["output_config"] = {"format": {"type": "json_schema", "schema": ask.form}}
        fields["max_tokens"] = ask.limit or MOST
        made: Any = await self.anthropic.messages.create(**_conversation(ask), **fields)
        return [_message(made) if ask.pace is None else await _message_stream(made)]


def heard_from(address: str, *asks: Ask) -> list[Heard]:
    """The answers to these requests, one after the other."""

    async def hear() -> list[Heard]:
        async with Clients(int(address.rpartition(":")[2])) as clients:
            return [answer for each in asks for answer in await clients.hear(each)]

    return asyncio.run(hear())


def in_every_way(said: str = "Hi", **asked: Any) -> list[Ask]:
    """A request through each API, whole and streamed."""
    return [Ask(0, api, pace, said=said, **asked) for api in APIS for pace in (None, 1)]


def _conversation(ask: Ask) -> dict[str, Any]:
    extra = {"chat_template_kwargs": ask.template, **ask.extra}
    said = [{"role": "user", "content": ask.text}]
    return {"model": "model", "messages": said, "stream": ask.pace is not None, "extra_body": extra}


def _chat_answer(choice: Any, usage: Any) -> Heard:
    heard = Heard(choice.message.content, _reasoning(choice.message), finish_reason=choice.finish_reason)
    for call in choice.message.tool_calls or ():
        heard.begin(call.id, call.function.name, call.function.arguments)
    heard.usage, heard.logprobs = usage.model_dump() if usage else {}, _logprobs(choice)
    return heard


def _reasoning(said: Any) -> str | None:
    """The reasoning of a message or a delta, by vLLM's name or by SGLang's."""
    return getattr(said, "reasoning", None) or getattr(said, "reasoning_content", None)


def _logprobs(choice: Any) -> int:
    return len(choice.logprobs.content) if choice.logprobs and choice.logprobs.content else 0


async def _chat_stream(stream: Any, answers: int) -> list[Heard]:
    heard = [Heard() for _ in range(answers)]
    usage: dict[str, Any] = {}
    async for chunk in stream:
        usage = chunk.usage.model_dump() if chunk.usage is not None else usage
        for choice in chunk.choices:
            mine, delta = heard[choice.index], choice.delta
            mine.say(delta.content, _reasoning(delta))
            for call in delta.tool_calls or ():
                if call.index < len(mine.calls) and (call.function.name or call.id):
                    raise ValueError(f"a call begins twice: {call.function.name}")
                if call.index == len(mine.calls):
                    if not call.function.name or not call.id:
                        raise ValueError("a call without name or id")
                    mine.begin(call.id, call.function.name)
                mine.go_on(call.function.arguments or "", call.index)
            mine.finish_reason = choice.finish_reason or mine.finish_reason
            mine.logprobs += _logprobs(choice)
    for mine in heard:
        mine.usage = usage
    return heard


def _response(response: Any) -> Heard:
    heard = Heard(usage=response.usage.model_dump() if response.usage else {})
    for item in response.output:
        if item.type == "reasoning":
            heard.say(reasoning="".join(part.text for part in item.content or ()))
        elif item.type == "message":
            heard.say("".join(part.text for part in item.content))
        elif item.type == "function_call":
            heard.begin(item.call_id, item.name, item.arguments)
    cut = response.status == "incomplete"
    heard.finish_reason = "length" if cut else "tool_calls" if heard.calls else "stop"
    return heard


async def _response_stream(stream: Any) -> Heard:
    heard, last = Heard(), None
    places: dict[int, int] = {}
    async for event in stream:
        if event.type == "response.output_item.added" and event.item.type == "function_call":
            places[event.output_index] = len(heard.calls)
            heard.begin(event.item.call_id, event.item.name)
        elif event.type == "response.function_call_arguments.delta":
            heard.go_on(event.delta, places[event.output_index])
        elif event.type == "response.output_text.delta":
            heard.say(event.delta)
        elif event.type == "response.reasoning_text.delta":
            heard.say(reasoning=event.delta)
        elif event.type in ("response.completed", "response.incomplete"):
            last = event.response
        elif event.type in ("error", "response.failed"):
            raise ValueError(f"the stream failed: {event}")
    if last is None:
        raise ValueError("the stream has no end")
    final = _response(last)
    if (final.content or "", final.calls) != (heard.content or "", heard.calls):
        heard.error, heard.detail = "the stream is not what its end says", f"{heard.told()} {final.told()}"
    heard.finish_reason, heard.usage = final.finish_reason, final.usage
    return heard


def _message(message: Any) -> Heard:
    heard = Heard(usage=message.usage.model_dump(), finish_reason=_anthropic_finish(message.stop_reason))
    for block in message.content:
        if block.type == "thinking":
            heard.say(reasoning=block.thinking)
        elif block.type == "text":
            heard.say(block.text)
        elif block.type == "tool_use":
            heard.begin(block.id, block.name, json.dumps(block.input, ensure_ascii=False))
    return heard


async def _message_stream(stream: Any) -> Heard:
    heard, ended = Heard(), False
    begun: set[int] = set()
    async for event in stream:
        if event.type == "content_block_start":
            if event.index in begun:
                raise ValueError("a block begins twice")
            begun.add(event.index)
            if event.content_block.type == "tool_use":
                heard.begin(event.content_block.id, event.content_block.name)
        elif event.type == "content_block_delta":
            delta = event.delta
            if delta.type == "input_json_delta":
                heard.go_on(delta.partial_json)
            else:
                heard.say(getattr(delta, "text", ""), getattr(delta, "thinking", ""))
        elif event.type == "message_delta":
            heard.finish_reason = _anthropic_finish(event.delta.stop_reason)
            heard.usage = event.usage.model_dump()
        ended = ended or event.type == "message_stop"
    if not ended:
        raise ValueError("the stream has no end")
    return heard


def _anthropic_finish(reason: str | None) -> str:
    return {"max_tokens": "length", "tool_use": "tool_calls"}.get(reason or "", "stop")
