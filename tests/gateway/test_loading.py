"""The model of a gateway from what is at hand: files, a GGUF file, the server; and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.cli.running import check_row, rows_beside
from tests.gateway.servers import TEMPLATE
from tests.tables import table
from toolgram.derive import doctor
from toolgram.derive.sources import pretrained_source
from toolgram.gateway.engine import Found
from toolgram.gateway.loading import TemplateFiles, files_of, load_model, not_fitting

TOKENS = table(__file__, "tokens")


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


def test_a_format_that_does_not_fit_the_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "format_names", lambda: ["hermes", "llama3_json"])
    found = Found("openai")
    assert not_fitting(load_model(found, TemplateFiles(TEMPLATE), toolgram.get_format("hermes"))) == ""
    said = not_fitting(load_model(found, TemplateFiles(TEMPLATE), toolgram.get_format("llama3_json")))
    assert said.startswith("llama3_json reads ")
    assert "hermes" in said


@pytest.mark.parametrize("row", rows_beside(__file__), ids=lambda row: row["run"])
def test_the_command(row: dict[str, Any], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_row(row, root, tmp_path, monkeypatch)
