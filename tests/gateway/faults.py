"""What a server can do wrong, one row each, with what the gateway makes of it; and a server that does it on a socket.

Strategy: no HTTP library writes what is wrong here, so bytes are written by hand, with pauses and resets. One server
runs for all faults of a module; the test says what it plays next. `docs/faults.md` shows the rows, whose table
`python -m tests.gateway.faults` prints.
"""

import gzip
import json
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.client import parse_headers
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any, NamedTuple, TypeAlias

import yaml

from toolgram.limits import MAX_ANSWER, MAX_STREAM_LINE


class Pause(NamedTuple):
    """Send nothing for this many seconds."""

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


class Fault(NamedTuple):
    """A row. `said` is in the error of the answer; without it the answer is clean, and its text is `text`.

    `waits` is true if nothing but a limit on time ends it. `usage` is the number of output tokens.
    """

    what: str
    steps: Sequence[Step]
    said: str = ""
    text: str = ""
    kind: str = "openai"
    waits: bool = False
    status: int = 502
    usage: int = 0


def piece(text: Any, reason: str | None = None, **more: Any) -> bytes:
    """A piece of a completion."""
    return data({"choices": [{"index": 0, "text": text, "finish_reason": reason}], **more})


SOME, END = piece("some "), piece("text", "stop")
HUGE = {"prompt_tokens": int("9" * 400), "completion_tokens": int("9" * 400)}
STEPS: dict[str, Step | list[Step]] = {
    "head": HEAD, "closing": CLOSING, "chunked": CHUNKED, "some": SOME, "end": END, "done": data(b"[DONE]"),
    "reset": Reset(), "hold": Hold(), "hold with comments": Hold(b": ping\n\n"), "some without end": Hold(SOME),
    "deep lists": data(b"[" * 100_000),
    "a long line": b"data: " + b"x" * (MAX_STREAM_LINE + 9),
    "a long event": b"data: %b\n" % (b"x" * 990) * (MAX_STREAM_LINE // 990 + 9),
    "a long answer": [piece("x" * 1_000_000)] * (MAX_ANSWER // 1_000_000 + 1),
    "huge numbers": piece("text", "stop", usage=HUGE),
    "carriage returns": (SOME + END).replace(b"\n", b"\r"),
    "each byte": [chunk(bytes([each])) for each in SOME + END],
    "compressed": b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n" + gzip.compress(SOME + END),
}  # fmt: skip


def steps(given: Any) -> list[Step]:
    """What a step of a row sends: one thing, or several with a pause for the network between them."""
    match given:
        case {"data": said}:
            return [data(said)]
        case {"piece": said}:
            return [piece(*said)]
        case {"bytes": text}:
            return [str(text).encode("latin-1")]
        case {"chunk": "some"}:
            return [chunk(SOME)]
        case {"pause": seconds}:
            return [Pause(seconds)]
        case {"status": status, "body": body}:
            whole = body.encode() * given.get("times", 1)
            return [f"HTTP/1.1 {status}\r\nContent-Length: {len(whole)}\r\nConnection: close\r\n\r\n".encode() + whole]
    found = STEPS[given]
    return found if isinstance(found, list) else [found]


ROWS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("faults.yaml").read_text(encoding="utf-8"))
FAULTS = [Fault(**{**row, "steps": [one for each in row["steps"] for one in steps(each)]}) for row in ROWS]


def rows() -> Iterator[str]:
    """The table of the docs."""
    yield "| what the server does | what the client gets |"
    yield "|---|---|"
    for fault in FAULTS:
        got = f"an error, {fault.status}: ...{fault.said}..." if fault.said else "the whole answer"
        yield f"| {fault.what} | {got} |"


if __name__ == "__main__":
    print("\n".join(rows()))
