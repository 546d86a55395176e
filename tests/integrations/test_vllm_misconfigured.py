"""A server that is configured wrongly: one warning, which says what to do, and no text is lost. `make test-vllm`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm` builds an environment")

from tests.integrations.cases import TOOLS
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.vllm_driver import GROUPS, Server
from tests.integrations.vllm_ways import OLD
from toolgram.integrations import observing, vllm_parsers
from toolgram.integrations.vllm_patches import PATCHES

pytestmark = pytest.mark.filterwarnings("default")

MARKERS = ["<think>", "</think>", "<tool_call>", "</tool_call>"]
CALL = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
TEMPLATE = (
    "{%- if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{%- endif %}{%- for m in messages %}"
    "<|im_start|>{{ m.role }}\n{{ m.content }}{%- for c in m.tool_calls or [] %}\n<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>{%- endfor %}'
    "<|im_end|>\n{%- endfor %}{%- if add_generation_prompt %}<|im_start|>assistant\n{%- endif %}"
)


class Kept(logging.Handler):
    """The texts of warnings."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


@pytest.fixture
def said() -> Iterator[list[str]]:
    """The warnings since the test began."""
    observing.warn_once.cache_clear()
    kept = Kept()
    observing.logger.addHandler(kept)
    yield kept.texts
    observing.logger.removeHandler(kept)


@pytest.mark.parametrize("reasoning", ["deepseek_r1", "qwen3", "toolgram_glm45"])
def test_another_reasoning_parser(reasoning: str, said: list[str]) -> None:
    """What it leaves is read as an answer, whatever the prompt has begun."""
    tokenizer = Pieces([], MARKERS)
    server = Server(tokenizer, "toolgram_hermes", reasoning)
    prompt = [tokenizer.eos_token_id, *tokenizer.encode("<think>\n")]
    ids = tokenizer.encode(f"Hm.</think>Look.\n{CALL}")
    whole = server.whole(ids, server.request(TOOLS), prompt)
    assert whole.calls == [("get_time", "{}")]
    assert OLD or (whole.content or "").strip() == "Look.", "before 0.33 the prompt of a whole answer is not shown"
    for group in GROUPS:
        heard = server.stream(ids, server.request(TOOLS, stream=True), group, prompt)
        assert heard.calls == [("get_time", "{}")], group
        assert "Look." in (heard.content or ""), group
    assert len(said) == 1
    assert "--reasoning-parser toolgram" in said[0]


def test_a_format_that_does_not_fit_the_tokenizer(said: list[str]) -> None:
    for _ in range(2):
        server = Server(Pieces([], MARKERS, chat_template=TEMPLATE), "toolgram_gemma4", "toolgram_gemma4")
        server.stream(server.tokenizer.encode("Hi."), server.request(TOOLS, stream=True), 1)
    assert len(said) == 1
    assert "0 of " in said[0]
    assert "--tool-call-parser toolgram_hermes" in said[0]


@pytest.mark.parametrize("name", ["toolgram_hermes", "toolgram_qwen3_coder", "toolgram"])
def test_a_format_that_fits(name: str, said: list[str]) -> None:
    server = Server(Pieces([], MARKERS, chat_template=TEMPLATE), name, name)
    server.stream(server.tokenizer.encode("Hi."), server.request(TOOLS, stream=True), 1)
    assert said == []


@pytest.mark.parametrize(
    ("name", "given", "warned"),
    [
        ("toolgram", TEMPLATE.replace("<tool_call>", "<call>"), True),
        ("toolgram", TEMPLATE, False),
        ("toolgram", None, False),
        ("toolgram_hermes", TEMPLATE.replace("<tool_call>", "<call>"), False),
    ],
)
def test_a_template_that_only_the_server_is_given(name: str, given: str | None, warned: bool, said: list[str]) -> None:
    server = Server(Pieces([], MARKERS, chat_template=TEMPLATE), name, name)

    async def make(renderer: Any) -> None:
        """As vLLM's own renderer, which makes a parser for each request."""
        server.parser(server.request(TOOLS), [0])

    (renderer,) = (each for each in PATCHES if each.name == "preprocess_chat")
    for _ in range(3):
        asyncio.run(renderer.around(make)(SimpleNamespace(chat_template=given)))
    assert len(said) == warned
    assert not warned or "TOOLGRAM_CHAT_TEMPLATE" in said[0]


def test_a_tokenizer_without_a_template_is_reported_once(said: list[str]) -> None:
    tokenizer = Pieces([], MARKERS)
    server = Server(tokenizer, "toolgram", "toolgram")
    for _ in range(2):
        server.stream(tokenizer.encode("Hi."), server.request(TOOLS, stream=True), 1)
    assert len(said) == 1
    assert "no chat template" in said[0]


def test_a_parser_in_the_engine_says_nothing(said: list[str]) -> None:
    """The server has said it: the engine makes a reasoning parser of its own, in another process."""
    vllm_parsers.ToolgramReasoningParser(Pieces([], MARKERS))
    assert said == []
