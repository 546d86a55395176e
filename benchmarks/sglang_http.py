"""What clients hear wrong from toolgram and from SGLang's own parsers, as a table. `make sglang-http-table`.

Strategy: as `vllm_http`, with one server at a time, since a server of SGLang is a process for one model.

    python -m benchmarks.sglang_http [MODEL ...] [--write docs/reference/sglang-tables.md]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.vllm_http import Tally, kinds_of
from tests.integrations.sglang_fleet import OURS, PARSERS, THEIRS, make_model, serving, try_all, wrong_in_sglang
from tests.page_parts import write_part

BEGIN, END = "<!-- http table: written by `make sglang-http-table` -->", "<!-- end of http table -->"


def try_model(name: str, show: int) -> dict[str, dict[str, Any]]:
    """Return the row of each way for a model."""
    found = {}
    for way in (OURS, THEIRS):
        with tempfile.TemporaryDirectory() as folder:
            model, trials = make_model(name, Path(folder))
            with serving(model, way, Path(folder)) as port:
                tally = Tally(try_all(port, trials), model.specials, wrong_in_sglang)
        tally.report(f"{way} {name}", show)
        found[way] = tally.row()
    return found


def table(rows: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Return toolgram and SGLang's own parsers beside it, as Markdown, with the sums."""
    lines = [
        f"SGLang {version('sglang')}.",
        "",
        "| model | requests | toolgram wrong | SGLang's parsers | wrong | without a thought | kinds of the others |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        ours, theirs = row[OURS], row[THEIRS]
        mine = str(ours["wrong"]) + (f" ({kinds_of(ours)})" if ours["wrong"] else "")
        pair = " + ".join(f"`{each}`" for each in PARSERS[name] if each)
        rest = f"{pair} | {theirs['wrong']} | {theirs['skipped']} | {kinds_of(theirs)}"
        lines.append(f"| {name} | {ours['asked']} | {mine} | {rest} |")
    sums = {way: sum(row[way]["wrong"] for row in rows.values()) for way in (OURS, THEIRS)}
    asked = sum(row[OURS]["asked"] for row in rows.values())
    lines += ["", f"toolgram: {sums[OURS]} of {asked:,} answers wrong. SGLang's own parsers: {sums[THEIRS]:,}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Ask these models, or all, and print what is wrong, or write the table into a page."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("models", nargs="*", default=list(PARSERS))
    options.add_argument("--show", type=int, default=3, help="examples of each kind of mistake")
    options.add_argument("--write", metavar="PAGE", type=Path, help="put the table into this page")
    given = options.parse_args()
    rows = {name: try_model(name, given.show) for name in given.models}
    if given.write:
        write_part(given.write, BEGIN, END, table(rows))


if __name__ == "__main__":
    main()
