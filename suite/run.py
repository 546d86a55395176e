"""Run a parser on the cases of the suite: `python suite/run.py './my-parser'`.

The parser is a program. It reads one JSON request per line and writes one JSON answer per line (see README.md). Each
case is asked whole, by character and in random pieces, and all answers must be the same. Then it is cut in places, and
no cut may give a complete call that is not one of the whole. All choices are made with a seed. Exits with 1 if a share
is below the bar. This file needs nothing but Python 3.10 or newer.
"""

from __future__ import annotations

import argparse
import json
import random
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

VERSION = 1
CASES = Path(__file__).parent / "cases"
MOST_QUOTED = 200  # characters of an answer that is none
WAIT = 5  # seconds for a program to exit that has closed its output
MOST_NAMED = 100  # families or clauses in a message; of ids the nearest
CUTS = 12  # places in which a text is cut, unless the command says otherwise
LEVELS = ("core", "robust", "policy")

Case = dict[str, Any]
Answer = dict[str, Any]
Ask = Callable[[dict[str, Any]], Answer]
Pieces = list[tuple[str, "list[list[Any]] | None"]]  # the text of each delta, and its tokens


@dataclass
class Result:
    """What a case found: faults of the whole reading, and whether the other properties hold."""

    case: Case
    answer: Answer
    faults: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)  # complete calls that were not made
    splits: list[str] = field(default_factory=list)  # ways to split that give another answer
    cuts: list[str] = field(default_factory=list)  # cuts that give a complete call that the whole has not
    lost: list[str] = field(default_factory=list)

    @property
    def read(self) -> bool:
        """Whether the reading of the whole text is the expected one."""
        return not (self.faults or self.wrong or self.lost)

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return self.read and not (self.splits or self.cuts)


# ------------------------------------------------------------------------------------------------------------- cases


