"""The report of a derivation: its findings, how certain they are, the chosen format and why, and the probes.

Strategy: a report is `ok` only if nothing is left open. Whatever derivation could not explain, was refused, took only
from instructions, or did not parse correctly is listed under `unexplained` or `failed`, in words for a reviewer.
`str(report)` is for people, `to_dict` for programs; the analysis with its renderings is separate, for `toolgram derive
--report`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from toolgram.derive.errors import short
from toolgram.derive.result import DiffAnalysisResult, MarkerRegistry
from toolgram.spec.as_json import dump

_LONGEST = 200  # characters of a template's text in a line for people


@dataclass(frozen=True, slots=True)
class Probe:
    """A message that was written as the template writes it and parsed again.

    `case` names the message, `prompt` the generation prompt before it ("unset", "on", "off": thinking), `output` is the
    text, and `problem` is the difference in the parsed message ("" if there is none).
    """

    case: str
    prompt: str
    output: str
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """The findings about a template, in the terms of `toolgram.derive.result`."""

    reasoning: str = "none"
    content: str = "plain"
    calls: str = "none"
    arguments: str = ""
    call_id: str = "none"
    switch: str = ""
    markers: MarkerRegistry = field(default_factory=MarkerRegistry)

    @classmethod
    def of(cls, result: DiffAnalysisResult) -> Found:
        """Return the findings of an analysis."""
        style = result.calls.arguments.style.value if result.calls else ""
        reasoning, content, calls = result.reasoning_mode, result.content_mode, result.tool_format
        return cls(reasoning.value, content.value, calls.value, style, result.call_id, result.switch, result.markers)

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as JSON-able data, with only the markers that exist."""
        return {**asdict(self), "markers": dict(self.markers.items())}


@dataclass(frozen=True, slots=True)
class DeriveReport:
    """How a format was derived. `shipped` names the chosen shipped format, if any, and `why` the reason.

    `asked` gives the reasons why shipped formats whose markers the template writes were not chosen. `found` has the
    findings, `unexplained` the open questions. `analysis` has every finding with its renderings; it is None if the
    format came from a cache on disk or from a separate process. `seconds` is the duration of the derivation.
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
        """Return the probes whose message was not parsed correctly."""
        return tuple(probe for probe in self.probes if probe.problem)

    @property
    def ok(self) -> bool:
        """Return whether every probe came back and nothing is unexplained."""
        return not self.failed and not self.unexplained

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON-able data, without the analysis."""
        said = dump(replace(self, analysis=None))
        del said["analysis"]
        return {"ok": self.ok, **said, "found": self.found.to_dict(), "next_step": self.next_step}

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
            yield f"{kind + ':':<13}{short(text, _LONGEST)}"
        if not self.ok:
            yield f"next:        {self.next_step}"

    @property
    def next_step(self) -> str:
        """Return what to do about a report that is not ok; "" if it is."""
        if self.ok:
            return ""
        if self.shipped or self.found.calls == "none":
            return "compare with an output of the model: `toolgram explain OUTPUT` says which format reads it"
        return (
            "write the files with `toolgram derive -o FOLDER`, complete what is open, and prove them: `toolgram check`"
        )


def _between(mode: str, pair: tuple[str, str]) -> str:
    return f"{mode}, {short(repr(pair[0]), _LONGEST)} ... {short(repr(pair[1]), _LONGEST)}" if any(pair) else mode
