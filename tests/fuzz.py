"""Breakages of valid outputs: dropped, doubled, swapped, reversed, cut, or with syntax put in.

    python -m tests.fuzz --characters 10000000 --seed 7 --format hermes

Strategy: a valid output is walked from the format's grammar and broken, half of the time between its symbols and half
of the time anywhere. `tests.clauses` says what must be true of what comes out: conserved, the same however it is split
into deltas, nothing raised, `complete` calls with an object of arguments, and no beginning that was cut off shows a
complete call that the whole contradicts. The same seed gives the same texts.
"""

import random
import sys
from functools import lru_cache
from typing import Any

import toolgram
from tests.clauses import Failure, Tally, check_widely, options, tallied, try_all
from tests.generators.broken_outputs import broken
from tests.generators.grammar_walks import KEYS, NAMES, walks

PART = 20_000  # characters of one task
TYPES: list[dict[str, Any]] = [
    {"type": "string"}, {"type": "integer"}, {"type": "object", "properties": {KEYS[0]: {"type": "integer"}}},
    {"type": "array", "items": {"type": "integer"}}, {"anyOf": [{"type": "array", "items": {"type": "boolean"}}, {}]},
]  # fmt: skip

Task = tuple[str, str, int]  # format, seed, characters


@lru_cache(maxsize=1)
def tools() -> list[dict[str, Any]]:
    """The functions that the texts call, each parameter of a type of its own."""
    properties = dict(zip(KEYS, TYPES, strict=True))
    return [{"name": name, "parameters": {"type": "object", "properties": properties}} for name in NAMES]


def text_of(name: str, rng: random.Random) -> str:
    """A broken output."""
    found = walks(name)
    pieces = found.pieces(found.word(rng), rng)
    if rng.random() < 0.3:
        pieces += found.pieces(found.word(rng), rng)
    return broken(name, pieces if rng.random() < 0.5 else list("".join(pieces)), rng)


def check_one(name: str, text: str) -> Failure | None:
    """The first clause that a text breaks."""
    return check_widely(toolgram.get_format(name), text, tools())


def do(task: Task) -> Tally:
    """The texts of one task."""
    name, seed, characters = task
    rng, tally = random.Random(seed), Tally()
    while tally.characters < characters:
        text = text_of(name, rng)
        failure = check_one(name, text)
        tally.texts += 1
        tally.characters += max(1, len(text))
        if failure is not None:
            tally.note(failure)
    return tally


def run(name: str, seed: int, characters: int, workers: int) -> Tally:
    """Broken outputs of a format, of so many characters, in processes."""
    sizes = [min(PART, characters - at) for at in range(0, characters, PART)]
    tasks: list[Task] = [(name, f"{seed} {name} {number}", size) for number, size in enumerate(sizes)]
    return tallied(name, do, tasks, workers)


def main() -> int:
    """The command; 1 where anything failed."""
    parser = options("tests.fuzz", __doc__)
    parser.add_argument("--characters", type=int, default=200_000, help="of all formats together (default 200 000)")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    names = chosen.format or toolgram.format_names()
    size = chosen.characters // len(names)
    return try_all(names, lambda name: run(name, chosen.seed, size, chosen.workers), check_one)


if __name__ == "__main__":
    sys.exit(main())
