"""Turns of real templates that no recorded row is of: rendered here, and read by the format derived from the template.

Strategy: the messages are those of the recorded rows. A turn is what a template renders for one, behind its own
generation prompt, cut where the turn ends. Nothing of derivation is used for that but the rendering environment, so
that an error of the analysis cannot hide itself. A message that a template refuses or does not print whole is no row.
A row that is read wrongly is *silent* where the report of its derivation is `ok`.

    python -m tests.conformance.unseen [--folder DIR ...] [--template NAME] [--rows] [--all] [--write FILE]

`--write` puts the figures behind those of `tests.conformance.roundtrip` on its page.
"""

from __future__ import annotations

import argparse
import copy
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import toolgram
from tests.conformance.fetch_templates import TEMPLATES
from tests.conformance.roundtrip import (
    DATA,
    TOOLS,
    Outcome,
    Row,
    canonical,
    derive_anew,
    difference,
    run_row,
)
from toolgram.derive.comparing import shared_length
from toolgram.derive.errors import TemplateError
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.report import DeriveReport

USER = "Please look at this for me."
SEEN = DATA.parent / "templates"
_IDS = ("a1B2c3D4e", "f5G6h7I8j", "k9L0m1N2o")
_KEYS = ("reasoning_content", "thinking", "reasoning", "thought")
_BOS, _EOS = "<s>", "</s>"
_SHOWN = 200  # characters of a reason


def messages() -> dict[str, dict[str, Any]]:
    """The message of every case of the recorded rows."""
    found: dict[str, dict[str, Any]] = {}
    for line in DATA.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["case"], {"expected": row["expected"], "tools": row["tools"]})
        if canonical(row["expected"]) != canonical(found[row["case"]]["expected"]):
            longer = max((row, found[row["case"]]), key=lambda each: len(canonical(each["expected"])))
            found[row["case"]] = {"expected": longer["expected"], "tools": longer["tools"]}
    return found


@dataclass(slots=True)
class Turns:
    """Renders the turns of one template."""

    template: ChatTemplate
    tools: Sequence[Any]
    forms: list[dict[str, Any]] = field(default_factory=list)

    def render(self, conversation: list[dict[str, Any]], prompt: bool, form: Mapping[str, Any]) -> str:
        if form.get("system"):
            conversation = [{"role": "system", "content": "Help."}, *conversation]
        if form.get("blocks"):
            conversation = [
                {**each, "content": [{"type": "text", "text": each["content"]}]} if each.get("content") else each
                for each in conversation
            ]
        tools = None if form.get("tools") is None else copy.deepcopy(list(self.tools))
        return self.template.render(copy.deepcopy(conversation), tools=tools, add_generation_prompt=prompt)


def assistant(expected: Mapping[str, Any], form: Mapping[str, Any]) -> dict[str, Any]:
    """The message in the form in which a template wants it."""
    message: dict[str, Any] = {"role": "assistant"}
    if expected["content"]:
        message["content"] = expected["content"]
    elif form["empty"] != "absent":
        message["content"] = form["empty"]
    if expected["reasoning"]:
        message |= dict.fromkeys(form["keys"], expected["reasoning"])
    if expected["tool_calls"]:
        message["tool_calls"] = [
            {
                "id": (_IDS[at] * 3)[: form["ids"]],
                "type": "function",
                "function": {
                    "name": call["name"],
                    "arguments": json.dumps(call["arguments"], ensure_ascii=False)
                    if form["as_string"]
                    else call["arguments"],
                },
            }
            for at, call in enumerate(expected["tool_calls"])
        ]
    return message


_FORMS = [
    {
        "as_string": as_string,
        "empty": empty,
        "keys": keys,
        "tools": tools,
        "ids": ids,
        "system": system,
        "blocks": blocks,
    }
    for blocks in (False, True)
    for tools in ("given", None)
    for system in (False, True)
    for ids in (9, 24)
    for keys in ((_KEYS[0],), (_KEYS[1],), (_KEYS[2],))
    for as_string in (False, True)
    for empty in ("", None, "absent")
]


