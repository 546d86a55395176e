"""The gateway as an ASGI application: routes, limits, and the answers of three APIs.

Strategy: a request is read, prepared and accepted by the server before anything is sent, so any problem up to then has
the status and the error object of its API. After that, a stream reports a problem inside itself: `_stream` ends each
with one final event. If a client goes away, or takes nothing, the connection to the server is closed.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import anyio
import httpx
from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from toolgram.adapters import (
    CHAT_DONE,
    ChatChunks,
    MessageEvents,
    ResponseEvents,
    sse,
    to_anthropic_message,
    to_chat_completion,
    to_response,
)
from toolgram.adapters.chat import new_id
from toolgram.adapters.usage import Usage, added
from toolgram.anomalies import REPAIRED
from toolgram.gateway.answering import Gateway, Limits, Prepared, Turn
from toolgram.gateway.asking import Ask
from toolgram.gateway.engine import answers, passed_through
from toolgram.gateway.errors import Api, Refusal, error_body
from toolgram.gateway.merging import together
from toolgram.gateway.observing import Numbers, log_answer
from toolgram.gateway.requests import read_chat, read_messages, read_responses
from toolgram.limits import LARGE_REQUEST
from toolgram.message import Message
from toolgram.showing import Answered, page

_LOG = logging.getLogger("toolgram.gateway")
_T = TypeVar("_T")
_BODY_SECONDS = 60.0
_CLOSING_SECONDS = 5.0
_GONE = 499  # counted for a client that went away; nobody reads it


def create_app(
    gateways: Sequence[Gateway],
    api_key: str | None = None,
    hosts: list[str] | None = None,
    hide_metrics: bool = False,
) -> Starlette:
    """Return the application. If there are several gateways, a request names the model of one.

    With `hosts`, requests that name another host are refused, so that no web page reaches a gateway that only this
    machine can reach. With `hide_metrics`, the metrics need the key.
    """
    served = Served(gateways, api_key, hide_metrics)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        for gateway in gateways:
            await gateway.client.aclose()

    return Starlette(
        routes=[
            Route("/v1/chat/completions", served.endpoint("chat", read_chat), methods=["POST"]),
            Route("/v1/responses", served.endpoint("responses", read_responses), methods=["POST"]),
            Route("/v1/messages", served.endpoint("messages", read_messages), methods=["POST"]),
            Route("/v1/messages/count_tokens", served.count, methods=["POST"]),
            Route("/v1/completions", served.completions, methods=["POST"]),
            Route("/v1/models", served.models),
            Route("/v1/models/{id:path}", served.one_model),
            Route("/", served.page),
            Route("/answers", served.answers),
            Route("/answers/{number:int}/{what}", served.one_answer),
            Route("/health", served.health),
            Route("/metrics", served.metrics),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=hosts)] if hosts else [],
        exception_handlers={HTTPException: _failed, Refusal: _failed, Exception: _failed},
        lifespan=lifespan,
    )


def api_of(path: str) -> Api:
    """Return the API whose errors are expected at a path."""
    return "messages" if path.startswith("/v1/messages") else "responses" if path == "/v1/responses" else "chat"


def _refused(api: Api, refusal: Refusal) -> JSONResponse:
    headers = {"Retry-After": "1"} if refusal.status in (429, 503) else None
    return JSONResponse(error_body(api, refusal), refusal.status, headers)


async def _failed(request: Request, error: Exception) -> Response:
    """Return the error object of the API that a path belongs to."""
    if isinstance(error, HTTPException):
        refusal = Refusal(str(error.detail), error.status_code)
    else:
        refusal = error if isinstance(error, Refusal) else _internal(error)
    return _refused(api_of(request.url.path), refusal)


class _Closing:
    """A response that closes what it holds, however it ends, even if it never began."""

    close: Callable[[], Awaitable[None]]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await super().__call__(scope, receive, send)  # type: ignore[misc]
        except Exception as error:
            if not _is_over(error):
                raise
        finally:
            with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
                await self.close()


class Streamed(_Closing, EventSourceResponse):
    """A stream of events."""

    def __init__(self, content: AsyncIterator[bytes], close: Callable[[], Awaitable[None]], limits: Limits) -> None:
        # The library ends streams when the process has to end. Here the server does that, and gives them time.
        grace, never = limits.grace + _CLOSING_SECONDS, anyio.Event()
        super().__init__(content, ping=15, sep="\n", send_timeout=limits.slow, shutdown_event=never,
                         shutdown_grace_period=grace)  # fmt: skip
        self.close = close


class Passed(_Closing, StreamingResponse):
    """A response of the server itself. If the server breaks off, this response does too."""

    def __init__(self, response: httpx.Response, close: Callable[[], Awaitable[None]]) -> None:
        kind = response.headers.get("content-type", "application/json")
        super().__init__(response.aiter_raw(), response.status_code, {"Content-Type": kind})
        self.close = close


def _object(data: bytearray) -> Mapping[str, Any]:
    """Return the JSON object of a request. Raises Refusal."""
    try:
        said = json.loads(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise Refusal(f"the request is not UTF-8: byte {error.start + 1}") from None
    except (ValueError, RecursionError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else f"not JSON: {error}"
        raise Refusal(f"the request is {what}") from None
    if not isinstance(said, dict):
        raise Refusal("the request must be a JSON object")
    return said


def _is_over(error: BaseException) -> bool:
    """Return whether a client did not take what it was sent, or a server broke off what is passed through."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_over, error.exceptions))
    return isinstance(error, httpx.HTTPError) or type(error).__name__ == "SendTimeoutError"


