"""openai-harmony's streaming parser: it takes tokens, and is asked after each for what is new."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.contenders import Contender, Heard, Prepared, Stream
from benchmarks.workloads import Workload


def hear(results: list[Any]) -> Heard:
    """New text by channel; every recipient is one call here. The last result is that of the end, and is nothing."""
    heard = Heard()
    recipients: list[str] = []
    for text, channel, recipient in results[:-1]:
        if recipient:
            if recipient not in recipients:
                recipients.append(recipient)
                heard.call(len(recipients) - 1, recipient.removeprefix("functions."), None)
            heard.call(len(recipients) - 1, None, text)
        elif channel == "analysis":
            heard.reasoning += text or ""
        else:
            heard.content += text or ""
    return heard


def load(name: str) -> Contender:
    """Imports the library and loads the vocabulary, once."""
    harmony = import_module("openai_harmony")
    encoding = harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)

    def prepare(workload: Workload, written_as: str) -> Prepared:
        def encode(deltas: list[str]) -> list[int]:
            tokens: list[int] = encoding.encode("".join(deltas), allowed_special="all")
            return tokens

        def open_stream() -> Stream:
            parser = harmony.StreamableParser(encoding, harmony.Role.ASSISTANT)

            def feed(token: int) -> object:
                parser.process(token)
                return parser.last_content_delta, parser.current_channel, parser.current_recipient

            return feed, parser.process_eos

        return Prepared(open_stream, encode, hear)

    return prepare
