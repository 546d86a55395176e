"""A function whose arguments have an end, so that a model of random weights writes valid ones under a grammar."""

import json
from typing import Any

import jsonschema

import toolgram

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"day": {"enum": ["monday", "tuesday"]}, "urgent": {"type": "boolean"}, "size": {"enum": [1, 2, 30]}},
    "required": ["day", "urgent", "size"],
    "additionalProperties": False,
}
FUNCTION: dict[str, Any] = {"name": "book", "description": "d", "parameters": SCHEMA}
TOOLS: Any = [{"type": "function", "function": FUNCTION}]
USER: Any = [{"role": "user", "content": "Book."}]
END = {"2": 100.0}  # the end of the output, wherever the grammar allows it: these models would never stop

FORMATS = ("hermes", "mistral_v3", "mistral_v11", "qwen3_coder", "granite_3", "llama4_pythonic", "lfm2")


def special_texts() -> list[str]:
    """The special tokens of the tested formats."""
    texts = []
    for name in FORMATS:
        spec = toolgram.get_format(name).spec
        texts += [text for token in spec.special_tokens if (text := getattr(spec.terminals[token], "text", "").strip())]
    return sorted(set(texts))


def check(name: str | None, arguments: Any) -> None:
    """A valid call of that function."""
    assert name == "book"
    jsonschema.validate(json.loads(arguments) if isinstance(arguments, str) else arguments, SCHEMA)
