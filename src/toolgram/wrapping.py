"""`toolgram.wrap`: a client of OpenAI or Anthropic whose server returns raw text gets calls, whole and in streams.

Strategy: the answers are changed where they arrive, in the transport of the client, so every way to ask (`create`,
`stream`, `parse`, raw responses) sees the same, and no type of the client is made here. The parts that read are without
I/O: `_Chat` and `_Messages` turn a body, or the data of a stream one by one, into another. What a server has already
read (calls, thinking) stays as it is. The HTTP library is the client's own, whichever that is.
"""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from toolgram.adapters import ChatChunks, MessageEvents, sse, to_anthropic_message, to_chat_message
from toolgram.adapters.chat import message_finish_reason
from toolgram.adapters.reading import SSEData, evidence_in
from toolgram.errors import ToolgramError
from toolgram.events import Event, Reasoning
from toolgram.explain.recognising import best_format
from toolgram.formats import Format, format_names, get_format
from toolgram.names import for_model

Client = TypeVar("Client")
_READ = ("text", "thinking")  # the blocks of a stream that are read here


def wrap(
    client: Client,
    format: str | Format | None = None,
    *,
    template: str | None = None,
    prefix: str | None = None,
    reasoning: str | None = "reasoning_content",
) -> Client:
    """Wrap a client, sync or async, of `openai` or `anthropic`, to read the raw text that its server returns.

    The format is given by name or follows from a chat template; without either it follows from the model's name in the
    request, or from the first answer that has a call or a marker. A stream of which the format is not known yet comes
    when it is over. `prefix` is what the server's prompt has written for the model; `reasoning` is the field of chat
    completions that gets the thinking. The connections are those of the client, which remains as it was.

    Raises ToolgramError for another kind of client, an unknown format, and a template that cannot be read.
    """
    http: Any = getattr(client, "_client", None)
    transport = getattr(http, "_transport", None)
    if transport is None or not hasattr(client, "with_options"):
        raise ToolgramError(f"wrap takes a client of openai or anthropic, not {type(client).__name__}")
    if template is not None:
        from toolgram.late_imports import late_import

        format = late_import("derive_format")(template)
    chosen = get_format(format) if isinstance(format, str) else format
    reader = _Reader(chosen, prefix, reasoning)
    made = copy.copy(http)
    made._transport = _Transport(transport, reader, client)
    made._mounts = {pattern: each and _Transport(each, reader, client) for pattern, each in http._mounts.items()}
    wrapped: Client = client.with_options(http_client=made)
    return wrapped


class _Reader:
    """What a wrapped client knows: the format, given or recognised."""

    def __init__(self, fmt: Format | None, prefix: str | None, reasoning: str | None) -> None:
        self.format, self.prefix, self.reasoning = fmt, prefix, reasoning
        self._recognised: dict[str, Format] = {}

    def for_model(self, model: str) -> Format | None:
        """Return the format of a model, as far as it is known without an answer."""
        if self.format is None and model not in self._recognised:
            choice = for_model(model, format_names())
            if choice is not None:
                self._recognised[model] = get_format(choice.format)
        return self.format or self._recognised.get(model)

    def for_text(self, model: str, text: str) -> Format | None:
        """Return the format of an answer of this model."""
        fmt = self.for_model(model) or best_format([text])
        if fmt is not None:
            self._recognised[model] = fmt
        return fmt

    def answer_to(self, request: Any) -> _Chat | _Messages | None:
        """Return what reads the answer to a request; None for a kind that is not read here."""
        path = str(request.url.path)
        if request.method != "POST" or not path.endswith(("/chat/completions", "/messages")):
            return None
        try:
            body = json.loads(request.content)
        except (ValueError, RecursionError):
            return None
        if not isinstance(body, dict):
            return None
        return _Messages(self, body) if path.endswith("/messages") else _Chat(self, body)


class _Output:
    """One output of the model: text in, events out. `begun` is what a server has already taken out of it."""

    def __init__(self, reader: _Reader, body: Mapping[str, Any]) -> None:
        self._reader, self._model = reader, str(body.get("model"))
        self._tools = body.get("tools") or None
        self._fmt = reader.for_model(self._model)
        self._held = ""
        self._parser: Any = None
        self.begun = False

    def feed(self, text: str) -> list[Event]:
        """Return the events of some text; all of it is held until the format is known."""
        if self._fmt is None:
            self._held += text
            return []
        if self._parser is None:
            self._parser = self._fmt.parser(self._tools, "" if self.begun else self._reader.prefix)
        return list(self._parser.feed(text))

    def close(self, reason: str | None) -> list[Event]:
        """Return the events of the end."""
        self._fmt = self._fmt or self._reader.for_text(self._model, self._held) or get_format("hermes").text_only
        held, self._held = self._held, ""
        events = self.feed(held)
        return events + list(self._parser.close(evidence_in(reason)))

    def message(self, text: str, reason: str | None) -> Any:
        """Return the message of a whole text."""
        self.feed(text)
        self.close(reason)
        return self._parser.message


