"""Compare a format with what a template writes, and name one that reads more.

Strategy: the messages are those with which derivation proves its own result, written as the template writes them.  A
named format reads each, and so do the others if it fails.  If outputs are given, whose truth nobody knows, the
named format and the derived one read them, and the first that they read differently is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from toolgram.derive.candidates import loaded, passed, probe
from toolgram.derive.errors import short
from toolgram.derive.report import Probe
from toolgram.derive.result import DiffAnalysisResult
from toolgram.errors import ToolgramError
from toolgram.explain import recognise
from toolgram.formats import Format, format_names, get_format
from toolgram.message import Message

MOST_RECOGNISED = 100  # outputs that are looked at to say which format they are in
CALLING = "call"  # in the name of every case that has calls


@dataclass(slots=True)
class Diagnosis:
    """What came of it. `better` is the format that reads more, "" if none does; `notes` say what to beware of."""

    format: str
    read: int
    written: int
    first: Probe | None = None
    better: str = ""
    better_read: int = 0
    derived_read: int = 0
    outputs: int = 0
    outputs_read_differently: int = 0
    first_output: Probe | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Return whether the format reads what the template writes, and the outputs as the derived format does."""
        return self.read == self.written > 0 and not self.outputs_read_differently

    def to_dict(self) -> dict[str, Any]:
        """Return the diagnosis as JSON-able data."""
        return {"ok": self.ok, **asdict(self), "better": self.better or None}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.format} reads {self.read} of {self.written} messages that this template writes."
        if self.first is not None:
            yield f"The first that it does not ({self.first.case}): {self.first.problem}"
            yield f"  {short(repr(self.first.output))}"
        if self.outputs:
            yield f"It reads {self.outputs_read_differently} of {self.outputs} outputs unlike the derived one."
        if self.first_output is not None:
            yield f"The first of them: {self.first_output.problem}"
            yield f"  {short(repr(self.first_output.output))}"
        if not self.ok and self.better:
            yield f"{self.better} reads {self.better_read} of {self.written}: use that."
        elif not self.ok:
            derived = f"The one derived from the template reads {self.derived_read} of {self.written}"
            yield f"No shipped format reads more. {derived}: `toolgram derive` writes it."
        yield from (f"Note: {note}" for note in self.notes)


def diagnose(fmt: Format, derived: Format, outputs: Iterable[str] = ()) -> Diagnosis:
    """Compare a format with what a template writes; `derived` is the format that `derive_format` made of it.

    Takes a few milliseconds for the format, and some tens for each shipped one if it does not fit. Raises
    ToolgramError if `derived` has no analysis, as one from a cache on disk has not.
    """
    report = derived.report
    result = report.analysis if report is not None else None
    if report is None or result is None:
        raise ToolgramError("the derived format comes without its analysis; derive it without a cache")
    probes = probe(fmt, result)
    failed = [each for each in probes if each.problem]
    found = Diagnosis(fmt.name, passed(probes), len(probes), derived_read=passed(probe(derived, result)))
    if failed:
        found.first = failed[0]
        found.better, found.better_read = _better(result, found.read, fmt.name, [each.output for each in probes])
    if not any(CALLING in each.case for each in probes):
        found.notes.append("the template prints no calls, so that only text was compared")
    found.notes += report.unexplained
    _compare_outputs(found, fmt, derived, list(outputs))
    return found


def _better(result: DiffAnalysisResult, least: int, but: str, texts: Sequence[str]) -> tuple[str, int]:
    """Return the shipped format that reads most of what the template writes, if that is more.

    Of several that read as much, the recogniser says which is meant, from the texts that the template writes.
    """
    counts = {name: passed(probe(get_format(name), result)) for name in format_names() if name != but}
    most = max(counts.values())
    if most <= least:
        return "", 0
    return next(each.name for each in recognise(texts, but=but) if counts[each.name] == most), most


def _compare_outputs(found: Diagnosis, fmt: Format, derived: Format, outputs: Sequence[str]) -> None:
    found.outputs = len(outputs)
    for output in outputs:
        ours, theirs = _gist(fmt.parse(output)), _gist(derived.parse(output))
        if ours == theirs:
            continue
        found.outputs_read_differently += 1
        if found.first_output is None:
            part = next(part for part in ours if ours[part] != theirs[part])
            problem = f"{part} {short(repr(ours[part]))} instead of {short(repr(theirs[part]))}"
            found.first_output = Probe("output", "unset", output, problem)
    if found.outputs_read_differently:
        first = recognise(list(outputs)[:MOST_RECOGNISED])[0]
        found.notes.append(f"the outputs read like {first.name}: {first.why}")


def _gist(message: Message) -> dict[str, Any]:
    calls = [(call.name, loaded(call.arguments), call.status) for call in message.tool_calls]
    return {"calls": calls, "content": message.content, "reasoning": message.reasoning}
