"""A format from a tokenizer object, from the files of a model, and from a GGUF file."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import toolgram
from tests.derive.turns import report_of, source, template_of
from toolgram.derive.errors import TemplateError

TEMPLATE = source("own_eos")
OTHER = source("json_lines")


def same(fmt: toolgram.Format, template: str, **options: Any) -> bool:
    return fmt.grammar_text == toolgram.derive_format(template, **options).grammar_text


class Tokenizer(SimpleNamespace):
    """What `transformers` gives: as much of it as is read."""

    bos_token = "<s>"
    eos_token = "</s>"
    all_special_tokens = ("<s>", "</s>", "<pad>")


def token(text: str, special: bool = True) -> SimpleNamespace:
    return SimpleNamespace(content=text, special=special)


def test_from_a_tokenizer() -> None:
    tokenizer = Tokenizer(chat_template=TEMPLATE, added_tokens_decoder={1: token("<s>"), 7: token("<x>", False)})
    fmt = toolgram.from_tokenizer(tokenizer)
    assert same(fmt, TEMPLATE, bos_token="<s>", eos_token="</s>", special_tokens=["<s>", "</s>", "<pad>"])
    assert report_of(fmt).ok


def test_tokens_that_no_template_tells() -> None:
    """A word before a call is plain text to the template; the tokenizer says that it is a token."""
    template = template_of("@call {{ c.function|tojson }}")
    assert "@call" not in toolgram.derive_format(template).program.special.values()
    fmt = toolgram.derive_format(template, special_tokens=["@call", "<unused>"])
    assert "@call" in fmt.program.special.values()
    assert "<unused>" not in fmt.program.special.values()
    fmt = toolgram.derive_format(OTHER, eos_token="</s>", end_tokens=["<|also_over|>"])
    assert fmt.parse("Fine.<|also_over|>").content == "Fine."


def test_several_templates() -> None:
    tokenizer = Tokenizer(chat_template={"default": TEMPLATE, "tool_use": OTHER})
    known = {"bos_token": "<s>", "eos_token": "</s>", "special_tokens": ["<s>", "</s>", "<pad>"], "name": "x"}
    assert same(toolgram.from_tokenizer(tokenizer, name="x"), OTHER, **known)
    assert same(toolgram.from_tokenizer(tokenizer, variant="default", name="x"), TEMPLATE, **known)
    with pytest.raises(TemplateError, match="no chat template 'rag'; name one with --variant: default, tool_use"):
        toolgram.from_tokenizer(tokenizer, variant="rag")
    with pytest.raises(TemplateError, match="it has no chat template;"):
        toolgram.from_tokenizer(Tokenizer(chat_template=None))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = {
        "chat_template": [{"name": "default", "template": "unused"}, {"name": "tool_use", "template": OTHER}],
        "bos_token": {"content": "<s>", "lstrip": False},
        "eos_token": "</s>",
        "added_tokens_decoder": {at: {"content": text, "special": True} for at, text in ((2, "</s>"), (9, "<|eom|>"))},
        "additional_special_tokens": ["<tool_calls>"],
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [2, 9, 17]}', encoding="utf-8")
    return tmp_path


def test_from_the_files_of_a_model(folder: Path) -> None:
    fmt = toolgram.from_pretrained_files(folder)
    assert fmt.parse('<tool_calls>\n{"name": "f", "arguments": {}}\n</tool_calls><|eom|>').tool_calls
    assert fmt.parse("Fine.<|eom|>").content == "Fine."
    assert "<tool_calls>" in fmt.program.special.values()
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    assert toolgram.from_pretrained_files(folder, variant="default").grammar_text != fmt.grammar_text


def test_a_template_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    assert same(toolgram.from_pretrained_files(tmp_path, name="x"), TEMPLATE, name="x")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text(OTHER, encoding="utf-8")
    assert same(toolgram.from_pretrained_files(tmp_path, name="x"), OTHER, name="x")


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "not JSON"), ("[" * 100_000, "not JSON"), ("[]", "it has no"), ('{"chat_template": 3}', "it has no")],
)
def test_files_that_are_something_else_are_one_error(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "tokenizer_config.json").write_text(content, encoding="utf-8")
    with pytest.raises(TemplateError, match=words):
        toolgram.from_pretrained_files(tmp_path)
    with pytest.raises(TemplateError, match="it has no chat template;"):
        toolgram.from_pretrained_files(tmp_path / "nowhere")


def test_from_gguf(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_chat_template([{"name": "default", "template": "unused"}, {"name": "tool_use", "template": OTHER}])
    writer.add_token_list(["<s>", "</s>", "a", "<tool_calls>", "<|eot|>"])
    writer.add_token_types([3, 3, 1, 3, 3])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_eot_token_id(4)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    fmt = toolgram.from_gguf(path)
    assert "<tool_calls>" in fmt.program.special.values()
    assert fmt.parse("Fine.<|eot|>").content == "Fine."
    path.write_bytes(b"GGUF no more")
    for place in (path, tmp_path / "nowhere"):
        with pytest.raises(TemplateError, match="cannot be read"):
            toolgram.from_gguf(place)


def test_a_tokenizer_that_writes_messages_by_itself() -> None:
    """mistral-common has no template: what it writes tells which format reads it."""
    pytest.importorskip("sentencepiece")
    mistral = pytest.importorskip("mistral_common.tokens.tokenizers.mistral")
    assert toolgram.from_tokenizer(mistral.MistralTokenizer.v3()).name == "mistral_v3"
    with pytest.raises(TemplateError, match="refuses calls"):
        toolgram.from_tokenizer(mistral.MistralTokenizer.v1())