class _Chat:
    """Answers of OpenAI's chat completions."""

    def __init__(self, reader: _Reader, body: Mapping[str, Any]) -> None:
        self._reader, self._body = reader, body
        self._choices: dict[int, tuple[_Output, ChatChunks]] = {}
        self._last: Mapping[str, Any] = {}

    def whole(self, said: dict[str, Any]) -> None:
        """Read the choices of a whole answer."""
        for choice in said.get("choices") or ():
            message = choice.get("message") or {}
            if message.get("tool_calls") or not isinstance(message.get("content"), str):
                continue
            output = _Output(self._reader, self._body)
            output.begun = bool(message.get("reasoning_content") or message.get("reasoning"))
            read = output.message(message["content"], choice.get("finish_reason"))
            choice["message"] = {**message, **to_chat_message(read, self._reader.reasoning)}
            choice["finish_reason"] = message_finish_reason(read)

    def chunks(self, said: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Convert one chunk of a stream."""
        if not said.get("choices"):
            yield said
            return
        self._last = said
        for choice in said["choices"]:
            delta, reason = choice.get("delta") or {}, choice.get("finish_reason")
            output, adapter = self._choice(choice.get("index", 0), said)
            output.begun = output.begun or bool(delta.get("reasoning_content") or delta.get("reasoning"))
            text = delta.pop("content", None)
            if any(delta.values()):  # the role, or what the server has read
                yield {**said, "choices": [{**choice, "delta": delta, "finish_reason": None}]}
            yield from adapter.feed(output.feed(text) if text else ())
            if reason is not None:
                del self._choices[choice.get("index", 0)]
                ended = adapter.end(output.close(reason), reason)
                if delta.get("tool_calls") or reason == "tool_calls":
                    ended[-1]["choices"][0]["finish_reason"] = reason
                yield from ended

    def end(self) -> Iterator[dict[str, Any]]:
        """Return what is left of choices that the server did not end."""
        for output, adapter in self._choices.values():
            yield from adapter.end(output.close(None), None)

    def _choice(self, index: int, said: Mapping[str, Any]) -> tuple[_Output, ChatChunks]:
        if index not in self._choices:
            about = {"id": said.get("id"), "created": said.get("created"), "reasoning": self._reader.reasoning}
            chunks = ChatChunks(str(said.get("model", "")), index=index, **about)  # type: ignore[arg-type]
            self._choices[index] = _Output(self._reader, self._body), chunks
        return self._choices[index]


class _Messages:
    """Answers of Anthropic's messages. Blocks that the server has read, such as calls, stay as they are."""

    def __init__(self, reader: _Reader, body: Mapping[str, Any]) -> None:
        self._reader, self._body = reader, body
        self._output = _Output(reader, body)
        self._adapter = MessageEvents(str(body.get("model")))
        self._open = ""  # the type of the server's block that is open
        self._has_call = False  # whether the server has read one

    def whole(self, said: dict[str, Any]) -> None:
        """Read the text blocks of a whole answer."""
        blocks = said.get("content")
        if not isinstance(blocks, list) or any(block.get("type") == "tool_use" for block in blocks):
            return
        others = [block for block in blocks if block.get("type") != "text"]
        self._output.begun = bool(others)
        text = "".join(block["text"] for block in blocks if block.get("type") == "text")
        read = self._output.message(text, said.get("stop_reason"))
        made = to_anthropic_message(read, stop_sequence=said.get("stop_sequence"))
        said |= {"content": others + made["content"], "stop_reason": made["stop_reason"]}

    def chunks(self, said: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Convert one event of a stream."""
        kind, delta = said.get("type"), said.get("delta") or {}
        if kind == "content_block_start":
            self._open = str(said["content_block"].get("type"))
            if self._open not in _READ:
                self._has_call = self._has_call or self._open == "tool_use"
                yield from self._adapter.feed(self._output.close(None))  # what is held comes before it
                self._output = _Output(self._reader, self._body)
                self._output.begun = True
                yield from self._adapter.relay(said)
        elif kind == "content_block_delta":
            yield from self._delta(said, delta)
        elif kind == "content_block_stop":
            if self._open not in _READ:
                yield from self._adapter.relay(said)
        elif kind == "message_delta":
            reason = delta.get("stop_reason")
            ended = self._adapter.end(self._output.close(reason), evidence_in(reason), None, delta.get("stop_sequence"))
            ended[-2]["usage"] = said.get("usage") or ended[-2]["usage"]
            if self._has_call:
                ended[-2]["delta"]["stop_reason"] = reason
            yield from ended
        elif kind != "message_stop":
            yield said

    def _delta(self, said: Mapping[str, Any], delta: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
        if delta.get("type") == "text_delta" and self._open == "text":
            return self._adapter.feed(self._output.feed(delta.get("text") or ""))
        if delta.get("type") == "thinking_delta":
            self._output.begun = True
            return self._adapter.feed([Reasoning(delta.get("thinking") or "", "")])
        return self._adapter.relay(said)

    def end(self) -> Iterator[dict[str, Any]]:
        """Return nothing: a message without its end was broken off."""
        return iter(())


class _Stream:
    """A stream of server-sent events, changed piece by piece."""

    def __init__(self, answer: _Chat | _Messages) -> None:
        self._answer, self._data = answer, SSEData()

    def feed(self, piece: bytes) -> bytes:
        """Convert some bytes."""
        return "".join(map(self._changed, self._data.feed(piece))).encode()

    def end(self) -> bytes:
        """Convert the rest."""
        return "".join(map(self._changed, self._data.end())).encode()

    def _changed(self, data: str) -> str:
        if data.strip() == "[DONE]":
            return sse(self._answer.end()) + "data: [DONE]\n\n"
        try:
            said = json.loads(data)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict) or "error" in said:
            return f"data: {data}\n\n"
        return sse(self._answer.chunks(said))


# --- in the client's own HTTP library -----------------------------------------------------------------------------


class _Transport:
    """A transport around that of a client. It keeps the client alive, which would close the connections."""

    def __init__(self, inner: Any, reader: _Reader, owner: Any) -> None:
        self._inner, self._reader, self._owner = inner, reader, owner

    def __enter__(self) -> _Transport:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> _Transport:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def handle_request(self, request: Any) -> Any:
        """Send a request; the response with what was read of it."""
        response, answer = self._inner.handle_request(request), self._reader.answer_to(request)
        if answer is None or response.status_code != 200:
            return response
        if _is_stream(response):
            return _with_stream(response, _SyncBytes, answer)
        response.read()
        return _whole(response, answer)

    async def handle_async_request(self, request: Any) -> Any:
        """Do the same without waiting."""
        response, answer = await self._inner.handle_async_request(request), self._reader.answer_to(request)
        if answer is None or response.status_code != 200:
            return response
        if _is_stream(response):
            return _with_stream(response, _AsyncBytes, answer)
        await response.aread()
        return _whole(response, answer)

    def close(self) -> None:
        """Do nothing: the connections are those of the client that was wrapped."""

    async def aclose(self) -> None:
        """Do nothing, for the same reason."""


class _SyncBytes:
    """The body of a stream."""

    def __init__(self, response: Any, stream: _Stream) -> None:
        self._response, self._stream = response, stream

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._response.iter_bytes():
            yield self._stream.feed(piece)
        yield self._stream.end()

    def close(self) -> None:
        """Let go of the connection."""
        self._response.close()


class _AsyncBytes:
    """The same, without waiting."""

    def __init__(self, response: Any, stream: _Stream) -> None:
        self._response, self._stream = response, stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._response.aiter_bytes():
            yield self._stream.feed(piece)
        yield self._stream.end()

    async def aclose(self) -> None:
        """Let go of the connection."""
        await self._response.aclose()


def _is_stream(response: Any) -> bool:
    return str(response.headers.get("content-type", "")).startswith("text/event-stream")


def _whole(response: Any, answer: _Chat | _Messages) -> Any:
    try:
        said = json.loads(response.content)
    except (ValueError, RecursionError):
        return response
    if not isinstance(said, dict):
        return response
    answer.whole(said)
    content = json.dumps(said).encode()
    return type(response)(
        response.status_code, headers=_headers(response), content=content, extensions=response.extensions
    )


def _with_stream(response: Any, body: type[_SyncBytes | _AsyncBytes], answer: _Chat | _Messages) -> Any:
    """Return the response with a body that the library accepts: a subclass of its own body's class."""
    names = ("SyncByteStream", "AsyncByteStream")
    base = next(each for each in type(response.stream).__mro__ if each.__name__ in names)
    stream = type(body.__name__, (body, base), {})(response, _Stream(answer))
    return type(response)(
        response.status_code, headers=_headers(response), stream=stream, extensions=response.extensions
    )


def _headers(response: Any) -> list[tuple[str, str]]:
    """Return the headers of a response whose body was replaced and is not compressed."""
    gone = ("content-length", "content-encoding", "transfer-encoding")
    return [(name, value) for name, value in response.headers.multi_items() if name.lower() not in gone]
