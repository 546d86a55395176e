"""The SGLang plug-in: in the real package where it is installed (`make test-sglang`), and in a stand-in elsewhere.

What a request gets from the pair of detectors has to be what the package's own parse makes of the text, whole and
streamed, for the case that an output was cut off: a detector is not told why it ended.
"""

import importlib.util
import logging
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolgram
from tests.integrations import sglang_stand_in
from tests.integrations.cases import TOOLS, cases
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.vllm_heard import Heard
from tests.json_prefix import is_json
from tests.properties.selection import every_format
from tests.strategies import outputs

REAL = importlib.util.find_spec("sglang") is not None
SIZES = (1, 4, 10_000)
CHATML = (Path(__file__).parents[1] / "gateway" / "chatml.jinja").read_text(encoding="utf-8")

pytestmark = pytest.mark.filterwarnings("default")


@pytest.fixture(scope="module", autouse=True)
def sglang() -> Iterator[None]:
    if REAL:
        import_module("tests.integrations.sglang_server").declare_operators()
        import_module("sglang.srt.plugins").load_plugins()
        yield
        return
    with sglang_stand_in.installed():
        import_module("toolgram.integrations.sglang").register()
        yield


def function_call_parser() -> Any:
    return import_module("sglang.srt.function_call.function_call_parser").FunctionCallParser


def reasoning_parser() -> Any:
    return import_module("sglang.srt.parser.reasoning_parser").ReasoningParser


def declared(tools: list[Any] = TOOLS) -> list[Any]:
    if REAL:
        kind = import_module("sglang.srt.entrypoints.openai.protocol").Tool
        return [kind.model_validate(tool) for tool in tools]
    return [SimpleNamespace(type="function", function=SimpleNamespace(**tool["function"])) for tool in tools]


class Pair:
    """Both parsers of one answer, called in SGLang's order."""

    def __init__(self, name: str, tokenizer: Any = None, thinks: bool | None = None, calls: bool = True) -> None:
        self.tools = declared() if calls else []
        self.calls = function_call_parser()(self.tools, name, tokenizer=tokenizer)
        options = {"tokenizer": tokenizer, "tool_call_parser_active": calls}
        self.thoughts = reasoning_parser()(name, force_reasoning=thinks, **options)

    def whole(self, text: str) -> tuple[str, str, list[tuple[str, str]]]:
        thought, rest = self.thoughts.parse_non_stream(text)
        if self.tools and self.calls.has_tool_call(rest):
            rest, items = self.calls.parse_non_stream(rest)
            return rest, thought, [(item.name, item.parameters) for item in items]
        return rest, thought, []

    def streamed(self, text: str, size: int) -> tuple[str, str, list[tuple[str, str]]]:
        heard = Heard("", "")
        pieces: list[str | None] = [text[at : at + size] for at in range(0, len(text), size)]
        for piece in [*pieces, None]:
            end = piece is None
            thought, rest = self.thoughts.parse_stream_end() if end else self.thoughts.parse_stream_chunk(piece)
            heard.say(reasoning=thought)
            results = [self.calls.parse_stream_chunk(rest)] if rest else []
            for normal_text, items in [*results, *([self.calls.parse_stream_end()] if end else [])]:
                heard.say(normal_text)
                for item in items:
                    if item.tool_index == len(heard.calls):
                        assert item.name
                        heard.begin("", item.name)
                    else:
                        assert item.name is None
                    heard.go_on(item.parameters, item.tool_index)
        return heard.content or "", heard.reasoning or "", heard.calls


def test_the_entry_point() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    module, _, function = project["entry-points"]["sglang.srt.plugins"]["toolgram"].partition(":")
    assert callable(getattr(import_module(module), function))


def test_every_format_is_among_the_names() -> None:
    names = {"toolgram", *(f"toolgram_{name}" for name in toolgram.format_names())}
    import_module("toolgram.integrations.sglang").register()  # again changes nothing
    for listed in (
        import_module("sglang.srt.function_call.parser_names").TOOL_CALL_PARSER_NAMES,
        import_module("sglang.srt.parser.reasoning_parser_names").REASONING_PARSER_NAMES,
        list(function_call_parser().ToolCallParserEnum),
        list(reasoning_parser().DetectorMap),
    ):
        assert names <= set(listed)
        assert len(listed) == len(set(listed))


