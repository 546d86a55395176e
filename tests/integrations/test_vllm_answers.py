"""The plug-in in vLLM's own serving layer: request adjustment, detokenizer, stream processor, assembly.

Needs the environment that `make test-vllm` builds; everywhere else this module skips, and `test_vllm_plugin.py` drives
the plug-in through a stand-in.  What every path has to give is the package's own whole-text parse of the same text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm` builds an environment with it")


import toolgram
from tests.integrations.cases import TOOLS, cases
from tests.integrations.tokenizers_for_tests import Pieces, llama3, mistral
from tests.integrations.vllm_driver import WHOLE, Server
from tests.integrations.vllm_ways import OLD, heard_everywhere, marked, meant_ways, specials_of, told
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
        written = case.text.replace("[ARGS]", "") if is_mistral and OLD else case.text  # as docs/vllm.md says of 0.24
        assert "".join(text.split()) == "".join(written.split()), "the tokenizer gives back what was written"
        message = fmt.parse(text, TOOLS, case.prefix, case.finish)
        for way, heard in heard_everywhere(server, ids, prompt, case.finish):
            runs += 1
            if heard.told() != told(message):
                wrong.append((case.label, way, heard.told(), told(message)))
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
        meant = meant_ways(fmt, probe.output, opened.opened, "stop")
        for way, heard in heard_everywhere(server, ids, prompt, groups=(1, 3, WHOLE)):
            runs += 1
            wanted = meant[way != "whole"]
            if heard.told() != wanted:
                wrong.append((probe.case, probe.prompt, way, heard.told(), wanted))
    assert not wrong, f"{len(wrong)} of {runs} runs, first {wrong[0]}"
