"""Running the gateway: look at the server behind, load the model, listen.

Strategy: everything that can be wrong is found before the port is opened, and said in one line. Without a key, a
gateway listens to this machine only.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import socket
from collections.abc import Callable
from dataclasses import dataclass, field

import uvicorn
from starlette.applications import Starlette

from toolgram.adapters.shaping import Calls
from toolgram.errors import ToolgramError
from toolgram.formats import Format
from toolgram.gateway.answering import Constrain, Gateway, Limits
from toolgram.gateway.app import create_app
from toolgram.gateway.engine import client_for, look_at
from toolgram.gateway.loading import TemplateFiles, load_model
from toolgram.gateway.model import SpecialText
from toolgram.gateway.recording import Recorder

# What a browser or a client writes for this machine. "[" stands for any address of IPv6, which is cut at its colon.
_LOOPBACK = ["localhost", "127.0.0.1", "["]

# Seconds that an idle connection stays open. Clients use one again for 5 seconds, which is uvicorn's default, too: the
# request that meets the end of its connection is lost.
KEEP_ALIVE = 75

_LAST_WORDS = 5.0  # seconds for the error that ends an answer to reach its client


@dataclass
class Settings:
    """Everything that can be said to `toolgram serve`."""

    upstream: str
    kind: str | None = None
    files: TemplateFiles | None = None
    fmt: Format | None = None
    name: str | None = None
    served: str | None = None  # the model's name at the server behind
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


async def application(settings: Settings) -> tuple[Starlette, Gateway]:
    """The gateway, ready to listen. Raises ToolgramError where it cannot be."""
    local = is_loopback(settings.host)
    if not local and settings.api_key is None:
        raise ToolgramError(
            f"listening on {settings.host} lets other machines in: set an API key, or listen on 127.0.0.1"
        )
    client = client_for(settings.upstream, settings.limits.idle, settings.upstream_key)
    try:
        found = await look_at(client, settings.kind)
        model = load_model(found, settings.files, settings.fmt, settings.name, settings.special_text, settings.served)
        record = Recorder(settings.record) if settings.record else None
    except BaseException:
        await client.aclose()
        raise
    gateway = Gateway(
        model,
        found.kind,
        client,
        settings.limits,
        settings.calls,
        settings.reasoning,
        settings.constrain,
        record,
    )
    return create_app(gateway, settings.api_key, _LOOPBACK if local else None, settings.hide_metrics), gateway


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _Server(uvicorn.Server):  # type: ignore[misc]  # its types are not read
    """The HTTP server: it says where it listens after the port is open, and gives answers time to end."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway, say: Callable[[str], None]) -> None:
        super().__init__(config)
        self._gateway, self._say = gateway, say

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
        timer = asyncio.get_running_loop().call_later(self._gateway.limits.grace, self._gateway.waits.stop)
        await super().shutdown(sockets)
        timer.cancel()


async def serve(settings: Settings, say: Callable[[str], None]) -> None:
    """Listen until the process is told to end. Raises ToolgramError where that cannot begin."""
    app, gateway = await application(settings)
    model = gateway.model
    tools = "with tools" if model.takes_tools else "without tools"
    served = f", which knows it as {model.served}" if model.served not in (None, model.name) else ""
    say(f"{model.name}: format {model.fmt.name}, {tools}; {gateway.kind} at {settings.upstream}{served}")
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=math.ceil(settings.limits.grace + _LAST_WORDS),
        timeout_keep_alive=KEEP_ALIVE,
    )
    await _Server(config, gateway, say).serve()


__all__ = ["Settings", "application", "serve"]
