"""toolgram, vLLM, SGLang and transformers on the same outputs, each through its own API: docs/scoreboard.md.

    python -m tests.scoreboard [--peers .venv-peers/bin/python] [--peer NAME=INTERPRETER ...] [--write FILE]

Strategy: each peer is a process (`workers`) that gets cases as JSON lines.  Here its answers are held against what the
case means, and counted.  Blanks do not count in content and reasoning, arguments count as JSON values.  An answer is

* right: the whole text and both streams give the message,
* wrong: they all give the same other one,
* dependent on the deltas: they do not give the same,
* raised: one of them ended in an exception, or took more than 20 seconds.

A peer without a parser of the format has no answer, and neither has one whose parser cannot be made here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conformance.roundtrip import DATA, canonical
from tests.figures import write_figures
from tests.page_parts import write_part
from tests.scoreboard.cases import SETS, Case, Questions, all_cases

ROOT = Path(__file__).resolve().parents[2]
PEERS = {"toolgram": "toolgram", "vllm": "vLLM", "sglang": "SGLang", "transformers": "transformers"}
RIGHT, WRONG, DEPENDS, RAISED, NONE = "right", "wrong", "depends on the deltas", "raised", "no parser"
VERDICTS = (RIGHT, WRONG, DEPENDS, RAISED, NONE)
_MOST_STARTS = 5  # of a worker
_SHOWN = 60  # characters of a reason


@dataclass(slots=True)
class Peer:
    """A peer's answers, by the id of the case."""

    name: str
    version: str = ""
    problem: str = ""  # why it was not run
    answers: dict[str, dict[str, Any]] = field(default_factory=dict)


def ask(name: str, interpreter: str, questions: Sequence[Mapping[str, Any]]) -> Peer:
    """All answers of a peer. A worker that ends early is started again behind the case at which it did."""
    peer = Peer(name)
    waiting = list(questions)
    for _ in range(_MOST_STARTS):
        if waiting and not peer.problem:
            waiting = _ask_some(peer, interpreter, waiting)
            if waiting and not peer.problem:
                peer.answers[waiting.pop(0)["id"]] = {"runs": [{"raised": "the process ended"}]}
    if waiting and not peer.problem:
        peer.problem = f"its process ended {_MOST_STARTS} times"
    return peer


def _ask_some(peer: Peer, interpreter: str, questions: list[Any]) -> list[Any]:
    """Ask until the worker ends; those that were not answered."""
    command = [interpreter, "-m", "tests.scoreboard.workers", peer.name]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    try:
        worker = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
            env=os.environ | {"PYTHONPATH": path},
        )  # fmt: skip
    except OSError as error:
        peer.problem = f"{interpreter}: {error.strerror}"
        return questions
    assert worker.stdout is not None
    errors: list[str] = []
    reader = threading.Thread(target=lambda: errors.append(worker.stderr.read()[-2000:] if worker.stderr else ""))
    writer = threading.Thread(target=_write, args=(worker, questions))
    reader.start()
    writer.start()
    lines = iter(worker.stdout)
    first = next(lines, "")
    if first:
        peer.version = json.loads(first)["version"]
        for line in lines:
            answer = json.loads(line)
            peer.answers[answer["id"]] = answer
    worker.wait()
    writer.join()
    reader.join()
    for stream in (worker.stdout, worker.stderr):
        if stream is not None:
            stream.close()
    if not first:
        peer.problem = (errors[0].strip().splitlines() or ["it does not start"])[-1]
    return [each for each in questions if each["id"] not in peer.answers]


def _write(worker: subprocess.Popen[str], questions: Sequence[Any]) -> None:
    assert worker.stdin is not None
    try:
        for question in questions:
            worker.stdin.write(json.dumps(question) + "\n")
        worker.stdin.close()
    except BrokenPipeError:
        return


# --- verdicts -----------------------------------------------------------------------------------------------------


def verdict(case: Case, answer: Mapping[str, Any] | None) -> tuple[str, str]:
    """What a peer's answer is, and in a few words why."""
    if answer is None or "none" in answer:
        return NONE, (answer or {}).get("none", "")
    raised = [run["raised"] for run in answer["runs"] if "raised" in run]
    if raised:
        return RAISED, raised[0]
    gists = [_gist(case, run["content"], run["reasoning"], run["calls"]) for run in answer["runs"]]
    if len(set(gists)) > 1:
        return DEPENDS, ""
    meant = _gist(case, case.content or "", case.reasoning or "", case.calls)
    return (RIGHT, "") if gists[0] == meant else (WRONG, "")


def _gist(case: Case, content: str, reasoning: str, calls: Sequence[Any]) -> str:
    """A message as text that is equal for messages that are the same to a client."""
    thought = "".join(reasoning.split()) if case.reasoning is not None else ""
    return canonical(
        {
            "content": "".join(content.split()) if case.content is not None else "",
            "reasoning": thought,
            "calls": [[name, _data(given)] for name, given in calls],
        }
    )


def _data(arguments: Any) -> Any:
    if isinstance(arguments, str):
        try:
            return json.loads(arguments)
        except ValueError:
            return arguments
    return arguments


# --- the page -----------------------------------------------------------------------------------------------------

BEGIN, END = "<!-- tables: written by `make scoreboard` -->", "<!-- end of tables -->"


