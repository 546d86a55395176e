"""The model of a gateway from what is at hand: files, a GGUF file, the server; and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import toolgram
from tests.gateway.servers import TEMPLATE
from toolgram.cli.app import app
from toolgram.gateway.engine import Found
from toolgram.gateway.loading import TemplateFiles, from_gguf, from_model_files, load_model

TOKENS = {
    "bos_token": {"content": "<s>"},
    "eos_token": "<|im_end|>",
    "added_tokens_decoder": {
        "1": {"content": "<|im_end|>", "special": True},
        "2": {"content": "<tool_call>", "special": False},
        "3": {"content": "~~odd~~", "special": True},
    },
}


def test_a_directory_of_model_files(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({**TOKENS, "chat_template": TEMPLATE}))
    files = from_model_files(tmp_path)
    assert files == TemplateFiles(TEMPLATE, "<s>", "<|im_end|>", ("<|im_end|>", "~~odd~~"))
    (tmp_path / "chat_template.jinja").write_text("newer")
    assert from_model_files(tmp_path).template == "newer"


def test_several_templates(tmp_path: Path) -> None:
    several = [{"name": "default", "template": "plain"}, {"name": "tool_use", "template": TEMPLATE}]
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": several}))
    assert from_model_files(tmp_path).template == TEMPLATE


@pytest.mark.parametrize("said", ["{", "[]", "{}", json.dumps({"chat_template": 3})])
def test_files_without_a_template(tmp_path: Path, said: str) -> None:
    (tmp_path / "tokenizer_config.json").write_text(said)
    with pytest.raises(toolgram.ToolgramError, match=r"chat template|not JSON"):
        from_model_files(tmp_path)
    with pytest.raises(toolgram.ToolgramError, match="no directory"):
        from_model_files(tmp_path / "nowhere")


def test_gguf_without_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(toolgram.ToolgramError, match="pip install gguf"):
        from_gguf(tmp_path / "x.gguf")


def test_a_format_that_is_named_goes_before_the_template() -> None:
    model = load_model(Found("openai"), TemplateFiles(TEMPLATE), toolgram.get_format("hermes"), "mine")
    assert (model.name, model.fmt.name) == ("mine", "hermes")
    assert model.takes_tools
    with pytest.raises(toolgram.ToolgramError, match="--model-files"):
        load_model(Found("openai"))
    with pytest.raises(toolgram.ToolgramError, match="template"):
        load_model(Found("openai"), TemplateFiles("{% if %}"))


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        ([], 2, "--upstream"),
        (["--upstream", "http://127.0.0.1:9", "--calls", "x"], 2, "--calls is one of"),
        (["--upstream", "http://127.0.0.1:9", "--gguf", "x", "--template", "y"], 2, "choose one"),
        (["--upstream", "http://127.0.0.1:9"], 1, "no server answers"),
        (["--upstream", "nonsense"], 1, "is an address"),
        (["--upstream", "http://127.0.0.1:9", "--host", "0.0.0.0"], 1, "API key"),
        (["--upstream", "http://127.0.0.1:9", "--template", "/nowhere.jinja"], 1, "nowhere.jinja"),
    ],
)
def test_the_command(options: list[str], status: int, said: str) -> None:
    result: Any = CliRunner().invoke(app, ["serve", *options])
    assert result.exit_code == status
    assert said in result.output
