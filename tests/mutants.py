"""Small changes of the code, and how many of them the tests notice: `python -m tests.mutants`.

Strategy: places are chosen with a seed in the modules that read, export and serve, and in the machines. Their tests run
once to find out which of them run each line, and how long each takes; that is kept until a file is another one. Each
change is made in a copy of the repository. The tests that run its lines, or of a machine those of the formats that are
made of it, run there until one fails, in two processes: first those that run the fewest lines, then the suite without
its generated cases, then the quickest case of each test, then the next ones. Each has a minute of processor time.
A change that all of them pass survives, and so does one with slower tests; a test that no longer ends has noticed it,
and so have tests of which none begins. Results are kept: a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import random
import re
import resource
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate, chain
from pathlib import Path
from xml.etree import ElementTree

from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / ".mutants"
SECONDS = 60  # of processor time
LONGEST = 20  # seconds of a test, which take a few at the most
BAR = 0.95
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
MOST_TESTS = 400  # of a process
FOCUSED = 100  # tests that run little else than what is changed
# The tests that are asked. To ask all of them what they run would take an hour.
TESTS = (
    "tests/test_suite.py", "tests/test_explain.py", "tests/islands", "tests/deviations", "tests/formats",
    "tests/export", "tests/gateway", "tests/properties", "tests/derive", "tests/test_message.py", "tests/test_same.py",
)  # fmt: skip
# What is changed, in which share of the changes.
PARTS = {
    "src/toolgram/runtime/*.py": 30, "src/toolgram/islands/*.py": 20, "machines/**/*.yaml": 20,
    "src/toolgram/export/*.py": 15, "src/toolgram/gateway/*.py": 15,
}  # fmt: skip
SWAPPED = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change: a file, what is replaced in it from an offset on, and by what."""

    file: str
    at: int
    old: str
    new: str

    def text(self) -> str:
        """The file as it is changed."""
        text = (ROOT / self.file).read_text("utf-8")
        assert text.startswith(self.old, self.at), f"{self.file} is another one now"
        return text[: self.at] + self.new + text[self.at + len(self.old) :]

    def name(self) -> str:
        """The place and the change, in one line."""
        before = (ROOT / self.file).read_text("utf-8")[: self.at]
        place = f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
        return f"{self.file}:{place}: {' '.join(self.old.split())} -> {' '.join(self.new.split()) or 'nothing'}"


# Changes that tests did not notice once.
NAMED = (
    ("src/toolgram/export/requests.py", 'named = mode == "named"', "named = False"),
    ("src/toolgram/runtime/surplus_closers.py", "begin - pos > MOST_BLANKS", "begin - pos > 8"),
    ("src/toolgram/adapters/handing_out.py", ', finish_reason="stop")', ")"),
    (
        "src/toolgram/runtime/parser.py",
        "type(delta) is not str or (ids is not None and not ids.goes_on(delta, token_ids))",
        "type(delta) is not str",
    ),
)


def named() -> list[Mutant]:
    """The changes that have a name."""
    return [Mutant(file, (ROOT / file).read_text("utf-8").index(old), old, new) for file, old, new in NAMED]


def of_python(file: str) -> Iterator[Mutant]:
    """All changes of a module: comparisons, conditions and truths are others, and calls are left out."""
    text = (ROOT / file).read_text("utf-8")
    lines = text.split("\n")
    starts = [*accumulate((len(line) + 1 for line in lines), initial=0)]

    def place(line: int, column: int) -> int:
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    def source(node: ast.expr | ast.stmt) -> tuple[int, str]:
        begin = place(node.lineno, node.col_offset)
        return begin, text[begin : place(node.end_lineno or 0, node.end_col_offset or 0)]

    def change(node: ast.expr | ast.stmt, new: str) -> Mutant:
        return Mutant(file, *source(node), new)

    tree = ast.parse(text)
    nodes = [*ast.walk(tree)]  # Python 3.11 does not say where the parts of a text are; decorators change no reading
    ignored: list[ast.AST] = [node for node in nodes if isinstance(node, ast.JoinedStr)]
    ignored += [each for node in nodes for each in getattr(node, "decorator_list", ())]
    inside = {id(each) for node in ignored for each in ast.walk(node)}
    for node in nodes:
        if id(node) in inside:
            continue
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPPED:
            (left, said), (right, _) = source(node.left), source(node.comparators[0])
            between = text[left + len(said) : right]  # with brackets, if there are any
            yield Mutant(file, left + len(said), between, between.replace(*SWAPPED[type(node.ops[0])]))
        elif isinstance(node, ast.If | ast.IfExp):
            yield change(node.test, "False")
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield change(node, "pass")
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield change(node, str(not node.value))


