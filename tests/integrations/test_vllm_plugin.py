"""The vLLM plug-in without vLLM: registration, and the pair of parsers driven through a stand-in."""

import asyncio
import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from types import SimpleNamespace
from typing import Any

import pytest

import toolgram
from tests.integrations import stand_in
from tests.integrations.cases import TOOLS, cases, meant
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.vllm_heard import Heard
from tests.properties.selection import every_format

FORMATS = toolgram.format_names()
GROUPS = (0, 1, 4)


@pytest.fixture
def vllm() -> Iterator[Any]:
    with stand_in.installed() as module:
        import_module("toolgram.integrations.vllm")  # which registers the names, as --tool-parser-plugin needs it
        yield module


def hear(tokenizer: Any, kind: Any, ids: list[int], request: Any, prompt: list[int], group: int) -> tuple[Any, ...]:
    """What a client adds up from a stream; `group` 0 is one delta."""
    heard = Heard()
    parser = kind(tokenizer, request.tools)
    starts = range(0, len(ids), group or len(ids))
    for start in starts:
        some = ids[start : start + (group or len(ids))]
        delta = parser.parse_delta(tokenizer.decode(some), some, request, prompt, finished=start == starts[-1])
        heard.say(*((delta.content, delta.reasoning) if delta else ()))
        for call in delta.tool_calls if delta else ():
            if call.index == len(heard.calls):
                assert call.id
                assert call.type == "function"
                heard.begin(call.id, call.function.name)
            else:
                assert not call.function.name
            heard.go_on(call.function.arguments or "", call.index)
    return heard.content if (heard.content or "").strip() else None, heard.reasoning, heard.calls


@every_format
def test_every_case(name: str, vllm: Any) -> None:
    specials = list(toolgram.get_format(name).program.special.values())
    tokenizer = Pieces(specials, size=2)
    kind = stand_in.compose(f"toolgram_{name}", f"toolgram_{name}")
    for case in cases(name):
        message = meant(case)
        ids = tokenizer.encode(case.text)
        prompt = [*tokenizer.encode("Hi"), tokenizer.eos_token_id, *tokenizer.encode(case.prefix)]
        limit = {"max_tokens": len(ids)} if case.finish == "length" else {}
        request = stand_in.request(TOOLS, **limit)
        calls = [(call.name, call.arguments) for call in message.tool_calls]
        for group in GROUPS:
            heard = hear(tokenizer, kind, ids, request, prompt, group)
            assert heard == (message.content, message.reasoning, calls), (case.label, group)
        parser = kind(tokenizer, request.tools)
        parser.set_prompt_token_ids(prompt)
        reasoning, content, found = parser.parse(case.text, request, True, ids)
        assert (content, reasoning, [call[1:] for call in found]) == (message.content, message.reasoning, calls)


@pytest.fixture
def hermes(vllm: Any) -> tuple[Any, Any]:
    specials = [*toolgram.get_format("hermes").program.special.values()]
    return Pieces(specials), stand_in.compose("toolgram_hermes", "toolgram_hermes")


_TEXT = '<think>Hm.</think>So:\n<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>'


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_heard_without_tools_of_one_parser_and_of_quoted_markers(hermes: tuple[Any, Any], group: int) -> None:
    tokenizer, kind = hermes
    ids, calls = tokenizer.encode(_TEXT), [("get_time", "{}")]
    for request in (stand_in.request(None), stand_in.request(TOOLS, tool_choice="none")):
        assert hear(tokenizer, kind, ids, request, [0], group) == (_TEXT.partition("</think>")[2], "Hm.", [])
    ids = [*tokenizer.spell("<think> and <tool_call> are markers. "), *ids]
    heard = hear(tokenizer, kind, ids, stand_in.request(TOOLS), [0], group)
    assert heard == ("<think> and <tool_call> are markers. So:", "Hm.", calls)
    tokenizer, kind = Pieces(size=3), stand_in.compose("toolgram_hermes", None)
    heard = hear(tokenizer, kind, tokenizer.encode("Oh. " + _TEXT), stand_in.request(TOOLS), [0], group)
    assert heard == ("Oh. <think>Hm.</think>So:", None, calls)


def test_special_tokens_stay_in_the_text_where_they_are_needed(hermes: tuple[Any, Any]) -> None:
    tokenizer, kind = hermes
    parser = kind(tokenizer, stand_in.request(TOOLS).tools)
    request = parser.tool_parser.adjust_request(stand_in.request(TOOLS, spaces_between_special_tokens=True))
    assert (request.skip_special_tokens, request.spaces_between_special_tokens) == (False, False)
    assert parser.tool_parser.adjust_request(stand_in.request(None)).skip_special_tokens is True
    plain = kind(Pieces(), None).tool_parser
    assert plain.adjust_request(stand_in.request(TOOLS)).skip_special_tokens is True, "there are none"


