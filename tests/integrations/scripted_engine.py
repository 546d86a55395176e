"""An engine core that says what a test tells it to: everything else of a vLLM server is vLLM's own.

A user message names a script and a pace, `Say script 17 by 3.`; the core finds these words in the prompt and gives
the tokens of that script, three in each step of the engine. As a real core it ends at the limit of the request,
gives logprobs where they are asked for, and holds the tokens to the request's grammar: vLLM's own
`StructuredOutputManager` decides when a grammar begins to hold, and xgrammar's matcher what it allows. A token that
is refused ends the answer with the text REFUSED, so that a client sees it.
"""

import asyncio
import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import numpy
from vllm.v1.engine import EngineCoreOutput, EngineCoreOutputs, EngineCoreRequest, FinishReason
from vllm.v1.engine.core_client import EngineCoreClient
from vllm.v1.outputs import LogprobsLists

REFUSED = "<<REFUSED>>"
ASKED = re.compile(r"Say script (\d+) by (\d+)\.")
SLOW = 1000  # a pace from which on the core waits between tokens, for clients that hang up
_YIELDS = 3  # turns of the event loop between two steps, so that a client's deltas are not merged into one


class ScriptedCore:
    """In the place of vLLM's client of an engine process. `folder/scripts.json` has the token ids of each script."""

    def __init__(self, config: Any, tokenizer: Any, folder: Path) -> None:
        self.tokenizer = tokenizer
        self.config = config
        self.folder = folder
        self.engine_ranks_managed = [0]
        self.resources = SimpleNamespace(engine_dead=False)
        self.outputs: asyncio.Queue[EngineCoreOutputs] = asyncio.Queue()
        self.playing: dict[str, asyncio.Task[None]] = {}
        self._scripts: list[list[int]] = []
        self._read = 0.0

    # --- what AsyncLLM asks of its core

    async def get_output_async(self) -> EngineCoreOutputs:
        """What the engine has said since."""
        return await self.outputs.get()

    async def get_supported_tasks_async(self) -> tuple[str, ...]:
        """A model that generates."""
        return ("generate",)

    async def add_request_async(self, request: EngineCoreRequest) -> None:
        """Begin to say a script."""
        self.playing[request.request_id] = asyncio.create_task(self._play(request))

    async def abort_requests_async(self, request_ids: Sequence[str]) -> None:
        """A client has gone, or a stop string has come."""
        for each in self.playing.keys() & set(request_ids):
            self.playing.pop(each).cancel()

    def shutdown(self, timeout: float | None = None) -> None:
        """Nothing to end but what is being said."""
        for task in self.playing.values():
            task.cancel()

    def dp_engines_running(self) -> bool:
        """One engine."""
        return False

    def get_kv_event_sources(self) -> dict[int, Any]:
        """No cache."""
        return {}

    def __getattr__(self, name: str) -> Any:
        if not name.endswith("_async"):
            raise AttributeError(name)

        async def nothing(*args: Any, **kwargs: Any) -> None:
            return None

        return nothing

    # --- saying

    async def _play(self, request: EngineCoreRequest) -> None:
        ids, pace = self._asked(request)
        if not request.sampling_params.detokenize:  # a step of beam search, whose prompt ends with those before
            ids = ids[said(request.prompt_token_ids or [], ids) :]
        limit = request.sampling_params.max_tokens or len(ids) + 1
        ids, finish = (ids[:limit], FinishReason.LENGTH) if len(ids) > limit else (ids, FinishReason.STOP)
        if finish is FinishReason.STOP and (not ids or ids[-1] != self.tokenizer.eos_token_id):
            finish = FinishReason.LENGTH  # a script without an end was cut off
        try:
            ids, finish = await self._allowed(request, ids, finish)
        except Exception as error:  # a client has to see it
            ids = self._text(f"<<ENGINE {error!r}>>")
        wait, step = (0.02, 1) if pace >= SLOW else (0.0, pace or len(ids))
        for begin in range(0, max(len(ids), 1), max(step, 1)):
            part, reason = ids[begin : begin + step], finish if begin + step >= len(ids) else None
            about: Any = {"new_logprobs": _logprobs(request, part), "finish_reason": reason}
            output = EngineCoreOutput(request.request_id, part, **about)
            self.outputs.put_nowait(EngineCoreOutputs(outputs=[output]))
            await asyncio.sleep(wait)
            for _ in range(_YIELDS):
                await asyncio.sleep(0)
        self.playing.pop(request.request_id, None)

    def _asked(self, request: EngineCoreRequest) -> tuple[list[int], int]:
        prompt = self.tokenizer.decode(request.prompt_token_ids or [], skip_special_tokens=False)
        found = ASKED.findall(prompt)
        if not found:
            raise ValueError(f"no script is asked for: {prompt!r}")
        number, pace = found[-1]
        path = self.folder / "scripts.json"
        if path.stat().st_mtime != self._read:
            self._scripts = json.loads(path.read_text(encoding="utf-8"))
            self._read = path.stat().st_mtime
        return self._scripts[int(number)], int(pace)

    # --- the grammar

    async def _allowed(self, request: EngineCoreRequest, ids: list[int], finish: FinishReason) -> tuple[list[int], Any]:
        """The tokens up to the first that the grammar of the request refuses, where it has one."""
        from vllm.v1.request import Request

        parameters = request.sampling_params
        if parameters is None or parameters.structured_outputs is None:
            return ids, finish
        gates, whole = self._gates, Request.from_engine_core_request(request, None)
        if whole.structured_output_request is None:
            return ids, finish
        gates.grammar_init(whole)
        grammar = whole.structured_output_request.grammar
        while grammar is None:
            await asyncio.sleep(0.002)
            grammar = whole.structured_output_request.grammar
        if isinstance(grammar, Exception):
            raise grammar
        for place, number in enumerate(ids):
            whole.append_output_token_ids([number])
            if not _accepts(gates, whole, grammar, number):
                return [*ids[:place], *self._text(REFUSED)], FinishReason.STOP
        return ids, finish

    def _text(self, text: str) -> list[int]:
        return [*self.tokenizer.encode(text, add_special_tokens=False), self.tokenizer.eos_token_id]

    @cached_property
    def _gates(self) -> Any:
        from vllm.v1.structured_output import StructuredOutputManager

        return StructuredOutputManager(self.config)


