"""The engines, run for real: acceptance and random sampling under their own token masks, without any model.

Strategy: the vocabulary is the 256 bytes, one token per given word, and an end token; what is accepted does not depend
on it, but words make a random sampler find its way through markers.  xgrammar imports torch for its tensors only: where
torch is not installed a stub takes its place, and masks are numpy arrays.
"""

import random
import re
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

END = "<eos>"
NEEDED = pytest.mark.skipif(
    not all(map(find_spec, ("llguidance", "tvm_ffi", "numpy", "jsonschema", "jsonschema_rs"))),
    reason="the engines are not here: make test installs them",
)


def _stub(name: str) -> types.ModuleType:
    class Anything:
        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    def anything(attribute: str) -> type[Anything]:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return Anything

    module = types.ModuleType(name)
    module.__getattr__ = anything  # type: ignore[method-assign]
    return module


def import_xgrammar() -> Any:
    """xgrammar, with stubs for what it needs and does not use here."""
    import tvm_ffi  # noqa: F401  (looks for torch itself, and must not find a stub)

    for name in ("torch", "transformers"):
        if name not in sys.modules:
            try:
                __import__(name)
            except ImportError:
                sys.modules[name] = _stub(name)
    import xgrammar

    return xgrammar


@dataclass(frozen=True)
class Matcher:
    """One output being matched: the mask of the engine, a bit for each token, and how it takes the next one."""

    mask: Callable[[], bytes]
    accept: Callable[[int], Any]
    size: int

    def allowed(self) -> np.ndarray[Any, Any]:
        """Which tokens may come next."""
        bits = np.unpackbits(np.frombuffer(self.mask(), dtype=np.uint8), bitorder="little")
        return np.flatnonzero(bits[: self.size])

    def take(self, token: int) -> bool:
        """The next token."""
        return bool(self.accept(token))


@dataclass(frozen=True)
class Vocabulary:
    """256 bytes, words, and the end."""

    tokens: tuple[bytes, ...]
    special_token_ids: tuple[int, ...]
    bos_token_id: None = None

    @property
    def eos_token_id(self) -> int:
        return len(self.tokens) - 1

    def __call__(self, data: bytes) -> list[int]:
        return list(data)


def vocabulary(words: Sequence[str] = (), special: Sequence[str] = ()) -> Vocabulary:
    """The vocabulary with these words, and after the bytes these special tokens."""
    unique = [word.encode() for word in dict.fromkeys(words) if len(word.encode()) > 1 and word not in special]
    tokens = (*(bytes([byte]) for byte in range(256)), *(text.encode() for text in special), *unique, END.encode())
    return Vocabulary(tokens, (*range(256, 256 + len(special)), len(tokens) - 1))


class Llguidance:
    """Grammars of llguidance, over one vocabulary."""

    def __init__(self, vocab: Vocabulary) -> None:
        import llguidance

        self.module, self.vocab = llguidance, vocab
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(vocab))

    def compile(self, lark: str) -> str:
        """The compiled grammar. Raises ValueError where llguidance does not take it."""
        grammar: str = self.module.LLMatcher.grammar_from_lark(lark)
        problem = self.module.LLMatcher.validate_grammar(grammar, self.tokenizer)
        if problem:
            raise ValueError(problem)
        return grammar

    def matcher(self, grammar: str) -> Matcher:
        """A matcher at the beginning of an output."""
        inner = self.module.LLMatcher(self.tokenizer, grammar, log_level=0)
        return Matcher(inner.compute_bitmask, inner.consume_token, len(self.vocab.tokens))

    def accepts(self, grammar: str, text: str | Sequence[int]) -> bool:
        """Whether a whole output fits: a text, of which every byte is a token, or tokens."""
        matcher = self.module.LLMatcher(self.tokenizer, grammar, log_level=0)
        ids = list(text.encode() if isinstance(text, str) else text)
        return bool(matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting())


