"""The model of a gateway, from what is at hand: a template file, a model's files, a GGUF file, or the server itself.

Strategy: the template decides. Where none is given, llama.cpp's own server says which one it has. The format is derived
from it; a format that is named goes before that, and the template's analysis is still used for how messages are given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from toolgram.derive.deriving import derive_format
from toolgram.derive.errors import TemplateError
from toolgram.errors import ToolgramError
from toolgram.formats import Format
from toolgram.gateway.engine import Found
from toolgram.gateway.model import Model, SpecialText

MOST_FILE = 64_000_000  # bytes of a JSON file of a model


class TemplateFiles(NamedTuple):
    """A chat template, and what belongs to it."""

    template: str
    bos_token: str = ""
    eos_token: str = ""
    special: tuple[str, ...] = ()


def from_model_files(directory: str | Path) -> TemplateFiles:
    """What a model's directory says: `chat_template.jinja`, or `tokenizer_config.json`. Raises ToolgramError."""
    home = Path(directory)
    if not home.is_dir():
        raise ToolgramError(f"{home}: no directory; name the one that has tokenizer_config.json")
    config, said = _json(home / "tokenizer_config.json"), _json(home / "chat_template.json")
    template: Any = said.get("chat_template") or config.get("chat_template")
    path = home / "chat_template.jinja"
    if path.is_file():
        template = path.read_text(encoding="utf-8")
    if isinstance(template, list):
        template = _of_several(template)
    if not isinstance(template, str) or not template:
        raise ToolgramError(f"{home}: no chat template; name one with --template FILE")
    added = config.get("added_tokens_decoder")
    tokens = added.values() if isinstance(added, Mapping) else ()
    special = [_token(each) for each in tokens if isinstance(each, Mapping) and each.get("special")]
    listed = _json(home / "special_tokens_map.json")
    special += [_token(each) for each in listed.values()]
    return TemplateFiles(template, _token(config.get("bos_token")), _token(config.get("eos_token")), _known(special))


def _of_several(templates: list[Any]) -> str | None:
    """The template for tools, or else the default one."""
    named = {
        each.get("name"): each.get("template")
        for each in templates
        if isinstance(each, Mapping) and isinstance(each.get("template"), str)
    }
    return named.get("tool_use") or named.get("default")


def _json(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    if path.stat().st_size > MOST_FILE:
        raise ToolgramError(f"{path}: larger than {MOST_FILE} bytes")
    try:
        said = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ToolgramError(f"{path}: not JSON: {error}") from None
    return said if isinstance(said, dict) else {}


def _token(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("content")
    return value if isinstance(value, str) else ""


def _known(texts: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))


def from_gguf(path: str | Path) -> TemplateFiles:
    """What a GGUF file says of its template and its tokens. Raises ToolgramError; needs the `gguf` package."""
    try:
        from gguf import GGUFReader
    except ModuleNotFoundError:
        raise ToolgramError("--gguf needs the gguf package, which is not installed: pip install gguf") from None
    try:
        fields = GGUFReader(str(path)).fields
        read = {name: fields[name].contents() for name in fields if name.startswith("tokenizer.")}
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise ToolgramError(f"{path}: cannot be read as GGUF: {error}") from None
    template = read.get("tokenizer.chat_template")
    if not isinstance(template, str):
        raise ToolgramError(f"{path}: has no chat template; name one with --template FILE")
    tokens = read.get("tokenizer.ggml.tokens") or []
    kinds = read.get("tokenizer.ggml.token_type") or []

    def token(key: str) -> str:
        number = read.get(f"tokenizer.ggml.{key}_token_id")
        return tokens[number] if isinstance(number, int) and 0 <= number < len(tokens) else ""

    special = [text for text, kind in zip(tokens, kinds, strict=False) if kind == 3]
    return TemplateFiles(template, token("bos"), token("eos"), _known(special))


def load_model(
    found: Found,
    files: TemplateFiles | None = None,
    fmt: Format | None = None,
    name: str | None = None,
    special_text: SpecialText = "neutralise",
) -> Model:
    """The model behind a server. Raises ToolgramError where there is no template, or nothing can be made of it."""
    if files is None:
        if not found.template:
            raise ToolgramError(
                f"the server ({found.kind}) does not say its chat template: name it with --model-files DIR, "
                "--gguf FILE or --template FILE"
            )
        files = TemplateFiles(found.template, found.bos_token, found.eos_token)
    try:
        derived = derive_format(files.template, bos_token=files.bos_token, eos_token=files.eos_token)
    except TemplateError:
        if fmt is None:
            raise
    else:
        fmt = derived if fmt is None else Format(fmt.spec, fmt.machine_text, derived.report)
    bos, eos = files.bos_token or found.bos_token, files.eos_token or found.eos_token
    return Model(name or found.model or "model", fmt, files.template, bos, eos, files.special, special_text)