@every_format
def test_every_case(name: str) -> None:
    fmt = toolgram.get_format(name)
    for case in cases(name):
        opened = bool(case.prefix)
        said = fmt.parse(case.text, TOOLS, case.prefix, "length")
        calls = [(call.name, call.arguments) for call in said.tool_calls]
        wanted = (_without_blanks(said.content), _without_blanks(said.reasoning), calls)
        heard = [Pair(f"toolgram_{name}", thinks=opened).whole(case.text)]
        heard += [Pair(f"toolgram_{name}", thinks=opened).streamed(case.text, size) for size in SIZES]
        for each in heard:
            assert (_without_blanks(each[0]), _without_blanks(each[1]), each[2]) == wanted, case.label


def _without_blanks(text: str | None) -> str:
    """Two readers, one behind the other, do not agree with one on the blanks between parts of a text."""
    return "".join((text or "").split())


@every_format
@settings(max_examples=40)
@given(data=st.data())
def test_streams_do_not_depend_on_the_cuts(name: str, data: st.DataObject) -> None:
    text = data.draw(outputs(name))
    first, second = (Pair(f"toolgram_{name}").streamed(text, size) for size in (1, 7))
    assert first == second
    whole = Pair(f"toolgram_{name}").whole(text)
    complete = [call for call in first[2] if is_json(call[1])]
    if not toolgram.get_format(name).parse(text, TOOLS, finish_reason="stop").malformed:
        assert [call for call in whole[2] if is_json(call[1])] == complete
    assert whole[1] == first[1]


def test_a_call_that_only_tools_make_one() -> None:
    """SGLang asks whether there is a call before it says what is declared."""
    text = '>>>get_time\n{"zone": "\\d"}>>>all\nSure.'
    wanted = [("get_time", '{"zone": "\\\\d"}')]
    assert Pair("toolgram_functionary_v3_2").whole(text)[2] == wanted
    assert Pair("toolgram_functionary_v3_2").streamed(text, 4)[2] == wanted


CALL = ("get_time", '{"zone": "UTC"}')
HERMES = '<tool_call>\n{"name": "get_time", "arguments": {"zone": "UTC"}}\n</tool_call>'


def test_without_a_reasoning_parser_reasoning_stays_in_the_content() -> None:
    for thought in ("<think>\nHm.\n</think>\n\nHello.", "Hm.</think>Hello."):  # the prompt may have begun it
        parser = function_call_parser()(declared(), "toolgram_hermes")
        content, calls = parser.parse_non_stream(f"{thought} {HERMES}")
        assert content == thought
        assert [(call.name, call.parameters) for call in calls] == [CALL]


def test_without_tools_a_call_is_text() -> None:
    pair = Pair("toolgram_hermes", calls=False)
    assert pair.whole(f"<think>Hm.</think>Hello. {HERMES}") == (f"Hello. {HERMES}", "Hm.", [])


def test_text_behind_a_call_comes_in_the_next_result() -> None:
    parser = function_call_parser()(declared(), "toolgram_hermes")
    begun = HERMES[:-15]
    parser.parse_stream_chunk(begun)
    text, calls = parser.parse_stream_chunk(HERMES[len(begun) :] + " And that was that.")
    assert text == ""
    assert "".join(call.parameters for call in calls)
    assert parser.parse_stream_chunk("!") == ("And that was that.!", [])


@pytest.mark.parametrize(
    ("thinks", "text", "wanted"),
    [
        (True, "<think>\nHm.\n</think>\n\nHello.", ("Hello.", "Hm.")),
        (False, "Hello.", ("Hello.", "")),
        (None, "<think>\nHm.\n</think>\n\nHello.", ("Hello.", "Hm.")),
    ],
)
def test_the_format_of_a_chat_template(thinks: bool | None, text: str, wanted: tuple[str, str]) -> None:
    tokenizer = Pieces(["<|im_start|>", "<|im_end|>"], chat_template=CHATML, eos_token="<|im_end|>")
    pair = Pair("toolgram", tokenizer, thinks)
    assert pair.thoughts.detector.reasoning_default == "enable_thinking"
    content, thought, _ = pair.whole(text)
    assert (content, thought.strip()) == wanted
    heard = Pair("toolgram", tokenizer, thinks).streamed(text + HERMES, 5)
    assert (heard[0], heard[1].strip(), heard[2]) == (*wanted, [CALL])


def test_without_a_tokenizer_there_is_no_format_and_text_passes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert Pair("toolgram").whole(HERMES) == Pair("toolgram").streamed(HERMES, 5) == (HERMES, "", [])


