"""Measure whether a call that says `complete` is the call that the model made.

    python -m tests.certain --seed 1 --row cuts --show 5

Strategy: the truth is known by construction. A row takes the outputs that the formats' own files show, puts a text that
is found on this machine (a line of the standard library, a README of a package) or a quoted call into them, or cuts
them, and says which calls were made. A text is read *wrong* if it gives a complete call that was not made, *right* if
it gives exactly the calls that were made, and else a call is *lost*: this is what certainty costs. The goal of a parser
is 0 wrong in every row; a parser that reads nothing has that too, so that both columns count.

The calls that are read in real outputs are kept in `real_outputs_read.json` beside this file, a digit for each output.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from tests.certain.rows import ROWS, cuts, real_outputs
from tests.certain.samples import OTHER_TOOLS, TOOLS, Calls, Sample, complete_calls, read, shown, verdict
from tests.figures import write_figures

READ = Path(__file__).parent / "real_outputs_read.json"
Found = list[tuple[str, Sample, Calls]]  # a verdict, a sample, and the calls that are read


def count(samples: Iterable[Sample]) -> Found:
    """Read samples and judge."""
    read_calls = ((sample, complete_calls(read(sample))) for sample in samples)
    return [(verdict(sample, calls), sample, calls) for sample, calls in read_calls]


@lru_cache(maxsize=512)
def arguments_of(name: str, prefix: str, text: str) -> tuple[str, ...]:
    """Return the arguments of the calls of a whole output."""
    return tuple(call.arguments for call in read(Sample(name, text, prefix=prefix, tools=TOOLS)).tool_calls)


def torn(samples: Iterable[Sample]) -> Found:
    """Judge the cuts after which a truncated argument is no prefix of the whole one as wrong."""
    found: Found = []
    for sample in samples:
        outputs = sorted((text for prefix, text in shown(sample.format).outputs if prefix == sample.prefix), key=len)
        whole = next(text for text in outputs if text.startswith(sample.text))
        meant = arguments_of(sample.format, sample.prefix, whole)
        parts = [call.arguments for call in read(sample).tool_calls if call.status == "truncated"]
        bad = tuple(("", part) for part in parts if not any(full.startswith(part) for full in meant))
        found.append(("wrong" if bad else "right", sample, bad))
    return found


def calls_read() -> dict[str, str]:
    """Return how many complete calls each real output gives, a digit for each, by format."""
    digits: dict[str, str] = {}
    for sample in real_outputs(random.Random(0), 1):
        digits[sample.format] = digits.get(sample.format, "") + str(min(9, len(complete_calls(read(sample)))))
    return digits


def real_row() -> tuple[int, int, list[str]]:
    """Return how many real outputs give a call, how many have lost one, and which."""
    before, now = json.loads(READ.read_text("utf-8")), calls_read()
    lost = [
        f"{name} line {number}: {old} calls before, {new} now"
        for name in now
        for number, (old, new) in enumerate(zip(before[name], now[name], strict=True), 1)
        if new < old
    ]
    return sum(digit != "0" for digits in now.values() for digit in digits), len(lost), lost


def report(key: str, title: str, found: Found, seconds: float, most: int) -> None:
    """Print a row, and what it is made of."""
    verdicts = Counter(kind for kind, *_ in found)
    wrong, right, lost = (verdicts[kind] for kind in ("wrong", "right", "lost"))
    print(f"{key:10} {wrong:7,} {right:8,} {lost:7,} {len(found):8,} {seconds:6.1f} s  {title}", flush=True)
    for kind in ("wrong", "lost") if most else ():
        those = [(sample, calls) for each, sample, calls in found if each == kind]
        formats = Counter(sample.format for sample, _ in those)
        if formats:
            print(f"    {kind} in {len(formats)} formats:", ", ".join(f"{n} {k}" for n, k in formats.most_common()))
        for sample, calls in random.Random(0).sample(those, min(most, len(those))):
            tools = "no tools" if sample.tools is None else "other tools" if sample.tools is OTHER_TOOLS else "tools"
            print(f"    {kind}: {sample.format}, reason {sample.reason}, {tools}, prefix {sample.prefix!r}")
            print(f"        text {sample.text[-700:]!r}\n        made {sample.made}\n        read {calls}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 if a complete call is wrong or a real output has lost a call."""
    parser = argparse.ArgumentParser(prog="python -m tests.certain", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--short", action="store_true", help="a part of the samples, for CI")
    parser.add_argument("--row", choices=[*ROWS, "torn", "real"], action="append", help="default: all")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N wrong and N lost ones of each row")
    parser.add_argument("--write", action="store_true", help="keep the calls that are read in real outputs now")
    parser.add_argument("--figures", action="store_true", help="write docs/data/certain.json")
    chosen = parser.parse_args(arguments)
    if chosen.write:
        READ.write_text(json.dumps(calls_read(), indent=0) + "\n", "utf-8")
    size, failures, totals = 0.3 if chosen.short else 1.0, 0, Counter[str]()
    print(f"{'row':10} {'wrong':>7} {'right':>8} {'lost':>7} {'of':>8}")
    for key in chosen.row or [*ROWS, "torn", "real"]:
        begun, rng = time.monotonic(), random.Random(f"{chosen.seed} {key}")
        if key == "real":
            right, lost, which = real_row()
            print(f"{key:10} {'':7} {right:8,} {lost:7,} {'':8} {time.monotonic() - begun:6.1f} s  outputs of models")
            print("".join(f"    lost: {each}\n" for each in which[: chosen.show]), end="")
            failures += lost
            continue
        if key == "torn":
            title, found = "cuts: truncated arguments that begin otherwise (wrong)", torn(cuts(rng, size))
        else:
            title, found = ROWS[key][0], count(ROWS[key][1](rng, size))
        report(key, title, found, time.monotonic() - begun, chosen.show)
        wrong = sum(kind == "wrong" for kind, *_ in found)
        failures += wrong
        totals.update({"texts": len(found) * (key != "torn"), "wrong": wrong})
    if chosen.figures:
        write_figures("certain", "make certain", totals)
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