def rows_of(path: Path) -> Iterator[Row]:
    """The rows of one template."""
    tools = json.loads(TOOLS.read_text(encoding="utf-8"))
    template = ChatTemplate(path.read_text(encoding="utf-8"), _BOS, _EOS)
    turns = Turns(template, tools[0])
    form = _form(turns)
    if form is None:
        return
    end = _turn_end(turns, form)
    for case, given in messages().items():
        turns.tools = tools[given["tools"]]
        made = _output(turns, given["expected"], form, end)
        if made is not None:
            yield Row(path.stem, case, _BOS, _EOS, turns.tools, made[0], made[1], given["expected"], "")


_ANSWER = "Quick answer here"
_CONTENT: dict[str, Any] = {"content": _ANSWER, "reasoning": "", "tool_calls": []}
_CALL: dict[str, Any] = {
    "content": "",
    "reasoning": "",
    "tool_calls": [{"name": "get_weather", "arguments": {"city": "Paris"}}],
}
_THOUGHT: dict[str, Any] = {"content": "Quick answer here", "reasoning": "Secret musing", "tool_calls": []}


def _form(turns: Turns) -> Mapping[str, Any] | None:
    """The form in which the template prints the most: content, then calls, then reasoning."""
    best: tuple[int, Mapping[str, Any]] | None = None
    for form in _FORMS:
        score = 0
        for worth, (expected, words) in zip(
            (4, 2, 1),
            ((_CONTENT, ["Quick answer here"]), (_CALL, ["get_weather", "Paris"]), (_THOUGHT, ["Secret musing"])),
            strict=True,
        ):
            turn = _turn(turns, expected, form)
            if turn is not None and all(word in turn for word in words) and "None" not in turn:
                score += worth * (5 if '\\"' not in turn and "{'" not in turn else 4)
        if best is None or score > best[0]:
            best = score, form
        if score == 35:
            break
    return best[1] if best and best[0] >= 16 else None


def _turn(turns: Turns, expected: Mapping[str, Any], form: Mapping[str, Any]) -> str | None:
    user = {"role": "user", "content": USER}
    try:
        full = turns.render([user, assistant(expected, form)], False, form)
    except TemplateError:
        return None
    at = full.rfind(USER)
    return full[at + len(USER) :] if at >= 0 else None


def _prompt(turns: Turns, form: Mapping[str, Any]) -> str | None:
    try:
        full = turns.render([{"role": "user", "content": USER}], True, form)
    except TemplateError:
        return None
    at = full.rfind(USER)
    return full[at + len(USER) :] if at >= 0 else None


def _turn_end(turns: Turns, form: Mapping[str, Any]) -> str:
    turn = _turn(turns, _CONTENT, form) or ""
    return turn.partition(_ANSWER)[2]


def _output(turns: Turns, expected: Mapping[str, Any], form: Mapping[str, Any], end: str) -> tuple[str, str] | None:
    """The prompt's tail and what the model writes behind it; None where the template does not print the message."""
    prompt, turn = _prompt(turns, form), _turn(turns, expected, form)
    if prompt is None or turn is None or not _prints(turn, expected):
        return None
    if turn.startswith(prompt):
        output = turn[len(prompt) :]
    else:
        shared = shared_length([prompt, turn])
        while shared and prompt[shared:] and (turn[shared - 1].isalnum() or turn[shared - 1] in "<|_["):
            shared -= 1
        rest, output = prompt[shared:], turn[shared:]
        close = {"<think>": "</think>", "<seed:think>": "</seed:think>"}.get(rest.strip())
        if rest.strip() and close is None:
            return None
        if close is not None:
            if expected["reasoning"]:
                return None
            output = f"\n{close}\n\n" + output
    if end and output.endswith(end):
        output = output[: len(output) - len(end)]
    elif end.strip() and end.strip() in output[-len(end) - 40 :]:
        output = output[: output.rindex(end.strip())]
    elif _EOS in output:
        output = output[: output.rindex(_EOS)]
    return prompt, output


def _prints(turn: str, expected: Mapping[str, Any]) -> bool:
    """Whether all parts of the message are there."""
    for part in ("content", "reasoning"):
        words = expected[part].split()
        if words and not all(word in turn for word in words[:3] + words[-1:]):
            return False
        if expected[part] and expected[part] not in turn:
            return False
    for call in expected["tool_calls"]:
        if turn.count(call["name"]) < sum(each["name"] == call["name"] for each in expected["tool_calls"]):
            return False
        if call["name"] not in turn or not all(key in turn for key in call["arguments"]):
            return False
    return True


