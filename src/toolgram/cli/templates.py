"""Read a chat template from any place that keeps one, with its special tokens.

Strategy: a template comes as Jinja text, or inside the JSON file of a tokenizer, which also has the tokens. It can also
be in the folder of a model, in a GGUF file, or in the cache of downloads, by the model's id; for these, the command
reports what it used. A `.json` file must be JSON. Standard input is JSON if it can be read as JSON, because no Jinja
text can. Text that cannot be encoded in UTF-8 is refused first.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolgram.bulk.errors import BadFile
from toolgram.bulk.inputs import named
from toolgram.cli.source import pieces
from toolgram.cli.terminal import read_file
from toolgram.limits import MAX_CONFIGURATION

if TYPE_CHECKING:
    from toolgram.derive import sources

# Files that have the same name for every model. The format is named after the model that they or their folder name.
NAMELESS = {"chat_template", "tokenizer_config", "tokenizer", "template", "processor_config"}
MODEL = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)?")
TEXTS = (".jinja", ".jinja2", ".j2", ".json", ".txt")  # suffixes that no id of a model has


@dataclass(frozen=True, slots=True)
class Source:
    """A chat template, the tokens that go with it, and a name for the format that is derived from it."""

    template: str
    name: str | None = None
    bos_token: str = ""
    eos_token: str = ""
    variant: str = ""  # the name of this template, if a file has several
    special: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    told: str = ""  # what was used, if the path does not show it
    place: str = "chat template"


def read_template(path: str, variant: str | None = None) -> Source:
    """Return the template in a file, a folder, or the cache of downloads. Raises ToolgramError."""
    place = Path(path)
    is_model = place.is_dir() or (place.suffix not in TEXTS and not place.exists())
    if path != "-" and (is_model or place.suffix == ".gguf"):
        return _of_model(path, variant)
    text, name = ("".join(pieces(path)) if path == "-" else read_file(path)).removeprefix("\ufeff"), named(path)
    tokenizer = _tokenizer(text, name) if path == "-" or path.endswith(".json") else None
    if tokenizer is not None:
        from toolgram.derive.sources import tokenizer_source

        return _taken(tokenizer_source(name, tokenizer), variant, name_for(path, tokenizer))
    if variant is not None:
        raise BadFile(f"{name}: --variant chooses among the templates of a tokenizer_config.json")
    if not text.strip():
        raise BadFile(f"{name}: empty; give a chat template, which is Jinja text, or the tokenizer_config.json with it")
    return Source(text, name_for(path, {}), place=name)


def _of_model(path: str, variant: str | None) -> Source:
    """Return the template of a model: in a GGUF file, a folder, or the cache of downloads."""
    from toolgram.derive.sources import gguf_source, pretrained_source

    place = Path(path)
    folder = place if place.is_dir() else _in_cache(path)
    if place.is_file():
        found, name = gguf_source(path), safe_name(place.stem)
    elif folder is not None:
        found, name = pretrained_source(folder), name_for(str(folder / "tokenizer_config.json"), {}) or ""
    else:
        raise BadFile(f"{path}: cannot be read: no such file or folder, and no such model in {_download_cache()}")
    return _taken(found, variant, name or None, found.told(variant))


def _download_cache() -> Path:
    """Return the folder in which Hugging Face's tools keep what they download."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or Path(home) / "hub").expanduser()


def _in_cache(model: str) -> Path | None:
    """Return the folder of a model (`Qwen/Qwen3-8B`) in the cache: its main revision, or else the newest."""
    if not MODEL.fullmatch(model):
        return None
    place = _download_cache() / f"models--{model.replace('/', '--')}"
    try:
        revision = (place / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        revision = ""
    folders = sorted(place.glob("snapshots/*/"), key=lambda each: (each.name == revision, each.stat().st_mtime))
    return folders[-1] if folders else None


def _taken(found: sources.Source, variant: str | None, name: str | None, told: str = "") -> Source:
    chosen = "" if told or len(found.templates) == 1 else found.chosen(variant)
    special, ends = tuple(dict.fromkeys(found.special)), tuple(dict.fromkeys(found.ends))
    template = found.template(variant)
    if any("\ud800" <= character <= "\udfff" for character in template):
        raise BadFile(f"{found.place}: it contains half a surrogate pair, which is not text")
    return Source(template, name, found.bos_token, found.eos_token, chosen, special, ends, told, found.place)


def name_for(path: str, tokenizer: Mapping[str, Any]) -> str | None:
    """Return a name for the format that is safe as the name of a file: the name of the file. If every model has a file
    of this name, return the name of the model, from the tokenizer, the configuration beside it, or a download folder;
    if there is none, the name of the folder."""
    if path == "-":
        return safe_name(_last_part(tokenizer.get("name_or_path"))) or None
    place = Path(path)
    stem = place.stem.removesuffix(".chat_template")
    if stem not in NAMELESS:
        return safe_name(stem) or None
    folder = place.resolve().parent
    told = (tokenizer.get("name_or_path"), _configuration(folder).get("_name_or_path"), *_downloaded(folder))
    return next((name for each in told if (name := safe_name(_last_part(each)))), safe_name(folder.name) or None)


def _configuration(folder: Path) -> dict[str, Any]:
    """Return the model's configuration beside the tokenizer, or an empty one if there is none that can be read."""
    place = folder / "config.json"
    try:
        with place.open(encoding="utf-8") as file:
            configuration = json.loads(file.read(MAX_CONFIGURATION))
    except (OSError, ValueError, RecursionError):
        return {}
    return configuration if isinstance(configuration, dict) else {}


def _downloaded(folder: Path) -> Iterator[str]:
    """Yield the model in the path of a download cache, `models--Qwen--Qwen3-8B/snapshots/...`."""
    for part in reversed(folder.parts):
        if part.startswith("models--"):
            yield part.replace("--", "/")


def _last_part(name: Any) -> str:
    """Return `Qwen3-8B` of `Qwen/Qwen3-8B`, and of a path to it; nothing if it is the name of a folder of snapshots."""
    last = re.split(r"[/\\\\]", name.rstrip("/\\"))[-1] if isinstance(name, str) else ""
    return "" if last in ("", ".", "..") or re.fullmatch(r"[0-9a-f]{40}", last) else last


def safe_name(name: str) -> str:
    """Return the name in letters, digits, dots, hyphens and underscores, without a dot or a hyphen at the start."""
    return re.sub(r"[^\w.-]+", "_", name, flags=re.ASCII).strip("_").lstrip(".-")


def _tokenizer(text: str, place: str) -> dict[str, Any] | None:
    """Return the JSON object in the file, or None if it is Jinja text from standard input."""
    may_be_jinja = place == "standard input" and not re.match(r"\s*\{(?![{%#])", text)
    if may_be_jinja:
        return None
    try:
        tokenizer = json.loads(text)
    except (ValueError, RecursionError) as error:
        if place == "standard input":
            return None
        raise BadFile(f"{place}: not JSON: {error}") from None
    if not isinstance(tokenizer, dict):
        raise BadFile(f"{place}: not the JSON object of a tokenizer")
    return tokenizer
