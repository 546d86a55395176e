"""The workloads: answers of nine kinds, written in each format that has them, and split into deltas.

A workload is a *kind* (prose, reasoning, one call with many small values) in a *format* (the notation of a family of
models).  The two are separate, so that the same answer, of the same size, can be written for any contender, including
openai-harmony's token channels and a bare JSON object.  A new format is one more entry of `FORMATS`.  `length` is the
size of the answer in characters, without markers and envelopes.

Texts consist of random words, frequent and rare ones, and every `seed` gives another text.  A short text repeated for
a million characters would have only a few hundred different deltas.  A parser (or a processor) with a cache would then
look faster than on the output of a model.

Markers are never split, because an engine delivers a special token whole.  All contenders get the same deltas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from random import Random
from typing import Any, Literal, TypeAlias

Family: TypeAlias = Literal["content", "reasoning", "json", "python", "tagged"]

LENGTHS = (250, 1_000, 4_000, 16_000, 64_000, 1_000_000)
WHOLE = 0  # a delta size: the text in one piece
SIZES = (1, 4, 16, WHOLE)

POOL = 2_200_000  # characters of each sort of text; an answer is a piece of it
STEP = 7_919  # characters between the pieces that two successive seeds begin at

# By frequency in English, roughly.
_WORDS = """
the of and to in is that for it as was with be by on not he this are or his from at which but have an had they you were
there one all we can her has would been if more when will what so no out up into them then she many some these two may
other do time than only its my new like any could over first your people about after most also made well must through
years before much where between because down good see each those work such life great way back even long little own day
state never still under water house right small world place hand three another against week late night course number
school part during always become thing enough without money something system question problem company group always
evening garden window letter kitchen machine morning picture mountain engine harbour village bottle station kingdom
quietly probably suddenly otherwise meanwhile carefully exactly perhaps altogether nevertheless approximately although
wonderful reasonable technical ordinary different beautiful expensive dangerous independent remarkable unbelievable
argument language structure knowledge government development environment experience information responsibility
carpenter lighthouse thunderstorm bicycle strawberry umbrella encyclopaedia Wednesday October London Zanzibar Marrakesh
"""
WORDS = _WORDS.split()
RARE_ENDS = (", ", "; ", " (", ") ", ". The ", ". In ", ". We ", "? ", "!\n\nSo ", ".\n- ", ": ", " 42 ", " 1999 ")
ENDS = (" ",) * 24 + RARE_ENDS
CODE_LINES = (
    '    {0} = {1}["{2}"] + {3}\n',
    "def {0}_{1}({2}, {3}={4}):\n",
    '\t"""The {0}, in \\"{1}\\"."""\n',
    '    return f"{{{0}:.2f}}\\n {1}"  # {2}\n\n',
    "    if {0} != '{1}' and not {2}:\n",
    "        print({0!r}, {4}, \\u00e9)\n",
)
BRACKET_PHRASES = (
    "if ({0} > {4}) {{ return [{4}, {1}]; }} ",
    "else {{ {0}[{4}] = {{}}; }} ",
    "and for {1} we write {{{0}, {2}}} ",
    "or {0}[{1}][{4}], ",
    "the {3} {0} ",
)


@dataclass(frozen=True)
class Call:
    """One tool call."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True)
class Answer:
    """The content of an answer, in no format."""

    reasoning: str = ""
    content: str = ""
    calls: tuple[Call, ...] = ()


# --- Kinds -----------------------------------------------------------------------------------------------------------


def draw(random: Random, number: int) -> list[str]:
    """Random words; the n-th is n times as rare as the first (Zipf)."""
    return random.choices(WORDS, [1 / rank for rank in range(1, len(WORDS) + 1)], k=number)


