"""What derivation says of itself: what was found, what was chosen and why, and what came back of the probes."""

from __future__ import annotations

from dataclasses import dataclass, field

from toolgram.derive.result import DiffAnalysisResult


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


@dataclass(slots=True)
class DeriveReport:
    """How a format was derived. `shipped` names the shipped format that was chosen, where one was, and `why` says why.

    `analysis` has every finding with the renderings that show it; it is None where the format came from a cache on
    disk. `seconds` is what the derivation took.
    """

    analysis: DiffAnalysisResult | None
    shipped: str | None = None
    why: str = ""
    probes: list[Probe] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failed(self) -> list[Probe]:
        """The probes that did not come back."""
        return [probe for probe in self.probes if probe.problem]

    @property
    def ok(self) -> bool:
        """Every probe came back."""
        return not self.failed
