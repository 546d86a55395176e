"""Where the plug-in meets vLLM: registries, the members that vLLM reads, and what must not stop a server.

Needs the environment that `make test-vllm` builds.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm` builds an environment with it")

import toolgram
from tests.integrations.cases import TOOLS, can_reason
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.vllm_driver import Server
from tests.integrations.vllm_ways import BOTH, HERMES, OLD, both_ways, specials_of
from toolgram.integrations import observing

pytestmark = pytest.mark.filterwarnings("default")

FORMATS = toolgram.format_names()


class Bare:
    """A tokenizer with nothing that may be missing."""

    is_fast = False
    eos_token_id = 1

    def __len__(self) -> int:
        return 3

    def get_vocab(self) -> dict[str, int]:
        raise NotImplementedError

    def decode(self, ids: Any, **options: Any) -> str:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("tokenizer", "why"),
    [
        (Bare(), "no chat template"),
        (Pieces(), "no chat template"),
        (Pieces(chat_template=""), "no chat template"),
        (Pieces(chat_template="{{ raise_exception('no') }}"), "no format"),
        (Pieces(chat_template="{% if %}"), "no format"),
        (Pieces(chat_template="{% for m in messages %}{{ m.content }}{% endfor %}"), "no tool calls"),
        (Pieces(chat_template={"default": 3}), "no chat template"),
    ],
    ids=["bare", "no template", "empty template", "raising", "broken", "no tools", "no string"],
)
def test_a_tokenizer_that_gives_nothing_warns_once_and_passes_text(
    tokenizer: Any, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[str] = []
    observing.warn_once.cache_clear()
    monkeypatch.setattr(observing.logger, "warning", lambda message, *values: lines.append(message % values))
    server = Server(tokenizer, "toolgram", "toolgram")
    request = server.request(TOOLS)
    for _ in range(3):
        parser = server.parser(server.adjusted(request, [0]), [0])
    assert parser.parse(HERMES, request, True, [0, 1])[1] == HERMES
    streamed = server.parser(request, [0])
    delta = streamed.parse_delta(HERMES, [0], request, [0], finished=True)
    assert delta.content == HERMES
    assert len(lines) == 1
    assert why in lines[0]


# --- the surface ----------------------------------------------------------------------------------------------------


def test_the_surface_is_where_it_was() -> None:
    """Every member that vLLM is known to read, with the signature it is known to call: a move is one failing line."""
    from toolgram.integrations import vllm_parsers as parsers
    from toolgram.integrations.vllm_surface import ReasoningParser, ToolParser

    for base, ours, names in (
        (
            ToolParser,
            parsers.ToolgramToolParser,
            "adjust_request get_structural_tag extract_tool_calls extract_tool_calls_streaming "
            "get_remaining_unstreamed_args",
        ),
        (
            ReasoningParser,
            parsers.ToolgramReasoningParser,
            "adjust_request is_reasoning_end is_reasoning_end_streaming extract_content_ids count_reasoning_tokens "
            "extract_reasoning extract_reasoning_streaming has_engine_confirmed_reasoning_end set_prompt_token_ids",
        ),
    ):
        for name in (each for each in names.split() if hasattr(base, each) or not OLD):
            theirs = inspect.signature(getattr(base, name)).parameters
            here = inspect.signature(getattr(ours, name)).parameters
            assert [each for each in here if each in theirs or not OLD] == list(theirs), name
    for name in ("engine_based_streaming", "supports_required_and_named", "structural_tag_model"):
        assert hasattr(ToolParser, name)


def test_a_pair_that_nobody_introduced_works_from_what_the_other_leaves() -> None:
    from vllm.parser.abstract_parser import DelegatingParser

    from toolgram.integrations import vllm_parsers as parsers

    class Alone(DelegatingParser):  # type: ignore[misc]
        pass

    Alone.reasoning_parser_cls = parsers.ReasoningParser_hermes  # set afterwards, so that nothing knows of it
    Alone.tool_parser_cls = parsers.ToolParser_hermes
    server = Server(Pieces(["<|im_end|>"], specials_of("hermes")), "toolgram_hermes", "toolgram_hermes")
    server.parser_cls = Alone
    heard = both_ways(server, HERMES)
    assert heard.told() == ("Let me look.", "Hm.", BOTH)


def test_formats_without_reasoning_never_wait_for_its_end() -> None:
    for name in FORMATS:
        if not can_reason(name):
            server = Server(Pieces(specials_of(name)), f"toolgram_{name}", f"toolgram_{name}")
            assert server.parser(server.request(TOOLS), [0]).is_reasoning_end([0]) is True
