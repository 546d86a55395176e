"""What real models write: recorded outputs, whole and in streams, and calls in other spellings than the examples'.

`make bench-real` measures and prints; with `ARGS=--write` it writes `benchmarks/REAL.md`.  The outputs are those of
`../shared/data/real-outputs`, and made ones: the same call with its keys in another order, with other blanks or quotes,
with nested values, with others beside it, or with text around it.

*By hand* is the least that an application would write itself: an expression that finds the call, then `json.loads`, or
`ast.literal_eval` if that fails, and `json.dumps`.  It reads no deltas, says nothing about where text was, and has no
anomalies.  *The same* is the share of outputs in which it finds the calls that toolgram finds.  *Plain* is the share of
outputs that need no parser; in brackets, of those in which nothing is repaired.  Both readings take turns, and a figure
is the median of rounds.  Streams are measured as ratios to the floor (one event in a list), in deltas of 4 characters
and in the tokens of a real vocabulary (tekken).
"""

from __future__ import annotations

import argparse
import ast
import codecs
import json
import re
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import toolgram
from benchmarks.measure import Floor
from benchmarks.rows import KINDS, bulk
from benchmarks.vocabularies import vocabulary
from benchmarks.workloads import cut
from toolgram.runtime.whole_outputs import whole_message

PAGE = Path(__file__).with_name("REAL.md")
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "real-outputs"
FILES = {"hermes": "hermes", "granite_20b_fc": "granite_20b_fc", "glm4": "glm4", "pythonic": "llama4_pythonic"}
ROUNDS = 7
STREAMED = 100  # outputs of a set
STREAMS, RATE = 256, 50  # of a server, and their tokens per second

Calls: TypeAlias = list[tuple[str, str]]  # a name, and arguments as JSON
_TAGGED = re.compile(
    r"<tool_call>\s*(.*?)\s*</tool_call>|<function_call>\s*(\{.*?\})\s*(?=<function_call>|\Z)", re.DOTALL
)
_LISTED = re.compile(r"\[.*\]", re.DOTALL)
VALUES = '{"city": "Paris", "unit": "celsius", "days": 3}'
NESTED = '{"place": {"city": "Paris", "at": [48.85, 2.35]}, "days": [1, 2, 3], "exact": true}'
SPELLINGS = {
    "as the examples": f'{{"name": "get_weather", "arguments": {VALUES}}}',
    "arguments first": f'{{"arguments": {VALUES}, "name": "get_weather"}}',
    "other blanks": f'{{ "name" : "get_weather",\n  "arguments" : {VALUES.replace(", ", ",").replace(": ", ":")} }}',
    "nested values": f'{{"name": "get_weather", "arguments": {NESTED}}}',
    "Python's quotes": str({"name": "get_weather", "arguments": json.loads(NESTED)}),
    "Python's values": f'{{"arguments": {json.loads(NESTED)}, "name": "get_weather"}}',
}


def in_json(text: str) -> Calls:
    """Return the calls in tags, as an application would read them itself."""
    found = []
    for tagged, behind in _TAGGED.findall(text):
        try:
            call = json.loads(tagged or behind)
        except ValueError:
            call = ast.literal_eval(tagged or behind)
        found.append((call["name"], json.dumps(call["arguments"])))
    return found


def in_python(text: str) -> Calls:
    """Return the calls of a list of Python calls."""
    listed = _LISTED.search(text)
    calls = ast.parse(listed[0].strip(), mode="eval").body.elts if listed else []  # type: ignore[attr-defined]
    return [
        (ast.unparse(call.func), json.dumps({each.arg: ast.literal_eval(each.value) for each in call.keywords}))
        for call in calls
    ]


def after_name(text: str) -> Calls:
    """Return the call that is a line with a name, and an object."""
    name, _, rest = text.partition("\n")
    return [(name, json.dumps(json.loads(rest)))] if rest.startswith("{") else []


BY_HAND = {"hermes": in_json, "granite_20b_fc": in_json, "glm4": after_name, "llama4_pythonic": in_python}


def by_hand(name: str) -> Callable[[str], Calls]:
    """Return what reads the outputs of a format by hand; what it cannot read has no calls."""
    read = BY_HAND[name]

    def reading(text: str) -> Calls:
        try:
            return read(text)
        except (ValueError, SyntaxError, KeyError, TypeError, AttributeError):
            return []

    return reading


def sets() -> dict[str, tuple[str, list[str]]]:
    """Return the outputs of each set, by its name, with the format that reads them."""
    found: dict[str, tuple[str, list[str]]] = {}
    for file, name in FILES.items():
        path = FOLDER / f"{file}.jsonl"
        if path.exists():
            lines = path.read_text(encoding="utf-8").splitlines()
            found[f"real, {file}"] = name, [json.loads(line)["output"] for line in lines]
    for spelling, call in SPELLINGS.items():
        found[f"made, {spelling}"] = "hermes", [f"<tool_call>\n{call}\n</tool_call>"]
    call = f"<tool_call>\n{SPELLINGS['arguments first']}\n</tool_call>\n"
    found["made, four calls"] = "hermes", [call * 4]
    found["made, text before the call"] = "hermes", ["Let me look at the weather in Paris first.\n\n" + call]
    return found


