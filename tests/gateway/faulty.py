"""A server that breaks HTTP and its own stream in any way: it plays bytes, pauses and resets on a socket.

Strategy: no HTTP library writes what is wrong here, so the bytes are written by hand. One server runs for all faults of
a module; the test says what it plays next.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, TypeAlias


class Pause(NamedTuple):
    """Send nothing for so many seconds."""

    seconds: float


class Hold(NamedTuple):
    """Keep the connection open until the gateway closes it, and send this again and again."""

    again: bytes = b""


class Reset(NamedTuple):
    """Break the connection with a reset."""


Step: TypeAlias = bytes | Pause | Hold | Reset

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
CLOSING = HEAD + b"Connection: close\r\n\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def data(said: Any) -> bytes:
    """A server-sent event."""
    return b"data: " + (said if isinstance(said, bytes) else json.dumps(said).encode()) + b"\n\n"


def chunk(data: bytes) -> bytes:
    """A chunk of a body whose length was not said."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


class Faulty:
    """The server. `steps` are played for each request; `address` is where it listens."""

    def __init__(self) -> None:
        self.steps: Sequence[Step] = ()
        self.address = ""
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @contextmanager
    def running(self) -> Iterator[Faulty]:
        """Listen in a thread."""
        self._thread.start()
        assert self._ready.wait(30)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        host, port = server.sockets[0].getsockname()
        self.address = f"http://{host}:{port}"
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            if head.startswith("get"):
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            else:
                await reader.readexactly(int(head.partition("content-length:")[2].split()[0]))
                for step in self.steps:
                    await _play(step, reader, writer)
            await writer.drain()
        writer.close()  # also if the client has gone: else a later test is blamed for the open socket
        with suppress(OSError):
            await writer.wait_closed()


async def _read_to_end(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        await reader.read()


async def _play(step: Step, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if isinstance(step, bytes):
        writer.write(step)
        await writer.drain()
    elif isinstance(step, Pause):
        await asyncio.sleep(step.seconds)
    elif isinstance(step, Hold):
        gone = asyncio.ensure_future(_read_to_end(reader))
        while not gone.done():
            writer.write(step.again)
            await writer.drain()
            await asyncio.wait({gone}, timeout=0.02)
    else:
        await writer.drain()
        await asyncio.sleep(0.05)  # what was sent arrives before the reset does
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
