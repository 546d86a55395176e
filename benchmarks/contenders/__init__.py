"""Who is measured, in which environment, and on which workloads.

A contender is a module with one function, `load(name)`, that imports the peer and returns a `Contender`: how to prepare
a workload, how to open one stream, and how to read what it gave.  The last is for fairness: losing the text is fast, so
a result that is not what was said is marked in the tables.  This file knows contenders by name only, so that the
runner, whose environment has none of them, can plan, and so that each runs in a process with no other one imported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from benchmarks.workloads import KINDS, WORKLOADS, Answer, Workload

CALLS = frozenset({"string", "members", "nested", "code"})

# One stream: a function that takes a delta, and one that ends the stream.
Stream: TypeAlias = tuple[Callable[[Any], object], Callable[[], object]]


@dataclass
class Heard:
    """What a contender's results add up to."""

    reasoning: str = ""
    content: str = ""
    calls: list[tuple[str, str]] = field(default_factory=list)

    def call(self, index: int, name: str | None, arguments: str | None) -> None:
        """A piece of a call."""
        while len(self.calls) <= index:
            self.calls.append(("", ""))
        old_name, old_arguments = self.calls[index]
        self.calls[index] = (old_name + (name or ""), old_arguments + (arguments or ""))

    def is_what_was_said(self, answer: Answer) -> bool:
        """Texts but for blanks around them, and calls by value."""
        try:
            calls = [(name, json.loads(arguments)) for name, arguments in self.calls]
        except ValueError:
            return False
        texts = self.reasoning.strip() == answer.reasoning.strip() and self.content.strip() == answer.content.strip()
        return texts and calls == [(call.name, call.arguments) for call in answer.calls]


@dataclass(frozen=True)
class Prepared:
    """All that is set up before a stream: how to open one, what its deltas are turned into, and how to read results."""

    open: Callable[[], Stream]
    encode: Callable[[list[str]], Sequence[Any]]
    hear: Callable[[list[Any]], Heard]


class Contender(Protocol):
    """What a contender's `load()` returns."""

    def __call__(self, workload: Workload, written_as: str) -> Prepared: ...


def as_they_are(deltas: list[str]) -> Sequence[Any]:
    """The encoding of whoever takes text and nothing else."""
    return deltas


@dataclass(frozen=True)
class Entry:
    """A contender's row in the plan. `reads` maps the format of a workload to the one that this contender is given."""

    title: str
    module: str
    distributions: tuple[str, ...]
    reads: Mapping[str, str]
    kinds: frozenset[str] = frozenset(KINDS)
    cannot: frozenset[str] = field(default=frozenset())  # names of single workloads
    peer: bool = True  # needs the optional environment
    takes_text: bool = True  # otherwise tokens, whatever the delta size
    note: str = ""

    def workloads(self) -> Iterable[Workload]:
        """Those that it is measured on."""
        for workload in WORKLOADS.values():
            if workload.format in self.reads and workload.kind in self.kinds and workload.name not in self.cannot:
                yield workload


def _same(*formats: str) -> dict[str, str]:
    return {name: name for name in formats}


CONTENDERS: dict[str, Entry] = {
    "toolgram": Entry(
        "toolgram",
        "benchmarks.contenders.ours",
        ("toolgram", "lark", "ijson"),
        _same("mistral_v11", "mistral_v3", "llama3_json", "llama4_pythonic", "qwen3_coder"),
        peer=False,
    ),
    "transformers": Entry(
        "transformers",
        "benchmarks.contenders.hf",
        ("transformers", "regex"),
        _same("mistral_v11", "mistral_v3", "llama3_json"),
        cannot=frozenset({"two_calls/llama3_json"}),
        note="transformers: `ResponseParser` with response templates written for these formats (contenders/hf.py). It "
        "sends a call's raw text as it comes and its name and arguments when the call has ended. It has no reader for "
        "Python lists, and its templates cannot tell one bare JSON object from the next.",
    ),
    "vllm_engine": Entry(
        "vLLM engine",
        "benchmarks.contenders.vllm",
        ("vllm", "torch", "transformers", "mistral_common"),
        _same("mistral_v11"),
        note="vLLM engine: the parser `mistral` for tokenizers since v11 (and its reasoning parser, for the workload "
        "with reasoning), through `parse_delta`, as the server calls it, with one token id per 4 characters.",
    ),
    "vllm_legacy": Entry(
        "vLLM legacy",
        "benchmarks.contenders.vllm",
        ("vllm", "torch", "transformers", "partial-json-parser"),
        _same("mistral_v3", "llama3_json", "llama4_pythonic"),
        note="vLLM legacy: `mistral` for tokenizers before v11 (an ijson coroutine, not the engine's tables), "
        "`llama3_json`, `llama4_pythonic`; driven in the same way.",
    ),
    "sglang": Entry(
        "SGLang",
        "benchmarks.contenders.sglang",
        ("sglang", "partial-json-parser", "orjson"),
        _same("mistral_v11", "mistral_v3", "llama3_json", "llama4_pythonic"),
        kinds=frozenset(KINDS) - {"reasoning"},
        note="SGLang: `FunctionCallParser` with the detectors `mistral`, `llama3` and `pythonic`, without the serving "
        "layer. `mistral` sends the arguments of a v11 call, and `pythonic` the whole list, in one piece at the end.",
    ),
    "harmony": Entry(
        "harmony",
        "benchmarks.contenders.harmony",
        ("oss-harmony",),
        {"mistral_v11": "harmony"},
        takes_text=False,
        note="harmony: openai-harmony's `StreamableParser` on the same answers in its own format, given as tokens, one "
        "at a time, and asked after each for the new text, the channel and the recipient. From oss-harmony, the fork "
        "that has the vocabulary built in; openai-harmony 0.0.8 downloads it.",
    ),
    "partial_json": Entry(
        "partial-json-parser",
        "benchmarks.contenders.reparse",
        ("partial-json-parser",),
        {"mistral_v11": "arguments"},
        kinds=CALLS,
        note="partial-json-parser, jiter: the growing buffer parsed anew at every delta, given the arguments alone: "
        "finding the call, and the difference to what was sent, come on top.",
    ),
    "jiter": Entry("jiter", "benchmarks.contenders.reparse", ("jiter",), {"mistral_v11": "arguments"}, kinds=CALLS),
}
