"""What clients hear wrong from toolgram and from vLLM's own parsers, as a table. `make vllm-http-table`.

Strategy: a few models at a time, each with a server for toolgram's parsers and one for vLLM's. What was heard is kept
in `vllm_http.json`, a row for each model, so that the table can be measured in parts; the page has all rows.

    python -m benchmarks.vllm_http [MODEL ...] [--theirs] [--write docs/reference/vllm-tables.md]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.integrations.http_fleet import OURS, THEIRS, Fleet, called, make_models
from tests.integrations.http_matrix import Model, Trial, wrong
from tests.integrations.http_shapes import Shape, shapes
from tests.integrations.vllm_heard import Heard
from tests.page_parts import write_part

RESULTS = Path(__file__).with_name("vllm_http.json")
BEGIN, END = "<!-- http table: written by `make vllm-http-table` -->", "<!-- end of http table -->"
TOLD = 3  # kinds of mistakes in a cell
PROBLEMS = 2  # of each kind
SKIPS = "without a thought, "  # before the kind of request, where the model was free to think and did not
_ERRORS = {
    "error: APIConnectionError": "the connection breaks",
    "error: APIError": "the stream ends with an error",
    "error: APITimeoutError": "no answer in ten minutes",
    "error: ValueError": "events that do not fit together",
}
NOT_ASKED = {  # parsers of vLLM's that nothing here is asked of, and why
    "beam": "reads a response template that only the files of its checkpoint have",
    "minimax_m2_append_think": "leaves thoughts in the content, and is meant to",
    "openai": "reads nothing: models of the type gpt_oss get a reader of the ids of OpenAI's own vocabulary",
    "openai_gptoss": "is the same case",
}
PATIENCE = 600  # seconds: an answer that a long one holds up is late, not wrong
AT_A_TIME = 8  # models whose servers run at once


class Tally:
    """What is wrong with the answers of one server, by `judge`."""

    def __init__(
        self,
        heard: Sequence[tuple[Trial, Heard]],
        specials: Sequence[str],
        judge: Callable[[Heard, Trial, Sequence[str]], str] = wrong,
    ) -> None:
        self.asked = len(heard)
        self.kinds: Counter[tuple[str, str]] = Counter()
        self.examples: dict[tuple[str, str], list[Any]] = {}
        for trial, answer in heard:
            problem = judge(answer, trial, specials)
            if problem:
                example = (trial.label, trial.ask.api, trial.ask.pace, answer.told(), answer.detail)
                kind = SKIPS + trial.kind if trial.skips_thought else trial.kind
                self.kinds[kind, problem] += 1
                self.examples.setdefault((kind, problem), []).append(example)

    @property
    def wrong(self) -> int:
        """How many answers."""
        return sum(self.kinds.values())

    @property
    def skipped(self) -> int:
        """How many of these where the model was free to think and did not."""
        return sum(number for (kind, _), number in self.kinds.items() if kind.startswith(SKIPS))

    def report(self, server: str, show: int) -> None:
        """Print it, with examples."""
        print(f"{server}: {self.wrong} of {self.asked} wrong, {self.skipped} without a thought", flush=True)
        for key, often in self.kinds.most_common():
            print(f"   {often:4} {key[0]}: {key[1]}")
            for example in self.examples[key][:show]:
                print(f"        {example!s:.400}")

    def row(self) -> dict[str, Any]:
        """How many were asked and wrong, and for each kind of request how many and what, the most frequent first."""
        often: Counter[str] = Counter()
        problems: dict[str, Counter[str]] = {}
        for (kind, problem), number in self.kinds.items():
            often[kind] += number
            problems.setdefault(kind, Counter())[problem] += number
        kinds = [
            [kind, number, [each for each, _ in problems[kind].most_common(PROBLEMS)]]
            for kind, number in often.most_common()
        ]
        return {"asked": self.asked, "wrong": self.wrong, "skipped": self.skipped, "kinds": kinds}


def try_models(models: Sequence[Model], scratch: Path, given: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """The rows of these models."""
    trials = {model.shape.name: model.trials() for model in models}
    for model in models:
        model.write()
    rows: dict[str, dict[str, Any]] = {model.shape.name: {} for model in models}
    with Fleet(models, scratch, (OURS, THEIRS) if given.theirs else (OURS,)) as fleet:
        for server, error in fleet.failed.items():
            print(f"{server}: did not start: {error}", flush=True)
            _put(rows, server, {"failed": error})
        for server in fleet.ports:
            name = server.split(" ")[1]
            wanted = [trial for trial in trials[name] if trial.kind.startswith(given.only)]
            tally = Tally(asyncio.run(fleet.try_all(server, wanted, PATIENCE)), fleet.models[name].specials)
            tally.report(server, given.show)
            _put(rows, server, tally.row())
        if given.log:
            with given.log.open("a", encoding="utf-8") as log:
                log.write(fleet.said())
    return rows


def _put(rows: dict[str, dict[str, Any]], server: str, row: dict[str, Any]) -> None:
    """A server's row among those of its model: toolgram's, or that of a pair of vLLM's parsers."""
    way, name, *pair = server.split(" ", 2)
    if pair:
        rows[name].setdefault(way, {})[pair[0]] = row
    else:
        rows[name][way] = row


