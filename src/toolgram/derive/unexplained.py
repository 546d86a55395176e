"""What an analysis leaves open: everything for which a derived format may read an output wrongly.

Strategy: a report that is `ok` is a promise, so whatever is not known counts against it.  That a template prints no
calls and tells of none is known; that it refused to print them is not, nor is what it only describes.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from urllib.parse import quote

from toolgram.derive.hints import RESULTS, TOOLS
from toolgram.derive.messages import loses_empties
from toolgram.derive.python_skeleton import is_lossy, is_python
from toolgram.derive.report import ReportBuilder
from toolgram.derive.result import DiffAnalysisResult, Part, Parts, ReasoningMode, ToolFormat, ValueEncoding

_PRINTED = (ReasoningMode.TAG_BASED, ReasoningMode.DELIMITER, ReasoningMode.TOOLS_ONLY)


def find_unexplained(result: DiffAnalysisResult, report: ReportBuilder) -> list[str]:
    """What is left open, in words; nothing where all that the template prints is understood and was read again."""
    found = [
        *result.report.unexplained,
        *_calls(result, report),
        *_values(result, report),
        *_untyped(result),
        *_python(result),
        *_bare(result, report),
        *_opened(result, report),
        *(_encoded(result) if report.failed else ()),
    ]
    found += [*find_refused(result), *_unproved(result, report)]
    if any(map(loses_empties, result.written)):
        found.append("empty texts, lists and objects inside values are printed alike")
    return list(dict.fromkeys(found))


def _calls(result: DiffAnalysisResult, report: ReportBuilder) -> Iterator[str]:
    """Calls that are not printed, but refused, or told of."""
    if result.prints_calls == "yes":
        return
    if report.shipped:
        yield f"the template prints no calls: that they are those of {report.shipped} is taken from what it tells"
    elif result.prints_calls == "refused":
        yield "the template refused every message with calls; how they are written is not known"
    elif TOOLS in result.instructions:
        yield "the template tells the model of tools and prints no calls; how they are written is not known"
    elif RESULTS in result.instructions:
        yield "the template prints what a tool answers and no calls; how they are written is not known"


def _values(result: DiffAnalysisResult, report: ReportBuilder) -> Iterator[str]:
    if report.shipped:
        return
    for kind, style in (result.calls.arguments.values if result.calls else {}).items():
        if style.encoding is ValueEncoding.UNKNOWN:
            yield f"how an argument of the type {kind} is written was not understood"


def _untyped(result: DiffAnalysisResult) -> Iterator[str]:
    """Values whose type no text tells: Python's lists and objects are text unless a type is declared."""
    calls = result.calls
    if calls is None or is_python(calls):
        return
    kinds = [calls.arguments.values[kind] for kind in ("array", "object") if kind in calls.arguments.values]
    if any(style.encoding in (ValueEncoding.PYTHON, ValueEncoding.PYTHON_REPR) for style in kinds):
        yield "lists and objects are printed as Python: one whose parameter has no declared type is read as text"


def _python(result: DiffAnalysisResult) -> Iterator[str]:
    """Python calls whose history is no Python."""
    if result.calls is not None and is_python(result.calls) and is_lossy(result.calls):
        yield "the template writes its calls like Python, without all quotes and commas; they are read as Python"


def _bare(result: DiffAnalysisResult, report: ReportBuilder) -> Iterator[str]:
    """Calls in front of which no marker stands. A shipped format has rules for the prose around them."""
    calls = result.calls
    if calls is None or report.shipped or not (is_python(calls) or result.tool_format is ToolFormat.JSON_NATIVE):
        return
    first = calls.pattern[0]
    start = calls.section_start + (first if is_python(calls) and isinstance(first, str) else "")
    if not (start.strip().removesuffix("[") or result.markers.per_call_start.strip()):
        yield "no marker stands in front of a call: prose that quotes a whole one is read as a call"


def _opened(result: DiffAnalysisResult, report: ReportBuilder) -> Iterator[str]:
    """What the generation prompt writes for the model, and no marker explains: a shipped format may know it, and where
    it opens a thought that has no other beginning, it is the beginning."""
    if report.shipped or (result.reasoning_mode is ReasoningMode.FORCED_OPEN and not result.markers.reasoning_start):
        return
    known = sorted((marker.strip() for _, marker in result.markers.items()), key=len, reverse=True)
    for prompt in result.prompts.values():
        rest = prompt.opened
        if any(marker.startswith(rest.strip()) for marker in known):
            continue  # it begins what follows
        for marker in known:
            rest = rest.replace(marker, "") if marker else rest
        if rest.strip():
            yield f"the generation prompt ends in {rest.strip()[:80]!r}; the template does not show what that opens"


_ENCODED: Mapping[str, Callable[[str], str]] = {
    "escaped for HTML": html.escape,
    "escaped for URLs": quote,
    "as a JSON string": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
}


def _encoded(result: DiffAnalysisResult) -> Iterator[str]:
    """Texts that are printed in an encoding, and read without undoing it. JSON is undone where arguments are."""
    for written in result.written:
        for call in written.case.calls:
            for text in call.arguments.values():
                if isinstance(text, str) and (how := _encoding(text, written.output)) and "JSON" not in how:
                    yield f"an argument is printed {how}, and read as it is printed"
        for part, text in (("content", written.case.content), ("a thought", written.case.reasoning)):
            if text and (how := _encoding(text, written.output)):
                yield f"{part} is printed {how}, and read as it is printed"


def _encoding(text: str, output: str) -> str:
    """How a text is printed that is not printed as it stands; "" if that is not known."""
    if not text or text in output:
        return ""
    found = (name for name, encode in _ENCODED.items() if encode(text) in output)
    apart = "\n" in text and all(line in output for line in text.splitlines())
    return next(found, "with something before or after each line" if apart else "")


def find_refused(result: DiffAnalysisResult) -> Iterator[str]:
    """Messages that the template prints in no form. What it does print may be explained all the same."""
    for parts in _combinations(result):
        if parts not in result.shapes:
            yield f"the template refused a message of {_named(parts)}"


def _combinations(result: DiffAnalysisResult) -> Iterator[Parts]:
    for content, reasoning, calls in product((True, False), (False, True), (False, True)):
        given = ((Part.CONTENT, content), (Part.REASONING, reasoning), (Part.CALLS, calls))
        parts = frozenset(part for part, there in given if there)
        if (content or calls) and (not calls or result.calls is not None):
            yield parts


def _unproved(result: DiffAnalysisResult, report: ReportBuilder) -> Iterator[str]:
    """Messages that were never written and read again, though the template has them."""
    proved = {probe.case for probe in report.probes}
    if "content" not in proved and frozenset({Part.CONTENT}) in result.shapes:  # else it is refused
        yield "no message of content could be written and read again"
    end = result.markers.reasoning_end.strip()
    thinks = end and any(end not in prompt.opened for prompt in result.prompts.values())
    if thinks and result.reasoning_mode in _PRINTED and not any("reasoning" in case for case in proved):
        yield "no message of reasoning could be written and read again"
    if result.calls is not None and not proved & {"one call", "content and a call", "reasoning and a call"}:
        yield "no message with a call could be written and read again"


def _named(parts: Parts) -> str:
    return " and ".join(sorted(part.value for part in parts))
