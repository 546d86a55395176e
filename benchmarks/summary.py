"""What a delta costs, for docs/speed.md: `python -m benchmarks.summary` writes docs/data/streaming.csv.

Strategy: benchmarks/RESULTS.md has ratios to a floor, for comparing machines. Readers want a time, so a row of the
summary is a row of its first table at one length, with the ratios times the floor.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

from benchmarks.report import RESULTS

DATA = Path(__file__).resolve().parents[1] / "docs" / "data" / "streaming.csv"
LENGTH = "1,000"
PEERS = ("transformers", "vLLM", "SGLang")
NUMBER = re.compile(r"(\d+(?:\.\d+)?)( †)?")


def summary(results: str) -> str:
    """Return the rows as CSV."""
    table = results.partition("## Deltas of 4 characters")[2].partition("\n\n## ")[0]
    head, _, *rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["text", "format", "toolgram", *PEERS])
    for cells in rows:
        row = dict(zip(head, cells, strict=True))
        if row["length"] == LENGTH and row["toolgram, us"]:
            peers = (row["transformers"], row["vLLM engine"] or row["vLLM legacy"], row["SGLang"])
            floor = float(row["toolgram, us"]) / float(row["toolgram"])
            writer.writerow([row["text"], row["format"], row["toolgram, us"], *(_time(each, floor) for each in peers)])
    return out.getvalue()


def _time(ratio: str, floor: float) -> str:
    found = NUMBER.fullmatch(ratio)
    return f"{float(found[1]) * floor:.2g}{found[2] or ''}" if found else ""


if __name__ == "__main__":
    DATA.write_text(summary(RESULTS.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
