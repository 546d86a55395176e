"""Arguments in JSON with one thing wrong: a structural character dropped, doubled, swapped with its neighbour, or
replaced by another.

The same random numbers give the same texts.
"""

import json
import random
from typing import Any

STRUCTURAL = '{}[]:,"'
_WORDS = ("Paris", "a b", "", "it's", 'say "hi"', "x, y", "C:\\temp", "line\nbreak", "{}", "1:2", "é")
_KEYS = ("city", "days", "note", "a_b", "id")


def value(rng: random.Random, depth: int = 2) -> Any:
    """A value as models write them."""
    kind = rng.randrange(8 if depth else 5)
    if kind < 3:
        return rng.choice(_WORDS)
    if kind == 3:
        return rng.choice((0, 7, -1, 2.5, 1e30, 12345))
    if kind == 4:
        return rng.choice((True, False, None))
    if kind < 7:
        return [value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return arguments(rng, depth - 1)


def arguments(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    """Arguments of a call."""
    return {key: value(rng, depth) for key in rng.sample(_KEYS, rng.randint(1, 4))}


def broken(rng: random.Random) -> tuple[dict[str, Any], str, str]:
    """Arguments, their JSON with one breakage, and what that was."""
    meant = arguments(rng)
    text = json.dumps(meant, indent=rng.choice((None, None, 2)), ensure_ascii=False)
    at = rng.choice([at for at, character in enumerate(text) if character in STRUCTURAL])
    kind = rng.choice(("dropped", "doubled", "swapped", "replaced"))
    if kind == "dropped":
        return meant, text[:at] + text[at + 1 :], kind
    if kind == "doubled":
        return meant, text[: at + 1] + text[at:], kind
    if kind == "swapped":
        return meant, text[:at] + text[at : at + 2][::-1] + text[at + 2 :], kind
    return meant, text[:at] + rng.choice(STRUCTURAL.replace(text[at], "")) + text[at + 1 :], kind