def _from_patterns(patterns: tuple[str, ...], random: Random) -> str:
    average = sum(map(len, patterns)) // len(patterns)
    lines = random.choices(patterns, k=POOL // average)
    words = iter(draw(random, 4 * len(lines)))
    return "".join(
        line.format(next(words), next(words), next(words), next(words), random.randrange(1000)) for line in lines
    )


@cache
def pool(sort: Literal["prose", "code", "brackets"]) -> str:
    """A long text of one kind, the same in every process."""
    random = Random(sort)
    if sort == "code":
        return _from_patterns(CODE_LINES, random)
    if sort == "brackets":
        return _from_patterns(BRACKET_PHRASES, random)
    number = POOL // 5
    return "".join(word + end for word, end in zip(draw(random, number), random.choices(ENDS, k=number), strict=True))


def piece(sort: Literal["prose", "code", "brackets"], length: int, seed: int) -> str:
    """`length` characters of it. It begins with a word, as a format may tell calls from content by the beginning."""
    text = pool(sort)
    at = seed * STEP % (len(text) - length)
    return ("Well, " + text[at : at + length])[:length]


def members(length: int, seed: int, value: Callable[[int, Random], Any]) -> dict[str, Any]:
    """Arguments whose JSON is about `length` characters long."""
    random = Random(seed)
    values: dict[str, Any] = {}
    size = 0
    for index in count():
        key, item = f"{random.choice(WORDS)}_{index}", value(index, random)
        size += len(json.dumps({key: item}))
        if values and size > length:
            break
        values[key] = item
    return values


def small_value(index: int, random: Random) -> Any:
    """Every sort of scalar in turn."""
    number = random.randrange(10_000)
    return (number, random.choice((True, False)), None, random.choice(WORDS), number / 100)[index % 5]


def nested_value(index: int, random: Random) -> Any:
    """About 130 characters of JSON, four levels deep."""
    number, first, second = random.randrange(1_000), random.choice(WORDS), random.choice(WORDS)
    place = {"x": number / 8, "path": [1, [number, {"end": None}], first], "ok": number % 2 == 0}
    return {"id": number, "tags": [first, second, {"deep": [[], {}]}], "at": place}


def one_call(arguments: Mapping[str, Any]) -> Answer:
    """A call of `f` and nothing else."""
    return Answer(calls=(Call("f", arguments),))


def one_string(length: int, seed: int) -> Answer:
    """One call with one long string."""
    return one_call({"text": piece("prose", length, seed)})


def two_calls(length: int, seed: int) -> Answer:
    """A call with a string and a call with small values, half the length each."""
    first = Call("f", {"text": piece("prose", length // 2, seed)})
    return Answer(calls=(first, Call("g", members(length // 2, seed, small_value))))


def reasoning_and_content(length: int, seed: int) -> Answer:
    """Half reasoning, half content."""
    half = length // 2
    return Answer(reasoning=piece("prose", half, seed), content=piece("prose", half, seed + 1))


@dataclass(frozen=True)
class Kind:
    """One kind of answer. Targets are set per `family`; None stands for the family of the format."""

    title: str
    answer: Callable[[int, int], Answer]  # of a length and a seed
    family: Family | None = None
    tools: int = 1
    formats: frozenset[str] | None = None  # None: all of them


KINDS: dict[str, Kind] = {
    "content": Kind("plain content", lambda length, seed: Answer(content=piece("prose", length, seed)), "content"),
    "reasoning": Kind("reasoning, content", reasoning_and_content, "reasoning", formats=frozenset({"mistral_v11"})),
    "brackets": Kind(
        "prose full of { and [", lambda length, seed: Answer(content=piece("brackets", length, seed)), "content"
    ),
    "string": Kind("one long string", one_string),
    "members": Kind("many small values", lambda length, seed: one_call(members(length, seed, small_value))),
    "nested": Kind("nested values", lambda length, seed: one_call(members(length, seed, nested_value))),
    "code": Kind("code with escapes", lambda length, seed: one_call({"code": piece("code", length, seed)})),
    "two_calls": Kind("two calls", two_calls, tools=2),
    "twenty_tools": Kind("one long string, 20 tools declared", one_string, tools=20),
}


def declared_tools(number: int) -> list[dict[str, Any]]:
    """OpenAI tool dicts; `f` and `g`, which get called, come first."""
    names = ["f", "g", *(f"tool_{index}" for index in range(2, 20))]
    parameters = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "code": {"type": "string"}},
        "additionalProperties": {"type": ["null", "boolean", "integer", "number", "object", "array", "string"]},
    }
    return [
        {"type": "function", "function": {"name": name, "description": f"Does {name}.", "parameters": parameters}}
        for name in names[:number]
    ]


# --- Formats ---------------------------------------------------------------------------------------------------------


def dumps(value: Any) -> str:
    """JSON as models write it: their own characters, not escapes."""
    return json.dumps(value, ensure_ascii=False)


def write_mistral_v3(answer: Answer) -> str:
    """One marker, then a JSON list of call objects."""
    calls = [{"name": call.name, "arguments": call.arguments} for call in answer.calls]
    return answer.content + (f"[TOOL_CALLS] {dumps(calls)}" if calls else "")


def write_mistral_v11(answer: Answer) -> str:
    """A marker before each call, its name, its arguments; reasoning between markers."""
    thought = f"[THINK]{answer.reasoning}[/THINK]" if answer.reasoning else ""
    calls = (f"[TOOL_CALLS]{call.name}[ARGS]{dumps(call.arguments)}" for call in answer.calls)
    return thought + answer.content + "".join(calls)


def write_llama3_json(answer: Answer) -> str:
    """Bare JSON objects."""
    calls = (dumps({"name": call.name, "parameters": call.arguments}) for call in answer.calls)
    return answer.content + "; ".join(calls)


def python_literal(value: Any) -> str:
    """A Python literal with the double quotes that models prefer."""
    if isinstance(value, str):
        return dumps(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{dumps(key)}: {python_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(python_literal, value)) + "]"
    return repr(value)


def write_llama4_pythonic(answer: Answer) -> str:
    """A Python list of calls."""

    def arguments(call: Call) -> str:
        return ", ".join(f"{key}={python_literal(value)}" for key, value in call.arguments.items())

    calls = ", ".join(f"{call.name}({arguments(call)})" for call in answer.calls)
    return answer.content + (f"[{calls}]" if calls else "")


def write_qwen3_coder(answer: Answer) -> str:
    """Each argument in markers, text as it is and everything else as JSON."""

    def argument(key: str, value: Any) -> str:
        return f"<parameter={key}>\n{value if isinstance(value, str) else dumps(value)}\n</parameter>\n"

    def written(call: Call) -> str:
        arguments = "".join(argument(key, value) for key, value in call.arguments.items())
        return f"<tool_call>\n<function={call.name}>\n{arguments}</function>\n</tool_call>"

    thought = f"<think>{answer.reasoning}</think>" if answer.reasoning else ""
    return thought + answer.content + "\n".join(map(written, answer.calls))


def write_harmony(answer: Answer) -> str:
    """gpt-oss channels, for openai-harmony alone."""
    messages = []
    if answer.reasoning:
        messages.append(f"<|channel|>analysis<|message|>{answer.reasoning}<|end|>")
    if answer.content:
        messages.append(f"<|channel|>final<|message|>{answer.content}<|return|>")
    for call in answer.calls:
        header = f"<|channel|>commentary to=functions.{call.name} <|constrain|>json"
        messages.append(f"{header}<|message|>{dumps(call.arguments)}<|call|>")
    return "<|start|>assistant".join(messages)


def write_arguments(answer: Answer) -> str:
    """The JSON of the first call's arguments and nothing around it, for parsers of JSON."""
    return dumps(answer.calls[0].arguments)


@dataclass(frozen=True)
class Written:
    """How answers are written: the writer, its special tokens, and the family of its calls."""

    write: Callable[[Answer], str]
    family: Family
    markers: tuple[str, ...] = ()


FORMATS: dict[str, Written] = {
    "mistral_v11": Written(write_mistral_v11, "json", ("[TOOL_CALLS]", "[ARGS]", "[THINK]", "[/THINK]")),
    "mistral_v3": Written(write_mistral_v3, "json", ("[TOOL_CALLS]",)),
    "llama3_json": Written(write_llama3_json, "json"),
    "llama4_pythonic": Written(write_llama4_pythonic, "python"),
    "qwen3_coder": Written(write_qwen3_coder, "tagged", ("<tool_call>", "</tool_call>", "<think>", "</think>")),
}

# What only single contenders read, instead of the format that a workload names.
FOREIGN: dict[str, Written] = {
    "harmony": Written(write_harmony, "json"),
    "arguments": Written(write_arguments, "json"),
}


# --- Workloads -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Workload:
    """A kind in a format. Worker processes get the `name`."""

    kind: str
    format: str
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", f"{self.kind}/{self.format}")

    @property
    def title(self) -> str:
        """The kind, in words."""
        return KINDS[self.kind].title

    @property
    def family(self) -> Family:
        """The family whose targets apply."""
        return KINDS[self.kind].family or FORMATS[self.format].family

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The declared tools, the same for every contender."""
        return declared_tools(KINDS[self.kind].tools)

    def answer(self, length: int, seed: int) -> Answer:
        """The answer."""
        return KINDS[self.kind].answer(length, seed)

    def deltas(self, length: int, size: int, seed: int = 0, written_as: str | None = None) -> list[str]:
        """The output in deltas, in this workload's own format or in a foreign one."""
        written = (FORMATS | FOREIGN)[written_as or self.format]
        return cut(written.write(self.answer(length, seed)), size, written.markers)


_PAIRS = (
    Workload(kind_name, format_name)
    for kind_name, kind in KINDS.items()
    for format_name in FORMATS
    if kind.formats is None or format_name in kind.formats
)
WORKLOADS: dict[str, Workload] = {workload.name: workload for workload in _PAIRS}


def cut(text: str, size: int, markers: tuple[str, ...] = ()) -> list[str]:
    """Deltas of `size` characters, markers whole; `WHOLE` gives one."""
    if size == WHOLE:
        return [text]
    runs = re.split("(" + "|".join(map(re.escape, markers)) + ")", text) if markers else [text]
    deltas: list[str] = []
    for run in runs:
        if run in markers:
            deltas.append(run)
        else:
            deltas.extend(run[at : at + size] for at in range(0, len(run), size))
    return deltas
