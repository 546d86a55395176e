"""The gateway before a real llama.cpp server, through the real clients: `make test-serve`.

The model has random weights. So a call that comes out valid was made valid by the exported grammar, on its whole way:
export, request, sampler, stream, parser, adapter, client. Text after a call is allowed, and such a model writes some.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import jsonschema
import pytest

import toolgram
from tests.export.engines import import_xgrammar
from tests.gateway.forced import END, FORMATS, FUNCTION, SCHEMA, TOOLS, USER, check, special_texts
from tests.gateway.servers import gateways_before, started
from tests.gateway.tiny_model import TEMPLATE, write_model
from tests.integrations.http_clients import CHAT, MESSAGES, RESPONSES, Ask, heard_from, in_every_way
from toolgram.derive.sources import gguf_source
from toolgram.gateway.loading import files_of
from toolgram.gateway.serving import Settings

for package in ("xllamacpp", "gguf", "mistral_common"):
    pytest.importorskip(package, reason="llama.cpp is not here: make test-serve installs it")


import_xgrammar()  # it prints the rules of a schema; without torch with a stub for it

# How each API is asked for no thought.
WITHOUT_THOUGHT: dict[str, dict[str, Any]] = {
    CHAT: {"reasoning_effort": "none"},
    RESPONSES: {"reasoning": {"effort": "none"}},
    MESSAGES: {"thinking": {"type": "disabled"}},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path, special_texts())
    return path


@pytest.fixture(scope="module")
def llama(model: Path) -> Iterator[str]:
    with started(["-m", "tests.gateway.tiny_model", str(model), "{port}"], model.with_suffix(".log")) as address:
        yield address


@pytest.fixture(scope="module", params=FORMATS)
def served(request: pytest.FixtureRequest, llama: str) -> Iterator[str]:
    settings = Settings(llama, fmt=toolgram.get_format(request.param), reasoning="reasoning")
    with gateways_before(settings) as (address, (gateway,)):
        assert (gateway.kind, gateway.model.template_text) == ("llama.cpp", TEMPLATE)
        yield address


def asked(**more: Any) -> Iterator[Ask]:
    """Requests whose answers have an end, without a thought."""
    for each in in_every_way("Book.", limit=400, **more):
        extra = {"logit_bias": END, "seed": 1, "temperature": 1.0, **WITHOUT_THOUGHT[each.api]}
        if each.tools and each.api == RESPONSES:
            extra["tools"] = [{"type": "function", **FUNCTION, "strict": True}]  # what is not strict is any object
        yield replace(each, extra=extra)


@pytest.mark.parametrize("choice", ["required", "book"])
def test_forced_calls_are_valid(served: str, choice: str) -> None:
    for heard in heard_from(served, *asked(tools=TOOLS, choice=choice, parallel=False)):
        assert (heard.error, heard.finish_reason) == ("", "tool_calls"), heard.detail
        (call,) = heard.calls
        check(*call)


def test_an_answer_in_a_schema(served: str) -> None:
    for heard in heard_from(served, *asked(form=SCHEMA)):
        assert heard.error == "", heard.detail
        jsonschema.validate(json.loads(heard.content or ""), SCHEMA)


def test_free_text_ends_at_its_limit_and_is_all_there(served: str) -> None:
    for limit in (1, 7):
        asked = Ask(0, limit=limit, extra={"seed": limit}, said="Book.")
        whole, streamed = heard_from(served, asked, replace(asked, pace=1))
        assert whole.finish_reason in ("length", "stop")
        assert (streamed.content or "") == (whole.content or "")
        assert whole.usage["completion_tokens"] <= limit


def test_a_call_cut_at_every_length(llama: str) -> None:
    forced = Ask(0, tools=TOOLS, choice="required", parallel=False, said="Book.")
    forced = replace(forced, extra={"reasoning_effort": "none", "logit_bias": END, "seed": 5})
    with gateways_before(Settings(llama, fmt=toolgram.get_format("hermes"))) as (address, _):
        for heard in heard_from(address, *(replace(forced, limit=limit) for limit in range(1, 40, 4))):
            assert heard.error == "", heard.detail
            if heard.finish_reason == "tool_calls":
                check("book", heard.calls[0][1])
            else:
                assert heard.finish_reason == "length"


def test_the_model_file_says_its_template_and_tokens(model: Path) -> None:
    files = files_of(gguf_source(model))
    assert (files.template, files.bos_token, files.eos_token) == (TEMPLATE, "<s>", "</s>")
    assert "[TOOL_CALLS]" in files.special
    assert "<0x00>" not in files.special


def test_tokens_are_counted(llama: str) -> None:
    with (
        gateways_before(Settings(llama)) as (address, _),
        anthropic.Anthropic(base_url=address, api_key="x", max_retries=0) as client,
    ):
        assert client.messages.count_tokens(model="m", messages=USER).input_tokens > 3
