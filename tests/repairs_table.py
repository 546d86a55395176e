"""What toolgram and the library json_repair make of broken arguments: writes `docs/repairs.md`.

    python -m tests.repairs_table

Strategy: 2 000 generated breakages (`tests.generators.json_breakages`) are the arguments of a call.
A text that json_repair and we read alike is *repaired alike*; where we end the call malformed, *we refuse*, and it
is said how often json_repair then found what was meant, and how often it guessed something else.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import json_repair

import toolgram
from tests.generators.json_breakages import broken

TEXTS = 2000
SEED = 14
PAGE = Path(__file__).parent.parent / "docs" / "repairs.md"
COLUMNS = (
    "still JSON",
    "repaired alike",
    "we refuse, it finds it",
    "we refuse, it guesses",
    "only we find it",
    "differ",
)
HEAD = """# Repairs of JSON, beside json_repair

The library json_repair reads a whole text and always gives a value. toolgram repairs while the text arrives, takes
nothing back, and repairs only what has one reading. Both got the same {texts} broken arguments, each with one
structural character dropped, doubled, swapped with its neighbour or replaced.
`python -m tests.repairs_table` writes this page.

* *Still JSON*: the breakage has left valid JSON, which both read as it is.
* *Repaired alike*: both read the same object.
* *We refuse, it finds it*: our call is `malformed` or `truncated`, and json_repair has the object that was meant.
* *We refuse, it guesses*: our call is `malformed` or `truncated`, and json_repair gives another object, silently.
* *Only we find it*: our call is `complete` with the object that was meant, and json_repair has another one.
* *Differ*: our call is `complete`, and neither the object that was meant nor that of json_repair.

"""


def ours(written: str) -> Any:
    """The arguments of a complete call, None if there is none."""
    message = toolgram.get_format("mistral_v11").parse(f"[TOOL_CALLS]f[ARGS]{written}")
    calls = [call for call in message.tool_calls if call.status == "complete"]
    return json.loads(calls[0].arguments) if calls else None


def kind_of(meant: dict[str, Any], written: str) -> str:
    """The column that a broken text counts in."""
    mine, other = ours(written), json_repair.loads(written)
    try:
        if isinstance(json.loads(written), dict):
            return "still JSON"
    except ValueError:
        pass
    if mine is None:
        return "we refuse, it finds it" if other == meant else "we refuse, it guesses"
    if mine == other:
        return "repaired alike"
    return "only we find it" if mine == meant else "differ"


def counts(texts: int = TEXTS) -> dict[str, Counter[str]]:
    """How many texts there are in each column, by breakage."""
    rng = random.Random(SEED)
    found: dict[str, Counter[str]] = {}
    for _ in range(texts):
        meant, written, breakage = broken(rng)
        found.setdefault(breakage, Counter())[kind_of(meant, written)] += 1
    return found


def page(found: dict[str, Counter[str]]) -> str:
    """The page, of what `counts` has found."""
    rows = [["", *COLUMNS], ["---", *["---:"] * len(COLUMNS)]]
    for breakage in sorted(found):
        rows.append([breakage, *(str(found[breakage][column]) for column in COLUMNS)])
    total = sum(found.values(), Counter())
    rows.append(["all", *(str(total[column]) for column in COLUMNS)])
    table = "".join("| " + " | ".join(row) + " |\n" for row in rows)
    return HEAD.format(texts=f"{sum(total.values()):,}".replace(",", " ")) + table


if __name__ == "__main__":
    PAGE.write_text(page(counts()))
