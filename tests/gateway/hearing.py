"""What the official clients hear from a gateway, through three APIs, whole and streamed."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.integrations.http_clients import APIS, CHAT, MESSAGES, RESPONSES, Ask, Clients
from tests.integrations.vllm_heard import Heard

# How each API is asked for no thought.
WITHOUT_THOUGHT: dict[str, dict[str, Any]] = {
    CHAT: {"reasoning_effort": "none"},
    RESPONSES: {"reasoning": {"effort": "none"}},
    MESSAGES: {"thinking": {"type": "disabled"}},
}


def heard_from(address: str, *asks: Ask) -> list[Heard]:
    """The answers to these requests, one after the other."""

    async def hear() -> list[Heard]:
        async with Clients(int(address.rpartition(":")[2])) as clients:
            return [answer for each in asks for answer in await clients.hear(each)]

    return asyncio.run(hear())


def in_every_way(said: str = "Hi", **asked: Any) -> list[Ask]:
    """A request through each API, whole and streamed."""
    return [Ask(0, api, pace, said=said, **asked) for api in APIS for pace in (None, 1)]
