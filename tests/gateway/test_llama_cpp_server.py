"""The gateway in front of a real llama.cpp server, through the real clients: `make test-serve`.

The model has random weights. So a call that comes out valid was made valid by the exported grammar, on its whole way:
export, request, sampler, stream, parser, adapter, client. Text behind a call is allowed, and such a model writes some.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import jsonschema
import openai
import pytest

import toolgram
from tests.export.engines import import_xgrammar
from tests.gateway.servers import application_for, running
from tests.gateway.tiny_model import TEMPLATE, serving, write_model
from toolgram.derive.sources import gguf_source
from toolgram.gateway.loading import files_of
from toolgram.gateway.serving import Settings

for package in ("xllamacpp", "gguf", "mistral_common"):
    pytest.importorskip(package, reason="llama.cpp is not here: make test-serve installs it")


import_xgrammar()  # it prints the rules of a schema; without torch with a stub for it

FORMATS = ("hermes", "mistral_v3", "mistral_v11", "qwen3_coder", "granite_3", "llama4_pythonic", "lfm2")
# Finite: there is an end to whatever the grammar allows.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "day": {"enum": ["monday", "tuesday"]},
        "urgent": {"type": "boolean"},
        "size": {"enum": [1, 2, 30]},
    },
    "required": ["day", "urgent", "size"],
    "additionalProperties": False,
}
FUNCTION = {"name": "book", "description": "d", "parameters": SCHEMA}
END = {"2": 100}  # the end of the output, wherever the grammar allows it: this model would never stop
USER: Any = [{"role": "user", "content": "Book."}]


def special_texts() -> list[str]:
    """The special tokens of the tested formats."""
    texts = []
    for name in FORMATS:
        spec = toolgram.get_format(name).spec
        texts += [text for token in spec.special_tokens if (text := getattr(spec.terminals[token], "text", "").strip())]
    return sorted(set(texts))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    write_model(path, special_texts())
    return path


@pytest.fixture(scope="module")
def llama(model: Path) -> Iterator[str]:
    with serving(model) as address:
        yield address


@pytest.fixture(scope="module", params=FORMATS)
def served(request: pytest.FixtureRequest, llama: str) -> Iterator[str]:
    settings = Settings(llama, fmt=toolgram.get_format(request.param))
    app, gateway = asyncio.run(application_for(settings))
    assert (gateway.kind, gateway.model.template_text) == ("llama.cpp", TEMPLATE)
    with running(app) as address:
        yield address


def check(name: str, arguments: Any) -> None:
    assert name == "book"
    jsonschema.validate(json.loads(arguments) if isinstance(arguments, str) else arguments, SCHEMA)


def test_forced_calls_are_valid_through_chat(served: str) -> None:
    with openai.OpenAI(base_url=f"{served}/v1", api_key="x", max_retries=0, timeout=60) as client:
        named: Any = {"type": "function", "function": {"name": "book"}}
        for seed, choice in ((1, "required"), (2, named)):
            asked: Any = {
                "model": "m",
                "messages": USER,
                "tools": [{"type": "function", "function": FUNCTION}],
                "tool_choice": choice,
                "parallel_tool_calls": False,
                "temperature": 1.0,
                "seed": seed,
                "max_tokens": 400,
                "reasoning_effort": "none",
                "logit_bias": END,
            }
            whole: Any = client.chat.completions.create(**asked)
            with client.chat.completions.stream(**asked) as stream:
                streamed: Any = stream.get_final_completion()
            for completion in (whole, streamed):
                assert completion.choices[0].finish_reason == "tool_calls"
                (call,) = completion.choices[0].message.tool_calls
                check(call.function.name, call.function.arguments)


def test_forced_calls_are_valid_through_responses_and_messages(served: str) -> None:
    with (
        openai.OpenAI(base_url=f"{served}/v1", api_key="x", max_retries=0, timeout=60) as client,
        anthropic.Anthropic(base_url=served, api_key="x", max_retries=0, timeout=60) as other,
    ):
        asked: Any = {
            "model": "m",
            "input": "Book.",
            "tools": [{"type": "function", **FUNCTION, "strict": True}],
            "tool_choice": "required",
            "parallel_tool_calls": False,
            "reasoning": {"effort": "none"},
            "max_output_tokens": 400,
            "extra_body": {"logit_bias": END, "seed": 1, "temperature": 1.0},
        }
        whole = client.responses.create(**asked)
        with client.responses.stream(**asked) as stream:
            streamed: Any = stream.get_final_response()
        for response in (whole, streamed):
            assert response.status == "completed"
            (item,) = [each for each in response.output if each.type == "function_call"]
            check(item.name, item.arguments)
        tool: Any = {"name": "book", "description": "d", "input_schema": SCHEMA}
        again: Any = {
            "model": "m",
            "max_tokens": 400,
            "messages": USER,
            "tools": [tool],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
            "thinking": {"type": "disabled"},
            "extra_body": {"logit_bias": END, "seed": 1, "temperature": 1.0},
        }
        said = other.messages.create(**again)
        with other.messages.stream(**again) as events:
            live: Any = events.get_final_message()
        for message in (said, live):
            assert message.stop_reason == "tool_use"
            (block,) = [each for each in message.content if each.type == "tool_use"]
            check(block.name, block.input)


def test_an_answer_in_a_schema(served: str) -> None:
    with openai.OpenAI(base_url=f"{served}/v1", api_key="x", max_retries=0, timeout=60) as client:
        completion = client.chat.completions.create(
            model="m",
            messages=USER,
            max_tokens=400,
            reasoning_effort="none",
            logit_bias=END,
            response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
        )
        jsonschema.validate(json.loads(completion.choices[0].message.content or ""), SCHEMA)


def test_free_text_ends_at_its_limit_and_is_all_there(served: str) -> None:
    with openai.OpenAI(base_url=f"{served}/v1", api_key="x", max_retries=0, timeout=60) as client:
        for limit in (1, 7):
            asked: Any = {"model": "m", "messages": USER, "max_tokens": limit, "seed": limit}
            whole = client.chat.completions.create(**asked)
            chunks = list(client.chat.completions.create(**asked, stream=True))
            text = "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)
            assert whole.choices[0].finish_reason in ("length", "stop")
            assert text == (whole.choices[0].message.content or "")
            assert whole.usage is not None
            assert whole.usage.completion_tokens <= limit


def test_a_call_cut_at_every_length(llama: str) -> None:
    app, _ = asyncio.run(application_for(Settings(llama, fmt=toolgram.get_format("hermes"))))
    with running(app) as address, openai.OpenAI(base_url=f"{address}/v1", api_key="x", max_retries=0) as client:
        for limit in range(1, 40, 4):
            completion: Any = client.chat.completions.create(
                model="m",
                messages=USER,
                tools=[{"type": "function", "function": FUNCTION}],
                tool_choice="required",
                parallel_tool_calls=False,
                reasoning_effort="none",
                logit_bias=END,
                seed=5,
                max_tokens=limit,
            )
            choice = completion.choices[0]
            if choice.finish_reason == "tool_calls":
                check("book", choice.message.tool_calls[0].function.arguments)
            else:
                assert choice.finish_reason == "length"


def test_the_model_file_says_its_template_and_tokens(model: Path) -> None:
    files = files_of(gguf_source(model))
    assert (files.template, files.bos_token, files.eos_token) == (TEMPLATE, "<s>", "</s>")
    assert "[TOOL_CALLS]" in files.special
    assert "<0x00>" not in files.special


def test_tokens_are_counted(llama: str) -> None:
    app, _ = asyncio.run(application_for(Settings(llama)))
    with running(app) as address, anthropic.Anthropic(base_url=address, api_key="x", max_retries=0) as client:
        assert client.messages.count_tokens(model="m", messages=USER).input_tokens > 3