def load_cases(folder: Path = CASES) -> list[Case]:
    """Return all cases, file by file, each with its tools."""
    tools = json.loads((folder.parent / "tools.json").read_text("utf-8"))
    lines = (line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").split("\n"))
    cases = [json.loads(line) for line in lines if line.strip()]
    return [{**case, "tools": tools[case["tools"]]} if "tools" in case else case for case in cases]


def deltas(case: Case, rng: random.Random) -> Iterator[tuple[str, Pieces]]:
    """Return the ways in which the text of a case comes: whole, by character (or token), in random pieces."""
    tokens = case.get("pieces")
    parts = [text for text, _ in tokens] if tokens else list(case["text"])
    yield "whole", _joined(parts, tokens, [len(parts)])
    yield "one by one", _joined(parts, tokens, [1] * len(parts))
    for number in range(2):
        sizes: list[int] = []
        while sum(sizes) < len(parts):
            sizes.append(min(rng.choice((1, 2, 3, 5, 8, 13)), len(parts) - sum(sizes)))
        yield f"pieces {number}", _joined(parts, tokens, sizes)


def _joined(parts: list[str], tokens: list[list[Any]] | None, sizes: list[int]) -> Pieces:
    found: Pieces = []
    at = 0
    for size in sizes:
        found.append(("".join(parts[at : at + size]), tokens[at : at + size] if tokens else None))
        at += size
    return found


def request(case: Case, pieces: Pieces, finish_reason: str | None) -> dict[str, Any]:
    """Return the request that a program gets."""
    asked: dict[str, Any] = {
        key: case[key] for key in ("id", "family", "prompt", "tools", "special_tokens") if key in case
    }
    given = [{"text": text} if tokens is None else {"text": text, "tokens": tokens} for text, tokens in pieces]
    return {"version": VERSION, **asked, "deltas": given, "finish_reason": finish_reason}


# --------------------------------------------------------------------------------------------------------- comparing


def judge(case: Case, ask: Ask, seed: int, most_cuts: int) -> Result | None:
    """Return what a case finds, None if the program does not claim to read it; 0 cuts are cuts everywhere."""
    rng = random.Random(f"{seed} {case['id']}")
    reason = case["finish_reason"]
    result: Result | None = None
    first = ""
    for way, pieces in deltas(case, rng):
        answer = ask(request(case, pieces, reason))
        if "skip" in answer:
            return None
        if result is None:
            result, first = Result(case, answer), normal(answer)
            compare(result)
        elif normal(answer) != first:
            result.splits.append(f"{way}: {normal(answer)}")
    assert result is not None
    if "pieces" not in case and case.get("cuts", True):
        made = [call for call in case["expect"]["calls"] if call["status"] == "complete"]
        result.cuts = [fault for at in cut_places(case["text"], rng, most_cuts) for fault in cut(case, at, made, ask)]
    return result


def compare(result: Result) -> None:
    """Note where the answer differs from what is expected."""
    expect, answer, never = result.case["expect"], result.answer, result.case.get("never", {})
    if "raised" in answer:
        result.faults.append(f"the parser raised {answer['raised']}")
    for key in ("content", "reasoning"):
        if key in expect and blanks(expect[key]) != blanks(answer.get(key)):
            result.faults.append(f"{key} is {answer.get(key)!r}, not {expect[key]!r}")
    calls = [call for call in answer.get("calls", []) if call["status"] != "malformed"]
    if len(calls) != len(expect["calls"]) or not all(map(same_call, expect["calls"], calls)):
        result.faults.append(f"calls are {calls}, not {expect['calls']}")
    failed = [call["name"] for call in answer.get("calls", []) if call["status"] == "malformed"]
    if "malformed" in expect and failed != expect["malformed"]:
        result.faults.append(f"malformed are {failed}, not {expect['malformed']}")
    made = [call for call in expect["calls"] if call["status"] == "complete"]
    result.wrong = not_made(calls, made)
    names = [call["name"] for call in calls if call["status"] == "complete"]
    result.wrong += [f"{name} is called" for name in never.get("called", ()) if name in names and not result.wrong]
    everything = blanks(json.dumps(answer, ensure_ascii=False)) + blanks(" ".join(_texts(answer)))
    wanted = [word for key in ("content", "reasoning") for word in (expect.get(key) or "").split()]
    result.lost = [text for text in (*wanted, *never.get("lost", ())) if blanks(text) not in everything]


def _texts(value: Any) -> Iterator[str]:
    """The strings of an answer, those of arguments as well."""
    pending = [value]
    while pending:
        value = pending.pop(0)
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            if value.get("status") and isinstance(value.get("arguments"), str):
                pending.append(closed(value["arguments"]))
            pending += value.values()
        elif isinstance(value, list):
            pending += value


def cut(case: Case, at: int, made: list[Answer], ask: Ask) -> Iterator[str]:
    """The faults of the text cut at a character: complete calls that the whole has not."""
    for reason in ("length", None):
        answer = ask(request(case, [(case["text"][:at], None)], reason))
        for fault in not_made(answer.get("calls", []), made):
            yield f"cut at {at} ({case['text'][max(0, at - 20) : at]!r}), finish_reason {reason}: {fault}"


def cut_places(text: str, rng: random.Random, most: int) -> Sequence[int]:
    """Return where a text is cut: in so many places, or everywhere."""
    places = range(1, len(text))
    return sorted(rng.sample(places, most)) if 0 < most < len(places) else places


def not_made(calls: list[Answer], made: list[Answer]) -> list[str]:
    """Return the complete calls that are none of those that were made, in order."""
    left, found = iter(made), []
    for call in calls:
        if call["status"] == "complete" and not any(same_call(each, call) for each in left):
            found.append(f"{call['name']} {call['arguments']} is complete")
    return found


def same_call(expected: Answer, call: Answer) -> bool:
    """Return whether a call is the expected one; arguments of a truncated one may be a beginning."""
    if (expected["name"], expected["status"]) != (call["name"], call["status"]):
        return False
    if call["status"] == "truncated":
        return is_beginning(closed(call["arguments"]), expected["arguments"])
    try:
        return same(json.loads(call["arguments"]), expected["arguments"])
    except ValueError:
        return False


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same: 1 is not true, and 1.0 is 1."""
    return json.dumps(_plain(one), sort_keys=True) == json.dumps(_plain(other), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def is_beginning(part: Any, whole: Any) -> bool:
    """Return whether a value that was cut off is a beginning of the whole one."""
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part)
    if isinstance(part, dict) and isinstance(whole, dict):
        keys = list(part)
        return keys == list(whole)[: len(keys)] and _begins([part[k] for k in keys], [whole[k] for k in keys])
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and _begins(part, whole[: len(part)])
    return same(part, whole) or (isinstance(part, (int, float)) and str(whole).startswith(str(part)))


def _begins(parts: list[Any], wholes: list[Any]) -> bool:
    """Return whether all but the last are the same, and the last is a beginning."""
    pairs = [*zip(parts, wholes, strict=True)]
    return all(same(*pair) for pair in pairs[:-1]) and all(is_beginning(*pair) for pair in pairs[-1:])


def closed(text: str) -> Any:
    """Return the value of JSON that was cut off, {} for nothing: what is open is closed, what is not begun is left."""
    stack: list[str] = []
    in_string = escaped = False
    ends = [(0, "")]  # places after which the text can be closed, and with what
    for at, character in enumerate(text, 1):
        if in_string:
            in_string = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_string = True
        elif character in "{[":
            stack.append("}" if character == "{" else "]")
        elif character in "}]" and stack:
            stack.pop()
        ends.append((at, '"' * (in_string and not escaped) + "".join(reversed(stack))))
    for at, closers in reversed(ends[-40:]):
        try:
            return json.loads(text[:at].rstrip(" \n,") + closers) if at else {}
        except ValueError:
            continue
    return {} if not text.strip() else text


def normal(answer: Answer) -> str:
    """Return an answer in one form: blanks are one space, and arguments that are JSON are spelled in one way."""
    calls = [{**call, "arguments": _spelled(call["arguments"])} for call in answer.get("calls", ())]
    texts = {key: blanks(answer.get(key)) for key in ("content", "reasoning")}
    return json.dumps({**texts, "calls": calls}, ensure_ascii=False)


def _spelled(arguments: str) -> str:
    try:
        return json.dumps(_plain(json.loads(arguments)), ensure_ascii=False)
    except ValueError:
        return arguments


def blanks(text: str | None) -> str:
    """Return a text with one space for blanks; None is "" as well."""
    return " ".join((text or "").split())


# ----------------------------------------------------------------------------------------------------------- running


def well_formed(answer: Any) -> bool:
    """Return whether an answer is an object, its texts are texts, and its calls have a name, arguments and a status."""
    if not isinstance(answer, dict):
        return False
    texts = [answer.get(key) for key in ("content", "reasoning")]
    calls = answer.get("calls", [])
    return (
        all(isinstance(text, (str, type(None))) for text in texts)
        and isinstance(calls, list)
        and all(
            isinstance(call, dict) and all(isinstance(call.get(key), str) for key in ("name", "arguments", "status"))
            for call in calls
        )
    )


class Program:
    """A program that answers requests, a line for each. Ends the run if it cannot be started, or does not answer."""

    def __init__(self, command: str) -> None:
        self.command = command
        try:
            self.process = subprocess.Popen(
                shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", errors="replace"
            )
        except (OSError, ValueError, IndexError) as error:
            why = getattr(error, "strerror", None) or ("it is empty" if not command.strip() else error)
            sys.exit(f"{command!r} cannot be started: {why}; give the command that starts the parser: './my-parser'")

    def __call__(self, asked: dict[str, Any]) -> Answer:
        """Return the answer to a request."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(OSError):  # it reads no more, and may have said why
            self.process.stdin.write(json.dumps(asked) + "\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.command}: no answer to {asked['id']}: {self._ended()}; it has to answer each line")
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            answer = None
        if not well_formed(answer):
            sys.exit(
                f"{self.command}: the answer to {asked['id']} is not one of README.md, a JSON object on one line with "
                f"content, reasoning and calls, or skip. It is {line[:MOST_QUOTED]!r}"
            )
        made: Answer = answer
        return made

    def _ended(self) -> str:
        try:
            return f"it has exited with status {self.process.wait(WAIT)}"
        except subprocess.TimeoutExpired:
            return "it has closed its output"

    def close(self) -> None:
        """End the program: its input ends, and it has some seconds."""
        with suppress(OSError), self.process as process:
            assert process.stdin is not None
            with suppress(OSError):
                process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                process.wait(WAIT)
            process.kill()


def shares(results: Sequence[Result]) -> dict[str, tuple[int, int]]:
    """Return how many of how many cases are right: readings by level and by clause, and properties of all cases."""
    found: dict[str, tuple[int, int]] = {}
    for key in ("level", "clause"):
        names = Counter(result.case[key] for result in results)
        order = LEVELS if key == "level" else sorted(names)
        for name in order:
            passed = sum(result.read for result in results if result.case[key] == name)
            if names[name]:
                found[name] = (passed, names[name])
    count = len(results)
    found["same for all deltas"] = (sum(not result.splits for result in results), count)
    found["no call that was not made"] = (sum(not (result.wrong or result.cuts) for result in results), count)
    found["nothing lost"] = (sum(not result.lost for result in results), count)
    return found


def found(result: Result) -> dict[str, Any]:
    """Return what a case found, as JSON."""
    kinds = ("faults", "wrong", "lost", "splits", "cuts")
    about = {key: result.case[key] for key in ("id", "family", "level", "clause")}
    failed = {kind: getattr(result, kind)[:3] for kind in kinds if getattr(result, kind)}
    said = {key: value for key, value in result.answer.items() if key != "parser"}
    return {"parser": result.answer.get("parser", "parser"), **about, "read": result.read, **failed, "answer": said}


def report(results: Sequence[Result], skipped: int, show: int) -> None:
    """Print the shares, and the cases that failed."""
    for name, (right, count) in shares(results).items():
        print(f"{name:26} {right:5} of {count:5}  {100 * right / count:5.1f} %")
    if skipped:
        print(f"{skipped} cases that the program does not claim to read were left out")
    failed = [result for result in results if not result.passed]
    for result in failed[:show]:
        case = result.case
        print(f"\n{case['id']} ({case['level']}, {case['clause']}): {case['why']}\n    text {case['text']!r}")
        print(f"    finish_reason {case['finish_reason']}, prompt {case.get('prompt')!r}")
        for kind in ("faults", "wrong", "lost", "splits", "cuts"):
            for fault in getattr(result, kind)[:3]:
                print(f"    {kind}: {fault}")


def share(text: str) -> float:
    """Return a share that was given as text."""
    if not 0 <= (number := float(text)) <= 1:
        raise argparse.ArgumentTypeError(f"it is a share from 0 to 1, such as 0.9, not {text}")
    return number


def pick(cases: Sequence[Case], picked: dict[str, list[str]]) -> list[Case]:
    """Return the cases that are asked for. Raises ValueError for what no case has."""
    for key, names in picked.items():
        known = sorted({case[key] for case in cases})
        for name in names:
            if name not in known:
                few = len(known) <= MOST_NAMED
                near = f"there are {', '.join(known)}" if few else f"near it: {get_close_matches(name, known)}"
                raise ValueError(f"no case has the {key} {name!r}; {near}")
    return [case for case in cases if all(case[key] in names for key, names in picked.items())]


def write(results: Sequence[Result], path: Path) -> None:
    """Write what each case found, as JSON Lines. Ends the run if that cannot be."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(found(each), ensure_ascii=False)}\n" for each in results), "utf-8")
    except OSError as error:
        sys.exit(f"--write {path}: cannot be written: {error.strerror}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 1 if a share of a level or a property is below the bar."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("program", help="the command that starts the parser")
    parser.add_argument("--bar", type=share, default=1.0, help="the least share of a level or property (default 1.0)")
    parser.add_argument(
        "--cuts", type=int, default=CUTS, help=f"cut each text in so many places; 0: everywhere (default {CUTS})"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", action="append", help="only this family")
    parser.add_argument("--clause", action="append", help="only this clause")
    parser.add_argument("--level", action="append", choices=LEVELS, help="only this level")
    parser.add_argument("--id", action="append", help="only this case")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print the first N cases that failed")
    parser.add_argument("--list", action="store_true", help="print the ids of the cases that failed")
    parser.add_argument("--write", metavar="FILE", type=Path, help="write what each case found, as JSON Lines")
    chosen = parser.parse_args(arguments)
    picked = {key: getattr(chosen, key) for key in ("family", "clause", "level", "id") if getattr(chosen, key)}
    try:
        cases = pick(load_cases(), picked)
    except ValueError as error:
        parser.error(str(error))
    with closing(Program(chosen.program)) as program:
        judged = [judge(case, program, chosen.seed, chosen.cuts) for case in cases]
    results = [result for result in judged if result is not None]
    if not results:
        sys.exit(f"{chosen.program} has skipped all cases: nothing was read; --family chooses cases that it reads")
    report(results, len(judged) - len(results), chosen.show)
    if chosen.write:
        write(results, chosen.write)
    if chosen.list:
        print(*(result.case["id"] for result in results if not result.passed), sep="\n")
    clauses = {case["clause"] for case in cases}
    low = [
        f"{name} {100 * right / count:.1f} %"
        for name, (right, count) in shares(results).items()
        if name not in clauses and right < chosen.bar * count
    ]
    if low:
        print(f"below the bar of {100 * chosen.bar:g} %: {', '.join(low)}", file=sys.stderr)
    return int(bool(low))


if __name__ == "__main__":
    sys.exit(main())
