"""The gateway in front of vLLM's own server, through the official clients: part of `make test-vllm-http`.

The server is that of `tests/integrations/http_server.py`: vLLM's routes, AsyncLLM and grammar backend, and an engine
core that says what a test tells it to. The gateway asks it for raw text, so no parser of the server has a part in it.
The requests are those that the plug-in is tried with, and so is what has to be heard.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm-http` builds an environment")

from tests.gateway.servers import gateways_before
from tests.integrations.http_fleet import PLAIN, Fleet, make_models
from tests.integrations.http_matrix import Model, Trial, mistakes, wrong
from tests.integrations.vllm_heard import Heard
from toolgram.gateway.loading import TemplateFiles
from toolgram.gateway.serving import Settings

pytestmark = pytest.mark.filterwarnings("default")

NAMES = ("Qwen3", "Qwen3-Coder", "GLM-4.6", "Kimi-K2-Thinking", "MiniMax-M2", "Llama-3.1", "Mistral-Nemo")
MATRIX: dict[str, list[Trial]] = {}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    scratch = tmp_path_factory.mktemp("servers")
    models = make_models(NAMES, scratch)
    for model in models:
        MATRIX[model.shape.name] = model.trials()
        model.write()
    with Fleet(models, scratch, (PLAIN,)) as started:
        yield started


def settings_for(model: Model, port: int) -> Settings:
    told = model.tokenizer
    special = tuple(told.all_special_tokens)
    files = TemplateFiles(model.shape.template_text(), told.bos_token or "", told.eos_token, special)
    return Settings(f"http://127.0.0.1:{port}", files=files, reasoning="reasoning")


def as_answered(trial: Trial) -> Trial:
    """The gateway's finish reason for calls is `tool_calls`; vLLM's is `stop` where a function is named."""
    named = trial.kind == "named" and bool(trial.calls) and trial.finish == "stop"
    return replace(trial, finish="tool_calls") if named else trial


@pytest.mark.parametrize("name", NAMES)
def test_the_matrix(name: str, fleet: Fleet) -> None:
    model = fleet.models[name]
    # The gateway gives the server a limit with every request, so the server's own limit never ends an answer.
    trials = [as_answered(trial) for trial in MATRIX[name] if trial.label != "the limit of the server"]
    with gateways_before(settings_for(model, fleet.ports[f"{PLAIN} {name}"])) as (address, (gateway,)):
        assert (gateway.kind, gateway.model.name) == ("vllm", "model")
        fleet.ports["gateway"] = int(address.rpartition(":")[2])
        heard: list[tuple[Trial, Heard]] = asyncio.run(fleet.try_all("gateway", trials))
    found = mistakes(heard, partial(wrong, specials=model.specials))
    assert len(heard) > 300
    assert not found, f"{len(found)} of {len(heard)} answers are wrong, first {found[:3]}"
