"""The name that clients know a model by, and the one that the server behind knows it by."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.servers import TEMPLATE, Script, gateway_to, post
from toolgram.gateway.loading import TemplateFiles

FILES = TemplateFiles(TEMPLATE, eos_token="<|im_end|>")
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize(
    ("kind", "listed", "given", "asked", "heard"),
    [
        ("openai", ["served"], {}, "served", "served"),
        ("vllm", ["served"], {"name": "mine"}, "served", "mine"),
        ("ollama", ["first", "second"], {"name": "second"}, "second", "second"),
        ("openai", ["first", "second"], {"name": "mine", "served": "second"}, "second", "mine"),
        ("vllm", ["first"], {"served": "not-listed"}, "not-listed", "not-listed"),
    ],
)
def test_clients_and_the_server_have_their_own_name(
    kind: str, listed: list[str], given: dict[str, str], asked: str, heard: str
) -> None:
    script = Script(kind=kind, listed=listed)
    with gateway_to(script, files=FILES, **given) as (address, _):
        said = post(f"{address}/v1/chat/completions", json=ASK).json()
    assert script.bodies[0]["model"] == asked
    assert said["model"] == heard


def test_a_server_that_lists_no_model_is_asked_for_none() -> None:
    script = Script(kind="openai", listed=[])
    with gateway_to(script, files=FILES) as (address, _):
        said = post(f"{address}/v1/chat/completions", json=ASK).json()
    assert "model" not in script.bodies[0]
    assert said["model"] == "model"


@pytest.mark.parametrize(
    ("listed", "heard"),
    [
        ("/home/me/models/Qwen3-8B/", "Qwen3-8B"),
        ("C:\\models\\tiny.gguf", "tiny.gguf"),
        ("./out/tiny", "tiny"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("llama3.1:8b", "llama3.1:8b"),
    ],
)
def test_a_name_for_clients_is_no_path(listed: str, heard: str) -> None:
    script = Script(kind="openai", listed=[listed])
    with gateway_to(script, files=FILES) as (address, _):
        said = post(f"{address}/v1/chat/completions", json=ASK).json()
    assert script.bodies[0]["model"] == listed, "the server is asked for the name that it knows"
    assert said["model"] == heard
