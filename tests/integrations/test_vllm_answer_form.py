"""The form that a request asks of its answer, in vLLM's own serving layer: what the engine is held to, and when.

Needs the environment that `make test-vllm` builds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm` builds an environment with it")

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

from tests.integrations.cases import TOOLS
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.vllm_driver import OLD, Server
from tests.tables import table
from toolgram.integrations.vllm_answer_form import AS_VLLM, FORM_VARIABLE

TEMPLATES = Path(__file__).parents[1] / "derive" / "templates"
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
FORMS: dict[str, tuple[dict[str, Any], str, str]] = table(__file__, "forms")
since_033 = pytest.mark.skipif(OLD, reason="before 0.33 vLLM holds an answer to its form itself")
OPENED, CLOSED, UNTOLD = "<think>\n", "<think>\n\n</think>\n\n", ""
MARKERS = ["<think>", "</think>", "<tool_call>", "</tool_call>"]
THOUGHT = "<think>\nHm.\n</think>\n\n"
WEATHER = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>'


def plain(asked: dict[str, Any]) -> Any:
    """A request as a client sends it."""
    return ChatCompletionRequest(model="model", messages=[{"role": "user", "content": "Go."}], **asked)


def hermes(tools: str | None = "toolgram_hermes", reasoning: str | None = "toolgram_hermes") -> Server:
    return Server(Pieces(["<|im_start|>"], MARKERS), tools, reasoning)


def sent(server: Server, request: Any, prompt: str = "") -> Any:
    """A request as it goes to the engine."""
    return server.adjusted(request, server.tokenizer.encode(f"<|im_start|>assistant\n{prompt}"))


def formed(prompt: str, tools: Any, **asked: Any) -> Any:
    """A request to a server for Hermes, as it goes to the engine."""
    server = hermes()
    return sent(server, server.request(tools, **asked), prompt)


def accepted(request: Any) -> Callable[[str], bool]:
    """What the structural tag of a request takes."""
    return tag_accepts(request.structured_outputs.structural_tag)


def tag_accepts(tag: str) -> Callable[[str], bool]:
    """What a structural tag takes."""
    import xgrammar

    grammar = xgrammar.Grammar.from_structural_tag(tag)
    return lambda text: bool(xgrammar.testing._is_grammar_accept_string(grammar, text))


@since_033
@pytest.mark.parametrize("form", FORMS)
def test_an_answer_has_the_form_that_was_asked_for(form: str) -> None:
    asked, good, bad = FORMS[form]
    request = formed(UNTOLD, None, **asked)
    assert request._grammar_from_parser, "whether the model thinks or not"
    assert (request.response_format, request.structured_outputs.json) == (None, None)
    takes = accepted(request)
    for thought in ("", THOUGHT):
        assert takes(thought + good)
        assert not takes(thought + bad)
    assert not takes(WEATHER)
    request = formed(OPENED, None, **asked)
    assert not request._grammar_from_parser, "the engine waits for the end of a thought that the prompt began"
    takes = accepted(request)
    assert takes(good)
    assert takes(f"\n\n{good}"), "the blank line that the template writes"
    assert not takes(bad)
    request = formed(CLOSED, None, **asked)
    assert request.extract_structured_outputs().structural_tag is None, "nothing is around the answer: vLLM holds it"
    assert request.extract_structured_outputs() == plain(asked).extract_structured_outputs()
    for prompt in (UNTOLD, OPENED, CLOSED):
        takes = accepted(formed(prompt, TOOLS, **asked))
        assert takes(good)
        assert takes(WEATHER), "with tools, a call may be in its place"
        assert not takes(bad)
        assert not takes("It is sunny.")


@since_033
def test_responses_tell_the_client_what_it_asked_for() -> None:
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

    server = hermes()
    form = {"format": {"type": "json_schema", "name": "f", "schema": SCHEMA}}
    declared = [{"type": "function", "strict": True, **tool["function"]} for tool in TOOLS]
    for tools in (None, declared):
        request = ResponsesRequest(model="model", input="Go.", text=form, tools=tools or [])
        asked = request.text
        request = sent(server, request)
        assert request.text == asked
        assert request._grammar_from_parser
        tag = request.to_sampling_params(100, {}).structured_outputs.structural_tag
        assert tag == request.extract_structured_outputs().structural_tag
        takes = tag_accepts(tag)
        assert takes('<think>\nHm.\n</think>\n\n{"a": 1}')
        assert takes(WEATHER) == bool(tools)
        assert not takes("One.")


@since_033
@pytest.mark.parametrize(
    "asked",
    [*table(__file__, "left_to_vllm"), {"structured_outputs": {"json": "[" * 5000}}],
    ids=lambda row: str(row)[:60],
)
def test_what_a_tag_cannot_hold_is_left_to_vllm(asked: dict[str, Any]) -> None:
    request = formed(UNTOLD, None, **asked)
    assert request.extract_structured_outputs() == plain(asked).extract_structured_outputs()
    assert not request._grammar_from_parser


@since_033
def test_an_engine_without_such_tags_refuses_them() -> None:
    """Where this fails, docs/vllm.md need not tell servers with such an engine to leave forms to vLLM."""
    from vllm.sampling_params import SamplingParams
    from vllm.v1.structured_output.backend_guidance import validate_guidance_grammar

    request = formed(UNTOLD, None, **FORMS["json_schema"][0])
    with pytest.raises(Exception, match="Invalid grammar"):  # vLLM's own class of errors
        validate_guidance_grammar(SamplingParams(structured_outputs=request.structured_outputs))


def test_a_server_may_leave_forms_to_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose engine for grammars has no structural tags."""
    monkeypatch.setenv(FORM_VARIABLE, AS_VLLM)
    asked, _, _ = FORMS["json_schema"]
    request = formed(UNTOLD, None, **asked)
    assert request.response_format == plain(asked).response_format


