"""A server that breaks HTTP and its own stream in any way: it plays bytes, pauses and resets on a socket.

Strategy: no HTTP library writes what is wrong here, so the bytes are written by hand. One server runs for all faults of
a module; the test says what it plays next.
"""

from __future__ import annotations

import json
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import parse_headers
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
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


class _Player(StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, Faulty)
        with suppress(OSError):
            asked, headers = self.rfile.readline(), parse_headers(self.rfile)
            if not asked.startswith(b"POST"):
                self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            self.rfile.read(int(headers["content-length"]))
            for step in self.server.steps:
                self._play(step)

    def _play(self, step: Step) -> None:
        if isinstance(step, bytes):
            self.wfile.write(step)
        elif isinstance(step, Pause):
            time.sleep(step.seconds)
        elif isinstance(step, Hold):
            self.connection.settimeout(0.02)
            while True:
                self.wfile.write(step.again)
                with suppress(TimeoutError):
                    if not self.connection.recv(1):
                        return
        else:
            time.sleep(0.05)  # what was sent arrives before the reset does
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.rfile.close()  # nothing shuts the connection down before it is closed, which is the reset
            self.connection.close()


class Faulty(ThreadingTCPServer):
    """The server. `steps` are played for each request; `address` is where it listens."""

    steps: Sequence[Step] = ()
    daemon_threads = True
    request_queue_size = 32

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def faulty_server() -> Iterator[Faulty]:
    """A server that listens in a thread."""
    with Faulty(("127.0.0.1", 0), _Player) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
