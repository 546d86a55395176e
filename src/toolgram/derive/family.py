"""The shipped format of the family whose calls a template writes: it knows what such models get wrong.

Strategy: three steps, the cheap one first.  A shipped format is *near* where its canonical outputs have every marker of
the template's calls; they are looked at as text, and no format is loaded.  Of those that are near, one goes first whose
canonical outputs have calls as the template writes them, then one that knows the tokens with which the template ends
its turns, then one that has such calls to the blank, then the one that goes by most names (`names.toml`).  It is taken
where it reads every message of verification as it is and repairs nothing in it.  Where two that are level do so, none
is taken: the derived format has the repairs of its shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any, TypeAlias

import yaml

from toolgram.derive.adapting import Behind, adapted
from toolgram.derive.budget import look, time_left
from toolgram.derive.comparing import markers_of
from toolgram.derive.rebuilding import framed
from toolgram.derive.recognising import markers_in_files
from toolgram.derive.report import Probe
from toolgram.derive.result import ArgumentSlot, ArgumentsStyle, CallsFormat, DiffAnalysisResult, Slot, Tokens
from toolgram.derive.text_skeleton import turn_blanks, turn_ends
from toolgram.derive.verification import Case, probes
from toolgram.formats import Format, format_names, grammar_home
from toolgram.limits import DERIVATION_SECONDS
from toolgram.names import known_names
from toolgram.observing.probes import TOOLS, Call

Pattern: TypeAlias = tuple[str | Slot | ArgumentSlot, ...]

_FEWEST = 2  # characters of a marker that tells anything
_MOST = 4  # formats that are asked
_MORE = ArgumentSlot.VALUE  # behind an argument or a call: more of them
_NOTHING, _ANYTHING = re.compile("").fullmatch, re.compile(r"[\s\S]*").fullmatch
_WORD = re.compile(r"[\w.:-]+").fullmatch
_OBJECT = re.compile(r"\s*\{[\s\S]*").fullmatch
_FITS: dict[Slot | ArgumentSlot, Callable[[str, int, int], object]] = {
    Slot.NAME: _WORD,
    Slot.ID: _WORD,
    Slot.INDEX: _WORD,
    Slot.ARGUMENTS: _OBJECT,
    ArgumentSlot.KEY: _WORD,
}
_REPAIRS = {
    "unclosed_value", "unclosed_envelope", "unclosed_arguments", "surplus_closer", "unfinished_marker", "repaired_json",
    "repaired_python", "unusual_form",
}  # fmt: skip
_SHOWN = re.compile(r"^  (?:canonical|example|generation_prompt):.*\n(?:(?:    .*)?\n)*", re.MULTILINE)
_EDGES = Call("run", {"code": "\n  indented \n\n", "language": " x"}, "bL4nKsE5d")
_BLANKS = Case("text that begins and ends in blanks", calls=(_EDGES,))


@dataclass(frozen=True, slots=True)
class Near:
    """A shipped format whose canonical outputs have the markers of a template's calls.

    `written`: whether they have such calls to the character (2), but for blanks (1), or not (0); `strange_ends`: how
    many tokens end the template's turns and are none of the format's; `names`: by how many the format goes.
    """

    name: str
    written: int
    strange_ends: int
    names: int
    other_prompt: bool

    @property
    def rank(self) -> tuple[int, ...]:
        """The smaller, the nearer."""
        return not self.written, self.strange_ends, -self.written, -self.names, self.other_prompt


@dataclass(frozen=True, slots=True)
class Family:
    """What came of asking: the format that was taken and its probes, and why others were not."""

    fmt: Format | None
    probes: list[Probe]
    said: list[str]


def find_family(result: DiffAnalysisResult, tokens: Tokens) -> Family:
    """The shipped format of the template's family, where one reads all that the template writes."""
    said: list[str] = []
    ends = turn_ends(result, tokens)
    behind = Behind(result.prompts["unset"].opened, *turn_blanks(result), tuple(ends), tuple(tokens.special))
    for _, level in groupby(near_formats(result, ends)[:_MOST], key=lambda each: each.rank):
        read: list[tuple[Format, list[Probe]]] = []
        for each in level:
            if time_left() < DERIVATION_SECONDS / 2:
                return Family(None, [], [*said, "the time was over before all formats were asked"])
            look(f"asking the shipped format {each.name}")
            fmt = adapted(each.name, behind)
            found, problem = _read(fmt, result) if fmt else ([], "a token that ends a turn begins as its markers do")
            if fmt is not None and not problem:
                read.append((fmt, found))
            else:
                said.append(f"{each.name}, which has the markers of its calls: {problem}")
        if len(read) == 1:
            return Family(*read[0], said)
        if read:
            names = " and ".join(fmt.name for fmt, _ in read)
            return Family(None, [], [*said, f"{names}, as they read all that it writes alike"])
    return Family(None, [], said)


def near_formats(result: DiffAnalysisResult, ends: Sequence[str]) -> list[Near]:
    """The shipped formats that are near, the nearest first. Costs less than a millisecond: no format is loaded."""
    form = result.calls
    if form is None or result.prints_calls != "yes":
        return []
    markers = _markers(form, ends)
    if not markers:
        return []
    names = [name for name in format_names() if _has(name, markers)]
    if len(names) < 2:
        return [Near(name, 0, 0, 0, False) for name in names]
    patterns = list(_patterns(form, ends))
    own = turn_ends(result, Tokens())  # those that the template writes; the tokenizer's may be any
    prompt = result.prompts["unset"].opened.strip()
    found = [
        Near(name, _written(patterns, name), _strange(name, own), _known_as(name), _prompt(name).strip() != prompt)
        for name in names
    ]
    return sorted(found, key=lambda each: (each.rank, each.name))


