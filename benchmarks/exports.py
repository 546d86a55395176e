"""Exported grammars against the engines' own, in the same run: how long they compile, and what a mask costs.

Strategy: for a format, a vocabulary, a number of tools and a request, a few outputs with calls are written from the
exported expression.  xgrammar compiles the structural tag, and its own built-in tag of that model, which it knows by
the key below; a format without one, or whose built-in takes none of the outputs, is compared with the built-in of
hermes.  At every token of an output the mask is asked for.  Compiling is with one thread and without a cache.
Times are of the processor and the best of several, because other work runs on the machine as well.

The tools are of the schema pool of the tests: those of which the export enforces everything but that objects are
closed, which the engine's own tags take for granted as well, so that both sides do the same work.

    python -m benchmarks.exports [--formats hermes qwen3_coder] [--quick] [--write]
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import random
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np

import toolgram
from benchmarks.vocabularies import NAMES, Vocabulary, vocabulary
from tests.export.engines import import_xgrammar
from tests.export.measuring import PROMPTS, problem_of
from tests.export.schema_pool import pool
from tests.export.writing import random_output
from toolgram.export import export_request, expression
from toolgram.spec.data import Literal

BUILT_IN = {
    "cohere_command4": "cohere",
    "deepseek_r1": "deepseek_r1",
    "deepseek_v31": "deepseek_v3_1",
    "deepseek_v32": "deepseek_v3_2",
    "deepseek_v4": "deepseek_v4",
    "deepseek_v41": "deepseek_v4_1",
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
VERBS = ("get_page", "search", "update_row", "list")
SIZES = (1, 8, 40)
CHOICES = ("auto", "required", "named")
WHOLE = ("hermes", "qwen3_coder", "llama3_json", "mistral_v11")
WITHOUT_BUILT_IN = (
    "functionary_v3_2",
    "glm4",
    "granite_3",
    "lfm2",
    "llama4_pythonic",
    "mistral_v11",
    "olmo3",
    "phi4_mini",
    "xlam",
)
FORMATS = (*WHOLE, *sorted({*BUILT_IN, *WITHOUT_BUILT_IN} - {*WHOLE}))
SETS = {1: 3}  # toolsets for a size
OUTPUTS = 3
TRIES = 60
ROUNDS = 3
FREE_COMPILE, MOST_MASK, MOST_LATER, MOST_LLGUIDANCE = 50.0, 1000.0, 100.0, 100.0
NOT_THEIRS = ("allOf", "oneOf", "dict", "float", "minLength", "maxLength")  # read otherwise, or counted out, by its own
CLOSED = "is closed: no other names are written"


@lru_cache(maxsize=1)
def _schemas() -> tuple[dict[str, Any], ...]:
    """The schemas of the pool that both sides take and enforce, but that objects are closed."""
    hermes, found = toolgram.get_format("hermes"), []
    of_text = hermes.export("structural_tag").notes
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
        if all(CLOSED in note or note in of_text for note in notes) and schema.get("properties"):
            found.append(schema)
    return tuple(found)


def tools(size: int, seed: int = 0) -> list[dict[str, Any]]:
    """OpenAI tool dicts from the pool, others for each seed."""
    chosen = random.Random(f"{size} {seed}").sample(_schemas(), size)
    return [
        {"type": "function", "function": {"name": f"{verb}_{at}", "parameters": schema}}
        for at, (schema, verb) in enumerate(zip(chosen, VERBS * size, strict=False))
    ]


def tool_choice_of(choice: str, declared: Sequence[dict[str, Any]]) -> Any:
    """The `tool_choice` of a request."""
    return {"type": "function", "function": {"name": declared[0]["function"]["name"]}} if choice == "named" else choice


def special_texts(fmt: toolgram.Format) -> list[str]:
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
    """llguidance over one vocabulary. It keeps the masks of its slices, to which some may be added."""

    def __init__(self, vocab: Vocabulary, slices: Sequence[str] = ()) -> None:
        import llguidance

        self.module, self.vocab = llguidance, vocab
        blanks, *others = llguidance.LLTokenizer.general_slices()
        wrapper = llguidance.TokenizerWrapper(vocab)
        self.tokenizer = llguidance.LLTokenizer(wrapper, slices=[blanks, *slices, *others])

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
    """What grammars cost: milliseconds to compile, and for a later toolset; microseconds for each mask."""

    compile: float = 0.0
    later: float = 0.0
    masks: list[float] = field(default_factory=list)

    def at(self, share: float) -> float:
        """A percentile of the masks."""
        return float(np.quantile(self.masks, share)) if self.masks else float("nan")


@dataclass(frozen=True)
class Case:
    """One format and request."""

    vocabulary: str
    format: str
    size: int
    choice: str


@dataclass
class Row:
    """What one case costs: the structural tag, the engine's own tag, llguidance."""

    case: Case
    own: str  # the key of the engine's own tag
    ours: Cost = field(default_factory=Cost)
    theirs: Cost = field(default_factory=Cost)
    llguidance: Cost = field(default_factory=Cost)
    all_tokens: bool = True  # whether the markers that end a text are tokens

    def missed(self) -> list[str]:
        """The targets that are missed."""
        found = []
        if self.ours.compile > max(2 * self.theirs.compile, FREE_COMPILE):
            found.append("compile")
        if self.ours.at(0.95) > 2 * self.theirs.at(0.95) or self.ours.at(0.95) > MOST_MASK:
            found.append("mask")
        if self.ours.later > max(MOST_LATER, self.theirs.later):  # machines differ by more than grammars
            found.append("later")
        if self.all_tokens and self.llguidance.at(0.95) > MOST_LLGUIDANCE:
            found.append("llguidance")
        return found


