"""Every export in its engine, as a file of data: `make export-table`.

Strategy: measuring takes minutes, so each row has a fingerprint of the grammar that was measured.  A test makes the
grammars again and compares: a row is current as long as they are the same.  What is current is not measured again,
unless `--all` says so; only then are recorded outputs of real templates tried as well.

    python -m benchmarks.export_table [--samples N] [--all] [--write]
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version

import toolgram
from tests.conformance.rows import by_template, read_rows, real_templates, template_text
from tests.export.engines import Engines, import_xgrammar
from tests.export.measuring import TOOLS, WRITTEN, measure
from tests.export.test_pool import ROWS, fingerprint, measured
from tests.export.test_rows import probes_refused, rows_accepted
from tests.page_parts import write_part

PAGE = ROWS.with_name("index.md")
RECORDED, END = "<!-- recorded -->", "<!-- /recorded -->"
COLUMNS = ("format", "target", "accepted", "rejected", "valid", "calls", "notes", "grammar")


def rows(
    samples: int, known: dict[tuple[str, str], dict[str, str]], only: Sequence[str] = ()
) -> Iterator[dict[str, str]]:
    """All rows in order: those that are current as they are, the others measured; of `only` these formats."""
    wanted = [(name, target) for name in toolgram.format_names() for target in WRITTEN]
    asked = set(only or toolgram.format_names())
    jobs = [(name, target, samples) for name, target in wanted
            if name in asked and known.get((name, target), {}).get("grammar") != fingerprint(name, target)]  # fmt: skip
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        for row in workers.map(_measured, jobs):
            known[row["format"], row["target"]] = row
    yield from (known[each] for each in wanted if each in known)


def _measured(job: tuple[str, str, int]) -> dict[str, str]:
    name, target, samples = job
    figures = measure(toolgram.get_format(name), target, samples)
    print(name, target, *figures.problems[:1], file=sys.stderr, flush=True)
    said = {what: figures.said(what) for what in ("accepted", "rejected", "valid")}
    notes = "; ".join(toolgram.get_format(name).export(target, TOOLS).notes)
    cells = {"format": name, "target": target, **said, "calls": str(figures.counts["calls"]), "notes": notes}
    return {**cells, "grammar": fingerprint(name, target)}


def write(found: Iterator[dict[str, str]]) -> None:
    """Write the file of data."""
    lines = list(found)
    with ROWS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def recorded() -> Iterator[str]:
    """How many recorded outputs of real templates are accepted; nothing where they are not here."""
    groups = by_template(read_rows())
    if not groups:
        return
    engines = Engines()
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
    parser.add_argument("--write", action="store_true")
    wanted = parser.parse_args()
    import_xgrammar()  # it prints the rules of schemas
    found = rows(wanted.samples, {} if wanted.all or not ROWS.exists() else measured(), wanted.only)
    if not wanted.write:
        print(*found, sep="\n")
        return 0
    write(found)
    if wanted.all:
        write_part(PAGE, RECORDED, END, "\n".join(recorded()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
