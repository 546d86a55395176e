"""The line in a server's log about the format: how it was found, and which command explains more."""

from __future__ import annotations

from functools import cache

from toolgram.integrations.observing import counter, logger, warn_once
from toolgram.integrations.served import AUTO, Served, format_of

_SHOWN = 6  # markers in the line
UNMARKED_END = "no marker only ends it: a grammar constrains calls from the first token on, or not at all"


@cache
def log_start(served: Served) -> None:
    """Log one line about a format, and warnings about its choice, once per process."""
    try:
        for problem in (served.why, _not_fitting(served)):
            if problem:
                warn_once(problem)
        if served.fmt is not None:
            logger.info("toolgram: %s", start_line(served))
            counter()
    except Exception as error:  # a line in a log must not stop a server
        logger.debug("toolgram: no start line for %s: %r", served.name, error)


def _not_fitting(served: Served) -> str:
    """Return a warning if a format was named and none of its markers is a token of the model, else ""."""
    fmt = served.fmt
    markers = set(fmt.program.special.values()) if fmt is not None and served.name != AUTO else set()
    if fmt is None or not markers or not markers.isdisjoint(served.tokens):
        return ""
    fits, _ = format_of(served.tokenizer, AUTO)
    if fits is None or fits.name == fmt.name or (fits.report and fits.report.shipped == fmt.name):
        return ""
    name = f"toolgram_{fits.report.shipped}" if fits.report and fits.report.shipped else "toolgram"
    return (
        f"toolgram_{fmt.name} does not fit this model: 0 of {len(markers)} markers are tokens. Its chat template "
        f"is that of {name}: --tool-call-parser {name} --reasoning-parser {name}"
    )


def start_line(served: Served) -> str:
    """Return the line: the format, how it was found, its markers, its reasoning, its report, and what to ask."""
    fmt = served.fmt
    assert fmt is not None
    report, analysis = fmt.report, served.analysis
    if report is None:
        found = "named by the flag" if served.name != AUTO else "chosen by the tokenizer's version"
        verdict, ask = "shipped", f"toolgram explain --format {fmt.name} ANSWER.txt"
    else:
        found = "derived from the chat template" + (f" as {report.shipped}" if report.shipped else "")
        faults = f"{len(report.failed)} failed, {len(report.warnings)} warnings"
        verdict = "ok" if report.ok and not report.warnings else faults
        ask = "toolgram derive CHAT_TEMPLATE.jinja --report"
    markers = list(dict.fromkeys(fmt.program.special.values()))
    shown = " ".join(markers[:_SHOWN]) + (f" and {len(markers) - _SHOWN} more" if len(markers) > _SHOWN else "")
    tokens = sum(marker in served.tokens for marker in markers)
    mode = str(getattr(analysis.reasoning_mode, "value", analysis.reasoning_mode)) if analysis else ""
    reasoning = f"reasoning {mode or 'yes'}" if served.reasons else "no reasoning"
    if served.reasons and not served.has_end_marker:
        reasoning += f", {UNMARKED_END}"
    return (
        f"reads {fmt.name} ({found}); markers {shown or 'none'} ({tokens} of {len(markers)} are tokens); {reasoning}; "
        f"report {verdict}; ask: {ask}"
    )