def table(rows: Mapping[str, Mapping[str, Any]]) -> str:
    """toolgram, and each pair of vLLM's own parsers beside it, as Markdown; the sums; and what is missing."""
    lines = [
        "| model | requests | toolgram wrong | vLLM's parsers | wrong | without a thought | kinds of the others |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        ours = row[OURS]
        mine = str(ours["wrong"]) + (f" ({ours['skipped']}; {kinds_of(ours)})" if ours["wrong"] else "")
        for pair, theirs in row.get(THEIRS, {"none": {}}).items():
            rest = f"{theirs['wrong']} | {theirs['skipped']} | {kinds_of(theirs)}" if "wrong" in theirs else "- | - | -"
            lines.append(f"| {name} | {ours['asked']} | {mine} | {pair} | {rest} |")
    return "\n".join([*lines, "", *_sums(rows)]) + "\n"


def _sums(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """How many were asked and wrong, and which of vLLM's parsers were not."""
    ours = [row[OURS] for row in rows.values()]
    theirs = [each for row in rows.values() for each in row.get(THEIRS, {}).values() if "wrong" in each]
    wrong, skipped = sum(each["wrong"] for each in theirs), sum(each["skipped"] for each in theirs)
    asked = {
        kind: {pair[place] for shape in shapes(tuple(rows)) for pair in _heard(shape, rows[shape.name])}
        for place, kind in enumerate(("tool", "reasoning"))
    }
    said = [
        f"toolgram: {sum(each['wrong'] for each in ours)} of {sum(each['asked'] for each in ours):,} answers wrong. "
        f"vLLM's own parsers, {len(theirs)} pairs: {wrong:,} of {sum(each['asked'] for each in theirs):,}, "
        f"{skipped:,} of them without a thought.",
        "",
    ]
    for kind, parsers in _registered().items():
        same = [f"`{name}` is `{first}`" for first, *names in parsers.values() for name in names]
        known = {name for names in parsers.values() for name in names if asked[kind] & set(names)}
        missing = sorted({name for names in parsers.values() for name in names} - known)
        said.append(
            f"* Of vLLM's {sum(map(len, parsers.values()))} {kind} parsers, {len(known)} were asked. Under two names: "
            f"{', '.join(same)}. Not asked: "
            + ("; ".join(f"`{name}`, which {NOT_ASKED.get(name, 'has no row yet')}" for name in missing) or "none")
            + "."
        )
    return said


def _heard(shape: Shape, row: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """The pairs of vLLM's parsers that this model was asked of."""
    return [pair for pair in (shape.theirs, *shape.others) if "wrong" in row.get(THEIRS, {}).get(called(pair), {})]


def _registered() -> dict[str, dict[Any, list[str]]]:
    """vLLM's own parsers of both kinds: the names of each class."""
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    found: dict[str, dict[Any, list[str]]] = {"tool": {}, "reasoning": {}}
    for kind, names, get in (
        ("tool", ToolParserManager.list_registered(), ToolParserManager.get_tool_parser),
        ("reasoning", ReasoningParserManager.list_registered(), ReasoningParserManager.get_reasoning_parser),
    ):
        for name in sorted(names):
            if not name.startswith("toolgram"):
                found[kind].setdefault(get(name), []).append(name)
    return found


def kinds_of(row: Mapping[str, Any]) -> str:
    """What was wrong, by kind of request, in one cell."""
    kinds = [each for each in row["kinds"] if not each[0].startswith(SKIPS)]
    parts = [f"{kind} {number}: {_words(problems)}" for kind, number, problems in kinds[:TOLD]]
    rest = sum(number for _, number, _ in kinds[TOLD:])
    return "; ".join(parts + ([f"{rest} more"] if rest else [])) or "none"


def _words(problems: Sequence[str]) -> str:
    """What was wrong, each once, and errors of the clients in plain words."""
    each = [_ERRORS.get(one, one) for problem in problems for one in problem.split(", ")]
    return ", ".join(dict.fromkeys(re.sub(r"^error: \w+ (\d+)$", r"HTTP \1", one) for one in each))


def main() -> None:
    """Try these models, or those of this run, and print what is wrong; or put the table where it stands in a page."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("shapes", nargs="*")
    options.add_argument("--theirs", action="store_true", help="vLLM's own parsers as well")
    options.add_argument("--show", type=int, default=3, help="examples of each kind of mistake")
    options.add_argument("--only", default="", help="the kinds of trials whose name begins so")
    options.add_argument("--write", metavar="PAGE", type=Path, help="keep the rows, and put the table into this page")
    options.add_argument("--log", metavar="FILE", type=Path, help="keep the log of the servers")
    given = options.parse_args()
    names = [shape.name for shape in shapes(given.shapes)]
    for begin in range(0, len(names), AT_A_TIME):
        with tempfile.TemporaryDirectory() as scratch:
            models = make_models(names[begin : begin + AT_A_TIME], Path(scratch))
            rows = try_models(models, Path(scratch), given)
        if given.write:
            keep(rows, given.write)


def keep(rows: Mapping[str, Mapping[str, Any]], page: Path) -> None:
    """Put rows among those that are known, and all of them into the page."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    known |= dict(rows)
    known = {shape.name: known[shape.name] for shape in shapes(tuple(known))}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known))
    RESULTS.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    write_part(page, BEGIN, END, table(known))


if __name__ == "__main__":
    main()