def _markers(form: CallsFormat, ends: Sequence[str]) -> set[str]:
    """The markers of calls as they stand in any file: without blanks, quotes and escapes."""
    found = {marker for text in _constants(form, ends) for marker in markers_of(text)}
    plain = (marker for marker in found if not re.search(r"[\s\"'\\]", marker))
    return {marker for marker in plain if len(marker) > _FEWEST and not marker.isalnum()}


def _patterns(form: CallsFormat, ends: Sequence[str]) -> Iterator[Pattern]:
    """A call with one text argument, in the section of one call and in that of several."""
    for start, end in {(form.section_start, form.section_end), form.single or (form.section_start, form.section_end)}:
        for token in ends:
            end = end.strip().removesuffix(token)
        parts = (start, *_of_call(form), _MORE, end)
        yield tuple(part for part in parts if not isinstance(part, str) or part.strip())


def _of_call(form: CallsFormat) -> Iterator[str | Slot | ArgumentSlot]:
    tagged = form.arguments.style is ArgumentsStyle.TAGGED
    for part in form.pattern:
        if part is not Slot.ARGUMENTS or not tagged:
            yield part
        else:
            style = form.arguments.values.get("string")
            yield from framed(form.arguments.pattern, style) if style else form.arguments.pattern
            yield _MORE


def _constants(form: CallsFormat, ends: Sequence[str]) -> Iterator[str]:
    for pattern in _patterns(form, ends):
        yield from (part for part in pattern if isinstance(part, str))


def _written(patterns: Sequence[Pattern], name: str) -> int:
    """Whether a canonical output of the format has such a call: 2, but for blanks: 1, or not: 0."""
    outputs = _shown_outputs(name)
    if any(_stands_in(each, output) for each in patterns for output in outputs):
        return 2
    squashed = [tuple(_squashed(part) if isinstance(part, str) else part for part in each) for each in patterns]
    return int(any(_stands_in(each, _squashed(output)) for each in squashed for output in outputs))


def _squashed(text: str) -> str:
    return "".join(text.split())


def _stands_in(pattern: Pattern, output: str) -> bool:
    """Whether a call of this pattern stands in an output: its texts in their order, and between two of them what fits
    the slot. The first place of each text counts, as behind a name or a value none can come earlier."""
    first = pattern[0]
    if not isinstance(first, str):
        return False
    begin = output.find(first)
    while begin >= 0:
        if _goes_on(pattern[1:], output, begin + len(first)):
            return True
        begin = output.find(first, begin + 1)
    return False


def _goes_on(pattern: Pattern, output: str, at: int) -> bool:
    slot: str | Slot | ArgumentSlot = ""
    for part in pattern:
        if not isinstance(part, str):
            slot = part
            continue
        found = output.find(part, at)
        fits = _NOTHING if isinstance(slot, str) else _FITS.get(slot, _ANYTHING)
        if found < 0 or not fits(output, at, found):
            return False
        at, slot = found + len(part), ""
    return True


def _strange(name: str, ends: Sequence[str]) -> int:
    return sum(end not in markers_in_files(name) for end in ends)


def _has(name: str, markers: Collection[str]) -> bool:
    """Whether a format shows these markers, or has some of them otherwise: such as end a turn."""
    missing = [marker for marker in markers if marker not in _shown_text(name)]
    return len(missing) < len(markers) and all(marker in markers_in_files(name) for marker in missing)


def _known_as(name: str) -> int:
    """By how many names a format goes: those of parsers, and texts in the ids of models."""
    entry = known_names().entries.get(name)
    return len(entry.aliases) + len(entry.models) if entry else 0


@cache
def _shown_text(name: str) -> str:
    """The canonical outputs of a shipped format and its prompt, as they stand in its file."""
    text = (grammar_home().parent / "machines" / f"{name}.yaml").read_text(encoding="utf-8")
    return "".join(_SHOWN.findall(text))


@cache
def _said(name: str) -> dict[str, Any]:
    said: dict[str, Any] = yaml.safe_load(_shown_text(name))
    return said


def _prompt(name: str) -> str:
    return str(_said(name).get("generation_prompt", ""))


@cache
def _shown_outputs(name: str) -> tuple[str, ...]:
    """The outputs in it, read."""
    said = _said(name)
    outputs = said.get("canonical") or [said.get("example", "")]
    return tuple(each if isinstance(each, str) else str(each.get("output", "")) for each in outputs)


def _read(fmt: Format, result: DiffAnalysisResult) -> tuple[list[Probe], str]:
    """The messages that a format reads, and what it reads otherwise first, or only by a repair; "" for nothing."""
    found: list[Probe] = []
    for each in probes(fmt, result, (_BLANKS,)):
        anomalies = fmt.parse(each.output, TOOLS, result.prompts[each.prompt].tail, "stop").anomalies
        repaired = next((f"by a repair, {found.kind}" for found in anomalies if found.kind in _REPAIRS), "")
        if each.problem or repaired:
            return found, f"{each.case} ({each.prompt}): {each.problem or repaired}"
        found.append(each)
    return found, "" if found else "nothing could be written"
