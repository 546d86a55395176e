"""Write the scoreboard of parsers from what `run.py --write` found: `python suite/scoreboard.py suite/found/*.jsonl`.

Strategy: a file of findings has a line per case that its parser claims to read, so what a parser leaves out counts
nowhere. The tables have the shares by level, by clause and by family, and one case whole. `--rows` writes every case
that a parser fails, with what it returned; the site links each to the playground. Needs Python 3.10 or newer only.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

BEGIN, END = "<!-- tables: written by `make scoreboard` -->", "<!-- end of tables -->"
LEVELS = ("core", "robust", "policy")
KINDS = {"faults": "reading", "wrong": "call not made", "lost": "lost", "splits": "deltas", "cuts": "cut"}
KEYS = {"parser", "id", "family", "level", "clause", "read", "answer"}  # of a finding
WRITTEN = "write it with: python suite/run.py './my-parser' --write"
RETURNED = 120  # characters of what a parser returned, in a row

Finding = dict[str, Any]
Findings = dict[str, list[Finding]]  # by the name and version of the parser


def load(files: Iterable[Path]) -> Findings:
    """Return the findings of each parser, in the order of the files. Ends the run if a file has none."""
    found: Findings = {}
    for path in files:
        try:
            rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        except OSError as error:
            sys.exit(f"{path}: cannot be read: {error.strerror}; {WRITTEN} {path}")
        except ValueError:
            sys.exit(f"{path}: it is not JSON Lines; {WRITTEN} {path}")
        if not rows or not all(isinstance(row, dict) and row.keys() >= KEYS for row in rows):
            sys.exit(f"{path}: its lines are not what run.py found; {WRITTEN} {path}")
        for row in rows:
            found.setdefault(row["parser"], []).append(row)
    return found


# ------------------------------------------------------------------------------------------------------------ tables


def tables(found: Findings, shown: str) -> str:
    """Return all tables, as Markdown; `shown` is the id of the case that is shown whole."""
    sections = [
        ("What each parser returns for one case", one_case(found, shown)),
        ("By level", by_level(found)),
        ("By clause", by_group(found, "clause", lambda row: row["read"])),
        ("By family, all properties together", by_group(found, "family", passed)),
    ]
    return "\n\n".join(f"### {title}\n\n{table}" for title, table in sections)


def one_case(found: Findings, name: str) -> str:
    """Return what each parser makes of one case: whole, and in other deltas if that differs."""
    rows = []
    for parser, findings in found.items():
        for row in findings:
            if row["id"] == name:
                others = [split.partition(": ") for split in row.get("splits", ())]
                rows.append([parser, "whole" if others else "whole and in all deltas", code(row["answer"])])
                rows += [[parser, way, code(json.loads(said))] for way, _, said in others]
    return markdown(["parser", "deltas", "returned"], rows)


def by_level(found: Findings) -> str:
    """Return the shares of right readings by level, and those of the properties of all cases."""
    columns: dict[str, Callable[[Finding], bool]] = {
        "same for all deltas": lambda row: "splits" not in row,
        "no call that was not made": lambda row: not row.keys() & {"wrong", "cuts"},
        "nothing lost": lambda row: "lost" not in row,
    }
    rows = []
    for parser, findings in found.items():
        levels = [share([row["read"] for row in findings if row["level"] == level]) for level in LEVELS]
        rows.append([parser, *levels, *(share([*map(holds, findings)]) for holds in columns.values())])
    return markdown(["parser", *LEVELS, *columns], rows)


def by_group(found: Findings, key: str, right: Callable[[Finding], bool]) -> str:
    """Return the shares of each parser by the value of a key of the findings."""
    names = dict.fromkeys(row[key] for findings in found.values() for row in findings)
    order = sorted(names) if key == "family" else names
    rows = [
        [name, *(share([right(row) for row in rows if row[key] == name]) for rows in found.values())] for name in order
    ]
    return markdown([key, *found], rows)


def passed(row: Finding) -> bool:
    """Return whether nothing is wrong with a case."""
    return row["read"] and not row.keys() & KINDS.keys()


def share(right: Sequence[bool]) -> str:
    """Return a share as "9 of 10 (90.0%)", "" of nothing."""
    return f"{sum(right)} of {len(right)} ({percent(right)}%)" if right else ""


def percent(right: Sequence[bool]) -> float:
    """Return a share in percent, which is 100 only if all are right."""
    return int(1000 * sum(right) / len(right)) / 10


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in lines)


def returned(answer: dict[str, Any]) -> str:
    """Return an answer in one line: thought, content and calls, with the status of those that are not complete."""
    if "raised" in answer:
        return f"raised {answer['raised']}"
    parts = [f"{key} {answer[key]!r}" for key in ("reasoning", "content") if answer.get(key)]
    for call in answer.get("calls", ()):
        status = "" if call["status"] == "complete" else f", {call['status']}"
        parts.append(f"{call['name']}({call['arguments']}){status}")
    return "; ".join(parts) or "nothing"


def code(answer: dict[str, Any]) -> str:
    """Return an answer as code of Markdown."""
    return f"`{returned(answer).replace('`', chr(39))}`"


# ------------------------------------------------------------------------------------------------------------- files


def write_rows(found: Findings, path: Path) -> None:
    """Write every case that a parser fails, as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["parser", "case", "level", "clause", "wrong", "returned"])
        for parser, findings in found.items():
            for row in findings:
                if not passed(row):
                    kinds = ", ".join(name for kind, name in KINDS.items() if kind in row)
                    said = returned(row["answer"])[:RETURNED]
                    writer.writerow([parser, row["id"], row["level"], row["clause"], kinds, said])


def write_figures(found: Findings, path: Path) -> None:
    """Write the shares by level as JSON, with machine, versions and day."""
    figures = {
        parser.partition(" ")[0]: {
            level: _figure([row["read"] for row in rows if row["level"] == level]) for level in LEVELS
        }
        for parser, rows in found.items()
    }
    content = {
        "command": "make scoreboard",
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "versions": {name: version for name, _, version in (parser.partition(" ") for parser in found)},
        "figures": figures,
    }
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", "utf-8")


def _figure(right: Sequence[bool]) -> dict[str, float]:
    return {"cases": len(right), "right": sum(right), "percent": percent(right)} if right else {"cases": 0}


def write_page(path: Path, text: str) -> None:
    """Put the tables into a page, between two comments."""
    page = path.read_text("utf-8")
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    if not pattern.search(page):
        sys.exit(f"{path} has no place for the tables: write {BEGIN} and {END} on lines of their own")
    path.write_text(pattern.sub(lambda _: f"{BEGIN}\n\n{text}\n\n{END}", page), "utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("found", nargs="+", type=Path, help="files that `run.py --write` wrote, one of each parser")
    parser.add_argument("--show", metavar="ID", default="", help="the case that is shown whole")
    parser.add_argument("--page", type=Path, help="a page of Markdown with the two comments, to put the tables into")
    parser.add_argument("--rows", type=Path, help="a CSV file, for every case that a parser fails")
    parser.add_argument("--figures", type=Path, help="a JSON file, for the shares by level")
    chosen = parser.parse_args(arguments)
    found = load(chosen.found)
    text = tables(found, chosen.show)
    print(text)
    try:
        for path, write in ((chosen.rows, write_rows), (chosen.figures, write_figures)):
            if path:
                write(found, path)
        if chosen.page:
            write_page(chosen.page, text)
    except OSError as error:
        sys.exit(f"{error.filename}: cannot be read or written: {error.strerror}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
