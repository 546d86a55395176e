"""Turn a request into an answer: prompt, grammar, raw text, events.

Strategy: a turn is one output of the model, read by one parser as it arrives. The caller decides what its events
become: chunks of a stream, or a whole message at the end. Rendering a template and writing a grammar take milliseconds
of the processor, so they run in a thread, where they block no stream. A template renders one prompt at a time. Large
requests have their own template, so that they delay no others, and grammars have their own limiter.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeAlias

import anyio
import httpx

from toolgram.adapters.handing_out import HandedOut
from toolgram.adapters.reading import evidence_in
from toolgram.adapters.shaping import Calls
from toolgram.adapters.usage import Usage
from toolgram.events import Event
from toolgram.export.expressions import Export
from toolgram.gateway.asking import Ask
from toolgram.gateway.endings import StopTexts
from toolgram.gateway.engine import Answer, answer_of, count_tokens
from toolgram.gateway.errors import Refusal, unsupported
from toolgram.gateway.model import Model, Prompt
from toolgram.gateway.recording import Recorder
from toolgram.gateway.upstreams import UPSTREAMS, Piece
from toolgram.limits import LARGE_REQUEST, MOST_GRAMMAR_TOOLS
from toolgram.message import Message
from toolgram.showing.answers import LONGEST_RECENT, MOST_RECENT, Answered

Constrain: TypeAlias = Literal["asked", "always", "never"]

_AFTER_STOP = 4  # pieces to read after a stop string: a server that stops there reports its token counts
_AFTER_END = 1.0  # seconds to wait after the end of an answer for its token counts


@dataclass
class Limits:
    """The limits of one request, and of all of them."""

    body: int = 16_000_000  # bytes of a request
    concurrent: int = 512  # answers at the same time
    seconds: float = 1_800.0  # for one answer
    idle: float = 300.0  # for the next piece of it
    slow: float = 60.0  # for a client to take what it is sent
    grace: float = 10.0  # for answers to end when the process has to


class Waits:
    """The waits of one gateway, for an answer or its next piece. When the process has to end, all of them end at once.

    A limit on the silence of a connection counts the bytes of a comment as activity, so these are around the waits.
    """

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


class Prepared(NamedTuple):
    """The prompt and the grammar of a request."""

    prompt: Prompt
    grammar: Export | None


class _Lane:
    """A copy of the model, whose template renders one prompt at a time."""

    def __init__(self, model: Model) -> None:
        self.model, self.limiter = model, anyio.CapacityLimiter(1)


@dataclass
class Gateway:
    """A model, and the server that runs it. `record` keeps the raw text of every answer."""

    model: Model
    kind: str
    client: httpx.AsyncClient
    limits: Limits = field(default_factory=Limits)
    calls: Calls = "streamed"
    reasoning: str | None = "reasoning_content"
    constrain: Constrain = "asked"
    record: Recorder | None = None

    def __post_init__(self) -> None:
        self.waits, self.upstream = Waits(), UPSTREAMS[self.kind]
        self._prompts = _Lane(self.model)
        self._large_prompts = _Lane(replace(self.model))
        self._grammars = anyio.CapacityLimiter(1)
        self.recent: deque[Answered] = deque(maxlen=MOST_RECENT)

    async def prepare(self, ask: Ask) -> Prepared:
        """Return the prompt and the grammar of a request. Raises Refusal."""
        lane = self._large_prompts if ask.size > LARGE_REQUEST else self._prompts
        prompt = await anyio.to_thread.run_sync(lane.model.prompt, ask, limiter=lane.limiter)
        return Prepared(prompt, await anyio.to_thread.run_sync(self._grammar, ask, prompt, limiter=self._grammars))

    def _grammar(self, ask: Ask, prompt: Prompt) -> Export | None:
        wanted = ask.must_call or ask.json_schema is not None
        if self.constrain == "never" or not (wanted or (self.constrain == "always" and ask.tools)):
            return None
        if self.upstream.target is None:
            if not wanted:
                return None
            what = "response_format" if ask.json_schema is not None else "tool_choice"
            raise unsupported(what, f"the server ({self.kind}) takes no grammar that would hold it")
        if len(ask.tools) > MOST_GRAMMAR_TOOLS:
            raise Refusal(f"a grammar is written for at most {MOST_GRAMMAR_TOOLS} tools", param="tools")
        return self.model.grammar(ask, prompt, self.upstream.target)

    async def turn(self, ask: Ask, prepared: Prepared, number: int = 0) -> Turn:
        """Return one output, whose request the server has accepted. The caller closes it. Raises Refusal."""
        if number and "seed" in ask.sampling:
            ask = replace(ask, sampling={**ask.sampling, "seed": ask.sampling["seed"] + number})
        body = self.upstream.body(self.model, prepared.prompt, ask, prepared.grammar)
        deadline = time.monotonic() + self.limits.seconds
        async with self.waits.until(deadline, self.limits.idle):
            answer = await answer_of(self.client, self.upstream, body)
        return Turn(self, ask, prepared.prompt, answer, deadline)

    async def count(self, ask: Ask) -> int:
        """Return the number of tokens of a request's prompt. Raises Refusal."""
        prepared = await self.prepare(ask)
        return await count_tokens(self.client, self.upstream, prepared.prompt.text)