def test_reasoning_that_is_sent_when_all_of_it_is_there() -> None:
    parser = reasoning_parser()("toolgram_hermes", stream_reasoning=False, tool_call_parser_active=True)
    heard = [parser.parse_stream_chunk(piece) for piece in ("<think>H", "m", ".</thi", "nk>Hello", ".")]
    assert [each[0] for each in heard if each[0]] == ["Hm."]
    assert "".join(each[1] for each in [*heard, parser.parse_stream_end()]) == "Hello."


def test_an_answer_of_nothing_but_reasoning_can_be_content() -> None:
    request = SimpleNamespace(chat_template_kwargs={"force_nonempty_content": True})
    assert reasoning_parser()("toolgram_hermes", request=request).parse_non_stream("<think>Hm.") == ("", "Hm.")
    parser = reasoning_parser()("toolgram_hermes", request=request)
    heard = [*map(parser.parse_stream_chunk, ("<think>H", "m.")), parser.parse_stream_end()]
    assert "".join(each[1] for each in heard) == "Hm."


def test_a_request_is_prepared() -> None:
    detectors = import_module("toolgram.integrations.sglang_detectors")
    tokenizer = Pieces(["[THINK]", "[/THINK]", "[TOOL_CALLS]", "[ARGS]"])
    detector = reasoning_parser()("toolgram_mistral_v11", tokenizer=tokenizer).detector
    since = bool(detectors.IN_GRAMMAR)  # releases before it hold no output from its first token

    def prepared(detector: Any, choice: Any, parallel: bool = True, **other: Any) -> tuple[bool, bool]:
        asked = {"tools": declared(), "tool_choice": choice, "parallel_tool_calls": parallel, "response_format": None}
        more = {"skip_special_tokens": True, "chat_template_kwargs": None, "custom_params": {"mine": 1}, **other}
        request = SimpleNamespace(**{**asked, **more})
        detectors.prepare_request(None, SimpleNamespace(_reasoning_detector=detector), request)
        assert request.custom_params.pop("mine") == 1
        return request.skip_special_tokens, request.custom_params.get(detectors.IN_GRAMMAR, False)

    assert prepared(None, "required") == (True, False)
    assert [prepared(detector, choice) for choice in ("auto", "none")] == [(False, False)] * 2
    assert [prepared(detector, choice) for choice in ("required", SimpleNamespace())] == [(False, since)] * 2
    assert prepared(detector, "auto", parallel=False) == (False, since)
    for name in ("regex", "ebnf"):  # SGLang's own grammar for it begins after a thought
        assert prepared(detector, "auto", parallel=False, **{name: "x"}) == (False, False)
    form = SimpleNamespace(type="json_object")
    # The stand-in has no tag if xgrammar cannot be imported, as it cannot without torch.
    assert prepared(detector, "auto", response_format=form) in {(False, since), (False, since and REAL)}
    assert prepared(detector, "required", response_format=form) == (False, False)  # SGLang refuses both at once
    assert prepared(detector, "auto", response_format=SimpleNamespace(type="text")) == (False, False)


def test_both_names_of_a_switch_are_one() -> None:
    """SGLang asks for one variable of a template that reads two."""
    template = "{% set thinking = thinking if thinking is defined else enable_thinking %}" + CHATML
    template += "{% if add_generation_prompt %}<|im_start|>assistant\n{{ '<think>' if thinking }}{% endif %}"
    tokenizer = Pieces(["<think>", "</think>"])
    tokenizer.chat_template = template
    detector = reasoning_parser()("toolgram", tokenizer=tokenizer).detector
    assert detector.served.analysis.switch == "enable_thinking"
    prepare = import_module("toolgram.integrations.sglang_detectors").prepare_request
    cases: list[Any] = [({"thinking": True}, True), ({"thinking": "yes"}, None), ({"think": True}, None), (None, None)]
    for said, wanted in cases:
        asked = {"skip_special_tokens": True, "tools": None, "tool_choice": "none", "parallel_tool_calls": True}
        request = SimpleNamespace(**asked, chat_template_kwargs=said)
        prepare(None, SimpleNamespace(_reasoning_detector=detector), request)
        assert (request.chat_template_kwargs or {}).get("enable_thinking") is wanted


def test_a_registry_that_changed_is_a_warning(caplog: pytest.LogCaptureFixture, monkeypatch: Any) -> None:
    monkeypatch.delattr("sglang.srt.function_call.parser_names.TOOL_CALL_PARSER_NAMES")
    with caplog.at_level(logging.WARNING):
        import_module("toolgram.integrations.sglang").register()
    assert "toolgram cannot be registered with SGLang" in caplog.text