class Served:
    """The endpoints of one or more gateways, which share limits and the record."""

    def __init__(self, gateways: Sequence[Gateway], api_key: str | None, hide_metrics: bool) -> None:
        self.gateways = {gateway.model.name: gateway for gateway in gateways}
        self.limits, record = gateways[0].limits, gateways[0].record
        self.numbers = Numbers(lambda: record.lost if record is not None else 0)
        self._api_key, self._hide_metrics = api_key, hide_metrics
        self._busy = 0
        self._created = int(time.time())

    # --- shared by all requests

    def _check_key(self, request: Request, given: str = "") -> None:
        if self._api_key is None:
            return
        given = given or request.headers.get("x-api-key") or request.headers.get("authorization", "")
        if not hmac.compare_digest(given.removeprefix("Bearer ").encode(), self._api_key.encode()):
            raise Refusal("the API key is missing or wrong", 401, code="invalid_api_key")

    def _gateway(self, name: Any) -> Gateway:
        """Return the gateway of a model; a single gateway accepts every name. Raises Refusal."""
        found = self.gateways.get(name) if isinstance(name, str) else None
        if found is None and len(self.gateways) > 1:
            names = ", ".join(self.gateways)
            raise Refusal(f"model is one of {names}", 404, param="model", code="model_not_found")
        return found or next(iter(self.gateways.values()))

    async def _ask(self, request: Request, read: Callable[[Mapping[str, Any]], Ask]) -> Ask:
        """Return what a request asks for. Raises Refusal."""
        data = await self._body(request)
        large = len(data) > LARGE_REQUEST
        ask = await anyio.to_thread.run_sync(lambda: read(_object(data))) if large else read(_object(data))
        ask.size = len(data)
        return ask

    async def _body(self, request: Request) -> bytearray:
        """Return the bytes of a request. Raises Refusal."""
        self._check_key(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise Refusal("the content type must be application/json", 415)
        most = self.limits.body
        data = bytearray()
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                async for piece in request.stream():
                    data += piece
                    if len(data) > most:
                        raise Refusal(f"the request has more than {most} bytes", 413)
        except TimeoutError:
            raise Refusal("the request did not arrive in time", 408) from None
        return data

    def endpoint(self, api: Api, read: Callable[[Mapping[str, Any]], Ask]) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint that answers requests of an API."""

        async def answer(request: Request) -> Response:
            try:
                response = await self._answer(request, read)
            except Refusal as refusal:
                response = _refused(api, refusal)
            except (ClientDisconnect, _Gone):
                response = Response(status_code=_GONE)
            self.numbers.request(api, response.status_code)
            return response

        return answer

    async def _answer(self, request: Request, read: Callable[[Mapping[str, Any]], Ask]) -> Response:
        ask = await self._ask(request, read)
        gateway = self._gateway(ask.body.get("model"))
        self._begin()
        handed_on = False
        try:
            prepared = await gateway.prepare(ask)
            if not ask.stream:
                return JSONResponse(await _unless_gone(request, self._whole(gateway, ask, prepared)))
            turn = await _unless_gone(request, gateway.turn(ask, prepared))
            stream = _stream(_Answering(self, gateway, ask, prepared, turn))

            async def close() -> None:
                self._done()
                await stream.aclose()
                await turn.close()

            handed_on = True
            return Streamed(stream, close, self.limits)
        finally:
            if not handed_on:
                self._done()

    def _begin(self) -> None:
        """Count an answer that begins. Raises Refusal if there are too many."""
        if self._busy >= self.limits.concurrent:
            raise Refusal("too many answers are being written; try again", 429, code="rate_limit_exceeded")
        self._busy += 1
        self.numbers.in_flight.inc()

    def _done(self) -> None:
        self._busy -= 1
        self.numbers.in_flight.dec()

    # --- whole answers

    async def _whole(self, gateway: Gateway, ask: Ask, prepared: Prepared) -> dict[str, Any]:
        """Return the answer to a request, when it is complete."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._read(gateway, ask, prepared, number)) for number in range(ask.answers)]
        done: list[Turn] = []
        for each in (task.result() for task in tasks):
            if isinstance(each, Refusal):
                raise each
            done.append(each)
        messages = [turn.answer for turn in done]
        usage, name = added([turn.usage for turn in done]), gateway.model.name
        if ask.api == "chat":
            return to_chat_completion(messages, name, usage=usage, reasoning=gateway.reasoning)
        if ask.api == "responses":
            return to_response(messages[0], name, request=ask.body, usage=usage)
        return to_anthropic_message(messages[0], name, usage=usage, stop_sequence=done[0].stopped_by)

    async def _read(self, gateway: Gateway, ask: Ask, prepared: Prepared, number: int) -> Turn | Refusal:
        """Read one output to its end. A refusal is returned, so that the other outputs are closed in order."""
        began = time.monotonic()
        try:
            turn = await gateway.turn(ask, prepared, number)
            try:
                message = await turn.message()
            finally:
                with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
                    await turn.close()
        except Refusal as refusal:
            return refusal
        self.answered(ask, turn, message, began)
        return turn

    def answered(self, ask: Ask, turn: Turn, message: Message, began: float) -> None:
        """Count an answer that is over, and log it in one line, without its text."""
        seconds = time.monotonic() - began
        self.numbers.answer(ask.api, seconds, turn.usage, message)
        log_answer(
            api=ask.api, id=new_id("req_"), model=turn.model.name, format=turn.model.fmt.name,
            calls=len(message.tool_calls), malformed=len(message.malformed),
            repairs=sum(each.kind in REPAIRED for each in message.anomalies),
            finish=turn.reason, tokens=turn.usage.output, seconds=round(seconds, 3),
        )  # fmt: skip

    # --- the small endpoints

    async def count(self, request: Request) -> Response:
        """Return the number of tokens of a request in Anthropic's API."""
        try:
            ask = await self._ask(request, partial(read_messages, counting=True))
            return JSONResponse({"input_tokens": await self._gateway(ask.body.get("model")).count(ask)})
        except ClientDisconnect:
            return Response(status_code=_GONE)

    async def completions(self, request: Request) -> Response:
        """Return the server's own answer to a prompt, as it arrives."""
        body = dict(_object(await self._body(request)))
        gateway = self._gateway(body.get("model"))
        body |= {"model": gateway.model.served} if gateway.model.served else {}
        self._begin()
        try:
            response = await _unless_gone(request, passed_through(gateway.client, request.url.path, body))
        except BaseException:
            self._done()
            raise

        async def close() -> None:
            self._done()
            await response.aclose()

        return Passed(response, close)

    def _model(self, name: str) -> dict[str, Any]:
        """Return a model in the form of both APIs, which share the path."""
        made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._created))
        openai = {"id": name, "object": "model", "created": self._created, "owned_by": "toolgram"}
        return {**openai, "type": "model", "display_name": name, "created_at": made}

    async def models(self, request: Request) -> Response:
        """Return the models that are served."""
        self._check_key(request)
        listed = [self._model(name) for name in self.gateways]
        ends = {"has_more": False, "first_id": listed[0]["id"], "last_id": listed[-1]["id"]}
        return JSONResponse({"object": "list", "data": listed, **ends})

    async def one_model(self, request: Request) -> Response:
        """Return a model by its name."""
        self._check_key(request)
        if request.path_params["id"] not in self.gateways:
            raise Refusal(f"the models here are {', '.join(self.gateways)}", 404, code="model_not_found")
        return JSONResponse(self._model(request.path_params["id"]))

    async def page(self, request: Request) -> Response:
        """Return the page of the last answers. If a key is needed, a browser sends `?key=`, here and for its data."""
        self._recent(request)
        return HTMLResponse(page("serve", "The last answers, character by character, as the gateway read them."))

    async def answers(self, request: Request) -> Response:
        """Return the last answers, the newest first."""
        rows = [each.row for each in reversed(self._recent(request).values())]
        return JSONResponse({"groups": [{"name": "The last answers" if rows else "None yet.", "answers": rows}]})

    async def one_answer(self, request: Request) -> Response:
        """Return how one of them was read, or why."""
        found = self._recent(request).get(request.path_params["number"])
        made = {"read": found.read, "explain": found.explain} if found is not None else {}
        if request.path_params["what"] not in made:
            raise Refusal("this answer is no longer kept", 404)
        return JSONResponse(await anyio.to_thread.run_sync(made[request.path_params["what"]]))

    def _recent(self, request: Request) -> dict[int, Answered]:
        """Return the last answers by their numbers. Raises Refusal without the key."""
        self._check_key(request, request.query_params.get("key", ""))
        kept = (each for gateway in self.gateways.values() for each in gateway.recent)
        return {each.number: each for each in sorted(kept, key=lambda each: each.number)}

    async def health(self, request: Request) -> Response:
        """Report that the gateway runs, and whether its servers answer: 503 if one does not."""
        found = [
            {"model": name, "format": each.model.fmt.name, "upstream": each.kind, "answers": await answers(each.client)}
            for name, each in self.gateways.items()
        ]
        alive = all(each["answers"] for each in found)
        status = "ok" if alive else "the server does not answer"
        return JSONResponse({"status": status, "models": found}, 200 if alive else 503)

    async def metrics(self, request: Request) -> Response:
        """Return the metrics for Prometheus."""
        if self._hide_metrics:
            self._check_key(request)
        return Response(self.numbers.text(), media_type="text/plain; version=0.0.4")


