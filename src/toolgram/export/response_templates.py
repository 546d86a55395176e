"""The `response_template` of transformers, written from a format.

Strategy: such a template is a table of regions with markers or expressions around them. Notes report what a template
cannot express (lists of calls, Python calls, repairs, blanks beside markers).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from toolgram.derive.comparing import markers_of
from toolgram.derive.result import ArgumentSlot, CallsFormat, DiffAnalysisResult, Slot, ToolFormat
from toolgram.errors import ToolgramError
from toolgram.export.example_templates import blanks_in, example_fields
from toolgram.formats import Format


@dataclass(frozen=True, slots=True)
class ResponseTemplate:
    """The template as data for tokenizer_config.json, and what it cannot express."""

    template: dict[str, Any]
    notes: list[str] = field(default_factory=list)


def write_response_template(fmt: Format) -> ResponseTemplate:
    """Return the `response_template` of a format.

    A format that was derived in this process knows what its chat template writes; any other is read from its example.
    Raises ToolgramError for a format that has neither.
    """
    result = fmt.report.analysis if fmt.report is not None else None
    notes = ["repairs, and the status of calls that were cut off, have no place in a response template"]
    if result is None:
        if not fmt.example:
            raise ToolgramError(f"{fmt.name} has neither an analysis of a chat template nor an example to write from")
        return _from_example(fmt, notes)
    fields: dict[str, Any] = {}
    start, end = result.markers.reasoning_start.strip(), result.markers.reasoning_end.strip()
    if start and end:
        fields["thinking"] = {"open": start, "close": end, "content": "text"}
    elif end:
        notes.append("reasoning that no marker opens is read as content")
    if result.calls is not None:
        calls = _calls(result, result.calls, notes)
        if calls:
            fields["tool_calls"] = {**calls, "repeats": True}
    fields["content"] = _content(result, notes)
    anchor = result.header or result.prompts["unset"].text
    if not anchor.strip():
        notes.append("the template has no role header, by which the beginning of a turn could be told")
    return ResponseTemplate(
        {"defaults": {"role": "assistant"}, "start_anchor": anchor or "\n", "fields": fields}, notes
    )


def _from_example(fmt: Format, notes: list[str]) -> ResponseTemplate:
    fields, opened = example_fields(fmt, notes)
    notes.append("the role header is not known, so the whole prompt is left out, but for a thought that it opens")
    tail = rf"(?:{re.escape(opened)}\s*)?" if opened else ""
    anchor = rf"\A.*?(?={tail}\Z)"
    return ResponseTemplate(
        {"defaults": {"role": "assistant"}, "start_anchor_pattern": anchor, "fields": fields}, notes
    )


def _content(result: DiffAnalysisResult, notes: list[str]) -> dict[str, Any]:
    ends = [markers_of(end)[:1] for end in (result.turn_end, result.turn_end_after_calls)]
    found = list(dict.fromkeys(marker for end in ends for marker in end))
    content: dict[str, Any] = {"content": "text"}
    if result.markers.content_start.strip():
        notes.append("content stands between markers of its own, and text outside of them would be lost")
        content["open"] = result.markers.content_start.strip()
        found = [result.markers.content_end.strip() or "", *found]
    closers = "|".join(re.escape(marker) for marker in found if marker)
    return {**content, "close_pattern": rf"\s*(?:{closers})"} if closers else content


def _calls(result: DiffAnalysisResult, calls: CallsFormat, notes: list[str]) -> dict[str, Any]:
    if result.tool_format is ToolFormat.JSON_NATIVE:
        return _json(result, notes)
    pattern = calls.pattern
    if result.tool_format is ToolFormat.PYTHON_CALLS or Slot.NAME not in pattern:
        notes.append("calls of this kind cannot be expressed, and are left in content")
        return {}
    at, values = pattern.index(Slot.NAME), pattern.index(Slot.ARGUMENTS)
    before, between, after = pattern[:at], pattern[at + 1 : values], pattern[values + 1 :]
    if any(isinstance(part, Slot) for part in (*before, *between, *after)) or not before or not after:
        notes.append("calls with ids or counters, or that nothing closes, cannot be expressed, and are left in content")
        return {}
    if calls.section_start.strip():
        notes.append("the section around the calls is left in content")
    opening, suffix, closing = (blanks_in("".join(map(str, part))) for part in (before, between, after))
    made = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
    found = {
        "open_pattern": rf"\s*{opening}(?P<name>[^<>\s\"'{{]+){suffix}",
        "close_pattern": closing,
        "transform": made,
    }
    form = calls.arguments
    if result.tool_format is ToolFormat.TAG_WITH_JSON:
        return {**found, "content": "json"}
    key, value = form.pattern.index(ArgumentSlot.KEY), form.pattern.index(ArgumentSlot.VALUE)
    texts = ["".join(map(str, part)) for part in (form.pattern[:key], form.pattern[key + 1 : value])]
    tag = rf"{blanks_in(texts[0])}(?P<key>[^<>\"']+?){blanks_in(texts[1])}(?P<value>.*?)"
    tag += blanks_in("".join(part for part in form.pattern[value + 1 :] if isinstance(part, str)))
    return {**found, "content": "xml-inline", "content_args": {"tag_pattern": tag}}


def _json(result: DiffAnalysisResult, notes: list[str]) -> dict[str, Any]:
    markers, fields = result.markers, result.json_fields
    start, end = markers.per_call_start.strip(), markers.per_call_end.strip()
    if not start or not end or fields.array_wrapped or fields.name_is_key or fields.function_field:
        notes.append("JSON calls in lists, without markers, or in a wrapper cannot be expressed, and stay in content")
        return {}
    if markers.tool_section_start.strip():
        notes.append("the section around the calls is left in content")
    function: Any = {"name": f"{{content.{fields.name_field}}}", "arguments": f"{{content.{fields.args_field}}}"}
    if (fields.name_field, fields.args_field) == ("name", "arguments"):
        function = "{content}"
    made = {"type": "function", "function": function}
    return {"open_pattern": rf"\s*{blanks_in(start)}", "close": end, "content": "json", "transform": made}
