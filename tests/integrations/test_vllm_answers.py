"""The plug-in in vLLM's own serving layer: request adjustment, detokenizer, stream processor, assembly; the members
that vLLM reads, what must not stop a server, what a request asks for, and the form of an answer.

Needs the environment that `make test-vllm` builds; everywhere else this module skips, and `test_vllm_plugin.py` drives
the plug-in through a stand-in.  What every path has to give is the package's own whole-text parse of the same text.
"""

import asyncio
import inspect
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm` builds an environment with it")

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.openai.responses.protocol import ResponsesRequest
from vllm.parser.abstract_parser import DelegatingParser

import toolgram
from tests.integrations import vllm_driver as ways
from tests.integrations.cases import TOOLS, can_reason, cases
from tests.integrations.tokenizers_for_tests import Pieces, llama3, mistral
from tests.integrations.vllm_driver import HERMES, OLD, WHOLE, Server, hermes_server
from tests.integrations.writers import WRITERS, Turn
from tests.properties.selection import every_format
from tests.tables import table
from toolgram.integrations import observing, vllm_parsers
from toolgram.integrations.served import served
from toolgram.integrations.vllm_answer_form import AS_VLLM, FORM_VARIABLE
from toolgram.integrations.vllm_surface import ReasoningParser, ToolParser
from toolgram.integrations.vllm_tags import _FROM_THE_FIRST

pytestmark = pytest.mark.filterwarnings("default")

TEMPLATES = sorted((Path(__file__).parents[1] / "derive" / "templates").glob("*.jinja"))
REAL = [
    ("llama3_json", "llama3"), ("llama4_pythonic", "llama3"), ("functionary_v3_2", "llama3"), ("hermes", "llama3"),
    ("mistral_v3", "spm_v3"), ("mistral_v3", "spm_v7"), ("mistral_v3", "tekken_v3"), ("mistral_v11", "tekken_v11"),
    ("mistral_v11", "tekken_v13"),
]  # fmt: skip


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
        is_left_out = is_mistral and OLD and "[ARGS]" not in text  # by the tokenizers of some releases before 0.33
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
        meant = ways.meant_ways(fmt, probe.output, opened.opened)
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
    of_tools = (
        "adjust_request get_structural_tag extract_tool_calls extract_tool_calls_streaming "
        "get_remaining_unstreamed_args"
    )
    of_reasoning = (
        "adjust_request is_reasoning_end is_reasoning_end_streaming extract_content_ids count_reasoning_tokens "
        "extract_reasoning extract_reasoning_streaming has_engine_confirmed_reasoning_end set_prompt_token_ids"
    )
    for base, ours, names in (
        (ToolParser, vllm_parsers.ToolgramToolParser, of_tools),
        (ReasoningParser, vllm_parsers.ToolgramReasoningParser, of_reasoning),
    ):
        for name in (each for each in names.split() if hasattr(base, each) or not OLD):
            theirs = inspect.signature(getattr(base, name)).parameters
            here = inspect.signature(getattr(ours, name)).parameters
            assert [each for each in here if each in theirs or not OLD] == list(theirs), name
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
    if OLD:
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
        assert heard.made() == [("get_weather", {"city": "Paris"}), ("get_time", {})]


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

    new = SimpleNamespace
    model = new(multimodal_config=None, enable_prompt_embeds=False, max_model_len=1000, is_encoder_decoder=False)
    tokenizer = new(tokenizer=server.tokenizer, get_tokenizer=lambda: server.tokenizer, render_chat_async=rendered)
    itself = new(renderer=tokenizer, model_config=model, trust_request_mm_kwargs=False, reasoning_effort_map=None)
    request = server.request(TOOLS, tool_choice="required")
    asyncio.run(renderer.preprocess_chat(itself, request, [], None, "auto", None, parser=server.parser_cls))
    assert asked == [True]
    assert request.structured_outputs.structural_tag


# --- the form of an answer: what the engine is held to, and when ---------------------------------------------------

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


def server_of(tools: str | None = "toolgram_hermes", reasoning: str | None = "toolgram_hermes") -> Server:
    return Server(Pieces(["<|im_start|>"], MARKERS), tools, reasoning)


def sent(server: Server, request: Any, prompt: str = "") -> Any:
    """A request as it goes to the engine."""
    return server.adjusted(request, server.tokenizer.encode(f"<|im_start|>assistant\n{prompt}"))


def formed(prompt: str, tools: Any, **asked: Any) -> Any:
    """A request to a server for Hermes, as it goes to the engine."""
    server = server_of()
    return sent(server, server.request(tools, **asked), prompt)


def response_request(tools: list[Any], **asked: Any) -> Any:
    """A request for an answer of this form, as a client of Responses sends it."""
    form = {"format": {"type": "json_schema", "name": "f", "schema": SCHEMA}}
    declared = [{"type": "function", "strict": True, **tool["function"]} for tool in tools]
    return ResponsesRequest(model="model", input="Go.", text=form, tools=declared, **asked)


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
    for tools in ([], TOOLS):
        request = response_request(tools)
        asked = request.text
        request = sent(server_of(), request)
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
    server = server_of(**parsers)
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
    text = (TEMPLATES[0].parent / "equal_delimiters.jinja").read_text(encoding="utf-8")
    mark = ":::think:::"
    server = Server(Pieces([], [mark], chat_template=text, eos_token="</s>"), "toolgram", "toolgram")
    request = server.adjusted(server.request(None, **asked), server.tokenizer.encode(f"</s>{mark}"))
    assert request._grammar_from_parser
    assert accepted(request)(f"Hm.{mark}{good}")
    assert not accepted(request)(f"Hm.{mark}One.")


@since_033
@pytest.mark.parametrize("mode", ["auto", "required"])
def test_of_allowed_tools_only_these_may_be_called_in_place_of_an_answer(mode: str) -> None:
    allowed = {"type": "allowed_tools", "mode": mode, "tools": [{"type": "function", "name": "get_weather"}]}
    request = sent(server_of(), response_request(TOOLS, tool_choice=allowed))
    takes = tag_accepts(request.extract_structured_outputs().structural_tag)
    assert takes('{"a": 1}') == (mode == "auto")
    assert takes(WEATHER)
    assert not takes('<tool_call>\n{"name": "get_time", "arguments": {"zone": "UTC"}}\n</tool_call>')


@since_033
@pytest.mark.parametrize(("tools", "reasoning"), [("hermes", "toolgram_hermes"), ("toolgram_hermes", "qwen3")])
def test_beside_a_parser_of_vllm_the_form_is_left_to_vllm(tools: str, reasoning: str) -> None:
    server = server_of(tools, reasoning)
    request = server.adjusted(server.request(None, **FORMS["json_schema"][0]), [0])
    assert request.extract_structured_outputs().json == SCHEMA


@since_033
def test_without_a_parser_of_reasoning_vllm_holds_an_answer_after_a_thought() -> None:
    server = server_of(reasoning=None)
    opened = sent(server, server.request(TOOLS, **FORMS["json_schema"][0]), OPENED)
    assert opened.extract_structured_outputs().json == SCHEMA
