"""Find the transitions that a format's own outputs take, and the text of each.

Strategy: a machine accepts far more than a model should write: keys in any order, blanks anywhere, missing closers.
Examples show what a model should write: outputs in their canonical form (`canonical:` or `example:` of the machine
file, or the probes of a derived format). The format's own parser reads them, one character at a time. The trace gives
the path and the text between two transitions. An exporter writes no other paths.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from toolgram.formats import Format
from toolgram.islands import read_whole, value_island, value_kind
from toolgram.observing.observed import BEGIN, Edge, ObservedPaths
from toolgram.observing.probes import TOOLS
from toolgram.runtime.stream import REJECTED, TraceStep
from toolgram.spec.data import END, TEXT, Literal, Spec, is_json_trigger

_SKIPPED = re.compile(r"[\s,:]*")
_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|[-+.\w]+', re.DOTALL)
_BRACKETS = {"start_map": "{", "end_map": "}", "start_array": "[", "end_array": "]"}
_PYTHON_KEY = re.compile(r"\{\s*'name'\s*:").search
_JSON_WORD = re.compile(r"[=:,\[]\s*(?:true|false|null)\b").search


def observe_paths(fmt: Format) -> ObservedPaths:
    """Return the paths of a format, from all its canonical outputs."""
    states, in_text = fmt.program.states, fmt.program.initial.row.keys()
    moves = [(state, move) for state in states.values() for move in state.row.values()]
    paths = ObservedPaths(
        repeated={
            state.name for state, move in moves if move.closes and move.dest is state and move.trigger not in in_text
        },
        opens={move.opens: move.within for _, move in moves if move.opens},
        closes={move.trigger: move.closes for _, move in moves if move.closes},
        leaves_owed={name: state.leaves_owed for name, state in states.items() if state.leaves_owed},
    )
    seen: set[Edge] = set()
    for prefix, output, tools in canonical_outputs(fmt):
        before: Edge | None = None
        begun, steps = _walk(fmt, prefix, output, tools, paths)
        paths.outputs.append((state_after(fmt, prefix)[0], steps))
        for edge in steps:
            key = (edge.source, begun)
            if before is not None:
                paths.pairs.add((before.trigger, edge.trigger))
                key = (before.dest, before.trigger)
            paths.following.setdefault(key, set()).add(edge)
            before = edge
            if edge not in seen:
                seen.add(edge)
                paths.edges.setdefault(edge.source, []).append(edge)
        python = fmt.spec.python_json and _PYTHON_KEY(output) is not None
        paths.python_calls = paths.python_calls or python
    if not any(fmt.spec.states[state].meaning == "content" for state in paths.texts):
        paths.texts.add(fmt.spec.initial)  # no example has a plain answer; a model starts one in this state
    return paths


def canonical_outputs(fmt: Format) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield outputs in the form that a model should write, each with its prefix and its tools."""
    about = fmt.machine_dict.get("format", {})
    probed = {probe.output for probe in fmt.report.probes if not probe.problem} if fmt.report is not None else set()
    for each in about.get("canonical") or ([fmt.example] if fmt.example else []):
        shown = each if isinstance(each, dict) else {"output": each}
        output = str(shown.get("output", ""))
        if output not in probed:  # a derived format's outputs are its probes, but a shipped one may have more
            yield str(shown.get("prefix", "")), output, []
    report = fmt.report
    if report is None:
        return

    prompts = report.analysis.prompts if report.analysis is not None else {}
    for probe in report.probes:
        if not probe.problem:
            yield (
                prompts[probe.prompt].text if probe.prompt in prompts else "",
                probe.output,
                [] if fmt.spec.line_calls else TOOLS,
            )  # a name at the start of a line is a marker of its request


def state_after(fmt: Format, prefix: str) -> tuple[str, str]:
    """Return the state in which an output begins after `prefix`, and the end of the prefix that may begin a marker."""
    snapshot = fmt.parser(prefix=prefix).snapshot()
    return str(snapshot["state"]), str(snapshot.get("buffer") or "")


@dataclass(slots=True)
class _Seen:
    offset: int
    trigger: str
    source: str
    dest: str


def _walk(fmt: Format, prefix: str, output: str, tools: list[Any], paths: ObservedPaths) -> tuple[str, list[Edge]]:
    """Return the last whole marker that the prompt wrote before the output (BEGIN if none), and the steps of the
    output."""
    reader = _Reader(fmt.spec, output, paths)
    offset = -1
    steps: list[_Seen] = []

    def saw(step: TraceStep) -> None:
        if offset >= 0:
            steps.append(_Seen(offset, *step[:3]))

    parser = fmt.parser(tools, prefix, trace=saw)
    for offset, character in enumerate(output):  # noqa: B007 (the trace reads it)
        parser.feed(character)
    offset = len(output)
    parser.close("stop")
    begun, left = BEGIN, state_after(fmt, prefix)[1]
    taken = _committed(fmt.spec, steps)
    while taken and left:  # the end of the prompt was held, because it could begin a longer marker
        shape = fmt.spec.terminals.get(taken[0].trigger)
        if not (isinstance(shape, Literal) and left.startswith(shape.text)):
            break
        begun, left = taken.pop(0).trigger, left.removeprefix(shape.text)
    return begun, list(reader.edges(taken))


