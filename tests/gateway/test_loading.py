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
from toolgram.derive.sources import pretrained_source
from toolgram.gateway.engine import Found
from toolgram.gateway.loading import TemplateFiles, files_of, load_model

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
    files = files_of(pretrained_source(tmp_path))
    assert files == TemplateFiles(TEMPLATE, "<s>", "<|im_end|>", ("<|im_end|>", "~~odd~~"))


def test_a_directory_without_a_template(tmp_path: Path) -> None:
    with pytest.raises(toolgram.ToolgramError, match="chat template"):
        files_of(pretrained_source(tmp_path / "nowhere"))


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
        (["--upstream", "http://127.0.0.1:9", "--template", "/nowhere.jinja"], 1, "--template /nowhere.jinja"),
        (["--upstream", "http://127.0.0.1:9", "--template", __file__ + "c"], 1, "cannot be read"),
        (["--upstream", "http://127.0.0.1:9", "--model-files", "/nowhere"], 1, "no such directory"),
    ],
)
def test_the_command(options: list[str], status: int, said: str) -> None:
    result: Any = CliRunner().invoke(app, ["serve", *options])
    assert result.exit_code == status
    assert said in result.output
