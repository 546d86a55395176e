"""Tokenizers that need no download: two synthetic ones, and the real ones that come inside packages.

`Pieces` needs nothing but Python: markers are single tokens, other text is cut every few characters.  The others need
the packages of the vLLM environment and import them when asked for.
"""

import json
import re
import tempfile
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

EOS = "<|end|of|test|>"


class Pieces:
    """A slow tokenizer: markers are tokens, other text is cut every `size` characters."""

    is_fast = False
    bos_token, bos_token_id = "<s>", 0
    name_or_path = "pieces"

    def __init__(
        self, specials: Any = (), added: Any = (), size: int = 1, chat_template: Any = None, eos_token: str = EOS
    ) -> None:
        self.chat_template, self.eos_token = chat_template, eos_token
        self.all_special_tokens = list(dict.fromkeys([self.bos_token, eos_token, *specials]))
        self._added = list(dict.fromkeys([*self.all_special_tokens, *added]))
        self.all_special_ids = [self._added.index(text) for text in self.all_special_tokens]
        self.eos_token_id = self._added.index(eos_token)
        self._texts = list(self._added)
        self._ids = {text: number for number, text in enumerate(self._texts)}
        marks = sorted(self._added, key=len, reverse=True)
        marked = "|".join(map(re.escape, marks))
        self._cutter = re.compile(rf"{marked}|(?:(?!{marked})[\s\S]){{1,{size}}}")
        self.vocab_size = 2**20

    def __len__(self) -> int:
        return self.vocab_size

    def get_vocab(self) -> dict[str, int]:
        return dict(self._ids)

    def get_added_vocab(self) -> dict[str, int]:
        return {text: number for number, text in enumerate(self._added)}

    def token(self, text: str) -> int:
        """The id of a text as one token, which it becomes if it was none."""
        if text not in self._ids:
            self._ids[text] = len(self._texts)
            self._texts.append(text)
        return self._ids[text]

    def encode(self, text: str, add_special_tokens: bool = False, **options: Any) -> list[int]:
        return [self.token(piece) for piece in self._cutter.findall(text)]

    def spell(self, text: str) -> list[int]:
        """The ids of a text in which no marker is a token: how a model quotes one."""
        return [self.token(letter) for letter in text]

    def decode(self, ids: Iterable[int], skip_special_tokens: bool = False, **options: Any) -> str:
        return "".join(self.convert_ids_to_tokens(ids, skip_special_tokens))

    def convert_ids_to_tokens(self, ids: Iterable[int], skip_special_tokens: bool = False) -> list[str]:
        skipped = set(self.all_special_ids) if skip_special_tokens else set()
        return [self._texts[number] for number in ids if number not in skipped]

    def convert_tokens_to_ids(self, tokens: Any) -> Any:
        return self.token(tokens) if isinstance(tokens, str) else [self.token(each) for each in tokens]

    def convert_tokens_to_string(self, tokens: Sequence[str]) -> str:
        return "".join(tokens)


def byte_tokens(eos: str, specials: Sequence[str] = (), pieces: Iterable[str] = ()) -> Any:
    """A fast tokenizer made of nothing: a token for each byte, so that other characters are split, and these pieces."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocabulary = dict.fromkeys([*sorted(pre_tokenizers.ByteLevel.alphabet()), *pieces])
    core = Tokenizer(models.BPE(vocab={text: number for number, text in enumerate(vocabulary)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in [eos, *specials]])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token=eos)
    tokenizer.add_special_tokens({"additional_special_tokens": list(specials)})
    return tokenizer


def llama3(added: Sequence[str] = ()) -> Any:
    """Llama 3's own tokenizer with all of its merges, as vLLM keeps one."""
    from vllm.tokenizers.hf import get_cached_tokenizer

    special = ["<|begin_of_text|>", "<|eom_id|>", "<|python_tag|>"]
    return get_cached_tokenizer(real_tokenizer("llama3", added, special, "<|eot_id|>", ""))


