"""vLLM's servers for the requests of `http_matrix.py`: model folders, a process that serves them, its answers."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Self

from tests.integrations.http_clients import SERVERS_OWN, Clients
from tests.integrations.http_matrix import Model, Trial
from tests.integrations.http_shapes import Shape, shapes
from tests.integrations.vllm_heard import Heard

ROOT = Path(__file__).parents[2]
AT_ONCE = 32  # requests that are under way
START = 300  # seconds that each server may take to start, on a machine that others use too


def make_model(shape: Shape, folder: Path) -> Model:
    """A model folder: configuration, tokenizer, template."""
    from tests.integrations.tokenizers_for_tests import real_tokenizer

    folder.mkdir(parents=True)
    tokenizer = real_tokenizer(
        shape.tokenizer, shape.added, shape.special, shape.eos, shape.template_text(), shape.merges
    )
    if shape.response_template:  # that of transformers for this type of model, as the tokenizer's files have none
        from transformers.cli.serving.utils import get_response_template

        kind = SimpleNamespace(config=SimpleNamespace(model_type=shape.response_template))
        tokenizer.response_template = get_response_template(None, kind)
    tokenizer.init_kwargs.update(shape.files)
    tokenizer.save_pretrained(folder)
    sizes = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": len(tokenizer)}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 131072}
    named = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "dtype": "float32"}
    config = {**named, **sizes, **heads, "eos_token_id": tokenizer.eos_token_id, **shape.model}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    limit = {"max_new_tokens": SERVERS_OWN, "eos_token_id": tokenizer.eos_token_id}
    (folder / "generation_config.json").write_text(json.dumps(limit), encoding="utf-8")
    (folder / "scripts.json").write_text("[]", encoding="utf-8")
    return Model(shape, tokenizer, folder)


OURS, THEIRS, PLAIN = "toolgram", "vLLM", "plain"  # whose parsers a server has


def servers(shape: Shape, way: str) -> dict[str, list[str]]:
    """The flags of each server of a model, by the server's name; with vLLM's own parsers, of one for each pair."""
    if way == PLAIN:
        return {f"{way} {shape.name}": []}
    if way == OURS:
        return {f"{way} {shape.name}": flags_of(shape.parser, shape.parser)}
    return {f"{way} {shape.name} {called(pair)}": flags_of(*pair) for pair in (shape.theirs, *shape.others) if pair[0]}


def called(pair: tuple[str, str | None]) -> str:
    """A pair of parsers, as the page has it."""
    return " + ".join(f"`{each}`" for each in pair if each)


def flags_of(tools: str, reasoning: str | None) -> list[str]:
    """The flags that name these parsers."""
    given = ["--enable-auto-tool-choice", "--tool-call-parser", tools]
    return given + (["--reasoning-parser", reasoning] if reasoning else [])


class Fleet:
    """A process with servers for each model: one with the parsers of each of `ways`, and one with each of `flags`."""

    def __init__(
        self, models: Sequence[Model], scratch: Path, ways: Sequence[str] = (OURS,), flags: Mapping[str, list[str]] = {}
    ) -> None:
        self.models = {model.shape.name: model for model in models}
        self.ports: dict[str, int] = {}
        configurations = [
            {"name": name, "folder": str(model.folder), "arguments": given, "may_fail": way == THEIRS}
            for model in models
            for way in (*ways, None)
            for name, given in (servers(model.shape, way) if way else flags).items()
        ]
        self.servers = len(configurations)
        self.plan = scratch / "servers.json"
        self.plan.write_text(json.dumps(configurations), encoding="utf-8")
        self.log = scratch / "servers.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.failed: dict[str, str] = {}  # the servers of vLLM's parsers that did not start, and why

    def __enter__(self) -> Self:
        environment = {**os.environ, "VLLM_LOGGING_LEVEL": os.environ.get("VLLM_LOGGING_LEVEL", "WARNING")}
        command = [sys.executable, "-m", "tests.integrations.http_server", str(self.plan)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=environment)
        ready, until = self.plan.with_suffix(".ready"), time.monotonic() + START * self.servers
        while not ready.exists():
            if self.process.poll() is not None or time.monotonic() > until:
                self.__exit__()
                raise RuntimeError(f"the servers did not start:\n{self.said()[-3000:]}")
            time.sleep(0.1)
        said = json.loads(ready.read_text(encoding="utf-8"))
        self.ports, self.failed = said["ports"], said["failed"]
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)  # this process and no other
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def said(self) -> str:
        """The log of the servers."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    async def try_all(self, name: str, trials: Sequence[Trial], patience: float = 60) -> list[tuple[Trial, Heard]]:
        """The answers of one server to these; `patience` is the seconds that a client waits for each."""
        return await hear_all(self.ports[name], trials, patience)


async def hear_all(port: int, trials: Sequence[Trial], patience: float) -> list[tuple[Trial, Heard]]:
    """The answers of the server at a port."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(trial: Trial) -> tuple[Trial, Heard]:
        async with gate:
            return trial, (await clients.hear(trial.ask))[0]

    async with Clients(port, patience) as clients:
        return list(await asyncio.gather(*(one(trial) for trial in trials)))


def make_models(names: Sequence[str], scratch: Path) -> list[Model]:
    """The models of these shapes, or of all."""
    return [make_model(shape, scratch / shape.name) for shape in shapes(names)]
