"""Several streams as one: the items of all of them, in the order in which they come.

Strategy: a task reads each stream and waits until its item is taken, so a slow client slows every stream down, and
nothing piles up. The first failure ends them all. However the merged stream ends, every stream is closed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TypeVar

import anyio

_T = TypeVar("_T")


async def together(streams: Sequence[AsyncGenerator[_T, None]]) -> AsyncGenerator[_T, None]:
    """Yield the items of these streams. Raises the error of the first stream that fails."""
    queue: asyncio.Queue[_T | Exception | None] = asyncio.Queue(maxsize=1)

    async def read(stream: AsyncGenerator[_T, None]) -> None:
        try:
            async for item in stream:
                await queue.put(item)
        except Exception as error:
            await queue.put(error)
        else:
            await queue.put(None)
        finally:
            await stream.aclose()

    tasks = [asyncio.create_task(read(stream)) for stream in streams]
    try:
        left = len(tasks)
        while left:
            item = await queue.get()
            if isinstance(item, Exception):
                raise item
            if item is None:
                left -= 1
            else:
                yield item
    finally:
        for task in tasks:
            task.cancel()
        with anyio.CancelScope(shield=True):  # whoever reads this was cancelled, too, and the streams have to be closed
            await asyncio.gather(*tasks, return_exceptions=True)
