"""The outputs that the file of a format shows."""

from __future__ import annotations

from toolgram.program.state import Program


def examples(program: Program) -> list[str]:
    """Return the example of a format and its canonical outputs."""
    said = program.spec.machine_dict.get("format", {}).get("canonical") or ()
    texts = [text.get("output", "") if isinstance(text, dict) else text for text in (program.spec.example, *said)]
    return list(dict.fromkeys(text for text in texts if isinstance(text, str) and text))
