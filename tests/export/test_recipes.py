"""The recipes of docs/export.md, line by line, in the engines themselves: `make test-export-recipes`.

Models with random weights write noise. So a call that comes out valid was made valid by the exported grammar, on its
whole way: export, request, sampler, answer, parser. vLLM has no such model on a CPU: its engine says what the test
wrote, and its own matcher of the request's grammar says whether it may.
"""

import json
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.export.measuring import tool

DOCS = Path(__file__).parents[2] / "docs" / "export.md"
LLAMA = Path(__file__).parents[2] / ".llama-chat"
# Finite: there is an end to whatever the grammar allows.
TOOLS = [tool("get_weather", {"unit": {"enum": ["C", "F"]}}, ["unit"], additionalProperties=False)]


def blocks(language: str, word: str) -> list[str]:
    """The blocks of the guide in a language that contain a word."""
    parts = DOCS.read_text(encoding="utf-8").split("```")[1::2]
    return [part.partition("\n")[2] for part in parts if part.startswith(f"{language}\n") and word in part]


def run_in_shell(lines: str, folder: Path, **names: str) -> None:
    """Run lines as a user's shell does, and check that what toolgram has read is the one call."""
    environment = {**os.environ, **names, "PATH": f"{Path(sys.executable).parent}:{names['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],
        env=environment, cwd=folder, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (folder / "output.txt").read_text(encoding="utf-8").lstrip().startswith("<tool_call>")
    (call,) = json.loads(done.stdout)["tool_calls"]
    assert (call["name"], call["status"]) == ("get_weather", "complete")
    assert json.loads(call["arguments"])["unit"] in ("C", "F")


@pytest.fixture
def tiny(tmp_path: Path) -> tuple[Path, str]:
    """A model of llama.cpp, and the lines that export a grammar beside it."""
    for package in ("gguf", "mistral_common", "httpx"):
        pytest.importorskip(package, reason="llama.cpp is not here: make test-export-recipes installs it")
    from tests.gateway.tiny_model import write_model

    (tmp_path / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    write_model(tmp_path / "model.gguf", ["<|im_end|>"])
    (exporting,) = blocks("sh", "--target gbnf")
    return tmp_path, exporting


PROMPT = "Is it raining in Oslo?"


def test_the_recipe_for_llama_cpp(tiny: tuple[Path, str]) -> None:
    """The end of the output gets a bonus, because this model would never stop."""
    if not (LLAMA / "llama-completion").exists():
        pytest.skip("llama.cpp is not here: make test-export-recipes builds it")
    folder, exporting = tiny
    (running,) = blocks("text", "llama-completion")
    assert "-n 2000" in running
    lines = exporting + running.replace("-n 2000", "-n 2000 --seed 1 --logit-bias 2+100")
    run_in_shell(lines, folder, PROMPT=PROMPT, PATH=f"{LLAMA}:{os.environ['PATH']}")


def test_the_recipe_for_the_server_of_llama_cpp(tiny: tuple[Path, str]) -> None:
    pytest.importorskip("xllamacpp", reason="llama.cpp's server is not here: make test-export-recipes installs it")
    for program in ("jq", "curl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not here")
    from tests.gateway.servers import started

    folder, exporting = tiny
    (asking,) = blocks("text", "$SERVER")
    assert "n_predict: 2000" in asking
    lines = exporting + asking.replace("n_predict: 2000", "n_predict: 2000, seed: 1, logit_bias: [[2, 100]]")
    server = ["-m", "tests.gateway.tiny_model", str(folder / "model.gguf"), "{port}"]
    with started(server, folder / "server.log") as address:
        run_in_shell(lines, folder, SERVER=address, PROMPT=PROMPT, PATH=os.environ["PATH"])


CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"unit": "C"}}\n</tool_call>'


def ran(recipe: str, **known: Any) -> dict[str, Any]:
    """The names that a recipe has made, from those that the guide has made before it."""
    assert 4 <= len(recipe.splitlines()) <= 15
    known = {"fmt": toolgram.get_format("hermes"), "tools": TOOLS, **known}
    exec(compile(recipe, "docs/export.md", "exec"), known)
    return known


