"""What a client has at the end of an answer. Imports no server and no client."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Heard:
    content: str | None = None
    reasoning: str | None = None
    calls: list[tuple[str, str]] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    finish_reason: str | None = None
    reasoning_tokens: int = 0
    error: str = ""
    detail: str = ""  # of an error
    logprobs: int = 0  # tokens that came with one
    usage: dict[str, Any] = field(default_factory=dict)

    def say(self, content: str | None = None, reasoning: str | None = None) -> None:
        """More text."""
        self.content = (self.content or "") + content if content else self.content
        self.reasoning = (self.reasoning or "") + reasoning if reasoning else self.reasoning

    def begin(self, id: str, name: str, arguments: str = "") -> None:
        """Another call."""
        self.ids.append(id)
        self.calls.append((name, arguments))

    def go_on(self, arguments: str, place: int = -1) -> None:
        """More arguments of a call."""
        name, before = self.calls[place]
        self.calls[place] = name, before + arguments

    def made(self) -> list[tuple[str, Any]]:
        """The calls, with the values of their arguments."""
        return [(name, json.loads(arguments)) for name, arguments in self.calls]

    def told(self) -> tuple[str | None, str | None, list[tuple[str, str]]]:
        """All but the ids."""
        return self.content, self.reasoning, self.calls


def bare(text: str | None, without: Sequence[str] = ()) -> str:
    """A text without its blanks, and without special tokens, which a server may leave out."""
    for each in without:
        text = (text or "").replace(each, "")
    return "".join((text or "").split())
