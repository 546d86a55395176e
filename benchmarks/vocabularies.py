"""Two real vocabularies of 130 000 tokens, for what depends on a vocabulary's size and shape: exported grammars.

Strategy: tekken is inside the package `mistral_common`, Llama 3's in `llama_models`; both are lists of byte strings by
rank, which tiktoken encodes with.  The places of special tokens are filled with the markers of the format that is
measured, as the vocabulary of a model of that format has them.  Nothing is downloaded.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

_LLAMA_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
SPECIAL = 256  # places for special tokens, the last of which ends an output
NAMES = ("tekken", "llama3")


def _home(package: str) -> Path:
    found = importlib.util.find_spec(package)
    if found is None or found.origin is None:
        raise SystemExit(f"exports: the package {package} is not here; make test installs it")
    return Path(found.origin).parent


@lru_cache(maxsize=2)
def _ranks(name: str) -> tuple[dict[bytes, int], str]:
    """The byte strings by rank, and the pattern by which text is cut before it is encoded."""
    if name == "tekken":
        data = json.loads((_home("mistral_common") / "data" / "tekken_240911.json").read_text(encoding="utf-8"))
        size = data["config"]["default_vocab_size"] - data["config"]["default_num_special_tokens"]
        words = [base64.b64decode(each["token_bytes"]) for each in data["vocab"][:size]]
        return {word: rank for rank, word in enumerate(words)}, data["config"]["pattern"]
    lines = (_home("llama_models") / "llama3" / "tokenizer.model").read_bytes().splitlines()
    pairs = [line.split() for line in lines if line]
    return {base64.b64decode(word): int(rank) for word, rank in pairs}, _LLAMA_PATTERN


@lru_cache(maxsize=2)
def _encoding(name: str) -> Any:
    import tiktoken

    ranks, pattern = _ranks(name)
    return tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})


@dataclass(frozen=True)
class Vocabulary:
    """The words of a vocabulary, then its special tokens, as engines want them."""

    name: str
    tokens: tuple[bytes, ...]
    special: dict[str, int]
    bos_token_id: None = None

    @property
    def eos_token_id(self) -> int:
        """The token that ends an output."""
        return len(self.tokens) - 1

    @property
    def special_token_ids(self) -> tuple[int, ...]:
        """The ids of the special tokens."""
        return (*self.special.values(), self.eos_token_id)

    def __call__(self, data: bytes | str) -> list[int]:
        """The tokens of a text; markers are special tokens."""
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        if not self.special:
            return list(_encoding(self.name).encode_ordinary(text))
        found: list[int] = []
        cut = re.compile("|".join(re.escape(each) for each in sorted(self.special, key=len, reverse=True)))
        at = 0
        for match in cut.finditer(text):
            found += [*_encoding(self.name).encode_ordinary(text[at : match.start()]), self.special[match[0]]]
            at = match.end()
        return [*found, *_encoding(self.name).encode_ordinary(text[at:])]


def vocabulary(name: str, markers: Sequence[str]) -> Vocabulary:
    """A vocabulary in which these markers are special tokens."""
    ranks, _ = _ranks(name)
    words = sorted(ranks, key=ranks.__getitem__)
    markers = list(dict.fromkeys(markers))
    free = (f"<|reserved_{at}|>" for at in range(SPECIAL - 1 - len(markers)))
    names = [*markers, *free, "<|end_of_output|>"]
    special = {text: len(words) + at for at, text in enumerate(markers)}
    return Vocabulary(name, (*words, *(each.encode() for each in names)), special)
