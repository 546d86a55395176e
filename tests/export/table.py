"""Every export in its engine, as a page: `make export-table`.

Strategy: measuring takes minutes, so the page keeps what was measured together with a fingerprint of all grammars that
were.  A test makes the grammars again and compares the fingerprint: the page is current as long as they are the same.

    python -m tests.export.table [--samples N] [--write docs/export.md]
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

import toolgram
from tests.conformance.roundtrip import by_template, read_rows, real_templates, template_text
from tests.export.engines import Engines, import_xgrammar
from tests.export.measuring import TOOLS, Figures, measure
from tests.export.test_rows import probes_refused, rows_accepted
from toolgram.export import TARGETS

PAGE = Path(__file__).parents[2] / "docs" / "export.md"
BEGIN, END = "<!-- measured: {} -->", "<!-- /measured -->"


def fingerprint() -> str:
    """A hash of every grammar that the table is about."""
    import_xgrammar()  # it prints the rules of schemas
    digest = hashlib.sha256()
    for name in toolgram.format_names():
        for target in TARGETS:
            digest.update(toolgram.get_format(name).export(target, TOOLS).text.encode())
    return digest.hexdigest()[:16]


def lines(samples: int) -> Iterator[str]:
    """The table, measured."""
    import_xgrammar()  # it prints the rules of schemas
    total: Counter[str] = Counter()
    yield f"{samples} outputs written and {samples} sampled per row; llguidance {version('llguidance')}, xgrammar "
    yield f"{version('xgrammar')}."
    yield ""
    yield "| format | target | accepted | rejected correctly | sampled valid | calls in samples | notes |"
    yield "|---|---|--:|--:|--:|--:|---|"
    jobs = [(name, target, samples) for name in toolgram.format_names() for target in TARGETS]
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        for (name, target, _), figures in zip(jobs, workers.map(_measured, jobs), strict=True):
            total += figures.counts
            print(name, target, *figures.problems[:1], file=sys.stderr)
            notes = "; ".join(toolgram.get_format(name).export(target, TOOLS).notes)
            said = " | ".join(figures.said(what) for what in ("accepted", "rejected", "valid"))
            yield f"| {name} | {target} | {said} | {figures.counts['calls']} | {notes} |"
    yield ""
    yield (
        f"In all, {total['accepted']} outputs accepted and {total['not accepted']} not; {total['rejected']} mutations "
        f"rejected and {total['not rejected']} not; {total['valid']} samples valid, with {total['calls']} calls, and "
        f"{total['not valid']} not valid; {total['not finished']} found no end."
    )
    yield from rows()


def _measured(job: tuple[str, str, int]) -> Figures:
    name, target, samples = job
    return measure(toolgram.get_format(name), target, samples)


def rows() -> Iterator[str]:
    """How many recorded outputs of real templates are accepted; nothing where they are not here."""
    groups = by_template(read_rows())
    if not groups:
        return
    engines = Engines()
    yield ""
    yield (
        f"Recorded outputs of {len(groups)} real chat templates, with calls that fit their schemas, and the outputs "
        f"that derivation has from {len(real_templates())}, in the exports of the format derived from each:"
    )
    yield ""
    yield "| target | recorded calls accepted | outputs of derivation accepted |"
    yield "|---|--:|--:|"
    for target in TARGETS:
        recorded = [rows_accepted(each, engines, target) for each in groups.values()]
        derived = [
            probes_refused(template, template_text(template), target, engines) for template in sorted(real_templates())
        ]
        said = []
        for found in (recorded, derived):
            count = sum(each for _, each in found)
            said.append(f"{count - sum(len(missed) for missed, _ in found)}/{count}")
        yield f"| {target} | {' | '.join(said)} |"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--write", type=Path)
    wanted = parser.parse_args()
    table = "\n".join(lines(wanted.samples))
    if wanted.write is None:
        print(table)
        return 0
    page = wanted.write.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN.split("{")[0])
    after = rest.partition(END)[2]
    wanted.write.write_text(
        f"{before}{BEGIN.format(fingerprint())}\n\n{table}\n\n{END}{after}", encoding="utf-8", newline="\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