def seconds(work: Callable[[str], object], texts: Sequence[str]) -> float:
    """Return the processor time of one text."""
    begin = time.thread_time()
    for text in texts:
        work(text)
    return (time.thread_time() - begin) / len(texts)


def is_plain(fmt: toolgram.Format, text: str) -> bool:
    """Return whether an output is read without a parser."""
    return whole_message(fmt.program, text, None, lambda: "id", None) is not None


def costs(name: str, texts: list[str], rounds: int = ROUNDS) -> tuple[float, float]:
    """Return the seconds of one output, and how many times by hand that is: medians of rounds, in turns."""
    parse, hand = toolgram.get_format(name).parse, by_hand(name)
    many = texts * max(1, 500 // len(texts))
    pairs = [(seconds(parse, many), seconds(hand, many)) for _ in range(rounds)]
    return statistics.median(ours for ours, _ in pairs), statistics.median(ours / least for ours, least in pairs)


def decoded(calls: Calls) -> list[tuple[str, object]]:
    """Return calls with their arguments as values."""
    return [(name, json.loads(arguments)) for name, arguments in calls]


def whole_row(label: str, name: str, texts: list[str]) -> str:
    """Return a line of the table of whole outputs."""
    fmt, hand = toolgram.get_format(name), by_hand(name)
    messages = [fmt.parse(text) for text in texts]
    read = [[(call.name, call.arguments) for call in message.tool_calls] for message in messages]
    same = statistics.fmean(decoded(hand(text)) == decoded(calls) for text, calls in zip(texts, read, strict=True))
    shares = f"{statistics.fmean(is_plain(fmt, text) for text in texts):.1%}"
    untouched = [text for text, message in zip(texts, messages, strict=True) if not message.anomalies]
    if untouched:
        shares += f" ({statistics.fmean(is_plain(fmt, text) for text in untouched):.1%})"
    each, ratio = costs(name, texts)
    size = statistics.fmean(map(len, texts))
    figures = f"{each * 1e6:.1f} | {each / size * 1e6:.2f} | {1 / each:,.0f} | {ratio:.1f}"
    return f"| {label} | {len(texts)} | {size:.0f} | {shares} | {figures} | {same:.1%} |"


def tokens(name: str, text: str) -> list[str]:
    """Return the tokens of a text, as a server streams them; markers are one token."""
    markers = toolgram.get_format(name).program.special.values()
    words = vocabulary("tekken", sorted(markers))
    decode = codecs.getincrementaldecoder("utf-8")("replace").decode
    return [decode(words.tokens[token]) for token in words(text)]


def per_delta(deltas: list[list[str]], stream: Callable[[], Callable[[str], object]]) -> float:
    """Return the processor time of one delta."""
    streams = [(stream(), each) for each in deltas]
    begin = time.thread_time()
    for feed, each in streams:
        for delta in each:
            feed(delta)
    return (time.thread_time() - begin) / sum(map(len, deltas))


def stream_row(label: str, name: str, texts: list[str]) -> str:
    """Return a line of the table of streams."""
    fmt, cells, each = toolgram.get_format(name), [], 0.0
    texts = texts[:STREAMED]
    for deltas in ([cut(text, 4, ()) for text in texts], [tokens(name, text) for text in texts]):
        pairs = [
            (per_delta(deltas, lambda: fmt.parser().feed), per_delta(deltas, lambda: Floor().feed))
            for _ in range(ROUNDS)
        ]
        each = statistics.median(ours for ours, _ in pairs)
        cells.append(f"{each * 1e6:.1f} | {statistics.median(ours / floor for ours, floor in pairs):.0f}")
    return f"| {label} | {' | '.join(cells)} | {each * 1e6:.1f} | {each * STREAMS * RATE:.1%} |"


WHOLE = "| outputs | number | characters | plain | us each | us per character | rows/s | times by hand | the same |"
STREAM = (
    "| outputs | us per 4 characters | times the floor | us per token | times the floor | ms per 1,000 tokens "
    f"| of one core, {STREAMS} streams of {RATE} tokens/s |"
)


def table(head: str) -> list[str]:
    """Return the head of a table."""
    return [head, "|---" + "|---:" * (head.count("|") - 2) + "|"]


def page() -> str:
    """Return the page of results."""
    found = sets()
    lines = ["# Real outputs", "", *(__doc__ or "").split("\n\n", 1)[1].strip().splitlines()]
    lines += ["", "## Whole outputs", "", *table(WHOLE)]
    lines += [whole_row(label, *each) for label, each in found.items()]
    lines += ["", "## Streams", "", *table(STREAM)]
    lines += [stream_row(label, *each) for label, each in found.items() if label.startswith("real")]
    lines += ["", "## Bulk, one worker", "", *table("| rows | rows/s | MB/s | target |")]
    for kind, target in KINDS.items():
        per_second, megabytes = bulk(kind)
        lines.append(f"| {kind} | {per_second:,.0f} | {megabytes:.1f} | {target} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and print, or write."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    said = page()
    if arguments.parse_args().write:
        PAGE.write_text(said, encoding="utf-8")
    print(said)


if __name__ == "__main__":
    main()
