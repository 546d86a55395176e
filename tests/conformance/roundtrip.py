"""Every output of every template, through the format that is derived from the template: `make conformance`.

Strategy: each row of `roundtrip.jsonl` is a turn that a real template rendered and the message that it was rendered
from. Of a template without recorded rows, turns with the same messages are rendered (`rows`). A format is derived
per template and must give each message back: whole, and cut into pieces of 1, 3 and 7 characters, with every
character accounted for. The figures are printed, and written as a page for the site.

    python -m tests.conformance.roundtrip [--template NAME] [--write docs/conformance.md]
"""

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import toolgram
from tests.conformance.fetch_templates import SOURCES, TEMPLATES
from tests.conformance.rows import BOS, EOS, HINT, Row, by_template, canonical, read_rows, real_templates, rendered
from tests.derive.turns import report_of
from tests.figures import write_figures
from tests.page_parts import write_part
from tests.streams import WHOLE, cut, merged, run, sources
from toolgram.cli.findings import warnings_of
from toolgram.derive.comparing import shared_length
from toolgram.derive.report import DeriveReport

CORE = (
    "a_content", "b_one_call", "c_two_calls", "d_reasoning_content", "e_reasoning_call", "f_content_call",
    "g_nested_args", "h_empty_args",
)  # fmt: skip
CUT_SIZES = (WHOLE, 1, 3, 7)
PEER = ("exact", "trimmed", "fail")  # how llama.cpp reads a row
COUNTED = ("templates", "exact", "rows")
SHOWN_BEFORE = 40  # characters before the first that differs
LIMITS = {"median": 100.0, "95%": 1000.0}  # milliseconds of the processor per template
REPEATS = 3
MOST_SHOWN = 200  # characters of a reason


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a row."""

    row: Row
    got: dict[str, Any] | None  # None where there is no format
    same_streamed: bool = True  # stream = whole
    conserved: bool = True

    @property
    def exact(self) -> bool:
        """Whether the message is the expected one."""
        return self.got is not None and canonical(self.got) == canonical(self.row.expected)

    @property
    def sound(self) -> bool:
        """Whether the contract holds for the row, and the message is the expected one or known not to be."""
        return self.same_streamed and self.conserved and (self.exact or bool(self.row.known))


@dataclass(slots=True)
class Result:
    """What came of a template."""

    template: str
    outcomes: list[Outcome] = field(default_factory=list)
    shipped: str | None = None
    milliseconds: float = 0.0
    warnings: int = 0
    error: str = ""
    ok: bool = False  # what the report of the derived format says of itself
    unread: str = ""  # why no shipped format reads its calls, if that is so

    def exact(self, cases: Sequence[str] = ()) -> tuple[int, int]:
        """How many of the rows of these cases (all, without any) are exact, and how many there are."""
        chosen = [outcome for outcome in self.outcomes if not cases or outcome.row.case in cases]
        return sum(outcome.exact for outcome in chosen), len(chosen)

    @property
    def silent(self) -> int:
        """How many rows are read wrongly although the report is `ok`."""
        return sum(not outcome.exact for outcome in self.outcomes) if self.ok else 0

    def peer(self, how: str) -> int:
        """How many rows llama.cpp reads like this."""
        return sum(outcome.row.peer == how for outcome in self.outcomes)

    @property
    def origin(self) -> str:
        """Where the format comes from."""
        return "none" if self.error else self.shipped or "derived"


def run_template(place: Path, rows: Sequence[Row], repeats: int = 1) -> Result:
    """Derive from a template, and read each of its rows."""
    result, text = Result(place.stem), place.read_text(encoding="utf-8")
    tokens = (rows[0].bos_token, rows[0].eos_token) if rows else (BOS, EOS)
    times: list[float] = []
    try:
        for _ in range(repeats):
            began = time.thread_time()
            fmt = derive_anew(text, *tokens)
            times.append(1000 * (time.thread_time() - began))
    except toolgram.ToolgramError as error:
        result.error = str(error)
        result.outcomes = [Outcome(row, None) for row in rows]
        return result
    result.milliseconds = statistics.median(times)
    report = report_of(fmt)
    result.ok, result.shipped = report.ok, report.shipped
    result.unread = "" if result.shipped else _reason(report)
    result.warnings = len(warnings_of(report))
    result.outcomes = [run_row(fmt, row) for row in rows]
    return result


def _reason(report: DeriveReport) -> str:
    """Why no shipped format reads the calls of a template, as the report of derivation says."""
    if report.found.calls == "none":
        return "it prints no calls"
    if not report.asked:
        return "no shipped format has its markers of calls"
    return f"`{' '.join(report.asked[0].replace('`', chr(39)).replace('|', '¦').split())[:MOST_SHOWN]}`"


def derive_anew(template: str, bos_token: str, eos_token: str) -> toolgram.Format:
    """A format that no cache has: its name is part of what they go by."""
    return toolgram.derive_format(template, bos_token=bos_token, eos_token=eos_token, name=f"derived_{next(_NUMBERS)}")


_NUMBERS = count()


def run_row(fmt: toolgram.Format, row: Row) -> Outcome:
    """Read a row whole and cut."""
    got = plain(fmt.parse(row.output, tools=row.tools, prefix=row.prefix))
    runs = [run(fmt, cut(row.output, size), tools=row.tools, prefix=row.prefix) for size in CUT_SIZES]
    whole = merged(runs[0][0])
    same = all(merged(events) == whole and plain(message) == got for events, message in runs)
    return Outcome(row, got, same, all(sources(events) == row.output for events, _ in runs))


def plain(message: toolgram.Message) -> dict[str, Any]:
    """A message as the rows have theirs; arguments of a call that is not complete stay text, which equals nothing."""
    calls = [
        {"name": each.name, "arguments": json.loads(each.arguments) if each.status == "complete" else each.arguments}
        for each in message.tool_calls
    ]
    return {"content": message.content or "", "reasoning": message.reasoning or "", "tool_calls": calls}


# What is said of the results.

COLUMNS = ("template", "exact", "core cases", "format", "warnings", "ms", "peer exact", "trimmed", "fail")
RECORDED = "<!-- recorded rows -->", "<!-- /recorded rows -->"  # the parts of the page
UNSEEN = "<!-- unseen templates -->", "<!-- /unseen templates -->"


def table(results: Sequence[Result]) -> list[list[str]]:
    """A row of figures per template."""
    return [
        [result.template, _of(result.exact()), _of(result.exact(CORE)), result.origin, str(result.warnings),
         f"{result.milliseconds:.0f}", *(str(result.peer(how)) for how in PEER)]
        for result in results
    ]  # fmt: skip


def _of(pair: tuple[int, int]) -> str:
    return f"{pair[0]}/{pair[1]}"


def _exact(results: Sequence[Result], cases: Sequence[str] = ()) -> tuple[int, int]:
    """How many rows of all templates are exact, and how many there are."""
    pairs = [result.exact(cases) for result in results]
    return sum(exact for exact, _ in pairs), sum(total for _, total in pairs)


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "none"


def _times(results: Sequence[Result]) -> tuple[float, float, float]:
    """The milliseconds of derivation: the median, what 95% need at most, and the most."""
    times = sorted(result.milliseconds for result in results if not result.error) or [0.0]
    return statistics.median(times), times[int(0.95 * (len(times) - 1))], times[-1]


def totals(results: Sequence[Result]) -> list[str]:
    """The figures of all templates together, a sentence each."""
    outcomes = [outcome for result in results for outcome in result.outcomes]
    exact, total = _exact(results)
    peer = [_percent(sum(result.peer(how) for result in results), total) for how in PEER]
    median, most, _ = _times(results)
    met = median <= LIMITS["median"] and most <= LIMITS["95%"]
    return [
        f"{exact} of {total} rows exact ({_percent(exact, total)})",
        f"{_of(_exact(results, CORE))} of the core cases exact",
        f"stream = whole: {sum(outcome.same_streamed for outcome in outcomes)} of {total}; "
        f"conserved: {sum(outcome.conserved for outcome in outcomes)} of {total}",
        f"llama.cpp on the same rows: {peer[0]} exact, {peer[1]} equal after trimming, {peer[2]} fail",
        f"derivation, not cached, time of the processor: median {median:.0f} ms, 95% at most {most:.0f} ms "
        f"({'within' if met else 'over'} the limits of {LIMITS['median']:.0f} and {LIMITS['95%']:.0f})",
    ]


def totals_of_unseen(results: Sequence[Result]) -> list[str]:
    """The figures of the templates without recorded rows."""
    exact, total = _exact(results)
    proved = [result for result in results if result.ok]
    median, most, all_of_them = _times(results)
    return [
        f"{exact} of {total} rows exact ({_percent(exact, total)})",
        f"{len(proved)} of {len(results)} templates with a report that is `ok`, with {_exact(proved)[1]} rows, "
        f"of which {sum(result.silent for result in proved)} are not exact",
        f"derivation, time of the processor: median {median:.0f} ms, "
        f"95% at most {most:.0f} ms, at most {all_of_them:.0f} ms",
    ]


def misses(results: Sequence[Result]) -> list[Outcome]:
    """The outcomes that are not as they should be."""
    outcomes = (outcome for result in results for outcome in result.outcomes)
    return [each for each in outcomes if not (each.exact and each.same_streamed and each.conserved)]


def difference(outcome: Outcome) -> list[str]:
    """Where a message is not the expected one, and what else is wrong with the row."""
    if outcome.got is None:
        return ["no format"]
    lines = [] if outcome.same_streamed else ["streamed, it is another message"]
    lines += [] if outcome.conserved else ["some of its text is in no event"]
    for part, expected in outcome.row.expected.items():
        if canonical({part: expected}) != canonical({part: outcome.got[part]}):
            wanted, got = (json.dumps(each, ensure_ascii=False) for each in (expected, outcome.got[part]))
            start = max(0, shared_length([wanted, got]) - SHOWN_BEFORE)
            lines += [f"{part}, at {start}: expected {wanted[start:][:MOST_SHOWN]} got {got[start:][:MOST_SHOWN]}"]
    return lines


def print_results(results: Sequence[Result]) -> None:
    """Each row that is not exact; the page has the table."""
    for result in results:
        if result.error:
            print(f"{result.template}: no format: {result.error}")
        if result.silent:
            print(f"{result.template}: {result.silent} rows are not exact, and the report is ok")
    for outcome in misses(results):
        known = f"  known: {outcome.row.known}" if outcome.row.known else ""
        print(f"{outcome.row.template} {outcome.row.case}{known}", *difference(outcome), sep="\n    ")


def part_of_recorded(results: Sequence[Result]) -> str:
    """The part of the page about recorded rows."""
    lines = [
        *(f"* {total}" for total in totals(results)),
        "",
        f"toolgram {toolgram.__version__}, Python {platform.python_version()}, Jinja2 {version('jinja2')}; "
        f"templates as in {SOURCES[0].package} {SOURCES[0].version} (`make templates` fetches them).",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'|'.join('---' if at in (0, 3) else '--:' for at in range(len(COLUMNS)))}|",
        *(f"| {' | '.join(row)} |" for row in table(results)),
    ]
    if missed := misses(results):
        lines += ["", "## Rows that are not exact", "", "| template | case | why |", "|---|---|---|"]
        lines += [f"| {each.row.template} | {each.row.case} | {each.row.known or 'not yet known'} |" for each in missed]
    return "\n".join(lines)


def part_of_unseen(unseen: Sequence[Result], results: Sequence[Result]) -> str:
    """The part about templates without recorded rows, and about all that no shipped format reads."""
    lines = [f"* {total}" for total in totals_of_unseen([each for each in unseen if each.outcomes])]
    lines += ["", "| template | exact | report | format |", "|---|--:|---|---|"]
    for each in unseen:
        if each.outcomes:
            lines += [f"| {each.template} | {_of(each.exact())} | {'ok' if each.ok else 'not ok'} | {each.origin} |"]
    lines += ["", "### Templates that no shipped format reads", "", "| template | why |", "|---|---|"]
    unread = sorted((each.template, each.unread) for each in (*results, *unseen) if each.unread)
    return "\n".join([*lines, *(f"| {template} | {why} |" for template, why in unread)])


def main(given: Sequence[str] | None = None) -> int:
    """Run what is there; the exit status is 1 if a row is not as it should be and not known not to be."""
    arguments = argparse.ArgumentParser(prog="make conformance", description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--template", metavar="NAME", default="", help="only the templates with this in their names")
    arguments.add_argument("--write", metavar="FILE", type=Path, help="write the figures on a page")
    options = arguments.parse_args(given)
    rows, fetched = by_template(read_rows()), {place.stem: place for place in sorted(TEMPLATES.glob("*.jinja"))}
    if not rows:
        print(HINT, file=sys.stderr)
        return 1
    names = [name for name in dict.fromkeys((*rows, *fetched)) if options.template in name]
    if not names:
        print(f"no template has {options.template!r} in its name", file=sys.stderr)
        return 2
    places = real_templates() | fetched
    run_template(places[names[0]], ())  # once for the imports, which are not what is measured
    results = [run_template(places[name], rows[name], REPEATS) for name in names if name in rows]
    unseen = [run_template(places[name], rendered(places[name]), REPEATS) for name in names if name not in rows]
    print_results([*results, *unseen])
    print(*totals(results), *totals_of_unseen([each for each in unseen if each.outcomes]), sep="\n")
    if options.write and not options.template:
        write_part(options.write, *RECORDED, part_of_recorded(results))
        write_part(options.write, *UNSEEN, part_of_unseen(unseen, results))
        read = {"recorded rows": results, "rendered rows": [each for each in unseen if each.outcomes]}
        read |= {f"{name}, derived": [each for each in group if not each.shipped] for name, group in read.items()}
        figures = {name: dict(zip(COUNTED, (len(each), *_exact(each)), strict=True)) for name, each in read.items()}
        peer = sum(result.peer(how) for result in results for how in PEER[:2])
        figures["recorded rows"]["llama.cpp exact or equal after trimming"] = peer
        engine = {"Jinja2": version("jinja2"), SOURCES[0].package: SOURCES[0].version}
        write_figures("conformance", "make conformance", figures, engine)
        print(f"written: {options.write}")
    sound = all(outcome.sound for result in results for outcome in result.outcomes)
    return 0 if sound and not any(each.silent for each in unseen) else 1


if __name__ == "__main__":
    sys.exit(main())