def asked(number: int) -> list[dict[str, str]]:
    """A chat that has vLLM's engine say a script."""
    return [{"role": "user", "content": f"Say script {number} by 3."}]


@pytest.fixture
def scripted(tmp_path: Path) -> tuple[Any, list[int]]:
    """A model of vLLM's that says a call, and an answer without one."""
    import_module("tests.integrations.http_server")  # first: sets what vLLM asks of its environment
    for package in ("vllm.parser", "openai"):
        pytest.importorskip(package, reason="vLLM is not here: make test-export-recipes installs it")
    from tests.integrations.http_fleet import make_models

    (model,) = make_models(["Qwen3"], tmp_path)
    numbers = [model.number(model.script(text)) for text in (CALL, "It is raining.")]
    model.write()
    return model, numbers


def check_scripted(first: tuple[str, Any], second: tuple[str, Any]) -> None:
    """The engine said the call that the grammar allows, and was not allowed to say an answer without one."""
    from tests.integrations.scripted_engine import REFUSED

    (written, [called]), (refused, none) = first, second
    assert (written, called.name, json.loads(called.arguments)) == (CALL, "get_weather", {"unit": "C"})
    assert REFUSED in refused
    assert not none


def test_the_recipe_for_a_server_of_vllm(scripted: tuple[Any, list[int]], tmp_path: Path) -> None:
    import openai

    from tests.integrations.http_fleet import Fleet

    (recipe,) = blocks("python", "client.chat.completions.create")
    (model, numbers), heard = scripted, []
    with Fleet([model], tmp_path, (), {"plain": []}) as fleet:
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{fleet.ports['plain']}/v1", api_key="x")
        for number in numbers:
            made = ran(recipe, client=client, model="model", chat=asked(number))
            heard.append((made["said"].choices[0].message.content, made["message"].tool_calls))
    check_scripted(*heard)


def test_the_recipe_for_vllm_without_a_server(scripted: tuple[Any, list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    import vllm
    from vllm.v1.engine.core_client import EngineCoreClient

    from tests.integrations.scripted_engine import OfflineCore

    monkeypatch.setattr(EngineCoreClient, "make_client", staticmethod(OfflineCore.make))
    made = toolgram.get_format("hermes").export("structural_tag", TOOLS, "required")
    (recipe,) = blocks("python", "vllm.LLM(model)")
    (model, numbers), heard = scripted, []
    for number in numbers:
        known = ran(recipe, vllm=vllm, made=made, model=str(model.folder), chat=asked(number))
        heard.append((known["said"].outputs[0].text, known["message"].tool_calls))
    check_scripted(*heard)


def test_the_recipe_for_a_server_of_sglang(tmp_path: Path) -> None:
    """SGLang computes a model of random weights on a CPU."""
    pytest.importorskip("tests.integrations.sglang_server", reason="transformers is not here")
    pytest.importorskip("sglang", reason="SGLang is not here: make test-export-recipes installs it")
    import httpx
    from transformers import AutoTokenizer

    from tests.gateway.servers import started
    from tests.integrations.sglang_server import write_model

    template = (Path(__file__).parents[1] / "gateway" / "chatml.jinja").read_text(encoding="utf-8")
    path = tmp_path / "model"
    write_model(path, template, ["<|im_start|>"], ["<tool_call>", "</tool_call>", "<think>", "</think>"])
    command = ["-m", "tests.integrations.sglang_server", "--model-path", str(path), "--port", "{port}"]
    (recipe,) = blocks("python", "/generate")
    made = toolgram.get_format("hermes").export("structural_tag", TOOLS, "required", reasoning=False)
    tokenizer = AutoTokenizer.from_pretrained(path)
    chat = [{"role": "user", "content": "Is it raining in Oslo?"}]
    with started(command, tmp_path / "server.log", 400) as address:
        known = ran(recipe, httpx=httpx, address=address, made=made, tokenizer=tokenizer, chat=chat)
    calls = known["message"].tool_calls
    assert calls
    assert {(call.name, call.status) for call in calls} == {("get_weather", "complete")}
