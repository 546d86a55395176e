"""Tables of the schema pool in every engine, beside the engines' own readings of a schema.

`make export-table` runs `python -m benchmarks.export_pool --write docs/data/index.md`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import toolgram
from tests.export.engines import Engines
from tests.export.measuring import WRITTEN
from tests.export.pool_figures import SCHEMAS_OF_A_FORMAT, count, figures, figures_of_format, format_names
from tests.export.schema_pool import pool, standard
from tests.page_parts import write_part

OWN = ("xgrammar's own", "llguidance's own")
BEGIN, END = "<!-- pool -->", "<!-- /pool -->"
HEAD = """| | exported | compiled | valid accepted | invalid refused | sampled valid | silent |
|---|--:|--:|--:|--:|--:|--:|"""
FORMATS_HEAD = """| | schemas | exported | compiled | written accepted | broken refused | sampled valid | silent |
|---|--:|--:|--:|--:|--:|--:|--:|"""


def own_figures(name: str, which: str) -> Counter[str]:
    """What the engine's own reading of a schema does with it."""
    found: Counter[str] = Counter(schemas=1)
    text = json.dumps(standard(pool()[name]))
    engines = Engines()
    try:
        if which == "xgrammar's own":
            grammar = engines.xgrammar.compiler.compile_json_schema(text, strict_mode=True)
            found["compiled"] += 1
            count(found, name, lambda arguments: engines.xgrammar.accepts(grammar, arguments), True)
        else:
            grammar = engines.llguidance.compile(f"start: %json {text}")
            found["compiled"] += 1
            count(found, name, lambda arguments: engines.llguidance.accepts(grammar, arguments), True)
    except (RuntimeError, ValueError):
        pass
    return found


def lines_of_formats() -> Iterator[str]:
    """The table of all formats."""
    names = format_names()
    shipped = len(toolgram.format_names())
    yield f"{SCHEMAS_OF_A_FORMAT} schemas of the pool for each of {shipped} shipped formats, and for each of "
    yield f"{len(names) - shipped} derived ones, others for each:"
    yield ""
    yield FORMATS_HEAD
    for target in WRITTEN:
        with ProcessPoolExecutor(os.cpu_count()) as workers:
            found = sum(workers.map(_format_job, [(name, target) for name in names]), Counter())
        print(target, dict(found), file=sys.stderr)
        said = [f"{found[good]}/{found[good] + found[f'not {good}']}" for good in ("accepted", "rejected", "valid")]
        counts = [str(found[each]) for each in ("schemas", "exported", "compiled")]
        yield f"| {target} | {' | '.join([*counts, *said, str(found['silent'])])} |"


def _format_job(job: tuple[str, str]) -> Counter[str]:
    return figures_of_format(*job)


# --- the table ----------------------------------------------------------------------------------------------------


def _job(job: tuple[str, str]) -> Counter[str]:
    name, which = job
    return own_figures(name, which) if which in OWN else figures(name, which)


def measured(which: str, names: list[str]) -> Counter[str]:
    """The figures of one target, or of an engine's own reading, over schemas of the pool."""
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        return sum(workers.map(_job, [(name, which) for name in names], chunksize=20), Counter())


def lines(names: list[str]) -> Iterator[str]:
    """The table."""
    yield f"{len(names)} schemas; arguments of hermes, whose calls are JSON:"
    yield ""
    yield HEAD
    for which in (*WRITTEN, *OWN):
        found = measured(which, names)
        print(which, dict(found), file=sys.stderr)
        said = [f"{found[good]}/{found[good] + found[bad]}" for good, bad in _PAIRS]
        ours = which not in OWN
        cells = [
            str(found["exported"]) if ours else "",
            str(found["compiled"]),
            *said[:2],
            said[2] if ours else "",
            str(found["silent"]) if ours else "",
        ]
        yield f"| {which} | {' | '.join(cells)} |"


_PAIRS = (
    ("valid accepted", "valid refused"),
    ("invalid refused", "invalid accepted"),
    ("sampled valid", "sampled invalid"),
)


def main() -> None:
    """The command: prints the table, or writes it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    wanted = parser.parse_args()
    table = "\n".join([*lines(list(pool())), "", *lines_of_formats()])
    if wanted.write is None:
        print(table)
        return
    write_part(wanted.write, BEGIN, END, table)


if __name__ == "__main__":
    main()
