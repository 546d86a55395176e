"""SGLang's own server on this machine's CPU, with the plug-in, and with the gateway before it: `make test-sglang`.

First, every kind of chat request to a model that says what a test wrote. Then a model of random weights, which writes
noise. So a call that comes out valid was made valid by the exported grammar on its whole way: SGLang's request, its
grammar backend, sampler, detokenizer, the plug-in, the client. What the plug-in reads is tried on texts that the test
sends to the server's own endpoints for it.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tests.integrations.sglang_server")  # first: declares what torchvision asks for when it is imported
pytest.importorskip("sglang", reason="SGLang is not here: `make test-sglang` builds an environment with it")

import httpx

from tests.gateway.forced import FUNCTION, TOOLS, check
from tests.gateway.servers import gateways_before, started
from tests.integrations.http_clients import CHAT, MESSAGES, Ask, heard_from
from tests.integrations.http_matrix import mistakes
from tests.integrations.sglang_fleet import OURS, make_model, serving, try_all, wrong_in_sglang
from tests.integrations.sglang_server import END, write_model
from toolgram.gateway.loading import TemplateFiles
from toolgram.gateway.serving import Settings

pytestmark = pytest.mark.filterwarnings("default")

TEMPLATE = (Path(__file__).parents[1] / "gateway" / "chatml.jinja").read_text()
# With reasoning, SGLang holds the output to a grammar behind the thought only, and noise never ends one.
PLAIN: Any = {"enable_thinking": False}
FORCED = Ask(0, CHAT, None, TOOLS, "required", False, limit=2000, extra={"temperature": 1.0}, said="Book.")
TEXT = '<think>\nHm.\n</think>\n\nI book. <tool_call>\n{"name": "book", "arguments": {"day": "monday"}}\n</tool_call>'


@pytest.mark.parametrize("name", ["Qwen3", "Qwen3-Coder"])  # JSON and tags; `make sglang-http-table` has more
def test_what_the_model_wrote_is_what_clients_hear(name: str, tmp_path: Path) -> None:
    model, trials = make_model(name, tmp_path)
    with serving(model, OURS, tmp_path) as port:
        heard = try_all(port, trials)
    found = mistakes(heard, partial(wrong_in_sglang, specials=model.specials))
    assert not found, "\n".join(found[:20])
    asked = {trial.kind for trial in trials}
    assert asked >= {"auto", "required", "named", "one at a time", "cut off", "an answer as JSON"}
    assert ("malformed" in asked) is (name == "Qwen3")  # between tags, nothing is JSON that could be broken


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("sglang")
    write_model(folder / "model", TEMPLATE, ["<|im_start|>"], ["<tool_call>", "</tool_call>", "<think>", "</think>"])
    command = ["-m", "tests.integrations.sglang_server", "--model-path", str(folder / "model"), "--port", "{port}"]
    command += ["--tool-call-parser", "toolgram", "--reasoning-parser", "toolgram"]
    with started(command, folder / "server.log", 400) as address:
        yield address


@pytest.mark.parametrize("choice", ["required", "book"])
def test_forced_calls_are_valid(server: str, choice: str) -> None:
    asked = replace(FORCED, choice=choice, template=PLAIN)
    whole, streamed = heard_from(server, asked, replace(asked, pace=1))
    assert whole.finish_reason == "tool_calls"
    for heard in (whole, streamed):
        assert (heard.error, len(heard.calls)) == ("", 1), heard.detail
        check(*heard.calls[0])


def test_what_the_server_reads_with_the_plug_in(server: str) -> None:
    asked: dict[str, Any] = {"text": TEXT, "reasoning_parser": "toolgram"}
    split = httpx.post(f"{server}/separate_reasoning", json=asked, timeout=60).json()
    assert split["reasoning_text"].strip() == "Hm."
    assert split["text"].startswith("I book.")
    tools = [{"type": "function", "function": FUNCTION}]
    asked = {"text": TEXT.partition("</think>\n\n")[2], "tools": tools, "tool_call_parser": "toolgram"}
    read = httpx.post(f"{server}/parse_function_call", json=asked, timeout=60).json()
    assert read["normal_text"] == "I book."
    assert [(call["name"], call["parameters"]) for call in read["calls"]] == [("book", '{"day": "monday"}')]


def test_an_answer_without_tools_is_text(server: str) -> None:
    """The prompt begins no thought, and noise begins none."""
    plain = Ask(0, limit=12, said="Book.")
    for heard in heard_from(server, plain, replace(plain, template=PLAIN)):
        assert (heard.error, heard.finish_reason, heard.calls) == ("", "length", []), heard.detail
        assert heard.content


def test_the_gateway_before_the_server(server: str) -> None:
    settings = Settings(server, files=TemplateFiles(TEMPLATE, eos_token=END))
    ways = [replace(FORCED, api=api, pace=pace) for api in (CHAT, MESSAGES) for pace in (None, 1)]
    with gateways_before(settings) as (address, (gateway,)):
        assert gateway.kind == "sglang"
        *forced, short = heard_from(address, *ways, Ask(0, limit=5, said="Book."))
    for heard in forced:
        assert (heard.error, heard.finish_reason) == ("", "tool_calls"), heard.detail
        check(*heard.calls[0])
    assert (short.finish_reason, short.usage["completion_tokens"]) == ("length", 5)