def outputs(fmt: toolgram.Format, declared: list[dict[str, Any]], choice: Any) -> list[str]:
    """Outputs with calls that read well, written from the exported expression; with text, where calls may follow it."""
    found = list(_written(fmt, declared, choice))
    return [text for text, with_text in found if with_text or choice != "auto"] or [text for text, _ in found]


def _written(fmt: toolgram.Format, declared: list[dict[str, Any]], choice: Any) -> Iterator[tuple[str, bool]]:
    """Outputs, and whether there is text in them."""
    root, _ = expression(
        fmt, export_request(declared, choice, reasoning=False), PROMPTS.get(fmt.name), lambda words: None
    )
    rng = random.Random(f"{fmt.name} {len(declared)} {choice}")
    for _ in range(TRIES):
        text = random_output(root, rng)
        message = fmt.parse(text, declared, PROMPTS.get(fmt.name, ""))
        fits = not problem_of(fmt, text, declared, PROMPTS.get(fmt.name, ""))
        if message.tool_calls and fits:
            yield text, bool(message.content)


def built_in(key: str, declared: list[dict[str, Any]], choice: Any) -> str:
    """xgrammar's own structural tag for a model, by its public function."""
    tag = import_xgrammar().get_model_structural_tag(key, tools=declared, tool_choice=choice, reasoning="disabled")
    return str(tag.model_dump_json())


class Bench:
    """Measures cases; vocabularies and engines are made once for each format."""

    def __init__(self, slices: Sequence[str] = ()) -> None:
        self.slices = slices
        self.engines: dict[tuple[str, ...], tuple[Xgrammar, Llguidance]] = {}

    def engine(self, name: str, markers: Sequence[str]) -> tuple[Xgrammar, Llguidance]:
        """Both engines over a vocabulary with these markers; those of one format at a time."""
        key = (name, *markers)
        if key not in self.engines:
            self.engines.clear()
            vocab = vocabulary(name, markers)
            self.engines[key] = (Xgrammar(vocab), Llguidance(vocab, self.slices))
        return self.engines[key]

    def row(self, case: Case) -> Row:
        """One case, over one toolset or several."""
        row = Row(case, BUILT_IN.get(case.format, BUILT_IN["hermes"]))
        for seed in range(SETS.get(case.size, 1)):
            self._add(row, toolgram.get_format(case.format), tools(case.size, 2 * seed), tools(case.size, 2 * seed + 1))
        return row

    def _add(self, row: Row, fmt: toolgram.Format, declared: list[Any], others: list[Any]) -> None:
        xgrammar, llguidance = self.engine(row.case.vocabulary, special_texts(fmt))
        choice, other = tool_choice_of(row.case.choice, declared), tool_choice_of(row.case.choice, others)
        own = built_in(row.own, declared, choice)
        took, grammar = xgrammar.compiled(own)
        written = outputs(fmt, declared, choice)
        both = [text for text in written if fmt.name in BUILT_IN and xgrammar.masks(grammar, text)][:OUTPUTS]
        chosen = both or written[:OUTPUTS]
        theirs = both
        if not both:  # its outputs are others, so it is compared with hermes
            row.own = BUILT_IN["hermes"]
            own = built_in(row.own, declared, choice)
            took, grammar = xgrammar.compiled(own)
            of_hermes = outputs(toolgram.get_format("hermes"), declared, choice)
            theirs = list(islice((text for text in of_hermes if xgrammar.masks(grammar, text)), OUTPUTS))
        made = partial(fmt.export, prefix=PROMPTS.get(fmt.name), reasoning=False)
        _measure(row.theirs, took, xgrammar.later(own, built_in(row.own, others, other)), xgrammar, grammar, theirs)
        tag = made("structural_tag", declared, choice).text
        took, grammar = xgrammar.compiled(tag)
        later = xgrammar.later(tag, made("structural_tag", others, other).text)
        _measure(row.ours, took, later, xgrammar, grammar, chosen)
        export = made("llguidance", declared, choice, special_tokens=llguidance.vocab.special)
        row.all_tokens = row.all_tokens and not any(each in export.text for each in ("& ~", "[lazy]"))
        took, grammar = llguidance.compiled(export.text)
        _measure(row.llguidance, took, 0.0, llguidance, grammar, chosen)


