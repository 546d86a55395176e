"""Which format is taken for a template: one list of candidates, one score, one rule.

Strategy: the derived format is a candidate, and so is each shipped format that is *near* the template, adapted to it
(`adapting`).  The score is how many messages of the proof a candidate reads as they are, without a repair.  The
candidate with the highest score is taken.  Of several that read everything, a shipped format goes before the derived
one, as it has the repairs of its family, and the nearest goes first; if two shipped formats are level in everything,
neither is taken.  If no candidate reads everything, a shipped format is taken only if it reads more than the derived
one, which follows the template.  What cannot change the choice is not computed: a shipped format that reads everything
needs no rival.

Near is a format whose own markers of calls the template writes with calls, and nowhere else.  A template that writes no
marker, or no calls, is near the formats whose machine files say so (`calls_begin`, `prompt_shows`).  Nearness is read
from the texts of the files; at most four formats are loaded.

Each message of the proof is parsed whole and in small pieces, and compared with its source.  A derived format was read
from its two files, as `load_format` reads them; its last proof is that these have no faults.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from toolgram.derive.adapting import Surroundings, adapted
from toolgram.derive.budget import look, time_left
from toolgram.derive.errors import short
from toolgram.derive.report import Probe
from toolgram.derive.result import (
    ArgumentsStyle,
    CallsFormat,
    Case,
    DiffAnalysisResult,
    Slot,
    Tokens,
    Written,
    framed,
)
from toolgram.derive.text_skeleton import turn_blanks, turn_ends
from toolgram.formats import Format, format_names
from toolgram.limits import DERIVATION_SECONDS
from toolgram.message import Message
from toolgram.names import known_names
from toolgram.observing.probes import TOOLS
from toolgram.observing.shipped_files import markers_of_format, outputs_of_format, said_by

_CUT = 3  # characters per delta, besides the whole text at once
_MOST = 4  # shipped formats that are asked
_SHOWN = 200  # characters of a value in a problem
_REPAIRS = {
    "unclosed_value", "unclosed_envelope", "unclosed_arguments", "surplus_closer", "unfinished_marker", "repaired_json",
    "repaired_python", "unusual_form",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Candidate:
    """A format with what it read of the messages of the proof. `shipped` is the name of a shipped format."""

    fmt: Format
    probes: list[Probe]
    shipped: str | None = None

    @property
    def score(self) -> int:
        """Count the messages that came back."""
        return len(self.probes) - len(self.failed)

    @property
    def failed(self) -> list[Probe]:
        """Return the probes whose message was not parsed correctly."""
        return [probe for probe in self.probes if probe.problem]


def choose(result: DiffAnalysisResult, tokens: Tokens, derive: Callable[[], Candidate]) -> tuple[Candidate, list[str]]:
    """Return the candidate that reads most, and of the shipped formats that were asked why they were not taken.

    `derive` writes the derived format, which is not done if it cannot win. A shipped format is read up to its first
    problem, and the rest of the messages only if the derived one has problems.
    """
    said: list[str] = []
    others: list[tuple[str, Format]] = []
    for level in _levels(result, tokens, said):
        whole = []
        for name, fmt in level:
            probes = list(_up_to_a_problem(fmt, result))
            if probes and not probes[-1].problem:
                whole.append(Candidate(fmt, probes, name))
            elif probes:
                failed = probes[-1]
                said.append(f"{name}, which is near: {failed.case} ({failed.prompt}): {failed.problem}")
                others.append((name, fmt))
        if len(whole) == 1:
            return whole[0], said
        if whole:
            said.append(f"{' and '.join(str(each.shipped) for each in whole)}, as they read all messages alike")
            others = []
            break
    derived = derive()
    if others and derived.score < len(derived.probes):
        read = (Candidate(fmt, [_read_one(fmt, each) for each in result.written], name) for name, fmt in others)
        best = max(read, key=lambda each: each.score)
        if best.score > derived.score:
            return best, said
    return derived, said


def _levels(result: DiffAnalysisResult, tokens: Tokens, said: list[str]) -> Iterator[list[tuple[str, Format]]]:
    """Yield the shipped formats that are near, adapted, those that are equally near together, the nearest first."""
    ends = turn_ends(result, tokens)
    around = Surroundings(result.prompts["unset"].opened, *turn_blanks(result), tuple(ends), tuple(tokens.special))
    for _, level in groupby(near_formats(result, ends)[:_MOST], key=lambda each: each[0]):
        found = []
        for _, name in level:
            if time_left() < DERIVATION_SECONDS / 2:
                said.append("the time was over before all formats were asked")
                return
            look(f"asking the shipped format {name}")
            fmt = adapted(name, around)
            if fmt is None:
                said.append(f"{name}: a token that ends a turn begins as its markers do")
            else:
                found.append((name, fmt))
        yield found


def _up_to_a_problem(fmt: Format, result: DiffAnalysisResult) -> Iterator[Probe]:
    for written in sorted(result.written, key=lambda each: not each.case.calls):  # most formats read no such calls
        yield (probe := _read_one(fmt, written))
        if probe.problem:
            return


def _read_one(fmt: Format, written: Written) -> Probe:
    """Read a message of the proof; one that is read by a repair has not come back."""
    probe, message = probe_one(fmt, written)
    repair = next((each.kind for each in message.anomalies if each.kind in _REPAIRS), "")
    return replace(probe, problem=f"by a repair, {repair}") if repair and not probe.problem else probe


def near_formats(result: DiffAnalysisResult, ends: Sequence[str]) -> list[tuple[tuple[int, ...], str]]:
    """Return how near each shipped format is that is near at all, and its name, the nearest first. None is loaded."""
    kinds = [[each.output for each in result.written if bool(each.case.calls) is calling] for calling in (True, False)]
    calls, text = map("".join, kinds)
    names = []
    for name in format_names():
        own_markers = [each for each in markers_of_format(name) if each in calls and each not in text]
        shows = any(each in output for each in own_markers for output in outputs_of_format(name))
        names += [name] if shows or _is_recognised(name, result) else []
    if len(names) < 2:
        return [((), name) for name in names]
    own_ends = turn_ends(result, Tokens())  # those that the template writes; the tokenizer's may be any
    texts = _texts_of_call(result.calls, ends) if result.calls else []
    return sorted((_distance(name, result, calls, own_ends, texts), name) for name in names)


def _distance(
    name: str, result: DiffAnalysisResult, calls: str, ends: Sequence[str], texts: Sequence[str]
) -> tuple[int, ...]:
    """Return how far a shipped format is from a template. What is compared first decides.

    Its canonical outputs have such calls, `calls` has many of its markers, it knows the tokens that end a turn, it has
    the same prompt, and it goes by many names.
    """
    markers, entry = markers_of_format(name), known_names().entries.get(name)
    prompt = str(said_by(name).get("generation_prompt", "")).strip()
    return (
        not (texts and any(_has_in_order(_squashed(output), texts) for output in outputs_of_format(name))),
        -sum(marker in calls for marker in markers),
        sum(end not in markers for end in ends),
        prompt != result.prompts["unset"].opened.strip(),
        -(len(entry.aliases) + len(entry.models)) if entry else 0,
    )


def _is_recognised(name: str, result: DiffAnalysisResult) -> bool:
    """Return whether the machine file of a format says that such a template is of its family."""
    if result.prints_calls != "yes":
        told = _squashed("".join(result.instructions.values()))
        return any(text in told for text in said_by(name).get("prompt_shows", ()))
    written = next((each for each in result.written if each.case.name == "one call"), None)
    if written is None:
        return False
    return _squashed(written.output.partition(written.case.calls[0].name)[0]) in said_by(name).get("calls_begin", ())


def _texts_of_call(calls: CallsFormat, ends: Sequence[str]) -> list[str]:
    """Return the texts between the slots of a call alone, without blanks."""
    style = calls.arguments.values.get("string")
    argument: Sequence[object] = framed(calls.arguments.pattern, style) if style else calls.arguments.pattern
    start, end = calls.single or (calls.section_start, calls.section_end)
    for token in ends:
        end = end.strip().removesuffix(token)
    at = calls.pattern.index(Slot.ARGUMENTS)
    inner = argument if calls.arguments.style is ArgumentsStyle.TAGGED else ("{", Slot.ARGUMENTS)
    parts = (start, *calls.pattern[:at], *inner, "\0", *calls.pattern[at + 1 :], "\0", end)
    return _squashed("".join(part if isinstance(part, str) else "\0" for part in parts)).split("\0")


def _has_in_order(output: str, texts: Sequence[str]) -> bool:
    """Return whether an output has these texts, one after the other."""
    at = 0
    for text in texts:
        at = output.find(text, at)
        if at < 0:
            return False
        at += len(text)
    return True


def _squashed(text: str) -> str:
    return "".join(text.split())


# --- reading the messages of the proof ------------------------------------------------------------------------------


def probe(fmt: Format, result: DiffAnalysisResult) -> list[Probe]:
    """Read all messages of the proof. Costs a few milliseconds."""
    return [probe_one(fmt, written)[0] for written in result.written]


def probe_one(fmt: Format, written: Written) -> tuple[Probe, Message]:
    """Parse one message, and return the probe and the parsed message."""
    look(f"probing the format ({written.case.name})")
    message = fmt.parse(written.output, TOOLS, written.prefix, "stop")
    return Probe(written.case.name, written.prompt, written.output, _problem(fmt, written, message)), message


def _problem(fmt: Format, written: Written, whole: Message) -> str:
    output = written.output
    problem = difference(whole, written.case)
    if problem and written.alike is not None:
        problem = difference(whole, written.alike) and problem
    if problem:
        return problem
    parser = fmt.parser(TOOLS, written.prefix)
    sources = []
    for at in range(0, len(output), _CUT):
        sources += [event.source for event in parser.feed(output[at : at + _CUT])]
    sources += [event.source for event in parser.close("stop")]
    if "".join(sources) != output:
        return "the events do not give the text back"
    if _gist(parser.message) != _gist(whole):
        return "cut into small pieces, it is read differently"
    return ""


def _gist(message: Message) -> tuple[str | None, str | None, list[tuple[str, str]]]:
    return message.content, message.reasoning, [(call.name, call.arguments) for call in message.tool_calls]


def difference(message: Message, case: Case) -> str:
    """Report how a parsed message differs from the case; "" if they are the same."""
    wanted = [(call.name, dict(call.arguments)) for call in case.calls]
    found = [(call.name, loaded(call.arguments)) for call in message.tool_calls]
    if found != wanted:
        return f"calls {short(repr(found), _SHOWN)} instead of {short(repr(wanted), _SHOWN)}"
    if any(call.status != "complete" for call in message.tool_calls):
        return "a call is not complete"
    parts = (("content", message.content, case.content), ("reasoning", message.reasoning, case.reasoning))
    for part, text, expected in parts:
        if (text or "") != (expected or ""):
            return f"{part} {short(repr(text), _SHOWN)} instead of {short(repr(expected), _SHOWN)}"
    return ""


def loaded(arguments: str) -> Any:
    """Return the arguments of a call as data, or their text if it is not JSON."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def passed(probes: Sequence[Probe]) -> int:
    """Count the probes without a problem."""
    return sum(not each.problem for each in probes)
