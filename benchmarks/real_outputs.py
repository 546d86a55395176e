"""How many recorded outputs of a real model give usable calls.

Reads `../shared/data/real-outputs/pythonic.jsonl` (500 outputs of Llama 3 asked for pythonic calls) and prints a table
that the README quotes. Run it with `python benchmarks/real_outputs.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import toolgram

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "real-outputs"
FILES = {"pythonic.jsonl": "llama4_pythonic"}


def counts(path: Path, format_name: str) -> tuple[int, int, int, int]:
    """Rows, rows with at least one complete call, complete calls, rows with anomalies."""
    fmt = toolgram.get_format(format_name)
    rows = with_calls = calls = with_anomalies = 0
    for line in path.read_text(encoding="utf-8").splitlines():
        message = fmt.parse(json.loads(line)["output"])
        complete = sum(call.status == "complete" for call in message.tool_calls)
        rows += 1
        with_calls += complete > 0
        calls += complete
        with_anomalies += bool(message.anomalies)
    return rows, with_calls, calls, with_anomalies


def main() -> int:
    if not FOLDER.exists():
        print(
            f"no real outputs here: {FOLDER.name} is looked for beside the repository, in shared/data", file=sys.stderr
        )
        return 1
    print("| file | format | rows | rows with complete calls | complete calls | rows with anomalies |")
    print("|---|---|---:|---:|---:|---:|")
    for file, format_name in FILES.items():
        cells = [file, format_name, *map(str, counts(FOLDER / file, format_name))]
        print("| " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
