"""Every export in its engine, as a page: `make export-table`.

Strategy: measuring takes minutes, so the page keeps the rows of each format with a fingerprint of the grammars that
were measured.  A test makes the grammars again and compares: a row is current as long as they are the same.  What is
current is not measured again, unless `--all` says so; only then are recorded outputs of real templates tried as well.

    python -m tests.export.table [--samples N] [--all] [--write docs/export.md]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

import toolgram
from tests.conformance.roundtrip import by_template, read_rows, real_templates, template_text
from tests.export.engines import Engines, import_xgrammar
from tests.export.measuring import TOOLS, WRITTEN, Figures, measure
from tests.export.test_rows import probes_refused, rows_accepted
from tests.page_parts import part, write_part

PAGE = Path(__file__).parents[2] / "docs" / "export.md"
BEGIN, RECORDED, END = "<!-- measured -->", "<!-- recorded -->", "<!-- /measured -->"
MARK = "<!-- {}: {} -->"  # in front of the rows of a format
HEAD = """| format | target | accepted | rejected correctly | sampled valid | calls in samples | notes |
|---|---|--:|--:|--:|--:|---|"""


def fingerprint(name: str) -> str:
    """A hash of every grammar that the rows of a format are about."""
    import_xgrammar()  # it prints the rules of schemas
    digest = hashlib.sha256()
    for target in WRITTEN:
        digest.update(toolgram.get_format(name).export(target, TOOLS).text.encode())
    return digest.hexdigest()[:16]


def measured(page: str) -> dict[str, tuple[str, list[str]]]:
    """The fingerprint and the rows of each format on the page."""
    rows: dict[str, list[str]] = {}
    for row in re.findall(r"^\| \w+ \| \w+ \| \d+/\d+ \|.*$", page, re.MULTILINE):
        rows.setdefault(row.split(" ")[1], []).append(row)
    return {
        name: (mark, rows.get(name, [])) for name, mark in re.findall(r"^<!-- (\w+): (\w+) -->$", page, re.MULTILINE)
    }


def lines(samples: int, known: dict[str, tuple[str, list[str]]], only: Sequence[str] = ()) -> Iterator[str]:
    """The table: rows that are current as they are, the others measured; of `only` these formats, if there are any."""
    import_xgrammar()  # it prints the rules of schemas
    asked = set(only or toolgram.format_names())
    marks = {name: fingerprint(name) if name in asked else known[name][0] for name in toolgram.format_names()
             if name in asked or name in known}  # fmt: skip
    rows = {name: known[name][1] for name, mark in marks.items() if known.get(name, ("",))[0] == mark}
    jobs = [(name, target, samples) for name in marks if name not in rows for target in WRITTEN]
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        for (name, target, _), figures in zip(jobs, workers.map(_measured, jobs), strict=True):
            print(name, target, *figures.problems[:1], file=sys.stderr)
            notes = "; ".join(toolgram.get_format(name).export(target, TOOLS).notes)
            said = " | ".join(figures.said(what) for what in ("accepted", "rejected", "valid"))
            rows.setdefault(name, []).append(f"| {name} | {target} | {said} | {figures.counts['calls']} | {notes} |")
    yield "Outputs written, broken and sampled per format and target. A row is measured again when its grammar changes."
    yield ""
    yield from (MARK.format(name, mark) for name, mark in marks.items())
    yield ""
    yield HEAD
    for name in marks:
        yield from rows[name]


def _measured(job: tuple[str, str, int]) -> Figures:
    name, target, samples = job
    return measure(toolgram.get_format(name), target, samples)


def recorded() -> Iterator[str]:
    """How many recorded outputs of real templates are accepted; nothing where they are not here."""
    groups = by_template(read_rows())
    if not groups:
        return
    engines = Engines()
    yield ""
    yield f"With llguidance {version('llguidance')} and xgrammar {version('xgrammar')}:"
    yield ""
    yield (
        f"Recorded outputs of {len(groups)} real chat templates, with calls that fit their schemas, and the outputs "
        f"that derivation has from {len(real_templates())}, in the exports of the format derived from each:"
    )
    yield ""
    yield "| target | recorded calls accepted | outputs of derivation accepted |"
    yield "|---|--:|--:|"
    for target in WRITTEN:
        accepted = [rows_accepted(each, engines, target) for each in groups.values()]
        derived = [
            probes_refused(template, template_text(template), target, engines) for template in sorted(real_templates())
        ]
        said = []
        for found in (accepted, derived):
            count = sum(each for _, each in found)
            said.append(f"{count - sum(len(missed) for missed, _ in found)}/{count}")
        yield f"| {target} | {' | '.join(said)} |"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--all", action="store_true", help="measure everything, current or not")
    parser.add_argument("--only", nargs="*", default=[], help="formats to look at; the others' rows stay")
    parser.add_argument("--write", type=Path)
    wanted = parser.parse_args()
    old = part(PAGE, BEGIN, END)
    table = "\n".join(lines(wanted.samples, {} if wanted.all else measured(old), wanted.only))
    tail = "\n".join(recorded()) if wanted.all else old.partition(RECORDED)[2].rstrip()
    text = f"{table}\n\n{RECORDED}{tail}"
    if wanted.write is None:
        print(text)
    else:
        write_part(wanted.write, BEGIN, END, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