def of_machine(file: str) -> Iterator[Mutant]:
    """All changes of a machine: rows and actions are left out, and rows lead to another state."""
    text = (ROOT / file).read_text("utf-8")
    states = sorted({*re.findall(r"dest: (\w+)", text)})
    for row in re.finditer(r"^ +- \{trigger: .*\}\n", text, re.MULTILINE):
        yield Mutant(file, row.start(), row.group(), "")
    for found in re.finditer(r"dest: (\w+)", text):
        others = [state for state in states if state != found[1]]
        if others:
            yield Mutant(file, found.start(1), found[1], others[found.start() % len(others)])
    for found in re.finditer(r"after: (\w+|\[\w+(?:, \w+)*\])", text):
        actions = re.findall(r"\w+", found[1])
        yield Mutant(file, found.start(1), found[1], f"[{', '.join(actions[1:])}]")


def mutants(seed: int, count: int) -> list[Mutant]:
    """So many changes, the same for the same seed and the same code, and those that have a name."""
    rng = random.Random(seed)
    chosen = named()
    for pattern, share in PARTS.items():
        found: list[Mutant] = []
        for path in sorted(ROOT.glob(pattern)):
            of = of_machine if path.suffix == ".yaml" else of_python
            found += of(str(path.relative_to(ROOT)))
        chosen += rng.sample(found, count * share // 100)
    return chosen


@dataclass(frozen=True)
class Runs:
    """What the tests did once: how long each took, by its id, which of them ran each line of each module, and how many
    lines each ran."""

    seconds: dict[str, float]
    lines: dict[str, dict[int, list[str]]]
    counts: Mapping[str, int]


@cache
def runs() -> Runs:
    """Run the tests in the copy, or return what was kept of them."""
    copy, texts = HOME / "copy", [path.read_bytes() for path in sorted((ROOT / "src").rglob("*.py"))]
    texts += [path.read_bytes() for path in sorted(ROOT.glob("tests/**/*.*")) if path.suffix in (".py", ".yaml")]
    kept = HOME / hashlib.sha256(b"".join(texts)).hexdigest()[:16]
    times = kept / "times.xml"
    if not times.exists():
        kept.mkdir(exist_ok=True)
        options = ["-n", "2", "--dist", "loadfile", "--cov=src/toolgram", "--cov-context=test", "--cov-report="]
        options += [f"--junitxml={times}", "-o", "junit_family=xunit1"]
        environment = {**_environment(copy), "COVERAGE_FILE": str(kept / "lines")}
        subprocess.run([*PYTEST, *options, *TESTS], cwd=copy, env=environment, check=False)
    seconds = {}
    for case in ElementTree.parse(times).iter("testcase"):
        seconds[f"{case.get('file')}::{case.get('name')}"] = float(case.get("time", "0"))
    data = CoverageData(str(kept / "lines"))
    data.read()
    lines = {str(Path(file).relative_to(copy)): data.contexts_by_lineno(file) for file in data.measured_files()}
    counts = Counter[str]()
    for each in chain.from_iterable(rows.values() for rows in lines.values()):
        counts.update(each)
    return Runs(seconds, lines, counts)


def tests_of(mutant: Mutant) -> list[list[str]]:
    """The tests that a change affects, for two processes: the suite first, then the quickest."""
    known = runs()
    if mutant.file.endswith(".py"):
        lines = known.lines.get(mutant.file, {})
        found = {each.partition("|")[0] for line in _affected(mutant) for each in lines.get(line, ())}
    else:
        formats = "|".join(_formats_of(Path(mutant.file).stem))
        of_formats = re.compile(rf"\[(?:.*-)?(?:{formats})\b").search
        found = {each for each in known.seconds if "[" not in each or "/derive/" in each or of_formats(each)}
    asked, turns = Counter[str](), dict[str, int]()
    for each in sorted(found & known.seconds.keys(), key=lambda each: (known.seconds[each], each)):
        asked[each.partition("[")[0]] += 1
        turns[each] = asked[each.partition("[")[0]]
    focused = {*sorted(turns, key=lambda each: known.counts.get(f"{each}|run", 0))[:FOCUSED]}
    chosen = sorted(turns, key=lambda each: (each not in focused, "test_suite" not in each, turns[each]))
    return [chosen[at::2][:MOST_TESTS] for at in range(2) if chosen[at::2]]


def _affected(mutant: Mutant) -> range:
    """The lines that a change affects: its own; all of a function, in its head; else all of the module."""
    text = (ROOT / mutant.file).read_text("utf-8")
    first = text.count("\n", 0, mutant.at) + 1
    found = range(1, text.count("\n") + 1)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= first <= (node.end_lineno or 0):
            head = first < node.body[0].lineno
            last = (node.end_lineno or 0) if head else first + mutant.old.count("\n")
            found = range(first, last + 1)
    return found


def _formats_of(machine: str) -> set[str]:
    """The formats that are made of a machine: itself, or those that import the fragment, also through another one."""
    found = {machine}
    texts = {path.stem: path.read_text("utf-8") for path in ROOT.glob("machines/**/*.yaml")}
    while more := {
        stem for stem, text in texts.items() if stem not in found and found & {*re.findall(r"fragment: (\w+)", text)}
    }:
        found |= more
    return found


def _environment(place: Path) -> dict[str, str]:
    own = {"PYTHONPATH": str(place / "src"), "PYTHONPYCACHEPREFIX": str(HOME / "compiled"), "TOOLGRAM_SUITE": "quick"}
    return {**os.environ, **own}


def copied() -> Path:
    """A copy of the repository, with what the build has written beside it."""
    place = HOME / "copy"
    shutil.rmtree(place, ignore_errors=True)
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    specs = (str(path.relative_to(ROOT)) for path in (ROOT / "src/toolgram/specs").glob("*"))
    for name in (*names.strip("\0").split("\0"), *specs):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, place / name)
    return place


