"""`toolgram derive --report`: print what was found in a chat template, with the renderings that show it.

Strategy: the report is lines of styled text. A terminal shows the colours; a file gets the same lines without them. If
a finding is based on several renderings, their common beginning and end are dim and the difference is bright. All text
comes from a template, so control characters are escaped, line breaks are shown, and long text is cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rich.text import Text

from toolgram.cli.paint import DRAWN_BREAKS
from toolgram.cli.terminal import on_one_line, shortened, spelled_out

if TYPE_CHECKING:
    from toolgram.derive.report import DeriveReport, Probe
    from toolgram.derive.result import DiffAnalysisResult, FailedProbe, Finding, Shape

LONGEST_RENDERING = 600
LONGEST_SHARED = 80
LONGEST_WORDS = 300
HEADING, SHOWN, FAINT = "bold underline", "cyan", "dim"


def report_lines(name: str, report: DeriveReport, analysis: DiffAnalysisResult) -> Iterator[Text]:
    """Yield the whole report, line by line."""
    yield from _verdict(name, report)
    yield from _section("modes", _modes(analysis))
    yield from _section("markers, exactly as rendered", _pairs(analysis.markers.items()))
    yield from _section("keys of a JSON call", _pairs(_named(analysis.json_fields)))
    yield from _section("generation prompts", _pairs(_prompts(analysis)))
    yield from _section("layout of a turn, by the parts of the message", _turns(analysis))
    yield from _section("findings, and the renderings that show them", _findings(analysis.report.findings))
    yield from _section("refused by the template", _refusals(analysis.report.failed))
    yield from _section("warnings", (Text(f"  {on_one_line(warning)}", "yellow") for warning in warnings_of(report)))
    yield from _section("probes: messages that were rendered and parsed again", _probes(report.probes))


def warnings_of(report: DeriveReport) -> list[str]:
    """Return the warnings, without those that repeat the problem of a probe."""
    told = {f"{probe.case} ({probe.prompt}): {probe.problem}" for probe in report.failed}
    return [warning for warning in report.warnings if warning not in told]


def _verdict(name: str, report: DeriveReport) -> Iterator[Text]:
    how = f"the format {report.shipped}, which ships" if report.shipped else "derived from the template"
    yield Text.assemble((spelled_out(name), "bold"), ": ", how)
    if report.why:
        yield Text(f"  {on_one_line(report.why)}")
    yield from (Text(f"  not taken: {on_one_line(each)}", FAINT) for each in report.asked)
    total = len(report.probes)
    yield Text(f"  {total - len(report.failed)} of {total} probes came back", "green" if report.ok else "red")


def _section(title: str, lines: Iterable[Text]) -> Iterator[Text]:
    """Yield a heading and its lines, or nothing if there are no lines."""
    found = list(lines)
    if found:
        yield Text()
        yield Text(title, HEADING)
        yield from found


def _modes(analysis: DiffAnalysisResult) -> Iterator[Text]:
    yield from _aligned(
        [
            ("reasoning", analysis.reasoning_mode.value),
            ("content", analysis.content_mode.value),
            ("tools", analysis.tool_format.value),
            ("call id", analysis.call_id),
            ("several calls", "yes" if analysis.calls is not None and analysis.calls.parallel else "no"),
            ("thinking switch", analysis.switch or "none"),
            ("special tokens", " ".join(analysis.preserved_tokens) or "none"),
        ]
    )


def _prompts(analysis: DiffAnalysisResult) -> list[tuple[str, str]]:
    """Return the generation prompts by the setting of the thinking switch; just one if there is no switch."""
    prompts = analysis.prompts
    return [(f"thinking {how}" if len(prompts) > 1 else "always", prompt.text) for how, prompt in prompts.items()]


def _named(holder: Any) -> list[tuple[str, Any]]:
    """Return the fields of a dataclass that are not empty."""
    pairs = [(each.name, getattr(holder, each.name)) for each in fields(holder)]
    return [(name, value) for name, value in pairs if value]


def _pairs(pairs: Sequence[tuple[str, Any]]) -> Iterator[Text]:
    """Yield names and values. The values are in Python's notation, so that blanks and line breaks are visible."""
    yield from _aligned([(name, repr(dict(value) if hasattr(value, "keys") else value)) for name, value in pairs])


def _aligned(pairs: Sequence[tuple[str, str]]) -> Iterator[Text]:
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        yield Text.assemble(f"  {name:<{width}}  ", (_short(value), SHOWN))


