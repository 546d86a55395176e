"""What the examples of a machine file show, and what the parser reads in them.

Examples decide nothing, but they are what a reader of the file believes.  One that the parser cannot read fails
`check`; one that has no call, or contradicts `closed_by`, is a warning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolgram.formats import Format
from toolgram.message import Message
from toolgram.observing.paths import canonical_outputs
from toolgram.spec.data import Literal, Spec


def unread(fmt: Format) -> Iterator[str]:
    """Yield examples that the parser cannot read: a call in them is malformed."""
    for output, message in _readings(fmt):
        fault = next((each for each in message.anomalies if each.kind == "malformed"), None)
        if fault is not None:
            yield (
                f"{fmt.spec.machine_path}:{_line_of(fmt, output)}: the parser cannot read the example from "
                f"{output[fault.start : fault.start + 40]!r} on: {fault.why}; change the example or the format"
                + ("; `same_path` declares other keys" if "expected the key" in fault.why else "")
            )


def _readings(fmt: Format) -> Iterator[tuple[str, Message]]:
    """Yield the examples of the machine file, each with its message."""
    shown = {output: (prefix, tools) for prefix, output, tools in canonical_outputs(fmt)}
    if fmt.example:
        shown.setdefault(fmt.example, ("", []))
    for output, (prefix, tools) in shown.items():
        yield output, fmt.parse(output, tools=tools or None, prefix=prefix, finish_reason="stop")


def doubtful(fmt: Format) -> Iterator[str]:
    """Yield examples after which `closed_by` finds a closing marker missing, or none that has a call."""
    spec, readings = fmt.spec, [*_readings(fmt)]
    has_calls = any("end_call" in row.actions for row in spec.transitions)
    if readings and has_calls and not any(message.tool_calls for _, message in readings):
        yield f"{spec.machine_path}:{_line_of(fmt, readings[0][0])}: no example has a call that is read; show one"
    for output, message in readings:
        missing = next((each for each in message.anomalies if each.kind == "unclosed_envelope"), None)
        if missing is not None and spec.closed_by:
            opener = _last_opener(spec, output[: missing.start])
            closing = " or ".join(spec.closed_by[opener])
            yield (
                f"{spec.machine_path}:{_line_of(fmt, output)}: the example has no {closing} after "
                f"{opener}, which `closed_by` declares; write it, or change `closed_by`"
            )
            return


def _last_opener(spec: Spec, text: str) -> str:
    """Return the opening marker that occurs last in a text."""
    shapes = ((name, spec.terminals.get(name)) for name in spec.closed_by)
    places = {name: text.rfind(shape.text) for name, shape in shapes if isinstance(shape, Literal)}
    return max(places, key=places.__getitem__, default=next(iter(spec.closed_by)))


def _line_of(fmt: Format, output: str) -> int:
    """Return the line of the machine file on which an example begins."""
    first = next(iter(output.strip().splitlines()), "")
    text = fmt.machine_text
    at = text.find(first)
    if at < 0:
        found = re.search(r"^  (?:example|canonical):", text, re.MULTILINE)
        at = found.start() if found else 0
    return text.count("\n", 0, at) + 1
