"""llama.cpp, run for real: GBNF under the library's own grammar sampler, over a vocabulary and without a model.

Strategy: llama.cpp takes a vocabulary from a model file alone, so one is written that holds nothing else: the bytes,
words, special tokens and an end, in the order of the other engines' vocabulary, with the tokens that the format of such
files asks for after them.  The package builds llama.cpp from source, so it is in an environment of its own
(`make test-llama-cpp`).
"""

import ctypes
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.export.engines import Engine, Vocabulary, vocabulary

_UNKNOWN, _NORMAL, _CONTROL, _WORD, _BYTE = 2, 1, 3, 4, 6  # of token types in a model file
# llama.cpp takes a token of this text for the end of a turn, unless the vocabulary is gpt-oss's own, with these.
TAKEN_FOR_AN_END = {"<|end|>"}
_OF_GPT_OSS = {"<|return|>", "<|call|>"}
_BLANK = "▁".encode()  # how a model file writes a blank in a normal token; a word is taken as it is


def write_vocabulary(path: Path, vocab: Vocabulary) -> None:
    """A model file with a vocabulary and no model."""
    import gguf

    size = len(vocab.tokens)
    tokens = [f"<0x{byte:02X}>".encode() for byte in range(256)]
    words = {at for at in range(256, size - 1) if _BLANK in vocab.tokens[at]} | set(vocab.special_token_ids)
    tokens += [
        vocab.tokens[at] if at in words else vocab.tokens[at].replace(b" ", _BLANK) for at in range(256, size - 1)
    ]
    types = [_BYTE] * 256 + [_WORD if at in words else _NORMAL for at in range(256, size - 1)]
    writer = gguf.GGUFWriter(path, "llama")
    for add in (writer.add_context_length, writer.add_embedding_length, writer.add_feed_forward_length):
        add(8)
    writer.add_block_count(1)
    writer.add_head_count(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list([*tokens, b"<eos>", b"<unk>", b"<bos>"])
    writer.add_token_scores([0.0] * (size + 2))
    writer.add_token_types([*types, _CONTROL, _UNKNOWN, _CONTROL])
    writer.add_eos_token_id(size - 1)
    writer.add_unk_token_id(size)
    writer.add_bos_token_id(size + 1)
    writer.add_add_bos_token(False)
    writer.add_add_space_prefix(False)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class LlamaCppEngines:
    """llama.cpp over one vocabulary."""

    def __init__(self, words: Sequence[str] = (), special: Sequence[str] = ()) -> None:
        import llama_cpp

        self.module = llama_cpp
        taken = set() if set(words) >= _OF_GPT_OSS else TAKEN_FOR_AN_END
        self.vocab = vocabulary([each for each in words if each not in taken], special)
        self._silence = llama_cpp.llama_log_callback(lambda *said: None)
        llama_cpp.llama_log_set(self._silence, ctypes.c_void_p(0))
        parameters = llama_cpp.llama_model_default_params()
        parameters.vocab_only = True
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "vocabulary.gguf"
            write_vocabulary(path, self.vocab)
            self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), parameters)
        self.tokens = llama_cpp.llama_model_get_vocab(self.model)

    def load(self, target: str, text: str) -> Engine:
        """The grammar, read. Raises ValueError where llama.cpp does not take it."""
        module = self.module
        sampler = module.llama_sampler_init_grammar(self.tokens, text.encode(), b"root")
        if not sampler:
            raise ValueError("llama.cpp does not take this grammar")

        def begin() -> _Matcher:
            return _Matcher(self, module.llama_sampler_clone(sampler))

        return Engine(target, _accepting(begin, self.vocab), begin, self.vocab)


def _accepting(begin: "Callable[[], _Matcher]", vocab: Vocabulary) -> Callable[[str | Sequence[int]], bool]:
    def accepts(text: str | Sequence[int]) -> bool:
        matcher = begin()
        ids = text.encode() if isinstance(text, str) else text
        return all(map(matcher.take, ids)) and matcher.may(vocab.eos_token_id)

    return accepts


class _Matcher:
    def __init__(self, engines: LlamaCppEngines, sampler: Any) -> None:
        self.engines, self.sampler = engines, sampler

    def __del__(self) -> None:
        self.engines.module.llama_sampler_free(self.sampler)

    def _kept(self, ids: Iterable[int]) -> list[int]:
        module = self.engines.module
        tokens = [module.llama_token_data(each, 1.0, 0.0) for each in ids]
        data = (module.llama_token_data * len(tokens))(*tokens)
        array = module.llama_token_data_array(data, len(tokens), -1, False)
        module.llama_sampler_apply(self.sampler, ctypes.byref(array))
        return [each.id for each in data if each.logit == 1.0]

    def may(self, token: int) -> bool:
        """Whether this token may come next."""
        return bool(self._kept([token]))

    def allowed(self) -> np.ndarray[Any, Any]:
        return np.array(self._kept(range(len(self.engines.vocab.tokens))), dtype=np.int64)

    def take(self, token: int) -> bool:
        if not self.may(token):
            return False  # llama.cpp itself ends the process
        self.engines.module.llama_sampler_accept(self.sampler, token)
        return True
