"""The chat handler in llama-cpp-python itself, with a tiny model of random weights: `make test-llama-cpp`.

What such a model writes is noise, so a call that comes out valid was made valid by the grammar that the handler wrote.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.adapters.clients import chat_stream, chat_whole
from tests.export.engines import import_xgrammar
from tests.gateway.forced import END, FORMATS, TOOLS, USER, check, special_texts
from tests.gateway.tiny_model import write_model

for package in ("llama_cpp", "gguf", "mistral_common"):
    pytest.importorskip(package, reason="llama.cpp is not here: make test-llama-cpp builds it")

import_xgrammar()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(made, special_texts())
    return made


def llama(path: Path, **settings: Any) -> Any:
    from llama_cpp import Llama

    return Llama(str(path), n_ctx=1024, n_threads=1, n_threads_batch=1, verbose=False, **settings)


@pytest.fixture(scope="module", params=FORMATS)
def served(request: pytest.FixtureRequest, path: Path) -> Iterator[Any]:
    from toolgram.integrations.llama_cpp import ChatHandler

    made = llama(path, chat_handler=ChatHandler(toolgram.get_format(request.param), thinking=False))
    yield made
    made.close()


def test_forced_calls_are_valid(served: Any) -> None:
    for seed, choice in enumerate(("required", {"type": "function", "function": {"name": "book"}})):
        asked: Any = {
            "messages": USER, "tools": TOOLS, "tool_choice": choice, "temperature": 1.0, "seed": seed,
            "logit_bias": END, "max_tokens": 600,
        }  # fmt: skip
        for found in (
            chat_whole(served.create_chat_completion(**asked)),
            chat_stream(served.create_chat_completion(**asked, stream=True)),
        ):
            check(*found.calls[0][1:])


def test_the_end_of_an_answer(served: Any) -> None:
    asked: Any = {"messages": USER, "temperature": 1.0, "seed": 3}
    short = served.create_chat_completion(**asked, max_tokens=5)
    assert short["choices"][0]["finish_reason"] == "length"
    assert short["usage"]["completion_tokens"] == 5
    ended = served.create_chat_completion(**asked, logit_bias={"2": 10_000.0})
    assert ended["choices"][0]["finish_reason"] == "stop"
    assert ended["usage"]["completion_tokens"] == 1


def test_the_name_for_chat_format(path: Path) -> None:
    from toolgram.integrations import llama_cpp as plugin

    plugin.register()
    made = llama(path, chat_format="toolgram")
    said = made.create_chat_completion(USER, max_tokens=4)
    assert said["object"] == "chat.completion"
    made.close()
