"""Warnings: what is proved and may still be a mistake. They do not fail `check`.

* a marker with a line end that refuses `\\r\\n`, which some models and servers write,
* the name of a function that refuses capitals, digits, `_`, `.` or `-`,
* an example in which the parser misses a closing marker that `closed_by` declares.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from toolgram.formats import Format
from toolgram.observing.paths import canonical_outputs
from toolgram.spec.data import Literal, Run, Spec
from toolgram.spec.declarations import slashed
from toolgram.spec.grammar_file import terminal_line

_IN_NAMES = {"capitals": "A", "digits": "0", "`_`": "_", "`.`": ".", "`-`": "-"}


def warnings_of(fmt: Format) -> list[str]:
    """Return all warnings about a format, each with its file and line and what to write instead."""
    return [*_line_ends(fmt.spec), *_names(fmt.spec), *_examples(fmt)]


def _line_ends(spec: Spec) -> Iterator[str]:
    """Markers that are read with one kind of line end only."""
    for name, shape in spec.terminals.items():
        if isinstance(shape, Literal) and "\n" in shape.text and not shape.either_end:
            pattern = slashed(re.escape(shape.text.replace("\r\n", "\n")).replace("\\\n", "\n"))
            both = pattern.replace("\\n", "\\r?\\n")
            yield f"{_place(spec, name)}: marker {name} refuses one of `\\n` and `\\r\\n`; write {name}: /{both}/"


def _names(spec: Spec) -> Iterator[str]:
    """Names of functions that refuse characters which names of functions have."""
    for name in dict.fromkeys(row.trigger for row in spec.transitions if "name" in row.actions):
        shape = spec.terminals.get(name)
        if isinstance(shape, Run) and re.fullmatch(shape.pattern, "a"):
            refused = [what for what, sign in _IN_NAMES.items() if not re.fullmatch(shape.pattern, f"a{sign}")]
            if refused:
                yield (
                    f"{_place(spec, name)}: {name} is the name of a function and refuses {', '.join(refused)}; write "
                    rf"{name}: /[\w.\-]{{1,256}}/"
                )


def _examples(fmt: Format) -> Iterator[str]:
    """Examples after which `closed_by` finds a closing marker missing."""
    spec = fmt.spec
    shown = [*canonical_outputs(fmt), *([("", fmt.example, [])] if fmt.example else [])]
    for prefix, output, tools in shown:
        message = fmt.parse(output, tools=tools or None, prefix=prefix, finish_reason="stop")
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


def _place(spec: Spec, name: str) -> str:
    line = terminal_line(spec.grammar_text, name)
    return f"{spec.grammar_path}:{line}" if line else spec.grammar_path
