"""Servers for the gateway's tests: a scripted one, and the gateway before it, both on real sockets; and requests."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from toolgram.gateway.answering import Gateway
from toolgram.gateway.engine import client_for
from toolgram.gateway.serving import KEEP_ALIVE, Settings, application

# A machine that runs many tests at once is slow, and nothing here is about that. Reading the certificates of a machine
# takes longer than a request, and nothing here needs them.
get = partial(httpx.get, timeout=60, verify=False)
post = partial(httpx.post, timeout=60, verify=False)
open_stream = partial(httpx.stream, timeout=60, verify=False)
TEMPLATE = (Path(__file__).parent / "chatml.jinja").read_text()
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
HI = [{"role": "user", "content": "hi"}]
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"messages": HI},
    RESPONSES: {"input": "hi"},
    MESSAGES: {"messages": HI, "max_tokens": 9},
}


def text_of_stream(said: Iterable[dict[str, Any]]) -> str:
    """The text in the data of a stream of any of the three APIs."""
    text = ""
    for each in said:
        text += "".join(choice["delta"].get("content") or "" for choice in each.get("choices", ()))
        if each.get("type") == "response.output_text.delta":
            text += each["delta"]
        elif each.get("type") == "content_block_delta":
            text += each["delta"].get("text", "")
    return text


@contextmanager
def running(app: Any, port: int = 0) -> Iterator[str]:
    """The address of an application that runs in a thread."""
    quiet: Any = {"log_level": "critical", "access_log": False, "server_header": False}
    limits: Any = {"timeout_graceful_shutdown": 1, "timeout_keep_alive": KEEP_ALIVE}
    server = uvicorn.Server(uvicorn.Config(app, port=port, **quiet, **limits))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(10)


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def started(command: Sequence[str], log: Path, patience: float = 60, **environment: str) -> Iterator[str]:
    """The address of a server that is a process; it is waited for, and ended. `{port}` in the command is its port."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    filled = [sys.executable, *(word.replace("{port}", str(port)) for word in command)]
    with log.open("w") as file:
        process = subprocess.Popen(filled, stdout=file, stderr=file, env={**os.environ, **environment})
    try:
        until = time.monotonic() + patience
        while not answers(address):
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < until, log.read_text()[-3000:]
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(address: str) -> bool:
    """Whether a server says that it is well."""
    try:
        return get(f"{address}/health", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


@dataclass
class Script:
    """What the server does that the gateway asks. `texts` are the deltas of its answer; it keeps what it was sent."""

    texts: Sequence[str] = ("ok",)
    reason: str = "stop"
    stopped_by: str = ""
    status: int = 200
    error: Any = None  # sent with `status`, or in the middle of a stream
    ends: bool = True  # says at its end that it is over
    pause: float = 0.0  # before each delta
    together: int = 0  # so many answers have to be open before one goes on
    loading: bool = False  # says nothing of itself yet
    kind: str = "llama.cpp"
    listed: Sequence[str] = ("served",)  # the models that it has
    bodies: list[dict[str, Any]] = field(default_factory=list)
    hung_up: threading.Event = field(default_factory=threading.Event)
    open: int = 0
    most_open: int = 0

    def app(self) -> Starlette:
        completions = ("/completion", "/v1/completions", "/generate", "/api/generate")
        routes = [Route(path, self.answer, methods=["POST"]) for path in completions]
        routes += [Route("/tokenize", self.tokenize, methods=["POST"]), Route("/v1/models", self.models)]
        paths = {"llama.cpp": "/props", "sglang": "/model_info", "ollama": "/api/version", "vllm": "/version"}
        if self.kind in paths:
            routes.append(Route(paths[self.kind], self.about))
        if self.kind == "mlx":
            routes.append(Route("/health", self.health))
        return Starlette(routes=routes)

    async def about(self, request: Request) -> Response:
        if self.loading:
            return JSONResponse({"error": {"message": "Loading model"}}, 503)
        if self.kind == "llama.cpp":
            said: dict[str, Any] = {"chat_template": TEMPLATE, "model_path": "/models/tiny.gguf", "bos_token": "<s>"}
            return JSONResponse({**said, "eos_token": "<|im_end|>", "default_generation_settings": {}})
        return JSONResponse({"version": "1", "model_path": "served"})

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"}, headers={"Server": "BaseHTTP/0.6 Python/3.11.9"})

    async def models(self, request: Request) -> Response:
        return JSONResponse({"data": [{"id": name} for name in self.listed]})

    async def tokenize(self, request: Request) -> Response:
        body = await request.json()
        return JSONResponse({"tokens": list(range(len(body.get("content", body.get("prompt")).split())))})

    async def answer(self, request: Request) -> Response:
        self.bodies.append(await request.json())
        if self.status != 200:
            return JSONResponse(self.error, self.status)
        return StreamingResponse(self._stream(request.url.path), media_type="text/event-stream")

    async def _stream(self, path: str) -> Any:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        over = False
        try:
            while self.most_open < self.together:
                await asyncio.sleep(0.02)
            writers = {"/completion": self._llama, "/generate": self._sglang, "/api/generate": self._ollama}
            write = writers.get(path, self._completion)
            for number, text in enumerate(self.texts):
                await asyncio.sleep(self.pause)
                yield write(text, number, False)
            if self.error is not None:
                yield f"data: {json.dumps({'error': self.error})}\n\n"
            elif self.ends:
                yield write("", len(self.texts), True)
            over = True
        finally:
            self.open -= 1
            if not over:
                self.hung_up.set()

    def _llama(self, text: str, number: int, last: bool) -> str:
        said: dict[str, Any] = {"content": text, "stop": last}
        if last:
            kind = "limit" if self.reason == "length" else "word" if self.stopped_by else "eos"
            said |= {"stop_type": kind, "stopping_word": self.stopped_by, "tokens_evaluated": 11}
            said["tokens_predicted"] = number
        return f"data: {json.dumps(said, ensure_ascii=False)}\n\n"

    def _completion(self, text: str, number: int, last: bool) -> str:
        reason = {"finish_reason": self.reason if last else None, "stop_reason": self.stopped_by or None}
        said: dict[str, Any] = {"choices": [{"index": 0, "text": text, **(reason if last else {})}]}
        if last:
            said["usage"] = {"prompt_tokens": 11, "completion_tokens": number}
        return f"data: {json.dumps(said)}\n\n" + ("data: [DONE]\n\n" if last else "")

    def _sglang(self, text: str, number: int, last: bool) -> str:
        about: dict[str, Any] = {"prompt_tokens": 11, "completion_tokens": number, "finish_reason": None}
        if last:
            about["finish_reason"] = {"type": self.reason, "matched": self.stopped_by or 2}
        whole = "".join([*self.texts[:number], text])
        return f"data: {json.dumps({'text': whole, 'meta_info': about})}\n\n"

    def _ollama(self, text: str, number: int, last: bool) -> str:
        said: dict[str, Any] = {"response": text, "done": last}
        if last:
            said |= {"done_reason": self.reason, "prompt_eval_count": 11, "eval_count": number}
        return json.dumps(said) + "\n"


@contextmanager
def gateway_to(script: Script, **settings: Any) -> Iterator[tuple[str, Gateway]]:
    """The address of a gateway before a scripted server, and the gateway."""
    given: Any = {"wait": 0, **settings}
    with running(script.app()) as upstream, gateways_before(Settings(upstream, **given)) as (address, (gateway,)):
        yield address, gateway


@contextmanager
def gateways_before(*servers: Settings) -> Iterator[tuple[str, Sequence[Gateway]]]:
    """The address of the application before these servers, and its gateways."""

    async def made() -> Any:
        app, gateways = await application(*servers)
        for gateway, settings in zip(gateways, servers, strict=True):
            await gateway.client.aclose()  # it has made a connection in this loop
            gateway.client = client_for(settings.upstream, settings.limits.idle, settings.upstream_key)
        return app, gateways

    app, gateways = asyncio.run(made())
    with running(app) as address:
        yield address, gateways