@dataclass(slots=True)
class Result:
    """What came of a template."""

    name: str
    ok: bool = False
    origin: str = "derived"
    error: str = ""
    outcomes: list[Outcome] = field(default_factory=list)
    milliseconds: float = 0.0
    unexplained: list[str] = field(default_factory=list)


def run(path: Path) -> Result:
    """Derive from a template, and read its rows."""
    result = Result(path.stem)
    rows = list(rows_of(path))
    text = path.read_text(encoding="utf-8")
    try:
        times = []
        for _ in range(2):
            began = time.thread_time()
            fmt = derive_anew(text, _BOS, _EOS)
            times.append(1000 * (time.thread_time() - began))
    except toolgram.ToolgramError as error:
        result.error = str(error)
        result.outcomes = [Outcome(row, None) for row in rows]
        return result
    assert fmt.report is not None
    result.milliseconds = min(times)
    result.ok, result.origin = fmt.report.ok, fmt.report.shipped or "derived"
    result.unexplained = [*fmt.report.unexplained, *(f"{each.case}: {each.problem}" for each in fmt.report.failed)]
    result.outcomes = [run_row(fmt, row) for row in rows]
    return result


HEADING = "## Templates without recorded rows"
CLASSES = (
    ("blanks that the template writes before content", "read: they are dropped (`turn_start`)"),
    ("a turn that begins after the marker that closes the user's message", "read, from the generation prompt on"),
    ("Python calls whose history has no quotes or no commas", "read by what is declared, or as Python; not `ok`"),
    (
        "calls that the prompt shows and the template does not print",
        "read by the shipped format that the prompt shows, or as text; not `ok`",
    ),
    ("calls in tags of several tokens, closed after the last part", "read"),
    ("a prompt that opens the answer", "read"),
    ("text in markers of its own if it has special characters, such as CDATA", "read"),
    ("a second header between reasoning and call", "read"),
    ("a thought between two equal delimiters", "read"),
    ("content in markers only if calls follow", "read"),
    ("a prompt that writes the marker before the name of a call", "read: the marker begins the call"),
    ("a role header that comes again before each part, or each call in a turn of its own", "read"),
    ("calls that are nearly JSON, or the `repr` of a Python dict", "read as printed"),
    ("elements, or a notation of quotes of its own, inside values", "by a shipped format, or as text; not `ok`"),
    ("arguments as a JSON string outside of JSON", "not derived; not `ok`"),
    ("raw text that only the next marker ends", "read; calls are not exported"),
    ("a thought in a message of its own, or each call", "read"),
    ("turns that begin in a thought of which only the end is written", "read, after a role header that is a marker"),
    ("calls without any marker", "read; not `ok`, as prose may quote one"),
    ("messages that are refused", "asked for in the usual forms; not `ok` if one is never printed"),
    ("raw text that looks like its own end", "not derived; not `ok`"),
)


def totals(results: Sequence[Result]) -> list[str]:
    """The figures of all templates together."""
    outcomes = [each for result in results for each in result.outcomes]
    exact = sum(each.exact for each in outcomes)
    silent = sum(not each.exact for result in results if result.ok for each in result.outcomes)
    proved = [result for result in results if result.ok and result.outcomes]
    inside = sum(len(result.outcomes) for result in proved)
    times = sorted(result.milliseconds for result in results if not result.error) or [0.0]
    return [
        f"{exact} of {len(outcomes)} rows exact ({100 * exact / max(1, len(outcomes)):.1f}%)",
        f"{len(proved)} of {sum(bool(result.outcomes) for result in results)} templates with a report that is `ok`, "
        f"with {inside} rows, of which {silent} are not exact",
        f"derivation, time of the processor: median {statistics.median(times):.0f} ms, "
        f"95% at most {times[int(0.95 * (len(times) - 1))]:.0f} ms, at most {times[-1]:.0f} ms",
    ]


