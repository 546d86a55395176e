"""Exported grammars against the engines' own, in the same run: how long they compile, and what a mask costs.

Strategy: for a format, a vocabulary, a number of tools and a request, a few outputs with calls are written from the
exported expression.  xgrammar compiles the structural tag, and its own built-in tag of that model, which it knows by
the key below; a format without one, or whose built-in takes none of the outputs, is compared with the built-in of
hermes.  At every token of an output the mask is asked for.  Compiling is with one thread and without a cache.
Times are of the processor and the best of several, because other work runs on the machine as well.

The tools are of the schema pool of the tests: those of which the export enforces everything but that objects are
closed, which the engine's own tags take for granted as well, so that both sides do the same work.

    python -m benchmarks.exports [--formats hermes qwen3_coder] [--quick] [--write docs/export.md]
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

import toolgram
from benchmarks.vocabularies import Vocabulary, vocabulary
from tests.export.engines import import_xgrammar
from tests.export.schema_pool import pool
from tests.export.writing import random_output
from toolgram.export import export_request, expression
from toolgram.spec import Literal

BUILT_IN = {
    "cohere_command4": "cohere",
    "deepseek_r1": "deepseek_r1",
    "deepseek_v31": "deepseek_v3_1",
    "deepseek_v32": "deepseek_v3_2",
    "deepseek_v4": "deepseek_v4",
    "deepseek_v41": "deepseek_v4_1",
    "gemma4": "gemma_4",
    "glm47": "glm_4_7",
    "gpt_oss": "harmony",
    "hermes": "qwen_3",
    "kimi_k2": "kimi",
    "kimi_k3": "kimi_k3",
    "llama3_json": "llama",
    "mimo": "mimo",
    "minimax_m2": "minimax",
    "qwen3_coder": "qwen_3_coder",
}
SIZES = (1, 8, 40)
CHOICES = ("auto", "required", "named")
OUTPUTS = 3
ROUNDS = 3
NOT_THEIRS = ("allOf", "oneOf", "dict", "float", "minLength", "maxLength")  # read otherwise, or counted out, by its own
CLOSED = "is closed: no other names are written"


@lru_cache(maxsize=1)
def _schemas() -> tuple[dict[str, Any], ...]:
    """The schemas of the pool that both sides take and enforce, but that objects are closed."""
    hermes, found = toolgram.get_format("hermes"), []
    module = import_xgrammar()
    for schema in pool().values():
        if any(f'"{word}"' in json.dumps(schema) for word in NOT_THEIRS):
            continue
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        try:
            notes = hermes.export("structural_tag", [tool]).notes
            module.Grammar.from_structural_tag(json.loads(built_in("qwen_3", [tool], "auto")))
        except (toolgram.ToolgramError, RuntimeError):
            continue
        if all(CLOSED in note for note in notes) and schema.get("properties"):
            found.append(schema)
    return tuple(found)


def tools(size: int, seed: int = 0) -> list[dict[str, Any]]:
    """OpenAI tool dicts from the pool, others for each seed."""
    chosen = random.Random(f"{size} {seed}").sample(_schemas(), size)
    return [
        {"type": "function", "function": {"name": f"{verb}_{at}", "parameters": schema}}
        for at, (schema, verb) in enumerate(zip(chosen, ["get_page", "search", "update_row", "list"] * size))
    ]


def wish(choice: str, declared: Sequence[dict[str, Any]]) -> Any:
    """The `tool_choice` of a request."""
    return {"type": "function", "function": {"name": declared[0]["function"]["name"]}} if choice == "named" else choice


def markers(fmt: toolgram.Format) -> list[str]:
    """The texts of a format's special tokens."""
    shapes = (fmt.spec.terminals[token] for token in fmt.spec.special_tokens)
    return sorted(shape.text for shape in shapes if isinstance(shape, Literal))


# --- the engines --------------------------------------------------------------------------------------------------