class Xgrammar:
    """Grammars of xgrammar, over one vocabulary."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.module, self.vocab = import_xgrammar(), vocab
        raw, stop = self.module.VocabType.RAW, [vocab.eos_token_id]
        info = self.module.TokenizerInfo(list(vocab.tokens), vocab_type=raw, stop_token_ids=stop)
        self.info, self.compiler = info, self.module.GrammarCompiler(info)

    def compile(self, target: str, text: str) -> Any:
        """The compiled grammar of a target's text."""
        if target in ("xgrammar", "structural_tag"):
            return self.compiler.compile_structural_tag(text)
        return self.compiler.compile_grammar(self.module.Grammar.from_ebnf(text))

    def matcher(self, compiled: Any) -> Matcher:
        """A matcher at the beginning of an output."""
        inner, size = self.module.GrammarMatcher(compiled), len(self.vocab.tokens)
        bits = np.full((1, (size + 31) // 32), -1, dtype=np.int32)

        def mask() -> bytes:
            bits[:] = -1
            inner.fill_next_token_bitmask(bits)
            return bits.tobytes()

        return Matcher(mask, inner.accept_token, size)

    def accepts(self, compiled: Any, text: str | Sequence[int]) -> bool:
        """Whether a whole output fits: a text, or tokens."""
        matcher = self.module.GrammarMatcher(compiled)
        if not isinstance(text, str):
            return all(map(matcher.accept_token, (*text, self.vocab.eos_token_id)))
        return bool(matcher.accept_string(text) and matcher.accept_token(self.vocab.eos_token_id))


@dataclass(frozen=True)
class Engine:
    """One export in the engine that it was written for."""

    target: str
    accepts: Callable[[str | Sequence[int]], bool]
    begin: Callable[[], Any]  # a matcher
    vocab: Vocabulary


class Engines:
    """Both engines over one vocabulary."""

    def __init__(self, words: Sequence[str] = (), special: Sequence[str] = ()) -> None:
        self.vocab = vocabulary(words, special)
        self.llguidance, self.xgrammar = Llguidance(self.vocab), Xgrammar(self.vocab)

    def load(self, target: str, text: str) -> Engine:
        """The engine for a target, with its grammar compiled. GBNF is read by xgrammar here."""
        reads: Any = self.llguidance if target == "llguidance" else self.xgrammar
        grammar = reads.compile(text) if target == "llguidance" else reads.compile(target, text)
        return Engine(target, partial(reads.accepts, grammar), partial(reads.matcher, grammar), self.vocab)


@cache
def plain_engines() -> Engines:
    """Both engines over bytes, made once."""
    return Engines()


def sample(engine: Engine, rng: random.Random, *how: Any) -> str | None:
    """A random output under the engine's mask, as `sample_tokens` has it; None if it found no end."""
    tokens = sample_tokens(engine, rng, *how)
    if tokens is None:
        return None
    return b"".join(engine.vocab.tokens[token] for token in tokens).decode("utf-8", "replace")


def sample_tokens(
    engine: Engine, rng: random.Random, begins: Sequence[str] = (), needed: Sequence[str] = (), most: int = 200
) -> list[int] | None:
    """The tokens of a random output; xgrammar lets stray bytes of a character pass.

    What begins a call is liked best, words and structure better than single bytes. After `most` tokens whatever closes
    something comes first, or is needed to (the names of required arguments), and words before anything else.
    """
    matcher, vocab = engine.begin(), engine.vocab
    end = vocab.eos_token_id
    known = {token: number for number, token in enumerate(vocab.tokens)}
    calls = {known[word.encode()] for word in begins if word.encode() in known}
    keys = [known[word.encode()] for word in needed if word.encode() in known]
    closers = [known[word] for word in vocab.tokens[256:end] if re.search(rb"/|end|eom|eot", word.lower())]
    taken: list[int] = []
    text, last = b"", -1
    for at in range(most * 60):
        allowed = set(map(int, matcher.allowed()))
        if not allowed:
            return None
        may_end = end in allowed
        if may_end and (len(allowed) == 1 or at > most or rng.random() < 0.25):
            return taken
        allowed.discard(end)
        words = sorted(token for token in allowed if token >= 256)
        starts = sorted(calls & allowed)
        if at > most:
            after_key = [each for each in _AFTER_KEYS if each in allowed] if last in keys else []
            token = rng.choice(after_key) if after_key else _closing(rng, text, allowed, words, keys, closers)
        elif starts and rng.random() < 0.3:
            token = rng.choice(starts)
        elif words and rng.random() < 0.5:
            token = rng.choice(words)
        else:
            plain = sorted(token for token in allowed if 32 <= token < 127)
            liked = [token for token in plain if token in _MARKS]
            pool = (
                liked if liked and rng.random() < 0.4 else plain if plain and rng.random() < 0.95 else sorted(allowed)
            )
            token = rng.choice(pool)
        assert matcher.take(token), (engine.target, text, token)
        text, last = text + vocab.tokens[token], token
        taken.append(token)
    return None


_BEFORE_KEYS = tuple(bytes([byte]) for byte in b"\"'(>= ")
_AFTER_KEYS = tuple(b'"=>')
_QUOTES, _BRACKETS, _STEPS = list(b"\"'"), list(b"}])>"), list(b"=:")
_MARKS = frozenset(b"}])\"'>,:\n0 ")


def _closing(
    rng: random.Random, text: bytes, allowed: set[int], words: list[int], keys: list[int], closers: list[int]
) -> int:
    """A token that brings the end nearer: a bracket or a closing marker mostly, a word sometimes, seldom anything."""
    free = len(allowed) > 128  # the inside of a string, or raw text: what ends it is a quote or a marker
    raw = free and ord("\n") in allowed
    needed = [token for token in keys if token in allowed] if text[-1:] in _BEFORE_KEYS and not raw else []
    if needed and rng.random() < 0.5:
        return rng.choice(needed)
    kind = rng.random()
    groups = [_QUOTES, closers, closers] if free else [_QUOTES, _BRACKETS, _STEPS, keys, closers]
    near = [found for group in groups if (found := [token for token in group if token in allowed])]
    if near and kind < (0.8 if free else 0.6):
        return rng.choice(rng.choice(near))
    if words and kind < 0.95:
        return rng.choice(words)
    lines = {10} if text[-1:].strip() else set()  # the end of a list may begin on a line of its own
    solid = sorted(token for token in allowed if 32 < token < 127 or token in lines)
    return rng.choice(solid or sorted(allowed))
