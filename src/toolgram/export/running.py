"""Run an export in the engine of its target: a matcher over a tokenizer, and a logits processor for transformers.

Strategy: a grammar is compiled once for a tokenizer, and each output begins a matcher of its own. A matcher has two
methods for any engine: one returns which tokens may come next, the other takes the next token. The engines are imported
here when they are needed, and are not dependencies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from toolgram.errors import ToolgramError


@dataclass(frozen=True, slots=True)
class Matcher:
    """One output that is being written.

    `allowed` returns a bit for each token, the lowest first: whether it may come next. `take` takes the next token, and
    returns False if it may not come.
    """

    allowed: Callable[[], bytes]
    take: Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Compiled:
    """A grammar that is compiled for a tokenizer."""

    begin: Callable[[], Matcher]

    def accepts(self, tokens: Sequence[int]) -> bool:
        """Return whether tokens are the beginning of an output, or all of it."""
        matcher = self.begin()
        return all(matcher.take(token) for token in tokens)


def compile_export(target: str, text: str, tokenizer: Any) -> Compiled:
    """See `Export.compile`."""
    if target == "gbnf":
        raise ToolgramError("gbnf is read by llama.cpp: give it the text, with --grammar-file or in a request")
    return _llguidance(text, tokenizer) if target == "llguidance" else _xgrammar(target, text, tokenizer)


def _engine(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ToolgramError(f"{name.partition('.')[0]} is needed to run this export: {error}") from error


# --- llguidance ---------------------------------------------------------------------------------------------------


def _llguidance(text: str, tokenizer: Any) -> Compiled:
    module = _engine("llguidance")
    known = tokenizer
    if not isinstance(tokenizer, module.LLTokenizer):
        known = _engine("llguidance.hf").from_tokenizer(tokenizer)
    grammar = module.LLMatcher.grammar_from_lark(text)
    if problem := module.LLMatcher.validate_grammar(grammar, known):
        raise ToolgramError(f"llguidance refuses the grammar: {problem}")

    def begin() -> Matcher:
        inner = module.LLMatcher(known, grammar, log_level=0)
        return Matcher(lambda: bytes(inner.compute_bitmask()), lambda token: inner.try_consume_tokens([token]) == 1)

    return Compiled(begin)


# --- xgrammar -----------------------------------------------------------------------------------------------------


def _xgrammar(target: str, text: str, tokenizer: Any) -> Compiled:
    module = _engine("xgrammar")
    known = tokenizer
    if not isinstance(tokenizer, module.TokenizerInfo):
        known = module.TokenizerInfo.from_huggingface(tokenizer)
    compiler = module.GrammarCompiler(known)
    try:
        if target == "ebnf":
            grammar = compiler.compile_grammar(module.Grammar.from_ebnf(text))
        else:
            grammar = compiler.compile_structural_tag(text)
    except RuntimeError as error:
        raise ToolgramError(f"xgrammar refuses the grammar: {error}") from error

    def begin() -> Matcher:
        inner = module.GrammarMatcher(grammar)
        mask = _engine("numpy").full((1, (known.vocab_size + 31) // 32), -1, dtype="int32")

        def allowed() -> bytes:
            mask.fill(-1)
            if not inner.is_terminated():  # after the end, anything
                inner.fill_next_token_bitmask(mask)
            return bytes(mask.tobytes())

        return Matcher(allowed, lambda token: bool(inner.is_terminated() or inner.accept_token(token)))

    return Compiled(begin)


# --- transformers -------------------------------------------------------------------------------------------------


class LogitsProcessor:
    """Give `generate` of transformers only the tokens that a grammar allows: `logits_processor=[...]`.

    Each row of a batch has a matcher. A row that does not go on from the last step, as with beams, is read again.
    """

    def __init__(self, compiled: Compiled) -> None:
        self._compiled = compiled
        self._prompt = -1  # how many tokens come before the output
        self._rows: list[tuple[list[int], Matcher]] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Return the scores, with minus infinity for each token that may not come."""
        numpy = _engine("numpy")
        if self._prompt < 0:
            self._prompt = int(input_ids.shape[1])
        written = [row[self._prompt :] for row in input_ids.tolist()]
        self._rows = [self._read(tokens, at) for at, tokens in enumerate(written)]
        masks = [numpy.frombuffer(matcher.allowed(), dtype="uint8") for _, matcher in self._rows]
        bits = numpy.unpackbits(numpy.stack(masks), axis=1, count=scores.shape[1], bitorder="little")
        return scores + scores.new_tensor(numpy.where(bits, 0.0, -numpy.inf))

    def _read(self, tokens: list[int], at: int) -> tuple[list[int], Matcher]:
        known, matcher = self._rows[at] if at < len(self._rows) else ([], self._compiled.begin())
        if tokens[: len(known)] != known:
            known, matcher = [], self._compiled.begin()
        for token in tokens[len(known) :]:
            matcher.take(token)
        return tokens, matcher
