"""The recipes of docs/export.md, line by line, in the engines themselves: `make test-export-recipes`.

Models with random weights write noise. So a call that comes out valid was made valid by the exported grammar, on its
whole way: export, request, sampler, answer, parser. vLLM's server has no such model on a CPU: its engine says what the
test wrote, and its own matcher of the request's grammar says whether it may.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.export.measuring import tool

DOCS = Path(__file__).parents[2] / "docs" / "export.md"
# Finite: there is an end to whatever the grammar allows.
TOOLS = [tool("get_weather", {"unit": {"enum": ["C", "F"]}}, ["unit"], additionalProperties=False)]


def blocks(language: str, word: str) -> list[str]:
    """The blocks of the guide in a language that contain a word."""
    parts = DOCS.read_text(encoding="utf-8").split("```")[1::2]
    return [part.partition("\n")[2] for part in parts if part.startswith(f"{language}\n") and word in part]


def test_the_recipe_for_the_server_of_llama_cpp(tmp_path: Path) -> None:
    """The lines of a shell. The end of the output gets a bonus, because this model would never stop."""
    for package in ("xllamacpp", "gguf", "mistral_common", "httpx"):
        pytest.importorskip(package, reason="llama.cpp is not here: make test-export-recipes installs it")
    for program in ("jq", "curl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not here")
    from tests.gateway.servers import started
    from tests.gateway.tiny_model import write_model

    (exporting,), (asking,) = blocks("sh", "--target gbnf"), blocks("text", "$SERVER")
    bonus = "n_predict: 2000, seed: 1, logit_bias: [[2, 100]]"
    assert "n_predict: 2000" in asking
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    write_model(tmp_path / "tiny.gguf", ["<|im_end|>"])
    server = ["-m", "tests.gateway.tiny_model", str(tmp_path / "tiny.gguf"), "{port}"]
    with started(server, tmp_path / "server.log") as address:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", exporting + asking.replace("n_predict: 2000", bonus)],
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "SERVER": address,
                 "PROMPT": "Is it raining in Oslo?"},
            cwd=tmp_path, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    output = (tmp_path / "output.txt").read_text(encoding="utf-8")
    assert output.lstrip().startswith("<tool_call>")
    (call,) = json.loads(done.stdout)["tool_calls"]
    assert (call["name"], call["status"]) == ("get_weather", "complete")
    assert json.loads(call["arguments"])["unit"] in ("C", "F")


def test_the_recipe_for_a_server_of_vllm(tmp_path: Path) -> None:
    """The server says a call that the grammar allows, and is not allowed to say an answer without one."""
    for package in ("vllm.parser", "openai"):
        pytest.importorskip(package, reason="vLLM is not here: make test-export-recipes installs it")
    import openai

    from tests.integrations.http_fleet import Fleet, make_models
    from tests.integrations.scripted_engine import REFUSED

    (recipe,) = blocks("python", "client.chat.completions.create")
    assert 4 <= len(recipe.splitlines()) <= 15
    (model,) = make_models(["Qwen3"], tmp_path)
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"unit": "C"}}\n</tool_call>'
    numbers = [model.number(model.script(text)) for text in (call, "It is raining.")]
    model.write()
    heard = []
    with Fleet([model], tmp_path, (), {"plain": []}) as fleet:
        for number in numbers:
            known: dict[str, Any] = {
                "fmt": toolgram.get_format("hermes"),
                "tools": TOOLS,
                "client": openai.OpenAI(base_url=f"http://127.0.0.1:{fleet.ports['plain']}/v1", api_key="x"),
                "model": "model",
                "chat": [{"role": "user", "content": f"Say script {number} by 3."}],
            }
            exec(compile(recipe, "docs/export.md", "exec"), known)
            heard.append((known["said"].choices[0].message.content, known["message"].tool_calls))
    (written, [called]), (refused, none) = heard
    assert (written, called.name, json.loads(called.arguments)) == (call, "get_weather", {"unit": "C"})
    assert REFUSED in refused
    assert not none
