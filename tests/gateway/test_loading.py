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
from toolgram.derive import doctor
from toolgram.derive.sources import pretrained_source
from toolgram.gateway.engine import Found
from toolgram.gateway.loading import TemplateFiles, files_of, load_model, not_fitting

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
        (["--upstream", "http://127.0.0.1:9", "--config", "x"], 2, "choose one"),
        (["--upstream", "http://127.0.0.1:9", "--wait", "0"], 1, "no server answers"),
        (["--config", "/nowhere.yaml"], 1, "--config /nowhere.yaml: cannot be read"),
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: [", "is not YAML"),
        ("- models", "needs `models`"),
        ("models: {}", "needs `models`"),
        ("models: {a: }", "upstream is missing"),
        ("models: {a: {upstream: http://127.0.0.1:9, ggfu: x}}", "'ggfu' is not one of them"),
        ("models: {a: {upstream: 9}}", "'upstream' is not one of them, or its value is not text"),
        ("models: {a: {upstream: nonsense}}", "is an address"),
    ],
)
def test_a_file_of_servers(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "models.yaml"
    path.write_text(text)
    result: Any = CliRunner().invoke(app, ["serve", "--config", str(path)])
    assert result.exit_code == 1
    assert said in result.output


def test_a_format_that_does_not_fit_the_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "format_names", lambda: ["hermes", "llama3_json"])
    found = Found("openai")
    assert not_fitting(load_model(found, TemplateFiles(TEMPLATE), toolgram.get_format("hermes"))) == ""
    said = not_fitting(load_model(found, TemplateFiles(TEMPLATE), toolgram.get_format("llama3_json")))
    assert said.startswith("llama3_json reads ")
    assert "hermes" in said
