"""The gateway before MLX-LM's own server on a CPU, through the real clients: `make test-mlx`.

The model's weights are a script, so what has to be heard is known, and MLX computes, samples, decodes and streams it.
The server takes no grammar. Its completions leave out what it knows as markers itself, and the tests hold what
`docs/serve.md` says of that: with a chat template that names none it knows of no calls; a thought that the model opens
with a token is left out in any case, and one that the prompt opens is not.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mlx_lm", reason="MLX-LM is not here: `make test-mlx` builds an environment with it")

import openai

from tests.gateway.hearing import heard_from, in_every_way
from tests.gateway.scripted_weights import (
    ARGUMENTS,
    CALL,
    END,
    MARKERS,
    OPENED,
    SCRIPTS,
    TEXT,
    THOUGHT,
    TOOLS,
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

# MLX-LM looks for the text in the comment, and then takes calls for its own.
KNOWN = "{# tool_call.name #}" + TEMPLATE
THINKING = KNOWN.replace(
    "{{- '<|im_start|>assistant\\n' }}\n    {%- if enable",
    "{{- '<|im_start|>assistant\\n<think>\\n' }}\n    {%- if enable",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mlx") / "model"
    made.mkdir()
    write_model(made, SCRIPTS, MARKERS, KNOWN)
    return made


def mlx_server(folder: Path, *flags: str) -> AbstractContextManager[str]:
    command = ["-m", "mlx_lm", "server", "--model", str(folder), "--port", "{port}", *flags]
    return started(command, folder.parent / "server.log", 120, HF_HUB_OFFLINE="1")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[str]:
    with mlx_server(folder, "--chat-template", "{{ messages }}") as address:
        yield address


@contextmanager
def gateway(server: str, folder: Path, template: str = KNOWN) -> Iterator[str]:
    files = files_of(pretrained_source(folder))._replace(template=template)
    app, (made,) = asyncio.run(application_for(Settings(server, files=files, name="tiny", reasoning="reasoning")))
    assert made.kind == "mlx"
    assert END in files.special
    with running(app) as address:
        yield address


@pytest.fixture(scope="module")
def served(server: str, folder: Path) -> Iterator[str]:
    with gateway(server, folder) as address:
        yield address


def test_text_and_its_end(served: str) -> None:
    with chat(served) as client:
        asked: Any = {"model": "tiny", "messages": asking(TEXT)}
        whole = client.chat.completions.create(**asked)
        assert whole.choices[0].message.content == "It is sunny in Zürich, and warm."
        assert (whole.choices[0].finish_reason, whole.usage.completion_tokens) == ("stop", 5)
        chunks = list(client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
        assert (
            "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
            == "It is sunny in Zürich, and warm."
        )
        assert chunks[-1].usage.completion_tokens == 5


def test_a_call_in_three_apis_whole_and_streamed(served: str) -> None:
    hears_the_call(served)


@pytest.mark.parametrize("limit", range(1, 13))
def test_a_call_cut_at_every_token(served: str, limit: int) -> None:
    with chat(served) as client:
        asked: Any = {"model": "tiny", "messages": asking(CALL), "tools": TOOLS, "max_tokens": limit}
        whole = client.chat.completions.create(**asked).choices[0]
        streamed = [each.choices[0] for each in client.chat.completions.create(**asked, stream=True)]
    assert whole.finish_reason == "length" == streamed[-1].finish_reason
    said = whole.message.content or ""
    raw = "I book it.\n<tool_call>\n{"  # a call without a name is text
    assert raw.startswith(said) or said.startswith(raw)
    calls = [call for each in streamed for call in each.delta.tool_calls or ()]
    written = "".join(call.function.arguments or "" for call in calls)
    assert json.dumps(ARGUMENTS, ensure_ascii=False).startswith(written)


def test_a_stop_string_and_a_client_that_leaves(served: str) -> None:
    ends_and_stops(served)
    with chat(served) as client:
        said = client.chat.completions.create(model="tiny", messages=asking(TEXT), stop=["Zürich"], n=2)
        assert [each.message.content for each in said.choices] == ["It is sunny in "] * 2


def test_a_call_that_must_be_made_is_refused_since_nothing_holds_the_model_to_it(served: str) -> None:
    with chat(served) as client, pytest.raises(openai.BadRequestError, match="takes no grammar"):
        client.chat.completions.create(model="tiny", messages=asking(CALL), tools=TOOLS, tool_choice="required")


def test_a_thought_that_the_prompt_opens_is_heard(server: str, folder: Path) -> None:
    with gateway(server, folder, THINKING) as address:
        for said in heard_from(address, *in_every_way(f"Book {OPENED}", tools=TOOLS)):
            assert (said.reasoning or "").strip() == "Tuesday is not."
            assert said.content == "Monday, then."
            assert json.loads(said.calls[0][1]) == ARGUMENTS


def test_mlx_leaves_a_thought_out_that_the_model_opens(served: str) -> None:
    with chat(served) as client:
        said = client.chat.completions.create(model="tiny", messages=asking(THOUGHT)).choices[0].message
    assert said.content.strip() == "Let me book."
    assert not getattr(said, "reasoning", None)


def test_mlx_leaves_calls_out_where_its_template_names_their_markers(folder: Path) -> None:
    with mlx_server(folder) as address, gateway(address, folder) as before, chat(before) as client:
        said = client.chat.completions.create(model="tiny", messages=asking(CALL), tools=TOOLS).choices[0].message
    assert (said.content.strip(), said.tool_calls) == ("I book it.", None)
