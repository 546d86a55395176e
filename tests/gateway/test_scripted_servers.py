"""The gateway before servers on a CPU whose model has a script for weights, through the real clients.

MLX-LM's own server (`make test-mlx`) and `transformers serve` (part of `make test-vllm-http`): what has to be heard is
known, and the server computes, samples, decodes and streams it. Neither takes a grammar. MLX-LM's completions leave out
what it knows as markers itself, and the tests hold what `docs/serve.md` says of that: with a chat template that names
none it knows of no calls; a thought that the model opens with a token is left out in any case, and one that the prompt
opens is not. `transformers serve` leaves special tokens out of its text, which cannot be changed; these markers are
none.
"""

import json
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anthropic", reason="`make test-mlx` and `make test-vllm-http` build environments with it")

import openai

from tests.gateway.scripted_weights import (
    ARGUMENTS,
    CALL,
    END,
    ENDLESS,
    MARKERS,
    OPENED,
    SCRIPTS,
    TEXT,
    THOUGHT,
    TOOLS,
    write_model,
)
from tests.gateway.servers import TEMPLATE, gateways_before, started
from tests.integrations.http_clients import heard_from, in_every_way
from toolgram.derive.sources import pretrained_source
from toolgram.gateway.loading import files_of
from toolgram.gateway.serving import Settings

PACKAGES = {"mlx": "mlx_lm", "openai": "accelerate"}  # of each kind of server, what shows that it is here
KINDS = [kind for kind, package in PACKAGES.items() if find_spec(package)]
if not KINDS:
    pytest.skip("`make test-mlx` and `make test-vllm-http` build environments with a server", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("default")

# MLX-LM looks for the text in the comment, and then takes calls for its own.
KNOWN = "{# tool_call.name #}" + TEMPLATE
THINKING = KNOWN.replace(
    "{{- '<|im_start|>assistant\\n' }}\n    {%- if enable",
    "{{- '<|im_start|>assistant\\n<think>\\n' }}\n    {%- if enable",
)
PLAIN = ("--chat-template", "{{ messages }}")  # one in which MLX-LM finds no markers
SUNNY = "It is sunny in Zürich, and warm."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("scripted") / "model"
    made.mkdir()
    write_model(made, SCRIPTS, MARKERS, KNOWN)
    return made


def started_server(kind: str, folder: Path, *flags: str) -> AbstractContextManager[str]:
    command = ["-m", "mlx_lm", "server", "--model", str(folder), "--port", "{port}"]
    if kind == "openai":
        main = "from transformers.cli.transformers import main; main()"
        command = ["-c", main, "serve", str(folder), "--device", "cpu", "--host", "127.0.0.1", "--port", "{port}"]
    return started([*command, *flags], folder.parent / f"{kind}.log", 300, HF_HUB_OFFLINE="1")


@contextmanager
def gateway(kind: str, server: str, folder: Path, template: str = KNOWN) -> Iterator[str]:
    files = files_of(pretrained_source(folder))._replace(template=template)
    named: Any = {"served": str(folder)} if kind == "openai" else {}
    settings = Settings(server, files=files, name="tiny", reasoning="reasoning", **named)
    assert END in files.special
    with gateways_before(settings) as (address, (made,)):
        assert made.kind == kind
        yield address


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, str]]:
    """The kind of a server, and its address."""
    with started_server(request.param, folder, *(PLAIN if request.param == "mlx" else ())) as address:
        yield request.param, address


@pytest.fixture(scope="module")
def served(server: tuple[str, str], folder: Path) -> Iterator[str]:
    with gateway(*server, folder) as address:
        yield address


@contextmanager
def client_of(address: str) -> Iterator[Any]:
    """What asks for a script by the client of OpenAI."""
    with openai.OpenAI(base_url=f"{address}/v1", api_key="x", max_retries=0, timeout=120) as client:
        create: Any = partial(client.chat.completions.create, model="tiny")
        yield lambda key, **options: create(messages=[{"role": "user", "content": f"Book {key}"}], **options)


