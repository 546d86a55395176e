"""A format from where its template is kept: a tokenizer object, the files of a model, a GGUF file.

Strategy: each place gives the same things: a chat template (the one for tools, if there are several), the first and
the last token, other special tokens, and the tokens at which generation ends.  `derive_format` does the rest.  Files
are not trusted: what is of another kind than it should be is left out, and what cannot be read is one error.
A tokenizer without a template writes messages by itself; there a format is taken that reads what it writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolgram.derive.deriving import derive_format
from toolgram.derive.errors import TemplateError
from toolgram.errors import ToolgramError
from toolgram.explain import recognise
from toolgram.formats import Format, get_format
from toolgram.late_imports import install_line
from toolgram.limits import MAX_TOKENIZER_FILE

PREFERRED = ("tool_use", "default")  # of several templates
_PLACES = "; it would be in chat_template.jinja, in tokenizer_config.json, or in a GGUF file of the model"
_CONTROL = 3  # the type of a special token in a GGUF file


@dataclass(slots=True)
class Source:
    """What a place says: its templates by name, and its tokens."""

    place: str
    templates: dict[str, str] = field(default_factory=dict)
    bos_token: str = ""
    eos_token: str = ""
    special: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)

    def chosen(self, variant: str | None) -> str:
        """Return the name of the template that is taken: this one, or that for tools, the default, or a sole one."""
        sole = PREFERRED if len(self.templates) > 1 else tuple(self.templates)
        for name in (variant,) if variant is not None else sole:
            if name in self.templates:
                return name
        which = f" {variant!r}" if variant is not None else " that would be taken" if self.templates else ""
        there = f"; name one with --variant: {', '.join(sorted(self.templates))}" if self.templates else _PLACES
        raise TemplateError(f"it has no chat template{which}{there}", place=self.place)

    def template(self, variant: str | None) -> str:
        """Return the text of that template."""
        return self.templates[self.chosen(variant)]

    def derive(self, variant: str | None, options: Mapping[str, Any]) -> Format:
        """Return the derived format."""
        given: dict[str, Any] = {"bos_token": self.bos_token, "eos_token": self.eos_token}
        given |= {"special_tokens": _distinct(self.special), "end_tokens": _distinct(self.ends)}
        return derive_format(self.template(variant), **{**given, **options})

    def told(self, variant: str | None) -> str:
        """Say what is taken from where."""
        ends = ", ".join(map(repr, _distinct([self.eos_token, *self.ends]))) or "none"
        return (
            f"from {self.place}: the template {self.chosen(variant)!r} of {len(self.templates)}, the first token "
            f"{self.bos_token!r}, end tokens {ends}, {len(_distinct(self.special))} special tokens"
        )


def from_tokenizer(tokenizer: Any, *, variant: str | None = None, **options: Any) -> Format:
    """Return the format of a tokenizer of `transformers` or `mistral-common`.

    `variant` names one of several templates; without it, the one for tools is taken, then the default. `options` go to
    `derive_format`. A tokenizer of mistral-common has no template: the result is the shipped format that reads its
    calls. Raises TemplateError if there is no template, and what `derive_format` raises.
    """
    templates = getattr(tokenizer, "chat_template", None)
    if not hasattr(tokenizer, "chat_template") and not hasattr(tokenizer, "encode_chat_completion"):
        raise TypeError(f"a tokenizer of transformers or mistral-common is taken, not {type(tokenizer).__name__}")
    if templates is None and hasattr(tokenizer, "encode_chat_completion"):
        return _recognised(_written_by(tokenizer), type(tokenizer).__name__)
    source = Source(type(tokenizer).__name__, _named(templates))
    source.bos_token, source.eos_token = (_text(getattr(tokenizer, key, "")) for key in ("bos_token", "eos_token"))
    added = getattr(tokenizer, "added_tokens_decoder", None)
    if isinstance(added, Mapping):
        source.special += [_text(token) for token in added.values() if getattr(token, "special", False)]
    source.special += [_text(token) for token in _listed(getattr(tokenizer, "all_special_tokens", ()))]
    return source.derive(variant, options)


def from_pretrained_files(folder: str | Path, *, variant: str | None = None, **options: Any) -> Format:
    """Return the format of a model whose published files are in `folder`.

    Reads chat_template.jinja, additional_chat_templates/, chat_template.json, tokenizer_config.json,
    special_tokens_map.json and the end tokens of generation_config.json, as far as they exist. `variant` and `options`
    as for `from_tokenizer`. Raises TemplateError if there is no template, or a file cannot be read.
    """
    return pretrained_source(folder).derive(variant, options)


def pretrained_source(folder: str | Path) -> Source:
    """Return what the files of a model say, as `from_pretrained_files` reads them. Raises TemplateError."""
    place = Path(folder)
    config, other = _json(place / "tokenizer_config.json"), _json(place / "special_tokens_map.json")
    source = Source(str(folder), _named(_json(place / "chat_template.json").get("chat_template")))
    source.templates |= _named(config.get("chat_template"))
    source.templates |= {path.stem: _read(path) for path in sorted(place.glob("additional_chat_templates/*.jinja"))}
    if (place / "chat_template.jinja").is_file():
        source.templates["default"] = _read(place / "chat_template.jinja")
    source.bos_token, source.eos_token = (
        _text(config.get(key) or other.get(key)) for key in ("bos_token", "eos_token")
    )
    added = config.get("added_tokens_decoder")
    by_id = {key: token for key, token in added.items() if isinstance(token, dict)} if isinstance(added, dict) else {}
    if not by_id:
        added = _listed(_json(place / "tokenizer.json").get("added_tokens"))
        by_id = {str(token.get("id")): token for token in added if isinstance(token, dict)}
    source.special += [_text(token) for token in by_id.values() if token.get("special")]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        source.special += [_text(token) for token in _listed(config.get(key) or other.get(key))]
    ends = _json(place / "generation_config.json").get("eos_token_id")
    source.ends += [_text(by_id.get(str(number))) for number in (ends if isinstance(ends, list) else [ends])]
    return source


def tokenizer_source(place: str, config: Mapping[str, Any]) -> Source:
    """Return what the JSON of a tokenizer says by itself."""
    bos_token, eos_token = (_text(config.get(key)) for key in ("bos_token", "eos_token"))
    return Source(place, _named(config.get("chat_template")), bos_token, eos_token)


def from_gguf(path: str | Path, *, variant: str | None = None, **options: Any) -> Format:
    """Return the format of a model in a GGUF file. Needs the `gguf` package.

    `variant` and `options` as for `from_tokenizer`. The weights are not read. Raises as `gguf_source` does.
    """
    return gguf_source(path).derive(variant, options)


def gguf_source(path: str | Path) -> Source:
    """Return what a GGUF file says. Raises TemplateError for a bad one, and ToolgramError if `gguf` is missing."""
    try:
        from gguf import GGUFReader
    except ModuleNotFoundError:
        raise ToolgramError(f"from_gguf needs gguf, which is not installed: {install_line('gguf')}") from None
    try:
        fields = GGUFReader(str(path)).fields
        source = Source(str(path))
        for key in fields:
            if key == "tokenizer.chat_template" or key.startswith("tokenizer.chat_template."):
                name = key.removeprefix("tokenizer.chat_template").lstrip(".") or "default"
                source.templates[name] = str(fields[key].contents())
        tokens, ids = fields.get("tokenizer.ggml.tokens"), {key: _number(fields, key) for key in _ENDS}
        source.bos_token = _token(tokens, _number(fields, "tokenizer.ggml.bos_token_id"))
        source.eos_token = _token(tokens, ids["tokenizer.ggml.eos_token_id"])
        source.ends += [_token(tokens, number) for number in ids.values()]
        kinds = fields.get("tokenizer.ggml.token_type")
        for number, kind in enumerate(kinds.contents() if kinds is not None else ()):
            if kind == _CONTROL:
                source.special.append(_token(tokens, number))
    except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise TemplateError(f"cannot be read as GGUF: {error}", place=str(path)) from None
    return source


_ENDS = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id")


def _number(fields: Mapping[str, Any], key: str) -> int | None:
    number = fields[key].contents() if key in fields else None
    return number if isinstance(number, int) and number >= 0 else None


def _token(tokens: Any, number: int | None) -> str:
    """Return one token of a GGUF file; the others are not read."""
    if tokens is None or number is None or number >= len(tokens.data):
        return ""
    return str(tokens.contents(number))


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        raise TemplateError(f"cannot be read: {error}", place=str(path)) from None


def _json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if there is no such file."""
    if not path.is_file():
        return {}
    try:
        if path.stat().st_size > MAX_TOKENIZER_FILE:
            raise ValueError(f"larger than {MAX_TOKENIZER_FILE} bytes")
        found = json.loads(_read(path))
    except (OSError, ValueError, RecursionError) as error:
        raise TemplateError(f"not JSON: {error}", place=str(path)) from None
    return found if isinstance(found, dict) else {}


