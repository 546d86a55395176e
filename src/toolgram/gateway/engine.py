"""One connection to the server that runs the model: raw text out of it, within limits, and errors as refusals.

Strategy: what comes from the server is not trusted either. A line and an answer have a greatest length, numbers have a
greatest value, text is made valid Unicode, and anything but an answer becomes a `Refusal` with the words and address of
the server. Closing an answer closes the connection, which tells the server that nobody wants the rest.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx

from toolgram.adapters.reading import SSEData
from toolgram.errors import ToolgramError
from toolgram.gateway.errors import Refusal
from toolgram.gateway.upstreams import UPSTREAMS, Piece, Upstream
from toolgram.limits import MAX_ANSWER, MAX_ERROR

_KINDS = (
    ("/props", "llama.cpp"),
    ("/model_info", "sglang"),
    ("/get_model_info", "sglang"),  # its name in older versions
    ("/api/version", "ollama"),
    ("/version", "vllm"),
)
_LLAMA = {"chat_template", "default_generation_settings"}  # one of them is in llama.cpp's properties
_JSON = {"Content-Type": "application/json"}


class NoServer(ToolgramError):
    """No server answers yet, or it is still loading its model."""


@dataclass(frozen=True)
class Found:
    """What a server says of itself. `kind` is one of UPSTREAMS."""

    kind: str
    template: str | None = None
    bos_token: str = ""
    eos_token: str = ""
    models: tuple[str, ...] = ()


def client_for(url: str, idle: float, key: str | None = None) -> httpx.AsyncClient:
    """Return a client of the server at `url`, which waits `idle` seconds for the next piece of an answer.

    Raises ToolgramError if `url` is not the address of a server.
    """
    parsed = httpx.URL(url)
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ToolgramError(f"--upstream is an address such as http://127.0.0.1:8080, not {url!r}")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = httpx.Timeout(idle, connect=10.0, pool=None)
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=32)
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout, limits=limits, trust_env=False)


async def look_at(client: httpx.AsyncClient, kind: str | None = None) -> Found:
    """Look what is at the other end. Raises NoServer if nothing answers, and ToolgramError for an unknown `kind`."""
    if kind is not None and kind not in UPSTREAMS:
        raise ToolgramError(f"unknown kind of server {kind!r}; the kinds are {', '.join(UPSTREAMS)}")
    for path, name in _KINDS:
        said = await _asked(client, path) if kind in (None, name) else None
        if said is None or (name == "llama.cpp" and not _LLAMA & said.keys()):
            continue
        if name == "llama.cpp":
            model = _string(said.get("model_alias")) or _string(said.get("model_path")) or ""
            tokens = _token(said.get("bos_token")), _token(said.get("eos_token"))
            return Found(name, _string(said.get("chat_template")), *tokens, (model,) if model else ())
        model = _string(said.get("model_path")) or "" if name == "sglang" else ""
        return Found(name, models=(model,) if model else await _models(client))
    if kind == "mlx" or (kind is None and await _is_mlx(client)):
        return Found("mlx")
    return Found(kind or "openai", models=await _models(client))


async def answers(client: httpx.AsyncClient) -> bool:
    """Return whether the server answers anything at all."""
    try:
        await client.get("/v1/models", timeout=2.0)
    except httpx.HTTPError:
        return False
    return True


async def _is_mlx(client: httpx.AsyncClient) -> bool:
    """Return whether it is MLX-LM's server: it reports nothing about itself, and is Python's own HTTP server."""
    try:
        response = await client.get("/health", timeout=10.0)
        return bool(response.headers.get("server", "").startswith("BaseHTTP/") and response.json() == {"status": "ok"})
    except (httpx.HTTPError, ValueError, RecursionError):
        return False


async def _asked(client: httpx.AsyncClient, path: str) -> Mapping[str, Any] | None:
    try:
        response = await client.get(path, timeout=10.0)
        if response.status_code == 503:
            raise NoServer(f"the server at {client.base_url} is loading its model")
        said = response.json() if response.status_code == 200 else None
    except httpx.ConnectError as error:
        raise NoServer(f"no server answers at {client.base_url}: {error}") from None
    except (httpx.HTTPError, ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


async def _models(client: httpx.AsyncClient) -> tuple[str, ...]:
    listed = (await _asked(client, "/v1/models") or {}).get("data")
    named = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return tuple(name for each in named if (name := _string(each.get("id"))))


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _token(value: Any) -> str:
    """Return the text of a token; servers also send it as an object."""
    if isinstance(value, Mapping):
        value = value.get("content")
    return value if isinstance(value, str) else ""


class Answer:
    """The pieces of one answer, and the connection that they come from."""

    def __init__(self, response: httpx.Response, upstream: Upstream) -> None:
        self._response, self._upstream = response, upstream
        self._where = address_of(response.request.url)
        self._seen = 0  # characters of its text, as the server counts them
        self._half = ""  # the first half of a character that was cut in two

    async def pieces(self) -> AsyncIterator[Piece]:
        """Yield the pieces until the server reports the end. Raises Refusal if it breaks off before."""
        ended = False
        with _refusals(self._where):
            async for line in self._lines():
                if line.strip() == "[DONE]":
                    return
                piece = self._piece(line)
                ended = ended or piece.reason is not None
                yield piece
        if not ended:
            raise Refusal(f"{self._where} broke off in the middle of its answer", 502, code="upstream")

    async def _lines(self) -> AsyncIterator[str]:
        data = JSONLines() if self._upstream.lines else SSEData()
        async for block in self._response.aiter_bytes():
            for line in data.feed(block):
                yield line
        for line in data.end():
            yield line

    def _piece(self, line: str) -> Piece:
        """Return the contents of one message of the stream. Raises Refusal."""
        if not line.strip():
            return Piece()
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise Refusal(f"{self._where} sent what is not a JSON object", 502, code="upstream")
        if said.get("error"):
            problem = _said(said["error"]) or said["error"]
            raise Refusal(f"{self._where} said: {problem}", 502, code="upstream")
        piece = self._upstream.read(said)
        text = piece.text[self._seen :] if piece.is_whole else piece.text
        self._seen += len(text)
        if self._seen > MAX_ANSWER:
            raise Refusal(f"the answer has more than {MAX_ANSWER} characters", 502, code="upstream")
        return piece._replace(text=self._valid(text, piece.reason is not None))

    def _valid(self, text: str, last: bool) -> str:
        """Return text without halves of characters: JSON can contain one, and two pieces can have one each."""
        text, self._half = self._half + text, ""
        if text and "\ud800" <= text[-1] <= "\udbff" and not last:
            text, self._half = text[:-1], text[-1]
        if text.isascii():
            return text
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    async def close(self) -> None:
        """Close the connection, which tells the server that nobody wants the rest."""
        with suppress(httpx.HTTPError):
            await self._response.aclose()


async def answer_of(client: httpx.AsyncClient, upstream: Upstream, body: Mapping[str, Any]) -> Answer:
    """Ask the server; when this returns, it has accepted the request. To be closed. Raises Refusal."""
    content = json.dumps(body).encode()
    headers = {**_JSON, "Accept": "text/event-stream", "Accept-Encoding": "identity"}
    where = address_of(client.base_url)
    with _refusals(where):
        request = client.build_request("POST", upstream.path, content=content, headers=headers)
        response = await client.send(request, stream=True)
        if response.status_code == 200:
            return Answer(response, upstream)
        try:
            raise await _refused(response, where)
        finally:
            await response.aclose()


async def passed_through(client: httpx.AsyncClient, path: str, body: Mapping[str, Any]) -> httpx.Response:
    """Send a request as it is. The response is to be read and closed. Raises Refusal if there is none."""
    with _refusals(address_of(client.base_url)):
        return await client.send(client.build_request("POST", path, json=body), stream=True)


async def count_tokens(client: httpx.AsyncClient, upstream: Upstream, prompt: str) -> int:
    """Return the number of tokens of a prompt, by the server's own tokenizer. Raises Refusal if it cannot count."""
    where = address_of(client.base_url)
    if upstream.count is None:
        raise Refusal(f"{where} does not count tokens", 501)
    path, field = upstream.count
    body = {field: prompt, "add_special": True, "parse_special": True, "add_special_tokens": False}
    with _refusals(where):
        response = await client.post(path, content=json.dumps(body).encode(), headers=_JSON)
        if response.status_code != 200:
            raise Refusal(f"{where} said {response.status_code}", 502, code="upstream")
        try:
            said = response.json()
            counted = said.get("count", said.get("tokens"))
            return len(counted) if isinstance(counted, list) else int(counted)
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise Refusal(f"{where} did not say how many tokens", 502, code="upstream") from None


