"""Check that a format parses what its template writes.

Strategy: the template itself renders the messages (`messages`). Each is parsed whole and in small pieces and compared
with its source message. A derived format was read from its two files, as `load_format` reads them; the last proof is
that these have no faults.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from toolgram.derive.budget import look
from toolgram.derive.report import Probe
from toolgram.derive.result import Case, DiffAnalysisResult, Written
from toolgram.formats import Format
from toolgram.message import Message
from toolgram.observing.probes import TOOLS
from toolgram.spec.faults import faults

_CUT = 3  # characters per delta, besides the whole text at once


def probe(fmt: Format, result: DiffAnalysisResult) -> list[Probe]:
    """Read all messages of the proof. Costs a few milliseconds."""
    return [probe_one(fmt, written)[0] for written in result.written]


def probe_one(fmt: Format, written: Written) -> tuple[Probe, Message]:
    """Parse one message, and return the probe and the parsed message."""
    look(f"probing the format ({written.case.name})")
    message = fmt.parse(written.output, TOOLS, written.prefix, "stop")
    return Probe(written.case.name, written.prompt, written.output, _problem(fmt, written, message)), message


def probe_files(fmt: Format) -> Probe:
    """Look for faults in the two files of a derived format, from which it was read."""
    look("probing the files of the format")
    return Probe("the two files", "unset", "", next(map(str, faults(fmt.spec)), ""))


def _problem(fmt: Format, written: Written, whole: Message) -> str:
    output = written.output
    problem = difference(whole, written.case)
    if problem and written.alike is not None:
        problem = difference(whole, written.alike) and problem
    if problem:
        return problem
    parser = fmt.parser(TOOLS, written.prefix)
    sources = []
    for at in range(0, len(output), _CUT):
        sources += [event.source for event in parser.feed(output[at : at + _CUT])]
    sources += [event.source for event in parser.close("stop")]
    if "".join(sources) != output:
        return "the events do not give the text back"
    if _gist(parser.message) != _gist(whole):
        return "cut into small pieces, it is read differently"
    return ""


def _gist(message: Message) -> tuple[str | None, str | None, list[tuple[str, str]]]:
    return message.content, message.reasoning, [(call.name, call.arguments) for call in message.tool_calls]


def difference(message: Message, case: Case) -> str:
    """Report how a parsed message differs from the case; "" if they are the same."""
    wanted = [(call.name, dict(call.arguments)) for call in case.calls]
    found = [(call.name, loaded(call.arguments)) for call in message.tool_calls]
    if found != wanted:
        return f"calls {_short(found)} instead of {_short(wanted)}"
    if any(call.status != "complete" for call in message.tool_calls):
        return "a call is not complete"
    for part, text, expected in (
        ("content", message.content, case.content),
        ("reasoning", message.reasoning, case.reasoning),
    ):
        if (text or "") != (expected or ""):
            return f"{part} {_short(text)} instead of {_short(expected)}"
    return ""


def loaded(arguments: str) -> Any:
    """Return the arguments of a call as data, or their text if it is not JSON."""
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def passed(probes: Sequence[Probe]) -> int:
    """Count the probes without a problem."""
    return sum(not each.problem for each in probes)
