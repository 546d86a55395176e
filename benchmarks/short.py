"""Short outputs: one call of some forty characters of arguments, read whole; and logs of them, in bulk.

`python -m benchmarks.short` measures and prints; `--write` writes `benchmarks/SHORT.md`.  A figure is the processor
time of `Format.parse` for one output, as a ratio to the floor (one event in a list, as in the other benchmarks),
measured in turns.  Beside it stands the least that an application would write itself: an expression that finds the
call, and `json.loads`.  That reads no deltas, repairs nothing, and says nothing about where text was; it is a lower
bound, not a peer.  For bulk, a batch of rows is answered by one worker's code, without reading and writing files.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import toolgram
from benchmarks.measure import Floor
from toolgram.bulk.inputs import LINES, Batch
from toolgram.bulk.options import RowOptions
from toolgram.bulk.running import BatchReader, Job

PAGE = Path(__file__).with_name("SHORT.md")
ROUNDS = 9
REPEATS = 200  # of one text, between two readings of the clock
ARGUMENTS = '{"city": "Paris", "unit": "celsius", "days": 3}'
JSON_CALL = f'{{"name": "get_weather", "arguments": {ARGUMENTS}}}'
PYTHON_CALL = 'get_weather(city="Paris", unit="celsius", days=3)'
TEXTS = {
    "hermes": f"<tool_call>\n{JSON_CALL}\n</tool_call>",
    "mistral_v3": f"[TOOL_CALLS] [{JSON_CALL}]",
    "granite_3": f"<|tool_call|>[{JSON_CALL}]",
    "llama3_json": JSON_CALL.replace("arguments", "parameters"),
    "mistral_v11": f"[TOOL_CALLS]get_weather[ARGS]{ARGUMENTS}",
    "functionary_v3_2": f">>>get_weather\n{ARGUMENTS}",
    "gpt_oss": f"<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{ARGUMENTS}<|call|>",
    "llama4_pythonic": f"<|python_start|>[{PYTHON_CALL}]<|python_end|>",
    "lfm2": f"<|tool_call_start|>[{PYTHON_CALL}]<|tool_call_end|>",
    "qwen3_coder": (
        "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=unit>\ncelsius\n"
        "</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
    ),
}
TARGETS = {
    "mistral_v11": 75, "llama4_pythonic": 75, "lfm2": 75, "qwen3_coder": 145,
}  # fmt: skip
JSON_TARGET = 110
KINDS = {"short calls": "25,000 rows/s", "800-byte rows": "20 MB/s"}  # of rows, and what one worker is to read
NEXT = """## Where the time goes, and the next step

Of a short Hermes call, the two expressions take a third, the json module a sixth, the message with its call a third.
The figures are those of a format that has parsed a hundred outputs; before that, a parser reads, at five to ten times
as much.
A call with an escape in a tagged value, another order of keys, or arguments in more than 64 brackets goes to a parser.
In deltas nothing of this helps: `docs/decisions/0014-speed-targets-missed.md` has the next step there."""
_BY_HAND = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)


def by_hand(text: str) -> list[tuple[str, str]]:
    """The calls of a Hermes output, as an application would read them itself."""
    calls = [json.loads(found) for found in _BY_HAND.findall(text)]
    return [(call["name"], json.dumps(call["arguments"])) for call in calls]


def seconds(work: Callable[[], object], repeats: int = REPEATS) -> float:
    """The processor time of one call."""
    begin = time.thread_time()
    for _ in range(repeats):
        work()
    return (time.thread_time() - begin) / repeats


def ratios(names: list[str], rounds: int = ROUNDS) -> dict[str, float]:
    """The cost of a short call in each format, and by hand, over the floor: medians of rounds, in turns."""
    work: dict[str, Callable[[], object]] = {name: parsed(name) for name in names}
    work["by hand"] = lambda: by_hand(TEXTS["hermes"])
    work["content"] = lambda: toolgram.get_format("hermes").parse("It is sunny in Paris.")
    floor = Floor()
    figures: dict[str, list[float]] = {name: [] for name in work}
    for each in work.values():
        each()
    for _ in range(rounds):
        for name, each in work.items():
            least = seconds(lambda: floor.feed("abcd"), 20 * REPEATS)
            figures[name].append(seconds(each) / least)
    return {name: statistics.median(values) for name, values in figures.items()}


def parsed(name: str) -> Callable[[], object]:
    """What reads the text of a format; stops the run where it is read wrongly."""
    fmt, text = toolgram.get_format(name), TEXTS[name]
    (call,) = fmt.parse(text).tool_calls
    if (call.name, json.loads(call.arguments), call.status) != ("get_weather", json.loads(ARGUMENTS), "complete"):
        sys.exit(f"{name} reads its short call wrongly: {call}")
    return lambda: fmt.parse(text)


def rows(kind: str) -> bytes:
    """A mebibyte of JSON lines: short calls, or calls with some six hundred characters of text before them."""
    random, lines, size = Random(1), [], 0
    words = random.choices(["sunny", "rain", "wind", "cloud", "city", "and", "the", "is", "of", "in", "with"], k=4_000)
    while size < 1 << 20:
        at = random.randrange(3_800)
        before = " ".join(words[at : at + 115]) + "\n" if kind == "800-byte rows" else ""
        call = TEXTS["hermes"].replace("Paris", random.choice(("Paris", "Oslo", "Rome"))).replace("3", str(at % 10))
        lines.append(json.dumps({"id": at, "text": before + call}).encode() + b"\n")
        size += len(lines[-1])
    return b"".join(lines)


def bulk(kind: str) -> tuple[float, float]:
    """Rows and megabytes per second of processor time, of one worker."""
    data = rows(kind)
    count = data.count(b"\n")
    reader = BatchReader(Job(RowOptions("text", toolgram.get_format("hermes")), "plain"))
    batch = Batch("rows", LINES, 1, data, len(data))
    answer = reader.answer(batch)
    if answer.summary["calls"] != {"complete": count}:
        sys.exit(f"bulk reads {kind} wrongly: {answer.summary['calls']}")
    best = min(seconds(lambda: reader.answer(batch), 1) for _ in range(5))
    return count / best, len(data) / 1e6 / best


def bulk_ratios(kinds: Iterable[str]) -> dict[str, float]:
    """What a row costs one worker, over the floor."""
    floor = Floor()
    least = min(seconds(lambda: floor.feed("abcd"), 20 * REPEATS) for _ in range(ROUNDS))
    return {kind: 1 / bulk(kind)[0] / least for kind in kinds}


def page() -> str:
    """The page of results."""
    figures = ratios(list(TEXTS))
    lines = ["# Short outputs and bulk", "", *(__doc__ or "").split("\n\n", 1)[1].strip().splitlines(), ""]
    lines += ["| one call, whole | times the floor | target | met |", "|---|---:|---:|---|"]
    for name in TEXTS:
        target = TARGETS.get(name, JSON_TARGET)
        lines.append(f"| {name} | {figures[name]:.0f} | {target} | {'yes' if figures[name] <= target else 'no'} |")
    lines.append(f"| by hand (hermes) | {figures['by hand']:.0f} | | |")
    lines += [f"| content | {figures['content']:.0f} | 18 | {'yes' if figures['content'] <= 18 else 'no'} |", ""]
    lines += ["| bulk, one worker | rows/s | MB/s | target |", "|---|---:|---:|---|"]
    for kind, target in KINDS.items():
        per_second, megabytes = bulk(kind)
        lines.append(f"| {kind} | {per_second:,.0f} | {megabytes:.1f} | {target} |")
    lines += ["", NEXT]
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