def address_of(url: httpx.URL) -> str:
    """Return a name for a server: its address without its secrets."""
    return f"the server at {url.scheme}://{url.netloc.decode('ascii', 'replace').rpartition('@')[2]}"


@contextmanager
def _refusals(where: str) -> Iterator[None]:
    """Turn the errors of a connection into refusals."""
    try:
        yield
    except httpx.ConnectError:
        raise Refusal(f"{where} does not answer", 502, code="upstream") from None
    except httpx.TimeoutException:
        raise Refusal(f"{where} took too long", 504, code="upstream_timeout") from None
    except (httpx.HTTPError, httpx.StreamError) as error:
        said = str(error) or type(error).__name__
        raise Refusal(f"the connection to {where} broke: {said}", 502, code="upstream") from None
    except Refusal:
        raise
    except ToolgramError as error:  # of a line without end
        raise Refusal(str(error), 502, code="upstream") from None


async def _refused(response: httpx.Response, where: str) -> Refusal:
    """Return the refusal for what the server sent instead of an answer."""
    data = b""
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) > MAX_ERROR:
            break
    text = data[:MAX_ERROR].decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        text = _said(json.loads(text)) or text
    status = response.status_code if response.status_code in (400, 413, 429, 503) else 502
    return Refusal(f"{where} said {response.status_code}: {text}", status, code="upstream")


def _said(error: Any) -> str:
    """Return the message in a server's error object."""
    for _ in range(3):
        if isinstance(error, str):
            return error
        if not isinstance(error, Mapping):
            return ""
        error = error.get("error", error.get("message", error.get("detail")))
    return error if isinstance(error, str) else ""


class JSONLines(SSEData):
    """Lines of JSON, put together in the same way; each is data."""

    __slots__ = ()

    def _line(self, line: str) -> str | None:
        return line or None