class OfflineCore(ScriptedCore):
    """The same for `vllm.LLM`, which asks without waiting: a script is said in full when its request comes."""

    @classmethod
    def make(cls, *, vllm_config: Any, renderer: Any, **kwargs: Any) -> Self:
        """Take the place of `EngineCoreClient.make_client`."""
        return cls(vllm_config, renderer.tokenizer, Path(vllm_config.model_config.model))

    def get_supported_tasks(self) -> tuple[str, ...]:
        """A model that generates."""
        return ("generate",)

    def add_request(self, request: EngineCoreRequest) -> None:
        """Say a script."""
        asyncio.run(self._play(request))

    def get_output(self) -> EngineCoreOutputs:
        """A step of what was said."""
        return self.outputs.get_nowait()

    def abort_requests(self, request_ids: Sequence[str]) -> None:
        """Do nothing: all is said."""

    def reset_mm_cache(self) -> None:
        """Do nothing: there is no cache."""


def _accepts(gates: Any, request: Any, grammar: Any, number: int) -> bool:
    """Whether the engine takes this token: as vLLM's scheduler asks, now and up to 0.24."""
    if hasattr(gates, "accept_tokens"):
        return bool(gates.accept_tokens(request, [number]))
    if request.structured_output_request.reasoning_ended is None:
        gates.should_fill_bitmask(request)
    return not gates.should_advance(request) or bool(grammar.accept_tokens(request.request_id, [number]))


def _logprobs(request: EngineCoreRequest, ids: list[int]) -> LogprobsLists | None:
    wanted = request.sampling_params.logprobs if request.sampling_params else None
    if wanted is None:
        return None
    rows = numpy.array([[number] * (wanted + 1) for number in ids], dtype=numpy.int32).reshape(len(ids), wanted + 1)
    values = numpy.full(rows.shape, -0.5, dtype=numpy.float32)
    return LogprobsLists(rows, values, numpy.ones(len(ids), dtype=numpy.int32), None)


def said(prompt: Sequence[int], ids: Sequence[int]) -> int:
    """How many of these ids a prompt ends with."""
    return next(size for size in range(len(ids), -1, -1) if list(prompt[len(prompt) - size :]) == list(ids[:size]))


def put_in_place() -> None:
    """Have every AsyncLLM of this process made with a scripted core."""

    def make(vllm_config: Any, *args: Any, renderer: Any = None, **kwargs: Any) -> ScriptedCore:
        return ScriptedCore(vllm_config, renderer.tokenizer, Path(vllm_config.model_config.model))

    EngineCoreClient.make_async_mp_client = staticmethod(make)