def _named(templates: Any) -> dict[str, str]:
    """Return templates by name, from one text, a mapping, or a list of {name, template}."""
    if isinstance(templates, str):
        return {"default": templates}
    if isinstance(templates, Mapping):
        pairs: list[tuple[Any, Any]] = list(templates.items())
    else:
        pairs = [(entry.get("name"), entry.get("template")) for entry in _listed(templates) if isinstance(entry, dict)]
    return {name: text for name, text in pairs if isinstance(name, str) and isinstance(text, str)}


def _listed(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _text(token: Any) -> str:
    """Return a token as text: it may be an object with its text as `content`."""
    text = token.get("content") if isinstance(token, Mapping) else getattr(token, "content", token)
    return text if isinstance(text, str) and not any("\ud800" <= character <= "\udfff" for character in text) else ""


def _distinct(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))


_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (("look_up", {"city": "Paris", "days": 2}), ("ping", {}))


def _written_by(tokenizer: Any) -> list[str]:
    """Return turns with one call and with two, as a Mistral tokenizer writes them."""
    try:
        from mistral_common.protocol.instruct.messages import AssistantMessage, ToolMessage, UserMessage
        from mistral_common.protocol.instruct.request import ChatCompletionRequest
        from mistral_common.protocol.instruct.tool_calls import FunctionCall, ToolCall
        from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
    except ModuleNotFoundError:
        raise ToolgramError("the tokenizer has no template, and mistral-common is not installed") from None
    turns = []
    for count in (1, 2):
        calls = [
            ToolCall(id=f"a1B2c3D4{at}", function=FunctionCall(name=name, arguments=json.dumps(arguments)))
            for at, (name, arguments) in enumerate(_CALLS[:count])
        ]
        results = [ToolMessage(content="r", tool_call_id=call.id, name=call.function.name) for call in calls]
        question = UserMessage(content="Wherefore quilps")
        request = ChatCompletionRequest(messages=[question, AssistantMessage(tool_calls=calls), *results])
        try:
            requests = ChatCompletionRequest(messages=[question]), request
            encoded = [tokenizer.encode_chat_completion(each).tokens for each in requests]
            plain, text = (tokenizer.decode(tokens, special_token_policy=SpecialTokenPolicy.KEEP) for tokens in encoded)
        except Exception as error:  # old versions refuse calls, each with an error of its own
            raise TemplateError(f"the tokenizer has no template, and refuses calls: {error}") from None
        turns.append(text[len(plain) :].partition("</s>")[0].replace("▁", " "))
    return turns


def _recognised(turns: Sequence[str], place: str) -> Format:
    """Return the shipped format that reads these turns."""
    found = recognise(turns)[0]
    if found.rank != (1 + len(_CALLS), 0, 0, 0, 0):
        raise TemplateError(f"{place} has no chat template, and no shipped format reads the calls that it writes")
    return get_format(found.name)