def test_text_and_its_end(served: str) -> None:
    for heard in heard_from(served, *in_every_way(f"Book {TEXT}", usage=True)):
        assert (heard.content, heard.reasoning or None, heard.finish_reason) == (SUNNY, None, "stop")
        assert heard.usage.get("completion_tokens", heard.usage.get("output_tokens", 5)) == 5


def test_a_call_in_three_apis_whole_and_streamed(served: str) -> None:
    for heard in heard_from(served, *in_every_way(f"Book {CALL}", tools=TOOLS)):
        assert heard.error == "", heard.detail
        assert (heard.content, heard.finish_reason) == ("I book it.", "tool_calls")
        assert heard.made() == [("book", ARGUMENTS)]


def test_a_limit_a_stop_string_and_a_client_that_leaves(served: str) -> None:
    """The model spells the stop string by other tokens. After a client that left, the next one is answered."""
    with client_of(served) as create:
        short = create(ENDLESS, max_tokens=7).choices[0]
        assert (short.finish_reason, short.message.content) == ("length", "Once upon a time, again again again again ")
        for answers in (1, 2):
            said = create(TEXT, stop=["Zürich"], n=answers).choices
            ended = [(each.message.content, each.finish_reason) for each in said]
            assert ended == [("It is sunny in ", "stop")] * answers
        stream = create(ENDLESS, max_tokens=4_000, stream=True)
        for _ in zip(range(5), stream, strict=False):
            pass
        stream.close()
        began = time.monotonic()
        assert create(TEXT).choices[0].finish_reason == "stop"
        assert time.monotonic() - began < 20


@pytest.mark.parametrize("limit", range(1, 13))
def test_a_call_cut_at_every_token(served: str, limit: int) -> None:
    with client_of(served) as create:
        whole = create(CALL, tools=TOOLS, max_tokens=limit).choices[0]
        streamed = [each.choices[0] for each in create(CALL, tools=TOOLS, max_tokens=limit, stream=True)]
    assert whole.finish_reason == "length" == streamed[-1].finish_reason
    said = whole.message.content or ""
    raw = "I book it.\n<tool_call>\n{"  # a call without a name is text
    assert raw.startswith(said) or said.startswith(raw)
    calls = [call for each in streamed for call in each.delta.tool_calls or ()]
    written = "".join(call.function.arguments or "" for call in calls)
    assert json.dumps(ARGUMENTS, ensure_ascii=False).startswith(written)


def test_a_call_that_must_be_made_is_refused_since_nothing_holds_the_model_to_it(served: str) -> None:
    with client_of(served) as create, pytest.raises(openai.BadRequestError, match="takes no grammar"):
        create(CALL, tools=TOOLS, tool_choice="required")


def test_a_thought_that_the_model_opens(served: str, server: tuple[str, str]) -> None:
    """MLX-LM leaves it out."""
    thought = None if server[0] == "mlx" else "Monday is free."
    for heard in heard_from(served, *in_every_way(f"Book {THOUGHT}")):
        assert ((heard.content or "").strip(), heard.reasoning or None) == ("Let me book.", thought)


def test_a_thought_that_the_prompt_opens_is_heard(server: tuple[str, str], folder: Path) -> None:
    with gateway(*server, folder, THINKING) as address:
        for said in heard_from(address, *in_every_way(f"Book {OPENED}", tools=TOOLS)):
            assert ((said.reasoning or "").strip(), said.content) == ("Tuesday is not.", "Monday, then.")
            assert said.made() == [("book", ARGUMENTS)]


@pytest.mark.skipif("mlx" not in KINDS, reason="MLX-LM is not here: `make test-mlx` has it")
def test_mlx_leaves_calls_out_where_its_template_names_their_markers(folder: Path) -> None:
    with started_server("mlx", folder) as address, gateway("mlx", address, folder) as before, client_of(before) as ask:
        said = ask(CALL, tools=TOOLS).choices[0].message
    assert (said.content.strip(), said.tool_calls) == ("I book it.", None)
