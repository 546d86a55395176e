"""What an analysis leaves open: everything for which a derived format may read an output wrongly.

Strategy: a report that is `ok` is a promise, so whatever is not known counts against it.  That a template prints no
calls and tells of none is known; that it refused to print them is not, nor is what it only describes.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from toolgram.derive.analysis import TOLD_RESULTS, TOLD_TOOLS
from toolgram.derive.candidates import Candidate
from toolgram.derive.python_skeleton import is_lossy, is_python
from toolgram.derive.result import CallsFormat, DiffAnalysisResult, Part, ReasoningMode, ToolFormat, ValueEncoding
from toolgram.observing.probes import CALLS

_PRINTED = (ReasoningMode.TAG_BASED, ReasoningMode.DELIMITER, ReasoningMode.TOOLS_ONLY)


def find_unexplained(result: DiffAnalysisResult, taken: Candidate) -> list[str]:
    """Return what is left open, in words; nothing if all that the template prints was understood and read again."""
    found = [
        *result.report.unexplained,
        *_unprinted(result, taken),
        *(_of_calls(result.calls, result, taken) if result.calls else ()),
        *_opened(result, taken),
        *_refused(result),
        *_unproved(result, taken),
    ]
    return list(dict.fromkeys(found))


def _unprinted(result: DiffAnalysisResult, taken: Candidate) -> Iterator[str]:
    """Yield what is unknown of calls that the template does not print, but refuses or describes."""
    if result.prints_calls == "yes":
        return
    if taken.shipped:
        yield f"the template prints no calls: that they are those of {taken.shipped} is taken from what it tells"
    elif result.prints_calls == "refused":
        why = next((each.error for each in result.report.failed if CALLS[0].name in each.asked), "")
        yield f"the template refused every message with calls; how they are written is not known ({why})"
    elif TOLD_TOOLS in result.instructions:
        yield "the template tells the model of tools and prints no calls; how they are written is not known"
    elif TOLD_RESULTS in result.instructions:
        yield "the template prints what a tool answers and no calls; how they are written is not known"


def _of_calls(calls: CallsFormat, result: DiffAnalysisResult, taken: Candidate) -> Iterator[str]:
    """Yield what is open about calls that the template prints. A shipped format has rules for values and for prose."""
    styles, python = calls.arguments.values, is_python(calls)
    for kind, style in styles.items() if not taken.shipped else ():
        if style.encoding is ValueEncoding.UNKNOWN:
            yield f"how an argument of the type {kind} is written was not understood"
    nested = {styles[kind].encoding for kind in ("array", "object") if kind in styles}
    if not python and nested & {ValueEncoding.PYTHON, ValueEncoding.PYTHON_REPR}:
        yield "lists and objects are printed as Python: one whose parameter has no declared type is read as text"
    if python and is_lossy(calls):
        yield "the template writes its calls like Python, without all quotes and commas; they are read as Python"
    if not taken.shipped and (python or result.tool_format is ToolFormat.JSON_NATIVE):
        first = calls.pattern[0]
        start = calls.section_start + (first if python and isinstance(first, str) else "")
        if not (start.strip().removesuffix("[") or result.markers.per_call_start.strip()):
            yield "no marker comes before a call: prose that quotes a whole one is read as a call"


def _opened(result: DiffAnalysisResult, taken: Candidate) -> Iterator[str]:
    """Yield what the generation prompt writes for the model and no marker explains. A shipped format may know it."""
    if taken.shipped or (result.reasoning_mode is ReasoningMode.FORCED_OPEN and not result.markers.reasoning_start):
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


def _refused(result: DiffAnalysisResult) -> Iterator[str]:
    """Yield the messages that the template prints in no form. What it does print may be explained all the same."""
    for content, reasoning, calls in product((True, False), (False, True), (False, True)):
        given = ((Part.CONTENT, content), (Part.REASONING, reasoning), (Part.CALLS, calls))
        parts = frozenset(part for part, there in given if there)
        known = parts in result.shapes or not (content or calls) or (calls and result.calls is None)
        if not known:
            yield f"the template refused a message of {' and '.join(sorted(part.value for part in parts))}"


def _unproved(result: DiffAnalysisResult, taken: Candidate) -> Iterator[str]:
    """Yield the kinds of messages that were never written and read again, though the template has them."""
    proved = {probe.case for probe in taken.probes}
    if "content" not in proved and frozenset({Part.CONTENT}) in result.shapes:  # else it is refused
        yield "no message of content could be written and read again"
    end = result.markers.reasoning_end.strip()
    thinks = end and any(end not in prompt.opened for prompt in result.prompts.values())
    if thinks and result.reasoning_mode in _PRINTED and not any("reasoning" in case for case in proved):
        yield "no message of reasoning could be written and read again"
    if result.calls is not None and not proved & {"one call", "content and a call", "reasoning and a call"}:
        yield "no message with a call could be written and read again"
