"""The plug-in in vLLM's own serving layer: registries, request adjustment, detokenizer, stream processor, assembly.

Needs the environment that `make test-vllm` builds; everywhere else this module skips, and `test_vllm_plugin.py` drives
the plug-in through a stand-in.  What every path has to give is the package's own whole-text parse of the same text.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm` builds an environment with it")

from hypothesis import given, settings
from hypothesis import strategies as st
from vllm.parser.abstract_parser import DelegatingParser

import toolgram
from tests.integrations.cases import TOOLS, WRITERS, Case, Turn, can_reason, cases, meant
from tests.integrations.tokenizers_for_tests import Pieces, byte_level, llama3, mistral
from tests.integrations.vllm_driver import GROUPS, WHOLE, Server, count_runs
from tests.integrations.vllm_heard import Heard
from tests.properties.selection import every_format
from tests.strategies import WRITTEN_BY_HAND, outputs
from toolgram.events import Content, Event, Malformed, Reasoning, ToolCallDelta, ToolCallStart
from toolgram.integrations import observing
from toolgram.integrations import vllm as plugin
from toolgram.integrations.served import served

pytestmark = pytest.mark.filterwarnings("default")

OLD = not hasattr(DelegatingParser, "set_prompt_token_ids")  # 0.24: what it lacks is in docs/vllm.md
FORMATS = toolgram.format_names()
TEMPLATES = sorted((Path(__file__).parents[1] / "derive" / "templates").glob("*.jinja"))
KINDS: dict[str, Callable[[list[str]], Any]] = {
    "a character a token": lambda specials: Pieces(specials),
    "three characters a token": lambda specials: Pieces(specials[:1], specials, size=3),
    "no markers in the vocabulary": lambda specials: Pieces(size=4),
    "bytes, fast": lambda specials: byte_level(specials),
}


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    from vllm.plugins import load_general_plugins

    load_general_plugins()


def specials_of(name: str) -> list[str]:
    return list(toolgram.get_format(name).program.special.values())


def marked(tokenizer: Any, text: str, specials: Sequence[str]) -> list[int]:
    """The ids of a text, markers as their tokens, for tokenizers that would spell them."""
    ids: list[int] = []
    while text:
        place, marker = min(((text.find(each), each) for each in specials if each in text), default=(len(text), ""))
        if place:
            ids += tokenizer.encode(text[:place], add_special_tokens=False)
        if marker:
            ids.append(tokenizer.get_vocab()[marker])
        text = text[place + len(marker) :]
    return ids


def told(message: toolgram.Message) -> tuple[Any, Any, list[tuple[str, str]]]:
    return message.content, message.reasoning, [(call.name, call.arguments) for call in message.tool_calls]


def told_as_it_came(events: Iterable[Event]) -> tuple[Any, Any, list[tuple[str, str]]]:
    """What a client makes of a stream: what was sent of a call that failed cannot be taken back."""
    content = "".join(event.text for event in events if isinstance(event, (Content, Malformed)))
    reasoning = "".join(event.text for event in events if isinstance(event, Reasoning))
    calls: list[list[str]] = []
    for event in events:
        if isinstance(event, ToolCallStart):
            calls.append([event.name, ""])
        elif isinstance(event, ToolCallDelta):
            calls[event.index][1] += event.arguments
    return content or None, reasoning or None, [(name, arguments) for name, arguments in calls]


def meant_ways(fmt: toolgram.Format, text: str, prefix: str | None, finish: str | None) -> tuple[Any, Any]:
    """What a format makes of an answer: in one message, and as it came."""
    parser = fmt.parser(TOOLS, prefix)
    events = [*parser.feed(text), *parser.close(finish)]
    return told(parser.message), told_as_it_came(events)


def heard_everywhere(
    server: Server, ids: list[int], prompt: list[int], finish: str = "stop", groups: Sequence[int] = GROUPS
) -> Iterator[tuple[str, Heard]]:
    """The answer in one message, and streamed in groups of tokens."""
    end = server.tokenizer.eos_token_id if finish == "stop" else None
    limit = {"max_tokens": len(ids)} if finish == "length" else {}
    yield "whole", server.whole(ids, server.request(TOOLS, **limit), prompt, finish, end)
    for group in groups:
        request = server.request(TOOLS, stream=True, **limit)
        yield f"groups of {group}", server.stream(ids, request, group, prompt, finish, end)


# --- the matrix -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@every_format
def test_every_case_in_every_grouping(name: str, kind: str) -> None:
    specials = specials_of(name)
    tokenizer: Any = KINDS[kind](specials)
    server = Server(tokenizer, f"toolgram_{name}", f"toolgram_{name}")
    runs, wrong = 0, list[Any]()
    for case in cases(name):
        message = meant(case)
        ids = tokenizer.encode(case.text, add_special_tokens=False)
        prompt = [*tokenizer.encode("Hi"), tokenizer.eos_token_id]
        prompt += tokenizer.encode(case.prefix, add_special_tokens=False)
        for way, heard in heard_everywhere(server, ids, prompt, case.finish):
            runs += 1
            if heard.told() != told(message):
                wrong.append((case.label, way, heard.told(), told(message)))
            elif heard.finish_reason != expected_finish(case, message):
                wrong.append((case.label, way, heard.finish_reason, expected_finish(case, message)))
    count_runs(runs)
    assert not wrong, f"{len(wrong)} of {runs} runs, first {wrong[0]}"


def expected_finish(case: Case, message: toolgram.Message) -> str:
    return case.finish if case.finish == "length" or not message.tool_calls else "tool_calls"


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
    if OLD and name == "mistral_v11":
        pytest.skip("the Mistral tokenizer of vLLM 0.24 leaves [ARGS] out of every text (docs/vllm.md)")
    is_mistral = kind.startswith(("spm", "tekken"))
    if is_mistral:
        tokenizer = mistral(kind, tmp_path_factory.mktemp("tokenizers"))
    else:
        pytest.importorskip("llama_models", reason="the package with Llama 3's tokenizer is not installed")
        tokenizer = llama3(added=[text for text in specials_of(name) if text.startswith("<")])
    parser = "toolgram" if is_mistral else f"toolgram_{name}"
    server = Server(tokenizer, parser, parser)
    fmt = toolgram.get_format(name)
    known = [text for text in fmt.program.special.values() if text in served(tokenizer, name).tokens]
    runs, wrong = 0, list[Any]()
    for case in cases(name):
        if any(text in case.text + case.prefix for text in fmt.program.special.values() if text not in known):
            continue  # this version of the tokenizer has no such marker
        ids = marked(tokenizer, case.text, known)
        prompt = [*tokenizer.encode("Hi"), tokenizer.eos_token_id, *marked(tokenizer, case.prefix, known)]
        request = server.adjusted(server.request(TOOLS), prompt)
        text = "".join(server.texts(ids, prompt, request))
        assert "".join(text.split()) == "".join(case.text.split()), "the tokenizer gives back what was written"
        message = fmt.parse(text, TOOLS, case.prefix, "length" if case.finish == "length" else None)
        for way, heard in heard_everywhere(server, ids, prompt, case.finish):
            runs += 1
            if heard.told() != told(message):
                wrong.append((case.label, way, heard.told(), told(message)))
    count_runs(runs)
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
        meant = meant_ways(fmt, probe.output, opened.opened, None)
        for way, heard in heard_everywhere(server, ids, prompt, groups=(1, 3, WHOLE)):
            runs += 1
            wanted = meant[way != "whole"]
            if heard.told() != wanted:
                wrong.append((probe.case, probe.prompt, way, heard.told(), wanted))
    count_runs(runs)
    assert not wrong, f"{len(wrong)} of {runs} runs, first {wrong[0]}"


@pytest.mark.parametrize("name", [name for name in FORMATS if name in WRITTEN_BY_HAND])
def test_any_output_in_any_grouping(name: str) -> None:
    """Whatever a model says: no exception, the whole is the message, and the stream is what its events say."""
    specials = specials_of(name)
    tokenizer = Pieces(specials, size=2)
    server = Server(tokenizer, f"toolgram_{name}", f"toolgram_{name}")

    @settings(max_examples=25)
    @given(text=outputs(name), group=st.integers(1, 9))
    def check(text: str, group: int) -> None:
        ids = tokenizer.encode(text)
        if not ids:
            return
        whole = server.whole(ids, server.request(TOOLS), [0], "stop", tokenizer.eos_token_id)
        stream = server.stream(ids, server.request(TOOLS), group, [0], "stop", tokenizer.eos_token_id)
        meant = meant_ways(toolgram.get_format(name), text, None, None)
        assert (whole.told(), stream.told()) == meant

    check()


# --- requests -------------------------------------------------------------------------------------------------------

_HERMES = (
    "<think>Hm.</think>Let me look.\n"
    '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'
)
_BOTH = [("get_weather", '{"city": "Paris"}'), ("get_time", "{}")]


@pytest.fixture(scope="module")
def hermes() -> Server:
    return Server(Pieces(["<|im_end|>"], specials_of("hermes")), "toolgram_hermes", "toolgram_hermes")


def both_ways(server: Server, text: str, tools: Any = TOOLS, **options: Any) -> Heard:
    """What is heard of a text, the same in every way."""
    tokenizer = server.tokenizer
    ids = tokenizer.encode(text)
    finish = options.pop("finish", "stop")
    prompt = options.pop("prompt", [0])
    end = tokenizer.eos_token_id if finish == "stop" else None
    whole = server.whole(ids, server.request(tools, **options), prompt, finish, end)
    for group in GROUPS:
        streamed = server.stream(ids, server.request(tools, stream=True, **options), group, prompt, finish, end)
        assert (streamed.told(), streamed.finish_reason) == (whole.told(), whole.finish_reason), group
        assert OLD or streamed.reasoning_tokens == whole.reasoning_tokens
    return whole


def test_auto(hermes: Server) -> None:
    heard = both_ways(hermes, _HERMES)
    assert heard.told() == ("Let me look.", "Hm.", _BOTH)
    assert heard.finish_reason == "tool_calls"
    assert heard.reasoning_tokens == len("Hm.")


def test_required_is_read_as_any_call(hermes: Server) -> None:
    heard = both_ways(hermes, _HERMES, tool_choice="required")
    assert heard.told() == ("Let me look.", "Hm.", _BOTH)
    assert heard.finish_reason == "tool_calls"


def test_required_without_a_call_is_content(hermes: Server) -> None:
    heard = both_ways(hermes, "<think>Hm.</think>No.", tool_choice="required")
    assert heard.told() == ("No.", "Hm.", [])


def test_named(hermes: Server) -> None:
    choice = {"type": "function", "function": {"name": "get_weather"}}
    heard = both_ways(hermes, _HERMES, tool_choice=choice)
    assert heard.told() == ("Let me look.", "Hm.", _BOTH)
    assert heard.finish_reason == "stop", "as OpenAI reports it for a named tool"


def test_none_passes_everything_but_reasoning(hermes: Server) -> None:
    heard = both_ways(hermes, _HERMES, tool_choice="none")
    assert heard.told() == (_HERMES.partition("</think>")[2], "Hm.", [])


def test_no_tools_pass_everything_but_reasoning(hermes: Server) -> None:
    heard = both_ways(hermes, _HERMES, tools=None)
    assert heard.told() == (_HERMES.partition("</think>")[2], "Hm.", [])
    assert heard.finish_reason == "stop"


def test_one_call_at_a_time(hermes: Server) -> None:
    heard = both_ways(hermes, _HERMES, parallel_tool_calls=False)
    assert heard.calls == _BOTH[:1]


def test_reasoning_left_out(hermes: Server) -> None:
    if OLD:
        pytest.skip("vLLM 0.24 streams reasoning that was not asked for (docs/vllm.md)")
    heard = both_ways(hermes, _HERMES, include_reasoning=False)
    assert heard.told() == ("Let me look.", None, _BOTH)


def test_reasoning_after_the_first_answer(hermes: Server) -> None:
    heard = both_ways(hermes, "One.<think>Hm.</think>Two.<think>Ha.</think>Three.")
    assert heard.told() == ("One. Two. Three.", "Hm. Ha.", [])


@pytest.mark.parametrize("thinking", ["<think>", "<think>\n"])
def test_reasoning_opened_by_the_prompt(hermes: Server, thinking: str) -> None:
    prompt = hermes.tokenizer.encode(f"<think>Old.</think>Answer.<|im_end|>\nassistant\n{thinking}")
    heard = both_ways(hermes, "Hm.</think>Yes.", prompt=prompt)
    assert heard.told() == ("Yes.", "Hm.", [])
    assert OLD or heard.reasoning_tokens == 3


def test_reasoning_closed_by_the_prompt(hermes: Server) -> None:
    prompt = hermes.tokenizer.encode("Hi<|im_end|>\nassistant\n<think>\n\n</think>\n\n")
    heard = both_ways(hermes, "Yes.", prompt=prompt)
    assert heard.told() == ("Yes.", None, [])
    assert heard.reasoning_tokens == 0


def test_an_old_turn_says_nothing_about_this_one(hermes: Server) -> None:
    prompt = hermes.tokenizer.encode("<think>Old.</think>Answer.<|im_end|>\nassistant\n")
    parser = hermes.parser(hermes.request(TOOLS), prompt)
    assert parser.is_reasoning_end(prompt) is False
    closed = hermes.tokenizer.encode("Hi<|im_end|>\nassistant\n<think></think>")
    assert parser.is_reasoning_end(closed) is True
    heard = both_ways(hermes, "Yes.", prompt=prompt)
    assert heard.told() == ("Yes.", None, [])


@pytest.mark.parametrize("cut", range(5, len(_HERMES), 7))
def test_a_call_that_was_cut_off_does_not_look_complete(hermes: Server, cut: int) -> None:
    text = _HERMES[:cut]
    heard = both_ways(hermes, text, finish="length", max_tokens=len(hermes.tokenizer.encode(text)))
    message = toolgram.get_format("hermes").parse(text, TOOLS, finish_reason="length")
    assert heard.told() == told(message)
    assert heard.finish_reason == "length"
    for (_, arguments), call in zip(heard.calls, message.tool_calls, strict=True):
        if call.status == "truncated" and arguments and not arguments.endswith("}"):
            with pytest.raises(ValueError, match=r".*"):
                json.loads(arguments)


def test_a_name_alone_is_a_call_only_where_the_model_stopped() -> None:
    server = Server(Pieces(specials_of("mistral_v11")), "toolgram_mistral_v11", "toolgram_mistral_v11")
    assert both_ways(server, "[TOOL_CALLS]get_time").calls == [("get_time", "{}")]
    tokens = len(server.tokenizer.encode("[TOOL_CALLS]get_time"))
    assert both_ways(server, "[TOOL_CALLS]get_time", finish="length", max_tokens=tokens).calls == []


@pytest.mark.parametrize(("name", "length"), [("mistral_v11", 9), ("mistral_v3", 9), ("hermes", 29)])
def test_ids_are_in_the_models_style(name: str, length: int) -> None:
    server = Server(Pieces(specials_of(name)), f"toolgram_{name}", f"toolgram_{name}")
    text = WRITERS[name](Turn("", calls=(("get_time", {}), ("get_weather", {"city": "x"}))))
    ids = server.tokenizer.encode(text)
    for heard in (server.whole(ids, server.request(TOOLS)), server.stream(ids, server.request(TOOLS), 1)):
        assert len(set(heard.ids)) == 2
        assert {len(each) for each in heard.ids} == {length}


def test_an_id_that_the_model_wrote_is_kept() -> None:
    server = Server(Pieces(specials_of("mistral_v3")), "toolgram_mistral_v3", None)
    text = (
        '[TOOL_CALLS] [{"name": "get_time", "arguments": {}}, {"id": "bbc5b7ede", "name": "get_time", "arguments": {}}]'
    )
    assert server.whole(server.tokenizer.encode(text), server.request(TOOLS)).ids[1] == "bbc5b7ede"


# --- markers by id --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["hermes", "mistral_v11", "mistral_v3", "lfm2", "granite_3"])
def test_a_quoted_marker_is_text(name: str) -> None:
    """The marker as ordinary tokens, beside the token itself: in every grouping, and in one message."""
    specials = specials_of(name)
    tokenizer = Pieces(specials)
    server = Server(tokenizer, f"toolgram_{name}", f"toolgram_{name}")
    marker = {"mistral_v11": "[TOOL_CALLS]", "mistral_v3": "[TOOL_CALLS]"}.get(name, specials[0])
    call = WRITERS[name](Turn("", calls=(("get_weather", {"city": "Paris"}),)))
    ids = tokenizer.spell(f"Calls begin with {marker} here. ") + tokenizer.encode(call)
    for way, heard in heard_everywhere(server, ids, [0]):
        assert heard.content == f"Calls begin with {marker} here.", way
        assert heard.calls == [("get_weather", '{"city": "Paris"}')], way


def test_a_quoted_marker_in_arguments_is_text() -> None:
    tokenizer = Pieces(specials_of("mistral_v11"))
    server = Server(tokenizer, "toolgram_mistral_v11", "toolgram_mistral_v11")
    ids = tokenizer.encode('[TOOL_CALLS]write_file[ARGS]{"path": "')
    ids += [*tokenizer.spell("[TOOL_CALLS]a[ARGS]{}"), *tokenizer.encode('"}[TOOL_CALLS]get_time[ARGS]{}')]
    for way, heard in heard_everywhere(server, ids, [0]):
        assert heard.calls == [("write_file", '{"path": "[TOOL_CALLS]a[ARGS]{}"}'), ("get_time", "{}")], way


# --- one parser without the other -----------------------------------------------------------------------------------


def test_a_tool_parser_alone_leaves_reasoning_in_the_text() -> None:
    server = Server(Pieces(specials_of("hermes")), "toolgram_hermes", None)
    heard = both_ways(server, _HERMES)
    assert heard.told() == ("<think>Hm.</think>Let me look.", None, _BOTH)


def test_a_reasoning_parser_alone_leaves_calls_in_the_text() -> None:
    server = Server(Pieces(specials_of("hermes")), None, "toolgram_hermes")
    heard = both_ways(server, _HERMES, tools=None)
    assert heard.told() == (_HERMES.partition("</think>")[2], "Hm.", [])


@pytest.mark.parametrize(("tools", "reasoning"), [("toolgram_hermes", "qwen3"), ("hermes", "toolgram_hermes")])
def test_beside_a_parser_of_vllm(tools: str, reasoning: str) -> None:
    server = Server(Pieces(["<|im_end|>"], specials_of("hermes")), tools, reasoning)
    ids = server.tokenizer.encode(_HERMES)
    for heard in (server.whole(ids, server.request(TOOLS)), server.stream(ids, server.request(TOOLS), 1)):
        assert heard.reasoning == "Hm."
        assert [(name, json.loads(arguments)) for name, arguments in heard.calls] == [
            ("get_weather", {"city": "Paris"}),
            ("get_time", {}),
        ]


# --- constraints ----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(toolgram.Format, "export"), reason="this version of toolgram exports no constraints")
@pytest.mark.parametrize("choice", ["required", "get_weather"])
@every_format
def test_a_forced_call_is_held_to_a_grammar_that_xgrammar_takes(name: str, choice: str) -> None:
    import xgrammar
    from vllm.sampling_params import SamplingParams
    from vllm.v1.structured_output.backend_xgrammar import validate_xgrammar_grammar

    # markers that are not special: a tag names a special one by its id, which needs the vocabulary
    server = Server(Pieces([], specials_of(name)), f"toolgram_{name}", f"toolgram_{name}")
    wanted: Any = choice if choice == "required" else {"type": "function", "function": {"name": choice}}
    request = server.adjusted(server.request(TOOLS, tool_choice=wanted), [0])
    tag = request.structured_outputs.structural_tag
    assert tag, "there is an export, and this format has a constraint"
    validate_xgrammar_grammar(SamplingParams(structured_outputs=request.structured_outputs))
    accepts = xgrammar.testing._is_grammar_accept_string
    grammar = xgrammar.Grammar.from_structural_tag(tag)
    assert not accepts(grammar, "No.")
    if name not in WRITERS:
        return
    call = WRITERS[name](Turn("", calls=(("get_weather", {"city": "Paris"}),)))
    ways = {call}  # a grammar may leave out markers that the parser does not need
    for marker in [*specials_of(name), ">>>"]:
        ways |= {way.removeprefix(marker) for way in ways} | {way.removesuffix(marker) for way in ways}
    assert any(accepts(grammar, way) for way in ways), f"the grammar refuses {call}"


# --- what should not stop a server ----------------------------------------------------------------------------------


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
    monkeypatch.setattr(observing.logger, "warning", lambda message, *values: lines.append(message % values))
    server = Server(tokenizer, "toolgram", "toolgram")
    request = server.request(TOOLS)
    for _ in range(3):
        parser = server.parser(server.adjusted(request, [0]), [0])
    assert parser.parse(_HERMES, request, True, [0, 1])[1] == _HERMES
    streamed = server.parser(request, [0])
    delta = streamed.parse_delta(_HERMES, [0], request, [0], finished=True)
    assert delta.content == _HERMES
    assert len(lines) == 1
    assert why in lines[0]


def test_a_parser_that_fails_lets_text_pass(hermes: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolgram.runtime.parser import Parser

    monkeypatch.setattr(Parser, "feed", lambda *args: 1 / 0)
    heard = both_ways(hermes, "Hello.", tool_choice="auto")
    assert heard.content == "Hello."


# --- registration ---------------------------------------------------------------------------------------------------


def test_every_format_is_registered_and_registering_again_changes_nothing() -> None:
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    before = ToolParserManager.list_registered(), ReasoningParserManager.list_registered()
    assert set(plugin.parser_names()) <= set(before[0]) & set(before[1])
    plugin.register()
    plugin.register()
    assert before == (ToolParserManager.list_registered(), ReasoningParserManager.list_registered())


def test_the_plugin_flag_registers_too() -> None:
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    for manager, load in (
        (ToolParserManager, ToolParserManager.import_tool_parser),
        (ReasoningParserManager, ReasoningParserManager.import_reasoning_parser),
    ):
        manager.lazy_parsers.pop("toolgram", None)
        sys.modules.pop("toolgram.integrations.vllm", None)  # as in a process that has not loaded it
        load(plugin.__file__ if OLD else "toolgram.integrations.vllm")
        assert "toolgram" in manager.lazy_parsers


def test_vllms_own_names_are_handed_over_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    for manager in (ToolParserManager, ReasoningParserManager):
        for registry in ("tool_parsers", "reasoning_parsers", "lazy_parsers"):
            if hasattr(manager, registry):
                monkeypatch.setattr(manager, registry, dict(getattr(manager, registry)))
    theirs = ToolParserManager.get_tool_parser("llama3_json")
    assert not theirs.__module__.startswith("toolgram")
    monkeypatch.setenv(plugin.OVERRIDE_VARIABLE, "llama3_json, mistral,qwen3, kimi_k3, unheard_of")
    plugin.register()
    assert ToolParserManager.get_tool_parser("llama3_json").format_name == "llama3_json"
    assert ToolParserManager.get_tool_parser("mistral").format_name == "auto"
    assert ReasoningParserManager.get_reasoning_parser("qwen3").format_name == "auto"
    other = "kimi_k2" if OLD else "kimi_k3"
    assert not ToolParserManager.get_tool_parser(other).__module__.startswith("toolgram")
    assert not ToolParserManager.get_tool_parser("hermes").__module__.startswith("toolgram")


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


def test_the_pair_is_introduced(hermes: Server) -> None:
    parser = hermes.parser(hermes.request(TOOLS), [0])
    assert parser.tool_parser.session is parser.reasoning_parser.session
    assert parser.tool_parser.partner is parser.reasoning_parser


def test_a_pair_that_nobody_introduced_works_from_what_the_other_leaves() -> None:
    from vllm.parser.abstract_parser import DelegatingParser

    from toolgram.integrations import vllm_parsers as parsers

    class Alone(DelegatingParser):  # type: ignore[misc]
        pass

    Alone.reasoning_parser_cls = parsers.ReasoningParser_hermes  # set afterwards: nobody is told
    Alone.tool_parser_cls = parsers.ToolParser_hermes
    server = Server(Pieces(["<|im_end|>"], specials_of("hermes")), "toolgram_hermes", "toolgram_hermes")
    server.parser_cls = Alone
    heard = both_ways(server, _HERMES)
    assert heard.told() == ("Let me look.", "Hm.", _BOTH)


def test_reasoning_budget_markers(hermes: Server) -> None:
    reasoning = hermes.parser(hermes.request(TOOLS), [0]).reasoning_parser
    assert (reasoning.reasoning_start_str, reasoning.reasoning_end_str) == ("<think>", "</think>")
    ids = hermes.tokenizer.encode("<think>Hm.")
    assert not reasoning.is_reasoning_end_streaming(ids, ids[-1:])
    ids += hermes.tokenizer.encode("</think>")
    assert reasoning.is_reasoning_end_streaming(ids, ids[-1:])


def test_formats_without_reasoning_never_wait_for_its_end() -> None:
    for name in FORMATS:
        if not can_reason(name):
            server = Server(Pieces(specials_of(name)), f"toolgram_{name}", f"toolgram_{name}")
            assert server.parser(server.request(TOOLS), [0]).is_reasoning_end([0]) is True