def _committed(spec: Spec, steps: Iterable[_Seen]) -> list[_Seen]:
    """Return the steps without those of rejected held text."""
    kept: list[_Seen] = []
    for step in steps:
        if step.trigger == REJECTED:
            while kept and spec.states[kept[-1].dest].held:
                kept.pop()
        else:
            kept.append(step)
    return kept


class _Reader:
    """Find the text of each step."""

    def __init__(self, spec: Spec, output: str, paths: ObservedPaths) -> None:
        self.spec, self.output, self.paths = spec, output, paths
        self.pos = 0
        self.lead = 0  # the start of the next edge's lead
        self.left: list[str] = []  # states that text has left since then
        self.actions = {(each.source, each.trigger): each.actions for each in spec.transitions}

    def edges(self, steps: list[_Seen]) -> Iterator[Edge]:
        for number, step in enumerate(steps):
            at_once = [each for each in steps[number + 1 : number + 9] if each.offset == step.offset]
            begin, end = self._place(step, at_once)
            if begin < 0:
                return  # do not learn from an output that cannot be followed
            lead = self._lead(step, begin, end, steps[number + 1 :][:1])
            self.pos = end
            if step.trigger == TEXT:
                self.left.append(step.source)
                continue
            self.left.clear()
            if self._blank(step.trigger) and step.source == step.dest:
                continue  # its text belongs to the lead of the next edge
            self.lead = end
            text = "" if self._is_value(step) else self.output[begin:end]
            actions = self.actions.get((step.source, step.trigger), ())
            yield Edge(step.source, step.trigger, step.dest, actions, lead, text)

    def _lead(self, step: _Seen, begin: int, end: int, following: Sequence[_Seen]) -> str:
        """Return the text between the previous step and this one, without free text and values. Record their facts."""
        lead = self.output[self.lead : begin]
        meaning = self.spec.states[step.source].meaning
        if meaning in ("content", "reasoning") and lead.strip():
            self.paths.texts |= {step.source, *self.left}
            if meaning == "content" and self.spec.states[step.dest].meaning == "reasoning":
                self.paths.thinks_after_text = True
            if meaning == self.spec.states[step.dest].meaning == "content" and self._ends(following):
                self.paths.closes_content.add(step.trigger)
            return ""
        if meaning == "value" and step.trigger != END:
            written = lead.strip() or self.output[begin:end]
            python = written in ("True", "False", "None") or written[:2] in ("{'", "['")
            self.paths.python_values = self.paths.python_values or python
            return lead if step.trigger == "value_end" else ""
        if step.trigger == "object_end":
            written = self.output[self.pos : end]
            self.paths.json_words = self.paths.json_words or _JSON_WORD(written) is not None
        return lead

    def _is_value(self, step: _Seen) -> bool:
        """Return whether the text of a step belongs to a value or to arguments."""
        states = self.spec.states
        inside = "arguments" in (states[step.source].meaning, states[step.dest].meaning)
        return inside or step.trigger in ("object_end", "value_end")

    def _ends(self, steps: Sequence[_Seen]) -> bool:
        """Return whether the first of these steps ends an output, or its turn."""
        return not steps or steps[0].trigger == END or steps[0].trigger in (self.spec.stop or ())

    def _blank(self, trigger: str) -> bool:
        shape = self.spec.terminals.get(trigger)
        return shape is not None and not isinstance(shape, Literal) and re.fullmatch(shape.first, " ") is not None

    def _fits(self, steps: Iterable[_Seen], pos: int) -> bool:
        """Return whether the markers and names of these steps follow each other from `pos` on."""
        for step in steps:
            shape = self.spec.terminals.get(step.trigger)
            if self._blank(step.trigger):
                continue
            if shape is None:
                return True
            pos += len(self.output[pos:]) - len(self.output[pos:].lstrip(" \t\r\n"))
            match = re.compile(re.escape(shape.text) if isinstance(shape, Literal) else shape.pattern).match(
                self.output, pos
            )
            if match is None:
                return False
            pos = match.end()
        return True

    def _place(self, step: _Seen, at_once: Sequence[_Seen]) -> tuple[int, int]:
        """Return where the text of a step begins and ends. `at_once` are the later steps that the same character
        caused."""
        shape = self.spec.terminals.get(step.trigger)
        if step.trigger == END:
            return len(self.output), len(self.output)
        if isinstance(shape, Literal):
            return self._marker(step, shape.text, at_once)
        if shape is not None:
            return self._run(step, shape.pattern)
        if self._closes_arguments(step):
            return self.pos, self._end_of_arguments(step, at_once)
        if is_json_trigger(step.trigger):
            return self._json_token(step)
        return self._island(step)

    def _marker(self, step: _Seen, text: str, at_once: Iterable[_Seen]) -> tuple[int, int]:
        """Return where a marker is: the last place, up to the character that caused the step, from which the next steps
        fit."""
        output, pos = self.output, self.pos
        if self.spec.states[step.source].meaning in ("content", "reasoning", "value"):
            at = output.rfind(text, pos, step.offset + 1)
            while at >= 0 and not self._fits(at_once, at + len(text)):
                at = output.rfind(text, pos, at + len(text) - 1)
        else:
            at = pos if output.startswith(text, pos) else -1
        return at, at + len(text)

    def _run(self, step: _Seen, pattern: str) -> tuple[int, int]:
        """Return where a name or another run is. In free text, blanks are not emitted until a token follows."""
        pos = self.pos
        if self.spec.states[step.source].meaning in ("content", "reasoning"):
            pos += len(self.output[pos:]) - len(self.output[pos:].lstrip(" \t\r\n"))
        match = re.compile(pattern).match(self.output, pos)
        return match.span() if match else (-1, -1)

    def _closes_arguments(self, step: _Seen) -> bool:
        """Return whether a step ends arguments that a bracket closes."""
        if step.trigger == "object_empty":
            return True
        ends = step.trigger == "object_end" or step.trigger.startswith("end_map item.")
        return ends and self.spec.states[step.source].meaning == "arguments"

    def _end_of_arguments(self, step: _Seen, at_once: Sequence[_Seen]) -> int:
        """Return where arguments end: where their JSON ends, or else after their last bracket. A later character may
        show which bracket is the last, so the steps after it must fit."""
        output, pos, over = self.output, self.pos, step.offset + 1
        if step.trigger == "object_empty":
            return next((at + 1 for at in range(pos, over) if output[at] in ")}"), over)
        source = self.spec.states[step.source]
        if source.encoded:
            return over
        if not source.python and (end := self._end_of_json(pos - 1)) > 0:
            return end
        bracket = ")" if source.python else "}"
        closes_more = bool(at_once) and at_once[0].trigger.startswith("end_map")
        at = output.rfind(bracket, pos, over)
        while at >= 0:
            rest = output[at + 1 : over].lstrip(" \t\r\n")  # the bracket around it has been read as well
            if (rest[:1] == "}") if closes_more else self._fits(at_once, at + 1):
                return at + 1
            at = output.rfind(bracket, pos, at)
        return over

    def _island(self, step: _Seen) -> tuple[int, int]:
        """Return where a step of an embedded value is."""
        pos, source, dest = self.pos, self.spec.states[step.source], self.spec.states[step.dest]
        if step.trigger == "value_end":
            # nested elements end with the tag that closes them
            return (pos, step.offset + 1) if source.typed == "elements" else self._value(source.typed)
        if step.trigger == "object_start":
            at = self.output.find("(" if dest.python else "{", pos)
            if dest.encoded:
                at = min(each for each in (at, self.output.find('"', pos)) if each >= 0)
            return at, at + 1
        return pos, pos

    def _json_token(self, step: _Seen) -> tuple[int, int]:
        skipped = _SKIPPED.match(self.output, self.pos)
        assert skipped is not None
        at = skipped.end()
        event = step.trigger.partition(" ")[0]
        if event == "end_array" and not self.output.startswith("]", at):
            return self.pos, self.pos  # an object instead of a list with one element
        if self.spec.states[step.source].meaning in ("content", "reasoning"):
            at = self.output.rfind(_BRACKETS.get(event, "{"), self.pos, step.offset + 1)
        if event in _BRACKETS:
            return (at, at + 1) if self.output.startswith(_BRACKETS[event], at) else (-1, -1)
        match = _SCALAR.match(self.output, at)
        return match.span() if match else (-1, -1)

    def _value(self, typed: str) -> tuple[int, int]:
        skipped = _SKIPPED.match(self.output, self.pos)
        assert skipped is not None
        if typed != "json":
            value = value_island(value_kind(typed, alone=True), typed, None, self.spec.notation)
            end, _ = read_whole(value, self.output, skipped.end())
            return (-1, -1) if value.broken else (skipped.end(), end)
        end = self._end_of_json(skipped.end())
        return (skipped.end(), end) if end > 0 else (-1, -1)

    def _end_of_json(self, at: int) -> int:
        """Return where the JSON that begins at a place ends; -1 if there is none."""
        try:
            return json.JSONDecoder(strict=False).raw_decode(self.output, at)[1]
        except (ValueError, RecursionError):
            return -1