def _turns(analysis: DiffAnalysisResult) -> Iterator[Text]:
    for parts, shape in analysis.shapes.items():
        yield Text("  " + ", ".join(sorted(part.value for part in parts)))
        yield Text.assemble("    ", _shape(shape))


def _shape(shape: Shape) -> Text:
    """Return a turn: its constant texts, and its parts by their names."""
    line = Text(_drawn(shape.texts[0]), SHOWN)
    for part, text in zip(shape.parts, shape.texts[1:], strict=True):
        line.append(f"({part.value})", "bold")
        line.append(_drawn(text), SHOWN)
    if shape.dropped:
        line.append(f"   without its {', '.join(sorted(part.value for part in shape.dropped))}", "yellow")
    return line


def _findings(findings: Sequence[Finding]) -> Iterator[Text]:
    """Yield every finding. Renderings that were just shown are referred to."""
    shown: dict[tuple[str, ...], str] = {}
    for finding in findings:
        yield Text.assemble(f"  {finding.phase:<6} ", (_short(finding.found), "bold"))
        yield Text(f"         rule: {_short(finding.rule)}", FAINT)
        earlier = shown.get(finding.evidence)
        if finding.evidence and earlier is not None:
            yield Text(f"         as {earlier} shows", FAINT)
            continue
        shown[finding.evidence] = finding.phase
        for label, line in zip("ABCDEFGH", _compared(finding.evidence), strict=False):
            yield Text.assemble("         ", (f"{label} ", "green"), line)


def _compared(renderings: Sequence[str]) -> list[Text]:
    """Return renderings with their difference highlighted."""
    from toolgram.derive.comparing import common_prefix, common_suffix

    told = [text for text in renderings if text]
    before = common_prefix(told) if len(told) > 1 else ""
    after = common_suffix([text[len(before) :] for text in told]) if len(told) > 1 else ""
    return [_rendering(text, len(before), len(after)) for text in renderings]


def _rendering(text: str, before: int, after: int) -> Text:
    """Return one rendering: the shared beginning and end are dim and cut, the text between them is bright."""
    if not text:
        return Text("(nothing)", FAINT)
    end = len(text) - after
    start = text[:before] if before <= LONGEST_SHARED else "…" + text[before - LONGEST_SHARED : before]
    rest = text[end:] if after <= LONGEST_SHARED else text[end : end + LONGEST_SHARED] + "…"
    own = text[before:end]
    if len(own) > LONGEST_RENDERING:
        half = LONGEST_RENDERING // 2
        own = f"{own[:half]} … {len(own) - LONGEST_RENDERING} characters … {own[-half:]}"
    return Text.assemble((_drawn(start), FAINT), (_drawn(own), SHOWN), (_drawn(rest), FAINT))


def _refusals(failed: Sequence[FailedProbe]) -> Iterator[Text]:
    """Yield what the template refused to render. Of messages refused for the same reason, yield the first one."""
    for count, probe in _first_of_each(failed):
        yield Text.assemble(
            f"  {probe.phase:<6} ", _short(probe.asked), (f"  and {count - 1} more" * (count > 1), FAINT)
        )
        yield Text(f"         {_short(str(probe.error))}", "yellow")


def _first_of_each(failed: Sequence[FailedProbe]) -> list[tuple[int, FailedProbe]]:
    groups: dict[str, list[FailedProbe]] = {}
    for probe in failed:
        groups.setdefault(str(probe.error), []).append(probe)
    return [(len(group), group[0]) for group in groups.values()]


def _probes(probes: Sequence[Probe]) -> Iterator[Text]:
    """Yield each probe, and also its text if it was read differently."""
    labels = [spelled_out(probe.case + f", thinking {probe.prompt}" * (probe.prompt != "unset")) for probe in probes]
    width = max(map(len, labels), default=0)
    for probe, label in zip(probes, labels, strict=True):
        mark = ("  FAIL ", "bold red") if probe.problem else ("  ok   ", "green")
        yield Text.assemble(mark, f"{label:<{width}}  {_short(probe.problem)}".rstrip())
        if probe.problem:
            yield Text.assemble("         ", (_drawn(shortened(probe.output, LONGEST_RENDERING)), SHOWN))


def _short(text: str) -> str:
    return shortened(on_one_line(text), LONGEST_WORDS)


def _drawn(text: str) -> str:
    return spelled_out(text).translate(DRAWN_BREAKS)
