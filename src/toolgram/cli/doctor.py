"""`toolgram doctor`: report whether a named format reads what a chat template writes.

Strategy: the file of outputs has on each line a text as JSON, or a row with one. Any other file is one output.
"""

from __future__ import annotations

import json
import sys

from toolgram.cli.deriving import DeriveOptions
from toolgram.cli.source import Unreadable, pieces
from toolgram.cli.templates import NoTemplate, read_template
from toolgram.cli.terminal import NOTHING_USABLE, USABLE, complain
from toolgram.errors import ToolgramError
from toolgram.formats import Format

FIELDS = ("output", "text", "content", "completion")  # of a row, in the order in which they are looked for


def print_diagnosis(
    path: str, variant: str | None, fmt: Format, options: DeriveOptions, outputs: str | None, as_json: bool
) -> int:
    """Print the diagnosis. Return exit status 1 if the format does not read everything, or there is no template."""
    from toolgram.derive.doctor import diagnose

    try:
        texts = outputs_in("".join(pieces(outputs))) if outputs is not None else []
        derived = options.derive(read_template(path, variant)).format
        found = diagnose(fmt, derived, texts)
    except (Unreadable, NoTemplate, ToolgramError) as error:
        complain(str(error))
        return NOTHING_USABLE
    sys.stdout.write((json.dumps(found.to_dict(), ensure_ascii=False, indent=2) if as_json else str(found)) + "\n")
    return USABLE if found.ok else NOTHING_USABLE


def outputs_in(text: str) -> list[str]:
    """Return the outputs in a file: a JSON text or a row on each line, or the whole file as one output."""
    found: list[str] = []
    for line in filter(str.strip, text.splitlines()):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return [text]
        values = [row] if not isinstance(row, dict) else [row.get(name) for name in FIELDS]
        output = next((value for value in values if isinstance(value, str)), None)
        if output is None:
            return [text]
        found.append(output)
    return found
