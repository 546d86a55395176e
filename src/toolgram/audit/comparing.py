"""Compare what a client got with what the model wrote.

Strategy: if the log has the raw text, the format parses it, and the calls are paired: first the equal ones, then those
with the same name. If the log has only the answer, the content that the server left is parsed. Nothing is guessed: a
kind of loss that the log cannot show is not counted.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from toolgram.adapters.reading import evidence_in
from toolgram.audit.served import Call, Served
from toolgram.errors import ToolgramError
from toolgram.formats import Format
from toolgram.message import Message, ToolCall

KINDS = {
    "lost": "calls in the text that the server did not return",
    "invented": "calls that the server returned and that cannot be read in the text",
    "cut off": "calls that were cut off and that the server returned as if they were whole",
    "wrong arguments": "calls whose arguments are not those in the text",
    "markers": "answers with markers of the format in their content",
    "thoughts": "answers with the model's thinking in their content",
}
_THOUGHT = 40  # characters of a thought that are searched for in the content


class Finding(NamedTuple):
    """One difference, in words."""

    kind: str
    why: str


class Compared(NamedTuple):
    """The comparison of one answer. `returned` and `written` count calls."""

    returned: int
    written: int
    findings: list[Finding]


def compare(answer: Served, fmt: Format) -> Compared:
    """Return the differences in one answer."""
    calls = answer.calls or []
    if answer.raw is None:
        left = _read(fmt, answer.content, answer, "")
        findings = [Finding("lost", f"{call.name} is in the content") for call in left.tool_calls]
        findings += [Finding("cut off", f"{call.name}: its arguments end in the middle") for call in calls
                     if call.arguments and _value(call.arguments) is None and not _said_cut(answer)]  # fmt: skip
        findings += _left_in_content(fmt, answer.content, left, left.reasoning or "")
        return Compared(len(calls), len(calls) + len(left.tool_calls), findings)
    written = _read(fmt, answer.raw, answer, answer.prefix)
    if answer.calls is None:
        return Compared(0, len(written.tool_calls), [])
    findings = _paired(calls, written.tool_calls, _said_cut(answer))
    return Compared(
        len(calls),
        len(written.tool_calls),
        findings + _left_in_content(fmt, answer.content, written, written.reasoning),
    )


def _read(fmt: Format, text: str, answer: Served, prefix: str | None) -> Message:
    try:
        return fmt.parse(text, tools=answer.tools, prefix=prefix, finish_reason=evidence_in(answer.reason))
    except ToolgramError:  # the tools have an unknown shape
        return fmt.parse(text, prefix=prefix, finish_reason=evidence_in(answer.reason))


def _said_cut(answer: Served) -> bool:
    """Return whether the server says that the output did not end by itself: then half of a call is no surprise."""
    return evidence_in(answer.reason) not in (None, "stop")


def _paired(returned: list[Call], written: list[ToolCall], said_cut: bool) -> list[Finding]:
    """Return the differences between calls. Equal calls give no finding, unless the written one was cut off. Nor does
    the beginning of a call that was cut off, if its arguments are not JSON and the server says so."""
    left, rest, findings = list(written), [], []
    for call in returned:
        same = next((each for each in left if _same(call, each)), None)
        if same is None:
            rest.append(call)
        else:
            left.remove(same)
    for call in rest:
        near = next((each for each in left if each.name == call.name), None)
        if near is None:
            findings.append(Finding("invented", f"{call.name} was returned, and no such call can be read in the text"))
            continue
        left.remove(near)
        if near.status == "truncated" and said_cut and _value(call.arguments) is None:
            continue
        if near.status == "truncated":
            findings.append(Finding("cut off", f"{call.name}: the text ends inside {_short(near.arguments)}"))
        else:
            why = f"{call.name}: {_short(call.arguments)} was returned, {_short(near.arguments)} was written"
            findings.append(Finding("wrong arguments", why))
    return findings + [Finding("lost", f"{call.name} was not returned") for call in left if call.status == "complete"]


def _same(call: Call, written: ToolCall) -> bool:
    if call.name != written.name or written.status != "complete":
        return False
    value = _value(written.arguments)
    return call.arguments == written.arguments or (value is not None and _value(call.arguments) == value)


def _value(arguments: str) -> str | None:
    """Return arguments in one spelling of JSON, in which `1` and `true` differ; None if they are not JSON."""
    try:
        return json.dumps(json.loads(arguments, parse_float=_number), sort_keys=True)
    except (ValueError, RecursionError):
        return None


def _number(text: str) -> float | int:
    """Return a number; one without a fraction as an integer, as Python compares them."""
    number = float(text)
    return int(number) if number.is_integer() else number


def _left_in_content(fmt: Format, content: str, written: Message, thought: str | None) -> list[Finding]:
    """Return what does not belong in the content. A marker that the model mentions in its text does."""
    if not content:
        return []
    findings, mentioned = [], written.content or ""
    markers = [each for each in fmt.program.special.values() if each.strip() and each in content]
    if foreign := [each for each in markers if each not in mentioned]:
        findings.append(Finding("markers", f"{', '.join(foreign[:5])} in the content"))
    start = (thought or "").strip()[:_THOUGHT]
    if start and start in content and start not in mentioned:
        findings.append(Finding("thoughts", f"{_short(start)} in the content"))
    return findings


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:79] + "…"
