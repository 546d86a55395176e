"""transformers: a streamer for `generate`, and a message from the tokens that it returns. Needs transformers.

    streamer = EventStreamer(tokenizer, toolgram.from_tokenizer(tokenizer), print)
    model.generate(**inputs, streamer=streamer)
    streamer.parser.message

Strategy: transformers' own `TextStreamer` turns tokens into text, also if one character takes several tokens. Special
tokens stay in the text, since they may be markers. The end of the prompt is the parser's prefix, so that a thought
opened by the template is read as one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from transformers import TextStreamer

from toolgram.events import Event
from toolgram.formats import Format
from toolgram.message import Message
from toolgram.runtime.parser import Parser

_MOST_PROMPT = 256  # tokens at the end of a prompt that are looked at


class EventStreamer(TextStreamer):  # type: ignore[misc]
    """Calls `see` with each event of one output while the model writes it.

    `tools` and `prefix` are those of `Format.parser`; by default, `prefix` is the end of the prompt. The message of
    `parser` is final after generation. One streamer is for one `generate`.
    """

    parser: Parser

    def __init__(
        self, tokenizer: Any, fmt: Format, see: Callable[[Event], object], tools: Sequence[Any] | None = None,
        prefix: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__(tokenizer, skip_prompt=True, skip_special_tokens=False)
        self._fmt, self._tools, self._prefix = fmt, tools, prefix
        self._see = see
        self.parser = self._parser_after("")

    def _parser_after(self, written: str) -> Parser:
        return self._fmt.parser(self._tools, written if self._prefix is None else self._prefix)

    def put(self, value: Any) -> None:
        """Take the tokens of the prompt, the first time; then those that the model writes."""
        if self.next_tokens_are_prompt:
            prompt = value[0] if len(value.shape) > 1 else value
            self.parser = self._parser_after(prompt_end(self.tokenizer, prompt))
        super().put(value)

    def on_finalized_text(self, text: str, stream_end: bool = False) -> None:
        """Take text that is certain, from transformers."""
        events = self.parser.feed(text)
        for event in [*events, *self.parser.close()] if stream_end else events:
            self._see(event)


def prompt_end(tokenizer: Any, tokens: Any) -> str:
    """Return what a prompt has already written for the assistant: its text after the last special token."""
    special = set(tokenizer.all_special_ids)
    tail = [int(token) for token in tokens[-_MOST_PROMPT:]]
    at = next((at for at in range(len(tail), 0, -1) if tail[at - 1] in special), None)
    return "" if at is None else str(tokenizer.decode(tail[at:], skip_special_tokens=False))


def parse_tokens(
    tokenizer: Any, fmt: Format, tokens: Any, prompt_length: int = 0, tools: Sequence[Any] | None = None,
    finish_reason: str | None = None,
) -> Message:  # fmt: skip
    """Return the message in the tokens of `generate` for one prompt, whose `prompt_length` tokens come first."""
    prefix = prompt_end(tokenizer, tokens[:prompt_length])
    text = tokenizer.decode(tokens[prompt_length:], skip_special_tokens=False)
    return fmt.parse(text, tools, prefix, finish_reason)


__all__ = ["EventStreamer", "parse_tokens"]
