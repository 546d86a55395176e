"""What is in the place of a tokenizer and of a server: markers are tokens, and no delta ends inside one."""

from __future__ import annotations

import re
from itertools import accumulate, pairwise
from types import ModuleType
from typing import Any


def pattern(markers: list[str]) -> str:
    """Return an expression of the markers, longest first."""
    return "|".join(re.escape(each) for each in sorted(markers, key=len, reverse=True)) or "(?!)"


def deltas_of(asked: dict[str, Any], markers: list[str]) -> list[str]:
    """Return the deltas of a request; one that ends inside a marker ends after it."""
    parts = [delta["text"] for delta in asked["deltas"]]
    text, ends = "".join(parts), {*accumulate(map(len, parts))}
    for found in re.finditer(pattern(markers), text):
        inside = {*range(found.start() + 1, found.end())} & ends
        ends = ends - inside | ({found.end()} if inside else set())
    places = [0, *sorted(ends - {0})]
    return [text[begin:end] for begin, end in pairwise(places)] or [""]


def thinks(asked: dict[str, Any], markers: list[str]) -> bool:
    """Return whether a request is one of a model that thinks: the prompt or the output has a marker of thoughts.

    Many parsers of reasoning take any other output for a thought, and a server does not use them if thinking is off.
    """
    text = (asked.get("prompt") or "") + "".join(delta["text"] for delta in asked["deltas"])
    return any(each in text for each in markers)


class Tokenizer:
    """A marker is a token, and so are up to four other characters."""

    is_fast, chat_template, vocab_size = False, None, 2**20
    bos_token, eos_token, bos_token_id, eos_token_id = "<s>", "</s>", 0, 1

    def __init__(self, markers: list[str]) -> None:
        self.texts = ["<s>", "</s>", *markers]
        self.all_special_tokens, self.all_special_ids = list(self.texts), list(range(len(self.texts)))
        self.ids = {text: number for number, text in enumerate(self.texts)}
        marks = pattern(self.texts)
        self.tokens = re.compile(f"{marks}|(?:(?!{marks})[\\s\\S]){{1,4}}")

    def get_vocab(self) -> dict[str, int]:
        """Return the markers."""
        return {text: self.ids[text] for text in self.all_special_tokens}

    def encode(self, text: str, **options: Any) -> list[int]:
        """Return the ids of a text."""
        for piece in (pieces := self.tokens.findall(text)):
            if piece not in self.ids:
                self.ids[piece] = len(self.texts)
                self.texts.append(piece)
        return [self.ids[piece] for piece in pieces]

    def decode(self, ids: list[int], **options: Any) -> str:
        """Return the text of ids."""
        return "".join(self.texts[number] for number in ids)

    def __len__(self) -> int:
        return self.vocab_size


class Silent(ModuleType):
    """Has every function; none does anything."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *arguments, **options: None