class Turn:
    """One output of the model. Its reason, stop string and usage are known when `events` is over."""

    def __init__(self, gateway: Gateway, ask: Ask, prompt: Prompt, answer: Answer, deadline: float) -> None:
        self._gateway, self._ask, self._prompt, self._answer = gateway, ask, prompt, answer
        self._deadline, self.model = deadline, gateway.model
        fmt = gateway.model.fmt
        if not ask.tools or ask.tool_choice == "none":
            fmt = fmt.text_only
        self._fmt, self._parser = fmt, fmt.parser(tools=ask.tools or None, prefix=prompt.prefix)
        self._raw: list[str] = []
        self._calls = HandedOut(ask.parallel)
        self._parser.fold_with(self._calls)
        self._stops = StopTexts(ask.stop)
        self.reason: str | None = None
        self.stopped_by: str | None = None
        self.usage = Usage()

    async def close(self) -> None:
        """Close the connection."""
        await self._answer.close()

    async def events(self) -> AsyncIterator[list[Event]]:
        """Yield the events of the output as it arrives. Raises Refusal, also if the time is over."""
        pieces, after = self._answer.pieces(), 0
        while (piece := await self._next(pieces)) is not None:
            over = self.reason is not None  # after the end, only the token counts belong to the answer
            self._note(piece)
            if self._stops.found is not None:
                after += 1
            elif not over and (events := self._read(self._stops.feed(piece.text))):
                yield events
            if self._calls.over or after > _AFTER_STOP:
                break
        if self._stops.found is not None:
            self.reason, self.stopped_by = "stop", self._stops.found
        if not self._calls.over and (events := self._read(self._stops.end())):
            yield events
        if not self._calls.over:
            yield self._calls.events(self._parser.close(self._evidence))
        self._keep()
        if self._calls.over:  # whatever ended that of the server
            self.reason, self.stopped_by = "stop", None

    @property
    def _evidence(self) -> str | None:
        """What says that the model ended its turn. A stop string of the request is not the model's end marker: what it
        cuts off is not complete."""
        cut = self.stopped_by is not None and self.stopped_by not in self._gateway.model.stop
        return None if cut else evidence_in(self.reason)

    async def _next(self, pieces: AsyncIterator[Piece]) -> Piece | None:
        """Return the next piece, or None after the last. Once the answer has ended, no failure changes it."""
        ended = self.reason is not None or self._stops.found is not None
        try:
            async with self._gateway.waits.until(self._deadline, _AFTER_END if ended else self._gateway.limits.idle):
                return await anext(pieces, None)
        except Refusal:
            if ended:
                return None
            raise

    def _note(self, piece: Piece) -> None:
        """Keep what the server reports about the output besides its text."""
        if piece.usage is not None:
            self.usage = piece.usage
        self.reason = self.reason or piece.reason
        if piece.stopped_by in self._ask.stop:
            self.stopped_by = piece.stopped_by

    def _read(self, text: str) -> list[Event]:
        """Return the events of some text of the output."""
        if not text:
            return []
        self._raw.append(text)
        return self._calls.events(self._parser.feed(text))

    def _keep(self) -> None:
        """Keep the raw text for the page, and for the record if there is one."""
        text, tools, prefix, name = "".join(self._raw), self._ask.tools, self._prompt.prefix, self.model.fmt.name
        begin, said = text[:LONGEST_RECENT], self.said
        self._gateway.recent.append(Answered(
            time.time(), self.model.name, self._fmt, begin, tools, prefix, self._evidence,
            cut=len(text) > len(begin), calls=len(said.tool_calls), anomalies=len(said.anomalies),
        ))  # fmt: skip
        if (record := self._gateway.record) is not None:
            record({"format": name, "output": text, "finish_reason": self.reason, "prefix": prefix, "tools": tools})

    async def message(self) -> Message:
        """Return the whole message, when it is complete. Raises Refusal."""
        async for _ in self.events():
            pass
        return self.said

    @property
    def said(self) -> Message:
        """The message read so far."""
        return self._parser.message

    @property
    def answer(self) -> Message:
        """The message as the client gets it."""
        return self._calls.answer(self._gateway.calls)