class _Gone(Exception):
    """The client went away."""


async def _unless_gone(request: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """Return the result of some work, which is cancelled if the client goes away. Raises _Gone."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise _Gone
    finally:
        for each in (task, gone):
            if not each.done():
                each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


# --- streams ---------------------------------------------------------------------------------------------------------


class _Answering(NamedTuple):
    """One request whose stream has begun."""

    served: Served
    gateway: Gateway
    ask: Ask
    prepared: Prepared
    turn: Turn


Messages: TypeAlias = list[dict[str, Any]]
Parts: TypeAlias = tuple[AsyncGenerator[Messages, None], Callable[[Refusal], Messages]]


async def _stream(answering: _Answering) -> AsyncGenerator[bytes, None]:
    """Yield a stream that always ends with a final event: the answer's own, or an error."""
    parts, fail = _parts(answering)
    try:
        async with aclosing(parts):
            async for messages in parts:
                yield sse(messages).encode()
        if answering.ask.api == "chat":
            yield CHAT_DONE.encode()
    except Refusal as refusal:
        yield sse(fail(refusal)).encode()
    except Exception as error:
        _LOG.exception("an answer ended with a mistake of the gateway")
        yield sse(fail(_internal(error))).encode()


def _internal(error: Exception) -> Refusal:
    """Return the refusal for a mistake of this program. It contains nothing of the request."""
    return Refusal(f"internal error: {type(error).__name__}", 500)


def _parts(answering: _Answering) -> Parts:
    """Return the messages of a stream, and what ends it with an error."""
    gateway, ask, turn, name = answering.gateway, answering.ask, answering.turn, answering.gateway.model.name
    if ask.api == "chat":
        return _choices(answering), lambda refusal: [error_body("chat", refusal)]
    if ask.api == "responses":
        made = ResponseEvents(name, calls=gateway.calls, request=ask.body)
        parts = _events(answering, made, lambda: made.end((), turn.reason, turn.usage))
        return parts, lambda refusal: made.fail(refusal.code or "server_error", refusal.said)
    events = MessageEvents(name, calls=gateway.calls)
    parts = _events(answering, events, lambda: events.end((), turn.reason, turn.usage, turn.stopped_by))
    return parts, lambda refusal: [error_body("messages", refusal)]


async def _choices(answering: _Answering) -> AsyncGenerator[Messages, None]:
    """Yield the chunks of a chat completion. Several choices arrive at the same time, each with its index."""
    ask, gateway = answering.ask, answering.gateway
    settings: Any = {"calls": gateway.calls, "reasoning": gateway.reasoning}
    settings |= {"id": new_id("chatcmpl-"), "created": int(time.time())}
    chunks = [ChatChunks(gateway.model.name, index=number, **settings) for number in range(ask.answers)]
    usages: list[Usage] = []
    choices = [_choice(answering, number, each, usages) for number, each in enumerate(chunks)]
    async with aclosing(together(choices)) as merged:
        async for made in merged:
            yield made
    if ask.usage:
        yield [chunks[0].usage(added(usages))]


async def _choice(
    answering: _Answering, number: int, chunks: ChatChunks, usages: list[Usage]
) -> AsyncGenerator[Messages, None]:
    """Yield the chunks of one choice; the turn of the first one has begun."""
    served, gateway, ask, prepared, turn = answering
    began = time.monotonic()
    if number:
        turn = await gateway.turn(ask, prepared, number)
    try:
        yield chunks.start()
        async for events in turn.events():
            if made := chunks.feed(events):
                yield made
        usages.append(turn.usage)
        served.answered(ask, turn, turn.said, began)
        yield chunks.end((), turn.reason)
    finally:
        with anyio.move_on_after(_CLOSING_SECONDS, shield=True):
            await turn.close()


async def _events(
    answering: _Answering, adapter: ResponseEvents | MessageEvents, end: Callable[[], Messages]
) -> AsyncGenerator[Messages, None]:
    """Yield the events of an API that has one answer to a request."""
    began, turn = time.monotonic(), answering.turn
    yield adapter.start()
    async for events in turn.events():
        if made := adapter.feed(events):
            yield made
    answering.served.answered(answering.ask, turn, turn.said, began)
    yield end()
