"""The gateway in front of `transformers serve` on a CPU, through the real clients: part of `make test-vllm-http`.

The model's weights are a script, so what has to be heard is known. The server's `/v1/completions` takes text, gives raw
text and takes no grammar. It leaves special tokens out of its text, which cannot be changed; these markers are none.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("accelerate", reason="`transformers serve` is part of the environment of `make test-vllm-http`")
pytest.importorskip("anthropic", reason="the clients are part of the environment of `make test-vllm-http`")

import anthropic
import httpx
import openai

from tests.gateway.scripted_weights import ARGUMENTS, CALL, ENDLESS, MARKERS, SCRIPTS, TEXT, THOUGHT, write_model
from tests.gateway.servers import TEMPLATE, application_for, running
from toolgram.derive.sources import pretrained_source
from toolgram.gateway.loading import files_of
from toolgram.gateway.serving import Settings

pytestmark = pytest.mark.filterwarnings("default")

FUNCTION: dict[str, Any] = {"name": "book", "description": "d", "parameters": {"type": "object", "properties": {}}}
TOOLS: Any = [{"type": "function", "function": FUNCTION}]


def asking(key: str) -> Any:
    return [{"role": "user", "content": f"Book {key}"}]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("transformers") / "model"
    folder.mkdir()
    write_model(folder, SCRIPTS, MARKERS, TEMPLATE)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    main = "from transformers.cli.transformers import main; main()"
    command = [sys.executable, "-c", main, "serve", str(folder), "--device", "cpu", "--host", "127.0.0.1"]
    log, address = folder.parent / "server.log", f"http://127.0.0.1:{port}"
    with log.open("w") as file:
        environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
        process = subprocess.Popen([*command, "--port", str(port)], stdout=file, stderr=file, env=environment)
    try:
        until = time.monotonic() + 300
        while not _answers(address):
            assert process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < until, log.read_text()[-3000:]
            time.sleep(0.5)
        files = files_of(pretrained_source(folder))
        app, made = asyncio.run(application_for(Settings(address, files=files, name="tiny", served=str(folder))))
        assert made.kind == "openai"
        with running(app) as gateway:
            yield gateway
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()


def _answers(address: str) -> bool:
    try:
        return httpx.get(f"{address}/health", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def chat(address: str) -> Any:
    return openai.OpenAI(base_url=f"{address}/v1", api_key="x", max_retries=0, timeout=120)


def test_a_thought_and_text(served: str) -> None:
    with chat(served) as client:
        for key, content, thought in (
            (TEXT, "It is sunny in Zürich, and warm.", None),
            (THOUGHT, "Let me book.", "Monday is free."),
        ):
            whole = client.chat.completions.create(model="tiny", messages=asking(key), temperature=0.0, seed=3)
            with client.chat.completions.stream(model="tiny", messages=asking(key)) as stream:
                streamed = stream.get_final_completion()
            for said in (whole, streamed):
                message = said.choices[0].message
                assert (message.content, said.choices[0].finish_reason) == (content, "stop")
                assert (getattr(message, "reasoning_content", None) or None) == thought
            assert whole.usage.completion_tokens > 4


def test_a_call_in_three_apis(served: str) -> None:
    with chat(served) as client:
        asked: Any = {"model": "tiny", "messages": asking(CALL), "tools": TOOLS}
        whole = client.chat.completions.create(**asked).choices[0]
        with client.chat.completions.stream(**asked) as stream:
            streamed = stream.get_final_completion().choices[0]
        for choice in (whole, streamed):
            assert (choice.finish_reason, choice.message.content) == ("tool_calls", "I book it.")
            (call,) = choice.message.tool_calls
            assert (call.function.name, json.loads(call.function.arguments)) == ("book", ARGUMENTS)
        flat: Any = [{"type": "function", **FUNCTION, "strict": False}]
        response = client.responses.create(model="tiny", input=f"Book {CALL}", tools=flat)
        (item,) = [item for item in response.output if item.type == "function_call"]
        assert json.loads(item.arguments) == ARGUMENTS
    with anthropic.Anthropic(base_url=served, api_key="x", max_retries=0, timeout=120) as client:
        tool: Any = {"name": "book", "input_schema": FUNCTION["parameters"]}
        asked = {"model": "tiny", "max_tokens": 100, "messages": asking(CALL), "tools": [tool]}
        said = client.messages.create(**asked)
        with client.messages.stream(**asked) as stream:
            final = stream.get_final_message()
    for each in (said, final):
        assert [block.type for block in each.content] == ["text", "tool_use"]
        assert (each.stop_reason, each.content[1].input) == ("tool_use", ARGUMENTS)


def test_a_limit_a_stop_string_and_a_client_that_leaves(served: str) -> None:
    with chat(served) as client:
        short = client.chat.completions.create(model="tiny", messages=asking(ENDLESS), max_tokens=7).choices[0]
        assert (short.finish_reason, short.message.content) == ("length", "Once upon a time, again again again again ")
        stopped = client.chat.completions.create(model="tiny", messages=asking(TEXT), stop=["Zürich"]).choices[0]
        assert stopped.message.content == "It is sunny in "
        stream = client.chat.completions.create(model="tiny", messages=asking(ENDLESS), max_tokens=4_000, stream=True)
        for _ in zip(range(5), stream, strict=False):
            pass
        stream.close()
        after = client.chat.completions.create(model="tiny", messages=asking(TEXT)).choices[0]
        assert after.finish_reason == "stop"
