"""The plug-in in vLLM's own serving layer: request adjustment, detokenizer, stream processor, assembly; and the members
that vLLM reads, and what must not stop a server.

Needs the environment that `make test-vllm` builds; everywhere else this module skips, and `test_vllm_plugin.py` drives
the plug-in through a stand-in.  What every path has to give is the package's own whole-text parse of the same text.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm` builds an environment with it")

import toolgram
from tests.integrations import vllm_ways as ways
from tests.integrations.cases import TOOLS, can_reason, cases
from tests.integrations.tokenizers_for_tests import Pieces, llama3, mistral
from tests.integrations.vllm_driver import WHOLE, Server
from toolgram.integrations import observing
from toolgram.integrations.served import served

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
    assert parser.parse(ways.HERMES, request, True, [0, 1])[1] == ways.HERMES
    streamed = server.parser(request, [0])
    delta = streamed.parse_delta(ways.HERMES, [0], request, [0], finished=True)
    assert delta.content == ways.HERMES
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
        for name in (each for each in names.split() if hasattr(base, each) or not ways.OLD):
            theirs = inspect.signature(getattr(base, name)).parameters
            here = inspect.signature(getattr(ours, name)).parameters
            assert [each for each in here if each in theirs or not ways.OLD] == list(theirs), name
    for name in ("engine_based_streaming", "supports_required_and_named", "structural_tag_model"):
        assert hasattr(ToolParser, name)


def test_a_pair_that_nobody_introduced_works_from_what_the_other_leaves() -> None:
    from vllm.parser.abstract_parser import DelegatingParser

    from toolgram.integrations import vllm_parsers as parsers

    class Alone(DelegatingParser):  # type: ignore[misc]
        pass

    Alone.reasoning_parser_cls = parsers.ReasoningParser_hermes  # set afterwards, so that nothing knows of it
    Alone.tool_parser_cls = parsers.ToolParser_hermes
    server = Server(Pieces(["<|im_end|>"], ways.specials_of("hermes")), "toolgram_hermes", "toolgram_hermes")
    server.parser_cls = Alone
    heard = ways.both_ways(server, ways.HERMES)
    assert heard.told() == ("Let me look.", "Hm.", ways.BOTH)


def test_formats_without_reasoning_never_wait_for_its_end() -> None:
    for name in FORMATS:
        if not can_reason(name):
            server = Server(Pieces(ways.specials_of(name)), f"toolgram_{name}", f"toolgram_{name}")
            assert server.parser(server.request(TOOLS), [0]).is_reasoning_end([0]) is True
