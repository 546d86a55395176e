"""What a server can do wrong, one row each, with what the gateway makes of it. `docs/faults.md` shows these rows.

`python -m tests.gateway.faults` prints the table of the docs.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.gateway.faulty import CHUNKED, CLOSING, HEAD, Hold, Pause, Reset, Step, chunk, data
from toolgram.limits import MAX_ANSWER, MAX_STREAM_LINE


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
    "head": HEAD,
    "closing": CLOSING,
    "chunked": CHUNKED,
    "some": SOME,
    "end": END,
    "done": data(b"[DONE]"),
    "reset": Reset(),
    "hold": Hold(),
    "hold with comments": Hold(b": ping\n\n"),
    "some without end": Hold(SOME),
    "deep lists": data(b"[" * 100_000),
    "a long line": b"data: " + b"x" * (MAX_STREAM_LINE + 9),
    "a long event": b"data: %b\n" % (b"x" * 990) * (MAX_STREAM_LINE // 990 + 9),
    "a long answer": [piece("x" * 1_000_000)] * (MAX_ANSWER // 1_000_000 + 1),
    "huge numbers": piece("text", "stop", usage=HUGE),
    "carriage returns": (SOME + END).replace(b"\n", b"\r"),
    "each byte": [chunk(bytes([each])) for each in SOME + END],
    "compressed": b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n" + gzip.compress(SOME + END),
}


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
