"""The exports in the versions of the engines that servers pin: `make export-pins`.

Strategy: each version is installed into a directory of its own, without its dependencies, and a process that finds it
there first takes the schema pool, and a part of it in every format, as the page of exports does with our own versions.

    python -m benchmarks.export_pins [--write docs/data/index.md]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path

from tests.export.pool_figures import figures, figures_of_format, format_names
from tests.export.schema_pool import pool
from tests.page_parts import write_part

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".engines"
PINS = (  # an engine, its version, the target that is run, and who has that version
    ("xgrammar", "0.2.8", "structural_tag", "vLLM 0.33.0"),
    ("xgrammar", "0.2.7", "structural_tag", "SGLang 0.5.23"),
    ("xgrammar", "0.2.1", "structural_tag", "the oldest that vLLM 0.24.0 takes"),
    ("llguidance", "1.7.6", "llguidance", "vLLM 0.24.0 and 0.33.0 (1.7), SGLang 0.5.23 (1.7.6 or newer)"),
)
BEGIN, END = "<!-- pins -->", "<!-- /pins -->"
HEAD = """| engine | of | schemas compiled | valid accepted | invalid refused | silent | formats compiled | \
written accepted | broken refused |
|---|---|--:|--:|--:|--:|--:|--:|--:|"""


def _of_schema(job: tuple[str, str]) -> Counter[str]:
    """What an export does with one schema; nothing where the engine does not take it."""
    name, target = job
    try:
        return figures(name, target)
    except (RuntimeError, ValueError) as error:
        print(name, str(error).splitlines()[0], file=sys.stderr)
        return Counter(schemas=1)


def _of_format(job: tuple[str, str]) -> Counter[str]:
    """The same for two schemas in one format."""
    name, target = job
    try:
        return figures_of_format(name, target)
    except (RuntimeError, ValueError) as error:
        print(name, str(error).splitlines()[0], file=sys.stderr)
        return Counter(exported=2)


def measured(target: str) -> dict[str, Counter[str]]:
    """The figures of a target in the engine that this process finds."""
    with ProcessPoolExecutor(os.cpu_count()) as workers:
        schemas = sum(workers.map(_of_schema, [(name, target) for name in pool()], chunksize=20), Counter[str]())
        formats = sum(workers.map(_of_format, [(name, target) for name in format_names()]), Counter[str]())
    return {"schemas": schemas, "formats": formats}


def run(engine: str, wanted: str, target: str) -> dict[str, dict[str, int]]:
    """The figures in one version of an engine, which is installed where it is not here yet."""
    home = HOME / f"{engine}-{wanted}"
    if not home.exists():
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--target", str(home)]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, f"{engine}=={wanted}"], check=True)
    path = os.pathsep.join([str(home), *filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)])])
    command = [sys.executable, "-m", "benchmarks.export_pins", "--measure", target, "--expect", f"{engine}=={wanted}"]
    found = subprocess.run(
        command, check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True
    )
    return json.loads(found.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def lines() -> Iterator[str]:
    """The table."""
    yield HEAD
    for engine, wanted, target, whose in PINS:
        found = run(engine, wanted, target)
        schemas, formats = Counter(found["schemas"]), Counter(found["formats"])

        def share(counts: Counter[str], good: str, bad: str) -> str:
            return f"{counts[good]}/{counts[good] + counts[bad]}"

        cells = [
            f"{engine} {wanted}",
            whose,
            f"{schemas['compiled']}/{schemas['schemas']}",
            share(schemas, "valid accepted", "valid refused"),
            share(schemas, "invalid refused", "invalid accepted"),
            str(schemas["silent"] + formats["silent"]),
            f"{formats['compiled']}/{formats['exported']}",
            share(formats, "accepted", "not accepted"),
            share(formats, "rejected", "not rejected"),
        ]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    """The command: prints the table, or writes it into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--measure", help="print the figures of a target in the engine that is found, as JSON")
    parser.add_argument("--expect", help="the engine and the version that must be found")
    wanted = parser.parse_args()
    if wanted.measure:
        engine, _, expected = wanted.expect.partition("==")
        if version(engine) != expected:
            raise SystemExit(f"pins: {engine} is {version(engine)} here, not {expected}")
        print(json.dumps(measured(wanted.measure)))
        return
    table = "\n".join(lines())
    if wanted.write is None:
        print(table)
        return
    write_part(wanted.write, BEGIN, END, table)


if __name__ == "__main__":
    main()
