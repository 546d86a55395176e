"""What a server can do wrong, one row each, with what the gateway makes of it. `docs/serve.md` shows these rows.

`python -m tests.gateway.faults` prints the table of the docs.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

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


SOME = piece("some ")
END = piece("text", "stop")
DONE = data(b"[DONE]")
LONG_LINE = b"data: " + b"x" * 990 + b"\n"
HUGE = int("9" * 400)
REFUSAL = b'{"error": {"message": "out of memory"}}'


def answer(status: str, body: bytes, *headers: str) -> bytes:
    """A whole response with its length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def compressed(body: bytes) -> bytes:
    """A stream in gzip, which nobody asked for."""
    return HEAD + b"Content-Encoding: gzip\r\nConnection: close\r\n\r\n" + gzip.compress(body)


def usage(number: int) -> dict[str, Any]:
    """What a completion says of its tokens."""
    return {"usage": {"prompt_tokens": number, "completion_tokens": number}}


FAULTS = [
    # the connection
    Fault("closes before any byte", [], "broke"),
    Fault("resets before any byte", [Reset()], "broke"),
    Fault("accepts and says nothing", [Hold()], "nothing for", waits=True, status=504),
    Fault("breaks off inside its headers", [b"HTTP/1.1 200 OK\r\nContent-"], "broke"),
    Fault("answers with no HTTP", [b"hello\r\n\r\n"], "broke"),
    Fault("sends headers and no body", [CLOSING], "broke off"),
    Fault("sends headers and then nothing", [CLOSING, Hold()], "nothing for", waits=True, status=504),
    Fault("closes in the middle of the answer", [CLOSING, SOME], "broke off"),
    Fault("resets in the middle of the answer", [CLOSING, SOME, Reset()], "broke"),
    Fault("closes inside a chunk", [CHUNKED, chunk(SOME), b"ff\r\ndata"], "broke"),
    Fault("sends a chunk whose length is no number", [CHUNKED, chunk(SOME), b"zz\r\n"], "broke"),
    Fault("sends less than the length that it said", [HEAD, b"Content-Length: 9999\r\n\r\n", SOME], "broke"),
    Fault("resets after its end", [CLOSING, SOME, END, Reset()], text="some text"),
    Fault("keeps the connection open after [DONE]", [CLOSING, SOME, END, DONE, Hold()], text="some text"),
    Fault("keeps the connection open after its end", [CLOSING, SOME, END, Hold()], text="some text"),
    # time
    Fault("falls silent in the middle", [CLOSING, SOME, Hold()], "nothing for", waits=True, status=504),
    Fault("sends only comments", [CLOSING, SOME, Hold(b": ping\n\n")], "nothing for", waits=True, status=504),
    Fault("never ends", [CLOSING, Hold(SOME)], "took too long", waits=True, status=504),
    Fault("pauses, and goes on", [CLOSING, SOME, Pause(0.1), END, DONE], text="some text"),
    # refusals
    Fault("answers 500", [answer("500 Oh", REFUSAL)], "said 500: out of memory"),
    Fault("answers 404 with a page", [answer("404 Not Found", b"<html>" * 9_000)], "said 404"),
    Fault("answers 400", [answer("400 No", b'{"error": {"message": "too long"}}')], "said 400: too long", status=400),
    Fault("answers 429", [answer("429 Busy", b'{"error": "too busy"}')], "said 429: too busy", status=429),
    Fault("answers 503", [answer("503 Busy", b"loading the model")], "said 503: loading", status=503),
    Fault("redirects", [answer("302 Found", b"", "Location: http://127.0.0.1:9/")], "said 302"),
    Fault("answers 204", [b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"], "said 204"),
    Fault("breaks off inside a refusal", [b"HTTP/1.1 500 Oh\r\nContent-Length: 999\r\n\r\noh"], "broke"),
    # what is in the stream
    Fault("says that it failed, in the middle", [CLOSING, SOME, data(json.loads(REFUSAL))], "out of memory"),
    Fault("says that it failed, as text", [CLOSING, SOME, data({"error": "oh no"})], "oh no"),
    Fault("sends a page in place of a stream", [CLOSING, b"<html>hello</html>"], "broke off"),
    Fault("sends what is not JSON", [CLOSING, SOME, data(b"{oh no")], "not a JSON object"),
    Fault("sends a list", [CLOSING, data([1])], "not a JSON object"),
    Fault("nests too deeply", [CLOSING, data(b"[" * 100_000)], "not a JSON object"),
    Fault("sends a line without end", [CLOSING, b"data: " + b"x" * (MAX_STREAM_LINE + 9)], "more than"),
    Fault(
        "sends an event without end",
        [CLOSING, b"data: %b\n" % (b"x" * 990) * (MAX_STREAM_LINE // 990 + 9)],
        "more than",
    ),
    Fault(
        "sends too long an answer", [CLOSING, *[piece("x" * 1_000_000)] * (MAX_ANSWER // 1_000_000 + 1)], "more than"
    ),
    Fault("sends no text in its pieces", [CLOSING, piece(None), piece(3), SOME, END, DONE], text="some text"),
    Fault("sends objects of another kind", [CLOSING, data({"x": 1}), data({"choices": 3}), END, DONE], text="text"),
    Fault(
        "sends bytes that are no UTF-8", [CLOSING, data(b'{"choices": [{"text": "a\xff"}]}'), END], text="a\ufffdtext"
    ),
    Fault("sends half of a character", [CLOSING, piece("a\ud83d"), piece("b"), END, DONE], text="a\ufffdbtext"),
    Fault(
        "cuts a character in two pieces", [CLOSING, piece("\ud83d"), piece("\ude00"), END, DONE], text="\U0001f600text"
    ),
    Fault("sends huge numbers", [CLOSING, SOME, piece("text", "stop", **usage(HUGE)), DONE], text="some text"),
    Fault(
        "sends numbers that are none", [CLOSING, SOME, END, data({"usage": {"prompt_tokens": "x"}})], text="some text"
    ),
    Fault(
        "sends numbers after its end",
        [CLOSING, SOME, END, data({"choices": [], **usage(7)}), DONE],
        text="some text",
        usage=7,
    ),
    Fault("sends text after its end", [CLOSING, SOME, END, piece("more"), DONE], text="some text"),
    Fault("ends twice", [CLOSING, SOME, END, END, DONE, DONE], text="some text"),
    Fault("sends [DONE] without a reason", [CLOSING, SOME, piece("text"), DONE], text="some text"),
    Fault("sends [DONE] at once", [CLOSING, DONE]),
    Fault("sends text after [DONE]", [CLOSING, SOME, END, DONE, piece("more", "length")], text="some text"),
    Fault("sends what is not JSON after its end", [CLOSING, SOME, END, data(b"{oh no")], text="some text"),
    Fault("gives a reason that nobody knows", [CLOSING, SOME, piece("text", "moon"), DONE], text="some text"),
    Fault("ends its lines with carriage returns", [CLOSING, (SOME + END).replace(b"\n", b"\r")], text="some text"),
    Fault(
        "sends one byte at a time",
        [CHUNKED, *(chunk(bytes([each])) for each in SOME + END), b"0\r\n\r\n"],
        text="some text",
    ),
    Fault("compresses what nobody asked it to", [compressed(SOME + END)], text="some text"),
    Fault("says gzip and sends none", [HEAD, b"Content-Encoding: gzip\r\n\r\n", SOME], "broke"),
    # other kinds of servers
    Fault("llama.cpp: no end", [CLOSING, data({"content": "some "})], "broke off", kind="llama.cpp"),
    Fault(
        "llama.cpp: text after the end",
        [CLOSING, data({"content": "a", "stop": True}), data({"content": "b"})],
        text="a",
        kind="llama.cpp",
    ),
    Fault("ollama: cut line", [CLOSING, b'{"response": "a"}\n{"resp'], "not a JSON object", kind="ollama"),
    Fault(
        "ollama: an error",
        [CLOSING, b'{"response": "a"}\n{"error": "model is gone"}\n'],
        "model is gone",
        kind="ollama",
    ),
    Fault(
        "sglang: gives up",
        [CLOSING, data({"text": "a", "meta_info": {"finish_reason": {"type": "abort", "message": "oh"}}})],
        "gave up",
        kind="sglang",
    ),
    Fault(
        "sglang: text that shrinks",
        [
            CLOSING,
            data({"text": "abc"}),
            data({"text": "a"}),
            data({"text": "abcd", "meta_info": {"finish_reason": {"type": "stop"}}}),
        ],
        text="abcd",
        kind="sglang",
    ),
]


def rows() -> Iterator[str]:
    """The table of the docs."""
    yield "| what the server does | what the client gets |"
    yield "|---|---|"
    for fault in FAULTS:
        got = f"an error, {fault.status}: ...{fault.said}..." if fault.said else "the whole answer"
        yield f"| {fault.what} | {got} |"


if __name__ == "__main__":
    print("\n".join(rows()))
