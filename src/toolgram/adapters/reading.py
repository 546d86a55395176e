"""The text in what a completions endpoint streams: server-sent events of `/v1/completions`, as they come.

Strategy: lines are put together from pieces that may be cut anywhere, in the middle of a character too. Each `data:`
line is one JSON object, of which only the text of one choice and its finish reason are read. A line that is too long
or no JSON is an error, since what it said would be lost.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Any

from toolgram.errors import ToolgramError
from toolgram.limits import MAX_STREAM_LINE


class SSEData:
    """Puts the `data` of server-sent events together, from pieces cut anywhere."""

    __slots__ = ("_cut", "_data", "_data_size", "_decoder", "_rest", "_size")

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest: list[str] = []  # the line that is not over
        self._size = 0
        self._cut = False  # a carriage return came last
        self._data: list[str] = []
        self._data_size = 0

    def feed(self, piece: str | bytes) -> list[str]:
        """Return the data of the events that this piece ends. Raises ToolgramError if one is endless."""
        text = piece if isinstance(piece, str) else self._decoder.decode(piece)
        if "\n" not in text and "\r" not in text and not self._cut:
            self._hold(text)
            return []
        if self._cut:
            text, self._cut = "\r" + text, False
        if text.endswith("\r"):  # a line feed may follow, and would look like a blank line
            text, self._cut = text[:-1], True
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        lines[0] = "".join([*self._rest, lines[0]])
        self._rest, self._size = [], 0
        self._hold(lines.pop())
        return [data for line in lines if (data := self._line(line)) is not None]

    def end(self) -> list[str]:
        """Return what is left if the stream ends without its last line's end."""
        line = "".join(self._rest) + self._decoder.decode(b"", final=True)
        self._rest = []
        found = [self._line(line), self._line("")]
        return [data for data in found if data is not None]

    def _hold(self, text: str) -> None:
        self._size += len(text)
        if self._size > MAX_STREAM_LINE:
            raise ToolgramError(f"a line of the server's stream has more than {MAX_STREAM_LINE} characters")
        if text:
            self._rest.append(text)

    def _line(self, line: str) -> str | None:
        """Read one line and return the data of the event that it ends. Other fields and comments are ignored."""
        if line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
            self._data_size += len(line)
            if self._data_size > MAX_STREAM_LINE:
                raise ToolgramError(f"an event of the server's stream has more than {MAX_STREAM_LINE} characters")
        elif not line.strip() and self._data:
            data, self._data, self._data_size = "\n".join(self._data), [], 0
            return data
        return None


class CompletionTexts:
    """The texts of one choice of a streamed completion, to be iterated once, with `for` or `async for`.

    `source` gives pieces of the response's body, bytes or str, cut anywhere. If it gives lines without
    their ends, `line_end` is one. `index` is that of the choice. `finish_reason` is known at the end.
    Raises ToolgramError, while it is iterated, for an error that the server sent and for what is not JSON.

        texts = CompletionTexts(response.iter_bytes())
        for event in parser.events(texts): ...
    """

    def __init__(
        self, source: Iterable[str | bytes] | AsyncIterable[str | bytes], index: int = 0, line_end: str = ""
    ) -> None:
        self._source = source
        self._line_end = line_end
        self._index = index
        self._data = SSEData()
        self.finish_reason: str | None = None

    def __iter__(self) -> Iterator[str]:
        if not isinstance(self._source, Iterable):
            raise ToolgramError("this is an asynchronous source: iterate with `async for`")
        for piece in self._source:
            yield from self._texts(self._fed(piece))
        yield from self._texts(self._data.end())

    async def __aiter__(self) -> AsyncIterator[str]:
        if isinstance(self._source, AsyncIterable):
            async for piece in self._source:
                for text in self._texts(self._fed(piece)):
                    yield text
        else:
            for piece in self._source:
                for text in self._texts(self._fed(piece)):
                    yield text
        for text in self._texts(self._data.end()):
            yield text

    def _fed(self, piece: str | bytes) -> list[str]:
        found = self._data.feed(piece)
        return found + self._data.feed(self._line_end) if self._line_end else found

    def _texts(self, found: list[str]) -> Iterator[str]:
        for data in found:
            if data.strip() == "[DONE]":
                continue
            for choice in _choices(data):
                if not isinstance(choice, dict) or choice.get("index", 0) != self._index:
                    continue
                reason, text = choice.get("finish_reason"), choice.get("text")
                if isinstance(reason, str) and reason:
                    self.finish_reason = reason
                if isinstance(text, str) and text:
                    yield text


_NO_EVIDENCE = ("tool_calls", "tool_use", "function_call", "completed", "stop_sequence")
_WORDS = {"end_turn": "stop", "max_tokens": "length", "incomplete": "length", **dict.fromkeys(_NO_EVIDENCE)}


def evidence_in(said: str | None) -> str | None:
    """Return what a server's word for an end says of the model's output, in the words of chat completions.

    None is nothing: servers write `tool_calls` over whatever has ended an answer with a call, and a stop sequence is
    no word of the model.
    """
    return _WORDS.get(said, said) if said else None


def _choices(data: str) -> list[Any]:
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        raise ToolgramError(f"a line of the server's stream is not JSON: {data[:200]!r}") from None
    if not isinstance(said, dict):
        raise ToolgramError(f"a line of the server's stream is not an object: {data[:200]!r}")
    if said.get("error"):
        raise ToolgramError(f"the server said: {json.dumps(said['error'])[:1000]}")
    choices = said.get("choices", ())
    return choices if isinstance(choices, list) else []
