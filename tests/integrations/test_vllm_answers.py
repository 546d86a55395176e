"""The plug-in in vLLM's own serving layer: request adjustment, detokenizer, stream processor, assembly; the members
that vLLM reads, what must not stop a server, and what a request asks for.

Needs the environment that `make test-vllm` builds; everywhere else this module skips, and `test_vllm_plugin.py` drives
the plug-in through a stand-in.  What every path has to give is the package's own whole-text parse of the same text.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm` builds an environment with it")

from vllm.parser.abstract_parser import DelegatingParser

import toolgram
from tests.integrations import vllm_driver as ways
from tests.integrations.cases import TOOLS, can_reason, cases
from tests.integrations.tokenizers_for_tests import Pieces, llama3, mistral
from tests.integrations.vllm_driver import HERMES, WHOLE, Server, hermes_server
from tests.integrations.writers import WRITERS, Turn
from tests.properties.selection import every_format
from toolgram.integrations import observing, vllm_parsers
from toolgram.integrations.served import served
from toolgram.integrations.vllm_surface import ReasoningParser, ToolParser
from toolgram.integrations.vllm_tags import _FROM_THE_FIRST

pytestmark = pytest.mark.filterwarnings("default")

TEMPLATES = sorted((Path(__file__).parents[1] / "derive" / "templates").glob("*.jinja"))
REAL = [
    ("llama3_json", "llama3"),
    ("llama4_pythonic", "llama3"),
    ("functionary_v3_2", "llama3"),
    ("hermes", "llama3"),
    ("mistral_v3", "spm_v3"),
    ("mistral_v3", "spm_v7"),
    ("mistral_v3", "tekken_v3"),
    ("mistral_v11", "tekken_v11"),
    ("mistral_v11", "tekken_v13"),
]


@pytest.mark.parametrize(("name", "kind"), REAL)
def test_real_tokenizers(name: str, kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    is_mistral = kind.startswith(("spm", "tekken"))
    if is_mistral:
        tokenizer = mistral(kind, tmp_path_factory.mktemp("tokenizers"))
    else:
        pytest.importorskip("llama_models", reason="the package with Llama 3's tokenizer is not installed")
        tokenizer = llama3(added=[text for text in ways.specials_of(name) if text.startswith("<")])
    parser = "toolgram" if is_mistral else f"toolgram_{name}"
    server = Server(tokenizer, parser, parser)
    fmt = toolgram.get_format(name)
    known = [text for text in fmt.program.special.values() if text in served(tokenizer, name).tokens]
    runs, wrong = 0, list[Any]()
    for case in cases(name):
        if any(text in case.text + case.prefix for text in fmt.program.special.values() if text not in known):
            continue  # this version of the tokenizer has no such marker
        ids = ways.marked(tokenizer, case.text, known)
        prompt = [*tokenizer.encode("Hi"), tokenizer.eos_token_id, *ways.marked(tokenizer, case.prefix, known)]
        request = server.adjusted(server.request(TOOLS), prompt)
        text = "".join(server.texts(ids, prompt, request))
        is_left_out = is_mistral and ways.OLD and "[ARGS]" not in text  # by the tokenizers of some releases before 0.33
        written = case.text.replace("[ARGS]", "") if is_left_out else case.text
        assert "".join(text.split()) == "".join(written.split()), "the tokenizer gives back what was written"
        message = fmt.parse(text, TOOLS, case.prefix, case.finish)
        for way, heard in ways.heard_everywhere(server, ids, prompt, case.finish):
            runs += 1
            if heard.told() != ways.told(message):
                wrong.append((case.label, way, heard.told(), ways.told(message)))
    assert runs
    assert not wrong, f"{len(wrong)} of {runs} runs, first {wrong[0]}"


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_any_chat_template(path: Path) -> None:
    """`toolgram`: the format comes from the tokenizer's own template, the prompt's part in it from the prompt."""
    template = path.read_text(encoding="utf-8")
    fmt = toolgram.derive_format(template, bos_token="<s>", eos_token="<|end|of|test|>")
    report = fmt.report
    assert report is not None
    assert report.analysis is not None
    tokenizer = Pieces(list(fmt.program.special.values()), chat_template=template)
    server = Server(tokenizer, "toolgram", "toolgram")
    runs, wrong = 0, list[Any]()
    for probe in report.probes:
        opened = report.analysis.prompts[probe.prompt]
        ids = tokenizer.encode(probe.output)
        prompt = tokenizer.encode(f"<s>Hi<|end|of|test|>{opened.text}")
        meant = ways.meant_ways(fmt, probe.output, opened.opened, "stop")
        for way, heard in ways.heard_everywhere(server, ids, prompt, groups=(1, 3, WHOLE)):
            runs += 1
            wanted = meant[way != "whole"]
            if heard.told() != wanted:
                wrong.append((probe.case, probe.prompt, way, heard.told(), wanted))
    assert not wrong, f"{len(wrong)} of {runs} runs, first {wrong[0]}"


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


NOTHING = {
    "bare": (Bare(), "no chat template"),
    "no template": (Pieces(), "no chat template"),
    "empty template": (Pieces(chat_template=""), "no chat template"),
    "raising": (Pieces(chat_template="{{ raise_exception('no') }}"), "no format"),
    "broken": (Pieces(chat_template="{% if %}"), "no format"),
    "no tools": (Pieces(chat_template="{% for m in messages %}{{ m.content }}{% endfor %}"), "no tool calls"),
    "no string": (Pieces(chat_template={"default": 3}), "no chat template"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_tokenizer_that_gives_nothing_warns_once_and_passes_text(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, why = NOTHING[name]
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
    for base, ours, names in (
        (
            ToolParser,
            vllm_parsers.ToolgramToolParser,
            "adjust_request get_structural_tag extract_tool_calls extract_tool_calls_streaming "
            "get_remaining_unstreamed_args",
        ),
        (
            ReasoningParser,
            vllm_parsers.ToolgramReasoningParser,
            "adjust_request is_reasoning_end is_reasoning_end_streaming extract_content_ids count_reasoning_tokens "
            "extract_reasoning extract_reasoning_streaming has_engine_confirmed_reasoning_end set_prompt_token_ids",
        ),
    ):
        for name in (each for each in names.split() if hasattr(base, each) or not ways.OLD):
            theirs = inspect.signature(getattr(base, name)).parameters
            here = inspect.signature(getattr(ours, name)).parameters
            assert [each for each in here if each in theirs or not ways.OLD] == list(theirs), name
    for name in ("engine_based_streaming", "supports_required_and_named", "structural_tag_model"):
        assert hasattr(ToolParser, name)


def test_a_pair_that_nobody_introduced_works_from_what_the_other_leaves() -> None:
    class Alone(DelegatingParser):  # type: ignore[misc]
        pass

    Alone.reasoning_parser_cls = vllm_parsers.ReasoningParser_hermes  # set afterwards, so that nothing knows of it
    Alone.tool_parser_cls = vllm_parsers.ToolParser_hermes
    server = hermes_server()
    server.parser_cls = Alone
    heard = ways.both_ways(server, HERMES)
    assert heard.told() == ("Let me look.", "Hm.", ways.BOTH)


def test_formats_without_reasoning_never_wait_for_its_end() -> None:
    for name in toolgram.format_names():
        if not can_reason(name):
            server = Server(Pieces(ways.specials_of(name)), f"toolgram_{name}", f"toolgram_{name}")
            assert server.parser(server.request(TOOLS), [0]).is_reasoning_end([0]) is True


# --- what a request asks for: choices, prompts, ids, one parser without the other, grammars ------------------------


@pytest.fixture(scope="module")
def hermes() -> Server:
    return hermes_server()


def test_reasoning_left_out(hermes: Server) -> None:
    if ways.OLD:
        pytest.skip("before 0.33 vLLM streams reasoning that was not asked for")
    heard = ways.both_ways(hermes, HERMES, include_reasoning=False)
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


@pytest.mark.parametrize(("tools", "reasoning"), [("toolgram_hermes", "qwen3"), ("hermes", "toolgram_hermes")])
def test_beside_a_parser_of_vllm(tools: str, reasoning: str) -> None:
    server = hermes_server(tools, reasoning)
    ids = server.tokenizer.encode(HERMES)
    for heard in (server.whole(ids, server.request(TOOLS)), server.stream(ids, server.request(TOOLS), 1)):
        assert heard.reasoning == "Hm."
        calls = [(name, json.loads(arguments)) for name, arguments in heard.calls]
        assert calls == [(name, json.loads(arguments)) for name, arguments in ways.BOTH]


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
    call = HERMES.partition("</think>")[2].partition("</tool_call>")[0] + "</tool_call>"
    assert accepts(grammar, call)
    assert accepts(grammar, f"<think>Is it <so>?</think>{call}") == spelled, "else the engine lets the thought pass"
    assert not accepts(grammar, f"{call}\n{call}"), "one at a time"


def test_a_grammar_is_written_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """vLLM asks for it in its event loop, which goes on meanwhile; the request has it before the prompt is sent."""
    renderer = pytest.importorskip("vllm.renderers.online_renderer").OnlineRenderer
    server = hermes_server()
    loop_went_on = threading.Event()
    asked: list[bool] = []

    def tag(self: Any, *args: Any, **kwargs: Any) -> Any:
        asked.append(loop_went_on.wait(5))
        return made(self, *args, **kwargs)

    made = vllm_parsers.ToolgramToolParser.get_structural_tag
    monkeypatch.setattr(vllm_parsers.ToolgramToolParser, "get_structural_tag", tag)

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