def tables(cases: Sequence[Case], peers: Sequence[Peer], left_out: Counter[str]) -> str:
    """All tables."""
    found = {peer.name: {case.id: verdict(case, peer.answers.get(case.id)) for case in cases} for peer in peers}
    run = [peer for peer in peers if not peer.problem]
    lines = [
        ", ".join(f"{PEERS[peer.name]} {peer.version}" for peer in run)
        + f"; Python {sys.version_info.major}.{sys.version_info.minor} for toolgram.",
        "",
        *(f"* {PEERS[peer.name]} was not run: {peer.problem}" for peer in peers if peer.problem),
        *(f"* {count} cases left out: {reason}" for reason, count in left_out.items()),
        "",
    ]
    for name, truth in SETS.items():
        chosen = [case for case in cases if case.set == name]
        lines += [f"### {len(chosen)} cases: {name}", "", f"Truth: {truth}.", ""]
        lines += [
            "| | cases with a parser | right | wrong | depends on the deltas | raised |",
            "|---|--:|--:|--:|--:|--:|",
        ]
        for peer in run:
            counts = Counter(found[peer.name][case.id][0] for case in chosen)
            if counts[NONE] < len(chosen):
                lines.append(_row(PEERS[peer.name], counts, len(chosen)))
        if name == "rendered":
            recorded = Counter(case.llama_cpp for case in chosen)
            lines.append(
                f"| llama.cpp, as recorded | {len(chosen)} | {recorded['exact'] + recorded['trimmed']} "
                f"| {recorded['fail']} | not recorded | not recorded |"
            )
        lines.append("")
    return "\n".join([*lines, *_families(cases, run, found)])


def figures(cases: Sequence[Case], peers: Sequence[Peer]) -> dict[str, dict[str, dict[str, float]]]:
    """Count the cases with a parser and those that it reads right, by set and peer: `docs/data/scoreboard.json`."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in SETS:
        chosen = [case for case in cases if case.set == name]
        found[name] = {}
        for peer in peers:
            counts = Counter(verdict(case, peer.answers.get(case.id))[0] for case in chosen)
            if not peer.problem and counts[NONE] < len(chosen):
                read = len(chosen) - counts[NONE]
                percent = round(100 * counts[RIGHT] / read, 1)
                found[name][PEERS[peer.name]] = {"cases": read, "right": counts[RIGHT], "percent": percent}
    return found


def _row(name: str, counts: Counter[str], total: int) -> str:
    read = total - counts[NONE]
    share = f" ({100 * counts[RIGHT] / read:.1f}%)" if read else ""
    return f"| {name} | {read} | {counts[RIGHT]}{share} | {counts[WRONG]} | {counts[DEPENDS]} | {counts[RAISED]} |"


def _families(cases: Sequence[Case], run: Sequence[Peer], found: Mapping[str, Any]) -> list[str]:
    """Right / wrong / depends / raised, per format, all sets together."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        groups[case.format].append(case)
    lines = [
        "### Per family, all sets together",
        "",
        "Each cell is right / wrong / depends on the deltas / raised; empty where there is no parser.",
        "",
        f"| format | cases | {' | '.join(PEERS[peer.name] for peer in run)} |",
        f"|---|--:|{'---|' * len(run)}",
    ]
    for name, group in sorted(groups.items()):
        cells = []
        for peer in run:
            counts = Counter(found[peer.name][case.id][0] for case in group)
            several = " / ".join(str(counts[each]) for each in (RIGHT, WRONG, DEPENDS, RAISED))
            cells.append(several if counts[NONE] < len(group) else "")
        lines.append(f"| {name} | {len(group)} | {' | '.join(cells)} |")
    return lines


def main(given: Sequence[str] | None = None) -> int:
    """Ask all peers, print the tables and perhaps write them."""
    arguments = argparse.ArgumentParser(prog="python -m tests.scoreboard")
    arguments.add_argument("--peers", default=str(ROOT / ".venv-peers/bin/python"), help="the interpreter of all peers")
    arguments.add_argument("--peer", action="append", default=[], metavar="NAME=INTERPRETER", help="that of one peer")
    arguments.add_argument("--write", metavar="FILE", type=Path)
    arguments.add_argument("--show", metavar="NAME", default="", help="what a peer did not read as it is meant")
    arguments.add_argument("--set", default="", help="the cases of one set")
    options = arguments.parse_args(given)
    if not DATA.exists():
        print(f"no cases: {DATA} is absent", file=sys.stderr)
        return 0
    left_out: Counter[str] = Counter()
    cases = [case for case in all_cases(left_out) if case.set.startswith(options.set)]
    left_out["no named parser is meant for the template"] = sum(not case.format for case in cases)
    cases = [case for case in cases if case.format]
    questions, asked = Questions(), []
    for case in cases:
        asked.append(questions.of(case))
    own = dict(each.split("=", 1) for each in options.peer)
    peers = []
    for name in PEERS:
        interpreter = own.get(name, sys.executable if name == "toolgram" else options.peers)
        print(f"{len(asked)} cases for {PEERS[name]} ...", file=sys.stderr, flush=True)
        peers.append(ask(name, interpreter, asked))
    text = tables(cases, peers, left_out)
    print(text)
    _show(options.show, cases, peers)
    if options.write:
        write_part(options.write, BEGIN, END, text)
        versions = {PEERS[peer.name]: peer.version for peer in peers if not peer.problem}
        write_figures("scoreboard", "make scoreboard", figures(cases, peers), versions)
    return 0


def _show(name: str, cases: Sequence[Case], peers: Sequence[Peer]) -> None:
    """Print what a peer made of the cases that it did not read as they are meant."""
    for peer in peers:
        for case in cases if peer.name == name else ():
            what, why = verdict(case, peer.answers.get(case.id))
            if what not in (RIGHT, NONE):
                print(f"{case.id} [{case.format}] {what} {why[:_SHOWN]}\n  text  {case.text!r}")
                print(f"  meant {(case.content, case.reasoning, case.calls)}")
                for run in peer.answers[case.id]["runs"]:
                    print(f"  read  {run}")


if __name__ == "__main__":
    sys.exit(main())