class Xgrammar:
    """xgrammar over one vocabulary: compiling and masks."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.module, self.vocab = import_xgrammar(), vocab
        self.info = self.module.TokenizerInfo(
            list(vocab.tokens), vocab_type=self.module.VocabType.RAW, stop_token_ids=[vocab.eos_token_id]
        )

    def compiler(self, cached: bool) -> Any:
        """A compiler with one thread."""
        return self.module.GrammarCompiler(self.info, max_threads=1, cache_enabled=cached)

    def compiled(self, tag: str) -> tuple[float, Any]:
        """Milliseconds, the best of several, and the grammar."""
        times = []
        for _ in range(ROUNDS):
            compiler = self.compiler(False)
            began = time.process_time()
            made = compiler.compile_structural_tag(tag)
            times.append(1000 * (time.process_time() - began))
            if times[-1] > 2000:
                break
        return min(times), made

    def later(self, first: str, second: str) -> float:
        """Milliseconds of a second grammar in a compiler that has a cache."""
        compiler = self.compiler(True)
        compiler.compile_structural_tag(first)
        began = time.process_time()
        compiler.compile_structural_tag(second)
        return 1000 * (time.process_time() - began)

    def masks(self, grammar: Any, output: str) -> list[float] | None:
        """Microseconds at each token of an output; None where it is not accepted."""
        mask = np.full((1, (len(self.vocab.tokens) + 31) // 32), -1, dtype=np.int32)
        best: list[float] = []
        for _ in range(ROUNDS):
            matcher = self.module.GrammarMatcher(grammar)
            found = []
            for token in [*self.vocab(output), self.vocab.eos_token_id]:
                began = time.thread_time_ns()
                matcher.fill_next_token_bitmask(mask)
                found.append((time.thread_time_ns() - began) / 1000)
                if not matcher.accept_token(token):
                    return None
            best = [min(pair) for pair in zip(best, found, strict=True)] if best else found
        return best


class Llguidance:
    """llguidance over one vocabulary."""

    def __init__(self, vocab: Vocabulary) -> None:
        import llguidance

        self.module, self.vocab = llguidance, vocab
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(vocab))

    def compiled(self, lark: str) -> tuple[float, Any]:
        """Milliseconds, the best of several, and the grammar."""
        grammar = self.module.LLMatcher.grammar_from_lark(lark)
        times = []
        for _ in range(ROUNDS):
            began = time.process_time()
            matcher = self.module.LLMatcher(self.tokenizer, grammar, log_level=0)
            times.append(1000 * (time.process_time() - began))
            if matcher.is_error():
                raise ValueError(matcher.get_error())
        return min(times), grammar

    def masks(self, grammar: Any, output: str) -> list[float] | None:
        """Microseconds at each token of an output; None where it is not accepted."""
        best: list[float] = []
        for _ in range(ROUNDS):
            matcher = self.module.LLMatcher(self.tokenizer, grammar, log_level=0)
            found = []
            for token in self.vocab(output):
                began = time.thread_time_ns()
                matcher.compute_bitmask()
                found.append((time.thread_time_ns() - began) / 1000)
                if not matcher.consume_token(token):
                    return None
            best = [min(pair) for pair in zip(best, found, strict=True)] if best else found
        return best


# --- one measurement ----------------------------------------------------------------------------------------------


@dataclass
class Cost:
    """What one grammar costs: milliseconds to compile, and for a later toolset; microseconds for each mask."""

    compile: float
    later: float
    masks: list[float] = field(default_factory=list)
    taken: int = 0  # outputs that it accepts

    def at(self, share: float) -> float:
        """A percentile of the masks."""
        return float(np.quantile(self.masks, share)) if self.masks else float("nan")


def outputs(fmt: toolgram.Format, declared: list[dict[str, Any]], choice: Any) -> Iterator[str]:
    """Outputs with calls that read well, written from the exported expression, without end."""
    root, _ = expression(fmt, export_request(declared, choice), None, lambda words: None)
    rng = random.Random(f"{fmt.name} {len(declared)} {choice}")
    for _ in range(400):
        text = random_output(root, rng)
        message = fmt.parse(text, declared)
        if message.tool_calls and not message.anomalies and (choice != "auto" or message.content):
            yield text


def built_in(key: str, declared: list[dict[str, Any]], choice: Any) -> str:
    """xgrammar's own structural tag for a model, by its public function."""
    module = import_xgrammar()
    return str(
        module.get_model_structural_tag(key, tools=declared, tool_choice=choice, reasoning="disabled").model_dump_json()
    )


def cost(engine: Xgrammar, tag: str, later: str, texts: Sequence[str]) -> Cost:
    """A structural tag in xgrammar."""
    took, grammar = engine.compiled(tag)
    found = Cost(took, engine.later(tag, later))
    for text in texts:
        masks = engine.masks(grammar, text)
        found.masks += masks or []
        found.taken += masks is not None
    return found