def outcome(mutant: Mutant, place: Path) -> str:
    """Whether tests notice the change: killed, survived, or late."""
    chosen = tests_of(mutant)
    (place / mutant.file).write_text(mutant.text(), "utf-8")
    found = _run(chosen, place)
    shutil.copyfile(ROOT / mutant.file, place / mutant.file)
    return found


def _run(chosen: list[list[str]], place: Path) -> str:
    """Run the tests in two processes, and return whether one fails."""
    said = [place.parent / f"said-{at}.txt" for at in range(len(chosen))]
    limit = partial(resource.setrlimit, resource.RLIMIT_CPU, (SECONDS, SECONDS))
    started = []
    for tests, path in zip(chosen, said, strict=True):
        command = [*PYTEST, "-x", f"--timeout={LONGEST}", *tests]
        with path.open("w") as file:
            begin = partial(subprocess.Popen, command, stdout=file, stderr=subprocess.DEVNULL, preexec_fn=limit)
            started.append(begin(cwd=place, env=_environment(place)))
    latest = time.monotonic() + 10 * SECONDS
    while any(run.poll() is None for run in started) and time.monotonic() < latest:
        if any((run.poll() or 0) > 0 for run in started):
            break
        time.sleep(0.1)
    codes = [run.poll() for run in started]
    for run in started:
        run.kill()
        run.wait()
    begun = ["." in path.read_text("utf-8", "replace") for path in said]
    if any(code is not None and (code > 0 or not first) for code, first in zip(codes, begun, strict=True)):
        return "killed"
    return "survived" if codes == [0] * len(codes) else "late"


def main() -> int:
    """Run what has no result yet, and print the share; returns 1 below the bar."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    chosen = parser.parse_args()
    HOME.mkdir(exist_ok=True)
    results = HOME / f"seed-{chosen.seed}.jsonl"
    rows = map(json.loads, results.read_text("utf-8").splitlines() if results.exists() else ())
    known = {row["mutant"]: row["outcome"] for row in rows}
    wanted = mutants(chosen.seed, chosen.count)
    place = copied()
    for mutant in wanted:
        if mutant.name() not in known:
            known[mutant.name()] = outcome(mutant, place)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"mutant": mutant.name(), "outcome": known[mutant.name()]}) + "\n")
            print(f"{known[mutant.name()]:9} {mutant.name()}", flush=True)
    told = Counter(known[mutant.name()] for mutant in wanted)
    survivors = sorted(mutant.name() for mutant in wanted if known[mutant.name()] != "killed")
    print(f"{told['killed']} of {len(wanted)} changes are noticed", *survivors, sep="\n    ")
    return int(told["killed"] < BAR * len(wanted))


if __name__ == "__main__":
    sys.exit(main())