GOOD = FORMS["json_schema"][1]


@since_033
@pytest.mark.parametrize(
    ("parsers", "prompt", "tools", "choice", "good", "bad"),
    [
        ({}, CLOSED, TOOLS, "required", (WEATHER,), (GOOD,)),
        ({"tools": None}, UNTOLD, None, None, (THOUGHT + GOOD, GOOD), ()),
        ({"reasoning": None}, UNTOLD, TOOLS, "auto", (GOOD, WEATHER), (THOUGHT + GOOD,)),  # it would be content
        ({"reasoning": None}, CLOSED, TOOLS, "auto", (GOOD, WEATHER), (THOUGHT + GOOD,)),
    ],
)
def test_the_form_with_some_parsers(
    parsers: Any, prompt: str, tools: Any, choice: str | None, good: tuple[str, ...], bad: tuple[str, ...]
) -> None:
    server = hermes(**parsers)
    options = {"tool_choice": choice} if choice else {}
    takes = accepted(sent(server, server.request(tools, **options, **FORMS["json_schema"][0]), prompt))
    assert [text for text in good if not takes(text)] == []
    assert [text for text in bad if takes(text)] == []


@since_033
def test_a_thought_that_goes_on_is_not_one_that_has_ended() -> None:
    """A prompt with two thoughts, of which the second is open; and the two sides of a thought spelled alike."""
    server = Server(Pieces(["<|im_start|>"], ["<think>"]), "toolgram_deepseek_r1", "toolgram_deepseek_r1")
    asked, good, _ = FORMS["json_schema"]
    ids = server.tokenizer.encode("<|im_start|><think>a</think>\n<think>b")
    takes = accepted(server.adjusted(server.request(None, **asked), ids))
    assert takes(f"c</think>\n\n{good}")
    assert not takes(good)
    text = (TEMPLATES / "equal_delimiters.jinja").read_text(encoding="utf-8")
    mark = ":::think:::"
    server = Server(Pieces([], [mark], chat_template=text, eos_token="</s>"), "toolgram", "toolgram")
    request = server.adjusted(server.request(None, **asked), server.tokenizer.encode(f"</s>{mark}"))
    assert request._grammar_from_parser
    assert accepted(request)(f"Hm.{mark}{good}")
    assert not accepted(request)(f"Hm.{mark}One.")


@since_033
@pytest.mark.parametrize("mode", ["auto", "required"])
def test_of_allowed_tools_only_these_may_be_called_in_place_of_an_answer(mode: str) -> None:
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

    server = hermes()
    declared = [{"type": "function", "strict": False, **tool["function"]} for tool in TOOLS]
    allowed = {"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": "get_weather"}]}
    form = {"format": {"type": "json_schema", "name": "f", "schema": SCHEMA}}
    request = ResponsesRequest(model="model", input="Go.", text=form, tools=declared, tool_choice=allowed)
    request = sent(server, request)
    takes = tag_accepts(request.extract_structured_outputs().structural_tag)
    assert takes('{"a": 1}') == (mode == "auto")
    assert takes(WEATHER)
    assert not takes('<tool_call>\n{"name": "get_time", "arguments": {"zone": "UTC"}}\n</tool_call>')


@since_033
@pytest.mark.parametrize(("tools", "reasoning"), [("hermes", "toolgram_hermes"), ("toolgram_hermes", "qwen3")])
def test_beside_a_parser_of_vllm_the_form_is_left_to_vllm(tools: str, reasoning: str) -> None:
    server = hermes(tools, reasoning)
    request = server.adjusted(server.request(None, **FORMS["json_schema"][0]), [0])
    assert request.extract_structured_outputs().json == SCHEMA


@since_033
def test_without_a_parser_of_reasoning_vllm_holds_an_answer_after_a_thought() -> None:
    server = hermes(reasoning=None)
    opened = sent(server, server.request(TOOLS, **FORMS["json_schema"][0]), OPENED)
    assert opened.extract_structured_outputs().json == SCHEMA
