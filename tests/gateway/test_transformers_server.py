"""The gateway before `transformers serve` on a CPU, through the real clients: part of `make test-vllm-http`.

The model's weights are a script, so what has to be heard is known. The server's `/v1/completions` takes text, gives raw
text and takes no grammar. It leaves special tokens out of its text, which cannot be changed; these markers are none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

pytest.importorskip("accelerate", reason="`transformers serve` is part of the environment of `make test-vllm-http`")
pytest.importorskip("anthropic", reason="the clients are part of the environment of `make test-vllm-http`")


from tests.gateway.hearing import heard_from, in_every_way
from tests.gateway.scripted_weights import (
    ENDLESS,
    MARKERS,
    SCRIPTS,
    TEXT,
    THOUGHT,
    asking,
    chat,
    ends_and_stops,
    hears_the_call,
    write_model,
)
from tests.gateway.servers import TEMPLATE, application_for, running, started
from toolgram.derive.sources import pretrained_source
from toolgram.gateway.loading import files_of
from toolgram.gateway.serving import Settings

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("transformers") / "model"
    folder.mkdir()
    write_model(folder, SCRIPTS, MARKERS, TEMPLATE)
    main = "from transformers.cli.transformers import main; main()"
    command = ["-c", main, "serve", str(folder), "--device", "cpu", "--host", "127.0.0.1", "--port", "{port}"]
    with started(command, folder.parent / "server.log", 300, HF_HUB_OFFLINE="1") as address:
        files = files_of(pretrained_source(folder))
        app, (made,) = asyncio.run(
            application_for(Settings(address, files=files, name="tiny", served=str(folder), reasoning="reasoning"))
        )
        assert made.kind == "openai"
        with running(app) as gateway:
            yield gateway


@pytest.mark.parametrize(
    ("key", "content", "thought"),
    [(TEXT, "It is sunny in Zürich, and warm.", None), (THOUGHT, "Let me book.", "Monday is free.")],
)
def test_a_thought_and_text(served: str, key: str, content: str, thought: str | None) -> None:
    heard = heard_from(served, *in_every_way(f"Book {key}"))
    assert [(each.content, each.reasoning or None, each.finish_reason) for each in heard] == [
        (content, thought, "stop")
    ] * 6
    assert heard[0].usage["completion_tokens"] > 4


def test_a_call_in_three_apis(served: str) -> None:
    hears_the_call(served)


def test_a_limit_a_stop_string_and_a_client_that_leaves(served: str) -> None:
    ends_and_stops(served)
    with chat(served) as client:
        short = client.chat.completions.create(model="tiny", messages=asking(ENDLESS), max_tokens=7).choices[0]
        assert (short.finish_reason, short.message.content) == ("length", "Once upon a time, again again again again ")
