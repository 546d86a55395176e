"""vLLM's parsers, as its server builds and calls them: `ParserManager.get_parser`, then `parse_delta` per delta.

No GPU, model or tokenizer file is needed: the parsers ask a tokenizer only for its special tokens and for the text of
an id, which the stand-in below knows.  Its tokens are the 4-character deltas themselves, so that ids and text always
agree.  The last delta is marked as such, as the engine does.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from benchmarks.contenders import Contender, Heard, Prepared, Stream
from benchmarks.workloads import FORMATS, Workload, cut

TOKEN = 4  # characters
PROMPT = [0]

# The parser's name, and the special tokens that it wants to see in the vocabulary.
PARSERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "mistral_v11": ("mistral", FORMATS["mistral_v11"].markers),
    "mistral_v3": ("mistral", FORMATS["mistral_v3"].markers),
    "llama3_json": ("llama3_json", ("<|python_tag|>",)),
    "llama4_pythonic": ("llama4_pythonic", ("<|python_start|>", "<|python_end|>")),
}


class Tokenizer:
    """Special tokens have fixed ids; any other piece of text gets one when it is first seen."""

    is_fast = False
    chat_template = None
    bos_token, eos_token = "<s>", "</s>"
    bos_token_id, eos_token_id = 0, 1
    vocab_size = 2**20

    def __init__(self, markers: tuple[str, ...]) -> None:
        self.all_special_tokens = [self.bos_token, self.eos_token, *markers]
        self.all_special_ids = list(range(len(self.all_special_tokens)))
        self.specials = dict(zip(self.all_special_tokens, self.all_special_ids, strict=True))
        self.ids = dict(self.specials)
        self.texts = list(self.all_special_tokens)

    def __len__(self) -> int:
        return self.vocab_size

    def get_vocab(self) -> dict[str, int]:
        """What parsers look their markers up in."""
        return self.specials

    def encode(self, text: str, **options: Any) -> list[int]:
        """One id per 4 characters or marker."""
        pieces = cut(text, TOKEN, tuple(self.all_special_tokens))
        for piece in pieces:
            if piece not in self.ids:
                self.ids[piece] = len(self.texts)
                self.texts.append(piece)
        return [self.ids[piece] for piece in pieces]

    def decode(self, ids: list[int], **options: Any) -> str:
        """The inverse."""
        return "".join(self.texts[index] for index in ids)


def hear(results: list[Any]) -> Heard:
    """Delta messages, added up."""
    heard = Heard()
    for message in filter(None, results):
        heard.content += message.content or ""
        heard.reasoning += message.reasoning or ""
        for call in message.tool_calls:
            heard.call(call.index, call.function.name, call.function.arguments)
    return heard


def load(name: str) -> Contender:
    """Imports vLLM's parser layer, with its logging (a line per surprise in the text) turned off."""
    os.environ["VLLM_LOGGING_LEVEL"] = "CRITICAL"
    manager = import_module("vllm.parser").ParserManager
    request_type = import_module("vllm.entrypoints.openai.chat_completion.protocol").ChatCompletionRequest

    def prepare(workload: Workload, written_as: str) -> Prepared:
        parser_name, markers = PARSERS[written_as]
        tokenizer = Tokenizer(markers)
        parser_class = manager.get_parser(
            tool_parser_name=parser_name,
            reasoning_parser_name=parser_name if workload.kind == "reasoning" else None,
            enable_auto_tools=True,
            model_name="model",
            tokenizer=tokenizer,
        )
        messages = [{"role": "user", "content": "Go."}]
        request = request_type(model="model", messages=messages, tools=workload.tools, tool_choice="auto", stream=True)
        request = parser_class(tokenizer, request.tools).adjust_request(request)

        def encode(deltas: list[str]) -> list[tuple[str, list[int], bool]]:
            last = len(deltas) - 1
            return [(delta, tokenizer.encode(delta), index == last) for index, delta in enumerate(deltas)]

        def open_stream() -> Stream:
            parse = parser_class(tokenizer, request.tools, chat_template_kwargs={}, model_config=None).parse_delta

            def feed(delta: tuple[str, list[int], bool]) -> object:
                return parse(delta[0], delta[1], request, PROMPT, finished=delta[2])

            return feed, lambda: None

        return Prepared(open_stream, encode, hear)

    return prepare
