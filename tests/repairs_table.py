"""What toolgram and the library json_repair make of broken arguments: writes the table of `docs/repairs.md`.

    python -m tests.repairs_table

Strategy: 2 000 generated breakages (`tests.generators.json_breakages`) are the arguments of a call.
A text that json_repair and we read alike is *repaired alike*; where we end the call malformed, *we refuse*, and it
is said how often json_repair then found what was meant, and how often it guessed something else.
"""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import json_repair

import toolgram
from tests.generators.json_breakages import broken
from tests.page_parts import write_part

TEXTS = 2000
SEED = 14
PAGE = Path(__file__).parent.parent / "docs" / "repairs.md"
COLUMNS = (
    "still JSON", "repaired alike", "we refuse, it finds it", "we refuse, it guesses", "only we find it", "differ",
)  # fmt: skip
PART = "<!-- repairs -->", "<!-- /repairs -->"  # of the page


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


def table(found: dict[str, Counter[str]]) -> str:
    """The table of the page, of what `counts` has found."""
    rows = [["", *COLUMNS], ["---", *["---:"] * len(COLUMNS)]]
    for breakage in sorted(found):
        rows.append([breakage, *(str(found[breakage][column]) for column in COLUMNS)])
    total = sum(found.values(), Counter())
    rows.append(["all", *(str(total[column]) for column in COLUMNS)])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


if __name__ == "__main__":
    write_part(PAGE, *PART, table(counts()))