def _measure(cost: Cost, took: float, later: float, engine: Any, grammar: Any, texts: Sequence[str]) -> None:
    cost.compile, cost.later = max(cost.compile, took), max(cost.later, later)
    for text in texts:
        masks = engine.masks(grammar, text)
        if masks is None:
            raise SystemExit(f"exports: an output of its own is refused: {text!r}")
        cost.masks += masks


# --- what is said -------------------------------------------------------------------------------------------------

COLUMNS = ("vocabulary", "format", "tools", "call", "compile ms (own)", "p50 us (own)", "p95 us (own)",
           "later ms (own)", "llguidance ms", "llguidance p95 us", "missed")  # fmt: skip
DATA = Path(__file__).parents[1] / "docs" / "data" / "speed.csv"


def cells(row: Row) -> list[str]:
    """A row of the file of data."""
    case, ours, theirs, other = row.case, row.ours, row.theirs, row.llguidance
    own = case.format if row.own == BUILT_IN.get(case.format) else f"{case.format} ({row.own})"
    return [
        case.vocabulary,
        own,
        str(case.size),
        case.choice,
        f"{ours.compile:.0f} ({theirs.compile:.0f})",
        f"{ours.at(0.5):.1f} ({theirs.at(0.5):.1f})",
        f"{ours.at(0.95):.0f} ({theirs.at(0.95):.0f})",
        f"{ours.later:.0f} ({theirs.later:.0f})",
        f"{other.compile:.0f}",
        f"{other.at(0.95):.0f}" + ("" if row.all_tokens else "*"),
        ", ".join(row.missed()),
    ]


def write(rows: Sequence[Row]) -> None:
    """Write the file of data; what was not measured now stays as it was."""
    with DATA.open(encoding="utf-8", newline="") as file:
        kept = list(csv.reader(file))[1:]
    now = {(row.case.vocabulary, row.case.format) for row in rows}
    lines = [line for line in kept if (line[0], line[1].partition(" ")[0]) not in now] + [cells(row) for row in rows]
    order = {pair: at for at, pair in enumerate(product(NAMES, FORMATS))}
    with DATA.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(sorted(lines, key=lambda line: order[line[0], line[1].partition(" ")[0]]))
    model = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    machine = f"{os.cpu_count()} cores, {model[1] if model else platform.machine()}, Python {platform.python_version()}"
    met = sum(not line[-1] for line in lines)
    engines = f"xgrammar {version('xgrammar')} and llguidance {version('llguidance')}"
    print(f"Measured with {engines} on {machine}. {met} of {len(lines)} rows meet all targets.")


def cases(formats: Sequence[str], whole: Sequence[str], vocabularies: Sequence[str]) -> Iterator[Case]:
    """For some formats everything on every vocabulary; for the others what differs most, on the first."""
    for name in [*whole, *(each for each in formats if each not in whole)]:
        for words in vocabularies if name in whole else vocabularies[:1]:
            for size in SIZES:
                for choice in CHOICES if name in whole or size == 8 else CHOICES[:1]:
                    yield Case(words, name, size, choice)


def quick() -> list[Row]:
    """What `make bench-check` measures: a few formats with eight tools."""
    bench = Bench()
    return [bench.row(Case("tekken", name, 8, "auto")) for name in WHOLE if name != "mistral_v11"]


def main() -> None:
    """Print the table, or write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--formats", nargs="*", default=FORMATS)
    parser.add_argument("--whole", nargs="*", default=WHOLE, help="formats with every request and vocabulary")
    parser.add_argument("--vocabularies", nargs="*", default=NAMES)
    parser.add_argument("--slices", nargs="*", default=(), help="expressions whose masks llguidance keeps as well")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--write", action="store_true")
    wanted = parser.parse_args()
    bench = Bench(wanted.slices)
    rows = []
    whole = [name for name in wanted.whole if name in wanted.formats]
    for case in cases(wanted.formats, whole, wanted.vocabularies) if not wanted.quick else ():
        rows.append(bench.row(case))
        print(*cells(rows[-1]), sep=" | ", flush=True)
    if wanted.quick:
        rows = quick()
        for row in rows:
            print(*cells(row), sep=" | ")
    if wanted.write:
        write(rows)


if __name__ == "__main__":
    main()
