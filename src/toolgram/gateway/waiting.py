"""Limit how long the gateway waits for the server: for an answer, for its next piece, and at the end of the process.

Strategy: a limit on the silence of a connection counts the bytes of a comment as activity, so the limits are around the
waits themselves. All waits of a gateway are kept in one set. When the process has to end, all of them end at once, and
each stream reports it in its last event.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from toolgram.gateway.errors import Refusal


class Waits:
    """The waits of one gateway."""

    def __init__(self) -> None:
        self._open: set[asyncio.Timeout] = set()
        self._stopped = False

    def stop(self) -> None:
        """End every wait, both current and later ones."""
        self._stopped = True
        for timer in self._open:
            timer.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def until(self, deadline: float, idle: float) -> AsyncIterator[None]:
        """Wait for at most `idle` seconds, and not beyond `deadline` of the monotonic clock. Raises Refusal."""
        left = deadline - time.monotonic()
        try:
            async with asyncio.timeout(0 if self._stopped else min(left, idle)) as timer:
                self._open.add(timer)
                try:
                    yield
                finally:
                    self._open.discard(timer)
        except TimeoutError:
            if self._stopped:
                raise Refusal("the gateway is shutting down", 503, code="shutting_down") from None
            if left <= idle:
                raise Refusal("the answer took too long", 504, code="timeout") from None
            raise Refusal(
                f"the server took too long: it sent nothing for {idle:g} seconds", 504, code="upstream_timeout"
            ) from None
