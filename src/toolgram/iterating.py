"""A parser over an iterator of deltas, and over an asynchronous one.

Strategy: the loop that everybody writes, once: deltas may be bytes, cut in the middle of a character, and what gives
them may know a finish reason at its end.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import Protocol, overload

from toolgram.events import Event


class Fed(Protocol):
    """What deltas are fed to: a parser."""

    def feed(self, delta: str) -> list[Event]:
        """Return the events of a delta."""

    def close(self, finish_reason: str | None = None) -> list[Event]:
        """Return the events of the end of the output."""


class Events:
    """The events of an output, to be iterated once: with `for`, or with `async for` if the source is asynchronous.

    A source that has a `finish_reason` at its end is asked for it; `finish_reason` given here goes before that.
    """

    __slots__ = ("_decoder", "_finish_reason", "_parser", "_source")

    def __init__(
        self,
        parser: Fed,
        source: Iterable[str | bytes] | AsyncIterable[str | bytes],
        finish_reason: str | None = None,
    ) -> None:
        self._parser = parser
        self._source = source
        self._finish_reason = finish_reason
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def __iter__(self) -> Iterator[Event]:
        if not isinstance(self._source, Iterable):
            raise TypeError("the source is asynchronous: use `async for`")
        for piece in self._source:
            yield from self._parser.feed(self._text(piece))
        yield from self._last()

    async def __aiter__(self) -> AsyncIterator[Event]:
        if isinstance(self._source, AsyncIterable):
            async for piece in self._source:
                for event in self._parser.feed(self._text(piece)):
                    yield event
        else:
            for piece in self._source:
                for event in self._parser.feed(self._text(piece)):
                    yield event
        for event in self._last():
            yield event

    @overload
    def _text(self, piece: str) -> str: ...

    @overload
    def _text(self, piece: bytes) -> str: ...

    def _text(self, piece: str | bytes) -> str:
        return piece if isinstance(piece, str) else self._decoder.decode(piece)

    def _last(self) -> list[Event]:
        """Return what the end of the source makes certain; half a character becomes a replacement character."""
        rest = self._decoder.decode(b"", final=True)
        events = self._parser.feed(rest) if rest else []
        reason = self._finish_reason or getattr(self._source, "finish_reason", None)
        return events + self._parser.close(reason)