def test_the_tools_of_both_apis_are_understood(vllm: Any) -> None:
    kind = import_module("toolgram.integrations.vllm_parsers").ToolParser_qwen3_coder
    function = {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
    flat, nested = SimpleNamespace(**function), SimpleNamespace(function=SimpleNamespace(**function))
    for tool in (flat, nested):
        parser = kind(Pieces(), [tool])
        text = "<tool_call>\n<function=f>\n<parameter=n>\n2\n</parameter>\n</function>\n</tool_call>"
        found = parser.extract_tool_calls(text, SimpleNamespace(tool_choice="auto"))
        assert [call.function.arguments for call in found.tool_calls] == ['{"n": 2}']


def test_reasoning_tokens_are_counted_once(hermes: tuple[Any, Any]) -> None:
    for tokenizer in (hermes[0], Pieces(size=1)):
        reasoning = hermes[1](tokenizer, None).reasoning_parser
        reasoning.set_prompt_token_ids([0])
        ids = tokenizer.encode("<think>Hm, well.</think>Yes <think>!</think>")
        growing = [reasoning.count_reasoning_tokens(ids[:end]) for end in range(len(ids) + 1)]
        assert growing == sorted(growing)
        assert abs(growing[-1] - len("Hm, well.!")) <= (0 if "<think>" in tokenizer.get_added_vocab() else 2)


def test_a_failing_parser_lets_text_pass(hermes: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    tokenizer, kind = hermes
    monkeypatch.setattr("toolgram.runtime.parser.Parser.feed", lambda *args: 1 / 0)
    with caplog.at_level(logging.ERROR, logger="vllm.toolgram"):
        heard = hear(tokenizer, kind, tokenizer.encode("Hello."), stand_in.request(TOOLS), [0], 1)
    assert heard == ("Hello.", None, [])
    assert len(caplog.records) == 1


# --- registration ---------------------------------------------------------------------------------------------------


def test_every_name_is_registered_once_and_loaded_on_demand(vllm: Any) -> None:
    tools = import_module("vllm.tool_parsers").ToolParserManager
    expected = ["toolgram", *(f"toolgram_{name}" for name in FORMATS)]
    import_module("toolgram.integrations.vllm").register()
    for manager in (tools, import_module("vllm.reasoning").ReasoningParserManager):
        assert manager.list_registered() == sorted(expected)
    assert "toolgram.integrations.vllm_parsers" not in sys.modules
    assert [tools.get(name).format_name for name in expected] == ["auto", *FORMATS]


def test_names_of_vllm_are_taken_if_asked(vllm: Any, monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    tools = import_module("vllm.tool_parsers").ToolParserManager
    tools.register_lazy_module("mistral", "theirs", "Theirs")
    tools.register_lazy_module("kimi_k3", "theirs", "Theirs")
    tools.tool_parsers["pythonic"] = object  # loaded already
    monkeypatch.setenv("TOOLGRAM_VLLM_OVERRIDE", "mistral, pythonic,kimi_k3,,nonsense")
    with caplog.at_level(logging.WARNING, logger="vllm.toolgram"):
        import_module("toolgram.integrations.vllm").register()
    assert tools.get("mistral").format_name == "auto"
    assert tools.get("pythonic").format_name == "llama4_pythonic"
    assert tools.lazy_parsers["kimi_k3"] == ("theirs", "Theirs")
    assert "nonsense" not in tools.list_registered()
    assert [word for word in ("kimi_k3", "nonsense") if word not in caplog.text] == []


def test_silent_without_vllm() -> None:
    code = (
        "import sys; sys.modules['vllm'] = None\n"
        "from toolgram.integrations.vllm import register\nregister(); register()\n"
        "assert not any(name.startswith('toolgram.integrations.vllm_') for name in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_registry_that_fails_is_a_warning(vllm: Any, caplog: pytest.LogCaptureFixture) -> None:
    del import_module("vllm.tool_parsers").ToolParserManager.register_lazy_module
    with caplog.at_level(logging.WARNING, logger="vllm.toolgram"):
        import_module("toolgram.integrations.vllm").register()
    assert "cannot be registered" in caplog.text


def test_a_moved_module_is_said_plainly() -> None:
    with stand_in.installed("vllm.somewhere.new"), pytest.raises(ImportError, match=r"(?s)DeltaMessage.*0\.33\.0"):
        import_module("toolgram.integrations.vllm_surface")


def test_the_entry_point_is_declared() -> None:
    found = [each.value for each in entry_points(group="vllm.general_plugins", name="toolgram")]
    if not found:
        pytest.skip("this installation is older than the entry point: pip install -e . again")
    assert found == ["toolgram.integrations.vllm:register"]


def test_a_request_is_adjusted_beside_the_event_loop(vllm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loop goes on while that takes its time; after it the request is as it has to be, and an error is raised."""
    kind = stand_in.compose("toolgram_hermes", "toolgram_hermes")
    renderer = import_module("vllm.renderers.online_renderer").OnlineRenderer()
    request = stand_in.request(TOOLS)
    loop_went_on = threading.Event()

    def adjust(self: Any, asked: Any) -> Any:
        if asked is not request:
            raise ValueError("refused")
        asked.in_time = loop_went_on.wait(5)
        return asked

    monkeypatch.setattr(stand_in.ToolParser, "adjust_request", adjust)

    async def serve() -> None:
        asyncio.get_running_loop().call_later(0.01, loop_went_on.set)
        made = await renderer.preprocess_chat(request, kind, Pieces())
        assert made == ([], [{"prompt_token_ids": [0]}])
        assert request.in_time
        with pytest.raises(ValueError, match="refused"):
            await renderer.preprocess_chat(stand_in.request(TOOLS), kind, Pieces())

    asyncio.run(serve())
    assert kind(Pieces(), request.tools).adjust_request(request) is request, "and at once where nobody waits"


def test_a_vllm_that_is_too_old_gives_one_line_and_no_names(caplog: pytest.LogCaptureFixture) -> None:
    with stand_in.installed() as vllm, caplog.at_level(logging.WARNING, logger="vllm.toolgram"):
        vars(vllm)["__version__"] = "0.23.1"
        tools = import_module("vllm.tool_parsers")
        vars(tools)["ToolParser"] = type("ToolParser", (), {})
        import_module("toolgram.integrations.vllm").register()
        assert "toolgram" not in tools.ToolParserManager.list_registered()
    (said,) = [record.getMessage() for record in caplog.records if "toolgram" in record.getMessage()]
    assert "0.23.1" in said, "once, though the module and vLLM both register the names"
    assert "0.31 or newer" in said