def section(results: Sequence[Result]) -> str:
    """The figures for the page."""
    lines = [
        HEADING,
        "",
        "Written by `python -m tests.conformance.unseen --write docs/conformance.md`. The rows are rendered here, "
        "independently of derivation: the messages of the recorded rows after the template's own generation prompt. "
        "Classes of errors were found with them, so that they are no held-out set. `ok` is what the report of the "
        "derived format says of itself.",
        "",
        *(f"* {total}" for total in totals(results)),
        "",
        "| template | exact | report | format |",
        "|---|--:|---|---|",
    ]
    for result in results:
        exact = sum(each.exact for each in result.outcomes)
        if result.outcomes:
            report = "ok" if result.ok else "not ok"
            lines.append(f"| {result.name} | {exact}/{len(result.outcomes)} | {report} | {result.origin} |")
    lines += ["", "What became of the shapes that were hard:", "", "| shape | |", "|---|---|"]
    lines += [f"| {shape} | {outcome} |" for shape, outcome in CLASSES]
    return "\n".join(lines) + "\n"


def reasons(paths: Sequence[Path]) -> list[str]:
    """Why no shipped format reads the calls of a template, for each that has none, as the report of derivation says."""
    lines = ["", "### Templates that no shipped format reads", "", "| template | why |", "|---|---|"]
    for path in paths:
        report = derive_anew(path.read_text(encoding="utf-8"), _BOS, _EOS).report
        assert report is not None
        if report.shipped is None:
            lines.append(f"| {path.stem} | {_reason(report)} |")
    return lines


def _reason(report: DeriveReport) -> str:
    if report.found.calls == "none":
        return "it prints no calls"
    if not report.asked:
        return "no shipped format has its markers of calls"
    return f"`{' '.join(report.asked[0].replace('`', chr(39)).replace('|', '¦').split())[:_SHOWN]}`"


def main(given: Sequence[str] | None = None) -> int:
    """Run all templates that are here. The exit status is 1 where a row is read wrongly and the report is `ok`."""
    arguments = argparse.ArgumentParser(prog="python -m tests.conformance.unseen")
    arguments.add_argument("--folder", action="append", type=Path)
    arguments.add_argument("--template", default="")
    arguments.add_argument("--rows", action="store_true", help="show what is not exact")
    arguments.add_argument("--all", action="store_true", help="those of the recorded rows as well")
    arguments.add_argument("--write", metavar="FILE", type=Path)
    options = arguments.parse_args(given)
    seen = {path.stem for path in SEEN.glob("*.jinja")}
    paths = [path for folder in options.folder or [TEMPLATES] for path in sorted(folder.glob("*.jinja"))]
    paths = [path for path in paths if options.template in path.stem and (options.all or path.stem not in seen)]
    if not paths or not DATA.exists():
        print("no templates, or no recorded messages; `make templates` fetches templates", file=sys.stderr)
        return 0
    derive_anew(paths[0].read_text(encoding="utf-8"), _BOS, _EOS)  # once for the imports
    results = []
    for path in paths:
        try:
            result = run(path)
        except TemplateError as error:
            result = Result(path.stem, error=f"cannot be rendered: {error}")
        results.append(result)
        _print(result, options.rows)
    for total in totals(results):
        print(total)
    if options.write:
        before = options.write.read_text(encoding="utf-8").partition(HEADING)[0].rstrip("\n")
        why = "\n".join(reasons(sorted({*SEEN.glob("*.jinja"), *paths}, key=lambda path: path.stem)))
        options.write.write_text(f"{before}\n\n{section(results)}{why}\n", encoding="utf-8", newline="\n")
    return int(any(not each.exact for result in results if result.ok for each in result.outcomes))


def _print(result: Result, with_rows: bool) -> None:
    exact = sum(each.exact for each in result.outcomes)
    silent = sum(not each.exact for each in result.outcomes) if result.ok else 0
    print(
        f"{result.name:<52} {exact:>3}/{len(result.outcomes):<3} {'ok    ' if result.ok else 'not ok'} "
        f"{f'SILENT {silent}' if silent else '':<10} {result.origin:<12} {result.milliseconds:4.0f} ms "
        f"{result.error[:80]}",
        flush=True,
    )
    if not with_rows:
        return
    for each in result.unexplained:
        print("    unexplained:", each[:200])
    for outcome in result.outcomes:
        if not (outcome.exact and outcome.same_streamed and outcome.conserved):
            print("   ", outcome.row.case, repr(outcome.row.prefix[-40:]), repr(outcome.row.output[:600]))
            for line in difference(outcome):
                print("       ", line)


if __name__ == "__main__":
    sys.exit(main())