def mistral(kind: str, scratch: Path) -> Any:
    """A Mistral tokenizer from a file inside `mistral_common`: "spm_v3", "spm_v7", "tekken_v3", or the tekken file with
    the markers of "tekken_v11" and "tekken_v13" put where Mistral has them."""
    import mistral_common
    from transformers.tokenization_mistral_common import MistralCommonBackend, ValidationMode
    from vllm.tokenizers.mistral import MistralTokenizer

    home = Path(mistral_common.__file__).parent / "data"
    files = {
        "spm_v3": home / "mistral_instruct_tokenizer_240323.model.v3",
        "spm_v7": home / "mistral_instruct_tokenizer_241114.model.v7",
        "tekken_v3": home / "tekken_240911.json",
    }
    path = files.get(kind) or _newer_tekken(files["tekken_v3"], kind.partition("_")[2], scratch)
    return MistralTokenizer(MistralCommonBackend(tokenizer_path=str(path), mode=ValidationMode.test))


def _newer_tekken(path: Path, version: str, scratch: Path) -> Path:
    written = scratch / f"tekken_{version}.json"
    if not written.exists():
        data = json.loads(path.read_text(encoding="utf-8"))
        data["config"]["version"] = version
        places = {32: "[ARGS]", 33: "[CALL_ID]"} | ({34: "[THINK]", 35: "[/THINK]"} if version == "v13" else {})
        specials = data.get("special_tokens") or []
        if not specials:
            from mistral_common.tokens.tokenizers.tekken import Tekkenizer

            specials = [dict(each) for each in Tekkenizer.DEPRECATED_SPECIAL_TOKENS]
        texts = {each["rank"]: each["token_str"] for each in specials} | places
        data["special_tokens"] = [
            {"rank": rank, "token_str": texts.get(rank, f"<SPECIAL_{rank}>"), "is_control": True}
            for rank in range(max(texts) + 1)
        ]
        written.write_text(json.dumps(data), encoding="utf-8")
    return written


_QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@lru_cache(maxsize=2)
def _tiktoken_file(kind: str) -> tuple[Path, str]:
    if kind == "qwen":
        import importlib.util

        found = importlib.util.find_spec("dashscope")  # not imported: the package ships the file
        assert found is not None
        assert found.origin is not None
        return Path(found.origin).parent / "resources" / "qwen.tiktoken", _QWEN_PATTERN
    import llama_models.llama3

    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
        r"|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    return Path(llama_models.llama3.__path__[0]) / "tokenizer.model", pattern


@lru_cache(maxsize=4)
def _core(kind: str, merges: int | None) -> str:
    """The real vocabulary and merges of Llama 3 or of Qwen, or the first of them, as the `tokenizers` library writes
    them."""
    path, pattern = _tiktoken_file(kind)
    if merges is None:
        return _converted(path, pattern)
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / path.name
        first.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[: 256 + merges]))
        return _converted(first, pattern)


def _converted(path: Path, pattern: str) -> str:
    from transformers.convert_slow_tokenizer import TikTokenConverter

    converter = TikTokenConverter(vocab_file=str(path), pattern=pattern, extra_special_tokens=["<|endoftext|>"])
    return str(converter.converted().to_str())


def real_tokenizer(
    kind: str, added: Sequence[str], special: Sequence[str], eos: str, chat_template: str, merges: int | None = None
) -> Any:
    """A tokenizer with the real merges of Llama 3 or Qwen, and the markers of another model in its vocabulary. With
    `merges`, the most frequent ones only: a server loads its tokenizer three times, which takes seconds with all."""
    from tokenizers import AddedToken, Tokenizer
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer.from_str(_core(kind, merges))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|endoftext|>", bos_token="<|endoftext|>")
    specials = list(dict.fromkeys([*special, eos]))
    tokenizer.add_special_tokens({"additional_special_tokens": specials, "eos_token": eos})
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in added if text not in specials])
    tokenizer.chat_template = chat_template
    return tokenizer
