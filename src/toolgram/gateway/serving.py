"""Run the gateway: look at the upstream servers, load their models, listen.

Strategy: every problem is found before the port is opened, and reported in one line. The gateway waits for a server
that does not answer yet. Without a key, a gateway listens to this machine only.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import httpx
import uvicorn
from starlette.applications import Starlette

from toolgram.adapters.shaping import Calls
from toolgram.errors import ToolgramError
from toolgram.formats import Format
from toolgram.gateway.answering import Constrain, Gateway, Limits
from toolgram.gateway.app import create_app
from toolgram.gateway.engine import Found, NoServer, client_for, look_at
from toolgram.gateway.loading import TemplateFiles, load_model, not_fitting
from toolgram.gateway.model import SpecialText
from toolgram.gateway.recording import Recorder

# What a browser or a client writes for this machine. "[" is any address of IPv6, which is cut at its colon.
_LOOPBACK = ["localhost", "127.0.0.1", "["]

# Seconds that an idle connection stays open. Clients use one again for 5 seconds, which is uvicorn's default, too: the
# request that meets the end of its connection is lost.
KEEP_ALIVE = 75

_LOOK_AGAIN = 0.5  # seconds
_LAST_WORDS = 5.0  # seconds for the error that ends an answer to reach its client


@dataclass
class Settings:
    """Everything that can be said to `toolgram serve`."""

    upstream: str
    kind: str | None = None
    files: TemplateFiles | None = None
    fmt: Format | None = None
    name: str | None = None
    served: str | None = None  # the model's name at the upstream server
    host: str = "127.0.0.1"
    port: int = 8765
    api_key: str | None = None
    upstream_key: str | None = None
    limits: Limits = field(default_factory=Limits)
    calls: Calls = "streamed"
    reasoning: str | None = "reasoning_content"
    constrain: Constrain = "asked"
    special_text: SpecialText = "neutralise"
    record: str | None = None
    hide_metrics: bool = False  # numbers need the key, too
    wait: float = math.inf  # seconds to wait for a server that does not answer yet


async def application(*servers: Settings, say: Callable[[str], None] = print) -> tuple[Starlette, list[Gateway]]:
    """Return the gateway to one or more servers, ready to listen. The first settings have the address, key and limits.

    Raises ToolgramError if it cannot be made.
    """
    first = servers[0]
    local = is_loopback(first.host)
    if not local and first.api_key is None:
        raise ToolgramError(f"listening on {first.host} lets other machines in: set api_key, or listen on 127.0.0.1")
    record = Recorder(first.record) if first.record else None
    gateways: list[Gateway] = []
    try:
        for settings in servers:
            gateways.append(await _gateway(settings, record, say))
        names = [each.model.name for each in gateways]
        if len({*names}) < len(names):
            raise ToolgramError(f"two models have one name: {', '.join(names)}")
    except BaseException:
        for each in gateways:
            await each.client.aclose()
        raise
    return create_app(gateways, first.api_key, _LOOPBACK if local else None, first.hide_metrics), gateways


async def _gateway(settings: Settings, record: Recorder | None, say: Callable[[str], None]) -> Gateway:
    """Return the gateway to one server, as soon as the server answers."""
    client = client_for(settings.upstream, settings.limits.idle, settings.upstream_key)
    try:
        found = await _found(client, settings, say)
        model = load_model(found, settings.files, settings.fmt, settings.name, settings.special_text, settings.served)
        if record is not None:
            record.keep(model.fmt)
    except BaseException:
        await client.aclose()
        raise
    if settings.fmt is not None and (problem := not_fitting(model)):
        say(f"warning: {problem}")
    return Gateway(
        model, found.kind, client, settings.limits, settings.calls, settings.reasoning, settings.constrain, record
    )


async def _found(client: httpx.AsyncClient, settings: Settings, say: Callable[[str], None]) -> Found:
    """Look at a server, and wait for it if it is not there yet."""
    until, said = time.monotonic() + settings.wait, False
    while True:
        try:
            return await look_at(client, settings.kind)
        except NoServer as error:
            if time.monotonic() >= until:
                raise
            if not said:
                say(f"{error}; waiting for it")
            said = True
        await asyncio.sleep(_LOOK_AGAIN)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


class _Server(uvicorn.Server):  # type: ignore[misc]  # its types are not read
    """The HTTP server: it says where it listens after the port is open, and gives answers time to end."""

    def __init__(self, config: uvicorn.Config, gateways: Sequence[Gateway], say: Callable[[str], None]) -> None:
        super().__init__(config)
        self._gateways, self._say = gateways, say

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Open the port. Raises ToolgramError if it cannot be opened; the library logs why."""
        try:
            await super().startup(sockets)
        except SystemExit:
            raise ToolgramError(f"cannot listen on {self.config.host}, port {self.config.port}") from None
        address = f"http://{self.config.host}:{self.servers[0].sockets[0].getsockname()[1]}"
        self._say(f"listening on {address}/v1 (OpenAI) and {address} (Anthropic)")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for the answers; those that are not over after the grace time end with an error."""
        later = asyncio.get_running_loop().call_later
        timers = [later(each.limits.grace, each.waits.stop) for each in self._gateways]
        await super().shutdown(sockets)
        for timer in timers:
            timer.cancel()


async def serve(servers: Sequence[Settings], say: Callable[[str], None]) -> None:
    """Listen until the process has to end. Raises ToolgramError if that cannot begin."""
    app, gateways = await application(*servers, say=say)
    for gateway in gateways:
        model = gateway.model
        tools = "with tools" if model.takes_tools else "without tools"
        served = f", which knows it as {model.served}" if model.served not in (None, model.name) else ""
        say(f"{model.name}: format {model.fmt.name}, {tools}; {gateway.kind} at {gateway.client.base_url}{served}")
    config = uvicorn.Config(
        app,
        host=servers[0].host,
        port=servers[0].port,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(servers[0].limits.grace + _LAST_WORDS),
        timeout_keep_alive=KEEP_ALIVE,
    )
    await _Server(config, gateways, say).serve()


__all__ = ["Settings", "application", "serve"]
