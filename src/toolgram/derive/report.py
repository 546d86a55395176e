"""What derivation says of itself: what was found, how sure that is, what was chosen and why, and what came back.

Strategy: a report is `ok` only if nothing is left open.  Whatever derivation could not explain, was refused, took from
what is merely told, or did not read back is listed under `unexplained` or `failed`, in words for whoever checks it.
`str(report)` is for eyes, `to_dict` for programs; the analysis with its renderings is beside them, for `toolgram derive
--report`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from toolgram.derive.result import DiffAnalysisResult, MarkerRegistry

_LONGEST = 200  # characters of what a template wrote, in a line for eyes


@dataclass(frozen=True, slots=True)
class Probe:
    """A message that was written as the template writes it and parsed again.

    `case` says which message, `prompt` behind which generation prompt ("unset", "on", "off": thinking), `output` is the
    text, and `problem` what came back differently ("" for nothing).
    """

    case: str
    prompt: str
    output: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found out about a template, in the words of `toolgram.derive.result`."""

    reasoning: str = "none"
    content: str = "plain"
    calls: str = "none"
    arguments: str = ""
    call_id: str = "none"
    switch: str = ""
    markers: MarkerRegistry = field(default_factory=MarkerRegistry)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON-able data; of the markers those that there are."""
        return {**asdict(self), "markers": dict(self.markers.items())}


@dataclass(frozen=True, slots=True)
class DeriveReport:
    """How a format was derived. `shipped` names the shipped format that was chosen, where one was, and `why` says why.

    `asked` says of shipped formats whose markers the template writes why they were not taken. `found` is what was found
    out, `unexplained` what was not. `analysis` has every finding with the renderings that show it; it is None where the
    format came from a cache on disk or from a process of its own. `seconds` is what the derivation took.
    """

    analysis: DiffAnalysisResult | None
    shipped: str | None = None
    why: str = ""
    probes: tuple[Probe, ...] = ()
    warnings: tuple[str, ...] = ()
    unexplained: tuple[str, ...] = ()
    found: Found = Found()
    seconds: float = 0.0
    asked: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Probe, ...]:
        """The probes that did not come back."""
        return tuple(probe for probe in self.probes if probe.problem)

    @property
    def ok(self) -> bool:
        """Every probe came back, and nothing is unexplained: what is written as the template does it is read right."""
        return not self.failed and not self.unexplained

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-able data, without the analysis."""
        return {
            "ok": self.ok,
            "shipped": self.shipped,
            "why": self.why,
            "asked": list(self.asked),
            "found": self.found.to_dict(),
            "unexplained": list(self.unexplained),
            "warnings": list(self.warnings),
            "probes": [asdict(probe) for probe in self.probes],
            "seconds": self.seconds,
            "next_step": self.next_step,
        }

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        found, markers = self.found, self.found.markers
        origin = f"the shipped format {self.shipped}: {self.why}" if self.shipped else "derived from the template"
        yield f"{'ok' if self.ok else 'not ok'}, {origin}"
        yield f"reasoning  {_between(found.reasoning, (markers.reasoning_start, markers.reasoning_end))}"
        yield f"content    {_between(found.content, (markers.content_start, markers.content_end))}"
        yield f"calls      {_between(found.calls, (markers.tool_section_start, markers.tool_section_end))}"
        yield f"probes     {len(self.probes) - len(self.failed)} of {len(self.probes)} came back"
        listed = [("unexplained", each) for each in self.unexplained]
        listed += [("failed", f"{each.case} ({each.prompt}): {each.problem}") for each in self.failed]
        listed += [("not taken", each) for each in self.asked]
        told = {text for _, text in listed}
        listed += [("warning", each) for each in self.warnings if each not in told]
        for kind, text in listed:
            yield f"{kind + ':':<13}{_short(text)}"
        if not self.ok:
            yield f"next:        {self.next_step}"

    @property
    def next_step(self) -> str:
        """What to do about a report that is not ok; "" if it is."""
        if self.ok:
            return ""
        if self.shipped or self.found.calls == "none":
            return "compare with an output of the model: `toolgram explain OUTPUT` says which format reads it"
        return (
            "write the files with `toolgram derive -o FOLDER`, complete what is open, and prove them: `toolgram check`"
        )


@dataclass(slots=True)
class ReportBuilder:
    """A report while the format is being derived."""

    analysis: DiffAnalysisResult
    shipped: str | None = None
    why: str = ""
    probes: list[Probe] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    @property
    def failed(self) -> list[Probe]:
        """The probes that did not come back."""
        return [probe for probe in self.probes if probe.problem]

    def report(self, seconds: float) -> DeriveReport:
        """What there is to say, once the format is derived."""
        told = tuple(self.probes), tuple(self.warnings), tuple(self.unexplained)
        found = found_of(self.analysis)
        return DeriveReport(self.analysis, self.shipped, self.why, *told, found, seconds, tuple(self.asked))


def _between(mode: str, pair: tuple[str, str]) -> str:
    return f"{mode}, {_short(repr(pair[0]))} ... {_short(repr(pair[1]))}" if any(pair) else mode


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[:_LONGEST] + " ..."


def found_of(result: DiffAnalysisResult) -> Found:
    """What an analysis found out."""
    return Found(
        result.reasoning_mode.value,
        result.content_mode.value,
        result.tool_format.value,
        result.calls.arguments.style.value if result.calls else "",
        result.call_id_position.value,
        result.switch,
        result.markers,
    )
