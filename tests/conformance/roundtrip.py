"""Every recorded output of every template, through the format that is derived from the template: `make conformance`.

Strategy: each row of `roundtrip.jsonl` is a turn that a real template rendered and the message that it was rendered
from. A format is derived once per template and must give that message back: whole, and cut into pieces of 1, 3 and 7
characters, with every character accounted for. The figures are printed, and written as a page for the site.

    python -m tests.conformance.roundtrip [--template NAME] [--rows] [--write docs/conformance.md]
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

import toolgram
from tests.conformance.fetch_templates import SOURCES, TEMPLATES
from tests.figures import write_figures
from tests.streams import SHARED, WHOLE, cut, merged, run, sources
from toolgram.cli.findings import warnings_of
from toolgram.derive.comparing import shared_length

DATA = SHARED / "data" / "roundtrip.jsonl"
TOOLS = SHARED / "data" / "tools.json"
TEMPLATE_FOLDERS = (SHARED / "data" / "templates", TEMPLATES)
HINT = "the recorded outputs ../shared/data/roundtrip.jsonl are absent"

CORE = (
    "a_content",
    "b_one_call",
    "c_two_calls",
    "d_reasoning_content",
    "e_reasoning_call",
    "f_content_call",
    "g_nested_args",
    "h_empty_args",
)
CUT_SIZES = (WHOLE, 1, 3, 7)
SHOWN_BEFORE = 40  # characters before the first that differs
LIMITS = {"median": 100.0, "95%": 1000.0}  # milliseconds of the processor per template
REPEATS = 3

# Rows that no parser could read as their message, with the reason; each is told of on a page in docs/decisions.
KNOWN: dict[tuple[str, str], str] = {
    ("CohereForAI-c4ai-command-r7b-12-2024-tool_use", "o2_content_ends_ws"): (
        "blanks beside a marker are dropped, whatever the template renders (docs/decisions/0017)"
    ),
}


@dataclass(frozen=True, slots=True)
class Row:
    """An output that a template rendered, and the message that it must give."""

    template: str
    case: str
    bos_token: str
    eos_token: str
    tools: Sequence[dict[str, Any]]
    prefix: str
    output: str
    expected: dict[str, Any]
    peer: str

    @property
    def known(self) -> str:
        """Why this row cannot be read, if that is so."""
        return KNOWN.get((self.template, self.case), "")


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

    def exact(self, cases: Sequence[str] = ()) -> tuple[int, int]:
        """How many of the rows of these cases (all, without any) are exact, and how many there are."""
        chosen = [outcome for outcome in self.outcomes if not cases or outcome.row.case in cases]
        return sum(outcome.exact for outcome in chosen), len(chosen)

    def peer(self, how: str) -> int:
        """How many rows llama.cpp reads like this: `exact`, `trimmed` or `fail`."""
        return sum(outcome.row.peer == how for outcome in self.outcomes)

    @property
    def origin(self) -> str:
        """Where the format comes from."""
        return "none" if self.error else self.shipped or "derived"


def canonical(message: dict[str, Any]) -> str:
    """A message as text that is equal for equal messages: `1` is `1.0` and not `true`; the order of keys is nothing."""
    return json.dumps(_with_plain_numbers(message), sort_keys=True)


def _with_plain_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _with_plain_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_plain_numbers(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def read_rows() -> list[Row]:
    """All recorded rows; none where they are absent."""
    if not DATA.exists():
        return []
    tools = json.loads(TOOLS.read_text(encoding="utf-8"))
    lines = (json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines() if line)
    return [
        Row(
            Path(line["template"]).stem,
            line["case"],
            line["bos_token"],
            line["eos_token"],
            tools[line["tools"]],
            line["prefix"],
            line["output"],
            line["expected"],
            line["peer"],
        )
        for line in lines
    ]


def by_template(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each template."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.template, []).append(row)
    return groups


def real_templates() -> dict[str, Path]:
    """Every real template that is here."""
    places = [place for folder in reversed(TEMPLATE_FOLDERS) for place in sorted(folder.glob("*.jinja"))]
    return {place.stem: place for place in places}


def template_text(name: str) -> str:
    """A real template, from wherever it is."""
    place = real_templates().get(name)
    if place is None:
        raise FileNotFoundError(f"no template {name}; `make templates` fetches it")
    return place.read_text(encoding="utf-8")


def run_template(rows: Sequence[Row], repeats: int = 1) -> Result:
    """Derive from the template of these rows, which are all of one, and read each of them."""
    first = rows[0]
    result = Result(first.template)
    text = template_text(first.template)
    try:
        times: list[float] = []
        for _ in range(repeats):
            began = time.thread_time()
            fmt = derive_anew(text, first.bos_token, first.eos_token)
            times.append(1000 * (time.thread_time() - began))
    except toolgram.ToolgramError as error:
        result.error = str(error)
        result.outcomes = [Outcome(row, None) for row in rows]
        return result
    result.milliseconds = statistics.median(times)
    assert fmt.report is not None
    result.shipped = fmt.report.shipped
    result.warnings = len(warnings_of(fmt.report))
    result.outcomes = [run_row(fmt, row) for row in rows]
    return result


def derive_anew(template: str, bos_token: str, eos_token: str) -> toolgram.Format:
    """A format that no cache has: its name is part of what they go by."""
    return toolgram.derive_format(template, bos_token=bos_token, eos_token=eos_token, name=f"derived_{next(_NUMBERS)}")


_NUMBERS = count()


def run_row(fmt: toolgram.Format, row: Row) -> Outcome:
    """Read a row whole and cut."""
    message = fmt.parse(row.output, tools=row.tools, prefix=row.prefix)
    whole: list[Any] | None = None
    same, conserved = True, True
    for size in CUT_SIZES:
        events, streamed = run(fmt, cut(row.output, size), tools=row.tools, prefix=row.prefix)
        whole = merged(events) if whole is None else whole
        same = same and merged(events) == whole and plain(streamed) == plain(message)
        conserved = conserved and sources(events) == row.output
    return Outcome(row, plain(message), same, conserved)


def plain(message: toolgram.Message) -> dict[str, Any]:
    """A message as the rows have theirs; arguments of a call that is not complete stay text, which equals nothing."""
    return {
        "content": message.content or "",
        "reasoning": message.reasoning or "",
        "tool_calls": [
            {
                "name": call.name,
                "arguments": json.loads(call.arguments) if call.status == "complete" else call.arguments,
            }
            for call in message.tool_calls
        ],
    }


# What is told of the results.

COLUMNS = ("template", "exact", "core cases", "format", "warnings", "ms", "peer exact", "trimmed", "fail")


def table(results: Sequence[Result]) -> list[list[str]]:
    """A row of figures per template."""
    return [
        [
            result.template,
            _of(result.exact()),
            _of(result.exact(CORE)),
            result.origin,
            str(result.warnings),
            f"{result.milliseconds:.0f}",
            *(str(result.peer(how)) for how in ("exact", "trimmed", "fail")),
        ]
        for result in results
    ]


def totals(results: Sequence[Result]) -> list[str]:
    """The figures of all templates together, a sentence each."""
    outcomes = [outcome for result in results for outcome in result.outcomes]
    exact, total = sum(outcome.exact for outcome in outcomes), len(outcomes)
    core = [outcome for outcome in outcomes if outcome.row.case in CORE]
    peer = {how: sum(result.peer(how) for result in results) for how in ("exact", "trimmed", "fail")}
    times = [result.milliseconds for result in results if not result.error] or [0.0]
    median, most = statistics.median(times), sorted(times)[int(0.95 * (len(times) - 1))]
    met = median <= LIMITS["median"] and most <= LIMITS["95%"]
    return [
        f"{exact} of {total} rows exact ({_percent(exact, total)})",
        f"{_of((sum(outcome.exact for outcome in core), len(core)))} of the core cases exact",
        f"stream = whole: {sum(outcome.same_streamed for outcome in outcomes)} of {total}; "
        f"conserved: {sum(outcome.conserved for outcome in outcomes)} of {total}",
        f"llama.cpp on the same rows: {_percent(peer['exact'], total)} exact, {_percent(peer['trimmed'], total)} equal "
        f"after trimming, {_percent(peer['fail'], total)} fail",
        f"derivation, not cached, time of the processor: median {median:.0f} ms, 95% at most {most:.0f} ms "
        f"({'within' if met else 'over'} the limits of {LIMITS['median']:.0f} and {LIMITS['95%']:.0f})",
    ]


def figures(results: Sequence[Result]) -> dict[str, Any]:
    """The rows that are read exactly, and the share that llama.cpp reads exactly: `docs/data/conformance.json`."""
    outcomes = [outcome for result in results for outcome in result.outcomes]
    peer = sum(result.peer("exact") + result.peer("trimmed") for result in results)
    return {
        "templates": len(results),
        "rows": len(outcomes),
        "exact": sum(outcome.exact for outcome in outcomes),
        "llama.cpp exact or equal after trimming": peer,
    }


def misses(results: Sequence[Result]) -> Iterator[Outcome]:
    """The outcomes that are not as they should be."""
    for result in results:
        for outcome in result.outcomes:
            if not (outcome.exact and outcome.same_streamed and outcome.conserved):
                yield outcome


def difference(outcome: Outcome) -> list[str]:
    """Where a message is not the expected one, and what else is wrong with the row."""
    lines = [] if outcome.same_streamed else ["streamed, it is another message"]
    lines += [] if outcome.conserved else ["some of its text is in no event"]
    if outcome.got is None:
        return ["no format"]
    for part, expected in outcome.row.expected.items():
        if canonical({part: expected}) != canonical({part: outcome.got[part]}):
            wanted, got = _shown(expected), _shown(outcome.got[part])
            start = max(0, shared_length([wanted, got]) - SHOWN_BEFORE)
            lines += [f"{part} expected {_cut(wanted, start)}", f"{' ' * len(part)} got      {_cut(got, start)}"]
    return lines


def _of(pair: tuple[int, int]) -> str:
    return f"{pair[0]}/{pair[1]}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}%" if whole else "none"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, start: int = 0, size: int = 160) -> str:
    """A stretch of a text, with dots where there is more."""
    return "…" * (start > 0) + text[start : start + size] + "…" * (len(text) > start + size)


def print_results(results: Sequence[Result], with_rows: bool) -> None:
    """Each row that is not exact, and the totals; the page has the table."""
    for result in results:
        if result.error:
            print(f"{result.template}: no format: {result.error}")
    for outcome in misses(results):
        print(f"{outcome.row.template} {outcome.row.case}{'  known: ' * bool(outcome.row.known)}{outcome.row.known}")
        for line in difference(outcome):
            print(f"    {line}")
        if with_rows:
            print(f"    prefix {_shown(outcome.row.prefix[-80:])}")
            print(f"    output {_cut(_shown(outcome.row.output), size=600)}")
    for total in totals(results):
        print(total)


def page(results: Sequence[Result]) -> str:
    """The same for the site."""
    lines = [
        "# Conformance",
        "",
        "Written by `make conformance`. Each row is a turn that a real chat template rendered, and the message it "
        "was rendered from. The format is derived from the template alone; *exact* is the same content, reasoning, "
        "names and arguments, character for character. *Core cases* are content, one call, two calls, reasoning with "
        "each, content with a call, nested and empty arguments. *Peer* is the unified parser of llama.cpp on the same "
        "rows.",
        "",
        *(f"* {total}" for total in totals(results)),
        "",
        f"toolgram {toolgram.__version__}, Python {platform.python_version()}, Jinja2 {version('jinja2')}; "
        f"templates as in {SOURCES[0].package} {SOURCES[0].version} (`make templates` fetches them).",
        "",
        f"| {' | '.join(COLUMNS)} |",
        f"|{'|'.join('---' if at in (0, 3) else '--:' for at in range(len(COLUMNS)))}|",
        *(f"| {' | '.join(row)} |" for row in table(results)),
    ]
    if missed := list(misses(results)):
        lines += ["", "## Rows that are not exact", "", "| template | case | why |", "|---|---|---|"]
        lines += [f"| {each.row.template} | {each.row.case} | {each.row.known or 'not yet known'} |" for each in missed]
    return "\n".join(lines) + "\n"


def main(given: Sequence[str] | None = None) -> int:
    """Run what is there; the exit status is 1 if a row is not as it should be and not known not to be."""
    arguments = argparse.ArgumentParser(prog="make conformance", description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--template", metavar="NAME", help="only the templates whose name has this in it")
    arguments.add_argument("--rows", action="store_true", help="show the outputs of the rows that are not exact")
    arguments.add_argument("--write", metavar="FILE", type=Path, help="write the figures as a page")
    options = arguments.parse_args(given)
    rows = read_rows()
    if not rows:
        print(HINT, file=sys.stderr)
        return 1
    groups = {name: group for name, group in by_template(rows).items() if (options.template or "") in name}
    if not groups:
        print(f"no template has {options.template!r} in its name", file=sys.stderr)
        return 2
    run_template(next(iter(groups.values()))[:1])  # once for the imports, which are not what is measured
    results = [run_template(group, REPEATS) for group in groups.values()]
    print_results(results, options.rows)
    if options.write and not options.template:
        options.write.write_text(page(results), encoding="utf-8", newline="\n")
        engine = {"Jinja2": version("jinja2"), SOURCES[0].package: SOURCES[0].version}
        write_figures("conformance", "make conformance", figures(results), engine)
        print(f"written: {options.write}")
    return 0 if all(outcome.sound for result in results for outcome in result.outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
