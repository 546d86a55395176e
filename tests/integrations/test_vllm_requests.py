"""What a request asks for, in vLLM's own serving layer: tools, choices, prompts, limits, markers by id, grammars.

Needs the environment that `make test-vllm` builds.
"""

from __future__ import annotations

import asyncio
import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm` builds an environment with it")

from vllm.parser.abstract_parser import DelegatingParser

import toolgram
from tests.integrations import vllm_ways as ways
from tests.integrations.cases import TOOLS
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.vllm_driver import Server
from tests.integrations.writers import WRITERS, Turn
from tests.properties.selection import every_format
from toolgram.integrations.vllm_parsers import ToolgramToolParser
from toolgram.integrations.vllm_tags import _FROM_THE_FIRST

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module")
def hermes() -> Server:
    return ways.hermes_server()


@pytest.mark.parametrize("choice", [None, "none"])
@every_format
def test_without_calls_the_text_after_a_thought_is_plain(name: str, choice: str | None) -> None:
    """Also if it is between markers of its own, as `<response>` is after a thought of ernie45."""
    turn = Turn("", reasoning="Hm, so.", content="It is sunny.")
    text = WRITERS[name](turn) if name in WRITERS else ""
    if toolgram.get_format(name).text_only.parse(text, (), "").reasoning is None:
        return  # the notation has no thoughts
    server = Server(Pieces(ways.specials_of(name)), f"toolgram_{name}", f"toolgram_{name}")
    options = {"tool_choice": choice} if choice else {}
    heard = ways.both_ways(server, text, TOOLS if choice else None, **options)
    assert (heard.content or "").strip() == turn.content
    assert heard.reasoning == turn.reasoning


def test_reasoning_left_out(hermes: Server) -> None:
    if ways.OLD:
        pytest.skip("before 0.33 vLLM streams reasoning that was not asked for")
    heard = ways.both_ways(hermes, ways.HERMES, include_reasoning=False)
    assert heard.told() == ("Let me look.", None, ways.BOTH)


def test_an_old_turn_says_nothing_about_this_one(hermes: Server) -> None:
    prompt = hermes.tokenizer.encode("<think>Old.</think>Answer.<|im_end|>\nassistant\n")
    parser = hermes.parser(hermes.request(TOOLS), prompt)
    assert parser.is_reasoning_end(prompt) is False
    closed = hermes.tokenizer.encode("Hi<|im_end|>\nassistant\n<think></think>")
    assert parser.is_reasoning_end(closed) is True
    heard = ways.both_ways(hermes, "Yes.", prompt=prompt)
    assert heard.told() == ("Yes.", None, [])


@pytest.mark.parametrize(("name", "length"), [("mistral_v11", 9), ("mistral_v3", 9), ("hermes", 29)])
def test_ids_are_in_the_models_style(name: str, length: int) -> None:
    server = Server(Pieces(ways.specials_of(name)), f"toolgram_{name}", f"toolgram_{name}")
    text = WRITERS[name](Turn("", calls=(("get_time", {}), ("get_weather", {"city": "x"}))))
    ids = server.tokenizer.encode(text)
    for heard in (server.whole(ids, server.request(TOOLS)), server.stream(ids, server.request(TOOLS), 1)):
        assert len(set(heard.ids)) == 2
        assert {len(each) for each in heard.ids} == {length}


# --- one parser without the other -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("tools", "reasoning"), [("toolgram_hermes", "qwen3"), ("hermes", "toolgram_hermes")])
def test_beside_a_parser_of_vllm(tools: str, reasoning: str) -> None:
    server = Server(Pieces(["<|im_end|>"], ways.specials_of("hermes")), tools, reasoning)
    ids = server.tokenizer.encode(ways.HERMES)
    for heard in (server.whole(ids, server.request(TOOLS)), server.stream(ids, server.request(TOOLS), 1)):
        assert heard.reasoning == "Hm."
        assert [(name, json.loads(arguments)) for name, arguments in heard.calls] == [
            ("get_weather", {"city": "Paris"}),
            ("get_time", {}),
        ]


# --- constraints ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["required", "get_weather"])
@every_format
def test_a_forced_call_is_held_to_a_grammar_that_xgrammar_takes(name: str, choice: str) -> None:
    import xgrammar
    from vllm.sampling_params import SamplingParams
    from vllm.v1.structured_output.backend_xgrammar import validate_xgrammar_grammar

    # markers that are not special: a tag names a special one by its id, which needs the vocabulary
    server = Server(Pieces([], ways.specials_of(name)), f"toolgram_{name}", f"toolgram_{name}")
    wanted: Any = choice if choice == "required" else {"type": "function", "function": {"name": choice}}
    request = server.adjusted(server.request(TOOLS, tool_choice=wanted), [0])
    tag = request.structured_outputs.structural_tag
    assert tag, "there is an export, and this format has a constraint"
    validate_xgrammar_grammar(SamplingParams(structured_outputs=request.structured_outputs))
    accepts = xgrammar.testing._is_grammar_accept_string
    grammar = xgrammar.Grammar.from_structural_tag(tag)
    assert not accepts(grammar, "No.")


@pytest.mark.parametrize("spelled", [True, False])
def test_where_the_end_of_a_thought_is_spelled_the_grammar_holds_from_the_first_token(spelled: bool) -> None:
    """The token with the last character of the marker may hold the first ones of a call, which an engine lets pass."""
    import xgrammar

    if not hasattr(DelegatingParser, "set_prompt_token_ids"):
        pytest.skip("vLLM 0.31 asks for no tag if one call at a time is wanted")
    markers = [] if spelled else ["<think>", "</think>", "<tool_call>", "</tool_call>"]
    server = Server(Pieces([], markers), "toolgram_hermes", "toolgram_hermes")
    request = server.adjusted(server.request(TOOLS, parallel_tool_calls=False), [0])
    assert getattr(request, _FROM_THE_FIRST) == spelled
    grammar = xgrammar.Grammar.from_structural_tag(request.structured_outputs.structural_tag)
    accepts = xgrammar.testing._is_grammar_accept_string
    call = ways.HERMES.partition("</think>")[2].partition("</tool_call>")[0] + "</tool_call>"
    assert accepts(grammar, call)
    assert accepts(grammar, f"<think>Is it <so>?</think>{call}") == spelled, "else the engine lets the thought pass"
    assert not accepts(grammar, f"{call}\n{call}"), "one at a time"


def test_a_grammar_is_written_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM asks for it in its event loop, which goes on meanwhile; the request has it before the prompt is sent."""
    renderer = pytest.importorskip("vllm.renderers.online_renderer").OnlineRenderer
    server = ways.hermes_server()
    loop_went_on = threading.Event()
    asked: list[bool] = []

    def tag(self: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(loop_went_on.wait(5))
        return made(self, *args, **kwargs)

    made = ToolgramToolParser.get_structural_tag
    monkeypatch.setattr(ToolgramToolParser, "get_structural_tag", tag)

    async def rendered(*args: Any, **kwargs: Any) -> Any:
        asyncio.get_running_loop().call_later(0.01, loop_went_on.set)
        return ([],), ({"type": "token", "prompt_token_ids": [0]},)

    model = SimpleNamespace(
        multimodal_config=None, enable_prompt_embeds=False, max_model_len=1000, is_encoder_decoder=False
    )
    tokenizer = SimpleNamespace(
        tokenizer=server.tokenizer, get_tokenizer=lambda: server.tokenizer, render_chat_async=rendered
    )
    itself = SimpleNamespace(
        renderer=tokenizer, model_config=model, trust_request_mm_kwargs=False, reasoning_effort_map=None
    )
    request = server.request(TOOLS, tool_choice="required")
    asyncio.run(renderer.preprocess_chat(itself, request, [], None, "auto", None, parser=server.parser_cls))
    assert asked == [True]
    assert request.structured_outputs.structural_tag
