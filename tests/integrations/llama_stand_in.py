"""A stand-in for the part of llama-cpp-python 0.3.36 that the chat handler touches, with a model that says what it is
told to say. `make test-llama-cpp` runs the real package."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from tests.integrations.stand_in_modules import in_place

MODULE = "toolgram.integrations.llama_cpp"
END = "<|im_end|>"


class Llama:
    """A model that writes one script. Tokens are special texts, or single bytes."""

    def __init__(
        self, says: str, template: str | None, special: list[str], context: int = 4096, end: bool = True
    ) -> None:
        self.says, self.end, self.context = says, end, context
        self.special = ["<s>", END, *special]
        self.metadata = {} if template is None else {"tokenizer.chat_template": template}
        self.model_path = "tiny.gguf"
        self.model = self
        self.prompts: list[str] = []
        self.asked: dict[str, Any] = {}
        self.seeds: list[int] = []
        self.generated = 0

    def n_vocab(self) -> int:
        return 256 + len(self.special)

    def n_ctx(self) -> int:
        return self.context

    def token_bos(self) -> int:
        return 256

    def token_eos(self) -> int:
        return 257

    def set_seed(self, seed: int) -> None:
        self.seeds.append(seed)

    def tokenize(self, text: bytes, add_bos: bool = True, special: bool = False) -> list[int]:
        assert special
        assert not add_bos
        self.prompts.append(text.decode())
        marks = "|".join(map(re.escape, self.special))
        tokens: list[int] = []
        for part in re.split(f"({marks})", text.decode()):
            tokens += [256 + self.special.index(part)] if part in self.special else list(part.encode())
        return tokens

    def generate(self, tokens: list[int], **options: Any) -> Iterator[int]:
        self.asked = options
        for token in [*self.tokenize(self.says.encode(), False, True), *([257] if self.end else [])]:
            self.generated += 1
            yield token


def _piece(llama: Llama, token: int, buffer: Any, size: int, lstrip: int, special: bool) -> int:
    data = llama.special[token - 256].encode() if token >= 256 else bytes([token])
    if len(data) > size:
        return -len(data)
    buffer[: len(data)] = data
    return len(data)


@contextmanager
def installed() -> Iterator[dict[str, Any]]:
    """llama_cpp for as long as the block runs; gives what was registered under which name."""
    names: dict[str, Any] = {}
    grammars = SimpleNamespace(from_string=lambda text, verbose: text)
    contents: dict[str, dict[str, Any]] = {
        "llama_cpp": {
            "LlamaGrammar": grammars,
            "LogitsProcessorList": list,
            "llama_model_get_vocab": lambda model: model,
            "llama_vocab_is_control": lambda llama, token: token >= 256,
            "llama_vocab_is_eog": lambda llama, token: token == 257,
            "llama_token_to_piece": _piece,
        },
        "llama_cpp.llama_chat_format": {
            "register_chat_completion_handler": lambda name: lambda handler: names.setdefault(name, handler)
        },
    }
    with in_place(contents, ("llama_cpp",)):
        yield names
